//! Tests rules for the shim's folders that no compiler checks. Another rule, that the snapshot engine does not depend
//! on PHP, is checked by `build.rs`, which compiles the engine without PHP's include paths.

use std::path::{Path, PathBuf};

fn shim() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("shim")
}

fn files_below(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path, extensions));
        } else if path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Each C file with its path below the shim and its text.
fn c_files() -> Vec<(String, String)> {
    let root = shim();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(&root).expect("below the shim").display().to_string();
        (name, std::fs::read_to_string(&path).expect("a text"))
    };
    let files: Vec<_> = files_below(&root, &["c", "h"]).into_iter().map(read).collect();
    assert!(files.len() > 100, "only {} files found", files.len());
    files
}

/// Strips the comments from the text.
fn code(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    out + rest
}

/// Uses of the mode in a file outside of `modes/`, by line, except for the allowed ones.
fn uses_of_mode(name: &str, text: &str) -> Vec<String> {
    // The only file that chooses the mode, and the one that exposes its name to scripts.
    let allowed: &[&str] = match name {
        "sapi/startup.c" => &["shim.mode = shim_mode_of(shim.worker->mode);"],
        "sapi/functions.c" => {
            &["RETURN_STRING(shim.mode->name);", "php_info_print_table_row(2, \"Mode\", shim.mode->name);"]
        }
        // Pages for developers.
        "sapi/error_page.c" => &[
            r#"int server_len = (snprintf)(server, sizeof server, "PHP %s, %s mode", shim_compat_php_version(), shim.mode->name);"#,
        ],
        _ => &[],
    };
    let names = [
        "\"classic\"",
        "\"worker\"",
        "\"snapshot\"",
        "\"async\"",
        "worker->mode",
        "HOWDAH_MODE_",
        "modes/modes.h",
        "mode->name",
    ];
    let modes = ["shim_mode_classic", "shim_mode_worker", "shim_mode_snapshot", "shim_mode_async"];
    code(text)
        .lines()
        .map(str::trim)
        .filter(|line| !allowed.contains(line))
        .filter(|line| {
            names.iter().chain(&modes).any(|word| line.contains(word))
                || line.match_indices("shim.mode").any(|(at, word)| !line[at + word.len()..].starts_with("->"))
        })
        .map(|line| format!("{name}: {line}"))
        .collect()
}

#[test]
fn no_code_outside_of_modes_depends_on_the_mode() {
    let asked: Vec<_> = c_files()
        .iter()
        // bridge.h contains the border's enum of modes.
        .filter(|(name, _)| !name.starts_with("modes/") && name != "bridge.h")
        .flat_map(|(name, text)| uses_of_mode(name, text))
        .collect();
    assert_eq!(asked, Vec::<String>::new());
}

#[test]
fn uses_of_the_mode_are_detected() {
    for line in [
        "if (shim.mode == &shim_mode_async) {",
        "if (shim.mode != other) {",
        "if (strcmp(shim.mode->name, x) == 0) {",
        "if (shim.worker->mode == HOWDAH_MODE_ASYNC) {",
        "return is(\"snapshot\");",
        "#include \"modes/modes.h\"",
    ] {
        assert_eq!(uses_of_mode("async/core/loop.c", line).len(), 1, "{line}");
    }
    assert!(uses_of_mode("sapi/output.c", "/* as \"async\" */ shim.mode->client_gone();").is_empty());
}

#[test]
fn includes_are_relative_to_the_shim_and_a_files_own_header_comes_first() {
    for (name, text) in c_files() {
        let includes: Vec<_> =
            text.lines().filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"')).collect();
        for include in &includes {
            assert!(shim().join(include).is_file(), "{name} includes {include}");
        }
        let own = name.strip_suffix(".c").map(|stem| format!("{stem}.h"));
        if let Some(own) = own.filter(|own| shim().join(own).is_file()) {
            assert_eq!(includes.first(), Some(&own.as_str()), "{name}");
        }
    }
}

/// Names of C files in a text, as "loop.c" or "async/core/loop.c".
fn names_of_c_files(text: &str) -> Vec<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '*' | '-')))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| word.ends_with(".c") || word.ends_with(".h"))
        .filter(|word| !word.contains('*') && !word.starts_with('.'))
        .collect()
}

/// Markers of PHP's and Linux's headers.
const FOREIGN: &[&str] = &["SAPI.h", "Zend/", "ext/", "linux/", "zend_"];

#[test]
fn comments_and_documents_name_existing_files() {
    let root = shim();
    let mut missing = Vec::new();
    for (name, text) in c_files() {
        let folder = root.join(&name).parent().expect("a folder").to_owned();
        let comments = text.split("/*").skip(1).filter_map(|rest| rest.split_once("*/")).map(|(comment, _)| comment);
        for named in comments.flat_map(names_of_c_files) {
            let foreign = FOREIGN.iter().any(|start| named.starts_with(start));
            if !foreign && !folder.join(named).is_file() && !root.join(named).is_file() {
                missing.push(format!("{name}: {named}"));
            }
        }
    }
    let project = root.join("../../..");
    let mut documents = files_below(&project.join("docs"), &["md"]);
    documents.push(project.join("ARCHITECTURE.md"));
    documents.push(project.join("CONTRIBUTING.md"));
    for document in documents {
        let text = std::fs::read_to_string(&document).expect("a text");
        // Names in backquotes.
        for named in text.split('`').skip(1).step_by(2).flat_map(names_of_c_files) {
            let below = named.rsplit_once("shim/").map_or(named, |(_, below)| below);
            if !root.join(below).is_file() {
                missing.push(format!("{}: {named}", document.display()));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}
