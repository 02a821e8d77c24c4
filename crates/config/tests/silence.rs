//! Settings without effect cause warnings, and a file given as the directory is the configuration.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod directory;

use directory::Site;

#[test]
fn sites_that_serve_nothing_cause_warnings() {
    for (settings, files, expected) in [
        (
            "sites = [\"sitez/*.toml\"]\nroot = \"public\"",
            &["public/index.php", "sites/shop.toml", "sites/blog.toml"][..],
            &[
                "sites: no file matches \"sitez/*.toml\" in ",
                "sites/blog.toml and 1 more is not read: `sites` names sitez/*.toml",
            ][..],
        ),
        (
            "root = \"public\"",
            &["public/index.php", "sites/shop.toml"],
            &["sites/shop.toml is not read: `sites` names conf.d/"],
        ),
        (
            "root = \"public\"",
            &["public/style.css"],
            &["has neither index.php, index.html nor the front controller index.php"],
        ),
        (
            "root = \"public\"\nfront_controller = \"nope.php\"",
            &["public/index.php"],
            &["front_controller: there is no nope.php in "],
        ),
        (
            "[[site]]\nhosts = \"a\"\nroot = \"public\"\n[[site]]\nhosts = \"b\"\nroot = \".\"",
            &["public/index.php"],
            &["site b: root "],
        ),
        ("root = \"/\"", &[], &["root is /: clients can request every file of this machine"]),
        // No warning.
        ("root = \"public\"", &["public/index.html"], &[]),
        ("root = \"public\"\nfront_controller = \"\"", &["public/index.html"], &[]),
        ("root = \".\"\napp = \"laravel\"", &["server.php"], &[]),
        ("root = \".\"\nhtaccess = true", &[".htaccess"], &[]),
        ("", &["conf.d/a.toml", "public/index.php"], &[]),
    ] {
        let site = Site::new(settings);
        for file in files {
            let text = if file.starts_with("conf.d") { "hosts = \"a\"\nroot = \"../public\"" } else { "" };
            site.write(file, text);
        }
        let mut warnings = site.load().unwrap().warnings();
        warnings
            .retain(|warning| !warning.contains("no PHP will run") && !warning.contains("is below the document root"));
        assert_eq!(warnings.len(), expected.len(), "{settings}: {warnings:?}");
        for (warning, expected) in warnings.iter().zip(expected) {
            assert!(warning.contains(expected), "{settings}: {warning}");
        }
    }
}

#[test]
fn a_configuration_below_a_served_root_causes_a_warning() {
    let site = |root: &str| format!("[[site]]\nhosts = \"a\"\nroot = \"{root}\"\n");
    for (settings, warned) in [
        // The root is a default.
        ("index = [\"index.php\"]".to_owned(), true),
        ("root = \".\"".to_owned(), false),
        ("root = \"..\"".to_owned(), true),
        ("root = \"public\"".to_owned(), false),
        // With sites the top level's own root is not served.
        (site("public"), false),
        (site("."), true),
        (format!("root = \"..\"\n{}", site("public")), false),
    ] {
        let made = Site::new(&settings);
        made.write(if settings.contains("public") { "public/index.php" } else { "index.php" }, "");
        let warnings = made.load().unwrap().warnings();
        let is_warned = warnings
            .iter()
            .any(|warning| warning.starts_with("the configuration ") && warning.contains("is below the document root"));
        assert_eq!(is_warned, warned, "{settings}: {warnings:?}");
    }
}
