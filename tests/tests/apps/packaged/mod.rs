//! The applications of Debian's packages, each with its preset under one Howdah, compared with Apache and the packages'
//! own configuration: the pages must be equal, and whatever Apache refuses must be refused. `scripts/with-packaged.sh`
//! has installed them.

mod apache;
mod apps;
mod compare;
mod files;
mod refusals;
mod visits;

use crate::normal::Rules;
use apache::Apache;
use apps::APPS;
pub(crate) use apps::mediawiki_rules;
use compare::ServerPair;
use howdah_tests::servers::Server;
use howdah_tests::{Mode, Setup, Site};
use regex_lite::Regex;
use std::path::Path;
use std::process::Command;

/// All running servers; Howdah is dropped first.
struct Servers {
    site: Site,
    apache: Apache,
    _database: Server,
}

impl Servers {
    fn start() -> Self {
        assert!(Path::new("/etc/phpmyadmin/apache.conf").exists(), "no applications here: run `make test-apps`");
        let database = Server::mariadb();
        database.run("CREATE USER app@'127.0.0.1' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO app@'127.0.0.1'");
        let port = howdah_tests::site::free_port();
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apps/packaged");
        let installed = Command::new(here.join("install.sh"))
            .args([database.port.to_string(), port.to_string()])
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .output()
            .unwrap();
        assert!(installed.status.success(), "install.sh: {}", String::from_utf8_lossy(&installed.stderr));
        let apache = Apache::start(port);
        let site = Site::start(Mode::Classic, &howdah());
        Self { site, apache, _database: database }
    }
}

/// One server: all applications below a path of the site `localhost`, and each again as a separate site.
fn howdah() -> Setup {
    let mut paths = String::from("hosts = \"localhost\"\nroot = \"../../root\"\nfront_controller = \"\"\n");
    for app in APPS.iter().filter(|app| app.is_packaged()) {
        let (path, root, preset) = (app.path, app.root, app.preset);
        let pool = if preset == "phpmyadmin" { "pool = \"phpmyadmin\"\n" } else { "" };
        paths += &format!(
            "[[rule]]\npath = [\"{path}\", \"{path}/*\"]\nalias = \"{root}\"\napp = \"{preset}\"\n{pool}{}\n",
            app.settings
        );
    }
    let mut setup = Setup::default()
        .workers(4)
        .more_processes(3)
        .allow_log("PHP Warning")
        .allow_log("PHP Notice")
        // As packaged, its cookies require HTTPS; its page for unknown paths logs this.
        .allow_log("Setting secure cookie on plain HTTP")
        .allow_log("no site has this host")
        // Settings from the package's Apache configuration for the directory.
        .setting("pool.phpmyadmin.workers", "2")
        .setting("pool.phpmyadmin.admin_ini.upload_tmp_dir", "\"/var/lib/phpmyadmin/tmp\"")
        .setting(
            "pool.phpmyadmin.admin_ini.open_basedir",
            "\"/usr/share/phpmyadmin/:/usr/share/doc/phpmyadmin/:/etc/phpmyadmin/:/var/lib/phpmyadmin/:/usr/share/php/:/usr/share/javascript/\"",
        )
        .file("../run/conf.d/00-paths.toml", paths);
    for app in APPS.iter().filter(|app| app.is_packaged()) {
        let (name, root, preset) = (app.name, app.root, app.preset);
        let text = format!("hosts = \"{name}.test\"\nroot = \"{root}\"\napp = \"{preset}\"\n");
        setup = setup.file(&format!("../run/conf.d/{name}.toml"), text);
    }
    setup
}

/// Differences that are not on the application's list; each entry of that list must occur.
fn unknown(app: &apps::App, found: Vec<String>) -> Vec<String> {
    let known: Vec<(Regex, &str)> = app
        .differs
        .iter()
        .map(|(pattern, why)| (Regex::new(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}")), *why))
        .collect();
    let gone = known.iter().filter(|(pattern, _)| !found.iter().any(|what| pattern.is_match(what)));
    let mut new: Vec<String> =
        gone.map(|(pattern, why)| format!("no difference any more: {pattern} ({why})")).collect();
    new.extend(found.into_iter().filter(|what| !known.iter().any(|(pattern, _)| pattern.is_match(what))));
    new.into_iter().map(|what| format!("{}: {what}", app.name)).collect()
}

/// Removes files that applications leave in the temporary directory for later requests: compiled assets of Icinga Web
/// 2, and the state of id generators of MediaWiki 1.43 and later.
fn remove_files_that_applications_keep(tmp: &Path) {
    let _ = std::fs::remove_dir_all(tmp.join("FileCache_icingaweb"));
    for entry in std::fs::read_dir(tmp).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("mw-GlobalIdGenerator") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// One test for all applications, because they share the servers and their state.
#[test]
fn packaged_applications_are_the_same_under_howdah() {
    let world = Servers::start();
    let only = std::env::var("HOWDAH_APP").unwrap_or_default();
    let mut differences = Vec::new();
    for app in APPS.iter().filter(|app| app.name.contains(&only)) {
        if !app.is_packaged() {
            howdah_skip::record(app.name, "this Debian does not package it");
            continue;
        }
        let began = std::time::Instant::now();
        let refused = refusals::compare(&world, app);
        let mut both = ServerPair::new(&world, Rules::new(app.rules));
        (app.visit)(&mut both);
        println!("{}: {}, {} pages, {:.1} s", app.name, refused.summary, both.steps, began.elapsed().as_secs_f32());
        let found: Vec<String> = refused.differences.into_iter().chain(both.differences).collect();
        let new = unknown(app, found);
        println!("{}", new.join("\n"));
        differences.extend(new);
    }
    let Servers { site, apache, _database } = world;
    drop(apache);
    if differences.is_empty() {
        remove_files_that_applications_keep(&site.place().tmp);
        site.finish();
    } else {
        println!("{}", site.log().lines().rev().take(30).collect::<Vec<_>>().join("\n"));
        site.abandon();
        panic!("{} differences", differences.len());
    }
}
