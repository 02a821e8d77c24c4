//! Compiles the C shim against one PHP (`PHP_CONFIG`, default: the first php-config found) and links its embed library.

#[path = "src/bound_library.rs"]
mod bound_library;
#[path = "src/extension_headers.rs"]
mod extension_headers;

use extension_headers::{EXTENSION_HEADERS, package};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of the shim that must not depend on PHP. They are compiled without its include paths, which enforces that.
const WITHOUT_PHP: &[&str] = &["snapshot/engine", "sql"];

/// Optional modes: the Cargo feature, the parts of the shim that belong to it, and the file that replaces them.
const OPTIONAL: &[(&str, &[&str], &str)] = &[
    (
        "snapshot",
        &["shim/snapshot", "shim/modes/snapshot.c", "shim/modes/snapshot_functions.c"],
        "shim/modes/without/snapshot.c",
    ),
    ("async", &["shim/async", "shim/modes/async.c"], "shim/modes/without/async.c"),
];

const COVERAGE: &str = "tests/coverage.c";

/// Candidates in this order if `PHP_CONFIG` is not set.
const CANDIDATES: &[&str] = &["php-config", "php-config8.5", "php-config8.4", "php-config8.3", "php-config8.2"];

fn main() {
    println!("cargo::rerun-if-env-changed=PHP_CONFIG");
    println!("cargo::rerun-if-env-changed=HOWDAH_SANITIZE");
    println!("cargo::rerun-if-env-changed=HOWDAH_COVERAGE");
    println!("cargo::rerun-if-env-changed=HOWDAH_STRICT");
    println!("cargo::rerun-if-changed=shim");
    let php_config = find_php_config();
    let ask = |flag: &str| ask(&php_config, flag).unwrap_or_else(|| fail(&format!("`{php_config} {flag}` failed")));
    let version = ask("--version");
    let includes = ask("--includes");
    let sanitized = std::env::var_os("HOWDAH_SANITIZE").is_some_and(|kind| kind == "address");
    let (plain, with_php): (Vec<_>, Vec<_>) = sources(Path::new("shim"))
        .into_iter()
        .filter(|file| is_of_this_build(file))
        .partition(|file| WITHOUT_PHP.iter().any(|folder| file.starts_with(Path::new("shim").join(folder))));
    let mut build = compiler(sanitized);
    for flag in includes.split_whitespace() {
        // As system headers, so that the compiler ignores their warnings.
        match flag.strip_prefix("-I") {
            Some(dir) => build.flag(format!("-isystem{dir}")),
            None => build.flag(flag),
        };
    }
    look_for_extension_headers(&mut build, &includes, &version);
    // A single library, since the parts call each other.
    build.objects(compiler(sanitized).files(plain).compile_intermediates()).files(with_php).compile("howdah_shim");
    if sanitized {
        // `make test-asan`; before libphp, as its runtime has to be the first library.
        println!("cargo::rustc-link-lib=dylib=asan");
        for symbol in ["dlopen", "__asan_default_options"] {
            println!("cargo::rustc-link-arg=-Wl,--export-dynamic-symbol={symbol}");
        }
    }
    if let Some(profiles) = std::env::var_os("HOWDAH_COVERAGE") {
        measure_coverage(&profiles.display().to_string());
    }
    link_php(&version, &ask("--prefix"));
}

/// `make coverage`: gcov writes its counters next to the object files, LLVM writes those of the Rust code to the
/// directory `profiles`.
fn measure_coverage(profiles: &str) {
    println!("cargo::rerun-if-changed={COVERAGE}");
    let name = format!("\"{profiles}/php-%m.profraw\"");
    cc::Build::new().file(COVERAGE).define("COVERAGE_PROFILE", name.as_str()).compile("howdah_coverage");
    println!("cargo::rustc-link-arg=--coverage");
    for wrapped in ["_exit", "snapshot_restore"] {
        println!("cargo::rustc-link-arg=-Wl,--wrap={wrapped}");
    }
}

/// The C files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "c") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn has_feature(name: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{}", name.to_uppercase())).is_some()
}

/// `true` unless the file belongs to a mode that this build lacks, or replaces one that it has.
fn is_of_this_build(file: &Path) -> bool {
    OPTIONAL.iter().all(|(mode, parts, instead)| match has_feature(mode) {
        true => file != Path::new(instead),
        false => !parts.iter().any(|part| file.starts_with(part)),
    })
}

/// Compiler settings for all files. Includes are relative to the shim's folder.
fn compiler(sanitized: bool) -> cc::Build {
    let mut build = cc::Build::new();
    if sanitized {
        build.flag("-fsanitize=address").flag("-fno-omit-frame-pointer").flag("-g");
    }
    if std::env::var_os("HOWDAH_COVERAGE").is_some() {
        build.flag("--coverage").flag("-fprofile-update=atomic");
    }
    build
        .include("shim")
        // Before any header, as PHP's own headers use its declarations.
        .define("_GNU_SOURCE", "1")
        .flag("-std=gnu11")
        .flag("-fvisibility=hidden")
        .flag("-Wno-unused-parameter")
        .warnings_into_errors(std::env::var_os("HOWDAH_STRICT").is_some())
        .opt_level(2);
    for (mode, ..) in OPTIONAL {
        build.define(&format!("HOWDAH_WITH_{}", mode.to_uppercase()), if has_feature(mode) { "1" } else { "0" });
    }
    build
}

/// Defines macros for the extensions whose headers exist, and reports missing ones as build output.
fn look_for_extension_headers(build: &mut cc::Build, includes: &str, version: &str) {
    let mut there = Vec::new();
    for header in EXTENSION_HEADERS {
        let found = includes
            .split_whitespace()
            .filter_map(|flag| flag.strip_prefix("-I"))
            .any(|dir| Path::new(dir).join(header.path).exists());
        build.define(&format!("SHIM_WITH_{}", header.extension.to_uppercase()), if found { "1" } else { "0" });
        if found {
            there.push(header.extension);
        } else {
            println!(
                "cargo::warning=PHP's {} is missing (package {}). Without it, in async mode, {}",
                header.path,
                package(version),
                header.without
            );
        }
    }
    println!("cargo::rustc-env=HOWDAH_EXTENSION_HEADERS={}", there.join(","));
    println!("cargo::rustc-env=HOWDAH_PHP_BUILT_AGAINST={version}");
}

fn find_php_config() -> String {
    if let Ok(given) = std::env::var("PHP_CONFIG") {
        return given;
    }
    let found = CANDIDATES.iter().find(|c| ask(c, "--version").is_some());
    found.map(|c| (*c).to_owned()).unwrap_or_else(|| {
        fail("no php-config found: install php-dev and libphp-embed (`make setup` does) or set PHP_CONFIG")
    })
}

fn ask(program: &str, flag: &str) -> Option<String> {
    let output = Command::new(program).arg(flag).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Debian names the library libphp8.2.so; PHP's own build names it libphp.so.
fn link_php(version: &str, prefix: &str) {
    let short: String = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    let names = [format!("php{short}"), "php".to_owned()];
    for dir in
        [format!("{prefix}/lib"), format!("{prefix}/lib/x86_64-linux-gnu"), format!("{prefix}/lib/aarch64-linux-gnu")]
    {
        for name in &names {
            let library = PathBuf::from(format!("{dir}/lib{name}.so"));
            if library.exists() {
                return link(&library);
            }
        }
    }
    fail(&format!("libphp for PHP {version} not found below {prefix}/lib: install libphp{short}-embed"));
}

/// Links this file so that the program loads it and no other library of the same name.
fn link(library: &Path) {
    let shown = library.display();
    println!("cargo::rerun-if-changed={shown}");
    println!("cargo::rustc-env=HOWDAH_LIBPHP={shown}");
    let content = std::fs::read(library).unwrap_or_else(|error| fail(&format!("cannot read {shown}: {error}")));
    let Some(renamed) = bound_library::renamed(&content, &shown.to_string()) else {
        // A library without a name is found by the path passed to the linker.
        println!("cargo::rustc-link-arg={shown}");
        return;
    };
    let place = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    if let Err(error) = std::fs::write(place.join("libhowdah_bound_php.so"), renamed) {
        fail(&format!("cannot write a copy of {shown} into {}: {error}", place.display()));
    }
    println!("cargo::rustc-link-search=native={}", place.display());
    println!("cargo::rustc-link-lib=dylib=howdah_bound_php");
}

#[expect(clippy::disallowed_methods, reason = "cargo has printed why")]
fn fail(why: &str) -> ! {
    println!("cargo::error={why}");
    std::process::exit(1)
}
