//! Async mode and databases: stock drivers whose queries wait beside each other, each answer to the request that asked.

use howdah_tests::at_once::{CROWD, at_once, crowd_of, everyone_sees, everyone_sees_with, marker, meeting, only_own};
use howdah_tests::servers::Server;
use howdah_tests::{Kind, Request, Setup, run};

/// `$db` is a new connection to a private MariaDB. The named lock `gate` is a meeting inside of the server: whoever asks
/// `SLEEP` while all others do shows that the queries run at once.
fn on_mariadb(script: &str, expected: &str) {
    on_mariadb_with(|setup| setup, script, expected);
}

/// The same with more setup.
fn on_mariadb_with(setup: impl Fn(Setup) -> Setup, script: &str, expected: &str) {
    let server = Server::mariadb();
    let connect = format!(
        "$db = new PDO('mysql:host=127.0.0.1;port={0}', 'tester', '', [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::MYSQL_ATTR_LOCAL_INFILE => true]); $port = {0};",
        server.port
    );
    everyone_sees_with(setup, &format!("{connect} {script}"), expected);
}

#[test]
fn pdo_queries_of_all_run_at_once() {
    on_mariadb(
        // Each query waits for a lock that its request gives back when all of them have been seen to wait.
        &format!("$watch = new PDO(\"mysql:host=127.0.0.1;port=$port\", 'tester', ''); $watch->query(\"SELECT GET_LOCK('l$m', 0)\")->fetchColumn(); meet('a');
        $t = Howdah\\go(fn () => $db->query(\"SELECT GET_LOCK('l$m', 100)\")->fetchColumn());
        for ($waiting = $turn = 0; $waiting < {CROWD} && $turn < 400; $turn++) {{ usleep(50000); $waiting = (int) $watch->query(\"SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT GET_LOCK(%, 100)'\")->fetchColumn(); }}
        meet('b'); $watch->query(\"SELECT RELEASE_LOCK('l$m')\")->fetchColumn(); echo $waiting === {CROWD} ? 'all ' : \"$waiting \", Howdah\\await($t), $m;"),
        "all 1@",
    );
}

#[test]
fn prepared_unbuffered_and_multiple_results() {
    on_mariadb(
        "$s = $db->prepare('SELECT ? AS m, SLEEP(0.01)'); $s->execute([$m]); meet('a'); echo $s->fetch()['m'];
        $db->setAttribute(PDO::ATTR_EMULATE_PREPARES, false); $s = $db->prepare('SELECT CONCAT(?, seq) FROM (SELECT 1 AS seq UNION ALL SELECT 2 UNION ALL SELECT 3) q'); $s->execute([$m]); meet('b'); echo ' ', implode(',', $s->fetchAll(PDO::FETCH_COLUMN));
        $db->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, false); $s = $db->query(\"SELECT CONCAT('$m', REPEAT('x', 100000)) FROM (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3) q\"); $n = 0; while ($row = $s->fetchColumn()) { pause(); $n += str_starts_with($row, $m) ? strlen($row) - strlen($m) : 0; } echo ' ', $n; $s = null;
        $db->setAttribute(PDO::ATTR_EMULATE_PREPARES, true); $db->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, true); $s = $db->query(\"SELECT '$m'; SELECT SLEEP(0.01); SELECT '$m-2'\"); echo ' ', $s->fetchColumn(); $s->nextRowset(); meet('c'); $s->nextRowset(); echo ' ', $s->fetchColumn();",
        "@ @1,@2,@3 300000 @ @-2",
    );
}

#[test]
fn transactions_and_user_variables() {
    on_mariadb(
        "$name = \"d$m\"; $db->exec(\"CREATE DATABASE $name; USE $name\"); $db->exec('CREATE TABLE t (m VARCHAR(50)) ENGINE=InnoDB'); $db->exec(\"SET @mark = '$m'\"); meet('a');
        $db->beginTransaction(); $db->prepare('INSERT INTO t VALUES (?)')->execute([$m]); meet('b'); $inside = $db->query('SELECT GROUP_CONCAT(m) FROM t')->fetchColumn(); $db->rollBack(); meet('c');
        echo $inside, $db->query('SELECT @mark')->fetchColumn(), $db->query('SELECT COUNT(*) FROM t')->fetchColumn(), $db->inTransaction() ? 'open' : '';",
        "@@0",
    );
}

#[test]
fn local_infile_failures_and_a_server_that_goes() {
    on_mariadb(
        "$file = tempnam(sys_get_temp_dir(), 'load'); file_put_contents($file, str_repeat(\"$m\\n\", 2000)); $name = \"d$m\"; $db->exec(\"CREATE DATABASE $name\"); $db->exec(\"CREATE TABLE $name.t (m VARCHAR(50))\"); meet('a');
        $db->exec(\"LOAD DATA LOCAL INFILE '$file' INTO TABLE $name.t\"); unlink($file); echo implode(' ', $db->query(\"SELECT MIN(m), COUNT(*) FROM $name.t\")->fetch(PDO::FETCH_NUM));
        try { $db->query(\"SELECT * FROM no_such.`$m`\"); } catch (PDOException $e) { echo ' ', preg_replace('/.*(42S02|42000).*/s', '$1', $e->getMessage()), str_contains($e->getMessage(), 'no_such') ? '' : '?'; }
        $id = $db->query('SELECT CONNECTION_ID()')->fetchColumn(); $t = Howdah\\go(function () use ($db, $m) { try { @$db->query('SELECT SLEEP(100)')->fetch(); return 'slept'; } catch (PDOException $e) { return \" $m \" . $e->errorInfo[1]; } });
        meet('b'); usleep(50000); (new PDO(\"mysql:host=127.0.0.1;port=$port\", 'tester', ''))->exec(\"KILL $id\"); $gone = Howdah\\await($t); echo in_array(substr($gone, -4), ['2006', '2013', '1317', '1927']) ? ' gone' : $gone;
        try { new PDO('mysql:host=127.0.0.1;port=1', 'tester', ''); } catch (PDOException $e) { echo ' ', $e->getCode(); }",
        "@ 2000 42S02 gone 2002",
    );
}

#[test]
fn mysqli_queries() {
    on_mariadb(
        "mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT); $i = new mysqli('127.0.0.1', 'tester', '', '', $port); $s = $i->prepare('SELECT SLEEP(0.05), ?'); $s->bind_param('s', $m); meet('a'); $s->execute(); $s->bind_result($zero, $back); $s->fetch(); $s->close(); echo $back;
        $i->multi_query(\"SELECT '$m'; SELECT SLEEP(0.02); SELECT 'two$m'\"); meet('b'); $all = ''; do { if ($r = $i->store_result()) { $all .= $r->fetch_row()[0] . ' '; } } while ($i->more_results() && $i->next_result()); echo ' ', $all;
        $i->query(\"SELECT SLEEP(0.1), '$m'\", MYSQLI_ASYNC); $read = $err = $rej = [$i]; meet('c'); while (!mysqli_poll($read, $err, $rej, 50)) { $read = $err = $rej = [$i]; } echo $i->reap_async_query()->fetch_row()[1];
        try { $i->query('SELECT nothing'); } catch (mysqli_sql_exception $e) { echo ' ', $e->getCode(); }",
        "@ @ 0 two@ @ 1054",
    );
}

#[test]
fn one_statement_of_each_row_to_its_reader() {
    // A connection of each request for each of many short queries, interleaved with all others.
    on_mariadb(
        "$bad = 0; for ($n = 0; $n < 40; $n++) { $back = $db->query(\"SELECT '$m.$n'\")->fetchColumn(); $bad += $back === \"$m.$n\" ? 0 : 1; } echo $bad, $m;",
        "0@",
    );
}

fn on_redis(script: &str, expected: &str) {
    let server = Server::redis(false);
    let connect = format!("$r = new Redis; $r->connect('127.0.0.1', {0}); $port = {0};", server.port);
    everyone_sees(&format!("{connect} {script}"), expected);
}

#[test]
fn redis_blocking_pops_wait_for_a_push_of_another_request() {
    on_redis(
        // Everyone pops from its own list, and pushes for the next one only when all wait.
        &format!("$n = (int) substr($m, 4); $next = 'mark' . (($n + 1) % {CROWD}) . 'end'; $t = Howdah\\go(fn () => $r->blPop([\"list$m\"], 50)); meet('a'); $other = new Redis; $other->connect('127.0.0.1', $port); pause(); $other->rPush(\"list$next\", \"to $n\"); [$list, $got] = Howdah\\await($t);
        echo $list === \"list$m\" && $got === 'to ' . (($n + {CROWD} - 1) % {CROWD}) ? $m : \"$list $got\";"),
        "@",
    );
}

#[test]
fn redis_pipelines_transactions_and_subscriptions() {
    on_redis(
        "$p = $r->multi(Redis::PIPELINE); for ($i = 0; $i < 50; $i++) { $p->set(\"$m.$i\", \"$m-$i\"); $p->get(\"$m.$i\"); } meet('a'); $all = $p->exec(); echo count($all), $all[99] === \"$m-49\" ? 'ok' : 'torn';
        $t = $r->multi(); $t->incr(\"n$m\"); pause(); $t->incr(\"n$m\"); meet('b'); echo implode($t->exec());
        $seen = ''; $sub = Howdah\\go(function () use ($m, $port, &$seen) { $s = new Redis; $s->connect('127.0.0.1', $port); $s->setOption(Redis::OPT_READ_TIMEOUT, 50); $s->subscribe([\"ch$m\"], function ($r, $ch, $text) use (&$seen) { pause(); $seen .= $text; if ($text === 'end') { $r->close(); } }); });
        meet('c'); while (($r->pubsub('numsub', [\"ch$m\"])[\"ch$m\"] ?? 0) < 1) { usleep(1000); } $r->publish(\"ch$m\", $m); $r->publish(\"ch$m\", 'end'); try { Howdah\\await($sub, 50); } catch (RedisException $e) {} echo $seen;",
        "100ok12@end",
    );
}

#[test]
fn redis_failures_and_read_timeouts() {
    on_redis(
        "$r->setOption(Redis::OPT_READ_TIMEOUT, 0.3); meet('a'); try { $r->blPop(['never'], 50); echo 'popped'; } catch (RedisException $e) { echo str_contains($e->getMessage(), 'read error') ? 'timed out' : $e->getMessage(); }
        try { $bad = new Redis; $bad->connect('127.0.0.1', 1, 1); echo 'connected'; } catch (RedisException $e) { echo ' ', $e->getMessage(); } echo ' ', $m;",
        "timed out Connection refused @",
    );
}

#[test]
fn postgresql_queries() {
    let server = Server::postgres();
    everyone_sees(
        &format!("$db = new PDO('pgsql:host=127.0.0.1;dbname=postgres;port={}', 'tester', '', [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]); meet('a'); $s = $db->prepare('SELECT ?::text, pg_sleep(0.05)'); $s->execute([$m]); echo $s->fetchColumn();
        $db->exec('CREATE TEMP TABLE t (m text)'); $db->pgsqlCopyFromArray('t', [$m, $m]); $db->beginTransaction(); $db->exec(\"INSERT INTO t VALUES ('$m')\"); meet('b'); $db->rollBack(); echo $db->query('SELECT COUNT(*) FROM t')->fetchColumn(), trim($db->pgsqlCopyToArray('t')[0]);
        $db->exec(\"LISTEN c$m\"); $t = Howdah\\go(fn () => $db->pgsqlGetNotify(PDO::FETCH_NUM, 50000)); meet('c'); $other = new PDO('pgsql:host=127.0.0.1;dbname=postgres;port={}', 'tester', ''); $other->exec(\"NOTIFY c$m\"); echo ' ', Howdah\\await($t)[0];
        try {{ new PDO('pgsql:host=127.0.0.1;port=1', 'tester', ''); }} catch (PDOException $e) {{ echo ' ', $e->getCode(); }}", server.port, server.port),
        "@2@ c@ 7",
    );
}

#[test]
fn one_connection_in_two_coroutines_is_an_error_and_stays_its_owners() {
    on_mariadb_with(
        |s| s.expect_log("is using this PDO"),
        // The first query waits for a lock, so that it is there as long as the second one is tried.
        "$holder = new PDO(\"mysql:host=127.0.0.1;port=$port\", 'tester', ''); $holder->query(\"SELECT GET_LOCK('l$m', 0)\")->fetchColumn();
        $t = Howdah\\go(fn () => $db->query(\"SELECT GET_LOCK('l$m', 100), '$m'\")->fetchColumn(1)); meet('a'); usleep(20000); try { $db->query('SELECT 1'); echo 'mixed'; } catch (Howdah\\ConcurrentUseError $e) { echo 'refused '; }
        $holder->query(\"SELECT RELEASE_LOCK('l$m')\")->fetchColumn(); echo Howdah\\await($t); echo $db->query(\"SELECT '$m'\")->fetchColumn();",
        "refused @@",
    );
}

#[test]
fn tls_to_the_database() {
    // The certificate is nobody's: with verification the handshake fails, without it the connection is encrypted.
    on_mariadb(
        "$open = fn (bool $verify) => new PDO(\"mysql:host=127.0.0.1;port=$port\", 'tester', '', [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::MYSQL_ATTR_SSL_VERIFY_SERVER_CERT => $verify, PDO::MYSQL_ATTR_SSL_CA => '/etc/ssl/certs/ca-certificates.crt']);
        meet('a'); try { @$open(true); echo 'trusted'; } catch (PDOException $e) { echo 'refused'; } $tls = $open(false); meet('b'); echo $tls->query(\"SHOW STATUS LIKE 'Ssl_cipher'\")->fetchColumn(1) ? ' encrypted ' : ' plain ', $tls->query(\"SELECT '$m'\")->fetchColumn();",
        "refused encrypted @",
    );
}

#[test]
fn mixed_work_keeps_apart() {
    let (sql, redis) = (Server::mariadb(), Server::redis(false));
    let script = format!(
        "$db = new PDO('mysql:host=127.0.0.1;port={}', 'tester', ''); $r = new Redis; $r->connect('127.0.0.1', {}); $bad = [];
        for ($i = 0; $i < 10; $i++) {{ $key = \"$m.$i\"; $r->set($key, $m); if ($db->query(\"SELECT '$key'\")->fetchColumn() !== $key) {{ $bad[] = 'sql'; }} if ($r->get($key) !== $m) {{ $bad[] = 'redis'; }} if ($_GET['m'] !== $m) {{ $bad[] = 'get'; }} ob_start(); echo $key; pause(); if (ob_get_clean() !== $key) {{ $bad[] = 'ob'; }} }}
        echo implode(',', $bad), $m;",
        sql.port, redis.port
    );
    run(
        Kind::Async,
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
