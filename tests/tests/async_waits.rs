//! Async mode: every kind of wait lets the other requests run, and gives what it gives in classic mode.

use howdah_tests::at_once::{CROWD, at_once, crowd_of, everyone_sees, everyone_sees_with, marker, meeting, only_own};
use howdah_tests::{Kind, Request, Setup, run};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Barrier};

/// What everyone does between two meetings takes time: all have entered before the first one leaves.
fn all_wait_together(wait: &str) {
    // The count is of those inside; nobody leaves the crowd before the last one is in. If the wait held up the others,
    // the first one would wait in vain.
    everyone_sees(
        &format!(
            "Meeting::$arrived['in'] = (Meeting::$arrived['in'] ?? 0) + 1;
            for ($turn = 0; $turn === 0 || Meeting::$arrived['in'] < {CROWD} && $turn < 150; $turn++) {{ {wait} }}
            echo $m, Meeting::$arrived['in'];"
        ),
        &format!("@{CROWD}"),
    );
}

#[test]
fn fifty_sleepers_at_once() {
    let script = "static $in = 0; $in++; for ($turn = 0; $in < 50 && $turn < 150; $turn++) { usleep(300000); } echo $m, ' ', $in;";
    run(
        Kind::Async,
        |s| crowd_of(s, 50).php("one.php", &meeting(script)),
        |site| {
            let answers = at_once(site, 50, |_, mark| Request::get(&format!("/one.php?m={mark}")));
            for (number, answer) in answers.iter().enumerate() {
                only_own(answer, number);
                assert_eq!(answer.text(), format!("{} 50", marker(number)), "all were in before one left");
            }
        },
    );
}

#[test]
fn every_way_to_sleep() {
    // A time that has passed before the call is a warning, which is not what this is about.
    let until = "@time_sleep_until(microtime(true) + 0.3);";
    for wait in ["usleep(300000);", "sleep(1);", "time_nanosleep(0, 300000000);", until] {
        all_wait_together(wait);
    }
}

#[test]
fn sleeping_wrongly_fails_as_ever() {
    everyone_sees(
        "meet('a'); foreach (['sleep', 'usleep'] as $f) { try { $f(-1); echo 'slept'; } catch (ValueError $e) { echo 'V'; } }
        try { time_nanosleep(0, 2000000000); echo 'slept'; } catch (ValueError $e) { echo 'V'; } echo var_export(@time_sleep_until(1), true), $m;",
        "VVVfalse@",
    );
}

/// A server that answers a connection's line only when `crowd` connections have sent theirs: no client gets its answer
/// unless all of them wait at once. The answer to `line` is `answer(line)`; then the connection closes.
fn meeting_server(crowd: usize, answer: fn(&str) -> Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let barrier = Arc::new(Barrier::new(crowd));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let barrier = barrier.clone();
            std::thread::spawn(move || serve_line(stream, &barrier, answer));
        }
    });
    port
}

fn serve_line(mut stream: TcpStream, barrier: &Barrier, answer: fn(&str) -> Vec<u8>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    if reader.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    // An HTTP request has more lines, and perhaps a body.
    if first.contains(" HTTP/1.") {
        let mut length = 0;
        let mut line = String::new();
        while reader.read_line(&mut line).unwrap_or(0) > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        let mut body = vec![0; length];
        let _ = reader.read_exact(&mut body);
    }
    barrier.wait();
    let _ = stream.write_all(&answer(first.trim()));
}

fn echo_line(line: &str) -> Vec<u8> {
    format!("got {line}\n").into_bytes()
}

/// Answers `GET /MARK` with 200 and chunks of the mark.
fn http_answer(line: &str) -> Vec<u8> {
    let path = line.split(' ').nth(1).unwrap_or("/").trim_start_matches('/').to_owned();
    let chunk = format!("{:x}\r\n{path} \r\n", path.len() + 1);
    format!(
        "HTTP/1.1 200 OK\r\nX-Path: {path}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{}0\r\n\r\n",
        chunk.repeat(3)
    )
    .into_bytes()
}

fn with_server(answer: fn(&str) -> Vec<u8>, script: &str, expected: &str) {
    let port = meeting_server(CROWD, answer);
    everyone_sees(&script.replace("PORT", &port.to_string()), expected);
}

#[test]
fn tcp_streams() {
    with_server(
        echo_line,
        "$s = stream_socket_client('tcp://127.0.0.1:PORT'); fwrite($s, \"$m\\n\"); echo trim(fgets($s)), feof($s) || fgets($s) === false ? ' end' : ' more';",
        "got @ end",
    );
}

#[test]
fn fsockopen_by_name() {
    with_server(
        echo_line,
        "$s = fsockopen('localhost', PORT); fwrite($s, \"$m\\n\"); echo stream_get_contents($s);",
        "got @\n",
    );
}

#[test]
fn a_stream_that_times_out_says_so() {
    let port = meeting_server(CROWD + 1, echo_line);
    everyone_sees(
        &format!(
            "$s = stream_socket_client('tcp://127.0.0.1:{port}'); stream_set_timeout($s, 0, 300000); fwrite($s, \"$m\\n\"); meet('a'); $line = fgets($s); echo var_export($line, true), stream_get_meta_data($s)['timed_out'] ? ' timed out ' : ' other ', $m;"
        ),
        "false timed out @",
    );
}

#[test]
fn a_refused_connection_says_so() {
    let port = howdah_tests::site::free_port();
    everyone_sees(
        &format!(
            "meet('a'); $s = @stream_socket_client('tcp://127.0.0.1:{port}', $no, $text, 50); echo var_export($s, true), \" $no $text $m\";"
        ),
        "false 111 Connection refused @",
    );
}

#[test]
fn http_streams() {
    with_server(
        http_answer,
        "echo file_get_contents(\"http://127.0.0.1:PORT/$m\"), implode(preg_grep('/X-Path/', $http_response_header));",
        "@ @ @ X-Path: @",
    );
}

#[test]
fn unix_and_datagram_sockets() {
    everyone_sees(
        "[$a, $b] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0); $reader = Howdah\\go(function () use ($a) { return fgets($a); });
        meet('a'); fwrite($b, \"$m\\n\"); echo trim(Howdah\\await($reader));
        $server = stream_socket_server('udp://127.0.0.1:0', $no, $text, STREAM_SERVER_BIND); $reader = Howdah\\go(fn () => stream_socket_recvfrom($server, 100));
        meet('b'); $client = stream_socket_client('udp://' . stream_socket_get_name($server, false)); fwrite($client, $m); echo Howdah\\await($reader);",
        "@@",
    );
}

#[test]
fn a_server_and_its_client_in_one_request() {
    everyone_sees(
        "$server = stream_socket_server('tcp://127.0.0.1:0'); $task = Howdah\\go(function () use ($server) { $c = stream_socket_accept($server, 50); $line = fgets($c); fwrite($c, \"hello $line\"); });
        meet('a'); $c = stream_socket_client('tcp://' . stream_socket_get_name($server, false)); fwrite($c, \"$m\\n\"); echo trim(fgets($c)); Howdah\\await($task);",
        "hello @",
    );
}

#[test]
fn stream_select_waits_for_others() {
    let script = "$pairs = array_map(fn () => stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0), ['x' => 0, 'y' => 0, 'z' => 0]);
        Howdah\\go(function () use ($pairs, $m) { meet('all select'); pause(); fwrite($pairs['y'][1], \"$m\\n\"); });
        $r = array_map(fn ($p) => $p[0], $pairs); $w = $e = null; $n = stream_select($r, $w, $e, null); echo $n, implode(',', array_keys($r)), trim(fgets($pairs['y'][0]));
        $r = [$pairs['x'][0]]; $w = [$pairs['z'][0]]; $e = []; echo ' ', stream_select($r, $w, $e, 50), count($r), count($w);
        $r = [$pairs['x'][0]]; $w = null; echo ' ', stream_select($r, $w, $e, 0, 20000), count($r); meet('b');
        fwrite($pairs['x'][1], \"1\\n2\\n\"); fgets($pairs['x'][0]); $r = [$pairs['x'][0]]; $w = null; echo ' ', stream_select($r, $w, $e, null), trim(fgets($pairs['x'][0]));";
    everyone_sees(script, "1y@ 101 00 12");
}

#[test]
fn a_stream_closed_by_another_coroutine_wakes_its_reader() {
    everyone_sees(
        "[$a, $b] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0); $task = Howdah\\go(fn () => fgets($a)); meet('a'); stream_socket_shutdown($b, STREAM_SHUT_RDWR); echo var_export(Howdah\\await($task), true), $m;",
        "false@",
    );
}

#[test]
fn sockets_extension() {
    everyone_sees(
        "if (!function_exists('socket_create_pair')) { echo \"$m$m\"; return; } socket_create_pair(AF_UNIX, SOCK_STREAM, 0, $p);
        $task = Howdah\\go(fn () => socket_read($p[0], 100)); meet('a'); socket_write($p[1], $m); echo Howdah\\await($task);
        $r = [$p[0]]; $w = $e = null; Howdah\\go(function () use ($p, $m) { meet('b'); socket_write($p[1], $m); }); socket_select($r, $w, $e, null); echo socket_read($r[0], 100);",
        "@@",
    );
}

#[test]
fn curl_easy() {
    with_server(
        http_answer,
        "$c = curl_init(\"http://127.0.0.1:PORT/$m\"); $seen = ''; curl_setopt($c, CURLOPT_HEADERFUNCTION, function ($c, $line) use (&$seen) { pause(); $seen .= str_starts_with($line, 'X-Path') ? trim($line) : ''; return strlen($line); });
        curl_setopt($c, CURLOPT_WRITEFUNCTION, function ($c, $data) { usleep(500); echo $data; return strlen($data); }); curl_exec($c); echo $seen, curl_getinfo($c, CURLINFO_RESPONSE_CODE), curl_error($c);",
        "@ @ @ X-Path: @200",
    );
}

#[test]
fn curl_posts_by_name() {
    with_server(
        http_answer,
        "$c = curl_init(\"http://localhost:PORT/$m\"); curl_setopt_array($c, [CURLOPT_RETURNTRANSFER => true, CURLOPT_POSTFIELDS => $m]); echo curl_exec($c), curl_error($c);",
        "@ @ @ ",
    );
}

#[test]
fn curl_multi() {
    let port = meeting_server(CROWD * 2, http_answer);
    everyone_sees(
        &format!("$multi = curl_multi_init(); $all = []; foreach ([1, 2] as $i) {{ $all[] = $c = curl_init(\"http://127.0.0.1:{port}/$m\"); curl_setopt($c, CURLOPT_RETURNTRANSFER, true); curl_multi_add_handle($multi, $c); }}
        do {{ curl_multi_exec($multi, $running); if ($running) {{ curl_multi_select($multi, 5); }} }} while ($running); foreach ($all as $c) {{ echo curl_multi_getcontent($c); }}"),
        "@ @ @ @ @ @ ",
    );
}

#[test]
fn curl_failures_and_exceptions() {
    let port = meeting_server(CROWD, http_answer);
    let closed = howdah_tests::site::free_port();
    everyone_sees(
        &format!("$c = curl_init('http://127.0.0.1:{closed}/'); curl_setopt($c, CURLOPT_RETURNTRANSFER, true); meet('a'); echo var_export(curl_exec($c), true), curl_errno($c);
        $c = curl_init(\"http://127.0.0.1:{port}/$m\"); curl_setopt($c, CURLOPT_WRITEFUNCTION, function () use ($m) {{ pause(); throw new Exception($m); }}); try {{ curl_exec($c); }} catch (Exception $e) {{ echo $e->getMessage(); }}"),
        "false7@",
    );
}

#[test]
fn a_curl_timeout_holds() {
    let port = meeting_server(CROWD + 1, http_answer);
    everyone_sees(
        &format!(
            "$c = curl_init(\"http://127.0.0.1:{port}/$m\"); curl_setopt($c, CURLOPT_TIMEOUT_MS, 400); curl_setopt($c, CURLOPT_RETURNTRANSFER, true); meet('a'); echo var_export(curl_exec($c), true), curl_errno($c), $m;"
        ),
        "false28@",
    );
}

#[test]
fn names_are_resolved_beside_other_requests() {
    everyone_sees_with(
        // Where nobody answers for unknown names, that takes seconds for each.
        |s| s.env("RES_OPTIONS", "timeout:1 attempts:1"),
        "meet('a'); echo gethostbyname('localhost'), ' ', gethostbyname('127.0.0.1'), ' ', json_encode(array_unique(gethostbynamel('localhost'))), ' ', gethostbyname('no such name'), ' ', json_encode(@gethostbynamel('no-such-name.invalid')), $m;
        $s = @fsockopen('no-such-name.invalid', 80, $no, $text, 5); echo ' ', json_encode([$s, $no, str_contains($text, 'getaddrinfo')]);",
        "127.0.0.1 127.0.0.1 [\"127.0.0.1\"] no such name false@ [false,0,true]",
    );
}

#[test]
fn processes() {
    let script = "meet('a'); exec(\"sleep 0.05; echo $m; exit 3\", $lines, $status); echo implode($lines), $status, ' ', trim(shell_exec(\"echo sh $m\")), ' ';
        ob_start(); system(\"echo sys $m\", $status); passthru('printf raw; exit 4', $second); echo trim(ob_get_clean()), \"$status$second \";
        $p = popen(\"cat > /dev/null; exit 5\", 'w'); fwrite($p, $m); echo pclose($p), ' '; $p = popen(\"echo $m\", 'r'); echo trim(fgets($p)), pclose($p);";
    everyone_sees(script, "@3 sh @ sys @\nraw04 5 @0");
}

#[test]
fn processes_run_at_once() {
    // Each child waits for a file that the last request makes.
    let script = "$dir = dirname(__DIR__) . '/marks'; Howdah\\go(function () use ($dir) { meet('children run'); touch(\"$dir/go\"); });
        echo shell_exec(\"while ! test -e $dir/go; do sleep 0.02; done; echo $m\");";
    everyone_sees(script, "@\n");
}

#[test]
fn big_pipes_in_both_directions() {
    let script = "$p = proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes); $data = str_repeat($m, 60000); meet('a');
        $writer = Howdah\\go(function () use ($pipes, $data) { fwrite($pipes[0], $data); fclose($pipes[0]); }); $back = stream_get_contents($pipes[1]); Howdah\\await($writer);
        $closer = Howdah\\go(fn () => proc_close($p)); echo $back === $data ? 'same' : strlen($back), Howdah\\await($closer), $m;";
    everyone_sees(script, "same0@");
}

#[test]
fn children_of_scripts_really_block() {
    everyone_sees("meet('a'); echo trim(shell_exec('php -n -r \"usleep(1000); echo 7;\" 2>&1')), $m;", "7@");
}

#[test]
fn file_locks() {
    let script = "$f = fopen(dirname(__DIR__) . '/marks/lock', 'c+'); meet('a'); flock($f, LOCK_EX); $n = (int) stream_get_contents($f); pause(); rewind($f); fwrite($f, (string) ($n + 1)); fflush($f);
        $other = fopen(dirname(__DIR__) . '/marks/lock', 'c+'); echo var_export(flock($other, LOCK_EX | LOCK_NB, $would), true), $would; if ($n % 2) { flock($f, LOCK_UN); } fclose($f); unset($other); meet('b');
        echo ' ', file_get_contents(dirname(__DIR__) . '/marks/lock'), $m;";
    everyone_sees(script, &format!("false1 {CROWD}@"));
}

#[test]
fn appending_under_a_lock() {
    let script = "$f = dirname(__DIR__) . '/marks/log'; meet('a'); for ($i = 0; $i < 20; $i++) { file_put_contents($f, \"$m\\n\", FILE_APPEND | LOCK_EX); } meet('b'); echo substr_count(file_get_contents($f), $m), ' ', count(file($f)), $m;";
    everyone_sees(script, &format!("20 {}@", CROWD * 20));
}

#[test]
fn sqlite_writers_wait_for_each_other() {
    let script = "$db = new PDO('sqlite:' . dirname(__DIR__) . '/marks/db'); $db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION); $db->exec('PRAGMA busy_timeout = 50000; CREATE TABLE IF NOT EXISTS t (m TEXT)');
        meet('a'); $db->exec('BEGIN IMMEDIATE'); $n = $db->query('SELECT COUNT(*) FROM t')->fetchColumn(); pause(); $db->exec(\"INSERT INTO t VALUES ('$m')\"); $after = $db->query('SELECT COUNT(*) FROM t')->fetchColumn(); $db->exec('COMMIT'); meet('b');
        echo $after - $n, ' ', $db->query('SELECT COUNT(*) FROM t')->fetchColumn(), $db->query(\"SELECT m FROM t WHERE m = '$m'\")->fetchColumn();";
    everyone_sees(script, &format!("1 {CROWD}@"));
}

#[test]
fn waits_inside_of_callbacks() {
    let script = "$list = range(1, 9); shuffle($list); usort($list, function ($a, $b) { usleep(random_int(1, 300)); return $a <=> $b; }); echo implode($list);
        meet('a'); $marks = ['b' => $m, 'a' => $m]; uksort($marks, function ($a, $b) { pause(); return strcmp($a, $b); }); array_walk($marks, function (&$v, $k) { pause(); $v = \"$k$v\"; }); echo ' ', implode($marks);
        meet('b'); echo ' ', preg_replace_callback('/[0-9]+/', function ($d) { pause(); return preg_replace_callback('/[0-9]/', function ($x) { pause(); return $x[0]; }, $d[0]); }, $m);
        meet('c'); echo ' ', implode(array_map(function ($x) use ($m) { pause(); return $x; }, [$m, 2])), array_reduce([1, 2], function ($c, $x) { pause(); return $c + $x; }), implode(array_filter([0, 1, 2], function ($x) { pause(); return $x; }));
        $list = [3, 1, 2]; meet('d'); foreach ($list as &$item) { pause(); $item *= 2; } unset($item); echo ' ', implode(',', $list);";
    everyone_sees(script, "123456789 a@b@ @ @2312 6,2,4");
}

#[test]
fn serialising_with_waits() {
    let library = "class Slow { public $m; public $again; function __sleep() { usleep(random_int(1, 2000)); return ['m', 'again']; } function __wakeup() { usleep(random_int(1, 2000)); } }
        class Newer implements JsonSerializable { public function __construct(public $m = '', public $in = null) {} function __serialize(): array { pause(); return [$this->m, serialize($this->in)]; } function __unserialize(array $d): void { pause(); $this->m = $d[0]; $this->in = unserialize($d[1]); } function jsonSerialize(): mixed { pause(); return [$this->m]; } }";
    everyone_sees_with(
        |s| s.library("slow.php", library),
        "require_once __DIR__ . '/slow.php'; $a = new Slow; $a->m = $m; $a->again = $a; meet('a'); $text = serialize([$a, $a, new Newer($m, $a)]); meet('b'); $back = unserialize($text);
        meet('c'); echo $back[0] === $back[1] && $back[0]->again === $back[0] && $back[2]->in->again === $back[2]->in ? $back[0]->m . $back[2]->m . $back[2]->in->m : 'torn', json_encode([new Newer($m), $a->m]);",
        "@@@[[\"@\"],\"@\"]",
    );
}

#[test]
fn generators_iterators_and_fibers() {
    let script = "$count = function () use ($m) { for ($i = 0; $i < 3; $i++) { pause(); $got = yield $i => $m; if ($got) { echo $got; } } return 'r'; };
        $g = $count(); foreach ($g as $k => $v) { usleep(200); echo $k, $v; } echo $g->getReturn(), ' '; meet('a'); $outer = (function () use ($count) { $r = yield from $count(); yield 9 => $r; })(); foreach ($outer as $k => $v) { pause(); echo $k, $v; }
        meet('b'); $fiber = new Fiber(function ($x) use ($m) { usleep(500); $y = Fiber::suspend($x . $m); meet('in a fiber'); $z = Fiber::suspend($y); pause(); return $z; });
        echo ' ', $fiber->start('f'), $fiber->resume('y'), ' '; $fiber->resume('z'); echo $fiber->getReturn(), $fiber->isTerminated() ? 1 : 0;
        $bad = new Fiber(function () use ($m) { pause(); throw new Exception($m); }); try { $bad->start(); } catch (Exception $e) { echo ' ', $e->getMessage(); }";
    everyone_sees(script, "0@1@2@r 0@1@2@9r f@y z1 @");
}

#[test]
fn one_class_asked_for_by_all_at_once() {
    everyone_sees_with(
        |s| s.library("Lazy.php", "class Lazy { public static function get($m) { usleep(300); return $m; } }"),
        "spl_autoload_register($loader = function ($c) { usleep(2000); if ($c === 'Lazy') { require_once __DIR__ . '/Lazy.php'; } }); meet('a'); echo Lazy::get($m), class_exists('Lazy2') ? 'what' : '', is_callable(['Lazy', 'get']) ? 1 : 0;",
        "@1",
    );
}

#[test]
fn destructors_that_wait() {
    let library = "class Ends { public $self; function __construct(public $m) {} function __destruct() { usleep(random_int(1, 2000)); echo \"~$this->m\"; for ($i = 0; $i < 100; $i++) { $GLOBALS[\"made in the end $i\"] = $this->m; } } }";
    everyone_sees_with(
        |s| s.library("ends.php", library),
        "require_once __DIR__ . '/ends.php'; $a = new Ends($m); meet('a'); unset($a); meet('b'); for ($i = 0; $i < 3; $i++) { $c = new Ends($m); $c->self = $c; unset($c); } ob_start(); gc_collect_cycles(); ob_end_clean(); meet('c'); $at_end = new Ends($m); $GLOBALS['global_end'] = new Ends($m); (function () use ($m) { global $referred; $referred = new Ends($m); })(); echo '.';",
        "~@.~@~@~@",
    );
}

#[test]
fn tls_servers_and_clients() {
    // Each request is both ends of its own connection; the certificate is made once and verified by the client.
    let script = "$pem = dirname(__DIR__) . '/marks/cert.pem';
        $server = stream_socket_server('tcp://127.0.0.1:0', $no, $text, STREAM_SERVER_BIND | STREAM_SERVER_LISTEN, stream_context_create(['ssl' => ['local_cert' => $pem]]));
        $task = Howdah\\go(function () use ($server, $m) { $c = stream_socket_accept($server, 50); stream_set_blocking($c, true); if (@stream_socket_enable_crypto($c, true, STREAM_CRYPTO_METHOD_TLS_SERVER)) { $line = fgets($c); usleep(1000); fwrite($c, \"hello $line\"); } fclose($c); });
        $address = substr(strrchr(stream_socket_get_name($server, false), ':'), 1); meet('a');
        $verify = ['cafile' => isset($_GET['bad']) ? null : $pem, 'peer_name' => 'async.test', 'verify_peer' => true]; if (isset($_GET['bad'])) { unset($verify['cafile']); }
        $c = @stream_socket_client(\"ssl://127.0.0.1:$address\", $no, $text, 50, STREAM_CLIENT_CONNECT, stream_context_create(['ssl' => $verify]));
        if ($c) { fwrite($c, \"$m\\n\"); echo trim(fgets($c)), ' ', stream_get_meta_data($c)['crypto']['protocol'] ? 'tls' : ''; } else { echo \"refused $m\"; } Howdah\\await($task);";
    run(
        Kind::Async,
        |s| crowd_of(s, CROWD).php("one.php", &meeting(script)),
        |site| {
            make_certificate(&site.place().top.join("marks"));
            let answers = at_once(site, CROWD, |number, mark| {
                Request::get(&format!("/one.php?m={mark}{}", if number % 3 == 2 { "&bad" } else { "" }))
            });
            for (number, answer) in answers.iter().enumerate() {
                only_own(answer, number);
                let mark = marker(number);
                let expected = if number % 3 == 2 { format!("refused {mark}") } else { format!("hello {mark} tls") };
                assert_eq!(answer.text(), expected);
            }
        },
    );
}

fn make_certificate(directory: &std::path::Path) {
    let pem = directory.join("cert.pem");
    let made = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=async.test"])
        .args(["-addext", "subjectAltName=DNS:async.test", "-keyout", "-", "-out", "-"])
        .output()
        .unwrap_or_else(|e| panic!("openssl: {e}"));
    assert!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
    std::fs::write(pem, made.stdout).unwrap();
}

/// Many coroutines in one request, beside others.
#[test]
fn ten_thousand_coroutines_give_their_memory_back() {
    let script = "$rss = fn () => (int) preg_replace('/.*VmRSS:\\s*([0-9]+).*/s', '$1', file_get_contents('/proc/self/status'));
        $n = (int) $_GET['n']; $tasks = []; for ($i = 0; $i < $n; $i++) { $tasks[] = Howdah\\go(function () use ($i) { usleep(100000); return $i; }); }
        $sum = array_sum(array_map(fn ($t) => Howdah\\await($t), $tasks)); unset($tasks); echo $sum === $n * ($n - 1) / 2 ? $m : 'wrong', ' ', $rss(), ' ', memory_get_usage();";
    run(
        Kind::Async,
        |s: Setup| crowd_of(s, CROWD).ini("memory_limit", "512M").php("one.php", &meeting(script)),
        |site| {
            let numbers = |text: &str| text.split(' ').skip(1).map(|n| n.parse().unwrap()).collect::<Vec<u64>>();
            let before = numbers(&site.get_ok("/one.php?m=mark1end&n=10"));
            for (number, answer) in
                at_once(site, 10, |_, mark| Request::get(&format!("/one.php?m={mark}&n=1000"))).iter().enumerate()
            {
                assert_eq!(answer.status, 200, "{}", answer.text());
                only_own(answer, number);
            }
            // Freed at the end of their requests at the latest.
            let after = numbers(&site.get_ok("/one.php?m=mark1end&n=10"));
            assert!(after[0] < before[0] + 60_000, "KiB resident: {} before, {} after", before[0], after[0]);
            assert!(after[1] < before[1] + 3_000_000, "bytes of PHP: {} before, {} after", before[1], after[1]);
        },
    );
}

/// The process had waited for a lock that one of its own requests held, in a destructor.
#[test]
fn destructors_wait_for_locks_of_other_requests() {
    everyone_sees_with(
        |s| {
            s.library("locks.php", "class Locks { function __construct(public $m) {} function __destruct() { $f = fopen(dirname(__DIR__) . '/marks/lock', 'c+'); flock($f, LOCK_EX); usleep(2000); echo \"locked $this->m\"; } }")
        },
        "require_once __DIR__ . '/locks.php'; $l = new Locks($m); meet('a'); unset($l); echo '.';",
        "locked @.",
    );
}

/// Where nothing can wait, a lock of another request of the same process could never be had: the call fails.
#[test]
fn a_lock_in_an_autoloader_that_another_request_holds() {
    run(
        Kind::Async,
        |s| {
            crowd_of(s, CROWD)
                .php("hold.php", "require_once 'gate.php'; $f = fopen(dirname(__DIR__) . '/marks/lock', 'c+'); flock($f, LOCK_EX); gate('g'); echo 'held';")
                .php("want.php", "spl_autoload_register($load = function ($c) { $f = fopen(dirname(__DIR__) . '/marks/lock', 'c+'); echo var_export(flock($f, LOCK_EX), true); });
                    class_exists('Nothing'); spl_autoload_unregister($load); $f = fopen(dirname(__DIR__) . '/marks/other', 'c+'); echo var_export(flock($f, LOCK_EX), true);")
        },
        |site| {
            let gate = site.gate("g");
            let mut holder = site.conn();
            holder.send(Request::get("/hold.php").bytes());
            let held = gate.wait();
            assert_eq!(site.get_ok("/want.php"), "falsetrue");
            held.release();
            assert_eq!(holder.response("GET").text(), "held");
            assert_eq!(site.get_ok("/want.php"), "truetrue");
        },
    );
}

/// As stock PHP does, with the same message.
#[test]
fn select_refuses_high_descriptors() {
    let script = "$held = []; for ($i = 0; $i < 1100; $i++) { $held[] = fopen('/dev/null', 'r'); } $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        fwrite($pair[0], 'x'); $r = [$pair[1]]; $w = $e = null; echo var_export(@stream_select($r, $w, $e, 1), true), ' ', preg_replace('/[0-9]+/', 'N', error_get_last()['message'] ?? 'no error');";
    // As many as the system lets the server have, which inherits it.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let all = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, all).unwrap();
    if limit.maximum.is_some_and(|n| n < 1200) {
        eprintln!("not run: no process may have so many descriptors here");
        return;
    }
    let mut said = Vec::new();
    for kind in [Kind::Classic, Kind::Async] {
        run(kind, |s| s.workers(1).php("one.php", script), |site| said.push(site.get_ok("/one.php")));
    }
    assert_eq!(said[0], said[1]);
    assert!(said[0].contains("FD_SETSIZE"), "{}", said[0]);
}

#[test]
fn the_audit_says_where_a_call_blocks() {
    run(
        Kind::Async,
        |s| {
            crowd_of(s, CROWD).ini("howdah.audit", "1").php(
                "one.php",
                "spl_autoload_register($load = function ($c) {\nusleep(10); });\nclass_exists('Nothing');\nspl_autoload_unregister($load); usleep(10); echo 'ok';",
            )
        },
        |site| {
            assert_eq!(site.get_ok("/one.php"), "ok");
            assert_eq!(site.get_ok("/one.php"), "ok");
            let log = site.log();
            assert_eq!(log.matches("a call may block the process").count(), 1, "{log}");
            assert!(log.contains("/one.php:3"), "{log}");
        },
    );
}

/// How long it takes is the script's choice: what is asserted is that it is noticed, and where.
#[test]
fn the_audit_says_what_held_the_process() {
    run(
        Kind::Async,
        |s| {
            crowd_of(s, CROWD).ini("howdah.audit", "1").php(
                "one.php",
                "usleep(10);\nspl_autoload_register($load = function () { usleep(60000); }); class_exists('Nothing'); spl_autoload_unregister($load);\nusleep(10);
                $used = fn () => ($u = getrusage())['ru_utime.tv_sec'] * 1e6 + $u['ru_utime.tv_usec']; $until = $used() + 60000; while ($used() < $until) {}\nusleep(10); usleep(10); echo 'ok';",
            )
        },
        |site| {
            let lines = |what: &str, from: &str, to: &str| -> Vec<String> {
                let places = (format!("/{from} and "), format!("/{to} "));
                let log = site.log();
                let found = log.lines().filter(|l| l.contains("audit: the process") && l.contains(what));
                found.filter(|l| l.contains(&places.0) && l.contains(&places.1)).map(str::to_owned).collect()
            };
            let held = [("stood still", "one.php:2", "one.php:4"), ("computed", "one.php:4", "one.php:6")];
            // Whoever computes may have to wait for a page and then for the processor: that is standing still for once.
            let seen = (0..20).any(|_| {
                assert_eq!(site.get_ok("/one.php"), "ok");
                held.iter().all(|(what, from, to)| !lines(what, from, to).is_empty())
            });
            assert!(seen, "{}", site.log());
            assert_eq!(site.get_ok("/one.php"), "ok");
            for (what, from, to) in held {
                let lines = lines(what, from, to);
                assert_eq!(lines.len(), 1, "{lines:?}");
                assert!(lines[0].ends_with("label=\"GET /one.php\""), "{lines:?}");
            }
        },
    );
}
