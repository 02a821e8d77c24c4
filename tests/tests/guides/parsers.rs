//! Blocks of other programs' languages in the guides are accepted by these programs: units by systemd, Prometheus's
//! settings by Prometheus, and a Caddyfile becomes what the page shows.

use super::TOP;
use super::blocks::{Block, blocks, tried};
use howdah_skip::skip;
use howdah_tests::Prometheus;
use howdah_tests::howdah::program;
use howdah_tests::process::{PATIENCE, eventually};
use regex_lite::Regex;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Verifies a unit by systemd, or a drop-in with the packaged unit. Programs need not exist.
fn verified(name: &str, text: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let program = Regex::new(r"(?m)^(Exec\w+=-?)/\S+").unwrap();
    let write =
        |name: &str, text: &str| fs::write(at(name), program.replace_all(text, "$1/bin/true").as_bytes()).unwrap();
    if text.contains("[Unit]") {
        write("tried.service", text);
    } else {
        write("tried.service", &fs::read_to_string(Path::new(TOP).join("packaging/howdah.service")).unwrap());
        fs::create_dir(at("tried.service.d")).unwrap();
        write("tried.service.d/drop-in.conf", text);
    }
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "tried.service"])
        // The empty last part stands for the machine's units.
        .env("SYSTEMD_UNIT_PATH", format!("{}:", dir.path().display()))
        .output()
        .unwrap();
    // It ends with 0 after unknown keys.
    match String::from_utf8_lossy(&output.stderr).trim() {
        "" if output.status.success() => String::new(),
        errors => format!("{name}: {errors}\n"),
    }
}

#[test]
fn units_and_drop_ins_are_verified_by_systemd() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        skip!("systemd-analyze", "it verifies units");
    }
    let mut faults: String = tried(&["ini"]).iter().map(|block| verified(&block.place(), &block.text)).collect();
    for file in fs::read_dir(Path::new(TOP).join("packaging/drop-ins")).unwrap() {
        let path = file.unwrap().path();
        faults += &verified(&path.display().to_string(), &fs::read_to_string(&path).unwrap());
    }
    assert!(faults.is_empty(), "{faults}");
    assert!(verified("a", "[Service]\nNoSuchKey=1\n").contains("NoSuchKey"));
}

#[test]
fn json_parses() {
    for block in tried(&["json"]) {
        // Members of an object that the reader has.
        let whole = if block.text.starts_with('{') { block.text.clone() } else { format!("{{{}}}", block.text) };
        let parsed = serde_json::from_str::<Value>(&whole);
        assert!(parsed.is_ok(), "{}: {parsed:?}", block.place());
    }
}

#[test]
fn prometheus_starts_with_the_settings_that_are_shown() {
    let Some(program) = Prometheus::program() else {
        skip!("prometheus", "`scripts/unpack-package.sh` unpacks it");
    };
    let packaging = Path::new(TOP).join("packaging").canonicalize().unwrap();
    for block in tried(&["yaml"]) {
        let settings = block.text.replace("/usr/share/doc/howdah/examples", packaging.to_str().unwrap());
        let prometheus = Prometheus::with(&program, &settings);
        let targets = || prometheus.ask("/api/v1/targets", &[]);
        let has_one = || targets()["data"]["activeTargets"].as_array().map(Vec::len) == Some(1);
        assert!(eventually(PATIENCE, has_one), "{}: {}", block.place(), targets());
        let rules = prometheus.ask("/api/v1/rules", &[]);
        assert!(rules["data"]["groups"].as_array().is_some_and(|groups| !groups.is_empty()), "{rules}");
    }
}

/// Lines of settings without comments.
fn settings_of(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[test]
fn an_imported_caddyfile_becomes_the_settings_shown() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("Caddyfile");
    for block in tried(&["caddyfile"]) {
        fs::write(&file, &block.text).unwrap();
        let output = Command::new(program()).arg("init").arg(&file).arg("--print").output().unwrap();
        assert!(output.status.success(), "{}: {output:?}", block.place());
        let is_next = |other: &Block| other.page == block.page && other.line > block.line;
        let shown = blocks().into_iter().find(is_next).unwrap();
        assert_eq!(shown.language, "toml", "{}", shown.place());
        assert_eq!(
            settings_of(&String::from_utf8_lossy(&output.stdout)),
            settings_of(&shown.text),
            "{}",
            shown.place()
        );
    }
}
