//! Async mode and databases: stock drivers whose queries wait concurrently; each response must reach the request that
//! sent the query.

use howdah_tests::at_once::{
    CROWD, at_once, crowd_of, every_client_sees, every_client_sees_with, marker, meeting, only_own,
};
use howdah_tests::servers::Server;
use howdah_tests::{Mode, Request, Setup, php, run};

/// `$db` is a new connection to a private MariaDB. The named lock `gate` lets requests meet inside of the server: a
/// `SLEEP` that runs while all others do proves that the queries run concurrently.
fn on_mariadb(script: &str, expected: &str) {
    on_mariadb_with(|setup| setup, script, expected);
}

/// As `on_mariadb`, with additional setup.
fn on_mariadb_with(setup: impl Fn(Setup) -> Setup, script: &str, expected: &str) {
    let server = Server::mariadb();
    let connect = php!("databases/on_mariadb_with.php", PORT = server.port);
    every_client_sees_with(setup, &format!("{connect} {script}"), expected);
}

#[test]
fn pdo_queries_of_all_run_at_once() {
    on_mariadb(
        // Each query waits for a lock that its request releases once all of them have been seen waiting.
        &php!("databases/pdo_queries_of_all_run_at_once.php", CROWD = CROWD),
        "all 1@",
    );
}

#[test]
fn prepared_unbuffered_and_multiple_results_reach_their_request() {
    on_mariadb(
        php!("databases/prepared_unbuffered_and_multiple_results_reach_their_request.php"),
        "@ @1,@2,@3 300000 @ @-2",
    );
}

#[test]
fn transactions_and_user_variables_stay_with_their_connection() {
    on_mariadb(php!("databases/transactions_and_user_variables_stay_with_their_connection.php"), "@@0");
}

#[test]
fn local_infile_and_errors_of_the_server_reach_their_request() {
    on_mariadb(
        php!("databases/local_infile_and_errors_of_the_server_reach_their_request.php"),
        "@ 2000 42S02 gone 2002",
    );
}

#[test]
fn mysqli_queries_reach_their_request() {
    on_mariadb(php!("databases/mysqli_queries_reach_their_request.php"), "@ @ 0 two@ @ 1054");
}

#[test]
fn results_of_many_short_queries_reach_their_request() {
    // Each request opens a connection for each of many short queries, interleaved with all others.
    on_mariadb(php!("databases/results_of_many_short_queries_reach_their_request.php"), "0@");
}

fn on_redis(script: &str, expected: &str) {
    let server = Server::redis(false);
    let connect = format!("$r = new Redis; $r->connect('127.0.0.1', {0}); $port = {0};", server.port);
    every_client_sees(&format!("{connect} {script}"), expected);
}

#[test]
fn redis_blocking_pops_wait_for_a_push_of_another_request() {
    on_redis(
        // Each request pops from its own list, and pushes for the next one only when all wait.
        &php!("databases/redis_blocking_pops_wait_for_a_push_of_another_request.php", CROWD = CROWD),
        "@",
    );
}

#[test]
fn redis_pipelines_transactions_and_subscriptions_reach_their_request() {
    on_redis(php!("databases/redis_pipelines_transactions_and_subscriptions_reach_their_request.php"), "100ok12@end");
}

#[test]
fn redis_failures_and_read_timeouts_are_reported() {
    on_redis(php!("databases/redis_failures_and_read_timeouts_are_reported.php"), "timed out Connection refused @");
}

#[test]
fn postgresql_queries_reach_their_request() {
    let server = Server::postgres();
    every_client_sees(&php!("databases/postgresql_queries_reach_their_request.php", PORT = server.port), "@2@ c@ 7");
}

#[test]
fn one_connection_in_two_coroutines_is_an_error_and_stays_its_owners() {
    on_mariadb_with(
        |s| s.expect_log("is using this PDO"),
        // The first query waits for a lock, so that it still runs while the second one is tried.
        php!("databases/one_connection_in_two_coroutines_is_an_error_and_stays_its_owners.php"),
        "refused @@",
    );
}

#[test]
fn tls_to_a_database_encrypts_and_verifies() {
    // The certificate is self-signed: with verification the handshake fails, without it the connection is encrypted.
    on_mariadb(php!("databases/tls_to_a_database_encrypts_and_verifies.php"), "refused encrypted @");
}

#[test]
fn results_of_mixed_work_reach_their_request() {
    let (sql, redis) = (Server::mariadb(), Server::redis(false));
    let script = php!("databases/results_of_mixed_work_reach_their_request.php", SQL = sql.port, REDIS = redis.port);
    run(
        Mode::Async,
        |s| crowd_of(s, CROWD).php("one.php", &meeting(&script)),
        |site| {
            for _ in 0..5 {
                for (number, answer) in
                    at_once(site, 40, |_, mark| Request::get(&format!("/one.php?m={mark}"))).iter().enumerate()
                {
                    only_own(answer, number);
                    assert_eq!((answer.status, answer.text()), (200, marker(number)));
                }
            }
        },
    );
}
