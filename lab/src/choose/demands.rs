//! The requirements of each way of serving for an application's code and its operators.

/// Describes them for a system of the lab, in a sentence or two.
pub fn of(system: &str) -> &'static str {
    let system = system.split('@').next().unwrap_or(system).trim_end_matches("-base");
    match system {
        "nginx-fpm" => "no change of code; two services to configure and monitor",
        "haproxy-fpm" => "no change of code; files need a separate server, because HAProxy serves none",
        "apache" => "no change of code; a process for each kept-alive connection",
        "frankenphp-classic" => "a thread-safe PHP, and extensions that are thread-safe too",
        "frankenphp-worker" => {
            "a script that boots once and loops; no visitor's data may stay in services, statics or globals; a thread-safe PHP"
        }
        "swoole" | "nginx-swoole" => {
            "a server script against Swoole's interface and its extension; no superglobals, no state of a visitor outside the request; \
             waiting only through what Swoole hooks"
        }
        "howdah-classic" => "no change of code",
        "howdah-worker" => {
            "a script that boots once and loops; no visitor's data may stay in services, statics or globals"
        }
        "howdah-snapshot" => {
            "a script that boots once, or a file that only boots; memory is restored after each request, so no state \
             stays; the boot must not read one visitor's data"
        }
        "howdah-async" => {
            "a script for many requests at once; statics and services are shared by requests that wait at the same time"
        }
        _ => "see its own documentation",
    }
}

/// Returns `true` if the code needs no changes.
pub fn nothing(system: &str) -> bool {
    of(system).starts_with("no change of code") || system.starts_with("frankenphp-classic")
}
