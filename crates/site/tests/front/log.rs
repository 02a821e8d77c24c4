//! The access log and the metrics: every exchange leaves one line, however it ends.

use crate::support::{Server, eventually, settings};
use howdah_observe::Front;
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::Ordering;

/// The log's lines, once there are this many.
fn lines(server: &Server, path: &Path, count: usize) -> Vec<Value> {
    let mut lines = Vec::new();
    eventually("the log's lines", || {
        server.log.as_ref().unwrap().flush();
        let text = std::fs::read_to_string(path).unwrap();
        let written = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        lines = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines.len() >= count
    });
    assert_eq!(lines.len(), count);
    lines
}

#[test]
fn each_exchange_leaves_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    let mut settings = settings();
    settings.http.request_id_header = Some("X-Request-Id".to_owned());
    let server = Server::logging(settings, Some(&path));
    let mut client = server.connect();
    let file = client.ask("GET /a.txt?q HTTP/1.1\r\nHost: h\r\nUser-Agent: agent\r\nReferer: from\r\n\r\n");
    client.ask("POST /echo.php HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    server.stand.pipe.push("0123456789", true);
    server.stand.pipe.end();
    client.ask("GET /stream.php HTTP/1.1\r\nHost: h\r\n\r\n");
    client.ask("GET /no HTTP/1.1\r\nHost: h\r\n\r\n");
    let log = lines(&server, &path, 4);
    assert_eq!(log[0]["request_id"], file.header("x-request-id").unwrap());
    let field = |name: &str| log.iter().map(|line| line[name].to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(field("method"), "\"GET\" \"POST\" \"GET\" \"GET\"");
    assert_eq!(field("target"), "\"/a.txt?q\" \"/echo.php\" \"/stream.php\" \"/no\"");
    assert_eq!(field("status"), "200 200 200 404");
    assert_eq!(field("bytes"), "14 5 10 14");
    assert_eq!(field("worker"), "null 7 7 null");
    assert_eq!(field("pool"), "null \"default\" \"default\" null");
    assert_eq!(field("user_agent"), "\"agent\" null null null");
    assert_eq!(field("referer"), "\"from\" null null null");
    assert_eq!(field("remote"), ["\"127.0.0.1\""; 4].join(" "));
    let text = server.metrics.render(howdah_observe::metrics::Format::Text);
    for front in [Front::Static, Front::Php, Front::Error] {
        assert!(text.contains(&format!("front=\"{}\"", front.label())), "{text}");
    }
    let sent = text.lines().filter(|line| line.starts_with("howdah_site_sent_bytes_total{"));
    let sent: u64 = sent.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
    assert_eq!(sent, 14 + 5 + 10 + 14, "{text}");
}

#[test]
fn a_client_that_left_is_logged_as_499() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    let server = Server::logging(settings(), Some(&path));
    let mut client = server.connect();
    client.send("GET /hang.php HTTP/1.1\r\nHost: h\r\n\r\n");
    eventually("the request", || server.stand.requests.load(Ordering::SeqCst) == 1);
    drop(client);
    let log = lines(&server, &path, 1);
    assert_eq!((log[0]["status"].as_u64(), log[0]["bytes"].as_u64()), (Some(499), Some(0)));
}

#[test]
fn the_log_shows_the_client_behind_a_trusted_proxy() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    let mut settings = settings();
    settings.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let server = Server::logging(settings, Some(&path));
    server.connect().ask("GET /a.txt HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 198.51.100.7\r\n\r\n");
    assert_eq!(lines(&server, &path, 1)[0]["remote"], "198.51.100.7");
}
