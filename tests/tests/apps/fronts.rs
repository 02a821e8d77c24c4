//! DokuWiki and WordPress behind Apache, Caddy, HAProxy and lighttpd over FastCGI, compared with the same web
//! server in front of PHP-FPM. With nginx in front, `HOWDAH_TEST_FASTCGI=1` runs their own tests.

use crate::browser::{encode, form};
use crate::database::Database;
use crate::dokuwiki;
use crate::pair::Pair;
use crate::wordpress;
use howdah_tests::fronts::{CADDY, Front, unpacked};
use howdah_tests::{Mode, Request, Setup};
use std::path::Path;

type Start = fn(&Path, &Path) -> Front;

/// The web servers, each with its name.
fn fronts() -> Vec<(&'static str, Start)> {
    let mut fronts: Vec<(&str, Start)> =
        vec![("Apache", Front::apache), ("HAProxy", Front::haproxy), ("lighttpd", Front::lighttpd)];
    if unpacked(CADDY).is_some() {
        fronts.push(("Caddy", Front::caddy));
    } else {
        howdah_skip::record("caddy", "scripts/unpack-package.sh unpacks Debian's package");
    }
    fronts
}

/// Howdah with a FastCGI socket only. HAProxy's open connections occupy PHP-FPM's processes.
fn behind(setup: Setup) -> Setup {
    let setup = setup.workers(6).behind_nginx();
    // Apache becomes that user if it starts as root.
    if rustix::process::geteuid().is_root() { setup.setting("listen_group", "\"www-data\"") } else { setup }
}

#[test]
fn dokuwiki_is_the_same_behind_every_web_server() {
    let mut pair = Pair::start(Mode::Classic, &behind(dokuwiki::setup()), dokuwiki::rules());
    pair.each(dokuwiki::install);
    for (name, front) in fronts() {
        pair.behind(front);
        pair.get(&format!("{name}: the start page"), 200, "/doku.php");
        pair.get(&format!("{name}: a page by PATH_INFO"), 200, "/doku.php/long");
        pair.get(&format!("{name}: its source"), 200, "/doku.php/long?do=export_raw");
        pair.get(&format!("{name}: a search"), 200, "/doku.php/start?do=search&q=words");
        pair.get(&format!("{name}: the feed"), 200, "/feed.php");
        pair.step(&format!("{name}: a head"), 200, |_| Request::new("HEAD", "/doku.php/start"));
        dokuwiki::log_in(&mut pair);
    }
    pair.finish();
}

#[test]
fn wordpress_is_the_same_behind_every_web_server() {
    let database = Database::start();
    let mut pair = wordpress::installed(Mode::Classic, &behind(wordpress::setup()), &database);
    for (name, front) in fronts() {
        pair.behind(front);
        pair.get(&format!("{name}: the front page"), 200, "/");
        pair.get(&format!("{name}: a post"), 200, "/?p=1");
        pair.get(&format!("{name}: a post that does not exist"), 404, "/?p=999");
        pair.get(&format!("{name}: the feed"), 200, "/?feed=rss2");
        pair.get(&format!("{name}: the posts by REST"), 200, "/?rest_route=/wp/v2/posts");
        pair.step(&format!("{name}: a remote call"), 200, |_| {
            Request::post("/xmlrpc.php", "text/xml", "<methodCall><methodName>demo.sayHello</methodName></methodCall>")
        });
        pair.get(&format!("{name}: the login page"), 200, "/wp-login.php");
        pair.step(&format!("{name}: the login"), 302, |side| {
            let changes = [("log", "ada"), ("pwd", "correct horse")];
            Request::form("/wp-login.php", &encode(&form(&side.page(), "user_login", &changes)))
        });
        pair.get(&format!("{name}: the list of posts"), 200, "/wp-admin/edit.php");
    }
    pair.finish();
}
