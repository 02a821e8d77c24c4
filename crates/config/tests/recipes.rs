//! Requested recipes: the pool that each creates, and the reasons against one.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod directory;

use directory::Site;
use howdah_config::{Loaded, Mode};

#[test]
fn a_recipe_pool_precedes_the_default_pool_and_watches_its_application() {
    for (name, watched) in [
        ("wordpress", "wp-content/{plugins,mu-plugins,themes,languages}/**/*.{php,html,json,mo}"),
        ("laravel", "vendor/composer/installed.php"),
        ("drupal", "core/lib/Drupal.php"),
    ] {
        let site = Site::new(&format!("root = \"public\"\napp = \"{name}\"\nmode = \"snapshot\"\n"));
        site.write("public/index.php", "<?php");
        let Loaded { settings, .. } = site.load().unwrap();
        let booted = settings.pool(&settings.booted.as_ref().unwrap().pool).unwrap();
        assert_eq!((booted.name.as_str(), booted.mode), (name, Mode::Snapshot));
        assert_eq!(booted.script.as_deref(), Some(&*site.path().join("public/index.php")));
        assert!(booted.watch.iter().any(|pattern| pattern.ends_with(watched)), "{:?}", booted.watch);
        assert_eq!((booted.warmup_auto, booted.warmup.len()), (name != "drupal", 1));
        assert_eq!(settings.pools[0].mode, Mode::Classic);
    }
}

#[test]
fn a_mode_that_a_recipe_does_not_support_is_an_error() {
    for (text, why) in [
        ("app = \"nothing\"", ":1: app: unknown application \"nothing\""),
        ("[[rule]]\npath = \"/a/*\"\napp = \"nothing\"", ":3: [rule] app: unknown application \"nothing\""),
        ("app = \"joomla\"\nmode = \"snapshot\"", "needs a script, a boot file or an `app` that the server can boot"),
        ("app = \"wordpress\"\nmode = \"worker\"", "the recipe wordpress needs mode snapshot, but `mode` is worker"),
        (
            "app = \"symfony\"\nmode = \"snapshot\"\nfront_controller = \"app.php\"",
            "the recipe boots index.php, but `front_controller` is another script",
        ),
        (
            "app = \"symfony\"\nmode = \"snapshot\"\n[pool.symfony]\nworkers = 1",
            "a pool of that name exists already: symfony",
        ),
    ] {
        let errors = Site::new(text).errors().join("\n");
        assert!(errors.contains(why), "{why} is not in {errors}");
    }
}

#[test]
fn each_site_has_a_recipe_pool_that_precedes_its_own() {
    let text = "
        mode = \"snapshot\"
        [[site]]
        hosts = \"one.example\"
        root = \"public\"
        app = \"wordpress\"
        [[site]]
        hosts = [\"two.example\", \"www.two.example\"]
        root = \"public\"
        app = \"wordpress\"
        [site.pool]
        workers = 3
        warmup = [\"/news\"]
        [[site]]
        hosts = \"three.example\"
        root = \"public\"";
    let site = Site::new(text);
    site.write("public/index.php", "<?php");
    let Loaded { settings, .. } = site.load().unwrap();
    let of = |name: &str| settings.sites.iter().find(|site| site.name == name).unwrap().booted.clone();
    let (one, two) = (of("one.example").unwrap(), of("two.example").unwrap());
    assert_eq!((&*one.pool, one.host.as_deref()), ("one.example.wordpress", Some("one.example")));
    assert_eq!((&*two.pool, two.host.as_deref()), ("two.example.wordpress", None), "no host that all requests name");
    assert_eq!(of("three.example"), None);
    let pool = |name: &str| settings.pool(name).unwrap();
    assert_eq!((pool(&two.pool).workers.max, &*pool(&two.pool).warmup[0]), (3, "/news"));
    assert_eq!(pool(&two.pool).compare_with.as_deref(), Some("two.example"));
    assert_eq!(pool(&one.pool).compare_with.as_deref(), Some("default"));
    assert_eq!(pool("two.example").workers.min, 0, "the booted pool has the work");
    assert!(pool("default").workers.min > 0, "three.example has all of its work there");
    assert!(settings.pools.iter().filter(|pool| pool.recipe.is_none()).all(|pool| pool.mode == Mode::Classic));
}

#[test]
fn a_recipe_that_a_site_cannot_have_is_an_error() {
    let text = "
        app = \"symfony\"
        mode = \"snapshot\"
        [[site]]
        hosts = \"one.example\"
        root = \"public\"
        front_controller = \"app.php\"
        [[site]]
        hosts = \"two.example\"
        root = \"public\"
        app = \"none\"";
    let site = Site::new(text);
    site.write("public/index.php", "<?php");
    let errors = site.errors();
    assert!(errors[1].contains("howdah.toml:3: mode: mode \"snapshot\" needs a script"), "{errors:?}");
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].contains("howdah.toml:2") && errors[0].contains("the recipe boots index.php"), "{errors:?}");
}

#[test]
fn a_single_site_behaves_like_the_top_level() {
    let text = "
        [[site]]
        hosts = \"one.example\"
        root = \"public\"
        app = \"symfony\"
        [site.pool]
        mode = \"snapshot\"
        workers = 3
        [[site]]
        hosts = \"two.example\"
        root = \".\"";
    let site = Site::new(text);
    site.write("public/index.php", "<?php");
    let mut loaded = site.load().unwrap();
    let one = loaded.settings.sites[0].clone();
    loaded.settings = loaded.settings.of_one_site(&one);
    let names: Vec<&str> = loaded.settings.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["default", "one.example.symfony"]);
    let shown = loaded.show();
    for line in ["app = \"symfony\"", "workers = \"0-3\"", "mode = \"snapshot\""] {
        assert!(shown.contains(line) || line.starts_with("workers"), "{line}: {shown}");
    }
    assert!(!shown.contains("[[site]]") && shown.contains("workers = 3"), "{shown}");
    assert!(shown.contains(&format!("root = \"{}\"", site.path().join("public").display())), "{shown}");
}
