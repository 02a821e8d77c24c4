//! The end of many connections at once: an upgrade of the server, and a budget that is used up.

use super::websocket_events::{chat, closed, open};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::websocket::TEXT;
use howdah_tests::{Conn, Mode, Request, Site, run, time_limit};
use std::time::{Duration, Instant};

#[test]
fn an_upgrade_closes_connections_at_different_times_and_the_new_server_takes_them() {
    let setup = |s| chat(s).workers(2).linked_program().time("drain", "2s").limit("grace", 4000);
    run(Mode::Classic, setup, |site| {
        let mut sockets: Vec<_> = (0..20).map(|_| open(site, "room=a").0).collect();
        let upgraded = site.howdah().command(&["upgrade"]);
        assert!(upgraded.status.success(), "{}{}", String::from_utf8_lossy(&upgraded.stderr), site.log());
        let asked: Vec<Instant> = std::thread::scope(|scope| {
            let readers: Vec<_> = sockets
                .iter_mut()
                .map(|socket| {
                    scope.spawn(|| {
                        assert_eq!(socket.closed(), 1001);
                        Instant::now()
                    })
                })
                .collect();
            // The former server ends when all have confirmed their close.
            site.howdah_mut().follow();
            readers.into_iter().map(|reader| reader.join().unwrap()).collect()
        });
        // Half of `grace` is two seconds; twenty random times cover less than a tenth of it about never.
        let (first, last) = (asked.iter().min().unwrap(), asked.iter().max().unwrap());
        assert!(*last - *first >= Duration::from_millis(200), "all within {:?}", *last - *first);
        closed(site, "1001 0 the server restarts");
        let (mut back, _) = open(site, "room=a");
        back.send(TEXT, "here");
        assert_eq!(back.next(TEXT), "1 here 7");
    });
}

/// Used bytes of the memory budget.
fn used(site: &Site) -> u64 {
    let page = Conn::open(&site.howdah().admin()).exchange(&Request::get("/metrics").close()).expect(200).text();
    let start = "howdah_budget_bytes{budget=\"memory\",kind=\"used\"} ";
    let line = page.lines().find_map(|line| line.strip_prefix(start));
    line.unwrap_or_else(|| panic!("{page}")).parse().unwrap()
}

#[test]
fn clients_that_read_nothing_stay_within_the_memory_budget() {
    let setup = |s| chat(s).workers(2).setting("http.memory", "\"4M\"");
    run(Mode::Classic, setup, |site| {
        time_limit(120, "clients are sent megabytes that they do not read");
        let (mut reader, _) = open(site, "room=reads");
        let lazy: Vec<_> = (0..6)
            .map(|number| {
                let socket = open(site, &format!("room={number}")).0;
                socket.conn.shrink_receive_buffer();
                socket
            })
            .collect();
        // The kernel takes some megabytes for each of those that do not read; the rest waits in the server.
        for number in 0..lazy.len() {
            for _ in 0..8 {
                assert_eq!(site.get_ok(&format!("/chat.php?publish={number}&long=1000000")), "no event");
            }
            assert!(used(site) <= 5 << 20, "{} bytes are used", used(site));
        }
        closed(site, "1013 0 the server has no memory left");
        // Others are still served.
        assert_eq!(site.get_ok("/chat.php?publish=reads&text=still"), "no event");
        assert_eq!(reader.next(TEXT), "still");
        drop((lazy, reader));
        assert!(eventually(PATIENCE, || used(site) == 0), "{} bytes are left", used(site));
    });
}
