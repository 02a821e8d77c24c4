//! The requirements of each way of serving for an application's code and its operators.

/// Describes them for a system of the lab, in a sentence or two.
pub fn of(system: &str) -> &'static str {
    let system = system.split('@').next().unwrap_or(system).trim_end_matches("-base");
    match system {
        "nginx-fpm" => "nothing of the code; two services to configure and watch",
        "haproxy-fpm" => "nothing of the code; files need a server of their own, because HAProxy serves none",
        "apache" => "nothing of the code; a process for each kept connection",
        "frankenphp-classic" => "a thread-safe PHP, and extensions that are thread-safe too",
        "frankenphp-worker" => {
            "a script that boots once and loops; nothing of one visitor may stay in services, statics or globals; a thread-safe PHP"
        }
        "swoole" | "nginx-swoole" => {
            "a server script against Swoole's interface and its extension; no superglobals, no state of a visitor outside the request; \
             waiting only through what Swoole hooks"
        }
        "howdah-classic" => "nothing of the code",
        "howdah-worker" => {
            "a script that boots once and loops; nothing of one visitor may stay in services, statics or globals"
        }
        "howdah-snapshot" => {
            "a script that boots once, or a file that only boots; memory is put back after each request, so state cannot stay; what boot \
             reads must not be one visitor's"
        }
        "howdah-async" => {
            "a script for many requests at once; statics and services are shared by requests that wait at the same time"
        }
        _ => "what its own documentation says",
    }
}

/// Returns `true` if the code needs no changes.
pub fn nothing(system: &str) -> bool {
    of(system).starts_with("nothing of the code") || system.starts_with("frankenphp-classic")
}
