//! Documented commands work in the environment of a login: `PATH`, `HOME` and a terminal. A goal or a script must not
//! depend on a variable that only continuous integration or a developer has set.
#![allow(clippy::unwrap_used)]

use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Variables that a shell or a login sets.
const OF_A_LOGIN: &[&str] =
    &["BASHPID", "BASH_SOURCE", "EUID", "HOME", "OLDPWD", "PATH", "PPID", "PWD", "RANDOM", "SECONDS", "UID"];

fn by_a_person(program: &str, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .current_dir(ROOT)
        .env_clear()
        .envs(["PATH", "HOME"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .envs([("TERM", "xterm"), ("LANG", "C.UTF-8"), ("SHELL", "/bin/bash")])
        .output()
        .unwrap()
}

/// The goals listed by `make help`.
fn goals() -> BTreeSet<String> {
    let help = String::from_utf8(by_a_person("make", &["help"]).stdout).unwrap();
    let goals: BTreeSet<String> =
        help.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    assert!(goals.len() > 20, "{help}");
    goals
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(path)).unwrap()
}

/// The shell scripts of the project, by their path from the root.
fn scripts() -> Vec<PathBuf> {
    let listed = by_a_person("git", &["ls-files", "-co", "--exclude-standard", "scripts", "packaging", ".ci"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    let is_script = |path: &PathBuf| {
        fs::read_to_string(path).is_ok_and(|text| text.starts_with("#!/bin/bash") || text.starts_with("#!/bin/sh"))
    };
    let scripts: Vec<PathBuf> = listed.lines().map(|path| Path::new(ROOT).join(path)).filter(is_script).collect();
    assert!(scripts.len() > 15, "{scripts:?}");
    scripts
}

#[test]
fn nothing_is_built_in_the_default_profile() {
    let mut texts = vec![("Makefile".to_owned(), read("Makefile"))];
    texts.extend(scripts().into_iter().map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap())));
    let command =
        Regex::new(r#"(\$\(CARGO\)|\$\{CARGO:-cargo\}"|\$cargo"|\bcargo) (build|test|run|check|clippy|doc|bench) "#)
            .unwrap();
    let mut commands = 0;
    for (path, text) in &texts {
        for line in text
            .lines()
            .filter(|line| command.is_match(line) && !line.trim_start().starts_with('#') && !line.contains("--version"))
        {
            commands += 1;
            assert!(
                line.contains("--profile ") || line.contains("--release"),
                "{path}: builds third-party crates again: {line}"
            );
        }
    }
    assert!(commands > 20, "{commands} commands");
}

#[test]
fn make_fuzz_runs_every_crate_that_has_fuzz_targets() {
    let makefile = read("Makefile");
    let goal = makefile.split("\nfuzz:").nth(1).unwrap().split("\n\n").next().unwrap();
    let crates: Vec<_> =
        fs::read_dir(Path::new(ROOT).join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let driven = |path: &PathBuf| {
        let cargo = fs::read_to_string(path.join("Cargo.toml")).unwrap_or_default();
        cargo.split_once("[dev-dependencies]").is_some_and(|(_, rest)| rest.contains("howdah-fuzz-driver"))
    };
    let driven: Vec<_> = crates.into_iter().filter(driven).collect();
    assert!(driven.len() >= 5, "{driven:?}");
    for path in driven {
        let name = format!("-p howdah-{} ", path.file_name().unwrap().to_str().unwrap());
        assert!(goal.contains(&name), "make fuzz leaves out {name}");
    }
}

#[test]
fn every_goal_expands_in_the_environment_of_a_login() {
    for goal in goals() {
        let output = by_a_person("make", &["--no-print-directory", "-n", &goal]);
        assert!(output.status.success(), "make -n {goal}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Variables in capitals that a shell text reads without a default, and does not set itself.
fn inherited(text: &str) -> BTreeSet<String> {
    let read = Regex::new(r"\$(?:\{([A-Z][A-Z0-9_]*)[}%#/^,\[]|([A-Z][A-Z0-9_]*))").unwrap();
    let set = Regex::new(
        r#"(?:^|[\s;(&|])(?:export |local |readonly )?([A-Z][A-Z0-9_]*)\+?=|: "?\$\{([A-Z][A-Z0-9_]*):?[=?]"#,
    );
    let set_by_word = Regex::new(r"(?:read|for|local|mapfile)(?: -\w+)* ([A-Z][A-Z0-9_]*)").unwrap();
    let names = |regex: &Regex| -> BTreeSet<String> {
        let captures = regex.captures_iter(text);
        captures.filter_map(|c| c.iter().skip(1).flatten().next().map(|m| m.as_str().to_owned())).collect()
    };
    let known: BTreeSet<String> = [&set.unwrap(), &set_by_word].into_iter().flat_map(names).collect();
    let of_a_login = |name: &String| OF_A_LOGIN.contains(&name.as_str());
    names(&read).into_iter().filter(|name| !known.contains(name) && !of_a_login(name)).collect()
}

/// The text without comments and without single-quoted text, which another program reads.
fn shell_code(text: &str) -> String {
    let quoted = Regex::new(r"'[^']*'").unwrap();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    quoted.replace_all(&lines.collect::<Vec<_>>().join("\n"), "''").into_owned()
}

#[test]
fn no_recipe_and_no_script_reads_a_variable_that_nothing_sets() {
    let makefile = read("Makefile");
    // In a recipe the shell's own variables: `$$NAME` in the Makefile.
    let recipes = shell_code(&makefile).replace("$(", "(").replace("$$", "$");
    assert_eq!(inherited(&recipes), BTreeSet::new(), "Makefile");
    for script in scripts() {
        let text = fs::read_to_string(&script).unwrap();
        assert_eq!(inherited(&shell_code(&text)), BTreeSet::new(), "{}: give them a default", script.display());
    }
}

#[test]
fn the_scan_finds_inherited_variables() {
    let seen = |text: &str| inherited(text).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(seen("echo $HOWDAH_X ${HOWDAH_Y}"), "HOWDAH_X HOWDAH_Y");
    assert_eq!(seen("echo ${HOWDAH_X-} ${HOWDAH_Y:-a} ${HOWDAH_Z:?say so} $HOME"), "");
    assert_eq!(seen("HOWDAH_X=1 make; echo $HOWDAH_X; read -r LINE; echo \"$LINE\""), "");
}

#[test]
fn hosted_integration_calls_goals_that_exist() {
    let goal = Regex::new(r"goal: ([a-z0-9-]+),").unwrap();
    let text = read(".github/workflows/ci.yml");
    let called: BTreeSet<String> = goal.captures_iter(&text).map(|found| found[1].to_owned()).collect();
    assert!(called.contains("lint") && called.contains("test"), "{called:?}");
    assert!(called.is_subset(&goals()), "{called:?}");
}

#[test]
fn documents_name_goals_that_exist() {
    let goals = goals();
    let named = Regex::new(r"(?:^|`|\s)make ([a-z][a-z0-9-]*)(?:`|\s|$)").unwrap();
    for document in ["README.md", "CONTRIBUTING.md", "docs/guide/install.md", "lab/CHOOSE.md"] {
        let text = read(document);
        for block in text.split("```").skip(1).step_by(2) {
            for goal in block.lines().filter_map(|line| named.captures(line.split('#').next().unwrap_or(""))) {
                assert!(goals.contains(&goal[1]), "{document}: `make {}` does not exist", &goal[1]);
            }
        }
    }
    for goal in named.captures_iter(&read("CONTRIBUTING.md")) {
        let known = goals.contains(&goal[1]) || ["help", "sure"].contains(&&goal[1]);
        assert!(known, "CONTRIBUTING.md: `make {}` does not exist", &goal[1]);
    }
}

/// Commands in `docs/reference/commands.md`, which is generated from the command line's definition, each with its
/// section.
fn commands(reference: &str) -> BTreeMap<&str, &str> {
    reference.split("\n## `howdah ").skip(1).filter_map(|section| section.split_once('`')).collect()
}

#[test]
fn documents_name_commands_and_flags_that_exist() {
    let reference = read("docs/reference/commands.md");
    let commands = commands(&reference);
    assert!(commands.len() > 10, "{commands:?}");
    let call = Regex::new(r"^(?:[$#] )?(?:cd \S+ && )?(?:sudo )?howdah ([a-z]+)([^#|]*)").unwrap();
    let flag = Regex::new(r"\s(--[a-z][a-z-]*)").unwrap();
    let guides = by_a_person("git", &["ls-files", "README.md", "CONTRIBUTING.md", "docs/guide/*.md"]);
    for document in String::from_utf8(guides.stdout).unwrap().lines() {
        let text = read(document);
        let lines = text.split("```").skip(1).step_by(2).flat_map(str::lines);
        for called in lines.filter_map(|line| call.captures(line)) {
            let section = commands.get(&called[1]);
            let section = section.unwrap_or_else(|| panic!("{document}: `howdah {}` does not exist", &called[1]));
            for flag in flag.captures_iter(&called[2]) {
                // `check` accepts the flags of `serve`.
                let exists = [*section, commands["serve"]].iter().any(|section| section.contains(&flag[1]));
                assert!(exists, "{document}: `howdah {} {}` does not exist", &called[1], &flag[1]);
            }
        }
    }
}

#[test]
fn scenarios_that_depend_on_time_exist() {
    let listed = read("tests/timed.txt");
    for scenario in listed.lines() {
        let mut parts = scenario.split("::");
        let (area, module, name) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let places = [format!("tests/tests/{area}/{module}.rs"), format!("tests/tests/{area}/{module}/mod.rs")];
        let text = places.iter().find_map(|place| fs::read_to_string(Path::new(ROOT).join(place)).ok());
        assert!(text.is_some_and(|text| text.contains(name)), "tests/timed.txt: no scenario {scenario}");
    }
    assert_eq!(listed.lines().count(), 50);
}
