//! The metric cells of upstream servers.

use crate::cell::{Counter, Gauge, Labelled};
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The cells of one upstream server.
#[derive(Debug, Default)]
pub struct UpstreamMetrics {
    /// The proxy's name in the settings.
    pub proxy: Box<str>,
    /// The server's address.
    pub server: Box<str>,
    /// No configured proxy has this server any more.
    is_gone: AtomicBool,
    /// Active requests, including upgraded connections.
    pub active: Gauge,
    /// 1 while the server is given requests.
    pub up: Gauge,
    /// Requests sent to the server.
    pub requests: Counter,
    /// Connections opened to the server.
    pub connections: Counter,
    pub failures: Labelled,
}

impl UpstreamMetrics {
    fn new(proxy: &str, server: &str) -> Self {
        let made = Self { proxy: proxy.into(), server: server.into(), ..Self::default() };
        made.up.set(1);
        made
    }
}

/// The cells of all upstream servers.
#[derive(Debug, Default)]
pub struct Upstreams(RwLock<Vec<Arc<UpstreamMetrics>>>);

impl Upstreams {
    /// The cells of a proxy's server. Proxies keep them, so that requests need no lookup.
    pub fn of(&self, proxy: &str, server: &str) -> Arc<UpstreamMetrics> {
        let mut all = self.0.write();
        if let Some(known) = all.iter().find(|known| &*known.proxy == proxy && &*known.server == server) {
            known.is_gone.store(false, Relaxed);
            return Arc::clone(known);
        }
        let upstream = Arc::new(UpstreamMetrics::new(proxy, server));
        all.push(Arc::clone(&upstream));
        upstream
    }

    /// The cells of all upstream servers.
    pub fn all(&self) -> Vec<Arc<UpstreamMetrics>> {
        self.0.read().iter().filter(|upstream| !upstream.is_gone.load(Relaxed)).cloned().collect()
    }

    /// Hides all other servers from now on. Their counts are kept in case they return.
    pub fn keep(&self, is_there: impl Fn(&UpstreamMetrics) -> bool) {
        for upstream in self.0.read().iter() {
            upstream.is_gone.store(!is_there(upstream), Relaxed);
        }
    }
}
