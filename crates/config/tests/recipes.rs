//! A recipe that is asked for: the pool that it makes, and the reasons for which it makes none.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod directory;

use directory::Site;
use howdah_config::{Loaded, Mode};

#[test]
fn a_pool_goes_ahead_of_the_default_one_and_watches_what_its_application_is_made_of() {
    for (name, watched) in [
        ("wordpress", "wp-content/{plugins,mu-plugins,themes,languages}/**/*.{php,html,json,mo}"),
        ("laravel", "vendor/composer/installed.php"),
    ] {
        let site = Site::new(&format!("root = \"public\"\nrecipe = \"{name}\"\n"));
        site.write("public/index.php", "<?php");
        let Loaded { settings, .. } = site.load().unwrap();
        let booted = settings.booted().unwrap();
        assert_eq!((booted.name.as_str(), booted.mode), (name, Mode::Snapshot));
        assert_eq!(booted.script.as_deref(), Some(&*site.path().join("public/index.php")));
        assert!(booted.watch.iter().any(|pattern| pattern.ends_with(watched)), "{:?}", booted.watch);
        assert_eq!(settings.pools[0].mode, Mode::Classic);
    }
}

#[test]
fn what_a_recipe_is_not_for_is_an_error() {
    for (text, why) in [
        ("recipe = \"nothing\"", "there is no recipe nothing; there are symfony, laravel, wordpress and none"),
        (
            "recipe = \"wordpress\"\nmode = \"worker\"",
            "the recipe wordpress is for mode snapshot, and `mode` is worker",
        ),
        (
            "recipe = \"symfony\"\nfront_controller = \"app.php\"",
            "a recipe boots index.php, and `front_controller` is another script",
        ),
        ("recipe = \"symfony\"\n[pool.symfony]\nworkers = 1", "there is a pool of that name: symfony"),
    ] {
        let errors = Site::new(text).errors().join("\n");
        assert!(errors.contains(why), "{why} is not in {errors}");
    }
}
