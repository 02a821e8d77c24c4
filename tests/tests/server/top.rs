//! `howdah top` and `howdah status --watch`: an operator's view of a running server.

use super::mercure::{Subscriber, hub};
use super::websocket_channels::{open, room};
use howdah_tests::howdah::program;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::websocket::CLOSE;
use howdah_tests::{Site, php, scenario, script_scenario};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::num::NonZero;
use std::os::unix::ffi::OsStringExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

const HELD: &str = php!("status_pages/held.php");

/// The size of the terminal.
const ROWS: NonZero<u16> = NonZero::new(40).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(130).unwrap();

/// A program in a separate terminal, whose screen can be read.
struct Terminal {
    keys: File,
    screen: Arc<Mutex<vt100::Parser>>,
    child: Child,
}

impl Terminal {
    fn start(site: &Site, arguments: &[&str]) -> Self {
        let server = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&server).unwrap();
        unlockpt(&server).unwrap();
        let size = Winsize { ws_row: ROWS.get(), ws_col: COLUMNS.get(), ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&server, size).unwrap();
        let path = std::ffi::OsString::from_vec(ptsname(&server, Vec::new()).unwrap().into_bytes());
        let client = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let both = || Stdio::from(client.try_clone().unwrap());
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program())
            .args(arguments)
            .arg("--admin")
            .arg(format!("unix:{}", site.place().run.join("admin.sock").display()))
            .env("TERM", "xterm-256color")
            .stdin(both())
            .stdout(both())
            .stderr(both())
            .spawn()
            .unwrap();
        drop(client);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let (keys, seen) = (File::from(server), screen.clone());
        let mut output = keys.try_clone().unwrap();
        // Ends with the program, which has the only other end.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = output.read(&mut bytes) {
                seen.lock().unwrap().process(&bytes[..n]);
            }
        });
        Self { keys, screen, child }
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    fn wait_for(&self, shown: impl Fn(&str) -> bool) -> String {
        assert!(eventually(PATIENCE, || shown(&self.text())), "the screen:\n{}", self.text());
        self.text()
    }

    fn press(&mut self, key: &str) {
        self.keys.write_all(key.as_bytes()).unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

scenario!(
    top_shows_running_requests_and_its_keys_drain_and_restart,
    howdah_only = "nginx and PHP-FPM have no such command",
    |s| s.workers(2).php("held.php", HELD),
    |site| {
        let gate = site.gate("status_pages");
        let mut waiting = site.conn();
        waiting.send("GET /held.php?n=7 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let held = gate.wait();
        let mut top = Terminal::start(site, &["top"]);
        // The terminal may have received only a part of the screen.
        let words = ["GET /held.php?n=7", "requests/s", "pools", "1/2", "classic", "workers", "slowest routes"];
        let _ = top.wait_for(|text| words.iter().chain(&["p99 ms", "q quit"]).all(|word| text.contains(word)));
        drop(held);
        assert_eq!(waiting.response("GET").status, 200);
        top.wait_for(|text| !text.contains("/held.php"));

        top.press("d");
        top.wait_for(|text| text.contains("drain worker 0 of pool default? y: yes"));
        top.press("n");
        top.wait_for(|text| text.contains("q quit"));
        top.press("d");
        top.wait_for(|text| text.contains("y: yes"));
        top.press("y");
        top.wait_for(|text| text.contains("the worker finishes its requests"));
        top.press("r");
        top.wait_for(|text| text.contains("restart all workers of pool default? y: yes"));
        top.press("y");
        top.wait_for(|text| text.contains("new workers serve"));
        top.press("q");
        assert!(eventually(PATIENCE, || top.child.try_wait().unwrap().is_some_and(|status| status.success())));
        let status = site.howdah().status();
        assert_eq!(status["pools"][0]["reloads"], 1, "{status}");
        assert!(status["pools"][0]["restarts"].as_u64() >= Some(1), "{status}");
    }
);

script_scenario!(
    top_shows_the_clients_that_wait_for_messages_by_site,
    howdah_only = "nginx and PHP-FPM have no such command",
    |s| hub(room(s)),
    |site| {
        let top = Terminal::start(site, &["top"]);
        let text = top.wait_for(|text| text.contains("workers"));
        assert!(!text.contains("live connections"), "{text}");
        let mut sockets = [open(site, ""), open(site, "")];
        let _mercure = Subscriber::anonymous(site, "topic=other");
        let words = ["live connections", "WEBSOCKETS", "MERCURE", "CHANNELS"];
        let row =
            |text: &str, cells: &[&str]| text.lines().any(|line| line.split_whitespace().eq(cells.iter().copied()));
        top.wait_for(|text| words.iter().all(|word| text.contains(word)) && row(text, &["default", "2", "1", "2"]));
        let output = site.howdah().command(&["top", "--once"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(row(&text, &["LIVE", "WEBSOCKETS", "MERCURE", "CHANNELS"]), "{text}");
        assert!(row(&text, &["default", "2", "1", "2"]), "{text}");
        for socket in &mut sockets {
            socket.send(CLOSE, 1000u16.to_be_bytes());
        }
        top.wait_for(|text| row(text, &["default", "0", "1", "1"]));
    }
);

scenario!(
    top_without_a_terminal_prints_the_activity_of_a_second,
    howdah_only = "nginx and PHP-FPM have no such command",
    |s| s.workers(1).php("held.php", HELD),
    |site| {
        for arguments in [&["top"][..], &["top", "--once"]] {
            let output = site.howdah().command(arguments);
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success() && !text.contains('\u{1b}'), "{text}");
            for word in ["requests/s", "POOL", "default", "classic", "WORKER", "SLOWEST ROUTES"] {
                assert!(text.contains(word), "{word} in\n{text}");
            }
        }
    }
);

scenario!(status_can_be_watched, howdah_only = "nginx and PHP-FPM have no such command", |s| s, |site| {
    let mut watch = Command::new(program())
        .args(["status", "--watch", "--json", "--admin"])
        .arg(format!("unix:{}", site.place().run.join("admin.sock").display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let status: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!((&status["ready"], &status["pools"][0]["name"]), (&true.into(), &"default".into()));
    }
    // Without a reader, the program ends.
    drop(lines);
    assert!(watch.wait().unwrap().success());
});
