//! Two lists have the variables `HOWDAH_…` that the programs and PHP's processes read in addition to settings. The
//! server warns about variables missing from the first, and does not pass PHP those missing from the second.

use super::{files, read};
use regex_lite::Regex;
use std::collections::BTreeSet;

/// Variables that are no settings and give no warning.
const OTHERS: (&str, &str) = ("crates/config/src/unknown_variables.rs", "OTHERS");
/// Those that PHP's processes get.
const OF_PHP: (&str, &str) = ("crates/pool/src/process/environment.rs", "PHP_VARIABLES");

/// Sources of PHP's processes.
const PHP_SOURCES: &[&str] = &["crates/php-host/shim/", "php/"];

/// Variables read by name: in Rust, perhaps through a constant; in C and PHP.
fn read_by(source: &str) -> BTreeSet<String> {
    let reads = r#"(?:\benv::var(?:_os)?\(|\bconst \w+: &str = |[^_]getenv\()["'](HOWDAH_[A-Z0-9_]+)["']"#;
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    Regex::new(reads).unwrap().captures_iter(source).map(|found| found[1].to_owned()).collect()
}

/// Names in a list of strings.
fn listed((path, list): (&str, &str)) -> BTreeSet<String> {
    let text = read(path);
    let (_, rest) = text.split_once(&format!("const {list}: &[&str] = &[")).unwrap();
    let names = Regex::new(r#""(\w+)""#).unwrap();
    names.captures_iter(rest.split_once("];").unwrap().0).map(|found| found[1].to_owned()).collect()
}

/// Variables that sources read and no setting has. Those of tests have a prefix.
fn read_besides_settings(is_of_php: bool) -> BTreeSet<String> {
    let settings = read("docs/reference/settings.md");
    let is_source = |path: &String| {
        let tests = path.contains("/tests/") || path.ends_with("tests.rs") || path.ends_with("build.rs");
        let is_code = [".rs", ".c", ".h", ".php"].iter().any(|end| path.ends_with(end));
        let part = path.starts_with("crates/") || path.starts_with("php/");
        part && is_code && !tests && PHP_SOURCES.iter().any(|place| path.starts_with(place)) == is_of_php
    };
    let all = files().into_iter().filter(is_source).flat_map(|path| read_by(&read(&path)));
    all.filter(|name| !settings.contains(&format!("`{name}`")) && !name.starts_with("HOWDAH_TEST_")).collect()
}

#[test]
fn variables_of_the_programs_are_known_and_those_of_php_reach_it() {
    let of_php = read_besides_settings(true);
    assert_eq!(of_php, listed(OF_PHP), "read by PHP's processes, and {}", OF_PHP.0);
    let all: BTreeSet<String> = of_php.into_iter().chain(read_besides_settings(false)).collect();
    assert_eq!(all, listed(OTHERS), "read by the sources, and {}", OTHERS.0);
}

#[test]
fn reads_of_variables_are_found() {
    let source = "const A: &str = \"HOWDAH_A\"; std::env::var_os(\"HOWDAH_B\"); x = getenv('HOWDAH_C'); env!(\"HOWDAH_D\"); \
                  shim_sapi_getenv(\"HOWDAH_E\"); var(\"PATH\");\n#[cfg(test)]\nmod tests {\nstd::env::var(\"HOWDAH_F\")";
    assert_eq!(read_by(source), BTreeSet::from(["HOWDAH_A", "HOWDAH_B", "HOWDAH_C"].map(str::to_owned)));
}
