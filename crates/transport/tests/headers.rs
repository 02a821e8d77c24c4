//! Renders the C view of the border, `shim/wire.h` and `shim/bridge.h`, from the Rust sources that define it. The
//! committed copies are compared with the result, so the two sides cannot differ; the compiler checks the shim's own
//! functions against the prototypes. The test is not in the shim's crate because `make generate` must work while the
//! shim does not compile.
#![allow(clippy::unwrap_used)]

use cbindgen::{Builder, Config, DocumentationStyle, Language, RenameRule, SortKey, Style};
use howdah_transport::wire::{POOL_NUMBER_NAMES, VAR_NAMES};
use std::fmt::Write;

const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Files that define C's side of the border, in addition to the wire.
const BRIDGE_FILES: &[&str] = &[
    "transport/src/c_text.rs",
    "transport/src/connection_stream.rs",
    "transport/src/live_order.rs",
    "transport/src/worker_spec.rs",
    "php-host/src/bridge.rs",
    "php-host/src/bridge/request.rs",
    "php-host/src/bridge/live.rs",
    "php-host/src/bridge/multiplexed.rs",
    "php-host/src/bridge/connection_pools.rs",
    "php-host/src/bridge/running.rs",
    "php-host/src/bridge/fork.rs",
    "php-host/src/template.rs",
    "php-host/src/error_page.rs",
    "php-host/src/warmup_report.rs",
    "php-host/src/library.rs",
    "php-host/src/recipe.rs",
    "php-host/src/php.rs",
];

/// Type names that differ between C and Rust.
const NAMES: &[(&str, &str)] = &[
    ("Boot", "howdah_boot"),
    ("CText", "howdah_text"),
    ("CodeRule", "howdah_code_rule"),
    ("EventKind", "howdah_event"),
    ("Frame", "howdah_frame"),
    ("FunctionName", "howdah_function_name"),
    ("Line", "howdah_line"),
    ("LiveField", "howdah_live_field"),
    ("LiveKind", "howdah_live_kind"),
    ("Mode", "howdah_mode"),
    ("PartHead", "howdah_part_head"),
    ("PartKind", "howdah_part_kind"),
    ("Recorded", "howdah_warmup_response"),
    ("RecordedPath", "howdah_warmup_path"),
    ("ScriptError", "howdah_error"),
    ("SnapshotNumbers", "snapshot_report"),
    ("StoredArea", "howdah_stored_area"),
    ("WorkerSpec", "howdah_worker_spec"),
];

/// Types of requests in a ring.
const WIRE_TYPES: &[&str] = &["StrRef", "WireVar", "WireRequest"];

/// Constants that C does not need, or has under another name.
const ONLY_IN_RUST: &[&str] =
    &["WIRE_VERSION", "FLAG_MORE", "FLAG_FLUSH", "DONE_WAY_SHIFT", "DONE_RETIRE", "DONE_UNFIT", "DONE_RESETS_SHIFT"];

const ABOUT_THE_WIRE: &str = "\
/* The C view of a request in the request ring, from crates/transport/src/wire.rs. Written by `make generate`, and
 * compared in a test: do not edit. */
/* clang-format off */";

const ABOUT_THE_BRIDGE: &str = "\
/* The border between C and Rust: everything the shim calls in Rust (howdah_rs_*) and everything Rust calls in the shim
 * (howdah_c_*). Rust functions return and never call back into PHP, so no Rust frame lies between a PHP bailout
 * (longjmp) and its target. Strings are borrowed for the duration of a call unless a comment says otherwise.
 *
 * In async mode howdah_rs_take_event() replaces howdah_rs_next_request(). The other functions then apply to the
 * selected request, and their output reaches the server with howdah_rs_publish(), howdah_rs_flush(),
 * howdah_rs_prepare_wait(), or when much of it is unpublished. Only writing may wait, for room that the server makes at
 * once.
 *
 * Written by `make generate` from the functions and types in crates/php-host/src and from
 * crates/transport/src/worker_spec.rs, and compared in a test: do not edit. */
/* clang-format off */";

fn config(header: &str, guard: &str) -> Config {
    let mut config = Config {
        language: Language::C,
        header: Some(header.to_owned()),
        include_guard: Some(guard.to_owned()),
        no_includes: true,
        style: Style::Type,
        line_length: 120,
        tab_width: 4,
        sort_by: SortKey::None,
        usize_is_size_t: true,
        documentation_style: DocumentationStyle::C99,
        ..Config::default()
    };
    config.export.rename = NAMES.iter().map(|(rust, c)| ((*rust).to_owned(), (*c).to_owned())).collect();
    config.enumeration.rename_variants = RenameRule::QualifiedScreamingSnakeCase;
    config
}

fn render(config: Config, sources: &[&str]) -> String {
    let mut builder = Builder::new().with_config(config);
    for source in sources {
        builder = builder.with_src(format!("{CRATES}/{source}"));
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    String::from_utf8(text).unwrap()
}

fn wire() -> String {
    let mut config = config(ABOUT_THE_WIRE, "HOWDAH_WIRE_H");
    config.sys_includes.push("stdint.h".to_owned());
    config.export.include = WIRE_TYPES.iter().map(|name| (*name).to_owned()).collect();
    config.export.exclude = ONLY_IN_RUST.iter().map(|name| (*name).to_owned()).collect();
    config.trailer = Some(lists());
    render(config, &["transport/src/wire.rs"])
}

/// Definitions by macros in `wire.rs`, which the generator cannot see.
fn lists() -> String {
    let mut out =
        "/* A worker's report about each of its connection pools. */\ntypedef enum pool_number {\n".to_owned();
    for name in POOL_NUMBER_NAMES {
        let _ = writeln!(out, "    {name},");
    }
    out.push_str("    POOL_NUMBERS\n} pool_number;\n\n/* Variables that travel as a number: X(number, name). */\n");
    let _ = write!(out, "#define HOWDAH_VAR_COUNT {}\n#define HOWDAH_VAR_NAMES(X)", VAR_NAMES.len());
    for (i, name) in VAR_NAMES.iter().enumerate() {
        let _ = write!(out, " \\\n    X({}, {name})", i + 1);
    }
    out
}

fn bridge() -> String {
    let mut config = config(ABOUT_THE_BRIDGE, "HOWDAH_BRIDGE_H");
    config.sys_includes = ["stdbool.h", "stddef.h", "stdint.h"].map(str::to_owned).to_vec();
    config.includes.push("wire.h".to_owned());
    config.export.exclude = WIRE_TYPES.iter().map(|name| (*name).to_owned()).collect();
    config.export.include = ["PartHead", "PartKind"].map(str::to_owned).to_vec();
    render(config, BRIDGE_FILES)
}

/// `HOWDAH_GENERATE=1 cargo test -p howdah-transport --test headers` writes the files (this is `make generate`).
#[test]
fn committed_headers_match_the_rust_definitions() {
    for (name, fresh) in [("wire.h", wire()), ("bridge.h", bridge())] {
        let path = format!("{CRATES}/php-host/shim/{name}");
        if std::env::var_os("HOWDAH_GENERATE").is_some() {
            std::fs::write(&path, &fresh).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(committed, fresh, "{name} is out of date: run `make generate`");
    }
}

/// PHP's generator records the stubs that it has read.
#[test]
fn the_tables_of_functions_are_made_from_the_stubs() {
    let stubs = format!("{CRATES}/../php/stubs/howdah.stub.php");
    let sum = std::process::Command::new("sha1sum").arg(stubs).output().unwrap();
    let hash = String::from_utf8(sum.stdout).unwrap().split(' ').next().unwrap_or_default().to_owned();
    let tables = std::fs::read_to_string(format!("{CRATES}/php-host/shim/howdah_arginfo.h")).unwrap();
    assert!(hash.len() == 40 && tables.contains(&format!("Stub hash: {hash} ")), "run `make generate`");
}
