//! WordPress in snapshot mode, booted by the files of `examples/snapshot`: the visit of `wordpress.rs`, then every kind
//! of change by an administrator while several workers hold snapshots. Every page after a change must be as under nginx
//! with PHP-FPM.

use crate::browser::find;
use crate::database::Database;
use crate::files::{make_directory, write};
use crate::growth;
use crate::pair::{Pair, Side};
use crate::wordpress::{installed, log_in, new_settings, pretty_permalinks, setup, visit};
use howdah_tests::{Mode, Request, Setup};

/// Before WordPress is installed, the boot does nothing; afterwards it is the recipe's.
const BOOT: &str = include_str!("php/wordpress_snapshot/boot.php");

/// Pages for visitors run on the snapshot, the rest in a classic pool, as the recipes recommend.
const ROUTES: &str = r#"[{ path = "/wp-admin/*", pool = "classic" }, { path = "/wp-login.php", pool = "classic" },
    { path = "/wp-comments-post.php", pool = "classic" }, { path = "/xmlrpc.php", pool = "classic" }]"#;

/// Everything that a plugin may read while WordPress boots (an option, rows of a table, a transient), and what it may
/// add permanently.
const PLUGIN: &str = include_str!("php/wordpress_snapshot/plugin.php");

const THEME: [(&str, &str); 3] = [
    ("style.css", "/* Theme Name: Plain */\n"),
    ("functions.php", include_str!("php/wordpress_snapshot/theme_functions.php")),
    ("index.php", include_str!("php/wordpress_snapshot/theme_script.php")),
];

fn in_snapshot_mode(recipe: &str) -> Setup {
    setup()
        .workers(4)
        .more_processes(3)
        .file("../boot.php", BOOT)
        .file("../recipe.php", recipe)
        .file("../wordpress-changes.php", include_str!("../../../examples/snapshot/wordpress-changes.php"))
        .boot("../boot.php")
        .setting("pool.classic.mode", "\"classic\"")
        .setting("pool.classic.workers", "2")
        .setting("rule", &ROUTES.replace('\n', ""))
}

fn install_additions(side: &mut Side) {
    let content = side.site.place().root.join("wp-content");
    write(&content.join("plugins/marker.php"), PLUGIN);
    make_directory(&content.join("themes/plain"));
    for (file, text) in THEME {
        write(&content.join("themes/plain").join(file), text);
    }
}

/// Compares the page for anonymous visitors from every worker, and the page for the administrator.
fn look(pair: &mut Pair, what: &str) {
    for page in ["/", "/?p=1", "/?feed=rss2", "/?rest_route=/wp/v2/types", "/category/uncategorized/"] {
        pair.everywhere(&format!("{what}: {page} for strangers"), page);
    }
    pair.step(&format!("{what}: the front page for the administrator"), 200, |_| {
        Request::get("/")
            .header("User-Agent", "Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36")
    });
}

fn rest(pair: &mut Pair, name: &str, status: u16, route: &str, body: &str) {
    pair.get("a nonce", 200, "/wp-admin/admin-ajax.php?action=rest-nonce");
    pair.step(name, status, |side| {
        Request::post(&format!("/?rest_route={route}"), "application/json", body).header("X-WP-Nonce", &side.page())
    });
}

/// Follows a link on an administrator's page, given by a pattern.
fn click(pair: &mut Pair, name: &str, page: &str, link: &str) {
    pair.get(&format!("before {name}"), 200, page);
    pair.step(name, 302, |side| {
        let target = find(&side.page(), link).replace("\\/", "/").replace("&amp;", "&").replace("&#038;", "&");
        Request::get(&format!("/wp-admin/{target}"))
    });
}

fn switch_plugin(pair: &mut Pair, action: &str) {
    let link = format!(r#"href="(plugins\.php\?action={action}&amp;plugin=marker\.php[^"]*)""#);
    click(pair, &format!("{action} the plugin"), "/wp-admin/plugins.php", &link);
}

fn switch_theme(pair: &mut Pair, theme: &str) {
    let link =
        format!(r#"http:\\/\\/localhost\\/wp-admin\\/(themes\.php\?action=activate&amp;stylesheet={theme}[^"]*)""#);
    click(pair, &format!("the theme {theme}"), "/wp-admin/themes.php", &link);
}

/// Makes every kind of change by an administrator, some in the classic pool and some on a snapshot.
fn change_everything(pair: &mut Pair) {
    log_in(pair);
    look(pair, "at first");
    new_settings(pair, "Renamed twice");
    look(pair, "renamed");
    switch_plugin(pair, "activate");
    look(pair, "with a plugin");
    pair.shows("marker: unset|Hello world!|a transient index.php true user", true);
    rest(pair, "an option by REST", 200, "/wp/v2/settings", r#"{"marker_text":"by REST"}"#);
    look(pair, "with an option by REST");
    rest(pair, "another title", 200, "/wp/v2/posts/1", r#"{"title":"Another title"}"#);
    look(pair, "with another title");
    pair.shows("marker: by REST|Another title|", true);
    switch_theme(pair, "plain");
    look(pair, "with another theme");
    pair.shows(">Archives<", true);
    rest(pair, "a widget less", 200, "/wp/v2/widgets/block-5&_method=DELETE&force=true", "{}");
    look(pair, "with a widget less");
    pair.shows(">Archives<", false);
    pretty_permalinks(pair);
    look(pair, "with pretty addresses");
    pair.everywhere("the plugin's archive", "/thing/");
    let user = r#"{"username":"bob","email":"bob@example.org","password":"battery staple","roles":["author"]}"#;
    rest(pair, "a new user", 201, "/wp/v2/users", user);
    rest(
        pair,
        "the user's post",
        201,
        "/wp/v2/posts",
        r#"{"title":"Bob's","status":"publish","author":2,"content":"x"}"#,
    );
    look(pair, "with a new user's post");
    pair.everywhere("the user's posts", "/author/bob/");
    switch_theme(pair, "twentytwentythree");
    look(pair, "with the first theme again");
    switch_plugin(pair, "deactivate");
    look(pair, "without the plugin");
    pair.shows("marker:", false);
}

fn booted(recipe: &str, database: &Database) -> Pair {
    let mut pair = installed(Mode::Snapshot, &in_snapshot_mode(recipe), database);
    pair.each(install_additions);
    write(&pair.sides[0].site.place().top.join("installed"), "");
    pair.reload();
    pair
}

const FRONT: &str = include_str!("../../../examples/snapshot/wordpress-front.php");
const PLUGINS_LOADED: &str = include_str!("../../../examples/snapshot/wordpress-boot.php");

#[test]
fn wordpress_is_the_same_in_snapshot_mode() {
    let database = Database::start();
    let mut pair = booted(FRONT, &database);
    visit(&mut pair);
    growth::assert_none(&pair.sides[0].site, &["/", "/feed/"], |page| pair.fresh_page(page));
    pair.finish();
}

#[test]
fn wordpress_in_snapshot_mode_follows_every_change() {
    let database = Database::start();
    let mut pair = booted(FRONT, &database);
    change_everything(&mut pair);
    pair.finish();
}

#[test]
fn wordpress_is_the_same_with_its_plugins_loaded_in_the_snapshot() {
    let database = Database::start();
    let mut pair = booted(PLUGINS_LOADED, &database);
    visit(&mut pair);
    pair.finish();
}

#[test]
fn wordpress_with_its_plugins_loaded_in_the_snapshot_follows_every_change() {
    let database = Database::start();
    let mut pair = booted(PLUGINS_LOADED, &database);
    change_everything(&mut pair);
    pair.finish();
}
