//! The settings of the HTTP front: protocol limits, static files, compression, and the logs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::address::TrustedProxy;
use crate::choice::{LogFormat, LogLevel, TrustedHeader};
use crate::fixed_time::fixed_time;
use crate::link_policy::LinkPolicy;
use crate::log_target::{AccessTarget, LogTarget};
use crate::pattern::NamePattern;
use crate::quantity::ByteSize;
use crate::table::settings;

fn default_memory() -> ByteSize {
    ByteSize(howdah_budget::machine::default_memory())
}

/// Placeholder until the location of temporary files is known (`load`).
fn default_spool() -> ByteSize {
    ByteSize(howdah_budget::machine::default_spool(1 << 30, false))
}

/// Placeholder: each pool's PHP determines the value.
const fn of_php() -> Option<ByteSize> {
    None
}

/// Placeholder until the number of other descriptors is known (`load`).
const fn default_connections() -> usize {
    0
}

settings! {
    /// Protocol, limits and timeouts of the HTTP front.
    pub struct HttpSettings at "http" {
        /// Maximum pause of a client that sends a request body (then 408) or reads a response (then the connection is
        /// closed, or the stream in HTTP/2 and HTTP/3).
        client_timeout: Duration = r#""60s""# example(r#""20s""#);
        /// Time that a connection stays open without a request, after its first one; before that at most 10 seconds.
        idle_timeout: Duration = r#""75s""# example(r#""15s""#);
        /// Maximum size of a request body; then 413.
        ///
        /// By default PHP limits its forms: the body of a POST with a form above `post_max_size` is read and dropped,
        /// and the script runs with an empty `$_POST` and PHP's warning. Other bodies get 413 above `post_max_size` or
        /// 8M, whichever is larger. Without a limit in PHP (`post_max_size = 0`) a body may use an eighth of `spool`.
        max_body: Option<ByteSize> = "PHP's `post_max_size` in the pool that runs the script, at least 8M; 8M for proxies" auto(of_php)
            example(r#""1G""#);
        /// Memory for everything that waits: bodies, responses to slow clients, compression. Above it requests get 503,
        /// and responses to slow clients are cut off earlier. The server itself and PHP are not included.
        memory: ByteSize = "an eighth of the memory of the machine or of its control group, 16M to 4G" auto(default_memory)
            in(1048576, 1099511627776) restart(true) example(r#""64M""#);
        /// Space for bodies and responses that do not fit in memory: files without names in `$TMPDIR`, else in `/var/tmp`
        /// if `/tmp` is memory, else in `/tmp`. Above it requests with such bodies get 503, and workers wait for slow
        /// clients.
        spool: ByteSize = "a quarter of the free space there, 16M to 64G; no more than `memory`'s default if the directory is in memory"
            auto(default_spool) in(1048576, 1125899906842624) restart(true) example(r#""2G""#);
        /// Peers whose `trusted_headers` are trusted: addresses, networks, `"unix"`.
        trusted_proxies: Vec<TrustedProxy> = "[]" example(r#"["127.0.0.1", "10.0.0.0/8", "unix"]"#);
        /// Headers of trusted proxies that are used: `X-Forwarded-For`, `X-Forwarded-Proto`, `X-Forwarded-Host`,
        /// `X-Forwarded-Port`, `Forwarded`, `X-Request-Id`.
        ///
        /// List only what your proxy sets or appends to on every request; most proxies forward anything else that the
        /// client sent. Of several values the last one counts, which the nearest proxy wrote. `X-Forwarded-For` and
        /// `Forwarded` are followed from there through trusted proxies to the first other address.
        trusted_headers: Vec<TrustedHeader> = r#"["X-Forwarded-For", "X-Forwarded-Proto"]"#
            example(r#"["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"]"#);
        /// Maximum number of open connections; 0 for as many as the descriptors allow, which is always the upper limit.
        /// At the limit idle connections are closed for new ones, the oldest first, then those that are slow to send
        /// their header.
        max_connections: usize = "half the descriptors that the process may have (`ulimit -Hn`) and the server does not need, at most one for each 128K of memory"
            auto(default_connections) example("10000");
        /// Value of the `Server` header; `""` for none.
        server_header: Option<String> = r#""Howdah""# example(r#""""#);
        /// Response header with the request's id; `""` for none.
        request_id_header: Option<String> = r#""""# example(r#""X-Request-Id""#);
        /// Respond to `/livez` (200 while the server is alive) and `/readyz` (200 if the server should get requests, else 503
        /// and the reason: it is stopping, or a pool cannot serve), for any host.
        ///
        /// For probes that cannot reach the admin address, which always has both.
        probes: bool = "false" example("true");
    }
    plus {
        /// Maximum time from the first byte of a request to the end of its header; also until the first request of a
        /// connection begins. Then HTTP/1 gets 408 if the header has begun, and the connection is closed; HTTP/3 resets
        /// the stream. HTTP/2 has the limit for the first request only.
        header_timeout: Duration = fixed_time("http.header_timeout", Duration::from_secs(10));
        /// Maximum size of a request header, all fields together; then 431.
        max_header_bytes: ByteSize = ByteSize(64 << 10);
        /// Directory for temporary files.
        temp_dir: Option<PathBuf> = None;
        /// Maximum size of a response kept in memory for a slow client; the rest goes to a temporary file.
        response_memory: ByteSize = ByteSize(1 << 20);
        /// Maximum size of a request body in memory; larger ones go to a temporary file.
        body_memory: ByteSize = ByteSize(256 << 10);
        /// Minimum speed of a client that sends a body or reads a response, in bytes per second over `client_timeout`. Only time
        /// spent waiting for the client counts.
        min_rate: ByteSize = ByteSize(256);
        /// Maximum length of a request target; then 414.
        max_uri: ByteSize = ByteSize(16 << 10);
    }
}

settings! {
    /// Files that are sent without PHP.
    pub struct StaticSettings at "static" {
        /// Send files whose path has a part that starts with a dot. `/.well-known/` does not need it.
        dotfiles: bool = "false" example("true");
        /// Names of files that are never sent, in any case; `*` matches any text, and `!` before a name exempts it.
        ///
        /// PHP's own endings (`.php`, `.phtml`, `.phar` and the like), `howdah.toml`, `php.ini` of `php.config`, pools'
        /// scripts and logs are never sent in any case. Endings `.gz`, `.br` and `.zst` are removed before matching. A
        /// list here replaces the default.
        never_send: Vec<NamePattern> = r##"["*.php.*", "*.php~*", "*.php_*", "*.php-*", "*.php#*", "*.php *", "*.phtml.*", "*.phar.*", "*.inc", "*.inc.*", "*.module", "*.install", "*.theme", "*.engine", "*.profile", "*howdah*.toml*", "php.ini*", ".user.ini*", ".env*", ".htaccess*", ".htpasswd*", "!*.html", "!*.htm", "!*.css", "!*.js", "!*.mjs", "!*.jpg", "!*.jpeg", "!*.png", "!*.gif", "!*.webp", "!*.avif", "!*.svg", "!*.ico", "!*.pdf", "!*.mp4", "!*.webm", "!*.mp3", "!*.woff", "!*.woff2"]"##
            example(r#"["*.php.*", "*.inc", "*.sql", "!*.html"]"#);
        /// Symbolic links to follow: `always`, `never`, those that stay `inside` the root, or also those into these
        /// directories outside of it, if root created the links, as Debian's packages do. The root itself may be a link.
        ///
        /// Other links get 404, and the log names each once, up to 1000 per root.
        follow_symlinks: LinkPolicy = r#"["/usr/share", "/usr/lib", "/var/lib"]"# example(r#"["/usr/share", "/etc/webapps"]"#);
        /// Directories of files that scripts may send with `X-Accel-Redirect: ADDRESS`, by the start of the address.
        ///
        /// The directories must lie outside of `root`, so that clients cannot request their files. Symbolic links in
        /// them are not followed, and PHP source is not sent.
        x_accel_redirect: BTreeMap<String, String> = "{}" example(r#"{ "/protected/" = "/srv/files" }"#);
        /// Directories of files that scripts may send with `X-Sendfile: PATH`, with the restrictions of
        /// `x_accel_redirect`.
        x_sendfile: Vec<PathBuf> = "[]" example(r#"["/srv/files"]"#);
    }
    plus {
        /// Send `FILE.br`, `FILE.zst` or `FILE.gz` instead of a file to clients that accept it; not for files handed
        /// over by scripts.
        precompressed: bool = true;
        /// Maximum number of files kept open for reuse; several sites share it.
        open_files: usize = 1024;
        /// Time for which a small file is sent without checking that it still exists unchanged.
        revalidate_after: Duration = fixed_time("static.revalidate_after", Duration::ZERO);
    }
}

/// Media types that become smaller.
const COMPRESSIBLE: &[&str] = &[
    "text/*",
    "application/json",
    "application/ld+json",
    "application/geo+json",
    "application/manifest+json",
    "application/problem+json",
    "application/vnd.api+json",
    "application/javascript",
    "application/x-javascript",
    "application/xml",
    "application/xhtml+xml",
    "application/rss+xml",
    "application/atom+xml",
    "application/soap+xml",
    "application/wasm",
    "application/vnd.ms-fontobject",
    "font/ttf",
    "font/otf",
    "font/collection",
    "image/svg+xml",
    "image/bmp",
    "image/x-icon",
    "image/vnd.microsoft.icon",
];

settings! {
    /// Compression of responses while they are sent.
    pub struct CompressionSettings at "compression" {
        /// Compress responses.
        enabled: bool = "true" example("false");
    }
    plus {
        /// Media types to compress; `TYPE/*` matches all of a kind.
        types: Vec<String> = COMPRESSIBLE.iter().map(|&media| media.to_owned()).collect();
        /// Memory for a cache of compressed bodies, found by the content that they were compressed from.
        cache: ByteSize = ByteSize(16 << 20);
    }
}

settings! {
    /// The error log and the access log.
    pub struct LogSettings at "log" {
        /// Minimum level of messages in the error log.
        level: LogLevel = r#""info""# restart(true) example(r#""debug""#);
        /// Format of the error log, and of the access log: there `text` is the combined format, and `terminal` a short
        /// line. In a site: of its access log.
        format: LogFormat = r#""text""# restart(true) example(r#""json""#);
        /// Destination of the error log: `stderr`, a file, `journald`, or `syslog` (of this machine;
        /// `syslog:udp://HOST:PORT` and `syslog:tcp://HOST:PORT` for another one).
        error: LogTarget = r#""stderr""# restart(true) example(r#""/var/log/howdah/error.log""#);
        /// Destination of the access log: `off`, `stdout`, `stderr`, a file, `journald` or `syslog`, as for `error`.
        access: AccessTarget = r#""off""# flag("access-log") example(r#""/var/log/howdah/access.log""#);
    }
    plus {}
}
