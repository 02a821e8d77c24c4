//! Async mode: what extensions keep in variables of their own. Each test is named after what requests had of each other.

use howdah_tests::at_once::{CROWD, at_once, crowd_of, everyone_sees, everyone_sees_with, marker, meeting, only_own};
use howdah_tests::servers::Server;
use howdah_tests::{Kind, Request, Response, run, script_scenario};

/// Whether a request's number is odd, in PHP.
const ODD: &str = "$odd = (int) preg_replace('/[^0-9]/', '', $m) % 2 === 1;";

/// Each has an order of its own; `current_collator` was that of whoever had begun to sort last, and could be freed.
#[test]
fn a_collator_that_sorts_objects_was_another_ones() {
    let sort = "$texts = array_map(fn ($text) => new class($text) {
            public function __construct(public string $text) {} public function __toString(): string { usleep(random_int(1, 300)); return $this->text; }
        }, ['b', 'a', 'B', 'A']);
        $collator = new Collator('en'); $collator->setAttribute(Collator::CASE_FIRST, $odd ? Collator::UPPER_FIRST : Collator::LOWER_FIRST); meet('a');
        for ($i = 0; $i < 3; $i++) { shuffle($texts); $collator->sort($texts, Collator::SORT_STRING); $got = implode(array_map(fn ($o) => $o->text, $texts)); echo $got === ($odd ? 'AaBb' : 'aAbB') ? '' : \" $got\"; } echo $m;";
    everyone_sees(&format!("{ODD} {sort}"), "@");
}

#[test]
fn the_last_error_of_intl_was_another_ones() {
    everyone_sees(
        "transliterator_create(\"no-$m\"); meet('a'); echo preg_match('/\"(no-.*)\"/', intl_get_error_message(), $found) ? $found[1] : intl_get_error_message();",
        "no-@",
    );
}

/// A client decodes what comes back with the types, classes and description that are in place then.
#[test]
fn a_soap_call_was_decoded_with_another_ones_types() {
    let client = "if (!class_exists('Waiting', false)) { class Waiting extends SoapClient {
            public function __doRequest($request, $location, $action, $version, $oneWay = false): ?string {
                meet('sent'); $m = $_GET['m']; @trigger_error(\"in $m\");
                return \"<E:Envelope xmlns:E='http://schemas.xmlsoap.org/soap/envelope/' xmlns:i='http://www.w3.org/2001/XMLSchema-instance' xmlns:o='urn:own'><E:Body><o:fResponse><return i:type='o:t'>$m</return></o:fResponse></E:Body></E:Envelope>\";
            } } }
        $client = new Waiting(null, ['location' => 'http://localhost/', 'uri' => 'urn:own', 'typemap' => [['type_ns' => 'urn:own', 'type_name' => 't',
            'from_xml' => function ($xml) use ($m) { usleep(random_int(1, 300)); return \"$m: \" . strip_tags($xml); }]]]);
        meet('a'); echo $client->f();";
    everyone_sees(client, "@: @");
}

/// The depth of what is encoded was counted together and set back by whoever was ready.
#[test]
fn a_soap_call_beside_others_was_nested_too_deep() {
    let client = "$client = new class(null, ['location' => 'http://localhost/', 'uri' => 'urn:own', 'typemap' => [['type_ns' => 'urn:own', 'type_name' => 't',
            'to_xml' => function ($value) { for ($i = 0; $i < 3; $i++) { pause(); } return \"<x>$value</x>\"; }]]]) extends SoapClient {
            public function __doRequest($request, $location, $action, $version, $oneWay = false): ?string { throw new Exception(strip_tags($request)); } };
        meet('a'); for ($i = 0; $i < 5; $i++) { try { $client->f([new SoapVar($m, null, 't', 'urn:own')]); } catch (Exception $e) { echo trim($e->getMessage()) === $m ? '.' : $e->getMessage(); } } echo $m;";
    everyone_sees(client, ".....@");
}

/// While one waited in a call, PHP's errors of all were made faults of its client.
#[test]
fn an_error_beside_a_soap_call_was_its_fault() {
    let script = "if (!class_exists('Quiet', false)) { class Quiet extends SoapClient {
            public function __doRequest($request, $location, $action, $version, $oneWay = false): ?string {
                meet('sent'); meet('failed'); return '';
            } } }
        if ($odd) { $client = new Quiet(null, ['location' => 'http://localhost/', 'uri' => 'urn:own']); $client->f(); echo $m; }
        else { meet('sent'); try { (function () { not_there(); })(); } catch (Error $e) { echo $e->getMessage() === 'Call to undefined function not_there()' ? $m : $e; }
            echo is_soap_fault($m) || use_soap_error_handler(false) ? ' handles' : ''; meet('failed'); }";
    everyone_sees(&format!("{ODD} {script}"), "@");
}

/// `pg_connect()` gives the link that it gave before for the same arguments, and functions without a link take the last one.
#[test]
fn a_link_to_postgresql_was_another_requests() {
    let server = Server::postgres();
    let connect =
        format!("$where = 'host=127.0.0.1 port={} user=tester dbname=postgres sslmode=disable';", server.port);
    everyone_sees(
        &format!(
            "{connect} meet('a'); $db = pg_connect($where); $id = pg_fetch_result(pg_query($db, 'SELECT pg_backend_pid()'), 0); Meeting::$arrived['ids'][] = $id; meet('b');
            echo count(array_unique(Meeting::$arrived['ids'])), pg_connect($where) === $db ? ' same ' : ' other '; pg_query(\"SET search_path = '$m'\"); meet('c'); echo trim(pg_fetch_result(pg_query('SHOW search_path'), 0), '\"');
            $kept = pg_pconnect($where); pg_query($kept, \"SET search_path = 'kept$m'\"); meet('d'); echo trim(pg_fetch_result(pg_query($kept, 'SHOW search_path'), 0), '\"');",
        ),
        &format!("{CROWD} same @kept@"),
    );
}

#[test]
fn a_persistent_stream_was_used_by_two() {
    everyone_sees(
        "$server = Meeting::$arrived['server'] ??= stream_socket_server('tcp://127.0.0.1:0'); $port = (int) explode(':', stream_socket_get_name($server, false))[1]; meet('a');
        $first = pfsockopen('127.0.0.1', $port); $second = stream_socket_client(\"tcp://127.0.0.1:$port\", $no, $why, 50, STREAM_CLIENT_CONNECT | STREAM_CLIENT_PERSISTENT); meet('b');
        foreach ([$first, $second] as $stream) { $name = stream_socket_get_name($stream, false); echo isset(Meeting::$arrived['names'][$name]) ? 'taken' : 'own'; Meeting::$arrived['names'][$name] = true; } echo $m;",
        "ownown@",
    );
}

#[test]
fn the_default_stream_context_was_everybodys() {
    everyone_sees_with(
        |s| s.file("default.php", "<?php stream_context_set_default(['http' => ['user_agent' => 'booted']]);"),
        "meet('a'); echo stream_context_get_options(stream_context_get_default())['http']['header'] ?? 'none'; meet('b'); stream_context_set_default(['http' => ['header' => \"X-Mark: $m\"]]); meet('c');
        echo ' ', stream_context_get_options(stream_context_get_default())['http']['header'];",
        "none X-Mark: @",
    );
}

#[test]
fn reports_of_mysqli_followed_the_last_who_set_them() {
    everyone_sees(
        &format!(
            "{ODD} $driver = new mysqli_driver(); meet('a'); mysqli_report($odd ? MYSQLI_REPORT_OFF : MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT); if ($odd) {{ @new mysqli('127.0.0.1', 'nobody', '', '', 1); }} meet('b');
            echo $driver->report_mode === ($odd ? 0 : 3) ? $m : \"mode $driver->report_mode\", mysqli_connect_errno() === ($odd ? 2002 : 0) ? '' : mysqli_connect_errno();"
        ),
        "@",
    );
}

#[test]
fn detecting_and_converting_output_used_another_ones_encodings() {
    everyone_sees(
        &format!(
            "{ODD} mb_detect_order($odd ? ['ASCII', 'UTF-8'] : ['ASCII', 'EUC-JP']); mb_http_output($odd ? 'UTF-16BE' : 'UTF-16LE'); header('Content-Type: text/html'); meet('a');
            ob_start(); ob_start('mb_output_handler'); echo 'a'; ob_flush(); meet('b'); echo 'b'; ob_end_flush(); $text = bin2hex(ob_get_clean()); header('Content-Type: text/html; charset=x');
            echo implode(mb_detect_order()) === ($odd ? 'ASCIIUTF-8' : 'ASCIIEUC-JP') ? '' : 'foreign', $text === ($odd ? '00610062' : '61006200') ? $m : $text;"
        ),
        "@",
    );
}

#[test]
fn a_callback_of_assert_was_another_requests() {
    everyone_sees_with(
        |s| {
            s.ini("zend.assertions", "1")
                .ini("assert.exception", "0")
                .ini("assert.warning", "0")
                .ini("error_reporting", "E_ALL & ~E_DEPRECATED")
        },
        "assert_options(ASSERT_CALLBACK, function () use ($m) { usleep(100); echo $m; }); meet('a'); assert(strlen($m) === 0); meet('b'); echo assert_options(ASSERT_CALLBACK) instanceof Closure ? '' : 'none';",
        "@",
    );
}

#[test]
fn errors_of_a_date_were_another_ones() {
    everyone_sees(
        &format!(
            "{ODD} date_create_from_format('Y', $odd ? 'no year' : '2020'); meet('a'); echo (date_get_last_errors()['error_count'] ?? 0) > 0 === $odd ? $m : 'foreign';"
        ),
        "@",
    );
}

#[test]
fn errors_of_openssl_were_in_one_list() {
    everyone_sees(
        &format!(
            "{ODD} if ($odd) {{ openssl_pkey_get_private(\"no key of $m\"); }} meet('a'); $n = 0; while (openssl_error_string() !== false) {{ $n++; }} echo ($n > 0) === $odd ? $m : \"$n errors\";"
        ),
        "@",
    );
}

/// One that knows no gzip got it because another one does.
fn asks_for_gzip_if_odd(number: usize, path: &str) -> Request {
    let request = Request::get(&format!("{path}?m={}", marker(number)));
    if number.is_multiple_of(2) { request } else { request.header("Accept-Encoding", "gzip") }
}

#[test]
fn ob_gzhandler_followed_the_client_of_another_request() {
    let script = "ob_start(fn ($text, $phase) => ob_gzhandler($text, $phase)); echo $m; meet('a'); ob_flush(); meet('b'); echo 'end'; ob_end_flush();";
    run(
        Kind::Async,
        |s| crowd_of(s, CROWD).php("one.php", &meeting(script)),
        |site| {
            let answers = at_once(site, CROWD, |number, _| asks_for_gzip_if_odd(number, "/one.php"));
            for (number, answer) in answers.iter().enumerate() {
                let gzip = number % 2 == 1;
                assert_eq!(answer.header("content-encoding"), gzip.then_some("gzip"), "of {number}");
                let text = if gzip { unpacked(answer) } else { answer.text() };
                assert_eq!(text, format!("{}end", marker(number)));
                if !gzip {
                    only_own(answer, number);
                }
            }
        },
    );
}

fn unpacked(answer: &Response) -> String {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&answer.body[..]), &mut text).unwrap();
    text
}

script_scenario!(
    output_compressed_by_php_follows_the_client_of_each_request,
    |s| s
        .workers(1)
        .ini("zlib.output_compression", "1")
        .php("one.php", "echo 'compressed ', str_repeat($_GET['m'], 10);"),
    |site| {
        for number in 0..6 {
            let answer = site.send(&asks_for_gzip_if_odd(number, "/one.php")).expect(200);
            let gzip = number % 2 == 1;
            assert_eq!(answer.header("content-encoding"), gzip.then_some("gzip"), "of {number}");
            let text = if gzip { unpacked(&answer) } else { answer.text() };
            assert_eq!(text, format!("compressed {}", marker(number).repeat(10)));
        }
    },
);

script_scenario!(
    what_php_remembers_of_a_file_ends_with_the_request,
    |s| s
        .workers(1)
        .file("data.txt", "12345")
        .php("one.php", "$f = __DIR__ . '/data.txt'; echo filesize($f), ' ', lstat($f)['size'];"),
    |site| {
        let file = site.place().root.join("data.txt");
        for length in [5, 7, 9] {
            std::fs::write(&file, "x".repeat(length)).unwrap();
            assert_eq!(site.get_ok("/one.php"), format!("{length} {length}"));
        }
    },
);

/// The second one to ask found what the first one had seen before it waited.
#[test]
fn what_php_remembers_of_a_file_is_the_requests_own() {
    run(
        Kind::Async,
        |s| {
            crowd_of(s, 2)
                .file("data.txt", "12345")
                .php("looks.php", &meeting("meet('both'); echo filesize(__DIR__ . '/data.txt'); meet('a'); meet('b');"))
                .php("later.php", &meeting("meet('both'); meet('a'); exec('echo 123456789 > ' . escapeshellarg(__DIR__ . '/data.txt')); echo filesize(__DIR__ . '/data.txt'); meet('b');"))
        },
        |site| {
            let answers =
                at_once(site, 2, |number, mark| Request::get(&format!("/{}.php?m={mark}", ["looks", "later"][number])));
            assert_eq!(answers[0].text(), "5");
            assert_eq!(answers[1].text(), "10");
        },
    );
}

/// Every third statement calls the function; the count had gone on with the statements of others.
#[test]
fn ticks_were_counted_together() {
    everyone_sees_with(
        |s| {
            s.library("ticks.php", "declare(ticks=3); function ticking(callable $wait) { $a = 1; $wait('a'); $b = 2; $wait('b'); $c = 3; $wait('c'); $d = 4; $e = 5; $f = 6; $g = 7; }")
        },
        "require_once __DIR__ . '/ticks.php'; $n = 0; register_tick_function(function () use (&$n) { $n++; }); ticking('meet'); echo $n, $m;",
        "3@",
    );
}

#[test]
fn a_loader_of_entities_was_everybodys() {
    let xml = "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///entity'>]><a>&e;</a>";
    everyone_sees(
        &format!(
            "{ODD} if ($odd) {{ libxml_set_external_entity_loader(function ($public, $system) use ($m) {{ usleep(100); $stream = fopen('php://memory', 'w+'); fwrite($stream, $m); rewind($stream); return $stream; }}); }} meet('a');
            $document = new DOMDocument; @$document->loadXML(\"{xml}\", LIBXML_NOENT); echo $odd ? $document->textContent : $m . $document->textContent; meet('b');"
        ),
        "@",
    );
}

/// `array_multisort()` keeps its order in a variable of PHP's, which the next call frees.
#[test]
fn sorting_several_arrays_of_objects_that_wait() {
    everyone_sees(
        &format!("{ODD} {}", "$objects = array_map(fn ($text) => new class($text) {
            public function __construct(public string $text) {} public function __toString(): string { usleep(random_int(1, 300)); return $this->text; }
        }, ['c', 'a', 'b', 'd']); $other = [3, 1, 2, 4]; meet('a'); array_multisort($objects, $odd ? SORT_DESC : SORT_ASC, $odd ? SORT_STRING : SORT_STRING | SORT_FLAG_CASE, $other); echo implode($other) === ($odd ? '4321' : '1234') ? '' : implode($other), $m;"),
        "@",
    );
}

/// The compiler asks the error handler; two that waited there put back each other's state of it.
#[test]
fn code_was_evaluated_with_the_compiler_of_another_request() {
    everyone_sees(
        "set_error_handler(function ($no, $text) { usleep(random_int(1, 2000)); return true; }); meet('a');
        for ($i = 0; $i < 3; $i++) { $f = eval(\"return new class { public function f(\\$a = 1, \\$b) { return '$m'; } public function g() { return \" . str_repeat('1 + ', random_int(0, 50)) . \"1; } };\"); echo $f->f(0, 0) === $m && $f->g() > 0 ? '' : 'foreign'; } echo $m;",
        "@",
    );
}

#[test]
fn a_class_is_linked_while_the_error_handler_waits() {
    everyone_sees_with(
        |s| (0..CROWD).fold(s, |s, n| {
            s.library(&format!("late{n}.php"), &format!("if (true) {{ class Base{n} {{ public function count(): int {{ return {n}; }} }} }} if (true) {{ class Late{n} extends ArrayObject {{ public function offsetGet($x) {{ return 'x'; }} public function getIterator() {{ return parent::getIterator(); }} }} }}"))
        }),
        "$n = (int) preg_replace('/[^0-9]/', '', $m); $seen = []; set_error_handler(function ($no, $text) use (&$seen) { usleep(random_int(1, 2000)); $seen[] = $text; return true; }); meet('a');
        require_once __DIR__ . \"/late$n.php\"; $class = \"Late$n\"; echo (new $class([1]))['y'], count($seen), count(preg_grep(\"/Late$n::/\", $seen)), $m;",
        "x22@",
    );
}

/// What is printed by `highlight_string()` may wait in a buffer's callback.
#[test]
fn code_was_highlighted_with_the_scanner_of_another_request() {
    everyone_sees(
        "$out = ''; meet('a'); ob_start(function ($text) use (&$out) { usleep(random_int(1, 200)); $out .= $text; return ''; }, 1); highlight_string(\"<?php echo '$m'; // $m\\n function f(\\$a) { return 1; }\"); ob_end_clean(); echo substr_count($out, $m), $m;",
        "2@",
    );
}
