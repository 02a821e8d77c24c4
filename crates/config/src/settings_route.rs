//! The settings of routes: which paths go to which pool or to which other server.

use std::time::Duration;

use crate::pattern::PathPattern;
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
        /// When these requests are noted in the slow log; 0 for what their pool's `slow_log_after` says.
        slow_log_after: Option<Duration> = "0" example(r#""1s""#);
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
    /// When its requests are noted in the slow log; `None`: when the pool says.
    pub slow_log_after: Option<Duration>,
    /// Its position among the routes of all sites that have a share.
    pub share: Option<u16>,
}

impl Route {
    /// True if it shares its pool's workers in another way than requests without a route do, or has a slow log of its own.
    #[must_use]
    pub const fn has_share(&self) -> bool {
        self.workers > 0 || self.weight > 1 || self.slow_log_after.is_some()
    }
}
