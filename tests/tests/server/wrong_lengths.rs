//! Responses whose body has another length than announced by the script, and requests without a host.

use howdah_tests::{Conn, php, scenario};

scenario!(
    over_http_1_an_answer_with_a_false_length_is_logged,
    howdah_only = "the reference logs nothing",
    |s| s
        .workers(1)
        .php("l.php", php!("hostile_front/over_http_2_an_answer_with_a_false_length_is_an_error.php"))
        .expect_log("response cut off: the body is longer than its Content-Length")
        .expect_log("response cut off: the body is shorter than its Content-Length"),
    |site| {
        let gate = site.gate("g");
        for (announced, log) in [(7, "longer"), (20, "shorter")] {
            let mut conn = site.conn();
            conn.send(format!("GET /l.php?n={announced} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
            let _ = conn.head("GET");
            let mut body = conn.read_until("01234").into_bytes();
            gate.release();
            // A connection that ends early is an error here, as for every client.
            while let Ok(Some(piece)) = conn.try_read_some() {
                body.extend(piece);
            }
            let expected = if announced == 7 { "0123456" } else { "0123456789" };
            assert_eq!(String::from_utf8_lossy(&body), expected);
            let _ = site.wait_for_log(&["response cut off", log]);
        }
    },
);

scenario!(
    a_request_that_names_no_host_is_redirected_to_the_address_it_came_to,
    howdah_only = "rules are Howdah's own",
    |s| s.never_https().setting("rule", "[{ path = \"/old/*\", redirect = \"https://$host$path\" }]"),
    |site| {
        let mut conn = Conn::open(site.target());
        conn.send("GET /old/a HTTP/1.0\r\n\r\n");
        let response = conn.response("GET");
        assert_eq!(response.header("location"), Some("https://127.0.0.1/old/a"));
    },
);
