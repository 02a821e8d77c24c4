//! Requests that warm up a pool's new workers before they serve. The usual phases make them, so workers get the same
//! request as for a visitor's GET, with id 0. Only the last step differs: the request for the pool is captured instead
//! of run.

use crate::server_request::{Purpose, ServerRequest};
use crate::service::Service;
use crate::site::Site;
use crate::sites::Sites;
use crate::upstream::{Target, Upstream};
use howdah_budget::Budgets;
use howdah_config::Settings;
use howdah_observe::{AccessLogs, Metrics};
use howdah_pool::{Fault, FaultKind};
use howdah_protocol::RequestBody;
use howdah_transport::wire::EncodedRequest;
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};

/// Unlimited, because such a request holds no memory while it waits.
static BUDGETS: LazyLock<Budgets> = LazyLock::new(|| Budgets::new(u64::MAX, u64::MAX));

/// An upstream that captures the request for a pool, and the pool's position.
#[derive(Debug, Default)]
struct CapturingUpstream(Mutex<Option<(usize, EncodedRequest)>>);

impl Upstream for CapturingUpstream {
    async fn run(&self, target: Target, request: Box<howdah_pool::Request>) -> Result<howdah_pool::Response, Fault> {
        *self.0.lock() = Some((target.preferred.unwrap_or(target.pool), request.head));
        Err(Fault::with(FaultKind::ClientGone, "a request of a warm-up"))
    }
}

/// Returns the request for a target such as `/products?page=2` as the pool with this position would get it, from the
/// first site that sends the target to this pool.
///
/// The sites are built only for this call: no file is cached from before, nothing is counted or in the access log, and
/// no client limit is used up.
///
/// # Errors
/// The request does not reach the pool; the error describes its outcome.
pub fn request(settings: &Arc<Settings>, pool: usize, target: &str) -> Result<EncodedRequest, String> {
    let sites = Arc::new(Sites::new(settings.clone(), Metrics::new(), &AccessLogs::default(), *BUDGETS)?);
    let mut instead = None;
    for site in sites.all() {
        match of_site(&sites, site, target) {
            Ok((found, request)) if found == pool => return Ok(request),
            Ok((found, _)) => {
                let other = settings.pools.get(found).map_or("", |pool| &pool.name);
                instead.get_or_insert(format!("it is for the pool {other}"));
            }
            Err(why) => drop(instead.get_or_insert(why)),
        }
    }
    Err(instead.unwrap_or_default())
}

fn of_site(sites: &Arc<Sites>, site: &Site, target: &str) -> Result<(usize, EncodedRequest), String> {
    let kept = Arc::new(CapturingUpstream::default());
    let service = Service::new(sites.clone(), kept.clone());
    let mut exchange = ServerRequest { purpose: Purpose::WarmUp, site, host: None, target }.begin(sites)?;
    // Nothing that leads to PHP waits, so one poll completes the future.
    let responding = pin!(service.respond(&mut exchange, RequestBody::none()));
    let outcome = responding.poll(&mut Context::from_waker(Waker::noop()));
    if let Some(found) = kept.0.lock().take() {
        return Ok(found);
    }
    let status = match outcome {
        Poll::Ready(Ok(response)) => response.status(),
        Poll::Ready(Err(refusal)) => refusal.status(),
        Poll::Pending => return Err("it does not complete at once".to_owned()),
    };
    Err(format!("its response is {status}, without PHP"))
}
