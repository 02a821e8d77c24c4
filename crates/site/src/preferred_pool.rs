//! A recipe's pool, which has booted the site's application. Requests for one script run there instead of in the site's
//! own pool, if the recipe includes their visitors and the pool serves.

use crate::forwarded::split_port;
use howdah_config::{PoolSettings, RecipePool, SiteSettings};
use howdah_protocol::Head;
use http::header;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A pool that takes one script from the pool with position `fallback`.
#[derive(Debug)]
pub(crate) struct PreferredPool {
    pool: usize,
    fallback: usize,
    script: Vec<u8>,
    booted: RecipePool,
}

impl PreferredPool {
    pub(crate) fn of(site: &SiteSettings, pools: &[PoolSettings], fallback: usize) -> Option<Self> {
        let booted = site.booted.clone()?;
        let pool = pools.iter().position(|pool| pool.name == booted.pool)?;
        let script = pools[pool].script.as_ref()?.as_os_str().as_bytes().to_vec();
        Some(Self { pool, fallback, script, booted })
    }

    /// Returns the position of this pool if it runs `script` instead of `pool`.
    pub(crate) fn for_script(&self, pool: usize, script: &[u8]) -> Option<usize> {
        let same = || Path::new(OsStr::from_bytes(&self.script)) == Path::new(OsStr::from_bytes(script));
        // `Path` also compares equal with a doubled slash.
        (self.fallback == pool && (self.script == script || same())).then_some(self.pool)
    }

    /// `true` if the pool runs this visitor's requests for a host, with or without a port. `https`: as for
    /// `Client::https`.
    pub(crate) fn includes(&self, head: &Head, host: &str, https: bool) -> bool {
        let host = split_port(host).0;
        if self.booted.host.as_ref().is_some_and(|booted| !booted.eq_ignore_ascii_case(host)) {
            return false;
        }
        let says_https = || head.headers.get_all("x-forwarded-proto").iter().any(|value| value != "http");
        if self.booted.believes_proxies && !https && says_https() {
            return false;
        }
        let named = [(header::COOKIE, &b"HTTP_COOKIE"[..]), (header::AUTHORIZATION, b"HTTP_AUTHORIZATION")];
        let known = named
            .into_iter()
            .flat_map(|(field, name)| head.headers.get_all(field).iter().map(move |value| (name, value.as_bytes())));
        self.booted.recipe.visitors.include(head.method.as_str().as_bytes(), head.target.as_bytes(), known)
    }
}
