//! Settings of Howdah, nginx and PHP in the guides are accepted by their programs.

use super::blocks::{Block, tried};
use super::{TOP, on_a_machine, quoted};
use howdah_skip::skip;
use regex_lite::Regex;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files and directories named by settings.
fn named(text: &str) -> Vec<String> {
    let path = Regex::new(r#""(/[\w.][\w./-]*|[\w./-]+\.(?:php|pem|key))""#).unwrap();
    path.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

/// Settings of one site, as in a file of `conf.d`.
fn is_site(text: &str) -> bool {
    let mut top = text.lines().take_while(|line| !line.starts_with('['));
    top.any(|line| line.starts_with("hosts"))
}

/// Commands that create the files and directories named by settings.
pub(super) fn made_up(text: &str) -> String {
    named(text).iter().map(|path| format!("make_up {}\n", quoted(path))).collect()
}

fn write(file: &str, text: &str) -> String {
    let made_up = made_up(text);
    format!("{made_up}cat >{file} <<'END'\n{text}END\n")
}

/// Settings for applications, which the package contains as files.
fn applications() -> Vec<Block> {
    let files = fs::read_dir(Path::new(TOP).join("packaging/sites")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let block = |path: PathBuf| Block {
        page: path.display().to_string(),
        line: 1,
        language: "toml".to_owned(),
        no_run: None,
        text: fs::read_to_string(path).unwrap(),
    };
    files.map(block).collect()
}

#[test]
fn every_application_with_rules_has_complete_settings() {
    let names = |dir: &str| -> BTreeSet<OsString> {
        fs::read_dir(Path::new(TOP).join(dir)).unwrap().map(|file| file.unwrap().file_name()).collect()
    };
    assert_eq!(names("packaging/sites"), names("crates/rules/presets"));
}

fn is_of_server(block: &Block) -> bool {
    block.text.starts_with("# /etc/howdah/howdah.toml")
}

/// Checks settings. Those of a site are checked with the server settings on the page, or with those of the package;
/// those of the server with a site on the page.
fn check(at: usize, block: &Block, page: &[&Block]) -> String {
    let of_page = |wanted: fn(&Block) -> bool, file: &str| {
        let block = page.iter().find(|block| wanted(block));
        block.map(|block| write(file, &block.text)).unwrap_or_default()
    };
    let (server, site) = ("howdah.toml", "conf.d/site.toml");
    let files = if is_site(&block.text) {
        let https = if block.text.contains("[tls]") { "with_https\n" } else { "" };
        https.to_owned() + &of_page(is_of_server, server) + &write(site, &block.text)
    } else if is_of_server(block) {
        of_page(|block| is_site(&block.text), site) + &write(server, &block.text)
    } else {
        write(server, &block.text)
    };
    format!("machine {at}\n{files}")
}

#[test]
fn settings_of_the_guides_pass_howdah_check() {
    if !rustix::process::geteuid().is_root() {
        skip!("root", "only root can mount the packages' files in a namespace");
    }
    let mut blocks = tried(&["toml"]);
    blocks.extend(applications());
    let page = |page: &str| -> Vec<&Block> { blocks.iter().filter(|block| block.page == page).collect() };
    let mut script: String =
        blocks.iter().enumerate().map(|(at, block)| check(at, block, &page(&block.page))).collect();
    script += "check_all\n";
    let printed = on_a_machine(&script);
    let mut failed = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let result = printed.split_once(&format!("=== {at}\n")).and_then(|(_, rest)| rest.split_once("#=> "));
        let Some((output, status)) = result else { panic!("{}: {printed}", block.place()) };
        if !status.starts_with("0\n") {
            failed.push(format!("{}:\n{}{output}", block.place(), block.text));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn scripts_of_the_guides_parse() {
    let dir = tempfile::tempdir().unwrap();
    for (at, block) in tried(&["php"]).iter().enumerate() {
        let path = dir.path().join(at.to_string());
        let begin = if block.text.starts_with("<?php") { "" } else { "<?php " };
        fs::write(&path, format!("{begin}{}", block.text)).unwrap();
        let output = Command::new("php").arg("-l").arg(&path).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {printed}", block.place());
    }
}

/// `nginx -t` with the files and FastCGI parameters that the blocks refer to.
#[test]
fn settings_of_nginx_pass_nginx_t() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=a"])
        .args(["-keyout", &at("key"), "-out", &at("pem")])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let file = Regex::new(r"/[\w./-]+\.(pem|key);").unwrap();
    for block in tried(&["nginx"]) {
        let text = file.replace_all(&block.text, format!("{}/$1;", dir.path().display()));
        let text =
            if text.contains("server {") { text.into_owned() } else { format!("server {{ location / {{ {text} }} }}") };
        let settings = format!("pid {};\nevents {{}}\nhttp {{ access_log off;\n{text}\n}}\n", at("pid"));
        fs::write(at("nginx.conf"), settings).unwrap();
        let output = Command::new("nginx").args(["-t", "-e", "stderr", "-c", &at("nginx.conf")]).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {printed}", block.place());
    }
}

#[test]
fn a_site_s_settings_are_distinguished_from_the_server_s() {
    assert!(is_site("# a\nhosts = [\"a\"]\nroot = \"/\"\n[pool]\n"));
    assert!(!is_site("listen = []\n[[site]]\nhosts = \"a\"\n"));
    assert_eq!(named("a = \"/srv/x\" b = \"x/y.php\" c = \"/old\" d = \"text\""), ["/srv/x", "x/y.php", "/old"]);
}
