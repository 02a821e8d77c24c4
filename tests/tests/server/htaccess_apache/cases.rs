//! Cases written by hand, each a text in `cases/` and a separate site.
//!
//! `=== file NAME` begins a file (for a script there is no content: all scripts are the same), `=== request METHOD
//! TARGET` a request with its header lines. A request may end with `differs: WHY`: then the outcomes must differ.

use super::generated::TestRequest;
use super::{Apache, ServerPair, allow_complaints};
use howdah_tests::{Mode, Setup, php, run};
use std::fs;
use std::path::{Path, PathBuf};

struct Case {
    name: String,
    files: Vec<(String, String)>,
    requests: Vec<(TestRequest, Option<String>)>,
}

impl Case {
    fn read(path: &Path) -> Self {
        let text: String = fs::read(path).unwrap().into_iter().map(char::from).collect();
        let name = path.file_stem().unwrap().to_str().unwrap().replace('_', "-");
        let mut case = Self { name, files: Vec::new(), requests: Vec::new() };
        for part in text.split("=== ").skip(1) {
            let (title, body) = part.split_once('\n').unwrap_or((part, ""));
            match title.splitn(3, ' ').collect::<Vec<_>>().as_slice() {
                ["file", name @ ..] => case.files.push((name.join(" "), body.trim_end().to_owned() + "\n")),
                ["request", method, target] => {
                    let lines = || body.lines().filter_map(|line| line.split_once(": "));
                    let headers = lines().filter(|(name, _)| *name != "differs");
                    let asked = TestRequest {
                        method: (*method).to_owned(),
                        target: (*target).to_owned(),
                        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                    };
                    let differs = lines().find(|(name, _)| *name == "differs");
                    case.requests.push((asked, differs.map(|(_, why)| why.to_owned())));
                }
                _ => panic!("{}: {title:?}", path.display()),
            }
        }
        case
    }

    /// Bytes of a file are literal, even if they are not UTF-8.
    fn lay_out(&self, root: &Path) {
        for (name, content) in &self.files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let script = name.ends_with(".php") || name.contains(".php.") || content.trim() == "dump";
            let content = content.replace("@ROOT@", &root.display().to_string());
            let content = if script { format!("<?php\n{}", php!("dump.php")) } else { content };
            fs::write(path, content.chars().map(|c| u8::try_from(c).unwrap()).collect::<Vec<_>>()).unwrap();
        }
    }
}

fn cases() -> Vec<Case> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/htaccess_apache/cases");
    let mut paths: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| Case::read(path)).collect()
}

fn sites(setup: Setup) -> Setup {
    let local = setup.workers(1).file("../run/conf.d/00-local.toml", "hosts = \"localhost\"\nroot = \"../../root\"\n");
    cases().iter().fold(allow_complaints(local), |setup, Case { name, .. }| {
        let text = format!("hosts = \"{name}.test\"\nroot = \"../../{name}\"\nhtaccess = true\n");
        setup.file(&format!("../run/conf.d/10-{name}.toml"), text).file(&format!("../{name}/root.txt"), "")
    })
}

#[test]
fn shipped_files_are_answered_as_apache_answers_them() {
    run(Mode::Classic, sites, |site| {
        let cases = cases();
        let hosts: Vec<String> = cases.iter().map(|case| format!("{}.test", case.name)).collect();
        let roots: Vec<PathBuf> = cases.iter().map(|case| site.file(&format!("../{}", case.name))).collect();
        let pairs: Vec<(&str, &Path)> =
            hosts.iter().map(String::as_str).zip(roots.iter().map(PathBuf::as_path)).collect();
        let Some(apache) = Apache::start(&pairs) else {
            howdah_skip::skip!("apache", "apache2 or its PHP module is not installed: run `make setup-test`");
        };
        let (mut wrong, mut tried) = (Vec::new(), 0);
        for (case, (host, root)) in cases.iter().zip(pairs) {
            case.lay_out(root);
            let mut both = ServerPair::new(site, &apache, host);
            for (asked, differs) in &case.requests {
                let (difference, status) = both.ask(asked, "");
                assert!(!status.is_empty(), "Apache does not respond to {asked:?}");
                tried += 1;
                match (differs, difference.is_empty()) {
                    (None, false) => wrong.push(format!("{}: {asked:?}\n{difference}", case.name)),
                    (Some(why), true) => {
                        wrong.push(format!("{}: {asked:?}\n   is the same as under Apache, though: {why}", case.name));
                    }
                    _ => {}
                }
            }
        }
        assert!(wrong.is_empty(), "{}\n{} of {tried} requests\n{}", wrong.join("\n"), wrong.len(), apache.complaints());
    });
}
