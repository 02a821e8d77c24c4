//! Tests with requests that each application's rules refuse and allow.

use super::*;
use crate::testing::{outcome, rules};

/// The rules of a preset for a whole site, and below a path.
fn both(name: &str) -> [(crate::Rules, String); 2] {
    let site = rules(&format!("[[rule]]\napp = '{name}'")).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
    let below = format!("[[rule]]\npath = ['/app', '/app/*']\nalias = '/usr'\napp = '{name}'");
    let below = rules(&below).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
    [(site, String::new()), (below, "/app".to_owned())]
}

#[test]
fn every_application_has_rules_that_are_read() {
    for name in NAMES {
        for (rules, mount) in both(name) {
            assert!(rules.rules().len() >= 3, "{name}");
            assert!(!outcome(&rules, &format!("GET h{mount}/")).contains("403"), "{name}{mount}");
        }
        assert!(text(name).unwrap().starts_with("# "), "{name}");
    }
    let mut sorted = NAMES.to_vec();
    sorted.sort_unstable();
    assert_eq!(sorted, NAMES);
}

#[test]
fn private_files_are_refused_and_public_ones_are_not() {
    for (name, refused, served) in [
        (
            "wordpress",
            &["/wp-config.php", "/wp-includes/version.php", "/wp-content/debug.log"][..],
            &["/wp-login.php", "/wp-admin/", "/wp-includes/js/jquery/jquery.js", "/wp-cron.php", "/xmlrpc.php"][..],
        ),
        (
            "bedrock",
            &["/wp-config.php", "/wp/wp-includes/version.php", "/wp/wp-admin/includes/x.php", "/app/debug.log"][..],
            &["/wp/wp-login.php", "/wp/wp-admin/", "/wp/wp-includes/js/jquery/jquery.js", "/app/themes/a/style.css"][..],
        ),
        (
            "mediawiki",
            &[
                "/maintenance/update.php",
                "/includes/Setup.php",
                "/vendor/composer/installed.json",
                "/images/deleted/a",
                "/mw-config/index.php",
                "/LocalSettings.php",
            ],
            &[
                "/index.php",
                "/load.php",
                "/api.php",
                "/resources/assets/x.png",
                "/images/a/ab/x.png",
                "/rest.php/v1/page",
            ],
        ),
        (
            "phpmyadmin",
            &[
                "/templates/home/index.twig",
                "/libraries/classes/Core.php",
                "/sql/create_tables.sql",
                "/config.sample.inc.php",
                "/setup/index.php",
            ],
            &["/index.php", "/js/vendor/jquery/jquery.min.js", "/themes/pmahomme/css/theme.css", "/url.php"],
        ),
        (
            "roundcube",
            &[
                "/config/config.inc.php",
                "/logs/errors.log",
                "/temp/x",
                "/skins/elastic/meta.json",
                "/SQL/mysql.initial.sql",
            ],
            &["/index.php", "/skins/elastic/styles/styles.min.css", "/program/js/app.min.js"],
        ),
        (
            "cacti",
            &[
                "/mibs/CACTI-MIB",
                "/scripts/query.php",
                "/poller.php",
                "/rra/x.rrd",
                "/log/cacti.log",
                "/include/config.php",
            ],
            &["/index.php", "/graph_view.php", "/include/js/jquery.js", "/install/install.php"],
        ),
        ("phpsysinfo", &["/data/x", "/includes/class.php"], &["/index.php", "/xml.php", "/js.php", "/gfx/x.png"]),
        (
            "shaarli",
            &["/application/x.php", "/vendor/autoload.php", "/.git/config", "/data/datastore.php", "/assets/x"],
            &["/", "/login", "/tpl/default/css/shaarli.min.css"],
        ),
        (
            "drupal",
            &[
                "/sites/default/settings.php",
                "/core/core.services.yml",
                "/vendor/autoload.php",
                "/modules/x/x.php",
                "/core/lib/Drupal.php",
            ],
            &["/node/1", "/core/misc/drupal.js", "/core/install.php"],
        ),
        (
            "joomla",
            &["/configuration.php", "/libraries/bootstrap.php", "/?GLOBALS=1", "/components/com_x/x.php"],
            &["/", "/administrator/index.php", "/media/system/js/core.js"],
        ),
        (
            "dokuwiki",
            &["/data/pages/start.txt", "/conf/users.auth.php", "/inc/init.php", "/install.php"],
            &["/doku.php", "/lib/exe/css.php", "/start"],
        ),
        (
            "simplesamlphp",
            &["/_include.php", "/config/config.php"],
            &["/module.php/core/login", "/saml2/idp/SSOService.php"],
        ),
        (
            "phpldapadmin",
            &["/config/config.php", "/lib/functions.php"],
            &["/index.php", "/cmd.php", "/css/default/style.css"],
        ),
        ("postfixadmin", &["/config.inc.php", "/setup.php", "/model/x.php"], &["/login.php", "/users/main.php"]),
        ("adminer", &["/adminer/include/x.php", "/compile.php"], &["/", "/conf.php"]),
    ] {
        for (rules, mount) in both(name) {
            let of = |path: &str| outcome(&rules, &format!("GET h{mount}{path}"));
            for path in refused {
                assert!(of(path).ends_with("403"), "{name} {path}: {}", of(path));
            }
            for path in served {
                let outcome = of(path);
                assert!(
                    !outcome.contains("403") && !outcome.contains("404") && !outcome.contains("30"),
                    "{name} {path}: {outcome}"
                );
            }
        }
    }
}

#[test]
fn uploads_are_not_run() {
    for (name, path) in [
        ("wordpress", "/wp-content/uploads/2024/01/x.php"),
        ("bedrock", "/app/uploads/2024/01/x.php"),
        ("mediawiki", "/images/evil.php"),
        ("drupal", "/sites/default/files/x.php"),
        ("joomla", "/images/x.php"),
        ("laravel", "/storage/x.php"),
        ("symfony", "/uploads/x.php"),
    ] {
        for (rules, mount) in both(name) {
            let outcome = outcome(&rules, &format!("GET h{mount}{path}"));
            assert!(outcome.contains("php false") || outcome.ends_with("404"), "{name} {path}: {outcome}");
        }
    }
}

/// Front controllers generate thumbnails, private files and unbuilt assets at paths within upload and build
/// directories.
#[test]
fn a_missing_upload_or_asset_goes_to_the_front_controller() {
    for (name, path) in [
        ("laravel", "/storage/doc"),
        ("laravel", "/build/x.css"),
        ("symfony", "/media/cache/resolve/small/x.png"),
        ("symfony", "/uploads/x.png"),
        ("symfony", "/bundles/x/y.js"),
        ("symfony", "/assets/x.css"),
        ("symfony", "/build/x.css"),
        ("drupal", "/sites/default/files/styles/small/public/x.png"),
    ] {
        for (rules, mount) in both(name) {
            let missing = outcome(&rules, &format!("GET h{mount}{path}"));
            assert!(!missing.contains("php false") && !missing.contains("cache"), "{name} {path}: {missing}");
            // A directory's index would be run as well.
            for there in [".txt", "/dir/"] {
                let there = outcome(&rules, &format!("GET h{mount}{path}{there}"));
                assert!(there.contains("php false"), "{name} {path}: {there}");
            }
        }
    }
}

#[test]
fn a_mounted_application_has_no_rules_for_other_paths() {
    let text = "[[rule]]\nhost = 'a'\npath = '/wiki/*'\nalias = '/usr'\napp = 'dokuwiki'";
    let rules = rules(text).unwrap();
    assert_eq!(outcome(&rules, "GET a/data/x"), "-");
    assert_eq!(outcome(&rules, "GET b/wiki/data/x"), "-");
    assert!(outcome(&rules, "GET a/wiki/data/x").ends_with("403"));
    assert!(outcome(&rules, "GET a/wiki/_media/b:c.png").starts_with("/wiki/lib/exe/fetch.php ?media=b:c.png"));
    assert!(outcome(&rules, "GET a/wiki/start").starts_with("/wiki/doku.php ?id=start"));
}
