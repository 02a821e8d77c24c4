//! Release directories: a symbolic link leads to the code, and a deployment moves the link while requests run.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Setup, Site, php, scenario};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const PAGE: &str = php!("releases/page.php");
const WORKER: &str = php!("releases/worker.php");

/// A site whose root is below the link `current`.
fn linked(setup: Setup, links: &str, pool: &str) -> Setup {
    let site =
        format!("hosts = \"app.example\"\nroot = \"../../current/public\"\n{links}\n[pool]\nworkers = 2\n{pool}\n");
    setup
        .more_processes(3)
        .file("../run/conf.d/30-local.toml", "hosts = \"localhost\"\nroot = \"../../root\"\n")
        .file("../run/conf.d/40-app.toml", site)
        .file("../first/public/index.php", format!("<?php\n{PAGE}"))
        .file("../first/public/part.php", "<?php return '1';")
        .file("../first/public/release.txt", "1")
        .file("../first/worker.php", format!("<?php\n{WORKER}"))
        // The harness creates files, but no links.
        .file("../current/public/index.php", "<?php echo 'not a release';")
        .file("../current/worker.php", format!("<?php\n{WORKER}"))
        .allow_log("no site has this host")
}

/// Creates a release and points the link to it, atomically.
fn deploy(top: &Path, number: u64) {
    let release = top.join(format!("releases/{number}"));
    fs::create_dir_all(release.join("public")).unwrap();
    for name in ["public/index.php", "worker.php"] {
        fs::copy(top.join("first").join(name), release.join(name)).unwrap();
    }
    fs::write(release.join("public/part.php"), format!("<?php return '{number}';")).unwrap();
    fs::write(release.join("public/release.txt"), number.to_string()).unwrap();
    let current = top.join("current");
    if current.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        fs::remove_dir_all(&current).unwrap();
    }
    let new = top.join("current.new");
    symlink(&release, &new).unwrap();
    fs::rename(&new, &current).unwrap();
}

fn ask(conn: &mut Conn, path: &str) -> String {
    conn.send(format!("GET {path} HTTP/1.1\r\nHost: app.example\r\n\r\n"));
    conn.response("GET").expect(200).text()
}

fn reload(site: &Site) {
    let output = site.howdah().command(&["reload"]);
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stderr), site.log());
}

/// The release of a page, all of whose parts must be of the same one.
fn of_one_release(page: &str) -> u64 {
    let mut parts = page.split('|');
    let first = parts.next().unwrap();
    assert!(parts.all(|part| part == first), "a page of several releases: {page}");
    first.parse().unwrap()
}

/// Moves the link repeatedly while clients send requests. With `by_reload` the new release takes effect when the reload
/// has returned.
fn releases_under_load(site: &Site, by_reload: bool, path: &str) {
    let top = site.place().top.clone();
    deploy(&top, 1);
    reload(site);
    let (stop, served) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (stop, served) = (&stop, &served);
            scope.spawn(move || {
                let mut conn = site.conn();
                while !stop.load(Ordering::Relaxed) {
                    if client == 3 {
                        ask(&mut conn, "/release.txt").parse::<u64>().unwrap();
                    } else {
                        of_one_release(&ask(&mut conn, path));
                    }
                    served.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let deployments = scope.spawn(|| {
            for number in 2..8 {
                let enough = served.load(Ordering::Relaxed) + 20;
                assert!(eventually(PATIENCE, || served.load(Ordering::Relaxed) >= enough), "no client is served");
                deploy(&top, number);
                if by_reload {
                    // Moving the link alone changes nothing.
                    assert_eq!(of_one_release(&ask(&mut site.conn(), path)), number - 1);
                    assert_eq!(ask(&mut site.conn(), "/release.txt"), (number - 1).to_string());
                    reload(site);
                }
                assert_eq!(of_one_release(&ask(&mut site.conn(), path)), number);
                assert_eq!(ask(&mut site.conn(), "/release.txt"), number.to_string());
            }
        });
        let outcome = deployments.join();
        stop.store(true, Ordering::Relaxed);
        outcome.unwrap();
    });
}

scenario!(
    a_link_that_is_resolved_by_a_reload_changes_files_and_code_together,
    howdah_only = "nginx resolves it for each request",
    |s| linked(s, "root_links = \"reload\"", "mode = \"classic\""),
    |site| releases_under_load(site, true, "/index.php")
);

scenario!(
    workers_change_with_the_link_that_a_reload_resolves,
    howdah_only = "reload is Howdah's command",
    |s| linked(s, "root_links = \"reload\"", "mode = \"worker\"\nscript = \"../../current/worker.php\""),
    |site| releases_under_load(site, true, "/")
);

scenario!(
    a_link_that_is_resolved_for_each_request_needs_no_reload,
    howdah_only = "the harness configures the reference without $realpath_root",
    |s| linked(s, "root_links = \"request\"", "mode = \"classic\""),
    |site| releases_under_load(site, false, "/index.php")
);

scenario!(
    a_request_keeps_the_release_that_it_began_with,
    howdah_only = "the harness configures the reference without $realpath_root",
    |s| linked(s, "root_links = \"request\"", "mode = \"classic\"").file(
        "../first/public/hold.php",
        "<?php require '/'.trim(dirname(__DIR__, 3), '/').'/root/gate.php'; gate('g'); \
         echo file_get_contents($_SERVER['DOCUMENT_ROOT'].'/release.txt');"
    ),
    |site| {
        let top = site.place().top.clone();
        deploy(&top, 1);
        fs::copy(top.join("first/public/hold.php"), top.join("releases/1/public/hold.php")).unwrap();
        reload(site);
        let gate = site.gate("g");
        let mut conn = site.conn();
        conn.send("GET /hold.php HTTP/1.1\r\nHost: app.example\r\n\r\n");
        let held = gate.wait();
        deploy(&top, 2);
        assert_eq!(ask(&mut site.conn(), "/release.txt"), "2");
        held.release();
        assert_eq!(conn.response("GET").expect(200).text(), "1");
        // If the link is dangling, the last release stays.
        fs::remove_file(top.join("current")).unwrap();
        assert_eq!(ask(&mut conn, "/release.txt"), "2");
    },
);
