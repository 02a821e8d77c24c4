//! Connections that are open at the snapshot and that each forked worker opens again
//! (`Howdah\connect_each_worker()`): workers share a boot, and none has another's connection.

use super::template::{WORKERS, ask_all, script, serving, template, wait_for_workers};
use howdah_tests::process::{PATIENCE, eventually, signal};
use howdah_tests::servers::Server;
use howdah_tests::{Mode, Setup, Site, php, run};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A kind of connection: the boot that opens it, a request that changes its session, and what each request sees first.
struct Kind {
    boot: String,
    request: &'static str,
    session: Value,
}

fn mysql(server: &Server) -> Kind {
    Kind {
        boot: php!("own_connections/mysql_boot.php", PORT = server.port),
        request: php!("own_connections/mysql_request.php"),
        session: json!(["+05:00", 7]),
    }
}

/// The second value: the driver knows which process of the server it talks to, with which it cancels queries.
fn postgres(boot: String, request: &'static str) -> Kind {
    Kind { boot, request, session: json!([true, "18000", "4MB"]) }
}

/// The client's name, the database, and no transaction.
fn redis(server: &Server) -> Kind {
    Kind {
        boot: php!("own_connections/redis_boot.php", PORT = server.port),
        request: php!("own_connections/redis_request.php"),
        session: json!(["shop", "3", "-1"]),
    }
}

fn connected(setup: Setup, kind: &Kind) -> Setup {
    script(setup, &kind.boot, kind.request)
}

/// Which connection each worker has, by process id; the session must be the boot's in each request.
fn connections(site: &Site, kind: &Kind) -> BTreeMap<u64, u64> {
    let mut seen = BTreeMap::new();
    for answer in ask_all(site) {
        assert_eq!(answer.as_array().unwrap()[4..], kind.session.as_array().unwrap()[..], "{answer}");
        let (worker, connection) = (answer[1].as_u64().unwrap(), answer[3].as_u64().unwrap());
        let first = *seen.entry(worker).or_insert(connection);
        assert_eq!(first, connection, "worker {worker} has kept its connection");
    }
    let different: BTreeSet<u64> = seen.values().copied().collect();
    assert_eq!(different.len(), seen.len(), "{seen:?}");
    seen
}

/// All workers come from one boot, also the one that replaces a killed one.
fn each_worker_has_its_own(kind: &Kind) {
    run(
        Mode::Snapshot,
        |s| connected(s, kind).allow_log("logged once").allow_log("ended before its first request"),
        |site| {
            let first = connections(site, kind);
            assert_eq!((first.len(), site.marks("boots")), (WORKERS, 1), "{}", site.log());
            assert!(template(site).is_some());
            let killed = *first.keys().next().unwrap();
            signal(killed as u32, Signal::KILL);
            assert!(eventually(PATIENCE, || !serving(site).contains(&(killed as u32))));
            let then = connections(site, kind);
            let new: Vec<_> = then.iter().filter(|(worker, _)| !first.contains_key(worker)).collect();
            assert_eq!((new.len(), site.marks("boots")), (1, 1), "the replacement does not boot: {then:?}");
            assert!(first.values().all(|connection| connection != new[0].1));
        },
    );
}

#[test]
fn each_worker_has_its_own_mysql_connection() {
    let server = Server::mariadb();
    each_worker_has_its_own(&mysql(&server));
}

#[test]
fn each_worker_has_its_own_postgresql_connection_by_the_extension() {
    let server = Server::postgres();
    let boot = php!("own_connections/pgsql_boot.php", PORT = server.port);
    each_worker_has_its_own(&postgres(boot, php!("own_connections/pgsql_request.php")));
}

#[test]
fn each_worker_has_its_own_postgresql_connection_by_pdo() {
    let server = Server::postgres();
    let boot = php!("own_connections/pdo_pgsql_boot.php", PORT = server.port);
    each_worker_has_its_own(&postgres(boot, php!("own_connections/pdo_pgsql_request.php")));
}

#[test]
fn each_worker_has_its_own_redis_connection() {
    let server = Server::redis(false);
    each_worker_has_its_own(&redis(&server));
}

/// A connection whose state cannot be restored does not prevent snapshots, but each worker then boots separately.
#[test]
fn a_redis_connection_configured_at_boot_makes_each_worker_boot() {
    let server = Server::redis(false);
    let mut kind = redis(&server);
    kind.boot += "$db->rawCommand('CLIENT', 'SETNAME', 'shop');";
    run(
        Mode::Snapshot,
        |s| connected(s, &kind).allow_log("logged once"),
        |site| {
            assert_eq!(
                (connections(site, &kind).len(), site.marks("boots")),
                (WORKERS, WORKERS as u64),
                "{}",
                site.log()
            );
            assert_eq!(template(site), None);
        },
    );
}

/// The server closes a worker's connection: the worker is replaced, without a boot.
#[test]
fn a_worker_whose_connection_has_ended_is_replaced_by_a_fork() {
    let server = Server::postgres();
    let boot = php!("own_connections/pgsql_boot.php", PORT = server.port);
    let kind = postgres(boot, php!("own_connections/pgsql_request.php"));
    run(
        Mode::Snapshot,
        |s| {
            let logs = ["logged once", "ended before its first request", "worker replaced", "opened at boot"];
            logs.into_iter().fold(connected(s, &kind), Setup::allow_log)
        },
        |site| {
            let first = connections(site, &kind);
            let psql = std::process::Command::new("psql")
                .args(["-h", "127.0.0.1", "-p", &server.port.to_string(), "-U", "tester", "postgres", "-c"])
                .arg(format!("SELECT pg_terminate_backend({})", first.values().next().unwrap()))
                .output()
                .unwrap();
            assert!(psql.status.success(), "{psql:?}");
            let closed = *first.keys().next().unwrap();
            let replaced = eventually(PATIENCE, || {
                let now = connections(site, &kind);
                now.len() >= WORKERS && !serving(site).contains(&(closed as u32))
            });
            assert!(replaced, "{}", site.log());
            assert_eq!(site.marks("boots"), 1);
        },
    );
}

#[test]
fn a_worker_without_its_connection_is_replaced_and_the_boot_kept() {
    let server = Server::mariadb();
    let kind = mysql(&server);
    run(
        Mode::Snapshot,
        |s| {
            let logs = [
                "logged once",
                "ended before its first request",
                "no way to the server",
                "connect_each_worker",
                "does not boot",
            ];
            logs.into_iter().fold(connected(s, &kind), Setup::allow_log)
        },
        |site| {
            let killed = *wait_for_workers(site).first().unwrap();
            std::fs::write(site.file("broken.txt"), "").unwrap();
            signal(killed, Signal::KILL);
            assert!(eventually(PATIENCE, || site.log().contains("no way to the server")), "{}", site.log());
            std::fs::remove_file(site.file("broken.txt")).unwrap();
            assert_eq!((connections(site, &kind).len(), site.marks("boots")), (WORKERS, 1), "{}", site.log());
        },
    );
}

#[test]
fn changed_settings_of_the_database_server_cause_a_new_boot() {
    let server = Server::mariadb();
    let kind = mysql(&server);
    run(
        Mode::Snapshot,
        |s| {
            let logs = ["logged once", "ended before its first request", "settings have changed", "does not boot"];
            logs.into_iter().fold(connected(s, &kind), Setup::allow_log)
        },
        |site| {
            let workers = wait_for_workers(site);
            server.run("SET GLOBAL sql_mode = ''");
            signal(*workers.first().unwrap(), Signal::KILL);
            assert!(eventually(PATIENCE, || site.log().contains("settings have changed")), "{}", site.log());
            // The other workers' sessions cannot be reset any more: they are replaced when a request has changed one.
            assert!(connections(site, &kind).len() >= WORKERS);
            assert_eq!(site.marks("boots"), 2, "{}", site.log());
        },
    );
}
