//! Files of the C shim do not call each other in a circle. A unit is a `.c` file; it uses the units whose functions it
//! names.

use super::{Graph, files, knots, read};
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};

const SHIM: &str = "crates/php-host/shim/";

/// The current circles. This list may only shrink.
const KNOTS: &[&[&str]] = &[
    &["async/core/admission", "async/core/request"],
    &[
        "async/core/coroutine",
        "async/core/coroutine_class",
        "async/core/coroutine_state",
        "async/isolation/exclusive_connections",
        "async/pools/pools",
        "async/tools/stacks",
    ],
    &["modes/snapshot", "modes/snapshot_functions"],
    &["snapshot/sessions/mysql", "snapshot/sessions/pgsql", "snapshot/sessions/redis", "snapshot/sessions/tap"],
];

/// C without comments, strings and preprocessor lines.
fn code(text: &str) -> String {
    let other = Regex::new(r#"(?s)/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"#).unwrap();
    let text = other.replace_all(text, "").replace("\\\n", " ");
    text.lines().filter(|line| !line.trim_start().starts_with('#')).map(|line| format!("{line}\n")).collect()
}

/// Non-static functions that a file defines. Definitions begin in the first column.
fn defined(code: &str) -> BTreeSet<String> {
    let attribute = Regex::new(r"__attribute__\(\(.*?\)\)\s*").unwrap();
    let name = Regex::new(r"([a-z_][a-z0-9_]*)\(").unwrap();
    let code = attribute.replace_all(code, "");
    let mut found = BTreeSet::new();
    let mut at = 0;
    for line in code.split_inclusive('\n') {
        let rest = &code[at..];
        at += line.len();
        let is_head = line.starts_with(|c: char| c.is_alphabetic() || c == '_') && !line.starts_with("static");
        // The first of these characters distinguishes a definition from a declaration and a value.
        if is_head && rest.find(['{', ';', '=']).is_some_and(|end| rest[end..].starts_with('{')) {
            found.extend(name.captures(line).map(|name| name[1].to_owned()));
        }
    }
    found
}

#[test]
fn external_c_functions_are_found() {
    let text = "/* old(void) { */\n#define X(y) {\nstatic int own(void) {\n    other();\n}\n\nconst char *given(int a,\n                  int b) {\n}\n\
                __attribute__((noinline)) bool also(void) {\n}\nint declared(void);\nPHP_FUNCTION(Howdah_log) {\n}\n\
                zend_module_entry entry = {\n    call(1),\n};\n";
    assert_eq!(defined(&code(text)), BTreeSet::from(["given", "also"].map(str::to_owned)));
}

#[test]
fn files_of_the_shim_have_no_new_call_cycles() {
    let word = Regex::new(r"[A-Za-z_][A-Za-z0-9_]*").unwrap();
    let sources: BTreeMap<String, String> = files()
        .iter()
        .filter_map(|path| Some((path.strip_prefix(SHIM)?.strip_suffix(".c")?.to_owned(), code(&read(path)))))
        // Replaces a mode in builds without it.
        .filter(|(unit, _)| !unit.starts_with("modes/without/"))
        .collect();
    let mut definers: BTreeMap<String, &str> = BTreeMap::new();
    for (unit, code) in &sources {
        definers.extend(defined(code).into_iter().map(|function| (function, &**unit)));
    }
    assert!(definers.len() > 300, "{} functions", definers.len());
    let mut graph = Graph::new();
    for (unit, code) in &sources {
        let used = word.find_iter(code).filter_map(|word| definers.get(word.as_str()).copied());
        graph.insert(unit.clone(), used.filter(|used| used != unit).map(str::to_owned).collect());
    }
    let known: BTreeSet<BTreeSet<&str>> = KNOTS.iter().map(|knot| knot.iter().copied().collect()).collect();
    let found = knots(&graph);
    let new: Vec<_> = found.difference(&known).collect();
    assert!(new.is_empty(), "these call each other in a circle: {new:#?}");
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(gone.is_empty(), "no longer circles: remove them from KNOTS: {gone:#?}");
}
