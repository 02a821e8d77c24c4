//! ARCHITECTURE.md is true: the files that it names exist, crates use only permitted crates, `unsafe` stays in its
//! permitted files, modules of a crate do not import each other in a circle, and files, lines of prose, settings and
//! metrics stay within their limits.
//!
//! The scans are textual: they find `crate::module`, `super::module` and lists of them as written. `structure/shim.rs`
//! checks the files of the C shim, `structure/links.rs` links between documents, `structure/messages.rs` the list of
//! messages, `structure/reference_pages.rs` the other hand-written pages of the reference, `structure/variables.rs` the
//! environment variables.
#![allow(clippy::unwrap_used)]

#[path = "structure/connections_page.rs"]
mod connections_page;
#[path = "structure/links.rs"]
mod links;
#[path = "structure/messages.rs"]
mod messages;
#[path = "structure/reference_pages.rs"]
mod reference_pages;
#[path = "structure/shim.rs"]
mod shim;
#[path = "structure/variables.rs"]
mod variables;

use regex_lite::Regex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Permitted dependencies between our crates.
const EDGES: &[(&str, &[&str])] = &[
    ("howdah-budget", &[]),
    ("howdah-transport", &[]),
    ("howdah-error-page", &[]),
    ("howdah-php", &["howdah-detect", "howdah-error-page", "howdah-transport"]),
    ("howdah-detect", &[]),
    ("howdah-doctor", &[]),
    ("howdah-config", &["howdah-budget", "howdah-detect", "howdah-rules", "howdah-transport"]),
    ("howdah-observe", &["howdah-budget", "howdah-config"]),
    ("howdah-pool", &["howdah-budget", "howdah-config", "howdah-observe", "howdah-transport"]),
    ("howdah-telemetry", &["howdah-config", "howdah-observe", "howdah-tls"]),
    ("howdah-store", &[]),
    ("howdah-tls", &["howdah-store"]),
    ("howdah-rules", &[]),
    ("howdah-websocket", &["howdah-budget", "howdah-live", "howdah-observe", "howdah-protocol"]),
    ("howdah-htaccess", &["howdah-rules"]),
    ("howdah-live", &["howdah-budget"]),
    ("howdah-mercure", &["howdah-live"]),
    ("howdah-pusher", &["howdah-live"]),
    ("howdah-protocol", &["howdah-budget", "howdah-config", "howdah-observe", "howdah-tls"]),
    ("howdah-proxy", &["howdah-budget", "howdah-config", "howdah-observe", "howdah-protocol"]),
    // `site` still writes variables itself, and takes bodies in place; both belong behind the pool's interface.
    (
        "howdah-site",
        &[
            "howdah-budget",
            "howdah-config",
            "howdah-error-page",
            "howdah-htaccess",
            "howdah-live",
            "howdah-mercure",
            "howdah-observe",
            "howdah-pool",
            "howdah-protocol",
            "howdah-pusher",
            "howdah-rules",
            "howdah-store",
            "howdah-telemetry",
            "howdah-transport",
            "howdah-websocket",
        ],
    ),
    (
        "howdah",
        &[
            "howdah-budget",
            "howdah-config",
            "howdah-detect",
            "howdah-doctor",
            "howdah-htaccess",
            "howdah-observe",
            "howdah-pool",
            "howdah-protocol",
            "howdah-proxy",
            "howdah-site",
            "howdah-store",
            "howdah-telemetry",
            "howdah-tls",
            "howdah-transport",
        ],
    ),
    ("howdah-lab", &["howdah-trusting"]),
    ("howdah-skip", &[]),
    ("howdah-trusting", &[]),
    ("howdah-fuzz-driver", &[]),
    ("howdah-test-runner", &[]),
    ("howdah-tests", &["howdah-skip", "howdah-trusting"]),
];

/// Files and folders that may contain `unsafe`.
const UNSAFE: &[&str] =
    &["crates/transport/", "crates/php-host/", "crates/cli/src/allocator.rs", "crates/pool/src/descriptor.rs"];

/// Files in which a request must be called a request, and a response a response, at every stage.
const ONE_VOCABULARY: &[&str] = &[
    "crates/cli/src/",
    "crates/config/src/",
    "crates/doctor/src/",
    "crates/observe/src/",
    "crates/php-host/src/",
    "crates/pool/src/",
    "crates/protocol/src/",
    "crates/site/src/",
    "crates/transport/src/",
];

/// Files of these that are about calls of functions or of the kernel.
const OTHER_CALLS: &[&str] = &["php-host/src/sandbox/", "protocol/src/panics.rs", "protocol/src/socket"];

/// Maximum width of prose and tables in columns. Code may be longer.
const WIDTH: usize = 120;

/// Generated documents: raw measurements, and a page whose generator does not wrap lines yet.
const UNWRAPPED: &[&str] = &["lab/results/", "docs/reference/async-api.md"];

/// Every file of the project, by its path from the root.
fn files() -> Vec<String> {
    let output =
        Command::new("git").args(["ls-files", "-co", "--exclude-standard"]).current_dir(ROOT).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let files: Vec<String> = match output.status.success() {
        true => listed.lines().filter(|path| Path::new(ROOT).join(path).is_file()).map(str::to_owned).collect(),
        // An unpacked archive without its history.
        false => walk(Path::new(ROOT)).iter().map(|path| relative(path)).collect(),
    };
    assert!(files.len() > 300, "{} files", files.len());
    files
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && name != "target" && name != ".git" {
            found.extend(walk(&path));
        } else if path.is_file() {
            found.push(path);
        }
    }
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(ROOT).unwrap().to_str().unwrap().to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(path)).unwrap()
}

/// Strips comments, so that names in them do not count as uses.
fn code(path: &str) -> String {
    read(path).lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// True if `name` in a document stands for this file: names omit parts that are the same everywhere.
fn is_meant(name: &str, path: &str) -> bool {
    let short = path.replace("/src/", "/").replace("crates/", "");
    let pattern = regex_lite::escape(name).replace(r"\*", "[^/]*");
    let pattern = Regex::new(&format!("(^|/){pattern}$")).unwrap();
    pattern.is_match(path) || pattern.is_match(&short)
}

#[test]
fn every_file_that_the_architecture_names_exists() {
    let files = files();
    let page = read("ARCHITECTURE.md");
    let named = Regex::new(r"[\w.*-]+(?:/[\w.*-]+)*\.(?:rs|c|h|md|toml|php)\b").unwrap();
    let names: BTreeSet<&str> = named.find_iter(&page).map(|found| found.as_str()).collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        assert!(files.iter().any(|path| is_meant(name, path)), "ARCHITECTURE.md names {name}, which does not exist");
    }
    // The path of a request is drawn without file extensions.
    let path = page.split("```").nth(3).unwrap();
    let step = Regex::new(r"\b(?:protocol|site|pool|transport)/[a-z0-9_/]+").unwrap();
    let steps: BTreeSet<&str> = step.find_iter(path).map(|found| found.as_str().trim_end_matches('/')).collect();
    assert!(steps.len() > 8, "{steps:?}");
    for step in steps {
        let is_there = files.iter().any(|path| {
            let short = path.replace("/src/", "/").replace("crates/", "");
            short == format!("{step}.rs") || short.starts_with(&format!("{step}/"))
        });
        assert!(is_there, "ARCHITECTURE.md leads through {step}, which does not exist");
    }
}

#[test]
fn crates_depend_only_on_permitted_ones() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--no-deps"])
        .current_dir(ROOT)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found: BTreeMap<&str, BTreeSet<&str>> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            let ours = package["dependencies"].as_array().unwrap().iter();
            let ours = ours.filter(|other| other["kind"].is_null() && !other["path"].is_null());
            (package["name"].as_str().unwrap(), ours.map(|other| other["name"].as_str().unwrap()).collect())
        })
        .collect();
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        EDGES.iter().map(|(name, others)| (*name, others.iter().copied().collect())).collect();
    assert_eq!(found, allowed, "a crate or a dependency has changed: update ARCHITECTURE.md and EDGES");
}

#[test]
fn unsafe_stays_where_it_may_be() {
    let word = Regex::new(r"\bunsafe\s*(\{|fn\b|impl\b|extern\b|trait\b)").unwrap();
    let found: Vec<String> =
        files().into_iter().filter(|path| path.ends_with(".rs") && word.is_match(&code(path))).collect();
    for path in &found {
        assert!(UNSAFE.iter().any(|place| path.starts_with(place)), "{path} has unsafe code");
    }
    for place in UNSAFE {
        assert!(found.iter().any(|path| path.starts_with(place)), "{place} has no unsafe code: remove it from UNSAFE");
    }
}

/// Splits the path at the beginning of a text, including lists in it. Returns the text after it.
fn spread<'a>(text: &'a str, mut path: Vec<&'a str>, found: &mut BTreeSet<Vec<&'a str>>) -> &'a str {
    let mut rest = text;
    loop {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        path.extend((end > 0).then(|| &rest[..end]));
        rest = &rest[end..];
        let Some(next) = rest.strip_prefix("::") else { break };
        rest = next;
        let Some(mut list) = rest.strip_prefix('{') else { continue };
        loop {
            list = spread(list.trim_start(), path.clone(), found);
            let end = list.find([',', '}']).unwrap_or(list.len());
            let is_last = !list[end..].starts_with(',');
            list = list.get(end + 1..).unwrap_or_default();
            if is_last {
                return list;
            }
        }
    }
    found.insert(path);
    rest
}

/// The paths in a text that begin with `crate`, `super` or `self`.
fn used_paths(text: &str) -> BTreeSet<Vec<&str>> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("::") {
        let before = &text[..at];
        let word = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |end| end + 1);
        let is_first = !before[..word].ends_with("::");
        if is_first && matches!(&before[word..], "crate" | "super" | "self") {
            spread(&text[word..], Vec::new(), &mut found);
        }
    }
    found
}

#[test]
fn imports_are_detected_in_every_form() {
    let text = "use crate::a::B;\nuse crate::{\n    c::{self, D as G}, e, f::*,\n};\nfn f() { super::super::g::h() }\nuse other::{crate_b, i};";
    let found: BTreeSet<String> = used_paths(text).into_iter().map(|path| path.join("::")).collect();
    let expected = ["crate::a::B", "crate::c::self", "crate::c::D", "crate::e", "crate::f", "super::super::g::h"];
    for path in expected {
        assert!(found.contains(path), "{path}: {found:?}");
    }
    assert!(found.iter().all(|path| expected.contains(&&**path) || path == "crate"), "{found:?}");
}

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Imports between the modules of each folder of a crate: an import by or of a module further down counts for its
/// ancestor in the folder. A module and its submodules are one unit, and may use each other. Tests may import anything.
fn imports(crate_dir: &str, files: &[String]) -> BTreeMap<String, Graph> {
    let mut modules: BTreeMap<Vec<&str>, &str> = BTreeMap::new();
    for path in files {
        let Some(inside) = path.strip_prefix(&format!("{crate_dir}/src/")).and_then(|it| it.strip_suffix(".rs")) else {
            continue;
        };
        let mut module: Vec<&str> = inside.split('/').collect();
        if matches!(module.last(), Some(&"mod")) {
            module.pop();
        }
        if module != ["lib"] && module != ["main"] && !module.iter().any(|name| name.ends_with("tests")) {
            modules.insert(module, path);
        }
    }
    let mut rooms: BTreeMap<String, Graph> = BTreeMap::new();
    for (module, path) in &modules {
        let text = code(path);
        let production = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for path in used_paths(production) {
            let mut used = if path[0] == "crate" { Vec::new() } else { module.clone() };
            for name in path.iter().skip_while(|name| matches!(**name, "crate" | "self")) {
                match *name {
                    "super" => drop(used.pop()),
                    name => used.push(name),
                }
            }
            while !used.is_empty() && !modules.contains_key(&used) {
                used.pop();
            }
            let shared = module.iter().zip(&used).take_while(|(one, other)| one == other).count();
            if let (Some(from), Some(to)) = (module.get(shared), used.get(shared)) {
                let room = rooms.entry(module[..shared].join("/")).or_default();
                room.entry((*from).to_owned()).or_default().insert((*to).to_owned());
            }
        }
    }
    rooms
}

/// All modules that can be reached from a module.
fn reached<'a>(graph: &'a Graph, start: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut left: Vec<&str> = graph.get(start).into_iter().flatten().map(String::as_str).collect();
    while let Some(module) = left.pop() {
        if seen.insert(module) {
            left.extend(graph.get(module).into_iter().flatten().map(String::as_str));
        }
    }
    seen
}

/// Sets of modules that reach each other, and so themselves.
fn knots(graph: &Graph) -> BTreeSet<BTreeSet<&str>> {
    let leads_back = graph.keys().filter(|module| reached(graph, module).contains(&***module));
    leads_back
        .map(|module| {
            reached(graph, module).into_iter().filter(|other| reached(graph, other).contains(&**module)).collect()
        })
        .collect()
}

/// Maximum number of files in the walk of a classic GET, and of those on its direct path.
const MOST_OF_A_WALK: (usize, usize) = (52, 35);

#[test]
fn the_walk_of_a_get_counts_its_files_and_grows_no_longer() {
    let page = read("ARCHITECTURE.md");
    let (_, walk) = page.split_once("### A classic GET").unwrap();
    let (walk, figures) = walk.split_once("These are ").unwrap();
    let name = Regex::new("`([^`]+)`").unwrap();
    let count = |text: &str| name.find_iter(text).map(|found| found.as_str()).collect::<BTreeSet<_>>().len();
    let straight = Regex::new(r"\([^()]*\)").unwrap().replace_all(walk, "");
    let (all, straight) = (count(walk), count(&straight));
    let said = format!("{all} files, {straight} of them");
    assert!(figures.starts_with(&said), "the walk names {said} without those in brackets");
    assert!(all <= MOST_OF_A_WALK.0 && straight <= MOST_OF_A_WALK.1, "{said}: the walk has become longer");
}

#[test]
fn module_cycles_are_found() {
    let graph = |edges: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        graph
    };
    assert!(knots(&graph(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    let round = graph(&[("a", "b"), ("b", "c"), ("c", "b"), ("d", "a"), ("e", "e")]);
    assert_eq!(knots(&round), BTreeSet::from([BTreeSet::from(["b", "c"]), BTreeSet::from(["e"])]));
}

#[test]
fn modules_have_no_import_cycles() {
    let files = files();
    let crates: BTreeSet<&str> = files
        .iter()
        .filter_map(|path| path.strip_suffix("/src/lib.rs").or(path.strip_suffix("/src/main.rs")))
        .collect();
    assert!(crates.len() >= EDGES.len(), "{crates:?}");
    let mut rooms = 0;
    for name in crates {
        for (room, graph) in imports(name, &files) {
            let knots = knots(&graph);
            assert!(knots.is_empty(), "{name}/src/{room}: these import each other in a circle: {knots:?} of {graph:?}");
            rooms += 1;
        }
    }
    assert!(rooms > 30, "{rooms} folders with modules");
}

#[test]
fn a_request_and_a_response_have_one_name_each() {
    let text_in_quotes = Regex::new(r#""(?:\\.|[^"\\])*""#).unwrap();
    let name = Regex::new(r"[A-Za-z_][A-Za-z0-9_]*").unwrap();
    let snake = Regex::new("(?:^|_)(?:(?:call|job|answer)s?|repl(?:y|ies))(?:$|_)").unwrap();
    let camel = Regex::new("(?:^|[a-z])(?:(?:Call|Job|Answer)s?|Repl(?:y|ies))(?:$|[A-Z])").unwrap();
    let loud = Regex::new("(?:^|_)(?:CALL|JOB|ANSWER|REPLY)(?:S|IES)?(?:$|_)").unwrap();
    let is_old = |word: &str| {
        let word = word.replace("system_call", "").replace("SystemCall", "");
        [&snake, &camel, &loud].iter().any(|old| old.is_match(&word))
    };
    assert!(
        ["call", "end_call", "CallStats", "TakenCall", "reply_sink", "CALL_NICE", "jobs"]
            .iter()
            .all(|word| is_old(word))
    );
    assert!(!["called", "callback", "recall", "SystemCalls", "caller", "answered"].iter().any(|word| is_old(word)));
    for path in files().iter().filter(|path| path.ends_with(".rs")) {
        let is_meant = ONE_VOCABULARY.iter().any(|place| path.starts_with(place));
        if !is_meant || OTHER_CALLS.iter().any(|place| path.contains(place)) {
            continue;
        }
        let code = code(path);
        for line in code.lines() {
            // Most lines contain none of these letters, and regular expressions are slow.
            let small = line.to_ascii_lowercase();
            if !["call", "job", "answer", "repl"].iter().any(|old| small.contains(old)) {
                continue;
            }
            let line = text_in_quotes.replace_all(line, "").replace("panics::call", "");
            let found = name.find_iter(&line).map(|found| found.as_str()).find(|word| is_old(word));
            assert!(found.is_none(), "{path}: {}: write request and response", found.unwrap_or_default());
        }
    }
}

#[test]
fn lines_of_documents_fit_into_a_diff() {
    for path in files().iter().filter(|path| path.ends_with(".md")) {
        if UNWRAPPED.iter().any(|place| path.starts_with(place)) {
            continue;
        }
        let mut fenced = false;
        for (at, line) in read(path).lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            let is_code = fenced || line.starts_with("    ");
            // A URL cannot be broken, nor can code within a line or a row of a table.
            let is_whole = line.split('`').skip(1).step_by(2).any(|code| code.chars().count() > WIDTH - 20);
            let is_row = line.trim_start().starts_with('|');
            let can_break = !is_whole && !is_row && line.trim().trim_start_matches("- ").contains(' ');
            let fits = line.chars().count() <= WIDTH;
            assert!(fits || is_code || !can_break, "{path}:{}: longer than {WIDTH} columns", at + 1);
        }
    }
}

/// Longest file, in lines: one has a single purpose, and is read in one sitting.
const MOST_LINES: usize = 600;

#[test]
fn no_file_of_code_is_longer_than_one_sitting() {
    let is_code = |path: &&String| {
        let kind = Path::new(path.as_str()).extension().and_then(|kind| kind.to_str());
        matches!(kind, Some("rs" | "c" | "h" | "php" | "py" | "sh" | "js"))
    };
    for path in files().iter().filter(is_code) {
        let lines = read(path).lines().count();
        assert!(lines <= MOST_LINES, "{path} has {lines} lines, more than {MOST_LINES}: divide it by purpose");
    }
}

#[test]
fn each_crate_has_a_short_description() {
    for path in files() {
        let Some(name) = path.strip_suffix("/Cargo.toml") else { continue };
        if name == "fuzz" {
            continue;
        }
        let path = Path::new(ROOT).join(name).join("README.md");
        let Ok(text) = fs::read_to_string(&path) else { panic!("{name} has no README.md") };
        let most = if name == "lab" { 60 } else { 15 };
        assert!(text.lines().count() <= most, "{name}/README.md is longer than {most} lines");
    }
}

#[test]
fn every_claim_about_security_names_a_test_that_exists() {
    let (page, files) = (read("SECURITY.md"), files());
    let code: Vec<&String> = files.iter().filter(|path| path.ends_with(".rs")).collect();
    let named = Regex::new("^([a-z0-9_]+)::([a-z0-9_]*)(…?)$").unwrap();
    let mut found = 0;
    for text in page.split('`').skip(1).step_by(2) {
        if let Some(parts) = named.captures(text) {
            let (place, name) = (&parts[1], regex_lite::escape(&parts[2]));
            let end = if parts[3].is_empty() { r"\b" } else { "" };
            let name = Regex::new(&format!(r"\b{name}{end}")).unwrap();
            let is_there =
                |path: &&&String| path.ends_with(&format!("/{place}.rs")) || path.contains(&format!("/{place}/"));
            let is_held = code.iter().filter(is_there).any(|path| name.is_match(&read(path)));
            assert!(is_held, "SECURITY.md names {text}, which does not exist");
            found += 1;
        } else if ["crates/", "tests/", "docs/"].iter().any(|start| text.starts_with(start)) {
            assert!(Path::new(ROOT).join(text).exists(), "SECURITY.md names {text}, which does not exist");
            found += 1;
        }
    }
    assert!(found > 30, "{found} tests and files are named");
}

/// Maximum number of settings, flags of `howdah serve`, commands and metrics. Each is a promise to users; lower a
/// number when one is removed, and remove two to add one.
// Four are the Mercure hub's: two keys, since applications that sign tokens of subscribers need not be able to publish;
// permission to subscribe without a token; and the origins for that. None of them can be detected.
// Two are the Pusher protocol's: the application, whose secret only its owner knows, and the target of webhooks. A time
// of static files and a switch of traces were removed for them.
// `websocket` of a rule does what no other setting can: WebSocket connections whose events PHP gets.
const MOST_KEYS: usize = 175;
const MOST_FLAGS: usize = 18;
const MOST_COMMANDS: usize = 16;
/// `howdah_websocket_messages_total` is the only sign of life of connections whose messages are not requests of
/// clients. The two metrics of Mercure hubs show whether a hub is used, and by how many.
const MOST_METRICS: usize = 53;

#[test]
fn settings_flags_commands_and_metrics_only_become_fewer() {
    let settings = read("docs/reference/settings.md");
    let keys = settings.lines().filter(|line| line.starts_with("### `")).count();
    let (_, rules) = settings.split_once("\n## `[[rule]]`\n").expect("rules have a section");
    let (rules, _) = rules.split_once("\n## ").expect("there are sections after that of rules");
    let keys = keys + rules.lines().filter(|line| line.starts_with("- `")).count();
    let commands_page = read("docs/reference/commands.md");
    let commands = commands_page.lines().filter(|line| line.starts_with("## `howdah ")).count();
    let (_, serve) = commands_page.split_once("\n## `howdah serve`\n").expect("serve has a section");
    let serve = serve.split("\n## ").next().unwrap_or_default();
    let is_flag = |line: &&str| {
        line.trim_start().starts_with('-') && line.split("--").nth(1).is_some_and(|_| line.starts_with("  "))
    };
    let flags = serve.lines().filter(is_flag).filter(|line| !line.contains("--help")).count();
    let metrics = read("docs/reference/metrics.md").lines().filter(|line| line.starts_with("- `howdah_")).count();
    for (what, count, most, where_) in [
        ("keys of howdah.toml", keys, MOST_KEYS, "crates/config/src/settings*.rs and crates/rules/src/keys.rs"),
        ("flags of `howdah serve`", flags, MOST_FLAGS, "`flag(…)` in crates/config/src/settings*.rs"),
        ("commands", commands, MOST_COMMANDS, "crates/config/src/cli.rs"),
        ("metrics", metrics, MOST_METRICS, "crates/observe/src/metrics/table.rs"),
    ] {
        println!("{what}: {count}");
        assert!(count > most / 2, "{what}: only {count} found: the count is broken");
        assert!(count <= most, "{what}: {count}, more than the maximum of {most}; see {where_}");
    }
}
