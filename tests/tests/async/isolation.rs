//! Async mode: a request's state is still its own after other requests have run while it waited.

use howdah_tests::at_once::{
    CROWD, at_once, crowd_of, every_client_sees, every_client_sees_with, marker, meeting, only_own,
};
use howdah_tests::process::eventually;
use howdah_tests::{Mode, Part, Request, multipart, php, run};
use std::time::Duration;

#[test]
fn superglobals_survive_a_wait() {
    let script = php!("isolation/superglobals_survive_a_wait.php");
    run(
        Mode::Async,
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
                // Get, post and cookie; request; query, header, file, URI, header, environment; and its own output.
                assert_eq!((answer.status, text.matches(&mark).count()), (200, 3 + 2 + 6 + 3), "{text}");
                assert!(!text.contains("is not"), "{text}");
            }
        },
    );
}

#[test]
fn a_superglobal_that_another_requests_code_is_the_first_to_name() {
    let library = "function named($own) { $_REQUEST['own'] ??= $own; return $_REQUEST['m'] . $_REQUEST['own']; }";
    every_client_sees_with(
        |s| s.library("named.php", library),
        php!("isolation/a_superglobal_that_another_requests_code_is_the_first_to_name.php"),
        "@@@@",
    );
}

#[test]
fn the_global_scope_is_the_requests_own() {
    let library = php!("isolation/the_global_scope_is_the_requests_own_library.php");
    every_client_sees_with(
        |s| s.library("global.php", library),
        php!("isolation/the_global_scope_is_the_requests_own_script.php"),
        "@@ same",
    );
}

#[test]
fn each_request_reads_its_own_body_as_a_stream() {
    let script = php!("isolation/each_request_reads_its_own_body_as_a_stream.php");
    run(
        Mode::Async,
        |s| crowd_of(s, CROWD).php("one.php", &meeting(script)),
        |site| {
            // Some in the ring, some as a file descriptor.
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
    every_client_sees(php!("isolation/filter_input_reads_its_own_request.php"), "@@m=@");
}

#[test]
fn headers_cookies_and_status_are_the_requests_own() {
    let script = php!("isolation/headers_cookies_and_status_are_the_requests_own.php");
    run(
        Mode::Async,
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
fn callbacks_of_nested_output_buffers_may_wait() {
    every_client_sees(php!("isolation/callbacks_of_nested_output_buffers_may_wait.php"), "[2x@@@]");
}

#[test]
fn flushed_parts_arrive_in_order_in_their_own_answer() {
    every_client_sees(php!("isolation/flushed_parts_arrive_in_order_in_their_own_answer.php"), "0@ 1@ 2@ 3@ 4@ end");
}

#[test]
fn the_output_of_a_started_coroutine_lands_in_its_request() {
    every_client_sees(php!("isolation/the_output_of_a_started_coroutine_lands_in_its_request.php"), "@@bX-Child: @");
}

/// Regression: the end of a coroutine had sent the headers.
#[test]
fn headers_can_be_set_after_a_coroutine_has_ended() {
    every_client_sees(php!("isolation/headers_can_be_set_after_a_coroutine_has_ended.php"), "X-After: @");
}

#[test]
fn a_coroutine_that_is_not_awaited_belongs_to_the_answer() {
    every_client_sees("Howdah\\go(function () use ($m) { meet('child'); echo $m, $_GET['m']; }); echo 'a';", "a@@");
}

#[test]
fn error_and_exception_handlers_are_the_requests_own() {
    let script = php!("isolation/error_and_exception_handlers_are_the_requests_own.php");
    every_client_sees(script, "{handled by @: first @}{handled by @: second @}(new @: third)<thrown in @ @>");
}

#[test]
fn a_request_without_handlers_uses_no_other_requests_handlers() {
    let script = php!("isolation/a_request_without_handlers_uses_no_other_requests_handlers.php");
    run(
        Mode::Async,
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
fn the_last_error_and_silence_survive_waits() {
    every_client_sees(php!("isolation/the_last_error_and_silence_survive_waits.php"), "last of @ silent loud");
}

#[test]
fn shutdown_functions_are_the_requests_own() {
    every_client_sees(php!("isolation/shutdown_functions_are_the_requests_own.php"), "body <1 @><2 @><3 @>");
}

#[test]
fn changed_settings_are_the_requests_own() {
    every_client_sees(php!("isolation/changed_settings_are_the_requests_own.php"), "@");
}

#[test]
fn a_setting_does_not_outlive_its_request() {
    run(
        Mode::Async,
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

/// Regression: a coroutine began with the error level of the previous one in the same context, or of the scheduler.
#[test]
fn the_error_level_of_a_request_that_has_ended_is_not_the_next_ones() {
    // The disabled levels: the value of E_ALL depends on PHP's version.
    let level = php!("isolation/the_error_level_of_a_request_that_has_ended_is_not_the_next_ones.php");
    let set = format!("{level} error_reporting(E_ALL & ~E_USER_NOTICE); meet('a'); echo $level(); meet('b');");
    let get = format!("{level} usleep(3000); echo $level();");
    run(
        Mode::Async,
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
    every_client_sees(php!("isolation/random_tokens_and_ids_are_the_requests_own.php"), "ab@");
}

/// The cookies of the crowd: each session id is shared by `sharers` requests.
fn sessions(script: &str, sharers: usize, check: impl Fn(usize, &str)) {
    run(
        Mode::Async,
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
    sessions(php!("isolation/sessions_of_different_ids_run_at_once.php"), 1, |_, count| assert_eq!(count, "1"));
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
        Mode::Async,
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

/// Regression: one request's links had got the variables of all requests that had set one.
#[test]
fn links_get_the_variables_of_their_own_request() {
    every_client_sees(
        php!("isolation/links_get_the_variables_of_their_own_request.php"),
        "<form action=\"x\"><input type=\"hidden\" name=\"v\" value=\"@\" /></form>",
    );
}

/// Regression: one request's list of XML errors had held those of all.
#[test]
fn xml_errors_are_the_requests_own() {
    every_client_sees(
        php!("isolation/xml_errors_are_the_requests_own.php"),
        "Opening and ending tag mismatch: @ line 1 and a",
    );
}

/// Regression: the error of one coroutine's call was another one's last error.
#[test]
fn last_errors_of_libraries_are_the_requests_own() {
    every_client_sees(php!("isolation/last_errors_of_libraries_are_the_requests_own.php"), "@");
}

/// Regression: a tick in a request without tick functions, concurrent with one that had some, had ended the worker.
#[test]
fn tick_functions_are_the_requests_own() {
    every_client_sees_with(
        |s| s.library("ticks.php", php!("isolation/tick_functions_are_the_requests_own_ticks.php")),
        php!("isolation/tick_functions_are_the_requests_own_script.php"),
        "own@",
    );
}

/// Regression: settings of an open session could not be changed while another request ran: the response had a warning,
/// and the setting stayed.
#[test]
fn settings_of_an_open_session_are_the_requests_own() {
    every_client_sees(php!("isolation/settings_of_an_open_session_are_the_requests_own.php"), "@");
}

/// The handler's name is a setting too.
#[test]
fn a_session_handler_may_wait() {
    let library = php!("isolation/a_session_handler_may_wait_library.php");
    every_client_sees_with(
        |s| s.library("kept.php", library),
        php!("isolation/a_session_handler_may_wait_script.php"),
        "m|i:1;@",
    );
}

/// Regression: objects held only by the session's handlers are destroyed last of all. Their destructors met the
/// request's last error, the text of `strtok()` and the table of globals, all freed already: the next warning freed
/// them once more.
#[test]
fn a_destructor_at_the_very_end_of_a_request_meets_no_freed_object() {
    let library = php!("isolation/a_destructor_at_the_very_end_of_a_request_meets_no_freed_object_library.php");
    run(
        Mode::Async,
        |s| {
            crowd_of(s, CROWD).library("late.php", library).php("done.php", "echo json_encode(Late::$done);").php(
                "one.php",
                &meeting(php!("isolation/a_destructor_at_the_very_end_of_a_request_meets_no_freed_object_script.php")),
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
