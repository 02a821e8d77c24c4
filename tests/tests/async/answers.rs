//! Async mode: sockets that a driver has connected stay registered in epoll, and most waits for a response need no
//! system call. These tests cover the cases that could be missed that way: responses in pieces, the end after a
//! response, a response that fills the reader's buffer, a descriptor number that is reused.

use howdah_tests::at_once::every_client_sees;
use howdah_tests::php;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

type Subscribers = Arc<Mutex<HashMap<String, TcpStream>>>;

/// A server with a line protocol: `echo TEXT`, `big LENGTH` (that many bytes including the line's end), `subscribe
/// NAME`, `push NAME` (a line to all subscribers), `bye` (responds and closes at once).
fn line_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let subscribers = Subscribers::default();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let subscribers = subscribers.clone();
            std::thread::spawn(move || serve_lines(stream, &subscribers));
        }
    });
    port
}

fn serve_lines(mut stream: TcpStream, subscribers: &Subscribers) {
    let reader = BufReader::new(stream.try_clone().unwrap());
    for line in reader.lines() {
        let Ok(line) = line else { return };
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match word {
            "echo" => format!("{rest}\n"),
            "big" => format!("{}\n", "x".repeat(rest.parse::<usize>().unwrap() - 1)),
            "subscribe" => {
                subscribers.lock().unwrap().insert(rest.to_owned(), stream.try_clone().unwrap());
                "subscribed\n".to_owned()
            }
            "push" => {
                subscribers.lock().unwrap().remove(rest).unwrap().write_all(b"pushed\n").unwrap();
                "done\n".to_owned()
            }
            _ => "bye\n".to_owned(),
        };
        if stream.write_all(answer.as_bytes()).is_err() || word == "bye" {
            return;
        }
    }
}

/// Every request of a crowd must see `expected`; `$open()` connects, `$ask($socket, $line)` sends a line and reads one.
fn with_lines(script: &str, expected: &str) {
    let port = line_server();
    let functions = format!(
        "$open = fn () => stream_socket_client('tcp://127.0.0.1:{port}');
        $ask = function ($s, $line) {{ fwrite($s, \"$line\\n\"); return rtrim((string) fgets($s)); }};\n"
    );
    every_client_sees(&format!("{functions}{script}"), expected);
}

#[test]
fn each_question_gets_its_answer() {
    with_lines(
        "$s = $open(); for ($i = 0; $i < 20; $i++) { echo $ask($s, \"echo $m$i,\"); }",
        &(0..20).map(|i| format!("@{i},")).collect::<String>(),
    );
}

#[test]
fn an_unrequested_line_on_this_connection_is_not_missed() {
    with_lines(
        php!("answers/an_unrequested_line_on_this_connection_is_not_missed.php"),
        "absubscribeddonepushed subscribeddonepushed subscribeddonepushed @",
    );
}

#[test]
fn an_end_right_after_a_response_is_not_missed() {
    with_lines(
        php!("answers/an_end_right_after_a_response_is_not_missed.php"),
        "abyefalseend abyefalseend abyefalseend @",
    );
}

#[test]
fn a_response_that_fills_the_buffer_ends_correctly() {
    // PHP's streams read 8192 bytes at a time.
    with_lines(php!("answers/a_response_that_fills_the_buffer_ends_correctly.php"), "8191 8192 8193 16384 100000 3 @");
}

#[test]
fn waits_notice_that_a_descriptor_number_was_reused() {
    with_lines(php!("answers/waits_notice_that_a_descriptor_number_was_reused.php"), "ab01ab01ab01ab01ab01@");
}

#[test]
fn waits_notice_a_reused_number_whose_old_file_a_child_holds() {
    with_lines(php!("answers/waits_notice_a_reused_number_whose_old_file_a_child_holds.php"), "abcd@");
}
