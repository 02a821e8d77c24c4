//! Commands, settings and scripts in the guides and README work as shown.
//!
//! Each block's language determines its test (`blocks::LANGUAGES`): `toml` by `howdah check`, `sh` and `console` by a
//! shell, others by their programs. A block that cannot be tested this way gives a reason: `sh no-run: needs systemd`.

mod blocks;
mod commands;
mod monitoring;
mod pages;
mod parsers;
mod settings;

use howdah_tests::howdah::program;
use std::path::Path;
use std::process::Command;

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const INSIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/installed/inside.sh");

/// Runs a bash script on a machine that has the packages' files and `machine.sh`, and returns its output.
fn on_a_machine(script: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("script.sh");
    std::fs::write(&path, format!("{}\n{script}", include_str!("machine.sh"))).unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"])
        .arg("bash")
        .arg(INSIDE)
        .arg(&path)
        .current_dir(TOP)
        .env("BUILT", program().parent().unwrap())
        .env("PACKAGES", Path::new(TOP).join("php").canonicalize().unwrap())
        .env_remove("HOWDAH_ALLOW_ROOT")
        .env_remove("HOWDAH_PHP")
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
