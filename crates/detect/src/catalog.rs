//! The known applications: signs that identify each, candidates for its document root, and its preset.

use crate::recipe::{DRUPAL, LARAVEL, Recipe, SYMFONY, WORDPRESS};

/// A known application.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Name in commands.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// Its preset, a value of the setting `app`. `None` if it needs no rules beyond the defaults, or has none yet.
    pub app: Option<&'static str>,
    /// Candidates for the document root in the project, likeliest first; a directory without `index.php` is skipped.
    pub roots: &'static [&'static str],
    /// Faster alternatives to classic mode, as a hint to users; empty if none was tested.
    pub faster: &'static str,
    /// The recipe that boots it once for many requests.
    pub recipe: Option<&'static Recipe>,
    /// Any one of these signs identifies the application.
    pub(crate) signs: &'static [Sign],
}

/// Signs of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// A Composer package.
    Package(&'static str),
    /// A text in a file, followed by the version on the same line.
    Text { file: &'static str, text: &'static str },
}

use Sign::{Package, Text};

const WITH_RUNTIME: &str = "snapshot mode, once the project has the package symfony/runtime: docs/guide/symfony.md";
const BY_BOOT_FILE: &str = "snapshot mode with a boot file: docs/guide/snapshot.md";
const BY_LOOP: &str = "worker mode by the package howdah/runtime, three lines of PHP: docs/guide/psr15.md";
const PROJECT_ROOT: &[&str] = &["."];
const PUBLIC: &[&str] = &["public"];

/// Defaults of a kind.
const PLAIN: Kind = Kind { name: "", title: "", app: None, roots: PUBLIC, faster: "", recipe: None, signs: &[] };

/// All known applications. The first match wins, so applications built on a framework come before the framework.
pub const CATALOG: &[Kind] = &[
    Kind {
        name: "laravel",
        title: "Laravel",
        app: Some("laravel"),
        recipe: Some(&LARAVEL),
        signs: &[Package("laravel/framework")],
        ..PLAIN
    },
    Kind {
        name: "sylius",
        title: "Sylius",
        app: Some("symfony"),
        faster: WITH_RUNTIME,
        recipe: Some(&SYMFONY),
        signs: &[Package("sylius/sylius")],
        ..PLAIN
    },
    Kind {
        name: "api-platform",
        title: "API Platform",
        app: Some("symfony"),
        faster: WITH_RUNTIME,
        recipe: Some(&SYMFONY),
        signs: &[Package("api-platform/core"), Package("api-platform/symfony")],
        ..PLAIN
    },
    Kind {
        name: "drupal",
        title: "Drupal",
        app: Some("drupal"),
        recipe: Some(&DRUPAL),
        roots: &["web", "docroot", "."],
        signs: &[
            Package("drupal/core"),
            Package("drupal/core-recommended"),
            Text { file: "core/lib/Drupal.php", text: "const VERSION =" },
        ],
        ..PLAIN
    },
    Kind {
        name: "typo3",
        title: "TYPO3",
        roots: &["public", "web", "."],
        signs: &[
            Package("typo3/cms-core"),
            Text { file: "typo3/sysext/core/Classes/Information/Typo3Version.php", text: "const VERSION =" },
        ],
        ..PLAIN
    },
    Kind {
        name: "magento",
        title: "Magento",
        roots: &["pub"],
        signs: &[
            Package("magento/product-community-edition"),
            Package("magento/product-enterprise-edition"),
            Package("mage-os/product-community-edition"),
        ],
        ..PLAIN
    },
    Kind {
        name: "bedrock",
        title: "WordPress (Bedrock)",
        app: Some("bedrock"),
        roots: &["web"],
        signs: &[Package("roots/wordpress"), Package("roots/wordpress-no-content")],
        ..PLAIN
    },
    Kind {
        name: "symfony",
        title: "Symfony",
        app: Some("symfony"),
        faster: WITH_RUNTIME,
        recipe: Some(&SYMFONY),
        signs: &[Package("symfony/framework-bundle")],
        ..PLAIN
    },
    Kind {
        name: "wordpress",
        title: "WordPress",
        app: Some("wordpress"),
        recipe: Some(&WORDPRESS),
        roots: PROJECT_ROOT,
        signs: &[Text { file: "wp-includes/version.php", text: "$wp_version =" }],
        ..PLAIN
    },
    Kind {
        name: "mediawiki",
        title: "MediaWiki",
        app: Some("mediawiki"),
        roots: PROJECT_ROOT,
        signs: &[Text { file: "includes/Defines.php", text: "MW_VERSION" }],
        ..PLAIN
    },
    Kind {
        name: "nextcloud",
        title: "Nextcloud",
        app: Some("nextcloud"),
        roots: PROJECT_ROOT,
        signs: &[Text { file: "version.php", text: "$OC_VersionString" }],
        ..PLAIN
    },
    Kind {
        name: "joomla",
        title: "Joomla",
        app: Some("joomla"),
        roots: PROJECT_ROOT,
        signs: &[Text { file: "administrator/manifests/files/joomla.xml", text: "<version>" }],
        ..PLAIN
    },
    Kind {
        name: "phpmyadmin",
        title: "phpMyAdmin",
        app: Some("phpmyadmin"),
        roots: &["public", "."],
        signs: &[
            Text { file: "libraries/classes/Version.php", text: "const VERSION =" },
            // From 6.0 on; the version is some lines further down.
            Text { file: "src/Version.php", text: "namespace PhpMyAdmin" },
        ],
        ..PLAIN
    },
    Kind {
        name: "roundcube",
        title: "Roundcube",
        app: Some("roundcube"),
        roots: &["public_html", "."],
        signs: &[Text { file: "program/include/iniset.php", text: "RCMAIL_VERSION" }],
        ..PLAIN
    },
    Kind {
        name: "dokuwiki",
        title: "DokuWiki",
        app: Some("dokuwiki"),
        faster: BY_BOOT_FILE,
        roots: PROJECT_ROOT,
        signs: &[Text { file: "doku.php", text: "DokuWiki" }],
        ..PLAIN
    },
    Kind {
        name: "codeigniter",
        title: "CodeIgniter",
        roots: &["public", "."],
        signs: &[
            Package("codeigniter4/framework"),
            Text { file: "system/CodeIgniter.php", text: "const CI_VERSION" },
            // Version 3, which has no separate document root.
            Text { file: "system/core/CodeIgniter.php", text: "const CI_VERSION" },
        ],
        ..PLAIN
    },
    Kind {
        name: "yii",
        title: "Yii",
        roots: &["web", "public", "frontend/web"],
        signs: &[Package("yiisoft/yii2"), Package("yiisoft/yii-runner-http"), Package("yiisoft/yii-http")],
        ..PLAIN
    },
    Kind { name: "cakephp", title: "CakePHP", roots: &["webroot"], signs: &[Package("cakephp/cakephp")], ..PLAIN },
    Kind { name: "slim", title: "Slim", faster: BY_LOOP, signs: &[Package("slim/slim")], ..PLAIN },
    Kind { name: "mezzio", title: "Mezzio", faster: BY_LOOP, signs: &[Package("mezzio/mezzio")], ..PLAIN },
    // Interfaces only: matches everything built on them that no entry above has matched.
    Kind {
        name: "psr-15",
        title: "PSR-15",
        roots: &["public", "web"],
        faster: BY_LOOP,
        signs: &[Package("psr/http-server-handler"), Package("psr/http-server-middleware")],
        ..PLAIN
    },
];
