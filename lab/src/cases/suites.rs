//! Named sets of cases.

/// A set of cases with its default systems and lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Suite {
    /// Name on the command line.
    pub name: &'static str,
    /// Its purpose.
    pub about: &'static str,
    /// Case ids.
    pub cases: &'static [&'static str],
    /// System ids; empty means all.
    pub systems: &'static [&'static str],
    pub rounds: u32,
    /// Seconds of each measured run.
    pub seconds: f64,
    /// Seconds of load before each measured run.
    pub warmup: f64,
    /// True if the constant-rate measurement is made.
    pub latency: bool,
}

pub const ALL: &[Suite] = &[
    Suite {
        name: "smoke",
        about: "does everything work: under one minute",
        cases: &["hello", "html", "static"],
        systems: &["nginx-fpm", "apache", "howdah-classic"],
        rounds: 1,
        seconds: 1.0,
        warmup: 0.0,
        latency: true,
    },
    Suite {
        name: "html-pdf-random",
        about: "the published comparison: pages that compress, do not compress, and hardly compress",
        cases: &["hello", "html", "html-identity", "pdf", "random", "random-identity", "static"],
        systems: &[],
        rounds: 4,
        seconds: 5.0,
        warmup: 10.0,
        latency: true,
    },
    Suite {
        name: "coroutine",
        about: "computing and waiting with 100 connections: where coroutines are claimed to win",
        cases: &["hello-c100", "fibonacci", "mysql-key", "mysql-rows", "complex", "usleep"],
        systems: &[],
        rounds: 4,
        seconds: 5.0,
        warmup: 10.0,
        latency: true,
    },
    Suite {
        name: "three-environments",
        about: "nginx+PHP-FPM, Swoole and nginx+Swoole on the same scripts, compared with Howdah",
        cases: &["hello-c100", "static", "mysql-key", "complex", "usleep"],
        systems: &["nginx-fpm", "swoole", "nginx-swoole", "howdah-classic", "howdah-worker", "howdah-async"],
        rounds: 4,
        seconds: 5.0,
        warmup: 10.0,
        latency: true,
    },
    Suite {
        name: "shop-api",
        about: "applications with a framework: a product API on Symfony, and WordPress",
        cases: &["shop-api-c100", "shop-api-c200", "symfony-product", "symfony-api", "symfony-page", "wordpress"],
        systems: &[],
        rounds: 4,
        seconds: 10.0,
        warmup: 10.0,
        latency: true,
    },
    Suite {
        name: "worker",
        about: "a booted application that loops, compared with a fresh start for each request",
        cases: &["hello", "symfony-product", "symfony-product-jit", "symfony-api", "symfony-page"],
        systems: &["nginx-fpm", "frankenphp-worker", "howdah-classic", "howdah-worker"],
        rounds: 4,
        seconds: 3.0,
        warmup: 10.0,
        latency: false,
    },
    Suite {
        name: "async",
        about: "many requests at once in one process, compared with one at a time: waiting, MySQL and Redis, at 100 and 1000 connections",
        cases: &["hello", "usleep", "mysql-key", "complex", "usleep-c1000", "mysql-key-c1000", "complex-c1000"],
        systems: &["nginx-fpm", "apache", "swoole", "howdah-worker", "howdah-async"],
        rounds: 4,
        seconds: 3.0,
        warmup: 10.0,
        latency: false,
    },
    Suite {
        name: "snapshot",
        about: "a booted application whose memory is restored after each request, compared with one that keeps its state",
        cases: &["symfony-product", "shop-api-c100", "symfony-api", "symfony-page", "wordpress"],
        systems: &["nginx-fpm", "frankenphp-worker", "howdah-classic", "howdah-worker", "howdah-snapshot"],
        rounds: 4,
        seconds: 3.0,
        warmup: 1.0,
        latency: false,
    },
    Suite {
        name: "fastcgi",
        about: "one nginx with PHP-FPM or Howdah behind it: the gain for a site that keeps its web server",
        cases: &["hello", "symfony-api"],
        systems: &["nginx-fpm", "nginx-howdah-classic", "nginx-howdah-snapshot", "nginx-howdah-worker"],
        rounds: 4,
        seconds: 3.0,
        warmup: 3.0,
        latency: false,
    },
    Suite {
        name: "jit",
        about: "applications with and without PHP's JIT: booted once, and started anew for each request",
        cases: &[
            "symfony-product",
            "symfony-product-jit",
            "symfony-api",
            "symfony-api-jit",
            "symfony-page",
            "symfony-page-jit",
            "wordpress",
            "wordpress-jit",
        ],
        systems: &["nginx-fpm", "frankenphp-worker", "howdah-classic", "howdah-worker", "howdah-snapshot"],
        rounds: 4,
        seconds: 3.0,
        warmup: 10.0,
        latency: false,
    },
    Suite {
        name: "mixed",
        about: "loads of several kinds at once, open loops, waves, a greedy client, overload, pools that change; by kind of request",
        cases: super::mixed::IDS,
        systems: &["nginx-fpm", "howdah-classic"],
        rounds: 4,
        seconds: 3.0,
        warmup: 1.5,
        latency: false,
    },
    Suite {
        name: "tls",
        about: "TLS 1.3 over HTTP/1.1, HTTP/2 and HTTP/3, handshakes, and requests that are forwarded to another server",
        cases: &[
            "tls-hello",
            "tls-handshake",
            "tls-resumed",
            "tls-static",
            "tls-hello-http2",
            "tls-static-http2",
            "tls-hello-http3",
            "tls-static-http3",
            "proxy",
        ],
        systems: &["nginx-fpm", "apache", "frankenphp-classic", "frankenphp-worker", "howdah-classic", "howdah-worker"],
        rounds: 4,
        seconds: 3.0,
        warmup: 1.5,
        latency: false,
    },
    Suite {
        name: "all",
        about: "every case of one kind of request on every system",
        cases: &[],
        systems: &[],
        rounds: 4,
        seconds: 5.0,
        warmup: 10.0,
        latency: true,
    },
];

/// Defaults for cases that are named individually.
pub const CUSTOM: Suite = Suite {
    name: "custom",
    about: "cases that were named one by one",
    cases: &[],
    systems: &[],
    rounds: 4,
    seconds: 4.0,
    warmup: 10.0,
    latency: true,
};

pub fn find(name: &str) -> Option<&'static Suite> {
    ALL.iter().find(|suite| suite.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::catalogue;

    #[test]
    fn suites_name_only_cases_and_systems_that_exist() {
        let cases: Vec<String> = catalogue::all().into_iter().map(|case| case.id).collect();
        let systems = crate::systems::builtin_ids();
        for suite in ALL {
            for id in suite.cases {
                assert!(cases.iter().any(|case| case == id), "{}: {id}", suite.name);
            }
            for id in suite.systems {
                assert!(systems.iter().any(|system| system == id), "{}: {id}", suite.name);
            }
        }
    }
}
