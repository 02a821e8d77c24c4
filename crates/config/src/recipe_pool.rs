//! The result of a site's recipe.

use howdah_detect::Recipe;

/// The boot of a site's application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipePool {
    pub recipe: &'static Recipe,
    /// Name of the booted pool.
    pub pool: String,
    /// The host of all requests that run in the booted pool, if the recipe needs a host and there is only this one.
    pub host: Option<String>,
    /// The application's configuration trusts a proxy's header, which can make HTTP requests look like HTTPS.
    pub believes_proxies: bool,
}
