//! Result of a site's recipe.

use howdah_detect::Recipe;

/// The boot of a site's application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booted {
    pub recipe: &'static Recipe,
    /// The pool, whose `script` is the one that it goes ahead of.
    pub pool: String,
    /// The host of all requests that run on the boot, if the recipe needs to know it and there is only this one.
    pub host: Option<String>,
    /// The configuration of the application takes requests for some by HTTPS that are none, if a proxy's header says so.
    pub believes_proxies: bool,
}
