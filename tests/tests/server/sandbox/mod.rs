//! A compromised script in a pool with `sandbox = "app"`: its attempts by many means, and what the surrounding
//! application can still do. The attempts are shown to succeed without a sandbox, so that none of them is impossible
//! anyway.

mod application;
mod code;
mod connections;
mod files;
mod programs;
mod settings;

use howdah_tests::{Request, Setup, Site, php};

/// A script that an attacker has uploaded: runs the code in the request.
const SHELL: &str = "eval(file_get_contents('php://input'));";

fn site(setup: Setup) -> Setup {
    setup
        .php("shell.php", SHELL)
        .file("uploads/.keep", "")
        .file("../secret.txt", "root:x:0:0: not for everyone\n")
        .ini("ffi.enable", "1")
        .ini("display_errors", "0")
        .ini("sendmail_path", "/usr/bin/touch @ROOT@/uploads/ran-mail")
        // PHP's warnings about refused operations, and refusals for FFI.
        .allow_log("PHP Warning")
        .allow_log("PHP Fatal error:  Uncaught")
}

fn sandboxed(setup: Setup) -> Setup {
    site(setup).setting("sandbox", "{ profile = \"app\", write = [\"@ROOT@/uploads\"] }")
}

fn shell(site: &Site, code: &str) -> String {
    site.send(&Request::post("/shell.php", "text/plain", code)).expect(200).text()
}

/// Runs attempts, each an expression; returns the names of those that succeeded: a result with `root:` in it, or true.
fn successes(site: &Site, prepare: &str, attempts: &[(&str, &str)]) -> Vec<String> {
    let list: String = attempts.iter().map(|(name, code)| format!("'{name}' => function () {{ {code} }},\n")).collect();
    let code = php!("successes.php", PREPARE = prepare, LIST = list);
    let seen: serde_json::Value = serde_json::from_str(&shell(site, &code)).unwrap();
    seen.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn names(attempts: &[(&str, &str)]) -> Vec<String> {
    attempts.iter().map(|(name, _)| (*name).to_owned()).collect()
}
