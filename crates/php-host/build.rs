//! Compiles the C shim against one PHP (`PHP_CONFIG`, default: the first php-config found) and links its embed library.

use std::path::Path;
use std::process::Command;

/// Tried in this order when `PHP_CONFIG` is not set.
const CANDIDATES: &[&str] = &["php-config", "php-config8.5", "php-config8.4", "php-config8.3", "php-config8.2"];

fn main() {
    println!("cargo::rerun-if-env-changed=PHP_CONFIG");
    println!("cargo::rerun-if-env-changed=HOWDAH_SANITIZE");
    println!("cargo::rerun-if-env-changed=HOWDAH_STRICT");
    println!("cargo::rerun-if-changed=shim");
    let php_config = find_php_config();
    let ask = |flag: &str| ask(&php_config, flag).unwrap_or_else(|| fail(&format!("`{php_config} {flag}` failed")));
    let version = ask("--version");
    let mut build = cc::Build::new();
    for flag in ask("--includes").split_whitespace() {
        // As system headers: their warnings are not ours.
        match flag.strip_prefix("-I") {
            Some(dir) => build.flag(format!("-isystem{dir}")),
            None => build.flag(flag),
        };
    }
    let mut sources: Vec<_> = std::fs::read_dir("shim")
        .map(|dir| dir.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "c")).collect())
        .unwrap_or_default();
    sources.sort();
    let sanitized = std::env::var_os("HOWDAH_SANITIZE").is_some_and(|kind| kind == "address");
    if sanitized {
        build.flag("-fsanitize=address").flag("-fno-omit-frame-pointer").flag("-g");
    }
    build
        .files(&sources)
        .flag("-std=gnu11")
        .flag("-fvisibility=hidden")
        .flag("-Wno-unused-parameter")
        .warnings_into_errors(std::env::var_os("HOWDAH_STRICT").is_some())
        .opt_level(2)
        .compile("howdah_shim");
    if sanitized {
        // `make test-asan`; before libphp, as its runtime has to be the first library.
        println!("cargo::rustc-link-lib=dylib=asan");
        for symbol in ["dlopen", "__asan_default_options"] {
            println!("cargo::rustc-link-arg=-Wl,--export-dynamic-symbol={symbol}");
        }
    }
    link_php(&version, &ask("--prefix"));
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
            if Path::new(&format!("{dir}/lib{name}.so")).exists() {
                println!("cargo::rustc-link-search=native={dir}");
                println!("cargo::rustc-link-lib=dylib={name}");
                return;
            }
        }
    }
    fail(&format!("libphp for PHP {version} not found below {prefix}/lib: install libphp{short}-embed"));
}

#[expect(clippy::disallowed_methods, reason = "cargo has been told why")]
fn fail(why: &str) -> ! {
    println!("cargo::error={why}");
    std::process::exit(1)
}
