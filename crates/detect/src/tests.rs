//! Projects in the layout of Composer and of applications, reduced to the files that identify them.
#![allow(clippy::unwrap_used)]

use super::*;
use std::fs;
use tempfile::TempDir;

fn project(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn lock(packages: &[(&str, &str)]) -> String {
    let items = packages.iter().map(|(name, version)| serde_json::json!({ "name": name, "version": version }));
    serde_json::json!({ "packages": items.collect::<Vec<_>>(), "packages-dev": [] }).to_string()
}

#[test]
fn a_framework_is_detected_by_composers_packages() {
    let text = lock(&[("psr/log", "3.0.0"), ("laravel/framework", "v11.33.2"), ("laravel/octane", "v2.3.6")]);
    let dir = project(&[("composer.lock", &text), ("public/index.php", "")]);
    let found = look(dir.path()).unwrap();
    assert_eq!((found.kind.name, found.kind.app, &*found.title()), ("laravel", Some("laravel"), "Laravel 11.33.2"));
    assert_eq!((&found.root, found.evidence), (&dir.path().join("public"), "composer.lock"));
    assert!(found.has("laravel/octane") && !found.has("symfony/runtime"));
}

#[test]
fn a_projects_document_root_identifies_it_too() {
    let text = lock(&[("symfony/framework-bundle", "v7.1.5")]);
    let dir = project(&[("composer.lock", &text), ("public/index.php", ""), ("tests/index.php", "")]);
    let found = look(&dir.path().join("public")).unwrap();
    assert_eq!((&*found.title(), &found.project), ("Symfony 7.1.5", &dir.path().to_path_buf()));
    assert_eq!(found.root, dir.path().join("public"));
    // Other directories of the project must not be exposed to visitors.
    assert!(look(&dir.path().join("tests")).is_none());
}

#[test]
fn an_application_is_detected_before_its_framework() {
    let symfony = ("symfony/framework-bundle", "v7.1.5");
    for (package, name) in [("sylius/sylius", "sylius"), ("api-platform/symfony", "api-platform"), symfony_pair()] {
        let dir = project(&[("composer.lock", &lock(&[symfony, (package, "1.0.0")])), ("public/index.php", "")]);
        assert_eq!(look(dir.path()).unwrap().kind.name, name);
    }
}

fn symfony_pair() -> (&'static str, &'static str) {
    ("symfony/runtime", "symfony")
}

#[test]
fn a_project_without_installed_packages_is_reported_without_its_version() {
    let dir = project(&[("composer.json", r#"{"require": {"slim/slim": "^4"}}"#), ("public/index.php", "")]);
    let found = look(dir.path()).unwrap();
    assert_eq!((&*found.title(), found.evidence), ("Slim", "composer.json"));
}

/// Every Composer package that identifies an application, in its usual layout.
#[test]
fn composers_packages_are_reported_with_their_document_root() {
    for (package, root, name, app) in [
        ("laravel/framework", "public", "laravel", Some("laravel")),
        ("symfony/framework-bundle", "public", "symfony", Some("symfony")),
        ("api-platform/symfony", "public", "api-platform", Some("symfony")),
        ("sylius/sylius", "public", "sylius", Some("symfony")),
        ("drupal/core-recommended", "web", "drupal", Some("drupal")),
        ("drupal/core", "docroot", "drupal", Some("drupal")),
        ("roots/wordpress", "web", "bedrock", Some("bedrock")),
        ("roots/wordpress-no-content", "web", "bedrock", Some("bedrock")),
        ("typo3/cms-core", "public", "typo3", None),
        ("magento/product-community-edition", "pub", "magento", None),
        ("mage-os/product-community-edition", "pub", "magento", None),
        ("codeigniter4/framework", "public", "codeigniter", None),
        ("yiisoft/yii2", "web", "yii", None),
        ("yiisoft/yii2", "frontend/web", "yii", None),
        ("yiisoft/yii-runner-http", "public", "yii", None),
        ("cakephp/cakephp", "webroot", "cakephp", None),
        ("slim/slim", "public", "slim", None),
        ("mezzio/mezzio", "public", "mezzio", None),
        ("psr/http-server-handler", "public", "psr-15", None),
        ("psr/http-server-middleware", "web", "psr-15", None),
    ] {
        let index = format!("{root}/index.php");
        // Frameworks depend on PSR-15 interfaces too.
        let packages = [("psr/http-server-handler", "1.0.2"), (package, "v1.2.3")];
        let packages = if package.starts_with("psr/") { &packages[1..] } else { &packages[..] };
        let dir = project(&[("composer.lock", &lock(packages)), (&index, "")]);
        let found = look(dir.path()).unwrap_or_else(|| panic!("{package}"));
        assert_eq!((found.kind.name, found.kind.app), (name, app), "{package}");
        assert_eq!((&found.root, found.version.as_deref()), (&dir.path().join(root), Some("1.2.3")), "{package}");
    }
}

/// Laravel is detected with and without Octane, and Symfony with and without Runtime: these packages do not
/// change the kind of application.
#[test]
fn missing_optional_files_do_not_change_the_detection() {
    for (packages, name) in [
        (&[("laravel/framework", "v11.0.0")][..], "laravel"),
        (&[("laravel/octane", "v2.3.6"), ("laravel/framework", "v11.0.0")], "laravel"),
        (&[("symfony/framework-bundle", "v7.1.5")], "symfony"),
        (&[("symfony/runtime", "v7.1.5"), ("symfony/framework-bundle", "v7.1.5")], "symfony"),
    ] {
        let dir = project(&[("composer.lock", &lock(packages)), ("public/index.php", "")]);
        assert_eq!(look(dir.path()).unwrap().kind.name, name, "{packages:?}");
    }
}

/// A PSR interface alone must not expose a project whose pages are in its top directory.
#[test]
fn a_library_with_a_page_is_not_an_application() {
    let dir = project(&[("composer.json", r#"{"require": {"psr/http-server-handler": "^1"}}"#), ("index.php", "")]);
    assert!(look(dir.path()).is_none());
}

#[test]
fn an_application_without_composer_is_detected_by_its_constants() {
    let cases = [
        ("wp-includes/version.php", "<?php\n$wp_version = '6.1.1';", "WordPress 6.1.1"),
        ("includes/Defines.php", "<?php\ndefine( 'MW_VERSION', '1.39.4' );", "MediaWiki 1.39.4"),
        ("version.php", "<?php $OC_VersionString = '27.0.1';", "Nextcloud 27.0.1"),
        ("administrator/manifests/files/joomla.xml", "<extension>\n<version>4.2.0</version>", "Joomla 4.2.0"),
        ("libraries/classes/Version.php", "public const VERSION = '5.2.1' . VERSION_SUFFIX;", "phpMyAdmin 5.2.1"),
        ("program/include/iniset.php", "define('RCMAIL_VERSION', '1.6.5');", "Roundcube 1.6.5"),
        ("core/lib/Drupal.php", "class Drupal {\n  const VERSION = '10.1.6';", "Drupal 10.1.6"),
        ("doku.php", "<?php\n/**\n * DokuWiki mainscript\n */", "DokuWiki"),
        ("system/core/CodeIgniter.php", "const CI_VERSION = '3.1.13';", "CodeIgniter 3.1.13"),
        (
            "typo3/sysext/core/Classes/Information/Typo3Version.php",
            "protected const VERSION = '11.5.30';",
            "TYPO3 11.5.30",
        ),
        ("src/Version.php", "<?php\n\nnamespace PhpMyAdmin;\n", "phpMyAdmin"),
        ("src/Version.php", "<?php\n\nnamespace Other;\n", ""),
    ];
    for (file, text, title) in cases {
        let dir = project(&[(file, text), ("index.php", "")]);
        assert_eq!(look(dir.path()).map(|found| found.title()).unwrap_or_default(), title, "{file}");
    }
    // Version 4 has a separate document root.
    let dir = project(&[("system/CodeIgniter.php", "const CI_VERSION = '4.4.3';"), ("public/index.php", "")]);
    assert_eq!(
        look(dir.path()).map(|found| (found.title(), found.root)),
        Some(("CodeIgniter 4.4.3".into(), dir.path().join("public")))
    );
}

/// If an application has a public directory as well as pages at its top, only that directory is public.
#[test]
fn a_dedicated_document_root_takes_precedence_over_the_top_directory() {
    let dir = project(&[
        ("program/include/iniset.php", "define('RCMAIL_VERSION', '1.6.5');"),
        ("index.php", ""),
        ("public_html/index.php", ""),
    ]);
    let found = look(dir.path()).unwrap();
    assert_eq!((&*found.title(), found.root), ("Roundcube 1.6.5", dir.path().join("public_html")));
}

#[test]
fn a_directory_without_a_page_or_a_sign_is_no_application() {
    let laravel = lock(&[("laravel/framework", "v11.0.0")]);
    for files in [
        vec![],
        vec![("index.php", "<?php echo 1;")],
        vec![("composer.lock", &*laravel)],
        vec![("composer.lock", "no JSON"), ("public/index.php", "")],
        vec![("composer.lock", r#"{"packages": [1, {"name": 2}]}"#), ("public/index.php", "")],
        vec![("composer.json", r#"{"require": []}"#), ("public/index.php", "")],
        vec![("composer.json", r#"{"require-dev": {"slim/slim": "^4"}}"#), ("public/index.php", "")],
    ] {
        let dir = project(&files);
        assert!(look(dir.path()).is_none(), "{files:?}");
    }
}

#[test]
fn a_sign_that_is_a_pipe_or_a_directory_is_ignored() {
    let dir = project(&[("public/index.php", ""), ("composer.json/file", "")]);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        dir.path().join("composer.lock"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    assert!(look(dir.path()).is_none());
}

#[test]
fn a_version_with_control_characters_or_too_long_is_not_shown() {
    let long = "1".repeat(100);
    for version in ["1.0\u{1b}[2J", "1.0\nroot = \"/\"", &long] {
        let dir = project(&[("composer.lock", &lock(&[("slim/slim", version)])), ("public/index.php", "")]);
        assert_eq!(look(dir.path()).unwrap().title(), "Slim");
    }
}

#[test]
fn names_are_unique_and_every_kind_has_a_sign() {
    for (at, kind) in CATALOG.iter().enumerate() {
        assert!(!kind.signs.is_empty() && !kind.roots.is_empty() && !kind.title.is_empty(), "{}", kind.name);
        assert!(CATALOG[..at].iter().all(|other| other.name != kind.name), "{}", kind.name);
    }
}

fn admits(recipe: &str, method: &str, uri: &str, variable: (&str, &str)) -> bool {
    let variable = (variable.0.as_bytes(), variable.1.as_bytes());
    Recipe::named(recipe).unwrap().visitors.include(method.as_bytes(), uri.as_bytes(), std::iter::once(variable))
}

#[test]
fn anonymous_requests_that_only_read_are_admitted() {
    let admitted = |method, uri, variable| admits("wordpress", method, uri, variable);
    let cookie = ("HTTP_COOKIE", "a=b; comment_author_0=Bob");
    assert!(admitted("GET", "/?p=1", cookie));
    assert!(admitted("HEAD", "/", ("HTTP_ACCEPT", "wordpress_logged_in_0")));
    assert!(!admitted("POST", "/", cookie));
    assert!(!admitted("GET", "/?customize_changeset_uuid=0", cookie));
    assert!(!admitted("GET", "/", ("HTTP_COOKIE", "a=b; wordpress_logged_in_0=ada")));
    assert!(!admitted("GET", "/", ("HTTP_AUTHORIZATION", "Basic YTpi")));
}

#[test]
fn a_boot_that_ignores_the_client_is_for_all_clients() {
    for recipe in ["symfony", "laravel"] {
        assert!(admits(recipe, "POST", "/login", ("HTTP_COOKIE", "session=1")), "{recipe}");
        assert!(admits(recipe, "DELETE", "/", ("HTTP_AUTHORIZATION", "Basic YTpi")), "{recipe}");
    }
}

#[test]
fn recipes_differ_by_name_and_each_has_an_application() {
    for (at, recipe) in RECIPES.iter().enumerate() {
        assert!(RECIPES[..at].iter().all(|other| other.name != recipe.name), "{}", recipe.name);
        assert!(CATALOG.iter().any(|kind| kind.recipe == Some(recipe)), "{}", recipe.name);
        assert_eq!(Recipe::named(recipe.name), Some(recipe));
    }
    assert_eq!(Recipe::named("none"), None);
}

#[test]
fn a_recipe_is_applied_automatically_where_its_needs_are_met() {
    let name = |files: &[(&str, &str)]| look(project(files).path()).unwrap().recipe().map(|recipe| recipe.name);
    let bundle = ("symfony/framework-bundle", "v7.1.5");
    let plain = lock(&[bundle]);
    let runtime = lock(&[bundle, ("symfony/runtime", "v7.1.5")]);
    assert_eq!(name(&[("composer.lock", &plain), ("public/index.php", "")]), None);
    assert_eq!(name(&[("composer.lock", &runtime), ("public/index.php", "")]), Some("symfony"));
    assert_eq!(
        name(&[("wp-includes/version.php", "<?php $wp_version = '6.1';"), ("index.php", "")]),
        Some("wordpress")
    );
}

#[test]
fn debians_wordpress_has_a_host_if_it_is_configured_for_one() {
    let config = "<?php $debian_file = '/etc/wordpress/config-'.strtolower($debian_server).'.php';";
    let root = project(&[("wp-config.php", config)]);
    for (files, host) in [
        (&["config-blog.example.php", "htaccess"][..], Some("blog.example")),
        (&["config-localhost.php"], Some("localhost")),
        (&["config-default.php"], None),
        (&["config-a.example.php", "config-b.example.php"], None),
        (&[], None),
    ] {
        let files: Vec<_> = files.iter().map(|name| (*name, "<?php")).collect();
        let etc = project(&files);
        assert_eq!(wordpress::only_host_in(root.path(), etc.path()).as_deref(), host, "{files:?}");
        let own = project(&[("wp-config.php", "<?php define('DB_NAME', 'blog');")]);
        assert_eq!(wordpress::only_host_in(own.path(), etc.path()), None);
    }
}
