//! The recipes: PHP of the server's own (`php/recipes`) that boots a known application once for many requests. Everything that
//! is known of one outside of its PHP stands here: what the settings ask of it, which requests it is for, and how it is run.

/// A recipe.
#[derive(Debug, PartialEq, Eq)]
pub struct Recipe {
    /// The value of the setting `app`, and the name of its pool and of its PHP file.
    pub name: &'static str,
    /// The script that it goes ahead of, from the document root. All others stay in classic mode.
    pub script: &'static str,
    /// The package of Composer's without which it cannot boot the application.
    pub package: Option<&'static str>,
    /// It is for worker mode, too, and not for snapshot mode alone.
    pub in_worker_mode: bool,
    /// It takes the snapshot itself, and then each request runs the script as classic mode does. Without it the script, or the
    /// recipe in its place, asks for request after request.
    pub takes_snapshot: bool,
    /// The boot may depend on the requested host, such as a configuration that is chosen by it.
    pub for_one_host: bool,
    /// Visitors whose requests run on the boot.
    pub visitors: Visitors,
    /// The files whose change makes the booted application an old one.
    pub watched: Watched,
    /// Processor time of a page in classic mode, in parts of that on the boot: docs/internals/tested-applications.md.
    pub gain: &'static str,
}

/// Visitors whose requests a booted application runs.
#[derive(Debug, PartialEq, Eq)]
pub enum Visitors {
    /// The boot has not looked at who asks.
    All,
    /// The boot continues after the point at which the application has identified the visitor: it is for anonymous
    /// visitors, and never for a request that has credentials in a header.
    Strangers {
        /// Allowed methods.
        methods: &'static [&'static str],
        /// Cookies of known visitors: parts of their names.
        known_by: &'static [&'static str],
        /// Parts of addresses of previews.
        previews: &'static [&'static str],
    },
}

/// Files whose changes count at once in classic mode, and so in the booted application.
#[derive(Debug, PartialEq, Eq)]
pub enum Watched {
    /// All code of the project of Composer's whose document root it is.
    Project,
    /// These patterns, from the document root.
    InRoot(&'static [&'static str]),
}

/// All recipes.
pub const RECIPES: &[Recipe] = &[SYMFONY, LARAVEL, WORDPRESS];

const FRONT: &str = "index.php";

pub(crate) const SYMFONY: Recipe = Recipe {
    name: "symfony",
    script: FRONT,
    package: Some("symfony/runtime"),
    in_worker_mode: true,
    takes_snapshot: false,
    for_one_host: false,
    visitors: Visitors::All,
    watched: Watched::Project,
    gain: "1.6 to 4",
};

pub(crate) const LARAVEL: Recipe = Recipe { name: "laravel", package: None, gain: "2 to 6", ..SYMFONY };

/// It lies in its document root, with its uploads. Files that each request checks itself are not watched.
pub(crate) const WORDPRESS: Recipe = Recipe {
    name: "wordpress",
    script: FRONT,
    package: None,
    in_worker_mode: false,
    takes_snapshot: true,
    for_one_host: true,
    visitors: Visitors::Strangers {
        methods: &["GET", "HEAD"],
        // Logged in, recovery mode.
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

impl Recipe {
    /// The recipe of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        RECIPES.iter().find(|recipe| recipe.name == name)
    }

    /// The names of all of them, for people.
    #[must_use]
    pub fn names() -> String {
        RECIPES.iter().map(|recipe| recipe.name).collect::<Vec<_>>().join(", ")
    }
}

impl Visitors {
    /// `true` if they include the sender of a request with this method, address and these CGI variables.
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
