//! WordPress with the server's own recipe: pages for anonymous visitors run on the booted application, everything else
//! in classic mode. Every page must be as under nginx with PHP-FPM, also after an administrator's changes.

use crate::browser::find;
use crate::database::Database;
use crate::files::{make_directory, write};
use crate::pair::Pair;
use crate::wordpress::{installed, log_in, new_settings, pretty_permalinks, setup};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Request};

const PLUGIN: &str = include_str!("php/wordpress_snapshot/plugin.php");
const LOOKS: &str =
    "<?php /* Plugin Name: Looks */ add_action('init', function () { if (isset($_GET['x'])) { exit('looked'); } });";
const PAGES: [&str; 9] = [
    "/",
    "/?p=1",
    "/?page_id=2",
    "/?s=hello",
    "/?p=999",
    "/?feed=rss2",
    "/?rest_route=/wp/v2/posts",
    "/category/uncategorized/",
    "/nowhere/at/all",
];

/// Installed in classic mode, then booted: the recipe needs an installed WordPress.
fn booted(database: &Database, environment: &str) -> Pair {
    let mut pair = installed(Mode::Classic, &setup().allow_log("PHP Notice"), database);
    pair.each(|side| {
        let plugins = side.site.place().root.join("wp-content/plugins");
        make_directory(&plugins);
        write(&plugins.join("marker.php"), PLUGIN);
        write(&plugins.join("looks.php"), LOOKS);
    });
    let settings = pair.sides[0].site.place().run.join("howdah.toml");
    let said = std::fs::read_to_string(&settings).unwrap();
    // The application's rules make clients cache versioned files; nginx here does not.
    let rule = "[[rule]]\npath = [\"*.css\", \"*.js\"]\nheaders = { Cache-Control = \"\" }\n";
    write(&settings, &format!("app = \"wordpress\"\nmode = \"snapshot\"\n{environment}{said}\n{rule}"));
    pair.reload();
    pair
}

/// Number of requests that the booted pool has run; `None` while it does not serve.
fn on_the_boot(pair: &Pair) -> Option<u64> {
    let status = pair.sides[0].site.howdah().status();
    let pools = status["pools"].as_array().unwrap();
    let pool = pools.iter().find(|pool| pool["name"] == "wordpress")?;
    let workers = pool["workers"].as_array().unwrap();
    workers.iter().any(|worker| worker["phase"] == "serving").then(|| pool["requests"].as_u64().unwrap_or(0))
}

fn look(pair: &mut Pair, what: &str) {
    for page in PAGES {
        pair.everywhere(&format!("{what}: {page} for strangers"), page);
    }
    pair.get(&format!("{what}: the front page for the administrator"), 200, "/");
}

fn switch_plugin(pair: &mut Pair, action: &str, plugin: &str) {
    pair.get("the plugins", 200, "/wp-admin/plugins.php");
    pair.step(&format!("{action} {plugin}"), 302, |side| {
        let link = format!(r#"href="(plugins\.php\?action={action}&amp;plugin={plugin}\.php[^"]*)""#);
        Request::get(&format!("/wp-admin/{}", find(&side.page(), &link).replace("&amp;", "&")))
    });
}

#[test]
fn wordpress_booted_by_its_recipe_is_the_same_after_every_change() {
    let database = Database::start();
    let mut pair = booted(&database, "php.env.HOWDAH_WORDPRESS_TRUST = \"marker\"\n");
    assert!(eventually(PATIENCE, || on_the_boot(&pair).is_some()), "{}", pair.sides[0].site.log());
    log_in(&mut pair);
    look(&mut pair, "at first");
    new_settings(&mut pair, "Renamed twice");
    look(&mut pair, "renamed");
    switch_plugin(&mut pair, "activate", "marker");
    look(&mut pair, "with a plugin");
    pretty_permalinks(&mut pair);
    look(&mut pair, "with pretty addresses");
    switch_plugin(&mut pair, "deactivate", "marker");
    look(&mut pair, "without the plugin");
    // The files that render the theme's pages.
    pair.each(|side| {
        let part = side.site.place().root.join("wp-content/themes/twentytwentythree/parts/footer.html");
        let text = std::fs::read_to_string(&part).unwrap();
        write(&part, &format!("{text}<!-- wp:html --><p>changed by hand</p><!-- /wp:html -->"));
    });
    look(&mut pair, "with another part of the theme");
    pair.shows("changed by hand", true);
    let count = on_the_boot(&pair);
    assert!(count.is_some(), "the boot does not serve: {}", pair.sides[0].site.log());
    // A plugin that is not known to be safe.
    switch_plugin(&mut pair, "activate", "looks");
    look(&mut pair, "with a plugin that looks at the request");
    pair.everywhere("what that plugin does", "/?x=1");
    let _ = pair.sides[0].site.wait_for_log(&["looks.php:1 has $_GET", "the pool default serves in classic mode"]);
    pair.judge();
}
