//! Tests of the access log: its formats, and the cost of a stalled reader.

use super::*;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Instant, UNIX_EPOCH};

fn entry() -> AccessEntry<'static> {
    AccessEntry {
        time: UNIX_EPOCH + Duration::from_secs(1_795_219_200),
        remote: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))),
        user: None,
        method: "GET",
        target: b"/a?b=c",
        proto: "HTTP/1.1",
        status: 200,
        bytes: 1024,
        referer: None,
        user_agent: Some(b"curl/8"),
        request_id: "0123abcd",
        pool: Some("default"),
        worker: Some(3),
        queue_us: Some(12),
        php_us: Some(345),
        memory: Some(2 << 20),
        total_us: 400,
        compression: Some("br"),
        site: Some("shop"),
        host: Some(b"Shop.example:81"),
        trace: None,
        cut_off: false,
        refused: None,
    }
}

fn line(entry: &AccessEntry<'_>, format: LogFormat) -> String {
    let mut line = Vec::new();
    entry.format(format, &mut line);
    String::from_utf8(line).unwrap()
}

fn log(path: &Path, metrics: &Arc<Metrics>) -> AccessLog {
    let settings = LogSettings { access: AccessTarget::File(path.to_owned()), ..LogSettings::default() };
    AccessLog::open(&settings, Arc::clone(metrics)).unwrap().unwrap()
}

#[test]
fn a_refused_request_has_its_line_and_its_reason() {
    let refused = AccessEntry { method: "-", target: b"a\"b\x16", status: 400, refused: Some("malformed"), ..entry() };
    let combined = line(&refused, LogFormat::Text);
    let begins =
        combined.contains(r#"] "a\x22b\x16" 400 1024 "-" "#) || combined.contains(r#"] "a\"b\x16" 400 1024 "-" "#);
    assert!(begins && combined.ends_with(" refused=malformed\n"), "{combined}");
    let json = line(&refused, LogFormat::Json);
    assert!(json.contains("\"method\":null,") && json.ends_with(",\"refused\":\"malformed\"}\n"), "{json}");
}

#[test]
fn only_responses_that_were_cut_off_are_marked() {
    let cut = AccessEntry { cut_off: true, ..entry() };
    assert!(line(&cut, LogFormat::Text).ends_with(" cut_off=true\n"));
    assert!(line(&cut, LogFormat::Json).ends_with(",\"cut_off\":true}\n"));
    for format in [LogFormat::Text, LogFormat::Json] {
        assert!(!line(&entry(), format).contains("cut_off"));
    }
}

#[test]
fn combined_line() {
    assert_eq!(
        line(&entry(), LogFormat::Text),
        "192.0.2.7 - - [21/Nov/2026:00:00:00 +0000] \"GET /a?b=c HTTP/1.1\" 200 1024 \"-\" \"curl/8\" id=0123abcd \
         pool=default worker=3 queue_us=12 php_us=345 total_us=400 coding=br site=shop host=Shop.example:81\n"
    );
    let bare = AccessEntry {
        remote: None,
        pool: None,
        worker: None,
        queue_us: None,
        php_us: None,
        compression: None,
        site: None,
        host: None,
        ..entry()
    };
    let text = line(&bare, LogFormat::Text);
    assert!(text.starts_with("unix - - ["), "{text}");
    assert!(text.ends_with("pool=- worker=- queue_us=- php_us=- total_us=400 coding=- site=- host=-\n"), "{text}");
}

#[test]
fn the_line_for_a_terminal_is_short_and_has_colours_only_where_they_can_be_seen() {
    assert_eq!(line(&entry(), LogFormat::Terminal), "200 GET          0.4 ms    2.0 MB  /a?b=c\n");
    let mut coloured = Vec::new();
    let evil = AccessEntry { status: 500, target: b"/\x1b[31m", memory: None, ..entry() };
    terminal_line::write(&evil, true, &mut coloured);
    let text = String::from_utf8(coloured).unwrap();
    assert!(text.starts_with("\x1b[1;31m500\x1b[0m GET"), "{text:?}");
    assert!(text.ends_with("-\x1b[0m  /\\x1B[31m\n"), "{text:?}");
}

#[test]
fn the_trace_is_the_last_field_if_there_is_one() {
    let traced = AccessEntry { trace: Some("4bf92f3577b34da6a3ce929d0e0e4736"), ..entry() };
    let text = line(&traced, LogFormat::Text);
    assert!(text.ends_with(" host=Shop.example:81 trace=4bf92f3577b34da6a3ce929d0e0e4736\n"), "{text}");
    let json = line(&traced, LogFormat::Json);
    assert!(json.ends_with(",\"trace_id\":\"4bf92f3577b34da6a3ce929d0e0e4736\"}\n"), "{json}");
    assert!(!line(&entry(), LogFormat::Json).contains("trace"));
}

#[test]
fn values_cannot_forge_a_line_or_a_field() {
    let evil = AccessEntry {
        user: Some(b"a b\" 200"),
        target: b"/\" 200 1\r\n10.0.0.1 - - \x1b[31m\\",
        referer: Some(b"\"\n"),
        user_agent: Some(b"\xff\x00\xe4"),
        request_id: "x pool=admin",
        ..entry()
    };
    let text = line(&evil, LogFormat::Text);
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    assert_eq!(text.matches('"').count(), 6, "{text}");
    assert!(text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)), "{text}");
    assert!(text.contains(" a\\x20b\\x22\\x20200 ["), "{text}");
    assert!(text.contains("id=x\\x20pool=admin pool=default"), "{text}");
    assert!(text.contains("/\\x22 200 1\\x0D\\x0A10.0.0.1 - - \\x1B[31m\\x5C HTTP"), "{text}");

    let text = line(&evil, LogFormat::Json);
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["target"], "/\" 200 1\r\n10.0.0.1 - - \u{1b}[31m\\");
    assert_eq!(value["user_agent"], "\u{fffd}\0\u{fffd}");
    assert_eq!(value["request_id"], "x pool=admin");
}

#[test]
fn json_line() {
    let value: serde_json::Value = serde_json::from_str(&line(&entry(), LogFormat::Json)).unwrap();
    assert_eq!(value["time"], "2026-11-21T00:00:00.000Z");
    assert_eq!(value["remote"], "192.0.2.7");
    assert_eq!((&value["status"], &value["worker"], &value["total_us"]), (&200.into(), &3.into(), &400.into()));
    assert_eq!(value["user"], serde_json::Value::Null);
    assert_eq!(value["compression"], "br");
}

#[test]
fn lines_of_many_threads_are_whole_and_written_on_drop() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access");
    let metrics = Metrics::new();
    let log = log(&path, &metrics);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1000).for_each(|_| log.log(&entry())));
        }
    });
    drop(log);
    let text = std::fs::read_to_string(&path).unwrap();
    let expected = line(&entry(), LogFormat::Text);
    assert_eq!(text.len(), 4000 * expected.len());
    assert!(text.lines().all(|line| line == expected.trim_end()));
    assert_eq!(metrics.access_log_dropped.get(), 0);
}

#[test]
fn flush_and_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access");
    let log = log(&path, &Metrics::new());
    log.flush();
    log.log(&entry());
    log.flush();
    std::fs::rename(&path, dir.path().join("access.1")).unwrap();
    log.reopen().unwrap();
    log.log(&entry());
    log.log(&entry());
    log.flush();
    assert_eq!(std::fs::read_to_string(dir.path().join("access.1")).unwrap().lines().count(), 1);
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
}

#[test]
fn a_line_is_written_without_a_flush() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access");
    let log = log(&path, &Metrics::new());
    log.log(&entry());
    let deadline = Instant::now() + Duration::from_secs(20);
    while std::fs::read(&path).unwrap().is_empty() {
        assert!(Instant::now() < deadline, "the line was never written");
        std::thread::yield_now();
    }
}

#[test]
fn a_log_that_cannot_be_written_fast_enough_drops_and_counts() {
    // A pipe without a reader behaves like a hanging disk.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let both_ends = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let metrics = Metrics::new();
    let log = log(&path, &metrics);
    let expected = line(&entry(), LogFormat::Text).len();
    let logged = 3 * MAX_QUEUED / expected;
    (0..logged).for_each(|_| log.log(&entry()));
    let reader = std::fs::File::open(&path).unwrap();
    drop(both_ends);
    let reading = std::thread::spawn(move || io::copy(&mut &reader, &mut io::sink()).unwrap());
    drop(log);
    let (written, dropped) = (reading.join().unwrap(), metrics.access_log_dropped.get());
    assert!(dropped > 0 && written > 0);
    assert_eq!(written, (logged as u64 - dropped) * expected as u64);
}

#[test]
fn lines_that_cannot_be_written_are_counted() {
    let metrics = Metrics::new();
    let log = log(Path::new("/dev/full"), &metrics);
    for _ in 0..3 {
        log.log(&entry());
    }
    log.flush();
    assert_eq!(metrics.access_log_dropped.get(), 3);
}

#[test]
fn off_is_no_log() {
    assert!(AccessLog::open(&LogSettings::default(), Metrics::new()).unwrap().is_none());
}
