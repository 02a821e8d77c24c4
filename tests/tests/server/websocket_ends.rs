//! The end of many connections at once, at an upgrade of the server.

use super::websocket_events::{chat, closed, open};
use howdah_tests::websocket::TEXT;
use howdah_tests::{Mode, run};
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
