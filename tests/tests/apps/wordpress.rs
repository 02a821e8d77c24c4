//! WordPress with MariaDB: installation, reading, comments, login, the administration, uploads with scaled images, the
//! REST API, pretty addresses.

use crate::browser::{encode, find, form};
use crate::database::Database;
use crate::files::{copy_tree, packaged, write};
use crate::normal::Rules;
use crate::pair::{Pair, Side};
use howdah_tests::{Mode, Part, Request, Setup, multipart, php};

/// The picture to upload: wide enough that WordPress creates several smaller versions.
const PICTURE: &str = "usr/share/wordpress/wp-content/themes/twentytwentythree/screenshot.png";

/// The configuration from WordPress's own sample file, but with fixed keys (so that nonces differ only by session) and
/// without requests to the outside.
const CONFIGURATION: &str = include_str!("php/wordpress/configuration.php");

fn install_files(side: &mut Side, database: &Database) {
    let root = &side.site.place().root;
    copy_tree(&packaged("usr/share/wordpress"), root);
    let configuration = CONFIGURATION
        .replace("@NAME@", database_name(side))
        .replace("@SOCKET@", &database.socket().display().to_string());
    write(&root.join("wp-config.php"), &configuration);
}

fn database_name(side: &Side) -> &'static str {
    if side.site.is_reference() { "reference" } else { "howdah" }
}

fn rules() -> Rules {
    Rules::new(&[
        // Session tokens in cookies, then nonces.
        (r"(ada(%7C|\|))\d{10}((%7C|\|))[A-Za-z0-9]{43}(%7C|\|)[0-9a-f]{64}", "$1<epoch>$3<token>"),
        (
            r#"((?:nonce|_wpnonce|_ajax_nonce[a-z-]*)(?:"|\\"|')?(?:=|:|%3D|" value=|" value='|' value=) ?["'\\]*)[0-9a-f]{10}\b"#,
            "$1<nonce>",
        ),
        (r#"((?:[nN]once|_wpnonce)[^<>\n]{0,60}?\b)[0-9a-f]{10}\b"#, "$1<nonce>"),
        (r#"\b([0-9a-f]{10})(["'])"#, "<hex>$2"),
        // Generated anew for each response.
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uuid>"),
        (r#"data-pw="[^"]*""#, "data-pw=<password>"),
        (r"^[0-9a-f]{10}$", "<nonce>"),
        // Depends on the second in which a comment was sent.
        (r"\bmoderation-hash=[0-9a-f]{32}", "moderation-hash=<hash>"),
        // Obfuscated for robots, differently each time; one of several servers for avatars.
        (r"(?:&#\d+;|[\w@.-])*&#\d+;(?:&#\d+;|[\w@.-])*", "<masked>"),
        (r"\b[0-3]\.gravatar\.com", "<n>.gravatar.com"),
        (r"\b\d+ (second|min)s? ago", "<date>"),
        (r"\bwp-container-\d+\b", "wp-container-<n>"),
        (r"\d+\.\d{3} seconds", "<seconds>"),
        (r"overdue by \d+ (second|minute)s?", "overdue by <time>"),
    ])
}

fn posted_form(side: &Side, target: &str, marker: &str, changes: &[(&str, &str)]) -> Request {
    Request::form(target, &encode(&form(&side.page(), marker, changes)))
}

/// Installs on both, each into its own database.
fn install(pair: &mut Pair) {
    pair.get("the front page before the installation", 302, "/");
    pair.get("the installer", 200, "/wp-admin/install.php");
    let fields = [
        ("weblog_title", "A site & its \"test\""),
        ("user_name", "ada"),
        ("admin_password", "correct horse"),
        ("admin_password2", "correct horse"),
        ("pw_weak", "on"),
        ("admin_email", "ada@example.org"),
    ];
    pair.step("the installation", 200, |side| {
        posted_form(side, "/wp-admin/install.php?step=2", "weblog_title", &fields)
    });
    pair.each(|side| assert!(side.page().contains("Success!"), "{}", side.page()));
    pair.get("the installer, again", 200, "/wp-admin/install.php");
}

fn read_as_a_stranger(pair: &mut Pair) {
    pair.get("the front page", 200, "/");
    pair.each(|side| assert!(side.page().contains("Hello world!"), "{}", side.page()));
    pair.load_assets("the front page loads", 20);
    pair.step("the front page, compressed", 200, |_| Request::get("/").header("Accept-Encoding", "gzip"));
    pair.step("the front page's head", 200, |_| Request::new("HEAD", "/"));
    pair.get("a post", 200, "/?p=1");
    pair.get("a page", 200, "/?page_id=2");
    pair.get("a search", 200, "/?s=hello+world");
    pair.get("a post that does not exist", 404, "/?p=999");
    pair.get("an address in the old style", 301, "/does/not/exist");
    pair.get("the feed", 200, "/?feed=rss2");
    pair.get("the posts by REST", 200, "/?rest_route=/wp/v2/posts");
    pair.get("the interface's description", 200, "/?rest_route=/");
    pair.step("a remote call", 200, |_| {
        Request::post("/xmlrpc.php", "text/xml", "<methodCall><methodName>demo.sayHello</methodName></methodCall>")
    });
    pair.get("the administration for strangers", 302, "/wp-admin/");
    let why = "Howdah redirects to a path, nginx to a URL with its port and with its own page";
    pair.get_differing("a directory without its slash", why, 301, "/wp-admin");
    pair.get("a comment's form", 200, "/?p=1");
    pair.step("a comment", 302, |side| {
        let changes = [("comment", "Well said: äöü"), ("author", "Bob"), ("email", "bob@example.org")];
        posted_form(side, "/wp-comments-post.php", "comment_post_ID", &changes)
    });
}

pub(crate) fn log_in(pair: &mut Pair) {
    pair.get("the login page", 200, "/wp-login.php");
    pair.load_assets("the login page loads", 10);
    pair.get("the login page again", 200, "/wp-login.php");
    pair.step("a wrong password", 200, |side| {
        posted_form(side, "/wp-login.php", "loginform", &[("log", "ada"), ("pwd", "wrong")])
    });
    pair.step("the login", 302, |side| {
        posted_form(side, "/wp-login.php", "loginform", &[("log", "ada"), ("pwd", "correct horse")])
    });
    pair.each(|side| {
        assert!(side.browser.cookie_names().iter().any(|n| n.starts_with("wordpress_logged_in_")), "not logged in");
    });
}

pub(crate) fn new_settings(pair: &mut Pair, name: &str) {
    pair.get("the settings", 200, "/wp-admin/options-general.php");
    pair.step("new settings", 302, |side| {
        let changes = [("blogname", name), ("blogdescription", "in a test")];
        posted_form(side, "/wp-admin/options.php", "option_page", &changes)
    });
}

pub(crate) fn pretty_permalinks(pair: &mut Pair) {
    // WordPress proposes addresses with /index.php/ under servers that it does not recognize by SERVER_SOFTWARE.
    pair.get("the permalinks", 200, "/wp-admin/options-permalink.php");
    pair.step("pretty permalinks", 302, |side| {
        let changes = [("permalink_structure", "/%year%/%postname%/"), ("selection", "/%year%/%postname%/")];
        posted_form(side, "/wp-admin/options-permalink.php", "permalink_structure", &changes)
    });
}

fn administer(pair: &mut Pair) {
    pair.get("the dashboard", 200, "/wp-admin/");
    pair.load_assets("the dashboard loads", 20);
    for page in ["edit.php", "upload.php", "edit-comments.php", "themes.php", "plugins.php", "users.php", "tools.php"] {
        pair.get(page, 200, &format!("/wp-admin/{page}"));
    }
    pair.get("the editor", 200, "/wp-admin/post-new.php");
    new_settings(pair, "Renamed");
    pair.get("the settings, saved", 200, "/wp-admin/options-general.php?settings-updated=true");
    pretty_permalinks(pair);
    pair.get("an address that does not exist", 404, "/does/not/exist");
    pair.get("the posts by REST, pretty", 200, "/wp-json/wp/v2/posts");
    pair.step("many scripts in one", 200, |_| {
        Request::get("/wp-admin/load-scripts.php?c=1&load[]=jquery-core,utils,wp-a11y")
            .header("Accept-Encoding", "gzip")
    });
    pair.step("many style sheets in one", 200, |_| {
        Request::get("/wp-admin/load-styles.php?c=0&dir=ltr&load[]=dashicons,admin-bar,common,forms,buttons")
    });
}

fn write_a_post(pair: &mut Pair) {
    pair.get("a nonce", 200, "/wp-admin/admin-ajax.php?action=rest-nonce");
    let nonces: Vec<String> = pair.sides.iter().map(Side::page).collect();
    let with_nonce =
        |side: &Side, request: Request| request.header("X-WP-Nonce", &nonces[usize::from(side.site.is_reference())]);
    let json = |method: &str, target: &str, body: &str| {
        Request::new(method, target).header("Content-Type", "application/json").body(body)
    };
    let body = r#"{"title":"Written in a test","content":"<!-- wp:paragraph --><p>Text: äöü €</p><!-- /wp:paragraph -->","status":"publish"}"#;
    pair.step("a new post", 201, |side| with_nonce(side, json("POST", "/wp-json/wp/v2/posts", body)));
    pair.each(|side| assert_eq!(side.last.json()["slug"], "written-in-a-test", "{}", side.page()));
    let ids: Vec<String> = pair.sides.iter().map(|side| side.last.json()["id"].to_string()).collect();
    let id = |side: &Side| ids[usize::from(side.site.is_reference())].clone();
    pair.step("a changed post", 200, |side| {
        let target = format!("/wp-json/wp/v2/posts/{}", id(side));
        with_nonce(side, json("PUT", &target, r#"{"title":"Changed in a test"}"#))
    });
    pair.step("the post's editor", 200, |side| {
        Request::get(&format!("/wp-admin/post.php?post={}&action=edit", id(side)))
    });
    pair.step("an edit without a nonce", 401, |side| {
        json("POST", &format!("/wp-json/wp/v2/posts/{}", id(side)), r#"{"title":"x"}"#)
    });
    pair.step("the new post by its pretty address", 301, |side| Request::get(&format!("/?p={}", id(side))));
    pair.step("following it", 200, |side| {
        let location = side.last.header("location").unwrap_or_default();
        Request::get(location.strip_prefix("http://localhost").unwrap_or(location))
    });
    pair.step("the deleted post", 200, |side| {
        with_nonce(side, Request::new("DELETE", &format!("/wp-json/wp/v2/posts/{}?force=true", id(side))))
    });
}

fn upload(pair: &mut Pair) {
    let picture = std::fs::read(packaged(PICTURE)).unwrap();
    pair.get("the upload page", 200, "/wp-admin/media-new.php");
    pair.step("an upload", 200, |side| {
        let nonce = find(&side.page(), r#""_wpnonce":"([0-9a-f]{10})""#);
        let field = |name, content| Part { name, file: None, content };
        let parts = [
            field("name", b"picture.png".as_slice()),
            field("action", b"upload-attachment"),
            field("_wpnonce", nonce.as_bytes()),
            Part { name: "async-upload", file: Some(("picture.png", "image/png")), content: &picture },
        ];
        multipart("/wp-admin/async-upload.php", &parts)
    });
    pair.each(|side| assert_eq!(side.last.json()["success"], true, "{}", side.page()));
    let sizes = pair.sides[1].last.json()["data"]["sizes"].clone();
    let sizes = sizes.as_object().expect("no smaller pictures were created");
    assert!(sizes.contains_key("thumbnail") && sizes.contains_key("full"), "{sizes:?}");
    for (name, size) in sizes {
        let url = size["url"].as_str().unwrap().strip_prefix("http://localhost").unwrap().to_owned();
        pair.get(&format!("the picture as {name}"), 200, &url);
        if name == "full" {
            pair.each(|side| assert_eq!(side.last.body, picture));
        }
    }
    pair.get("the media library", 200, "/wp-admin/upload.php?mode=list");
}

fn log_out(pair: &mut Pair) {
    pair.get("the dashboard at the end", 200, "/wp-admin/");
    pair.step("the logout", 302, |side| {
        let target = find(&side.page(), r#"href=["']http://localhost(/wp-login\.php\?action=logout[^"']*)["']"#);
        Request::get(&target.replace("&amp;", "&").replace("&#038;", "&"))
    });
    pair.get("the dashboard, logged out", 302, "/wp-admin/");
    pair.get("the front page, renamed", 200, "/");
    pair.each(|side| assert!(side.page().contains("Renamed"), "{}", side.page()));
}

pub(crate) fn setup() -> Setup {
    Setup::default()
        .workers(4)
        // WordPress 6.1 itself logs these, about blocked requests to the outside and two undefined variables.
        .allow_log("PHP Warning")
        .ini("sendmail_path", "/bin/true")
        .ini("upload_max_filesize", "8M")
        .ini("memory_limit", "256M")
}

/// WordPress on both, each with its own database.
pub(crate) fn installed(mode: Mode, setup: &Setup, database: &Database) -> Pair {
    let mut pair = Pair::start(mode, setup, rules());
    pair.each(|side| {
        install_files(side, database);
        database.run(&format!("CREATE DATABASE {}", database_name(side)));
    });
    install(&mut pair);
    // From here on both databases have the same rows, including generated times and hashes.
    database.copy("howdah", "reference");
    pair
}

/// A complete visit to both servers.
pub(crate) fn visit(pair: &mut Pair) {
    read_as_a_stranger(pair);
    log_in(pair);
    administer(pair);
    write_a_post(pair);
    upload(pair);
    log_out(pair);
}

#[test]
fn wordpress_is_the_same_under_howdah() {
    let database = Database::start();
    let mut pair = installed(Mode::Classic, &setup(), &database);
    visit(&mut pair);
    pair.finish();
}

#[test]
fn wordpress_is_the_same_in_a_sandbox() {
    let database = Database::start();
    let setup = setup().setting("sandbox", "\"app\"").allow_log("Access to the script is denied");
    let mut pair = installed(Mode::Classic, &setup, &database);
    // WordPress detects that it cannot modify its own code, and would ask for another method.
    pair.each(|side| {
        let file = side.site.file("wp-config.php");
        let text = std::fs::read_to_string(&file).unwrap();
        write(
            &file,
            &text.replace("<?php", "<?php define('DISALLOW_FILE_MODS', true); define('FS_METHOD', 'direct');"),
        );
    });
    // The files were installed after the server's start; now WordPress is detected, and its directory for uploads is
    // created.
    pair.reload();
    visit(&mut pair);
    web_shell(&pair);
    pair.finish();
}

/// A file that an attacker got into the uploads past all of WordPress's checks.
fn web_shell(pair: &Pair) {
    let site = &pair.sides[0].site;
    let uploads = site.file("wp-content/uploads");
    write(&uploads.join("shell.php"), "<?php eval(file_get_contents('php://input'));");
    let answer = site.send(&Request::post("/wp-content/uploads/shell.php", "text/plain", "echo 'it runs';"));
    assert_eq!(answer.status, 403, "{}", answer.text());
    // And one that a plugin already contained.
    write(&site.file("wp-content/plugins/shell.php"), "<?php eval(file_get_contents('php://input'));");
    let root = site.place().root.display().to_string();
    let attempts = php!("wordpress/web_shell.php", PORT = site.port(), ROOT = root);
    let seen = site.send(&Request::post("/wp-content/plugins/shell.php", "text/plain", attempts)).expect(200).text();
    assert_eq!(seen, "[false,false,false,false,false,false,1]");
}
