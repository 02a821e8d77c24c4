//! The trait of a responder, one step of a request. `service` has the list of all responders.

use crate::exchange::Exchange;
use crate::explanation::ExplanationBuilder;
use crate::refusal::Refusal;
use crate::route::RouteCache;
use crate::upstream::Upstream;
use howdah_protocol::{RequestBody, Response};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// State that responders use; one per `Service`, of which each I/O thread has one.
#[derive(Debug)]
pub(crate) struct Context<U> {
    pub(crate) upstream: Arc<U>,
    routes: Mutex<RouteCache>,
}

impl<U> Context<U> {
    pub(crate) fn new(upstream: Arc<U>) -> Self {
        Self { upstream, routes: Mutex::default() }
    }

    /// The service's cache of routes.
    pub(crate) fn routes(&self) -> MutexGuard<'_, RouteCache> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Responds to some requests and passes the others on to the next responder.
///
/// The futures of all responders share the memory of the largest one, and each connection allocates that. So a
/// responder boxes a future that most requests do not need.
pub(crate) trait Responder {
    /// Returns `false` for a request that [`Self::respond`] would pass on anyway. Its future is then not created.
    fn concerns(exchange: &Exchange) -> bool {
        let _ = exchange;
        true
    }

    /// Returns the response; `None` passes the request on to the next responder. A responder that reads the body takes
    /// it.
    fn respond<U: Upstream>(
        context: &Context<U>,
        exchange: &mut Exchange,
        body: &mut RequestBody,
    ) -> impl Future<Output = Result<Option<Response>, Refusal>> + Send;

    /// Records what [`Self::respond`] would do, for `howdah explain`.
    fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
        let _ = (exchange, explaining);
    }
}
