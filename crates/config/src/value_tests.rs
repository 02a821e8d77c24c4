//! Parsing and showing values.

use super::*;
use crate::quantity::{ByteSize, SpareWorkers, WorkerRange};
use std::time::Duration;

#[test]
fn durations() {
    for (text, millis) in
        [("30s", 30_000), ("500ms", 500), ("2m", 120_000), ("1.5h", 5_400_000), ("7", 7000), ("1 d", 86_400_000)]
    {
        assert_eq!(Duration::from_text(text), Some(Duration::from_millis(millis)), "{text}");
    }
    for text in ["", "s", "-1", "1x", "1e9", "1..2s", "99999999999999999999999d"] {
        assert_eq!(Duration::from_text(text), None, "{text}");
    }
    for (millis, shown) in
        [(0, "0s"), (500, "500ms"), (30_000, "30s"), (90_000, "90s"), (600_000, "10m"), (7_200_000, "2h")]
    {
        assert_eq!(Duration::from_millis(millis).show(), format!("\"{shown}\""));
    }
}

#[test]
fn sizes() {
    for (text, bytes) in [("64K", 65536), ("8m", 8 << 20), ("1G", 1 << 30), ("12", 12), ("1 KiB", 1024), ("5B", 5)] {
        assert_eq!(ByteSize::from_text(text), Some(ByteSize(bytes)), "{text}");
    }
    for text in ["", "K", "1.5M", "-1", "1X", "99999999999999T"] {
        assert_eq!(ByteSize::from_text(text), None, "{text}");
    }
    assert_eq!(
        (ByteSize(1536).show(), ByteSize(65536).show(), ByteSize(0).show()),
        ("1536".into(), "\"64K\"".into(), "0".into())
    );
}

#[test]
fn worker_ranges() {
    assert_eq!(WorkerRange::from_text("4"), Some(WorkerRange { min: 4, max: 4 }));
    assert_eq!(WorkerRange::from_text("2 - 8"), Some(WorkerRange { min: 2, max: 8 }));
    assert_eq!(WorkerRange::from_text("0-4"), Some(WorkerRange { min: 0, max: 4 }));
    for text in ["0", "0-0", "8-2", "2-", "-2", "a", "1-9999"] {
        assert_eq!(WorkerRange::from_text(text), None, "{text}");
    }
}

#[test]
fn spare_workers() {
    for (text, min, max) in [("0", 0, None), ("3", 3, None), ("2-6", 2, Some(6)), ("0 - 1", 0, Some(1))] {
        let found = SpareWorkers::from_text(text).unwrap();
        assert_eq!((found.min, found.max), (min, max), "{text}");
    }
    for text in ["", "-", "6-2", "0-0", "2-", "5000", "1-5000", "-1"] {
        assert_eq!(SpareWorkers::from_text(text), None, "{text}");
    }
}
