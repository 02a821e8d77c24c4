//! Async mode: state that extensions keep in their own variables is not shared between requests.

use howdah_tests::at_once::{
    CROWD, at_once, crowd_of, every_client_sees, every_client_sees_with, marker, meeting, only_own,
};
use howdah_tests::servers::Server;
use howdah_tests::{Mode, Request, Response, php, run, script_scenario};

/// PHP: true if a request's number is odd.
const ODD: &str = "$odd = (int) preg_replace('/[^0-9]/', '', $m) % 2 === 1;";

/// Regression: `current_collator` was that of the request that had begun to sort last, and could be freed.
#[test]
fn a_collator_keeps_its_order_while_another_request_sorts() {
    let sort = php!("extensions/a_collator_keeps_its_order_while_another_request_sorts.php");
    every_client_sees(&format!("{ODD} {sort}"), "@");
}

#[test]
fn the_last_error_of_intl_is_the_requests_own() {
    every_client_sees(php!("extensions/the_last_error_of_intl_is_the_requests_own.php"), "no-@");
}

/// A client decodes a response with the types, classes and description that are current at that time.
#[test]
fn a_soap_call_is_decoded_with_its_own_types() {
    let client = php!("extensions/a_soap_call_is_decoded_with_its_own_types.php");
    every_client_sees(client, "@: @");
}

/// Regression: the nesting depth of encoded values was counted across requests, and reset by the first one to finish.
#[test]
fn concurrent_soap_calls_are_not_nested() {
    let client = php!("extensions/concurrent_soap_calls_are_not_nested.php");
    every_client_sees(client, ".....@");
}

/// Regression: while one request waited in a call, PHP's errors in all requests became faults of its client.
#[test]
fn an_error_during_another_requests_soap_call_is_no_soap_fault() {
    let script = php!("extensions/an_error_during_another_requests_soap_call_is_no_soap_fault.php");
    every_client_sees(&format!("{ODD} {script}"), "@");
}

/// `pg_connect()` returns its earlier link for the same arguments, and functions without a link use the last one.
#[test]
fn a_default_postgresql_link_is_not_shared_between_requests() {
    let server = Server::postgres();
    let connect =
        format!("$where = 'host=127.0.0.1 port={} user=tester dbname=postgres sslmode=disable';", server.port);
    every_client_sees(
        &php!("extensions/a_default_postgresql_link_is_not_shared_between_requests.php", CONNECT = connect),
        &format!("{CROWD} same @kept@"),
    );
}

#[test]
fn a_persistent_stream_is_not_shared_between_requests() {
    every_client_sees(php!("extensions/a_persistent_stream_is_not_shared_between_requests.php"), "ownown@");
}

#[test]
fn the_default_stream_context_is_the_requests_own() {
    every_client_sees_with(
        |s| s.file("default.php", "<?php stream_context_set_default(['http' => ['user_agent' => 'booted']]);"),
        php!("extensions/the_default_stream_context_is_the_requests_own.php"),
        "none X-Mark: @",
    );
}

#[test]
fn the_report_mode_of_mysqli_is_the_requests_own() {
    every_client_sees(&php!("extensions/the_report_mode_of_mysqli_is_the_requests_own.php", ODD = ODD), "@");
}

#[test]
fn output_encodings_are_the_requests_own() {
    every_client_sees(&php!("extensions/output_encodings_are_the_requests_own.php", ODD = ODD), "@");
}

#[test]
fn assert_does_not_call_another_requests_callback() {
    every_client_sees_with(
        |s| {
            s.ini("zend.assertions", "1")
                .ini("assert.exception", "0")
                .ini("assert.warning", "0")
                .ini("error_reporting", "E_ALL & ~E_DEPRECATED")
        },
        php!("extensions/assert_does_not_call_another_requests_callback.php"),
        "@",
    );
}

#[test]
fn errors_of_a_date_belong_to_their_request() {
    every_client_sees(&php!("extensions/errors_of_a_date_belong_to_their_request.php", ODD = ODD), "@");
}

#[test]
fn openssl_errors_are_the_requests_own() {
    every_client_sees(&php!("extensions/openssl_errors_are_the_requests_own.php", ODD = ODD), "@");
}

/// A request whose client accepts gzip if its number is odd.
fn asks_for_gzip_if_odd(number: usize, path: &str) -> Request {
    let request = Request::get(&format!("{path}?m={}", marker(number)));
    if number.is_multiple_of(2) { request } else { request.header("Accept-Encoding", "gzip") }
}

#[test]
fn ob_gzhandler_follows_its_own_requests_client() {
    let script = php!("extensions/ob_gzhandler_follows_its_own_requests_client.php");
    run(
        Mode::Async,
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
    php_forgets_file_status_with_the_request,
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

/// Regression: the second request found the state that the first one had seen before it waited.
#[test]
fn phps_cached_file_status_is_the_requests_own() {
    run(
        Mode::Async,
        |s| {
            crowd_of(s, 2)
                .file("data.txt", "12345")
                .php("looks.php", &meeting("meet('both'); echo filesize(__DIR__ . '/data.txt'); meet('a'); meet('b');"))
                .php("later.php", &meeting(php!("extensions/phps_cached_file_status_is_the_requests_own.php")))
        },
        |site| {
            let answers =
                at_once(site, 2, |number, mark| Request::get(&format!("/{}.php?m={mark}", ["looks", "later"][number])));
            assert_eq!(answers[0].text(), "5");
            assert_eq!(answers[1].text(), "10");
        },
    );
}

/// Every third statement calls the function. Regression: the counter included statements of other requests.
#[test]
fn ticks_are_counted_per_request() {
    every_client_sees_with(
        |s| s.library("ticks.php", php!("extensions/ticks_are_counted_per_request_ticks.php")),
        php!("extensions/ticks_are_counted_per_request_script.php"),
        "3@",
    );
}

#[test]
fn the_entity_loader_is_the_requests_own() {
    let xml = "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///entity'>]><a>&e;</a>";
    every_client_sees(&php!("extensions/the_entity_loader_is_the_requests_own.php", ODD = ODD, XML = xml), "@");
}

/// `array_multisort()` keeps its order in a global variable of PHP, which the next call frees.
#[test]
fn array_multisort_keeps_its_order_across_waits() {
    every_client_sees(&format!("{ODD} {}", php!("extensions/array_multisort_keeps_its_order_across_waits.php")), "@");
}

/// Regression: the compiler calls the error handler; requests that waited there restored each other's compiler state.
#[test]
fn code_is_evaluated_with_its_own_requests_compiler() {
    every_client_sees(php!("extensions/code_is_evaluated_with_its_own_requests_compiler.php"), "@");
}

#[test]
fn a_class_is_linked_while_the_error_handler_waits() {
    every_client_sees_with(
        |s| {
            (0..CROWD).fold(s, |s, n| {
                s.library(
                    &format!("late{n}.php"),
                    &php!("extensions/a_class_is_linked_while_the_error_handler_waits_library.php", N = n),
                )
            })
        },
        php!("extensions/a_class_is_linked_while_the_error_handler_waits_script.php"),
        "x22@",
    );
}

/// Output of `highlight_string()` may wait in a buffer's callback.
#[test]
fn code_is_highlighted_with_its_own_requests_scanner() {
    every_client_sees(php!("extensions/code_is_highlighted_with_its_own_requests_scanner.php"), "2@");
}
