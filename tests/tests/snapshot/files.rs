//! Snapshot mode and kernel state of a process: files and databases that the boot opened, locks, positions, names. A
//! request's changes to them are undone, or its worker takes no further request.

use super::boot::{answer, obeying, pid};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, php, run};
use std::process::Command;

// --- SQLite ---

/// Opens the database in another process, runs a statement, and closes it.
fn elsewhere(database: &str, sql: &str) -> String {
    let output = Command::new("sqlite3").args(["-cmd", ".timeout 20000", database, sql]).output().unwrap();
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Expressions with which the boot opens its database, and a request another connection to it.
const OPEN: [&str; 2] = ["new PDO('sqlite:' . DB)", "new SQLite3(DB)"];

const BETWEEN: [&str; 9] = [
    "echo 1;",
    "$second = OPEN; $second->query('SELECT count(*) FROM t'); unset($second); echo 1;",
    "$second = OPEN; $second->exec(\"INSERT INTO t VALUES ('second')\"); echo 1;",
    php!("files/between.php"),
    "file_get_contents(DB); echo 1;",
    "$file = fopen(DB, 'r'); fread($file, 10); echo 1;",
    "copy(DB, DB . '.copy'); echo 1;",
    "$db->exec('BEGIN'); $db->exec(\"INSERT INTO t VALUES ('never committed')\"); echo 1;",
    "$statement = $db->prepare('SELECT * FROM t, t AS b'); $statement->execute(); echo 1;",
];

/// In each order of requests, other processes and second connections: committed data is visible to all, permanently.
fn nothing_is_lost(way: &str, journal: &str, open: &str) {
    run(
        Mode::Snapshot,
        |s| {
            let boot = php!("files/nothing_is_lost.php", OPEN = open, JOURNAL = journal);
            obeying(s.env("HOWDAH_SNAPSHOT_PAGES", way).allow_log("logged once"), &boot)
        },
        |site| {
            let database = site.file("../data.sqlite").display().to_string();
            let (mut written, mut n) = (Vec::new(), 0);
            for between in BETWEEN {
                for _ in 0..2 {
                    n += 1;
                    let insert = format!("$db->exec(\"INSERT INTO t VALUES ('worker {n}')\"); echo 'written';");
                    assert_eq!(answer(site, &insert), "written", "before {between}");
                    assert_eq!(answer(site, &between.replace("OPEN", open)), "1", "{between}");
                    elsewhere(&database, &format!("INSERT INTO t VALUES ('other {n}')"));
                    assert_eq!(answer(site, &insert.replace("worker", "after")), "written", "after {between}");
                    elsewhere(&database, &format!("INSERT INTO t VALUES ('third {n}')"));
                    written.extend(["worker", "other", "after", "third"].map(|who| format!("{who} {n}")));
                    let there = elsewhere(&database, "SELECT v FROM t");
                    let there: Vec<&str> = there.lines().collect();
                    for row in &written {
                        assert!(there.contains(&row.as_str()), "{journal}, {between}: {row} is lost");
                    }
                    assert!(!there.contains(&"never committed"));
                }
            }
            assert_eq!(elsewhere(&database, "PRAGMA integrity_check"), "ok");
            let seen = "foreach ($db->query('SELECT count(*) FROM t') as $row) { echo $row[0]; }";
            if open.contains("PDO") {
                assert_eq!(answer(site, seen), elsewhere(&database, "SELECT count(*) FROM t"));
            }
        },
    );
}

#[test]
fn sqlite_in_wal_mode_loses_nothing_with_three_processes() {
    for open in OPEN {
        nothing_is_lost("scan", "WAL", open);
    }
    nothing_is_lost("fork", "WAL", OPEN[0]);
}

#[test]
fn sqlite_with_a_rollback_journal_loses_nothing_with_three_processes() {
    for open in OPEN {
        nothing_is_lost("scan", "DELETE", open);
    }
}

/// A second connection is no reason to boot again each time.
#[test]
fn a_second_connection_to_a_database_of_the_boot_keeps_the_worker() {
    run(
        Mode::Snapshot,
        |s| {
            obeying(s, php!("files/a_second_connection_to_a_database_of_the_boot_keeps_the_worker.php"))
                .allow_log("logged once")
        },
        |site| {
            let first = pid(site);
            for _ in 0..20 {
                let second = "$second = new PDO('sqlite:' . DB); $second->exec(\"INSERT INTO t VALUES ('x')\"); echo getmypid();";
                assert_eq!(answer(site, second), first);
            }
            // Not for ever: each leaves a descriptor that cannot be closed.
            assert!(eventually(PATIENCE, || {
                answer(
                    site,
                    "$second = new PDO('sqlite:' . DB); $second->exec(\"INSERT INTO t VALUES ('x')\"); echo getmypid();",
                ) != first
            }));
            assert_eq!(answer(site, "echo $db->query('SELECT 1')->fetchColumn();"), "1");
        },
    );
}

/// State that a request sets on a connection of the boot is in memory, and so are its temporary tables.
#[test]
fn each_request_finds_the_boots_sqlite_connection() {
    run(
        Mode::Snapshot,
        |s| obeying(s, php!("files/each_request_finds_the_boots_sqlite_connection_boot.php")).allow_log("logged once"),
        |site| {
            let probe = php!("files/each_request_finds_the_boots_sqlite_connection_probe.php");
            let first = answer(site, probe);
            for change in [
                "$db->exec('PRAGMA foreign_keys=0');",
                "$db->exec('CREATE TEMP TABLE temporary (a)'); $db->exec('INSERT INTO temporary VALUES (1)');",
                "$db->exec(\"ATTACH '\" . DB . \"2' AS two\"); $db->exec('CREATE TABLE IF NOT EXISTS two.t (a)');",
                "$db->exec('BEGIN IMMEDIATE'); $db->exec(\"INSERT INTO t VALUES ('x')\");",
                "$db->beginTransaction(); $db->exec(\"INSERT INTO t VALUES ('x')\");",
                "$db->exec('BEGIN EXCLUSIVE');",
                php!("files/each_request_finds_the_boots_sqlite_connection_open_query.php"),
            ] {
                assert_eq!(answer(site, &format!("{change} echo 'done';")), "done");
                assert_eq!(answer(site, probe), first, "after {change}");
                let database = site.file("../data.sqlite").display().to_string();
                elsewhere(&database, "BEGIN EXCLUSIVE; ROLLBACK");
            }
        },
    );
}

#[test]
fn databases_that_a_snapshot_cannot_hold_are_refused() {
    for (boot, why) in [
        ("$db->exec('BEGIN'); $db->exec('CREATE TABLE t (v)');", "a transaction is open on a database of SQLite"),
        (
            "$db->exec('PRAGMA locking_mode=EXCLUSIVE'); $db->exec('CREATE TABLE IF NOT EXISTS t (v)');",
            "locking_mode=EXCLUSIVE",
        ),
    ] {
        run(
            Mode::Snapshot,
            |s| {
                obeying(s, &format!("$db = new PDO('sqlite:' . __DIR__ . '/../data.sqlite'); {boot}"))
                    .expect_boot_failure()
                    .expect_log(why)
                    .expect_log("ended before it was ready")
            },
            |site| {
                let _ = site.wait_for_log(&[why, "ended before it was ready"]);
            },
        );
    }
}

/// All requests find what classic mode would find, on a worker that has booted since, for each method to create a
/// database anew: with as many transactions and schema changes as the old one, so that its counters are the same.
#[test]
fn a_replaced_or_rebuilt_database_is_not_the_one_opened_at_boot() {
    for (journal, ways) in [("DELETE", &["replaced", "copied", "emptied", "gone"][..]), ("WAL", &["replaced", "gone"])]
    {
        run(
            Mode::Snapshot,
            |s| {
                let boot = php!("files/a_database_that_was_replaced_boot.php", JOURNAL = journal);
                obeying(s.allow_log("the boot is outdated"), &boot)
            },
            |site| {
                let database = site.file("../data.sqlite").display().to_string();
                let seen = "echo json_encode($db->query('SELECT * FROM t LIMIT 1')->fetchAll(PDO::FETCH_ASSOC));";
                assert_eq!(answer(site, seen), r#"[{"v":"boot"}]"#);
                let first = pid(site);
                let insert = "$db->exec(\"INSERT INTO t VALUES ('more')\"); echo 'written';";
                assert_eq!(answer(site, insert), "written");
                elsewhere(&database, "INSERT INTO t VALUES ('other')");
                assert_eq!(answer(site, seen), r#"[{"v":"boot"}]"#);
                assert_eq!(pid(site), first, "transactions are no reason to boot");
                for way in ways {
                    let sql = format!("CREATE TABLE t ({way} TEXT); INSERT INTO t VALUES ('anew');");
                    let made = format!("{database}.{way}");
                    elsewhere(&made, &sql);
                    match *way {
                        "replaced" => std::fs::rename(&made, &database).unwrap(),
                        "copied" => drop(std::fs::copy(&made, &database).unwrap()),
                        "emptied" => {
                            std::fs::write(&database, "").unwrap();
                            elsewhere(&database, &sql);
                        }
                        _ => std::fs::remove_file(&database).unwrap(),
                    }
                    for side in ["-wal", "-shm"] {
                        let _ = std::fs::remove_file(format!("{database}{side}"));
                    }
                    let expected = match *way {
                        "gone" => r#"[{"v":"boot"}]"#.to_owned(),
                        way => format!(r#"[{{"{way}":"anew"}}]"#),
                    };
                    assert_eq!(answer(site, seen), expected, "{journal}, {way}");
                }
            },
        );
    }
}

// --- descriptors and the process ---

/// `boot` opens something; after `change` in a request, `probe` must have the same result as before. `replaced`: by
/// another worker.
fn comes_back(boot: &str, cases: &[(&str, &str, bool)]) {
    run(
        Mode::Snapshot,
        |s| obeying(s.allow_log("logged once").ini("ffi.enable", "true"), boot),
        |site| {
            for (change, probe, replaced) in cases {
                let worker = pid(site);
                let before = answer(site, probe);
                let done = answer(site, &format!("{change} echo 'done';"));
                assert!(done.ends_with("done"), "{change}: {done}");
                assert_eq!(answer(site, probe), before, "after {change}");
                assert_eq!(pid(site) != worker, *replaced, "{change}; log:\n{}", site.log());
            }
        },
    );
}

#[test]
fn a_directory_that_the_boot_has_opened_is_read_from_where_the_boot_was() {
    let boot = php!("files/a_directory_that_the_boot_has_opened_is_read_from_where_the_boot_was.php");
    let rest = "$n = 0; while (readdir($dir) !== false) { $n++; } echo $n;";
    // Not read yet, and in the middle of a chunk from the kernel.
    for boot in [boot.to_owned(), format!("{boot} readdir($dir);")] {
        comes_back(
            &boot,
            &[
                ("while (readdir($dir) !== false) {}", rest, false),
                ("rewinddir($dir); readdir($dir);", rest, false),
                ("closedir($dir);", rest, false),
            ],
        );
    }
}

#[test]
fn locks_of_a_request_on_the_boots_files_are_released() {
    let probe = php!("files/locks_of_a_request_on_the_boots_files_are_released_probe.php");
    comes_back(
        php!("files/locks_of_a_request_on_the_boots_files_are_released_unlocked.php"),
        &[
            ("flock($file, LOCK_EX);", probe, false),
            ("flock($file, LOCK_SH);", probe, false),
            ("flock($file, LOCK_EX); flock($file, LOCK_UN);", probe, false),
            ("fclose($file); $file = fopen(__DIR__ . '/../locked', 'a');", probe, false),
        ],
    );
    comes_back(
        php!("files/locks_of_a_request_on_the_boots_files_are_released_locked.php"),
        &[("flock($file, LOCK_UN);", probe, true), ("flock($file, LOCK_EX);", probe, true)],
    );
}

#[test]
fn unread_data_of_a_boots_descriptor_does_not_reach_later_requests() {
    let read = php!("files/unread_data_of_a_boots_descriptor_does_not_reach_later_requests_read.php");
    comes_back(
        "$pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);",
        &[
            ("fwrite($pair[0], 'secret');", read, true),
            (
                "fwrite($pair[0], 'secret'); fread($pair[1], 100); fwrite($pair[1], 'b'); fread($pair[0], 1);",
                read,
                true,
            ),
            ("stream_socket_shutdown($pair[0], STREAM_SHUT_WR);", "echo json_encode(feof($pair[1]));", true),
        ],
    );
    comes_back(
        php!("files/unread_data_of_a_boots_descriptor_does_not_reach_later_requests_fifo.php"),
        &[(
            "fwrite($fifo, 'secret');",
            "stream_set_blocking($fifo, false); echo json_encode(fread($fifo, 100));",
            true,
        )],
    );
    comes_back(
        "$file = tmpfile(); unlink(stream_get_meta_data($file)['uri']); fwrite($file, 'boot'); fflush($file);",
        &[
            ("rewind($file); fwrite($file, 'BOOT'); fflush($file);", "rewind($file); echo fread($file, 100);", true),
            ("fwrite($file, ' and more'); fflush($file);", "rewind($file); echo fread($file, 100);", true),
            ("ftruncate($file, 0);", "rewind($file); echo fread($file, 100);", true),
            ("rewind($file); fread($file, 2);", "echo json_encode(fread($file, 100));", false),
        ],
    );
    comes_back(
        php!("files/unread_data_of_a_boots_descriptor_does_not_reach_later_requests_eventfd.php"),
        &[(
            "$one = FFI::new('unsigned long'); $one->cdata = 7; $libc->write($event, FFI::addr($one), 8);",
            "$one = FFI::new('unsigned long'); echo $libc->read($event, FFI::addr($one), 8), $one->cdata;",
            true,
        )],
    );
}

#[test]
fn changes_of_the_process_by_a_request_do_not_reach_later_ones() {
    comes_back(
        php!("files/changes_of_the_process_by_a_request_do_not_reach_later_ones.php"),
        &[
            ("file_put_contents('/proc/self/comm', 'visitor');", "echo file_get_contents('/proc/self/comm');", true),
            (
                "file_put_contents('/proc/self/oom_score_adj', '500');",
                "echo file_get_contents('/proc/self/oom_score_adj');",
                true,
            ),
            (
                "symlink('/proc/self/oom_score_adj', __DIR__ . '/link' . getmypid()); file_put_contents(__DIR__ . '/link' . getmypid(), '300');",
                "echo file_get_contents('/proc/self/oom_score_adj');",
                true,
            ),
            (
                "FFI::cdef('int prctl(int, const char *);')->prctl(15, 'visitor');",
                "echo file_get_contents('/proc/self/comm');",
                false,
            ),
            (
                "sem_acquire($sem); sem_release($sem);",
                "echo json_encode(sem_acquire($sem, true)); sem_release($sem);",
                false,
            ),
            ("sem_acquire($sem);", "echo 'free'; sem_acquire($sem); sem_release($sem);", true),
            (
                "$own = sem_get(4711, 1, 0600, false); sem_acquire($own);",
                "$own = sem_get(4711, 1, 0600, false); echo json_encode(sem_acquire($own, true)); sem_release($own);",
                true,
            ),
            (
                "$own = sem_get(4712, 1, 0600); sem_acquire($own);",
                "$own = sem_get(4712, 1, 0600); echo json_encode(sem_acquire($own, true));",
                false,
            ),
        ],
    );
}
