//! Requests that warm a worker pool up before it serves: what its workers get for a path is what a visitor's GET would
//! bring them, since the same phases make it. Only the end is another: what leaves for a pool is kept.

use crate::exchange::Exchange;
use crate::service::Service;
use crate::site::Site;
use crate::sites::Sites;
use crate::upstream::Upstream;
use bytes::Bytes;
use howdah_budget::Budgets;
use howdah_config::{HostPattern, ListenAddr, Settings};
use howdah_observe::{AccessLogs, Metrics};
use howdah_pool::{Fault, FaultKind};
use howdah_protocol::{Connection, Head, Peer, Request, RequestBody, Shared, Target};
use howdah_transport::wire::EncodedRequest;
use http::{HeaderMap, HeaderValue, Method, Version, header};
use parking_lot::Mutex;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};
use std::time::{Instant, SystemTime};

/// Nothing of such a request waits, so nothing is charged for it.
static BUDGETS: LazyLock<Budgets> = LazyLock::new(|| Budgets::new(u64::MAX, u64::MAX));

/// Keeps what is on its way to a pool, and that pool's number.
#[derive(Debug, Default)]
struct Kept(Mutex<Option<(usize, EncodedRequest)>>);

impl Upstream for Kept {
    async fn run(&self, pool: usize, request: howdah_pool::Request) -> Result<howdah_pool::Response, Fault> {
        *self.0.lock() = Some((pool, request.head));
        Err(Fault::with(FaultKind::ClientGone, "a request of a warm-up"))
    }
}

/// The request for a target such as `/products?page=2`, as the pool with this number gets it from the first site whose
/// requests for it come there.
///
/// The sites are made for it: nothing is known of earlier files, counted or logged, and no visitor's limit is used up.
///
/// # Errors
/// Says what becomes of the request instead.
pub fn request(settings: &Arc<Settings>, pool: usize, target: &str) -> Result<EncodedRequest, String> {
    let metrics = Metrics::new();
    let shared = Arc::new(Shared::new(&settings.http, *BUDGETS, metrics.clone()));
    let sites = Sites::new(settings.clone(), metrics, &AccessLogs::default(), *BUDGETS)?;
    let maker = Maker { sites: Arc::new(sites), shared };
    let mut instead = None;
    for site in maker.sites.all() {
        match maker.of_site(site, target) {
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

struct Maker {
    sites: Arc<Sites>,
    shared: Arc<Shared>,
}

impl Maker {
    fn of_site(&self, site: &Site, target: &str) -> Result<(usize, EncodedRequest), String> {
        let kept = Arc::new(Kept::default());
        let service = Service::new(self.sites.clone(), kept.clone());
        let (mut exchange, body) = Exchange::begin(&self.sites, self.made_up(site, target)?);
        exchange.is_warm_up = true;
        exchange.trace = None;
        // With all that it could wait for answered at once, it is over when it has been polled once.
        let responding = pin!(service.respond(&mut exchange, body));
        let outcome = responding.poll(&mut Context::from_waker(Waker::noop()));
        if let Some(found) = kept.0.lock().take() {
            return Ok(found);
        }
        let status = match outcome {
            Poll::Ready(Ok(response)) => response.status(),
            Poll::Ready(Err(refusal)) => refusal.status(),
            Poll::Pending => return Err("it waits for something".to_owned()),
        };
        Err(format!("its response is {status}, without PHP"))
    }

    /// A GET from this machine.
    fn made_up(&self, site: &Site, target: &str) -> Result<Request, String> {
        let target = Target::parse(Bytes::copy_from_slice(target.as_bytes()))
            .map_err(|_| "it is no path: write %20 for a space".to_owned())?;
        let host = HeaderValue::from_str(&host(site)).map_err(|error| error.to_string())?;
        let headers = HeaderMap::from_iter([
            (header::HOST, host),
            (header::USER_AGENT, HeaderValue::from_static("Howdah warm-up")),
            (header::ACCEPT, HeaderValue::from_static("*/*")),
        ]);
        Ok(Request {
            head: Head { method: Method::GET, target, version: Version::HTTP_11, headers },
            body: RequestBody::none(),
            informational: None,
            connection: Arc::new(Connection::of_no_client(self.shared.clone(), peer(&self.sites.server.settings))),
            received: Instant::now(),
            time: SystemTime::now(),
        })
    }
}

/// A host that the site is for.
fn host(site: &Site) -> String {
    let named = site.settings.hosts.iter().find_map(|host| match host {
        HostPattern::Exact(name) => Some(name.clone()),
        HostPattern::Below(name) => Some(format!("www.{name}")),
        HostPattern::Any => None,
    });
    named.or_else(|| site.settings.server_name.clone()).unwrap_or_else(|| "localhost".to_owned())
}

/// This machine, at the first address that does not send clients elsewhere.
fn peer(settings: &Settings) -> Peer {
    let to_tls = settings.tls.redirect;
    let listener = settings.listen.iter().find_map(|addr| match addr {
        ListenAddr::Https(addr) => Some((*addr, true)),
        ListenAddr::Tcp(addr) if !to_tls => Some((*addr, false)),
        ListenAddr::Tcp(_) | ListenAddr::Unix(_) => None,
    });
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    let (local, https) = listener.unwrap_or((SocketAddr::new(here, 80), false));
    let mut peer = Peer::tcp(SocketAddr::new(here, 0), SocketAddr::new(here, local.port()), |_| false);
    peer.https = https;
    peer
}
