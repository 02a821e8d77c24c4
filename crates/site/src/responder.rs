//! One station on the way of a request. The way itself is the list in `service`.

use crate::exchange::Exchange;
use crate::explanation::Explaining;
use crate::refusal::Refusal;
use crate::route::RouteCache;
use crate::upstream::Upstream;
use howdah_protocol::{RequestBody, Response};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The part of the server that responders use, one for each I/O thread.
#[derive(Debug)]
pub(crate) struct Context<U> {
    pub(crate) upstream: Arc<U>,
    routes: Mutex<RouteCache>,
}

impl<U> Context<U> {
    pub(crate) fn new(upstream: Arc<U>) -> Self {
        Self { upstream, routes: Mutex::default() }
    }

    /// The outcomes of `route` that this thread keeps.
    pub(crate) fn routes(&self) -> MutexGuard<'_, RouteCache> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Responds to some requests and hands the others on.
///
/// The futures of all responders share the memory of the largest, and each connection has that. So a future that most
/// requests do not need is boxed by its responder.
pub(crate) trait Responder {
    /// `false` for a request that [`Self::respond`] would hand on at the first look: its future is not made then.
    fn concerns(exchange: &Exchange) -> bool {
        let _ = exchange;
        true
    }

    /// Returns the response; `None` hands the request on to the next responder. One that reads the body takes it.
    fn respond<U: Upstream>(
        context: &Context<U>,
        exchange: &mut Exchange,
        body: &mut RequestBody,
    ) -> impl Future<Output = Result<Option<Response>, Refusal>> + Send;

    /// Notes what [`Self::respond`] would do, for `howdah explain`.
    fn explain(exchange: &mut Exchange, explaining: &mut Explaining) {
        let _ = (exchange, explaining);
    }
}
