//! Each case in `cases/` under Apache itself and here: the same files, the same requests, and what comes of them must be
//! the same: status, address of a redirect, script, path info, query, variables, settings of PHP, headers.
//!
//! A case is a text. `=== file NAME` begins a file (of a script nothing else: all scripts are the same), `=== request
//! METHOD TARGET` a request with its header lines, `=== compare HEADER …` names response headers that are compared
//! besides `X-…`. `HOWDAH_HTACCESS_CASES` names another directory, and `HOWDAH_CASE` a part of a case's name.
//! A request may end in `differs: WHY`: then the outcomes must not be the same.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod apache_server;
mod ours;

use apache_server::Apache;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What comes of a request, as text: one line for each thing that is compared.
type Outcome = BTreeMap<String, String>;

#[derive(Debug)]
struct Case {
    name: String,
    files: Vec<(String, String)>,
    requests: Vec<Request>,
    compare: Vec<String>,
}

#[derive(Debug)]
struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    differs: Option<String>,
}

impl Case {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().replace('_', "-");
        let mut case = Self { name, files: Vec::new(), requests: Vec::new(), compare: Vec::new() };
        for part in text.split("=== ").skip(1) {
            let (title, body) = part.split_once('\n').unwrap_or((part, ""));
            let words: Vec<&str> = title.split_whitespace().collect();
            match words.as_slice() {
                ["file", name] => case.files.push(((*name).to_owned(), body.trim_end().to_owned() + "\n")),
                ["compare", rest @ ..] => case.compare.extend(rest.iter().map(|word| (*word).to_owned())),
                ["request", method, target] => {
                    let lines = || body.lines().filter_map(|line| line.split_once(": "));
                    let headers = lines().filter(|(name, _)| *name != "differs");
                    case.requests.push(Request {
                        method: (*method).to_owned(),
                        target: (*target).to_owned(),
                        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                        differs: lines().find(|(name, _)| *name == "differs").map(|(_, why)| why.to_owned()),
                    });
                }
                _ => panic!("{}: {title:?}", path.display()),
            }
        }
        case
    }

    fn lay_out(&self, top: &Path) -> PathBuf {
        let root = top.join(&self.name);
        fs::create_dir(&root).unwrap();
        for (name, content) in &self.files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let script = name.ends_with(".php") || name.contains(".php.") || content.trim() == "dump";
            let content = content.replace("@ROOT@", &root.display().to_string());
            fs::write(path, if script { apache_server::SCRIPT } else { &content }).unwrap();
        }
        root
    }
}

#[test]
fn what_comes_of_requests_is_what_apache_makes_of_them() {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let directory = std::env::var_os("HOWDAH_HTACCESS_CASES").map_or(ours, PathBuf::from);
    let mut paths: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let wanted = std::env::var("HOWDAH_CASE").unwrap_or_default();
    let cases: Vec<Case> = paths.iter().map(|path| Case::read(path)).filter(|c| c.name.contains(&wanted)).collect();
    let top = tempfile::tempdir().unwrap();
    let roots: Vec<PathBuf> = cases.iter().map(|case| case.lay_out(top.path())).collect();
    let sites: Vec<(&str, &Path)> =
        cases.iter().zip(&roots).map(|(c, root)| (c.name.as_str(), root.as_path())).collect();
    let Some(apache) = Apache::start(top.path(), &sites) else {
        howdah_skip::skip!("apache", "apache2 or its PHP module is not installed: run `make setup-test`");
    };
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for (case, root) in cases.iter().zip(&roots) {
        for request in &case.requests {
            let host = format!("{}.test:{}", case.name, apache.port);
            let theirs = apache.ask(&host, request, &case.compare);
            let ours = ours::ask(&host, apache.port, root, request, &case.compare);
            tried += 1;
            let title = format!("{}: {} {} {:?}", case.name, request.method, request.target, request.headers);
            match (&request.differs, ours == theirs) {
                (None, false) => wrong.push(format!("{title}\n{}", difference(&theirs, &ours))),
                (Some(why), true) => wrong.push(format!("{title}\n   is the same as under Apache, though: {why}")),
                _ => {}
            }
        }
    }
    let log = apache.log();
    drop(apache);
    assert!(wrong.is_empty(), "{}\n{} of {tried} requests\n{log}", wrong.join("\n"), wrong.len());
    println!("{tried} requests");
}

fn difference(theirs: &Outcome, ours: &Outcome) -> String {
    let keys: std::collections::BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let differ = keys.into_iter().filter(|key| theirs.get(*key) != ours.get(*key));
    let lines = differ.map(|key| format!("   {key}: Apache {:?}, here {:?}", theirs.get(key), ours.get(key)));
    lines.collect::<Vec<_>>().join("\n")
}
