use super::*;
use crate::commands::top::sample::{DemotedRow, HubRow, PoolRow, RouteRow};

const REQUEST: &str = "GET /shop/searched?q=日本語テキスト&sort=price&page=17&of=everything&and=more";

fn sample() -> Sample {
    let latency = Latency { per_second: 12.6, p50: Some(1.5), p95: Some(20.0), p99: Some(300.0) };
    let pool = |name: &str| PoolRow {
        name: name.to_owned(),
        mode: "snapshot".to_owned(),
        workers: 4,
        busy: 2,
        php: latency,
        ..PoolRow::default()
    };
    let worker = |worker, phase: &str, request: &str| WorkerRow {
        pool: "shop".to_owned(),
        worker,
        pid: 4_194_303,
        phase: phase.to_owned(),
        age_s: 360_000,
        memory: Some(120 << 20),
        running_ms: Some(2282),
        request: request.to_owned(),
        ..WorkerRow::default()
    };
    Sample {
        version: "0.1.0".to_owned(),
        uptime_s: 93_784,
        connections: 12,
        total: latency,
        pools: vec![pool("shop"), pool("everything-else-of-the-shop")],
        workers: vec![worker(0, "busy", REQUEST), worker(1, "serving", "")],
        routes: vec![RouteRow { site: "shop".to_owned(), route: "/cart/#".to_owned(), requests: latency, errors: 1 }],
        demoted: vec![DemotedRow {
            pool: "shop".to_owned(),
            route: "/cart/#".to_owned(),
            since: 0,
            reason: "3 of 3 responses differed, latest: body".to_owned(),
        }],
        hubs: Vec::new(),
    }
}

/// Renders a screen of this size and returns its lines.
fn lines(width: u16, height: u16, sample: Sample) -> Vec<String> {
    let mut screen = Screen::default();
    screen.take(sample);
    screen.draw(width, height).into_iter().map(|line| line.text).collect()
}

fn assert_shows(lines: &[String], words: &[&str]) {
    let text = lines.join("\n");
    for word in words {
        assert!(text.contains(word), "{word} in\n{text}");
    }
}

#[test]
fn a_usual_terminal_shows_the_requests_of_workers() {
    let lines = lines(80, 24, sample());
    assert_shows(&lines, &["up 1 d 2 h  13 requests/s  p50 1.50  p95 20  p99 300 ms", "q quit   ↑ ↓ worker"]);
    assert_shows(
        &lines,
        &["everything-else-of-…", "snapshot", "BUSY", "QUEUE", "WAIT ms", "PHP/s", "p95 ms", "FAILED"],
    );
    assert_shows(
        &lines,
        &["busy", "120.0 M", "2282     GET /shop/searched?", "…", "slowest routes", "3 of 3 responses"],
    );
}

#[test]
fn a_wide_terminal_shows_everything() {
    let lines = lines(160, 40, sample());
    assert_shows(&lines, &["howdah 0.1.0  up 1 d 2 h  12 connections  13 requests/s", "everything-else-of-the-shop"]);
    assert_shows(&lines, &["PID", "4194303", "AGE s", "REQUESTS", "CPU%", "3 of 3 responses differed, latest: body"]);
    assert_shows(&lines, &["日本語", "sort=price&page=17", "p50 ms", "p99 ms"]);
}

#[test]
fn live_connections_have_a_row_for_each_site_and_no_section_without_any() {
    let row = HubRow { site: "chat.example.org".to_owned(), websockets: 4321, subscribers: 17, channels: 9 };
    let shown = lines(100, 40, Sample { hubs: vec![row], ..sample() });
    assert_shows(&shown, &["live connections", "SITE", "WEBSOCKETS", "chat.example.org", "4321", "17", "9"]);
    assert!(!lines(100, 40, sample()).join("\n").contains("live connections"));
}

#[test]
fn a_tiny_terminal_shows_pools_and_workers() {
    let lines = lines(40, 10, sample());
    assert_shows(&lines, &[" 13/s  p50 1.50  p95 20  p99 300 ms", "pools", "shop", "2/4", "busy"]);
    assert_shows(&lines, &["2282     GET /shop", " q quit  d drain  r restart  p profile"]);
    assert!(!lines.join("\n").contains("requests/s"), "{lines:#?}");
}

#[test]
fn no_size_is_too_small_and_no_line_is_longer_than_the_terminal() {
    for (width, height) in [(1, 1), (2, 3), (20, 5), (39, 7), (55, 12), (61, 17), (100, 8), (300, 100)] {
        assert_eq!(lines(width, height, sample()).len(), usize::from(height));
        let _ = lines(width, height, Sample::default());
    }
}

#[test]
fn the_selected_worker_is_shown_and_the_curve_is_as_high_as_the_most() {
    let mut screen = Screen::default();
    let worker = |worker| WorkerRow { worker, phase: format!("phase-{worker}"), ..WorkerRow::default() };
    screen.take(Sample { workers: (0..50).map(worker).collect(), ..sample() });
    let shown =
        |screen: &mut Screen| screen.draw(100, 24).into_iter().map(|line| line.text).collect::<Vec<_>>().join("\n");
    assert!(shown(&mut screen).contains("phase-0"));
    screen.move_by(49);
    let last = shown(&mut screen);
    assert!(last.contains("phase-49") && !last.contains("phase-0"), "{last}");
    screen.move_by(-1);
    assert!(shown(&mut screen).contains("phase-49"));
    screen.move_by(-60);
    assert!(shown(&mut screen).contains("phase-0"));
    let curve: Vec<_> = bars(&[0, 1, 8, 16], 2).into_iter().map(|line| line.text).collect();
    assert_eq!(curve, ["   █", " ▁██"]);
}
