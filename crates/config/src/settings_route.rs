//! The settings of routes: which paths go to which pool or to which other server.

use std::time::Duration;

use crate::pattern::PathPattern;
use crate::quantity::Limit;
use crate::table::settings;

settings! {
    /// The keys of a `[[route]]`, before they are checked.
    pub struct RouteKeys at "route" {
        /// The request paths meant; `*` stands for any text, slashes included. Required.
        pattern: Option<PathPattern> = r#""""# key("match") example(r#""/api/*""#);
        /// What metrics and `howdah top` call it; by default its pattern.
        name: Option<String> = r#""""# example(r#""api""#);
        /// The pool that takes them. Required where there is no `proxy`.
        pool: Option<String> = r#""""# example(r#""api""#);
        /// The server that they are handed on to: its address, or the NAME of a `[proxy.NAME]`.
        proxy: Option<String> = r#""""# example(r#""http://127.0.0.1:3000""#);
        /// How many of the pool's workers may run these requests at once; further ones wait. 0 for all.
        ///
        /// So a report that takes minutes leaves workers for the rest.
        workers: usize = "0" in(0, 100000) example("2");
        /// While requests wait, how much of the workers' time this route gets, where each client's other requests have 1.
        weight: u32 = "1" in(1, 1000) example("4");
        /// How long these requests may run in PHP, in the place of the pool's `deadline`; 0 for no limit.
        deadline: Option<Limit> = r#""""# example(r#""2m""#);
        /// How much processor time they may use, in the place of the pool's `cpu_deadline`; 0 for no limit.
        cpu_deadline: Option<Limit> = r#""""# example(r#""5s""#);
        /// How long they may wait for a worker, in the place of the pool's `queue_timeout`.
        queue_timeout: Option<Limit> = r#""""# example(r#""500ms""#);
    }
    plus {}
}

/// Which paths go to which pool, or to which other server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The paths.
    pub pattern: PathPattern,
    /// What metrics call it.
    pub name: String,
    /// The pool's name, which exists.
    pub pool: String,
    /// The name of the proxy that takes them in the pool's place.
    pub proxy: Option<String>,
    /// How many of the pool's workers may run its requests at once; 0 for all.
    pub workers: usize,
    /// Its weight while requests wait.
    pub weight: u32,
    /// How long its requests may run in PHP; `None`: as long as the pool says; zero: any time.
    pub deadline: Option<Duration>,
    /// The same for processor time.
    pub cpu_deadline: Option<Duration>,
    /// The same for the queue, where zero is zero.
    pub queue_timeout: Option<Duration>,
    /// Its position among the routes of all sites that have a share.
    pub share: Option<u16>,
}

impl Route {
    /// True if it shares its pool's workers in another way than requests without a route do, or has limits of its own.
    #[must_use]
    pub const fn has_share(&self) -> bool {
        let limits = self.deadline.is_some() || self.cpu_deadline.is_some() || self.queue_timeout.is_some();
        self.workers > 0 || self.weight > 1 || limits
    }
}
