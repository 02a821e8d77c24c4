//! PHP-FPM's status and ping pages over FastCGI, as exporters request them from PHP-FPM: here nginx requests them from
//! the admin endpoint.

use super::admin::OnAddress;
use howdah_tests::nginx::Nginx;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Mode, Request, Response, Target, patience, run};
use std::io::{Read, Write};
use std::net::TcpStream;

/// An nginx that forwards everything to this FastCGI address, with the additional variables `more`.
fn nginx(address: &str, more: &str) -> Nginx {
    Nginx::start(1, |_, ports| {
        format!(
            "server {{ listen 127.0.0.1:{}; location / {{
               include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_NAME $uri; {more} fastcgi_pass {address};
             }} }}",
            ports[0]
        )
    })
}

fn get(nginx: &Nginx, target: &str) -> Response {
    let mut conn = Conn::open(&Target::Tcp(([127, 0, 0, 1], nginx.port(0)).into()));
    conn.exchange(&Request::get(target).close())
}

#[test]
fn the_admin_socket_has_the_pages_over_fastcgi_under_their_own_paths_and_those_of_the_settings() {
    run(
        Mode::Classic,
        |s| {
            s.workers(2)
                .setting("status_path", "\"/fpm-status\"")
                .setting("pool.shop", "{ workers = 1, status_path = \"/shop-status\" }")
        },
        |site| {
            let Target::Unix(socket) = site.howdah().admin() else { panic!("the admin address is not a socket") };
            let nginx = nginx(&format!("unix:{}", socket.display()), "");
            for (query, media_type) in [("", "text/plain;charset=UTF-8"), ("?json&full", "application/json")] {
                let (page, own) =
                    (get(&nginx, &format!("/fpm-status{query}")), site.get(&format!("/fpm-status{query}")));
                assert_eq!((page.status, page.header("content-type")), (200, Some(media_type)), "{}", page.text());
                for field in ["content-type", "expires", "cache-control"] {
                    assert_eq!(page.header(field), own.header(field), "{field}");
                }
                let names =
                    |text: &str| text.lines().map(|l| l.split(':').next().unwrap().to_owned()).collect::<Vec<_>>();
                assert_eq!(names(&page.text()), names(&own.text()));
            }
            assert_eq!(get(&nginx, "/fpm-status?json").json()["pool"], "default");
            assert_eq!(get(&nginx, "/pools/default/status?json").json()["total processes"], 2);
            for target in ["/shop-status?json", "/pools/shop/status?json"] {
                assert_eq!(get(&nginx, target).json()["pool"], "shop", "{target}");
            }
            let ping = get(&nginx, "/fpm-status?ping");
            assert_eq!((ping.status, ping.text().as_str()), (200, "pong"));
            for target in ["/status", "/stop", "/metrics", "/pools/none/status", "/"] {
                let page = get(&nginx, target);
                assert_eq!(page.status, 404, "{target}");
                assert!(page.text().contains("/pools/NAME/status"), "{}", page.text());
            }
            let mut conn = Conn::open(&Target::Tcp(([127, 0, 0, 1], nginx.port(0)).into()));
            assert_eq!(conn.exchange(&Request::form("/pools/default/status", "a=b").close()).status, 405);
            assert_eq!(site.get_ok("/ready.txt"), "ready\n");
        },
    );
}

#[test]
fn on_an_address_with_a_token_fastcgi_asks_for_it_too_and_orders_nothing() {
    let site = OnAddress::start(&["admin_token = \"a long one\""]);
    let address = format!("127.0.0.1:{}", site.admin);
    for (more, status) in [
        ("", 401),
        ("fastcgi_param HTTP_AUTHORIZATION \"Bearer a long on\";", 401),
        ("fastcgi_param HTTP_AUTHORIZATION \"Bearer a long one\";", 200),
    ] {
        let nginx = nginx(&address, more);
        assert_eq!(get(&nginx, "/pools/default/status").status, status, "{more}");
        assert_ne!(get(&nginx, "/stop").status, 200);
    }
    assert!(site.command(&["stop"], "a long one").status.success(), "{}", site.log());
}

#[test]
fn bytes_other_than_fastcgi_end_only_their_connection() {
    let site = OnAddress::start(&[]);
    // A lone version byte, a truncated record, one of another version after a valid one, variables with false
    // lengths.
    let begin = b"\x01\x01\x00\x01\x00\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00";
    let lies =
        [&begin[..], b"\x01\x04\x00\x01\x00\x05\x00\x00\xff\xff\xff\xff\x00\x01\x04\x00\x01\x00\x00\x00\x00"].concat();
    for bytes in [&b"\x01"[..], &begin[..9], &[&begin[..], b"\x02\x04\x00\x01\x00\x00\x00\x00"].concat(), &lies] {
        let mut stream = TcpStream::connect(("127.0.0.1", site.admin)).unwrap();
        stream.set_read_timeout(Some(patience(PATIENCE))).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        assert!(said.is_empty(), "{bytes:?}: {said:?}");
    }
    assert!(eventually(PATIENCE, || site.ask("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n") == 200));
    // A connection that has only sent the beginning of FastCGI does not delay the exit.
    let mut silent = TcpStream::connect(("127.0.0.1", site.admin)).unwrap();
    silent.write_all(b"\x01").unwrap();
    assert!(site.command(&["stop"], "").status.success(), "{}", site.log());
}
