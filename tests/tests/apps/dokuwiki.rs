//! DokuWiki: reading, login, editing, media with scaled images, administration. It needs no database; links contain the
//! page's name in `PATH_INFO`.

use crate::browser::{encode, find, form};
use crate::files::{copy_tree, make_directory, packaged, write};
use crate::growth;
use crate::normal::Rules;
use crate::pair::{Pair, Side};
use howdah_tests::{Mode, Part, Request, Setup, multipart};

/// The picture to upload: a real one, from a package of WordPress.
const PICTURE: &str = "usr/share/wordpress/wp-content/themes/twentytwentythree/screenshot.png";

const CONFIGURATION: &str = include_str!("php/dokuwiki/configuration.php");

/// Installs a wiki with one administrator, whose password is `secret`. Configuration and pages lie outside of the
/// document root, not reachable over the web, as in Debian's own layout.
pub(crate) fn install(side: &mut Side) {
    let place = side.site.place();
    let (conf, data) = (place.top.join("conf"), place.top.join("data"));
    copy_tree(&packaged("usr/share/dokuwiki"), &place.root);
    copy_tree(&packaged("etc/dokuwiki"), &conf);
    for name in "attic cache index locks log media media_attic media_meta meta pages tmp".split(' ') {
        make_directory(&data.join(name));
    }
    // The file that DokuWiki leaves to the administrator.
    let preload = format!("<?php define('DOKU_CONF', '{}/');\n", conf.display());
    write(&place.root.join("inc/preload.php"), &preload);
    write(&conf.join("local.php"), &CONFIGURATION.replace("@DATA@", &data.display().to_string()));
    write(&conf.join("acl.auth.php"), "# <?php exit()?>\n* @ALL 1\n* @user 16\n");
    let user = "ada:5ebe2294ecd0e0f08eab7690d2a6ee69:Ada:ada@example.org:admin,user\n";
    write(&conf.join("users.auth.php"), &format!("# <?php exit()?>\n{user}"));
    write(
        &data.join("pages/start.txt"),
        "====== Welcome ======\n\nA page, with [[wiki:link]] and **bold** words.\n\n<code php>\necho 1;\n</code>\n",
    );
    write(&data.join("pages/long.txt"), &"===== Part =====\n\nSome text. ÄÖÜ €.\n\n  code\n\n".repeat(400));
}

pub(crate) fn rules() -> Rules {
    Rules::new(&[
        // The cookie's name contains a hash of the port.
        (r"\bDW[0-9a-f]{32}", "<login>"),
        (r"(DokuWiki|<login>)=[A-Za-z0-9,%+-]+", "$1=<value>"),
        // Security tokens, cache keys, a hash of the configuration's time.
        (r"\b[0-9a-f]{32}\b", "<hash>"),
        (r"\btok=[0-9a-f]{6}\b", "tok=<tok>"),
        (r"\b\d+ (second|minute)s? ago", "<date>"),
    ])
}

fn posted_form(side: &Side, target: &str, marker: &str, changes: &[(&str, &str)]) -> Request {
    Request::form(target, &encode(&form(&side.page(), marker, changes)))
}

fn read_as_a_stranger(pair: &mut Pair) {
    pair.get("the root", 302, "/");
    pair.get("the start page", 200, "/doku.php");
    pair.load_assets("the start page loads", 20);
    pair.get("a page by PATH_INFO", 200, "/doku.php/start");
    pair.get("a long page", 200, "/doku.php/long");
    pair.step("a long page, compressed", 200, |_| Request::get("/doku.php/long").header("Accept-Encoding", "gzip"));
    pair.get("a page that does not exist", 200, "/doku.php/wiki:link");
    pair.get("the source of a page", 200, "/doku.php/long?do=export_raw");
    pair.get("a search", 200, "/doku.php/start?do=search&q=words");
    pair.get("the list of changes", 200, "/doku.php/start?do=recent");
    pair.get("the feed", 200, "/feed.php");
    pair.get("the indexer's picture", 200, "/lib/exe/taskrunner.php?id=start");
    pair.get("an administrator's page for strangers", 200, "/doku.php/start?do=admin");
    pair.get("a file that does not exist, so the front controller", 302, "/lib/none.css");
    pair.step("the head of a page", 200, |_| Request::new("HEAD", "/doku.php/start"));
    pair.get("the remote interface, switched off", 200, "/lib/exe/xmlrpc.php");
}

pub(crate) fn log_in(pair: &mut Pair) {
    pair.get("the login page", 200, "/doku.php/start?do=login");
    pair.step("a wrong password", 403, |side| {
        posted_form(side, "/doku.php/start?do=login", "dw__login", &[("u", "ada"), ("p", "wrong")])
    });
    pair.step("the login", 302, |side| {
        posted_form(side, "/doku.php/start?do=login", "dw__login", &[("u", "ada"), ("p", "secret")])
    });
    pair.each(|side| assert!(side.browser.cookie_names().iter().any(|n| n.starts_with("DW")), "no login cookie"));
    pair.get("the start page, logged in", 200, "/doku.php/start");
}

fn edit(pair: &mut Pair) {
    pair.get("the editor", 200, "/doku.php/start?do=edit");
    pair.step("a preview", 200, |side| {
        posted_form(side, "/doku.php", "dw__editform", &[("wikitext", "//slanted//"), ("do[preview]", "1")])
    });
    let text = "====== Changed ======\n\nA [[new]] text: äöü € & <b>\n\n{{picture.png?200}}\n";
    pair.step("saving", 302, |side| {
        let changes = [("wikitext", text), ("summary", "a test"), ("do[save]", "1")];
        posted_form(side, "/doku.php", "dw__editform", &changes)
    });
    pair.get("the changed page", 200, "/doku.php/start");
    pair.each(|side| assert!(side.page().contains("Changed"), "{}", side.page()));
    pair.get("old revisions", 200, "/doku.php/start?do=revisions");
    pair.get("differences", 200, "/doku.php/start?do=diff");
    pair.get("the indexer's picture again", 200, "/lib/exe/taskrunner.php?id=start");
    pair.step("a call of the script", 200, |_| Request::form("/lib/exe/ajax.php", "call=linkwiz&q=start"));
}

fn upload(pair: &mut Pair) {
    let picture = std::fs::read(packaged(PICTURE)).unwrap();
    pair.get("the media manager", 200, "/lib/exe/mediamanager.php?ns=");
    let send = |side: &Side, name: &str, content: &[u8], kind: &str| {
        let fields = form(&side.page(), "dw__upload", &[("mediaid", name)]);
        let mut parts: Vec<Part<'_>> =
            fields.iter().map(|(n, v)| Part { name: n, file: None, content: v.as_bytes() }).collect();
        parts.push(Part { name: "upload", file: Some((name, kind)), content });
        multipart("/lib/exe/mediamanager.php", &parts)
    };
    pair.step("an upload", 200, |side| send(side, "picture.png", &picture, "image/png"));
    pair.each(|side| assert_eq!(std::fs::read(side.site.place().top.join("data/media/picture.png")).unwrap(), picture));
    pair.step("a script as picture", 200, |side| send(side, "evil.png", b"<?php echo 1; <html>", "image/png"));
    pair.get("the picture", 200, "/lib/exe/fetch.php/picture.png");
    pair.each(|side| assert_eq!(side.last.body, picture));
    pair.step("a part of the picture", 206, |_| {
        Request::get("/lib/exe/fetch.php/picture.png").header("Range", "bytes=100-299")
    });
    pair.step("the picture's head", 200, |_| Request::new("HEAD", "/lib/exe/fetch.php/picture.png"));
    // DokuWiki's cache of the page lacks the picture. It compares times in whole seconds, so the cache is outdated only
    // if the page was saved and shown in the same second, which may differ between the two sides.
    pair.get("the page with the picture", 200, "/doku.php/start?purge=true");
    pair.step("the scaled picture", 200, |side| {
        let target = find(&side.page(), r#"src="(/lib/exe/fetch\.php/picture\.png\?[^"]*)""#);
        Request::get(&target.replace("&amp;", "&"))
    });
    pair.each(|side| assert!(side.last.body.len() < picture.len() && side.last.body.starts_with(b"\x89PNG")));
    pair.get("the picture's page", 200, "/lib/exe/detail.php/picture.png?id=start");
}

fn administer(pair: &mut Pair) {
    pair.get("the administrator's page", 200, "/doku.php/start?do=admin");
    pair.get("the settings", 200, "/doku.php/start?do=admin&page=config");
    pair.step("new settings", 302, |side| {
        posted_form(side, "/doku.php/start?do=admin&page=config", "dw__configform", &[("config[tagline]", "new words")])
    });
    pair.get("a page with the new settings", 200, "/doku.php/start");
    pair.each(|side| assert!(side.page().contains("new words"), "{}", side.page()));
    let extensions = "/doku.php/start?do=admin&page=extension&tab=plugins";
    for (what, button) in [("off", "fn[disable][popularity]"), ("on", "fn[enable][popularity]")] {
        pair.get("the extensions", 200, extensions);
        pair.step(&format!("a plugin switched {what}"), 302, |side| {
            posted_form(side, extensions, "extension__list", &[(button, "x")])
        });
        pair.get(&format!("the administrator's page, a plugin switched {what}"), 200, "/doku.php/start?do=admin");
        pair.shows("page=popularity", what == "on");
    }
    pair.get("the users", 200, "/doku.php/start?do=admin&page=usermanager");
    pair.get("the access rules", 200, "/doku.php/start?do=admin&page=acl");
    pair.step("the logout", 302, |side| {
        let token = find(&side.page(), r"do=logout&(?:amp;)?sectok=([0-9a-f]*)");
        Request::get(&format!("/doku.php/start?do=logout&sectok={token}"))
    });
    pair.get("the start page, logged out", 200, "/doku.php/start");
    pair.get("the editor for strangers", 200, "/doku.php/start?do=edit");
}

/// A complete visit to both servers.
fn visit(pair: &mut Pair) {
    read_as_a_stranger(pair);
    log_in(pair);
    edit(pair);
    upload(pair);
    administer(pair);
}

/// Settings take effect with the next request: OPcache checks each file for changes.
pub(crate) fn setup() -> Setup {
    Setup::default().allow_log("PHP Warning").ini("opcache.revalidate_freq", "0")
}

#[test]
fn dokuwiki_is_the_same_under_howdah() {
    let mut pair = Pair::start(Mode::Classic, &setup().workers(4), rules());
    pair.each(install);
    visit(&mut pair);
    pair.finish();
}

/// Before the wiki is installed, the boot does nothing; afterwards it is the recipe's.
const BOOT: &str = include_str!("php/dokuwiki/boot.php");

#[test]
fn dokuwiki_is_the_same_in_snapshot_mode() {
    let setup = setup()
        .workers(2)
        .file("../boot.php", BOOT)
        .file("../dokuwiki-boot.php", include_str!("../../../examples/snapshot/dokuwiki-boot.php"))
        .boot("../boot.php");
    let mut pair = Pair::start(Mode::Snapshot, &setup, rules());
    pair.each(install);
    pair.reload();
    visit(&mut pair);
    let pages = ["/doku.php/start", "/doku.php/start?do=recent"];
    growth::assert_none(&pair.sides[0].site, &pages, |page| pair.fresh_page(page));
    pair.finish();
}
