//! Async mode: what belongs to one request is still its own after others have run while it waited.

use howdah_tests::at_once::{CROWD, at_once, crowd_of, everyone_sees, everyone_sees_with, marker, meeting, only_own};
use howdah_tests::process::eventually;
use howdah_tests::{Kind, Part, Request, multipart, run};
use std::time::Duration;

#[test]
fn superglobals_before_and_after_a_wait() {
    let script = "$look = fn () => json_encode([$_GET, $_POST, $_COOKIE, $_REQUEST, $_SERVER['QUERY_STRING'], $_SERVER['HTTP_X_MARK'],
            array_map(fn ($f) => [$f['name'], md5_file($f['tmp_name'])], $_FILES), $_SERVER['REQUEST_URI'], getallheaders()['X-Mark'], getenv('HTTP_X_MARK')]);
        $before = $look(); meet('a'); $after = $look(); $_GET['own'] = $_SERVER['own'] = $_POST['own'] = $m; meet('b');
        echo $before === $after ? $after : \"$before is not $after\", ' ', $_GET['own'], $_SERVER['own'], $_POST['own'];";
    run(
        Kind::Async,
        |s| crowd_of(s, CROWD).php("one.php", &meeting(script)),
        |site| {
            let answers = at_once(site, CROWD, |_, mark| {
                let parts = [
                    Part { name: "p", file: None, content: mark.as_bytes() },
                    Part { name: "f", file: Some((mark, "text/plain")), content: mark.as_bytes() },
                ];
                let request = multipart(&format!("/one.php?m={mark}"), &parts);
                request.header("Cookie", &format!("c={mark}")).header("X-Mark", mark)
            });
            for (number, answer) in answers.iter().enumerate() {
                let (mark, text) = (marker(number), answer.text());
                only_own(answer, number);
                // Get, post and cookie; request; query, header, file, URI, header, environment; and what it wrote.
                assert_eq!((answer.status, text.matches(&mark).count()), (200, 3 + 2 + 6 + 3), "{text}");
                assert!(!text.contains("is not"), "{text}");
            }
        },
    );
}

#[test]
fn a_superglobal_that_another_requests_code_is_the_first_to_name() {
    let library = "function named($own) { $_REQUEST['own'] ??= $own; return $_REQUEST['m'] . $_REQUEST['own']; }";
    everyone_sees_with(
        |s| s.library("named.php", library),
        "meet('a'); require_once __DIR__ . '/named.php'; meet('b'); echo named($m); meet('c'); echo named('another');",
        "@@@@",
    );
}

#[test]
fn the_global_scope() {
    let library = "function set_it($v) { global $marked; $marked = $v; $GLOBALS['other'] = [$v]; }
        function get_it() { global $marked; return $marked . $GLOBALS['other'][0] . (isset($GLOBALS['later']) ? 'foreign' : ''); }";
    everyone_sees_with(
        |s| s.library("global.php", library),
        "require_once __DIR__ . '/global.php'; set_it($m); meet('a'); echo get_it(); meet('b'); $GLOBALS['later'] = 1; $GLOBALS['marked'] .= '!'; meet('c'); echo get_it() === $m . '!' . $m . 'foreign' ? ' same' : ' other';",
        "@@ same",
    );
}

#[test]
fn the_request_body_as_a_stream() {
    let script = "$in = fopen('php://input', 'r'); $first = fread($in, 9); meet('a'); $rest = stream_get_contents($in); meet('b');
        echo md5($first . $rest), ' ', md5(file_get_contents('php://input')), ' ', substr_count($first . $rest, $m), $m;";
    run(
        Kind::Async,
        |s| crowd_of(s, CROWD).php("one.php", &meeting(script)),
        |site| {
            // Some in the ring, some as a file of their own.
            let repeats = |number: usize| if number.is_multiple_of(3) { 40_000 } else { 50 };
            let answers = at_once(site, CROWD, |number, mark| {
                Request::post(&format!("/one.php?m={mark}"), "a/b", mark.repeat(repeats(number)))
            });
            for (number, answer) in answers.iter().enumerate() {
                only_own(answer, number);
                let text = answer.text();
                let words: Vec<&str> = text.split(' ').collect();
                assert_eq!(words[0], words[1], "{text}");
                assert_eq!(words[2], format!("{}{}", repeats(number), marker(number)));
            }
        },
    );
}

#[test]
fn filter_input_reads_its_own_request() {
    everyone_sees(
        "$a = filter_input(INPUT_GET, 'm'); meet('a'); $_GET['m'] = 'changed'; meet('b');
        echo $a, filter_input(INPUT_GET, 'm'), filter_has_var(INPUT_POST, 'm') ? 'post' : '', filter_input(INPUT_SERVER, 'QUERY_STRING');",
        "@@m=@",
    );
}

#[test]
fn headers_cookies_and_status() {
    let script = "$n = (int) preg_replace('/[^0-9]/', '', $m);
        header(\"X-A: $m\"); meet('a'); header(\"X-B: $m\"); setcookie('k', $m); meet('b'); http_response_code(220 + $n);
        header_register_callback(function () use ($m) { usleep(500); header(\"X-C: $m\"); header_remove('X-Gone'); }); header('X-Gone: ' . $m);
        meet('c'); echo implode('|', preg_grep('/^x-[ab]:/i', headers_list())), http_response_code() - 220;";
    run(
        Kind::Async,
        |s| crowd_of(s, CROWD).php("one.php", &meeting(script)),
        |site| {
            let answers = at_once(site, CROWD, |_, mark| Request::get(&format!("/one.php?m={mark}")));
            for (number, answer) in answers.iter().enumerate() {
                only_own(answer, number);
                let mark = marker(number);
                assert_eq!(usize::from(answer.status), 220 + number);
                assert_eq!(answer.text(), format!("X-A: {mark}|X-B: {mark}{number}"));
                for name in ["x-a", "x-b", "x-c"] {
                    assert_eq!(answer.all(name), vec![mark.as_str()]);
                }
                assert_eq!(answer.header("x-gone"), None);
                assert_eq!(answer.all("set-cookie"), vec![format!("k={mark}")]);
            }
        },
    );
}

#[test]
fn nested_output_buffers_whose_callbacks_wait() {
    everyone_sees(
        "ob_start(function ($text) use ($m) { usleep(random_int(1, 2000)); return \"[$text$m]\"; });
        ob_start(function ($text) { usleep(random_int(1, 2000)); return strrev($text); });
        echo strrev($m); meet('a'); echo 'x'; ob_start(); echo $m; meet('b'); $inner = ob_get_clean(); echo ob_get_level(); ob_end_flush(); meet('c'); echo $inner;",
        "[2x@@@]",
    );
}

#[test]
fn flushed_parts_arrive_in_order_in_their_own_answer() {
    everyone_sees(
        "while (ob_get_level()) { ob_end_flush(); } for ($i = 0; $i < 5; $i++) { echo \"$i$m \"; flush(); meet(\"turn$i\"); } echo 'end';",
        "0@ 1@ 2@ 3@ 4@ end",
    );
}

#[test]
fn the_output_of_a_started_coroutine_lands_in_its_request() {
    everyone_sees(
        "$task = Howdah\\go(function () use ($m) { meet('child'); header('X-Child: ' . $m); echo $_GET['m'], $m; });
        meet('parent'); Howdah\\await($task); echo 'b', implode(preg_grep('/X-Child/', headers_list()));",
        "@@bX-Child: @",
    );
}

/// The end of a coroutine had sent the headers.
#[test]
fn headers_can_be_set_after_a_coroutine_has_ended() {
    everyone_sees(
        "Howdah\\await(Howdah\\go(fn () => usleep(500))); meet('a'); header(\"X-After: $m\"); echo headers_sent() ? 'sent' : implode(preg_grep('/X-After/', headers_list()));",
        "X-After: @",
    );
}

#[test]
fn a_coroutine_that_nobody_awaits_belongs_to_the_answer() {
    everyone_sees("Howdah\\go(function () use ($m) { meet('child'); echo $m, $_GET['m']; }); echo 'a';", "a@@");
}

#[test]
fn error_and_exception_handlers() {
    let script = "set_error_handler(function ($no, $text) use ($m) { usleep(random_int(1, 2000)); echo \"{handled by $m: $text}\"; return true; });
        set_exception_handler(function ($e) use ($m) { usleep(500); echo '<', $e->getMessage(), ' ', $m, '>'; });
        meet('a'); trigger_error(\"first $m\", E_USER_WARNING); meet('b'); trigger_error(\"second $m\", E_USER_NOTICE);
        restore_error_handler(); set_error_handler(function ($no, $text) use ($m) { pause(); echo \"(new $m: $text)\"; return true; }); meet('c'); trigger_error('third'); meet('d');
        throw new Exception(\"thrown in $m\");";
    everyone_sees(script, "{handled by @: first @}{handled by @: second @}(new @: third)<thrown in @ @>");
}

#[test]
fn a_request_without_handlers_beside_those_with_handlers() {
    let script = "$odd = isset($_GET['odd']); if ($odd) { set_error_handler(function ($no, $text) { usleep(2000); echo '[', $text, ']'; return true; }); }
        meet('a'); $seen = @trigger_error(\"said in $m\", E_USER_WARNING); meet('b'); $last = error_get_last(); echo $odd ? ($last === null ? $m : 'foreign') : $last['message'];";
    run(
        Kind::Async,
        |s| crowd_of(s, CROWD).php("one.php", &meeting(script)),
        |site| {
            let answers = at_once(site, CROWD, |number, mark| {
                Request::get(&format!("/one.php?m={mark}{}", if number % 2 == 1 { "&odd" } else { "" }))
            });
            for (number, answer) in answers.iter().enumerate() {
                only_own(answer, number);
                let mark = marker(number);
                let expected =
                    if number % 2 == 1 { format!("[said in {mark}]{mark}") } else { format!("said in {mark}") };
                assert_eq!(answer.text(), expected);
            }
        },
    );
}

#[test]
fn the_last_error_and_silence_across_waits() {
    everyone_sees(
        "function_exists('quiet_wait') || eval('function quiet_wait() { usleep(random_int(1, 2000)); return error_reporting(); }');
        $normal = error_reporting(); @trigger_error(\"last of $m\", E_USER_NOTICE); meet('a'); echo error_get_last()['message']; $silent = @quiet_wait(); meet('b');
        echo $silent === 4437 ? ' silent' : \" $silent\", error_reporting() === $normal ? ' loud' : ' still silent'; error_clear_last(); meet('c'); echo error_get_last() === null ? '' : ' left';",
        "last of @ silent loud",
    );
}

#[test]
fn shutdown_functions() {
    everyone_sees(
        "register_shutdown_function(function () use ($m) { usleep(500); echo \"<1 $m>\"; register_shutdown_function(function () use ($m) { pause(); echo \"<3 $m>\"; }); });
        meet('a'); register_shutdown_function(function (...$a) { meet('in shutdown'); echo '<2 ', $a[0], '>'; }, $m); echo 'body ';",
        "body <1 @><2 @><3 @>",
    );
}

#[test]
fn settings_that_a_request_changes() {
    everyone_sees(
        "ini_set('user_agent', $m); ini_set('precision', (string) (3 + strlen($m) % 7)); date_default_timezone_set(strlen($m) % 2 ? 'Asia/Tokyo' : 'Europe/Paris');
        mb_internal_encoding(strlen($m) % 2 ? 'ISO-8859-1' : 'UTF-8'); error_reporting(E_ALL & ~E_NOTICE & ~(strlen($m) % 2 ? E_WARNING : 0));
        $look = fn () => [ini_get('user_agent'), ini_get('precision'), (string) (1 / 3), date_default_timezone_get(), mb_internal_encoding(), error_reporting(), mb_strlen(\"\\u{e4}\")];
        $before = $look(); meet('a'); $after = $look(); meet('b'); ini_restore('user_agent'); meet('c');
        echo $before === $after && ini_get('user_agent') === '' ? $before[0] : json_encode([$before, $after, ini_get('user_agent')]);",
        "@",
    );
}

#[test]
fn a_setting_does_not_outlive_its_request() {
    run(
        Kind::Async,
        |s| {
            crowd_of(s, CROWD)
                .php(
                    "set.php",
                    &meeting(
                        "ini_set('user_agent', $m); meet('a'); echo ini_get('user_agent'); setlocale(LC_ALL, 'C');",
                    ),
                )
                .php("get.php", "echo '(', ini_get('user_agent'), ')', count($GLOBALS['left'] ?? []);")
        },
        |site| {
            for (number, answer) in
                at_once(site, CROWD, |_, mark| Request::get(&format!("/set.php?m={mark}"))).iter().enumerate()
            {
                assert_eq!(answer.text(), marker(number));
            }
            for answer in at_once(site, CROWD, |_, _| Request::get("/get.php")) {
                assert_eq!(answer.text(), "()0");
            }
        },
    );
}

/// A coroutine began with the level that the one before it in the same context, or the scheduler, had last.
#[test]
fn the_error_level_of_a_request_that_has_ended_is_not_the_next_ones() {
    // The levels that are off: what E_ALL has depends on PHP's version.
    let level = "$off = fn () => E_ALL & ~error_reporting(); $level = fn () => $off() . ' ' . Howdah\\await(Howdah\\async($off));";
    let set = format!("{level} error_reporting(E_ALL & ~E_USER_NOTICE); meet('a'); echo $level(); meet('b');");
    let get = format!("{level} usleep(3000); echo $level();");
    run(
        Kind::Async,
        |s| crowd_of(s, 4).ini("error_reporting", "E_ALL").php("set.php", &meeting(&set)).php("get.php", &get),
        |site| {
            for answer in at_once(site, 4, |_, mark| Request::get(&format!("/set.php?m={mark}"))) {
                assert_eq!(answer.text(), "1024 1024");
            }
            for answer in at_once(site, CROWD, |_, _| Request::get("/get.php")) {
                assert_eq!(answer.text(), "0 0");
            }
        },
    );
}

#[test]
fn random_tokens_and_ids_are_the_requests_own() {
    everyone_sees(
        "$id = Howdah\\request_id(); strtok(\"$m a b\", ' '); meet('a'); echo strtok(' '), strtok(' '), $id === Howdah\\request_id() && strlen($id) === 16 ? '' : 'foreign', $_GET['m'];",
        "ab@",
    );
}

/// The cookies of the crowd: each session id is shared by `sharers` requests.
fn sessions(script: &str, sharers: usize, check: impl Fn(usize, &str)) {
    run(
        Kind::Async,
        |s| {
            crowd_of(s, CROWD)
                .php("one.php", &meeting(script))
                .php("count.php", "session_start(); echo $_SESSION['n'] ?? 0;")
        },
        |site| {
            let cookie = |number: usize| format!("PHPSESSID=sessionnumber{}", number / sharers);
            let answers = at_once(site, CROWD, |number, mark| {
                Request::get(&format!("/one.php?m={mark}")).header("Cookie", &cookie(number))
            });
            for (number, answer) in answers.iter().enumerate() {
                assert_eq!(answer.status, 200, "{}", answer.text());
                only_own(answer, number);
            }
            for number in 0..CROWD {
                let count = site.send(&Request::get("/count.php").header("Cookie", &cookie(number))).expect(200).text();
                check(number, &count);
            }
        },
    );
}

#[test]
fn sessions_of_different_ids_run_at_once() {
    sessions(
        "session_start(); $_SESSION['m'] = $m; $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; meet('with open sessions'); echo $_SESSION['m'], session_status() === PHP_SESSION_ACTIVE ? '' : 'closed';",
        1,
        |_, count| assert_eq!(count, "1"),
    );
}

#[test]
fn sessions_of_one_id_run_one_after_another() {
    sessions(
        "meet('a'); session_start(); $n = $_SESSION['n'] ?? 0; pause(); $_SESSION['n'] = $n + 1; echo $m;",
        4,
        |_, count| assert_eq!(count, "4", "no increment is lost"),
    );
}

#[test]
fn a_request_that_leaves_while_it_waits_for_a_session_does_not_block_it() {
    run(
        Kind::Async,
        |s| {
            crowd_of(s, CROWD)
                .php("hold.php", "require_once 'gate.php'; session_start(); mark('holds'); gate('g'); $_SESSION['n'] = 1; echo 'held';")
                .php("want.php", "require_once 'gate.php'; mark('wants'); session_start(); mark('got'); echo $_SESSION['n'] ?? 'none';")
        },
        |site| {
            let gate = site.gate("g");
            let ask = |path: &str| Request::get(path).header("Cookie", "PHPSESSID=onesessionforall");
            let mut holder = site.conn();
            holder.send(ask("/hold.php").bytes());
            let held = gate.wait();
            let mut leaver = site.conn();
            leaver.send(ask("/want.php").bytes());
            site.wait_for_mark("wants", 1);
            leaver.reset();
            let mut stayer = site.conn();
            stayer.send(ask("/want.php").bytes());
            site.wait_for_mark("wants", 2);
            held.release();
            assert_eq!(holder.response("GET").text(), "held");
            assert_eq!(stayer.response("GET").text(), "1");
        },
    );
}

/// One request's links had got the variables of all that had set one.
#[test]
fn links_get_the_variables_of_their_own_request() {
    everyone_sees(
        "output_add_rewrite_var('v', $m); meet('a'); echo '<form action=\"x\">'; meet('b'); echo '</form>'; meet('c');",
        "<form action=\"x\"><input type=\"hidden\" name=\"v\" value=\"@\" /></form>",
    );
}

/// One request's list of XML errors had held those of all.
#[test]
fn xml_errors_are_the_requests_own() {
    everyone_sees(
        "$own = strlen($m) % 2; libxml_use_internal_errors(true); meet('a'); (new DOMDocument)->loadXML(\"<a><$m></a>\"); meet('b'); $errors = libxml_get_errors();
        libxml_use_internal_errors(false); meet('c'); echo libxml_use_internal_errors() ? 'still on ' : '', trim($errors[0]->message), count($errors) < 4 ? '' : count($errors);",
        "Opening and ending tag mismatch: @ line 1 and a",
    );
}

/// What one coroutine's call had left was another one's last error.
#[test]
fn last_errors_of_libraries() {
    everyone_sees(
        "$odd = (int) preg_replace('/[^0-9]/', '', $m) % 2; $odd ? json_decode('{') : json_decode('{}'); $odd ? @preg_match('/(?:\\D+|<\\d+>)*[!?]/', 'foobar foobar foobar') : preg_match('/a/', 'a');
        meet('a'); echo json_last_error() === ($odd ? JSON_ERROR_SYNTAX : 0) && preg_last_error() === ($odd ? PREG_BACKTRACK_LIMIT_ERROR : 0) ? $m : 'foreign';",
        "@",
    );
}

/// A tick in a request without tick functions, beside one that had some, had ended the worker.
#[test]
fn tick_functions_are_the_requests_own() {
    everyone_sees_with(
        |s| s.library("ticks.php", "declare(ticks=1); function ticking($m) { $a = 1; usleep(500); $b = 2; return $_GET['m'] === $m ? 'own' : 'foreign'; }"),
        "require_once __DIR__ . '/ticks.php'; $n = 0; $odd = (int) preg_replace('/[^0-9]/', '', $m) % 2; $tick = function () use (&$n, $m) { usleep(200); $n += $_GET['m'] === $m ? 1 : 1000; };
        if ($odd) { register_tick_function($tick); } meet('a'); echo ticking($m), ($n > 0) === (bool) $odd && $n < 1000 ? $m : \" $n ticks\"; meet('b');",
        "own@",
    );
}

/// Settings of an open session could not move when another request ran: a warning in the answer, and the setting stayed.
#[test]
fn settings_of_a_session_that_is_open() {
    everyone_sees(
        "session_id(\"id$m\"); session_start(['gc_maxlifetime' => 1000 + strlen($m), 'use_strict_mode' => 0]); $_SESSION['m'] = $m; meet('a'); pause();
        $lifetime = ini_get('session.gc_maxlifetime'); session_write_close(); meet('b'); echo $lifetime == 1000 + strlen($m) ? $m : $lifetime;",
        "@",
    );
}

/// The handler's name is a setting too.
#[test]
fn a_session_handler_of_the_script_that_waits() {
    let library = "class Kept implements SessionHandlerInterface { static $all = []; function __construct(public $m) {} function open(string $p, string $n): bool { pause(); return true; }
        function close(): bool { pause(); return true; } function read(string $id): string { pause(); return self::$all[$id] ?? ''; } function write(string $id, string $d): bool { pause(); self::$all[$id] = $d . $this->m; return true; }
        function destroy(string $id): bool { return true; } function gc(int $l): int { return 0; } }";
    everyone_sees_with(
        |s| s.library("kept.php", library),
        "require_once __DIR__ . '/kept.php'; session_set_save_handler(new Kept($m)); session_id(\"id$m\"); session_start(['use_strict_mode' => 0]); $_SESSION['m'] = 1; meet('a');
        session_write_close(); meet('b'); echo Kept::$all[\"id$m\"];",
        "m|i:1;@",
    );
}

/// What only the session's handlers hold is destroyed last of all. Its destructors met the request's last error, the text
/// of `strtok()` and the table of globals, all of them freed: the next warning freed them once more.
#[test]
fn a_destructor_at_the_very_end_of_a_request_met_what_was_freed() {
    let library = "class Late implements SessionHandlerInterface { static $done = []; function __construct(public $m) {} function open(string $p, string $n): bool { return true; }
        function close(): bool { return true; } function read(string $id): string { return ''; } function write(string $id, string $d): bool { return true; }
        function destroy(string $id): bool { return true; } function gc(int $l): int { return 0; }
        function __destruct() { pause(); $seen = error_get_last()['message']; strtok('some other text', ' '); for ($i = 0; $i < 20; $i++) { $GLOBALS[\"late$i\"] = [$this->m]; }
            @trigger_error(\"late $this->m\"); pause(); self::$done[] = $seen . ', ' . error_get_last()['message'] . ', ' . strtok(' ') . ', ' . $GLOBALS['late19'][0]; } }";
    run(
        Kind::Async,
        |s| {
            crowd_of(s, CROWD).library("late.php", library).php("done.php", "echo json_encode(Late::$done);").php(
                "one.php",
                &meeting(
                    "require_once __DIR__ . '/late.php'; session_set_save_handler(new Late($m), false); strtok(\"$m $m\", ' ');
                    @trigger_error(\"early $m\"); $own = [$m]; meet('a'); echo $m;",
                ),
            )
        },
        |site| {
            for (number, answer) in
                at_once(site, CROWD, |_, mark| Request::get(&format!("/one.php?m={mark}"))).iter().enumerate()
            {
                assert_eq!((answer.status, answer.text()), (200, marker(number)));
            }
            let mut expected: Vec<String> =
                (0..CROWD).map(marker).map(|mark| format!("early {mark}, late {mark}, other, {mark}")).collect();
            expected.sort();
            let mut done = Vec::new();
            let _ = eventually(Duration::from_secs(20), || {
                done = serde_json::from_str::<Vec<String>>(&site.get_ok("/done.php")).unwrap();
                done.len() == CROWD
            });
            done.sort();
            assert_eq!(done, expected);
        },
    );
}
