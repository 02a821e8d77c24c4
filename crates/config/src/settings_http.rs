//! The settings of the HTTP front: protocol limits, static files, compression, and the logs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::address::TrustedProxy;
use crate::choice::{AccessFormat, LogFormat, LogLevel, Symlinks, TrustedHeader};
use crate::log_target::{AccessTarget, LogTarget};
use crate::pattern::NamePattern;
use crate::quantity::ByteSize;
use crate::table::settings;

fn default_memory() -> ByteSize {
    ByteSize(howdah_budget::machine::default_memory())
}

/// Until it is known where temporary files go (`load`).
fn default_spool() -> ByteSize {
    ByteSize(howdah_budget::machine::default_spool(1 << 30, false))
}

const fn default_temp_dir() -> Option<PathBuf> {
    None
}

/// Each pool's PHP says.
const fn of_php() -> Option<ByteSize> {
    None
}

/// Until it is known what else needs descriptors (`load`).
const fn default_connections() -> usize {
    0
}

settings! {
    /// Protocol, limits and timeouts of the HTTP front.
    pub struct HttpSettings at "http" {
        /// The longest time from a connection's first byte of a request to the end of its header; then 408.
        header_timeout: Duration = r#""10s""# example(r#""5s""#);
        /// The longest pause between two reads of a request body; then 408.
        body_timeout: Duration = r#""60s""# example(r#""20s""#);
        /// The longest time without progress while a response is written; then the connection is closed.
        write_timeout: Duration = r#""60s""# example(r#""20s""#);
        /// How long a connection is kept open without a request.
        idle_timeout: Duration = r#""75s""# example(r#""15s""#);
        /// The largest request header, all fields together; above it 431.
        max_header_bytes: ByteSize = r#""64K""# in(4096, 1048576) example(r#""16K""#);
        /// The longest request target; above it 414.
        max_uri: ByteSize = r#""16K""# in(64, 65534) example(r#""8K""#);
        /// The slowest that a client may send a body or read a response, in bytes per second over `body_timeout` and `write_timeout`;
        /// 0 for any speed. Only the time that the client is waited for counts.
        min_rate: ByteSize = "256" example("0");
        /// The largest request body; above it 413.
        ///
        /// By default PHP limits its forms itself: the body of a POST with a form above `post_max_size` is read and dropped, and the
        /// script runs with an empty `$_POST` and PHP's warning. Other bodies get 413 above `post_max_size` or 8M, whichever is
        /// larger. Without a limit in PHP (`post_max_size = 0`) a body may take an eighth of `spool`.
        max_body: Option<ByteSize> = "PHP's `post_max_size` in the pool that runs the script, at least 8M; 8M for proxies" auto(of_php)
            example(r#""1G""#);
        /// Memory for everything that waits: bodies, responses to slow readers, what compression needs. Above it requests get 503,
        /// and slow readers are let go earlier. The server itself and PHP come on top.
        memory: ByteSize = "an eighth of the memory of the machine or of its control group, 16M to 4G" auto(default_memory)
            in(1048576, 1099511627776) example(r#""64M""#);
        /// Room in `temp_dir` for the bodies and responses that do not fit in memory. Above it requests with such bodies get 503, and
        /// workers wait for slow readers.
        spool: ByteSize = "a quarter of what is free in `temp_dir`, 16M to 64G; no more than `memory`'s default if that is memory itself"
            auto(default_spool) in(1048576, 1125899906842624) example(r#""2G""#);
        /// A request body up to this size is kept in memory; a larger one goes to a temporary file.
        body_memory: ByteSize = r#""256K""# example(r#""1M""#);
        /// How much of one response is kept in memory for a slow reader; the rest goes to a temporary file.
        response_memory: ByteSize = r#""1M""# example(r#""4M""#);
        /// The directory for temporary files, which should be on a disk. They have no names, and end with the server.
        temp_dir: Option<PathBuf> = "`$TMPDIR`, else `/var/tmp` where `/tmp` is memory, else `/tmp`" auto(default_temp_dir)
            example(r#""/var/tmp/howdah""#);
        /// Peers whose `trusted_headers` are believed: addresses, networks, `"unix"`.
        trusted_proxies: Vec<TrustedProxy> = "[]" example(r#"["127.0.0.1", "10.0.0.0/8", "unix"]"#);
        /// Which fields of trusted proxies are believed: `X-Forwarded-For`, `X-Forwarded-Proto`, `X-Forwarded-Host`,
        /// `X-Forwarded-Port`, `Forwarded`, `X-Request-Id`.
        ///
        /// List only what your proxy sets itself on every request, or appends its own to; most proxies pass on whatever else the
        /// client sent. Of several values the last counts, which the nearest proxy wrote; `X-Forwarded-For` and `Forwarded` are
        /// followed from there through trusted proxies to the first address that is none.
        trusted_headers: Vec<TrustedHeader> = r#"["X-Forwarded-For", "X-Forwarded-Proto"]"#
            example(r#"["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"]"#);
        /// Speak HTTP/2 without TLS too, to clients that begin with it; there is no upgrade from HTTP/1.1.
        h2: bool = "true" example("false");
        /// The largest number of open connections; 0 for as many as there are descriptors for, less those that the requests on them
        /// need. It is never more than that. When it is reached, those that wait for their next request are closed for new ones, the
        /// oldest first, and then those that are slow with their header.
        max_connections: usize = "half the descriptors that the process may have (`ulimit -Hn`) and the server does not need, at most one for each 128K of memory"
            auto(default_connections) example("10000");
        /// The value of the `Server` field; `""` for none.
        server_header: Option<String> = r#""Howdah""# example(r#""""#);
        /// The response field that carries the request's id; `""` for none.
        request_id_header: Option<String> = r#""""# example(r#""X-Request-Id""#);
        /// A path that is answered with 200 as long as the server can answer at all, whatever the host; `""` for none.
        ///
        /// For probes that cannot reach the admin address, which has `/livez` and `/readyz` in any case.
        livez: Option<String> = r#""""# example(r#""/livez""#);
        /// A path that is answered with 200 if requests should be sent here, else with 503 and the reason: the server is
        /// stopping, or a pool has no worker; `""` for none.
        readyz: Option<String> = r#""""# example(r#""/readyz""#);
    }
    plus {}
}

settings! {
    /// Files that are sent without PHP.
    pub struct StaticSettings at "static" {
        /// Send static files at all.
        enabled: bool = "true" example("false");
        /// Send files whose path has a part that starts with a dot (`.well-known` is always sent).
        dotfiles: bool = "false" example("true");
        /// The value of `Cache-Control` on static files; `""` for none.
        cache_control: Option<String> = r#""""# example(r#""public, max-age=3600""#);
        /// Names of files that are never sent, in whatever case; `*` stands for any text, and a `!` before a name exempts it.
        ///
        /// PHP's own endings (`.php`, `.phtml`, `.phar` and the like), `howdah.toml`, `php.ini` of `php.config`, the scripts of
        /// pools and the logs are never sent in any case. Endings `.gz`, `.br` and `.zst` are taken off before. A list here replaces the default one.
        never_send: Vec<NamePattern> = r##"["*.php.*", "*.php~*", "*.php_*", "*.php-*", "*.php#*", "*.php *", "*.phtml.*", "*.phar.*", "*.inc", "*.inc.*", "*.module", "*.install", "*.theme", "*.engine", "*.profile", "*howdah*.toml*", "php.ini*", ".user.ini*", ".env*", ".htaccess*", ".htpasswd*", "!*.html", "!*.htm", "!*.css", "!*.js", "!*.mjs", "!*.jpg", "!*.jpeg", "!*.png", "!*.gif", "!*.webp", "!*.avif", "!*.svg", "!*.ico", "!*.pdf", "!*.mp4", "!*.webm", "!*.mp3", "!*.woff", "!*.woff2"]"##
            example(r#"["*.php.*", "*.inc", "*.sql", "!*.html"]"#);
        /// How long a file that was found is sent without a look whether it is still there and unchanged; 0 looks each time.
        ///
        /// A look is one system call for each request. On network file systems a longer time may save much; a file of up to 16 KB
        /// that was deleted or changed is then sent for so long as it was. Longer ones are not kept in memory and looked at each time.
        revalidate_after: Duration = r#""0s""# example(r#""1s""#);
        /// Which symbolic links are followed: those that stay `inside` the root (and see `link_targets`), `always` or `never`. The
        /// root itself may be one.
        follow_symlinks: Symlinks = r#""inside""# example(r#""never""#);
        /// Where links out of the root are followed to although `follow_symlinks` is `"inside"`, if root has made them, as Debian's
        /// packages do.
        ///
        /// A link that is not followed is 404, and the log names it once.
        link_targets: Vec<PathBuf> = r#"["/usr/share", "/usr/lib", "/var/lib"]"# example(r#"["/usr/share", "/etc/webapps"]"#);
        /// Directories whose files scripts may hand to the server with `X-Accel-Redirect: ADDRESS`, by the start of the address.
        ///
        /// Clients cannot ask for these addresses, so the directories must lie outside of `root`. Symbolic links in them are not
        /// followed, PHP source is not sent.
        x_accel_redirect: BTreeMap<String, String> = "{}" example(r#"{ "/protected/" = "/srv/files" }"#);
        /// Directories whose files scripts may hand to the server with `X-Sendfile: PATH`. The same holds for them.
        x_sendfile: Vec<PathBuf> = "[]" example(r#"["/srv/files"]"#);
        /// Media types by file name extension, over the built-in list.
        mime: BTreeMap<String, String> = "{}" example(r#"{ webmanifest = "application/manifest+json" }"#);
    }
    plus {
        /// Send `FILE.br`, `FILE.zst` or `FILE.gz` in a file's place to clients that take it; not where scripts hand files over.
        precompressed: bool = true;
        /// Maximum number of files kept open for reuse; several sites share it.
        open_files: usize = 1024;
    }
}

settings! {
    /// Compression of responses while they are sent.
    pub struct CompressionSettings at "compression" {
        /// Compress at all.
        enabled: bool = "true" example("false");
        /// Media types to compress; `TYPE/*` stands for all of a kind.
        types: Vec<String> = r#"["text/*", "application/json", "application/ld+json", "application/geo+json", "application/manifest+json", "application/problem+json", "application/vnd.api+json", "application/javascript", "application/x-javascript", "application/xml", "application/xhtml+xml", "application/rss+xml", "application/atom+xml", "application/soap+xml", "application/wasm", "application/vnd.ms-fontobject", "font/ttf", "font/otf", "font/collection", "image/svg+xml", "image/bmp", "image/x-icon", "image/vnd.microsoft.icon"]"#
            example(r#"["text/*", "application/json"]"#);
        /// Memory for compressed bodies that may be sent again, found by their content; 0 for none.
        cache: ByteSize = r#""16M""# example(r#""64M""#);
    }
    plus {}
}

settings! {
    /// The error log and the access log.
    pub struct LogSettings at "log" {
        /// How much the error log says.
        level: LogLevel = r#""info""# flag("log-level") example(r#""debug""#);
        /// How lines of the error log are written.
        format: LogFormat = r#""text""# example(r#""json""#);
        /// Where the error log goes: `stderr`, a file, `journald`, or `syslog` (of this machine; `syslog:udp://HOST:PORT` and
        /// `syslog:tcp://HOST:PORT` for another one).
        error: LogTarget = r#""stderr""# example(r#""/var/log/howdah/error.log""#);
        /// Where the access log goes: `off`, `stdout`, a file, `journald` or `syslog`, as above.
        access: AccessTarget = r#""off""# flag("access-log") example(r#""/var/log/howdah/access.log""#);
        /// How lines of the access log are written.
        access_format: AccessFormat = r#""combined""# example(r#""json""#);
    }
    plus {}
}
