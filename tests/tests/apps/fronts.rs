//! DokuWiki, WordPress and MediaWiki behind Apache, Caddy, HAProxy and lighttpd over FastCGI, compared with the same web
//! server in front of PHP-FPM. `HOWDAH_TEST_FASTCGI=1` runs their own tests behind nginx.

use crate::browser::{encode, form};
use crate::database::Database;
use crate::dokuwiki;
use crate::files::{copy_tree, make_directory, packaged, write};
use crate::normal::Rules;
use crate::packaged::mediawiki_rules;
use crate::pair::{Pair, Side};
use crate::wordpress;
use howdah_tests::fronts::{CADDY, Front, unpacked};
use howdah_tests::{Mode, Request, Setup};
use std::path::Path;
use std::process::Command;

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

/// Six workers and a FastCGI socket: HAProxy's open connections occupy PHP-FPM's processes.
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

/// Installs MediaWiki with SQLite, by its own installer.
fn install_mediawiki(side: &mut Side) {
    let (root, top) = (side.site.place().root.clone(), side.site.place().top.clone());
    copy_tree(&packaged("usr/share/mediawiki"), &root);
    for directory in [root.join("images"), top.join("data"), top.join("cache")] {
        make_directory(&directory);
    }
    let mut command = Command::new("php");
    command.arg(root.join("maintenance/install.php")).args(["--dbtype", "sqlite", "--dbname", "wiki", "--dbpath"]);
    command.arg(top.join("data")).args(["--server", "http://localhost", "--scriptpath", "", "--pass", "a long secret"]);
    let output = command.args(["Wiki", "Ada"]).output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{said:?}");
    let settings = root.join("LocalSettings.php");
    let more = MEDIAWIKI.replace("@CACHE@", &top.join("cache").display().to_string());
    write(&settings, &(std::fs::read_to_string(&settings).unwrap() + more.trim_start_matches("<?php")));
}

/// Both wikis have the same keys, and a request starts no jobs.
const MEDIAWIKI: &str = include_str!("php/mediawiki/settings.php");

#[test]
fn mediawiki_is_the_same_behind_every_web_server() {
    let setup = behind(Setup::default()).allow_log("PHP Warning").allow_log("PHP Notice");
    let mut pair = Pair::start(
        Mode::Classic,
        &setup,
        Rules::new(mediawiki_rules![(r"\bwiki_session=[a-z0-9]{32}", "wiki_session=<id>")]),
    );
    pair.each(install_mediawiki);
    for (name, front) in fronts() {
        pair.behind(front);
        pair.get(&format!("{name}: the main page"), 200, "/index.php?title=Main_Page");
        pair.get(&format!("{name}: a page by PATH_INFO"), 200, "/index.php/Main_Page");
        pair.get(&format!("{name}: a page that does not exist"), 404, "/index.php/No_such_page");
        pair.get(&format!("{name}: a search"), 200, "/index.php?title=Special:Search&search=Main");
        pair.get(
            &format!("{name}: the interface"),
            200,
            "/api.php?action=query&meta=siteinfo&format=json&siprop=general",
        );
        pair.get(&format!("{name}: REST by PATH_INFO"), 200, "/rest.php/v1/page/Main_Page/bare");
        pair.get(&format!("{name}: modules"), 200, "/load.php?modules=site.styles&only=styles&skin=vector");
        pair.get(&format!("{name}: the login page"), 200, "/index.php?title=Special:UserLogin");
        let fields = [("wpName", "Ada"), ("wpPassword", "a long secret"), ("wploginattempt", "Log in")];
        pair.step(&format!("{name}: the login"), 302, |side| {
            Request::form("/index.php?title=Special:UserLogin", &encode(&form(&side.page(), "userlogin", &fields)))
        });
        pair.get(&format!("{name}: the editor"), 200, "/index.php?title=Main_Page&action=edit");
    }
    pair.finish();
}
