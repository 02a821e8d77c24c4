//! Snapshot mode and real database servers: plain connections opened at boot serve thousands of requests, closed ones
//! cause the worker to be replaced, encrypted ones are refused by name, whichever library made them.

use super::boot::booted;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::servers::Server;
use howdah_tests::{Mode, Request, Setup, Site, php, run};

/// Number of uses of each connection.
const TIMES: usize = 10_000;

/// `open` creates `$db` at boot; `ask` is an expression of a request; `close` has the server close the connection.
struct Client {
    open: String,
    ask: &'static str,
    close: &'static str,
}

fn script(setup: Setup, path: &str, code: &str) -> Setup {
    setup.file(path, format!("<?php\n{code}\n"))
}

fn pid(site: &Site) -> String {
    site.get_ok("/pid.php")
}

/// Ten thousand requests on one connection; then the server closes it, and the next request has another one.
fn a_connection_lasts_and_may_end(client: &Client) {
    run(
        Mode::Snapshot,
        |s| {
            // The server may close the connection after the next request has begun, which then fails.
            let late = ["worker died", "worker_died", "PHP Fatal error:  Uncaught", "PHP Warning:", "PHP Notice:"];
            let s = booted(late.into_iter().fold(s, Setup::allow_log), &client.open);
            let s = script(s, "ask.php", &format!("echo {};", client.ask));
            let s = script(s, "close.php", &format!("echo 'closing '; {};", client.close));
            script(s, "pid.php", "echo getmypid();")
        },
        |site| {
            let first = pid(site);
            let mut conn = site.conn();
            let connection = conn.exchange(&Request::get("/ask.php")).expect(200).text();
            assert!(!connection.is_empty());
            for n in 0..TIMES {
                let answer = conn.exchange(&Request::get("/ask.php")).expect(200).text();
                assert_eq!(answer, connection, "request {n}");
            }
            assert_eq!(pid(site), first, "the worker was replaced");
            drop(conn);
            // The response may be an error: the script is disconnected from its database.
            let _ = site.get("/close.php");
            let replaced = eventually(PATIENCE, || {
                let answer = site.get("/ask.php");
                answer.status == 200 && !answer.text().is_empty() && answer.text() != connection
            });
            assert!(replaced, "no new connection; log:\n{}", site.log());
            assert_ne!(pid(site), first);
            let _ = site.wait_for_log(&["worker replaced", "opened at boot"]);
        },
    );
}

#[test]
fn mysqli() {
    let server = Server::mariadb();
    a_connection_lasts_and_may_end(&Client {
        open: format!(
            "mysqli_report(MYSQLI_REPORT_OFF); $db = new mysqli('127.0.0.1', 'tester', '', '', {});",
            server.port
        ),
        ask: "$db->query('SELECT CONNECTION_ID()')->fetch_row()[0]",
        close: "@$db->query('KILL CONNECTION_ID()')",
    });
}

#[test]
fn pdo_mysql() {
    let server = Server::mariadb();
    a_connection_lasts_and_may_end(&Client {
        open: php!("servers/pdo_mysql.php", PORT = server.port),
        // A statement prepared on the server is closed with the request that created it.
        ask: "(static function ($db) { $s = $db->prepare('SELECT CONNECTION_ID() + ?'); $s->execute([0]); return $s->fetchColumn(); })($db)",
        close: "@$db->query('KILL CONNECTION_ID()')",
    });
}

#[test]
fn pgsql() {
    let server = Server::postgres();
    a_connection_lasts_and_may_end(&Client {
        open: format!(
            "$db = pg_connect('host=127.0.0.1 port={} user=tester dbname=postgres sslmode=disable');",
            server.port
        ),
        ask: "pg_fetch_result(pg_query($db, 'SELECT pg_backend_pid()'), 0)",
        close: "@pg_query($db, 'SELECT pg_terminate_backend(pg_backend_pid())')",
    });
}

#[test]
fn pdo_pgsql() {
    let server = Server::postgres();
    a_connection_lasts_and_may_end(&Client {
        open: php!("servers/pdo_pgsql.php", PORT = server.port),
        ask: "(static function ($db) { $s = $db->prepare('SELECT pg_backend_pid() + ?::int'); $s->execute([0]); return $s->fetchColumn(); })($db)",
        close: "@$db->query('SELECT pg_terminate_backend(pg_backend_pid())')",
    });
}

#[test]
fn phpredis() {
    let server = Server::redis(false);
    a_connection_lasts_and_may_end(&Client {
        open: format!("$db = new Redis; $db->connect('127.0.0.1', {}); $db->set('n', 0);", server.port),
        ask: "$db->rawCommand('CLIENT', 'ID')",
        close: php!("servers/phpredis.php"),
    });
}

/// The worker reports the connection that prevents a snapshot, and does not serve.
fn refused(open: &str, peer: &str) {
    run(
        Mode::Snapshot,
        |s| {
            booted(s, open)
                .expect_boot_failure()
                .expect_log("encrypted")
                .expect_log("open it in each request instead")
                .expect_log("ended before it was ready")
        },
        |site| {
            let _ = site.wait_for_log(&["snapshot: the encrypted", peer, "open it in each request instead"]);
            let _ = site.wait_for_log(&["ended before it was ready"]);
        },
    );
}

#[test]
fn an_encrypted_mysqli_connection_is_refused() {
    let server = Server::mariadb();
    let peer = format!("127.0.0.1:{}", server.port);
    refused(&php!("servers/an_encrypted_mysqli_connection_is_refused.php", PORT = server.port), &peer);
}

#[test]
fn an_encrypted_pgsql_connection_is_refused() {
    let server = Server::postgres();
    let peer = format!("127.0.0.1:{}", server.port);
    refused(
        &format!(
            "$db = pg_connect('host=127.0.0.1 port={} user=tester dbname=postgres sslmode=require');",
            server.port
        ),
        &peer,
    );
}

#[test]
fn an_encrypted_redis_connection_is_refused() {
    let server = Server::redis(true);
    let peer = server.port.to_string();
    refused(&php!("servers/an_encrypted_redis_connection_is_refused.php", PORT = server.port), &peer);
}

/// The handle connects without a request, so any server with TLS suffices.
#[test]
fn an_encrypted_connection_of_a_curl_handle_is_refused() {
    let server = Server::redis(true);
    let peer = format!("127.0.0.1:{}", server.port);
    refused(&php!("servers/an_encrypted_connection_of_a_curl_handle_is_refused.php", PORT = server.port), &peer);
}

/// A connection that the boot has closed again does not matter.
#[test]
fn a_closed_encrypted_connection_does_not_prevent_a_snapshot() {
    let server = Server::postgres();
    run(
        Mode::Snapshot,
        |s| {
            let open =
                php!("servers/a_closed_encrypted_connection_does_not_prevent_a_snapshot.php", PORT = server.port);
            script(booted(s, &open), "ask.php", "echo pg_fetch_result(pg_query($reopen(), 'SELECT 1'), 0), getmypid();")
        },
        |site| {
            let first = site.get_ok("/ask.php");
            assert!(first.starts_with('1'), "{first}");
            for _ in 0..100 {
                assert_eq!(site.get_ok("/ask.php"), first);
            }
        },
    );
}
