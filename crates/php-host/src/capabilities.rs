//! `howdah-php --capabilities`: features of this build, and features that it lacks because headers were missing.

use crate::extension_headers::{EXTENSION_HEADERS, ExtensionHeader, package};
use crate::php::{self, BUILT_AGAINST};
use crate::sandbox;
use howdah_transport::Mode;
use serde_json::json;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Extensions whose headers were present at build time, separated by commas.
const BUILT_WITH: &str = env!("HOWDAH_EXTENSION_HEADERS");

pub(crate) fn print(as_json: bool) -> ExitCode {
    if as_json {
        println!("{}", json(BUILT_WITH));
    } else {
        print!("{}", text(BUILT_WITH));
    }
    ExitCode::SUCCESS
}

/// For `howdah check`: one line for each header that was missing at build time.
pub(crate) fn missing() -> Vec<String> {
    lines(BUILT_WITH)
}

/// The modes that this build supports.
pub(crate) fn modes() -> Vec<&'static str> {
    let is_there = |mode: &&&str| match **mode {
        "snapshot" => cfg!(feature = "snapshot"),
        "async" => cfg!(feature = "async"),
        _ => true,
    };
    Mode::WORDS.iter().filter(is_there).copied().collect()
}

fn is_built_with(header: &ExtensionHeader, built_with: &str) -> bool {
    built_with.split(',').any(|extension| extension == header.extension)
}

fn lines(built_with: &str) -> Vec<String> {
    let package = package(BUILT_AGAINST);
    EXTENSION_HEADERS
        .iter()
        .filter(|header| !is_built_with(header, built_with))
        .map(|header| format!("built without {} (package {package}): in async mode {}", header.path, header.without))
        .collect()
}

fn text(built_with: &str) -> String {
    let mut out = format!("howdah-php {} (PHP {})\n", env!("CARGO_PKG_VERSION"), php::version());
    let _ = writeln!(out, "built against PHP {BUILT_AGAINST}, bound to {}", php::BUILT_WITH);
    let _ = writeln!(out, "modes: {}", modes().join(", "));
    let there: Vec<_> =
        EXTENSION_HEADERS.iter().filter(|header| is_built_with(header, built_with)).map(|h| h.extension).collect();
    let _ = writeln!(out, "extension headers: {}", if there.is_empty() { "none".to_owned() } else { there.join(", ") });
    for line in lines(built_with) {
        let _ = writeln!(out, "  {line}");
    }
    let _ = writeln!(out, "this kernel: {}", sandbox::of_this_kernel().describe());
    out
}

fn json(built_with: &str) -> serde_json::Value {
    let headers: serde_json::Map<_, _> = EXTENSION_HEADERS
        .iter()
        .map(|header| (header.extension.to_owned(), json!(is_built_with(header, built_with))))
        .collect();
    let kernel = sandbox::of_this_kernel();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "php": php::version(),
        "built_against": BUILT_AGAINST,
        "library": php::BUILT_WITH,
        "modes": modes(),
        "extension_headers": headers,
        "landlock": kernel.landlock,
        "seccomp": kernel.seccomp,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_named() {
        assert!(text("").contains("modes: classic, worker, snapshot, async\n"));
        assert_eq!(json("")["modes"], json!(["classic", "worker", "snapshot", "async"]));
    }

    #[test]
    fn a_missing_header_is_named_with_its_package_and_effect() {
        let text = text("mysqli,pdo");
        assert!(text.contains("extension headers: mysqli, pdo\n"), "{text}");
        let short: String = BUILT_AGAINST.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        let line = format!("built without ext/mbstring/mbstring.h (package php{short}-dev): in async mode encodings");
        assert!(text.contains(&line), "{text}");
        assert_eq!(text.matches("built without").count(), 1);
        assert_eq!(json("mysqli,pdo")["extension_headers"], json!({"mbstring": false, "mysqli": true, "pdo": true}));
    }

    #[test]
    fn a_build_with_all_headers_misses_nothing() {
        let all: Vec<_> = EXTENSION_HEADERS.iter().map(|header| header.extension).collect();
        assert!(lines(&all.join(",")).is_empty());
    }

    #[test]
    fn this_build_lists_only_known_extensions() {
        for extension in BUILT_WITH.split(',').filter(|extension| !extension.is_empty()) {
            assert!(EXTENSION_HEADERS.iter().any(|header| header.extension == extension), "{extension}");
        }
        assert_eq!(text(BUILT_WITH).matches("built without").count(), missing().len());
    }
}
