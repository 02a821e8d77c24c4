//! Snapshot mode and the sessions of connections that the boot opened: whatever a request does to one, the next request
//! finds the boot's state; and requests that leave nothing cost nothing.

use super::boot::{answer, obeying, pid};
use howdah_tests::servers::Server;
use howdah_tests::{Mode, Site, php, run};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Numbers of the pool in `howdah status --json`.
fn counted(site: &Site, name: &str) -> u64 {
    let status = site.howdah().status();
    status["pools"][0][name].as_u64().unwrap_or_else(|| panic!("no {name} in {status}"))
}

/// Effect of a request on the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cost {
    /// No action was necessary.
    Nothing,
    /// The session was reset; worker and connection are the same.
    Reset,
    /// Either of the above: for persistent connections some extensions end transactions themselves.
    Little,
    /// Another worker, which has booted.
    Worker,
}

/// A driver's code: `open` creates `$db`, `run` is a function that runs a statement, `probe` reports the session's
/// state.
struct Driver {
    open: String,
    run: &'static str,
    probe: &'static str,
}

/// Makes each change in a separate request; the next request must find the previous state.
fn nothing_is_left(driver: &Driver, changes: &[(&str, Cost)]) {
    nothing_is_left_by("scan", driver, changes);
}

/// As `nothing_is_left`, with one method of restoring; with `fork` each request has its own process, so the worker is
/// its parent.
fn nothing_is_left_by(way: &str, driver: &Driver, changes: &[(&str, Cost)]) {
    let pid = |site: &Site| if way == "fork" { answer(site, "echo posix_getppid();") } else { pid(site) };
    run(
        Mode::Snapshot,
        |s| {
            obeying(
                s.env("HOWDAH_SNAPSHOT_PAGES", way).allow_log("worker replaced").allow_log("logged once"),
                &format!("{}\n{}", driver.open, driver.run),
            )
        },
        |site| {
            let first = answer(site, driver.probe);
            assert!(first.starts_with("ok "), "{first}");
            for (change, cost) in changes {
                let worker = pid(site);
                let resets = counted(site, "snapshot_sessions_reset");
                let done = answer(site, &format!("{change}; echo 'done';"));
                assert!(done.ends_with("done"), "{change}: {done}");
                assert_eq!(answer(site, driver.probe), first, "after {change}");
                let same = pid(site) == worker;
                let reset = counted(site, "snapshot_sessions_reset") - resets;
                let seen = match (same, reset) {
                    (true, 0) => Cost::Nothing,
                    (true, _) => Cost::Reset,
                    (false, _) => Cost::Worker,
                };
                let expected = if *cost == Cost::Little && seen != Cost::Worker { seen } else { *cost };
                assert_eq!(seen, expected, "{change}; log:\n{}", site.log());
            }
        },
    );
}

// --- MySQL ---

const MYSQL_SCHEMA: &str = "CREATE DATABASE IF NOT EXISTS shop; CREATE DATABASE IF NOT EXISTS other;
    CREATE TABLE IF NOT EXISTS shop.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB;
    CREATE TABLE IF NOT EXISTS other.t (v INT);";

/// On one line; `IS_FREE_LOCK` of a lock that a request takes, a temporary table, and settings that requests change.
const MYSQL_PROBE: &str = php!("sessions/mysql_probe.php");

const MYSQL_CHANGES: &[(&str, Cost)] = &[
    ("sql('SELECT 1')", Cost::Nothing),
    ("sql('START TRANSACTION'); sql(\"INSERT INTO t (v) VALUES ('a')\"); sql('ROLLBACK')", Cost::Nothing),
    ("sql('BEGIN'); sql(\"INSERT INTO t (v) VALUES ('left open')\")", Cost::Reset),
    ("sql('SET autocommit=0'); sql(\"INSERT INTO t (v) VALUES ('left open')\")", Cost::Reset),
    ("sql('SET autocommit=0'); sql('SET autocommit=1')", Cost::Nothing),
    ("sql('SET @v = 1')", Cost::Reset),
    ("sql('SELECT 1 INTO @v')", Cost::Reset),
    ("sql('SELECT 1 /* ; SET @x */ , \"; SET @v = 1\", \\'SET\\'  -- SET @v = 5')", Cost::Nothing),
    ("sql('SELECT \"user@example.org\", @@version')", Cost::Nothing),
    ("sql('/*!40101 SET @v = 1 */')", Cost::Reset),
    ("sql(\"SET time_zone = '+03:00'\")", Cost::Reset),
    ("sql(\"SET SESSION sql_mode = ''\")", Cost::Reset),
    ("sql('SET NAMES latin1')", Cost::Reset),
    ("sql('USE other')", Cost::Reset),
    ("sql('CREATE TEMPORARY TABLE temporary (a INT)')", Cost::Reset),
    ("sql('CREATE OR REPLACE TEMPORARY TABLE temporary (a INT)')", Cost::Reset),
    ("sql('LOCK TABLES t WRITE')", Cost::Reset),
    ("sql(\"SELECT GET_LOCK('l', 1)\")", Cost::Reset),
    ("sql(\"DO GET_LOCK('l', 1)\")", Cost::Reset),
    ("sql(\"PREPARE p FROM 'SELECT 1'\")", Cost::Reset),
    ("sql('BEGIN'); sql(\"INSERT INTO t (v) VALUES ('x')\"); sql(\"SET @v = 3\")", Cost::Reset),
];

fn mysql_drivers(server: &Server) -> Vec<(&'static str, Driver)> {
    let port = server.port;
    let setup = php!("sessions/mysql_drivers_setup.php", PORT = port, MYSQL_SCHEMA = MYSQL_SCHEMA);
    let boot = php!("sessions/mysql_drivers_boot.php");
    let mysqli = php!("sessions/mysql_drivers_mysqli.php");
    let pdo = php!("sessions/mysql_drivers_pdo.php");
    let driver = |name, open: String, run: &'static str| {
        let open = format!("{setup} {open} {boot}");
        (name, Driver { open, run, probe: MYSQL_PROBE })
    };
    vec![
        driver("mysqli", php!("sessions/mysql_drivers_open_mysqli.php", PORT = port), mysqli),
        driver("persistent mysqli", php!("sessions/mysql_drivers_open_persistent_mysqli.php", PORT = port), mysqli),
        driver(
            "PDO",
            format!("$db = new PDO('mysql:host=127.0.0.1;port={port};dbname=shop;charset=utf8mb4', 'tester', '');"),
            pdo,
        ),
        driver(
            "persistent PDO without emulation",
            php!("sessions/mysql_drivers_open_persistent_pdo.php", PORT = port),
            pdo,
        ),
    ]
}

#[test]
fn each_request_finds_the_boots_mysql_session() {
    let server = Server::mariadb();
    for (name, driver) in mysql_drivers(&server) {
        eprintln!("{name}");
        nothing_is_left(&driver, MYSQL_CHANGES);
    }
}

#[test]
fn a_process_for_each_request_leaves_no_more_in_a_session() {
    let server = Server::mariadb();
    nothing_is_left_by("fork", &mysql_drivers(&server)[2].1, MYSQL_CHANGES);
}

/// Changes for which the drivers have functions.
#[test]
fn changes_by_functions_of_mysqli_and_pdo_are_undone() {
    let server = Server::mariadb();
    let drivers = mysql_drivers(&server);
    nothing_is_left(
        &drivers[0].1,
        &[
            ("$db->begin_transaction(); sql(\"INSERT INTO t (v) VALUES ('x')\")", Cost::Reset),
            ("$db->autocommit(false); sql(\"INSERT INTO t (v) VALUES ('x')\")", Cost::Reset),
            ("$db->autocommit(false); sql('SELECT 1'); $db->commit(); $db->autocommit(true)", Cost::Nothing),
            ("$db->select_db('other')", Cost::Reset),
            ("$db->set_charset('latin1')", Cost::Reset),
            ("$s = $db->prepare('SELECT ?'); $s->execute([1]); $s->get_result()", Cost::Nothing),
            ("$s = $db->prepare('SET @v = ?'); $s->execute([1])", Cost::Reset),
            (
                "$db->multi_query('SELECT 1; SET @v = 1'); do { $db->store_result(); } while ($db->more_results() && $db->next_result())",
                Cost::Reset,
            ),
            (
                "$db->multi_query('SELECT 1; SELECT 2'); do { $db->store_result(); } while ($db->more_results() && $db->next_result())",
                Cost::Nothing,
            ),
            ("$db->change_user('tester', '', 'other'); sql(\"SET @v = 1\")", Cost::Reset),
            ("$db->ping(); $db->stat()", Cost::Nothing),
            ("$db->close()", Cost::Worker),
            ("$db->real_query('SELECT 1'); $r = $db->use_result()", Cost::Nothing),
        ],
    );
    nothing_is_left(
        &drivers[2].1,
        &[
            ("$db->beginTransaction(); sql(\"INSERT INTO t (v) VALUES ('x')\")", Cost::Reset),
            ("$db->setAttribute(PDO::ATTR_AUTOCOMMIT, 0); sql(\"INSERT INTO t (v) VALUES ('x')\")", Cost::Reset),
            ("$db->prepare('SET @v = ?')->execute([5])", Cost::Reset),
            ("$db->prepare('SELECT ?')->execute([\"; SET @v = 1; it's \\\\\"])", Cost::Nothing),
            ("unset($GLOBALS['db'], $db)", Cost::Worker),
        ],
    );
}

/// The server's own count of statements: only the request's own.
#[test]
fn requests_that_change_no_session_cost_mysql_no_extra_query() {
    let server = Server::mariadb();
    let (_, driver) = mysql_drivers(&server).swap_remove(2);
    run(
        Mode::Snapshot,
        |s| obeying(s, &format!("{}\n{}", driver.open, driver.run)),
        |site| {
            let questions = php!("sessions/requests_that_change_no_session_cost_mysql_no_extra_query.php");
            let worker = pid(site);
            let count = |code: &str| answer(site, &format!("{code} {questions}")).parse::<u64>().unwrap();
            let first = count("");
            for n in 1..=50 {
                assert_eq!(count(""), first + n);
            }
            // The statements that begin and end a transaction are the request's own.
            for n in 1..=20 {
                let insert = "$db->beginTransaction(); sql(\"INSERT INTO t (v) VALUES ('x')\"); $db->rollBack();";
                assert_eq!(count(insert), first + 50 + 4 * n);
            }
            assert_eq!(pid(site), worker);
            assert_eq!((counted(site, "snapshot_sessions_reset"), counted(site, "snapshot_workers_replaced")), (0, 0));
        },
    );
}

/// State set up by a boot that no statement can restore is not claimed to be restored.
#[test]
fn a_session_that_cannot_be_restored_costs_the_worker() {
    let server = Server::mariadb();
    let (_, mut driver) = mysql_drivers(&server).swap_remove(2);
    driver.open.push_str("sql('CREATE TEMPORARY TABLE boots (a INT)'); sql('INSERT INTO boots VALUES (1)');");
    driver.probe = "echo 'ok ', value('SELECT COUNT(*) FROM boots'), value(\"SELECT IFNULL(@v, '-')\");";
    nothing_is_left(
        &driver,
        &[
            ("sql('SELECT * FROM boots')", Cost::Nothing),
            ("sql('INSERT INTO boots VALUES (2)')", Cost::Worker),
            ("sql('SET @v = 1')", Cost::Worker),
        ],
    );
}

#[test]
fn a_boot_that_leaves_a_transaction_open_is_refused() {
    let server = Server::mariadb();
    let (_, driver) = mysql_drivers(&server).swap_remove(2);
    run(
        Mode::Snapshot,
        |s| {
            obeying(
                s,
                &format!(
                    "{}\n{}\n$db->beginTransaction(); sql(\"INSERT INTO t (v) VALUES ('x')\");",
                    driver.run, driver.open
                ),
            )
            .expect_boot_failure()
            .expect_log("a transaction is open on it; end it first")
            .expect_log("ended before it was ready")
        },
        |site| {
            let _ = site.wait_for_log(&["snapshot: a connection to MySQL is open", "ended before it was ready"]);
        },
    );
}

// --- PostgreSQL ---

const PGSQL_PROBE: &str = php!("sessions/pgsql_probe.php");

const PGSQL_CHANGES: &[(&str, Cost)] = &[
    ("sql('SELECT 1')", Cost::Nothing),
    ("sql('BEGIN'); sql('INSERT INTO t VALUES (1)'); sql('ROLLBACK')", Cost::Nothing),
    ("sql('BEGIN'); sql(\"SET LOCAL TimeZone = 'Asia/Tokyo'\"); sql('COMMIT')", Cost::Nothing),
    ("sql('BEGIN'); sql('LOCK TABLE t'); sql('SELECT pg_advisory_xact_lock(1)'); sql('COMMIT')", Cost::Nothing),
    ("sql('BEGIN'); sql('INSERT INTO t VALUES (1)')", Cost::Little),
    ("sql('BEGIN'); try { @sql('SELECT nothing'); } catch (Throwable) {}", Cost::Little),
    ("sql(\"SET TimeZone = 'Asia/Tokyo'\")", Cost::Reset),
    ("sql('SET search_path = pg_catalog')", Cost::Reset),
    ("sql('SET statement_timeout = 1234')", Cost::Reset),
    ("sql(\"SELECT set_config('statement_timeout', '99', false)\")", Cost::Reset),
    ("sql('SELECT \"set_config\"($$statement_timeout$$, $x$99$x$, false)')", Cost::Reset),
    ("sql(\"DO 'BEGIN PERFORM set_config(''TimeZone'', ''Asia/Tokyo'', false); END'\")", Cost::Reset),
    ("sql('SELECT stored()')", Cost::Reset),
    (
        "sql(\"SELECT 'a; SET TimeZone', E'\\\\' ; SET x', \\$\\$; SET y\\$\\$ /* ; SET /* z */ */ -- ; SET a\")",
        Cost::Nothing,
    ),
    ("sql('CREATE TEMP TABLE temporary (a int)')", Cost::Reset),
    ("sql('SELECT 1 AS a INTO TEMPORARY temporary')", Cost::Reset),
    ("sql('CREATE TABLE pg_temp.temporary (a int)')", Cost::Reset),
    ("sql('SELECT pg_advisory_lock(5)')", Cost::Reset),
    ("sql('SELECT pg_try_advisory_lock_shared(5)')", Cost::Reset),
    ("sql('LISTEN channel')", Cost::Reset),
    ("sql('PREPARE p AS SELECT 1')", Cost::Reset),
    ("sql('SET ROLE other')", Cost::Reset),
    ("sql('BEGIN'); sql('DECLARE c CURSOR WITH HOLD FOR SELECT 1'); sql('COMMIT')", Cost::Reset),
];

fn pgsql_drivers(port: u16) -> Vec<(&'static str, Driver)> {
    let boot = "sql('DROP TABLE IF EXISTS t'); sql('CREATE TABLE t (v int)');
        @sql(\"DO 'BEGIN CREATE ROLE other; EXCEPTION WHEN duplicate_object THEN NULL; END'\");
        sql(\"CREATE OR REPLACE FUNCTION stored() RETURNS text LANGUAGE sql AS \\$\\$ SELECT set_config('TimeZone', 'Asia/Tokyo', false) \\$\\$\");";
    let native = php!("sessions/pgsql_drivers_native.php");
    let pdo = php!("sessions/pgsql_drivers_pdo.php");
    let named = format!("host=127.0.0.1 port={port} user=tester dbname=postgres sslmode=disable");
    // The schema is created on another connection: the statements for it need not be repeatable.
    let with_schema = |connect: &str, again: &str| {
        php!("sessions/pgsql_drivers_script.php", CONNECT = connect, BOOT = boot, AGAIN = again)
    };
    vec![
        (
            "pgsql",
            Driver {
                open: with_schema(
                    &format!("pg_connect('{named}')"),
                    &format!("pg_connect('{named}', PGSQL_CONNECT_FORCE_NEW)"),
                ),
                run: native,
                probe: PGSQL_PROBE,
            },
        ),
        (
            "persistent pgsql",
            Driver {
                open: with_schema(&format!("pg_connect('{named}')"), &format!("pg_pconnect('{named}')")),
                run: native,
                probe: PGSQL_PROBE,
            },
        ),
        (
            "PDO",
            Driver {
                open: with_schema(
                    &format!("new PDO('pgsql:{named}')"),
                    &format!("new PDO('pgsql:{named}', null, null, [PDO::ATTR_PERSISTENT => true])"),
                ),
                run: pdo,
                probe: PGSQL_PROBE,
            },
        ),
    ]
}

#[test]
fn each_request_finds_the_boots_postgresql_session() {
    let server = Server::postgres();
    for (name, driver) in pgsql_drivers(server.port) {
        eprintln!("{name}");
        nothing_is_left(&driver, PGSQL_CHANGES);
    }
}

#[test]
fn changes_by_functions_of_pgsql_and_pdo_are_undone() {
    let server = Server::postgres();
    let mut drivers = pgsql_drivers(server.port);
    let (_, pdo) = drivers.swap_remove(2);
    let (_, native) = drivers.swap_remove(0);
    nothing_is_left(
        &native,
        &[
            ("pg_prepare($db, 'named', 'SELECT $1::int'); pg_execute($db, 'named', [1])", Cost::Reset),
            ("pg_prepare($db, 'named', 'SELECT 1'); pg_query($db, 'DEALLOCATE named')", Cost::Nothing),
            ("pg_query_params($db, 'SELECT $1::int', [1])", Cost::Nothing),
            ("pg_query_params($db, 'SELECT set_config($1, $2, false)', ['statement_timeout', '5'])", Cost::Reset),
            ("pg_set_client_encoding($db, 'LATIN1')", Cost::Reset),
            ("pg_send_query($db, 'SELECT pg_sleep(30)')", Cost::Worker),
            ("pg_query($db, 'COPY t FROM STDIN'); pg_put_line($db, \"1\\n\")", Cost::Worker),
            ("pg_close($db)", Cost::Worker),
        ],
    );
    nothing_is_left(
        &pdo,
        &[
            ("$db->beginTransaction(); sql('INSERT INTO t VALUES (1)')", Cost::Reset),
            ("$s = $db->prepare('SELECT ?::int'); $s->execute([1])", Cost::Nothing),
            // PostgreSQL refuses to drop a prepared statement in a failed transaction.
            (
                "$db->beginTransaction(); $s = $db->prepare('SELECT ?::int'); try { $s->execute(['x']); } catch (Throwable) {} $s = null; $db->rollBack()",
                Cost::Reset,
            ),
            (
                "$s = $db->prepare('SELECT set_config(?, ?, false)'); $s->execute(['statement_timeout', '7'])",
                Cost::Reset,
            ),
            ("$db->pgsqlCopyFromArray('t', ['1']); sql('DELETE FROM t')", Cost::Nothing),
        ],
    );
}

// --- Redis ---

#[test]
fn each_request_finds_the_boots_redis_connection() {
    let server = Server::redis(false);
    let port = server.port;
    let open = |connect: &str| {
        php!("sessions/each_request_finds_the_boots_redis_connection_script.php", CONNECT = connect, PORT = port)
    };
    let probe = php!("sessions/each_request_finds_the_boots_redis_connection_probe.php");
    let changes = [
        ("$db->get('k')", Cost::Nothing),
        ("$db->multi()->set('a', 1)->exec()", Cost::Nothing),
        ("$db->pipeline()->set('a', 1)->get('a')->exec()", Cost::Nothing),
        ("$db->watch('k'); $db->unwatch()", Cost::Nothing),
        ("$db->set('big', str_repeat(\"*1\\r\\n\\$4\\r\\nQUIT\\r\\n\", 5000)); strlen($db->get('big'))", Cost::Nothing),
        ("$db->mget(['k', 'nothing', 'big']); $db->rawCommand('CLIENT', 'INFO')", Cost::Nothing),
        ("$db->eval('return {1, {2, redis.call(\"get\", \"k\")}, false}')", Cost::Nothing),
        ("$db->select(3)", Cost::Reset),
        ("$db->watch('k'); $db->set('k', 'changed')", Cost::Reset),
        ("$db->multi(); $db->set('k', 'queued')", Cost::Little),
        ("$db->rawCommand('MULTI'); $db->rawCommand('SET', 'k', 'queued')", Cost::Little),
        ("$db->select(5); $db->watch('k'); $db->multi()", Cost::Reset),
        ("$db->rawCommand('CLIENT', 'SETNAME', 'other')", Cost::Worker),
        ("$db->rawCommand('SUBSCRIBE', 'channel')", Cost::Worker),
        ("try { $db->rawCommand('HELLO', '3'); } catch (RedisException) {}", Cost::Worker),
        ("try { $db->rawCommand('AUTH', 'x'); } catch (RedisException) {}", Cost::Worker),
        ("$db->rawCommand('MONITOR')", Cost::Worker),
        ("try { $db->rawCommand('QUIT'); } catch (RedisException) {}", Cost::Worker),
        ("$db->close()", Cost::Nothing),
    ];
    for connect in ["connect", "pconnect"] {
        nothing_is_left(&Driver { open: open(connect), run: "", probe }, &changes);
    }
}

#[test]
fn requests_that_change_no_session_cost_redis_no_extra_command() {
    let server = Server::redis(false);
    let open = format!("$db = new Redis; $db->connect('127.0.0.1', {});", server.port);
    run(
        Mode::Snapshot,
        |s| obeying(s, &open),
        |site| {
            let count = || answer(site, "echo $db->info('stats')['total_commands_processed'];").parse::<u64>().unwrap();
            let first = count();
            for n in 1..=50 {
                assert_eq!(count(), first + n);
            }
        },
    );
}

// --- answers on their way ---

/// Echoes each line; responds to those that begin with "late" only when the test says so.
fn late_server(held: Arc<AtomicUsize>, release: Arc<AtomicUsize>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (held, release) = (held.clone(), release.clone());
            std::thread::spawn(move || serve_lines(&mut stream, &held, &release));
        }
    });
    port
}

fn serve_lines(stream: &mut TcpStream, held: &AtomicUsize, release: &AtomicUsize) {
    let mut line = Vec::new();
    let mut byte = [0u8];
    while matches!(stream.read(&mut byte), Ok(1)) {
        line.push(byte[0]);
        if byte[0] != b'\n' {
            continue;
        }
        if line.starts_with(b"late") {
            held.fetch_add(1, Ordering::Release);
            while release.load(Ordering::Acquire) == 0 {
                std::thread::park_timeout(std::time::Duration::from_millis(5));
            }
        }
        let _ = stream.write_all(&line);
        line.clear();
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// The response arrives while the next request runs, so only the sent and received data reveals it.
#[test]
fn an_answer_on_its_way_never_reaches_the_next_request() {
    let (held, release) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let port = late_server(held.clone(), release.clone());
    run(
        Mode::Snapshot,
        |s| {
            obeying(
                s.allow_log("logged once"),
                &format!(
                    "$line = stream_socket_client('tcp://127.0.0.1:{port}'); fwrite($line, \"boot\\n\"); fgets($line);"
                ),
            )
        },
        |site| {
            let worker = pid(site);
            assert_eq!(answer(site, "fwrite($line, \"one\\n\"); echo fgets($line);"), "one\n");
            assert_eq!(pid(site), worker);
            let code = "fwrite($line, \"late secret\\n\"); echo 'left';";
            assert_eq!(answer(site, code), "left");
            while held.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            let second = pid(site);
            assert_ne!(second, worker);
            release.store(1, Ordering::Release);
            assert_eq!(answer(site, "fwrite($line, \"two\\n\"); echo fgets($line);"), "two\n");
            let _ = site.wait_for_log(&["worker replaced", "a response is outstanding"]);
            assert_eq!(counted(site, "snapshot_workers_replaced"), 1);
        },
    );
}
