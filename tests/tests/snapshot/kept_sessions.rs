//! Sessions of connections that the boot opened: state that is kept, connections whose traffic cannot be read, databases
//! that do not answer, and the connections of worker mode, where nothing is reset
//! ([connections](../../../docs/reference/connections.md)).

use super::boot::{answer, booted, obeying, pid};
use howdah_tests::process::signal;
use howdah_tests::servers::Server;
use howdah_tests::{Mode, Setup, php, run};
use rustix::process::Signal;

fn mysql(server: &Server, options: &str) -> String {
    php!("kept_sessions/mysql.php", PORT = server.port, OPTIONS = options)
}

#[test]
fn the_last_insert_id_of_a_request_is_seen_by_the_next() {
    let server = Server::mariadb();
    run(
        Mode::Snapshot,
        |s| obeying(s, &mysql(&server, "0")),
        |site| {
            let worker = pid(site);
            assert_eq!(answer(site, "$db->query('INSERT INTO shop.t () VALUES ()'); echo $db->insert_id;"), "1");
            assert_eq!(answer(site, "echo $db->query('SELECT LAST_INSERT_ID()')->fetch_row()[0];"), "1");
            assert_eq!(pid(site), worker);
        },
    );
}

#[test]
fn transactions_of_a_boot_without_autocommit_are_rolled_back() {
    let server = Server::mariadb();
    let begun = "$db->autocommit(false); $db->query('INSERT INTO shop.t () VALUES ()');";
    run(
        Mode::Snapshot,
        |s| obeying(s, &format!("{} {begun}", mysql(&server, "0"))),
        |site| {
            let rows = "echo $db->query('SELECT COUNT(*) FROM shop.t')->fetch_row()[0];";
            assert_eq!(answer(site, rows), "0");
            assert_eq!(answer(site, "echo $db->query('SELECT @@autocommit')->fetch_row()[0];"), "0");
        },
    );
}

#[test]
fn a_boot_that_leaves_a_response_unread_is_refused() {
    let server = Server::mariadb();
    run(
        Mode::Snapshot,
        |s| {
            booted(s, &format!("{} $db->query('SELECT SLEEP(30)', MYSQLI_ASYNC);", mysql(&server, "0")))
                .expect_boot_failure()
                .expect_log("a connection to MySQL is open")
                .expect_log("ended before it was ready")
        },
        |site| {
            let _ = site.wait_for_log(&["ended before it was ready"]);
        },
    );
}

#[test]
fn a_compressed_connection_costs_the_worker_that_uses_it() {
    let server = Server::mariadb();
    run(
        Mode::Snapshot,
        |s| obeying(s.allow_log("logged once"), &mysql(&server, "MYSQLI_CLIENT_COMPRESS")),
        |site| {
            let worker = pid(site);
            assert_eq!(pid(site), worker, "requests that do not use it cost nothing");
            assert_eq!(answer(site, "echo $db->query('SELECT 5')->fetch_row()[0];"), "5");
            assert_ne!(pid(site), worker, "{}", site.log());
        },
    );
}

#[test]
fn a_database_that_does_not_answer_the_reset_costs_the_worker() {
    let server = Server::mariadb();
    run(
        Mode::Snapshot,
        |s| {
            let logs = ["logged once", "worker replaced", "ended before it was ready", "does not boot"];
            obeying(logs.into_iter().fold(s, Setup::allow_log), &mysql(&server, "0"))
        },
        |site| {
            let worker = pid(site);
            let stop = format!("$db->query('SET @v = 1'); posix_kill({}, SIGSTOP); echo 'stopped';", server.pid());
            assert_eq!(answer(site, &stop), "stopped");
            let _ = site.wait_for_log(&["worker replaced"]);
            signal(server.pid(), Signal::CONT);
            assert_ne!(pid(site), worker);
            assert_eq!(answer(site, "echo $db->query('SELECT @v IS NULL')->fetch_row()[0];"), "1");
        },
    );
}

#[test]
fn in_worker_mode_a_transaction_stays_open() {
    let server = Server::mariadb();
    run(
        Mode::Worker,
        |s| s.workers(1).script("worker.php").php("worker.php", &php!("kept_sessions/worker.php", PORT = server.port)),
        |site| {
            assert_eq!(site.get_ok("/?sql=BEGIN"), "0");
            assert_eq!(site.get_ok("/?sql=SELECT+1"), "1");
            assert_eq!(site.get_ok("/?sql=SELECT+1"), "1", "the request's end has not ended it");
        },
    );
}
