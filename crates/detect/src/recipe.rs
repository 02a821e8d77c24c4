//! Recipes: PHP code of the server (`php/recipes`) that boots a known application once for many requests. Everything
//! about a recipe apart from its PHP is here: its modes, the requests that it serves, and the files to watch.

#[derive(Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Value of the setting `app`, and name of its PHP file and, without `[[site]]`, of its pool.
    pub name: &'static str,
    /// The script that it replaces, relative to the document root. All other scripts stay in classic mode.
    pub script: &'static str,
    /// The Composer package without which it boots no application that was only detected.
    pub package: Option<&'static str>,
    /// `true` if it works in worker mode too, not only in snapshot mode.
    pub in_worker_mode: bool,
    /// `true` if the recipe takes the snapshot itself, and then each request runs the script as in classic mode.
    /// Otherwise the script, or the recipe instead of it, has a request loop.
    pub takes_snapshot: bool,
    /// `true` if requests for frequent pages may run in the warm-up: the recipe undoes what they leave.
    pub learns: bool,
    /// `true` if the boot may depend on the requested host, for example if the host selects the configuration.
    pub for_one_host: bool,
    /// Visitors whose requests may run on the booted application.
    pub visitors: Visitors,
    /// Files whose changes make the booted application obsolete.
    pub watched: Watched,
    /// Processor time of a page in classic mode, relative to the booted application:
    /// docs/internals/tested-applications.md.
    pub gain: &'static str,
}

/// Visitors whose requests may run on a booted application.
#[derive(Debug, PartialEq, Eq)]
pub enum Visitors {
    /// The boot does not depend on the visitor.
    All,
    /// The boot includes the application's identification of the visitor. It is valid for anonymous visitors only, and
    /// never for a request with credentials in a header.
    Strangers {
        /// Allowed methods.
        methods: &'static [&'static str],
        /// Parts of the names of cookies that identify known visitors.
        known_by: &'static [&'static str],
        /// Parts of the URLs of previews.
        previews: &'static [&'static str],
    },
}

/// Files whose changes take effect immediately in classic mode, and must do so in the booted application.
#[derive(Debug, PartialEq, Eq)]
pub enum Watched {
    /// All code of the Composer project whose document root is served.
    Project,
    /// These patterns, relative to the document root.
    InRoot(&'static [&'static str]),
}

/// All recipes.
pub const RECIPES: &[Recipe] = &[SYMFONY, LARAVEL, WORDPRESS, DRUPAL];

const FRONT: &str = "index.php";

pub(crate) const SYMFONY: Recipe = Recipe {
    name: "symfony",
    script: FRONT,
    package: Some("symfony/runtime"),
    in_worker_mode: true,
    takes_snapshot: false,
    learns: true,
    for_one_host: false,
    visitors: Visitors::All,
    watched: Watched::Project,
    gain: "1.5 to 4",
};

pub(crate) const LARAVEL: Recipe = Recipe { name: "laravel", package: None, gain: "2 to 6", ..SYMFONY };

/// WordPress and its uploads lie in the document root. Files that each request checks itself are not watched.
pub(crate) const WORDPRESS: Recipe = Recipe {
    name: "wordpress",
    script: FRONT,
    package: None,
    in_worker_mode: false,
    takes_snapshot: true,
    learns: true,
    for_one_host: true,
    visitors: Visitors::Strangers {
        methods: &["GET", "HEAD"],
        // Cookies of logged-in users and of recovery mode.
        known_by: &["wordpress_"],
        previews: &["customize_"],
    },
    watched: Watched::InRoot(&[
        "wp-config.php",
        "wp-includes/version.php",
        "wp-content/{plugins,mu-plugins,themes,languages}/**/*.{php,html,json,mo}",
    ]),
    gain: "2.1 to 2.4",
};

/// Pages of anonymous visitors. Functions of Drupal keep data of a page in static variables, so none is rendered at boot.
pub(crate) const DRUPAL: Recipe = Recipe {
    name: "drupal",
    script: FRONT,
    package: None,
    in_worker_mode: false,
    takes_snapshot: false,
    learns: false,
    for_one_host: false,
    visitors: Visitors::Strangers { methods: &["GET", "HEAD"], known_by: &["SESS"], previews: &[] },
    watched: Watched::InRoot(&[
        "index.php",
        "autoload.php",
        "core/lib/Drupal.php",
        "{modules,themes,profiles}/**/*.{php,module,inc,install,profile,theme}",
    ]),
    gain: "3 to 4",
};

impl Recipe {
    pub fn named(name: &str) -> Option<&'static Self> {
        RECIPES.iter().find(|recipe| recipe.name == name)
    }

    /// Names of all recipes, for people.
    pub fn names() -> String {
        RECIPES.iter().map(|recipe| recipe.name).collect::<Vec<_>>().join(", ")
    }
}

impl Visitors {
    /// `true` if the visitors include the sender of a request with this method, address and these CGI variables.
    pub fn include<'a>(
        &self,
        method: &[u8],
        uri: &[u8],
        mut variables: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> bool {
        let Self::Strangers { methods, known_by, previews } = self else { return true };
        methods.iter().any(|one| one.as_bytes() == method)
            && !has_any(uri, previews)
            && !variables.any(|(name, value)| match name {
                b"HTTP_AUTHORIZATION" => true,
                b"HTTP_COOKIE" => has_any(value, known_by),
                _ => false,
            })
    }
}

fn has_any(text: &[u8], parts: &[&str]) -> bool {
    parts.iter().any(|part| text.windows(part.len()).any(|window| window == part.as_bytes()))
}
