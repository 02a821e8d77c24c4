//! nginx's directives and their counterparts.

use crate::commands::import::directive::Directive;
use crate::commands::import::site::{Rule, Site};
use crate::commands::import::table::{BUILT_IN, Row, accept, dropped, rule, site};

pub(super) const TABLE: &[Row] = &[
    site("listen", "listen", listen),
    site("server_name", "hosts", |names, site| names.words.iter().all(|name| host(name, site))),
    site("server_name", "hosts, without regular expressions: names or *.NAME alone", |names, site| {
        names.words.iter().filter(|name| host(name, site)).count() > 0
    })
    .changed(),
    site("root", "root", |root, site| text(root, site, "root")),
    site("index", "index", index),
    site("ssl_certificate", "tls.certificates", |file, site| {
        accept!(site.certificate.0 = Some(file.word(0).to_owned()))
    }),
    site("ssl_certificate_key", "tls.certificates", |file, site| {
        accept!(site.certificate.1 = Some(file.word(0).to_owned()))
    }),
    site("client_max_body_size", "http.max_body", |size, site| {
        accept!(site.section("http").set("max_body", &size.word(0).to_ascii_uppercase()))
    }),
    rule("client_max_body_size", "max_body", |size, rule| {
        accept!(rule.keys.set("max_body", &size.word(0).to_ascii_uppercase()))
    }),
    rule("access_log", "access_log", |log, rule| {
        rule.keys.write("access_log", "false");
        log.word(0) == "off"
    }),
    site("access_log", "log.access, in the combined format", access_log).changed(),
    dropped("error_log", "the server has one error log: [log] error"),
    rule("return", "redirect, status or deny", returned),
    rule("rewrite", "rewrite or redirect", rewritten),
    rule("index", "index", |names, rule| accept!(rule.keys.set_list("index", &of_directory(names)))),
    rule("expires", "cache_control", |time, rule| {
        let seconds = seconds(time.word(0));
        seconds.inspect(|seconds| rule.keys.set("cache_control", &format!("max-age={seconds}"))).is_some()
    }),
    rule("add_header", "headers", |header, rule| {
        !header.word(1).contains('$') && accept!(rule.keys.set_in("headers", header.word(0), header.word(1)))
    }),
    rule("alias", "alias", |path, rule| of_rule(path, rule, "alias")),
    rule("root", "root", |path, rule| of_rule(path, rule, "root")),
    rule("autoindex", "listing", |on, rule| on.word(0) == "on" && accept!(rule.keys.write("listing", "true"))),
    dropped("autoindex", "directories are not listed anyway"),
    rule("proxy_pass", "proxy", |addr, rule| !addr.word(0).contains('$') && of_rule(addr, rule, "proxy")),
    rule("error_page", "error_pages", |page, rule| {
        let Some((target, statuses)) = page.words.split_last() else { return false };
        statuses.iter().for_each(|status| rule.keys.set_in("error_pages", status, target));
        target.starts_with('/') && statuses.iter().all(|status| status.parse::<u16>().is_ok())
    }),
    dropped("fastcgi_*|gzip*|brotli*|http2|sendfile|tcp_nopush|charset|default_type", BUILT_IN),
    dropped("include", "the content of this file is built in, or no file matches"),
    dropped("log_not_found|client_body_buffer_size|server_tokens|ssl_*|open_file_cache*", BUILT_IN),
    dropped("client_body_temp_path", "files for waiting bodies are in $TMPDIR"),
    dropped("client_header_timeout", "clients have 10 seconds for a header"),
    dropped("client_body_timeout|send_timeout", "set http.client_timeout"),
    dropped("keepalive_timeout", "set http.idle_timeout"),
    dropped("large_client_header_buffers", "a header may have 64 KB"),
    dropped("set_real_ip_from|real_ip_*", "set http.trusted_proxies and http.trusted_headers"),
    dropped("disable_symlinks", "set static.follow_symlinks"),
    dropped("limit_req*|limit_conn*", "write a rule with `limit`"),
    dropped("proxy_set_header", "the proxy sets Host, Upgrade and X-Forwarded-For, and adds no other field"),
    dropped("proxy_connect_timeout", "servers have 5 seconds to accept a connection"),
    dropped("proxy_read_timeout|proxy_send_timeout", "set response_timeout in [proxy.NAME]"),
    dropped("proxy_*", BUILT_IN),
];

/// Directives outside of `server { }`, in addition to those above.
pub(super) const GLOBALS: &[Row] = &[
    dropped("worker_processes|worker_connections|events", "threads and http.max_connections follow from the machine"),
    dropped("user", "set user, and php.user for scripts"),
    dropped("map|geo", "write a rule with the condition"),
    dropped("upstream", "write [proxy.NAME] with `to` and `balance`"),
    dropped("log_format", "set log.format"),
];

fn text(directive: &Directive, site: &mut Site, key: &str) -> bool {
    site.keys.set(key, directive.word(0));
    true
}

fn of_rule(directive: &Directive, rule: &mut Rule, key: &str) -> bool {
    rule.keys.set(key, directive.word(0));
    true
}

fn listen(directive: &Directive, site: &mut Site) -> bool {
    let value = directive.word(0);
    let has = |word: &str| directive.words.iter().any(|own| own == word);
    site.is_default |= has("default_server");
    let addr = if value.parse::<u16>().is_ok() { format!(":{value}") } else { value.replace('*', "0.0.0.0") };
    site.listen.push(if has("ssl") { format!("https://{addr}") } else { addr });
    true
}

/// Adds a host name. Returns `false` for a regular expression.
fn host(name: &str, site: &mut Site) -> bool {
    match name.strip_prefix('.') {
        _ if name.starts_with('~') => return false,
        _ if matches!(name, "_" | "") => site.is_default = true,
        Some(domain) => site.hosts.extend([domain.to_owned(), format!("*.{domain}")]),
        None => site.hosts.push(name.to_owned()),
    }
    true
}

fn index(directive: &Directive, site: &mut Site) -> bool {
    site.keys.set_list("index", &of_directory(directive));
    true
}

/// Names of index files: a path at their end leads to the front controller, as it does anyway.
fn of_directory(index: &Directive) -> Vec<String> {
    index.words.iter().filter(|name| !name.starts_with('/')).cloned().collect()
}

fn access_log(directive: &Directive, site: &mut Site) -> bool {
    let file = directive.word(0);
    let is_file = !file.starts_with("syslog") && !file.contains('$');
    if is_file {
        site.section("log").set("access", file);
    }
    is_file
}

fn returned(directive: &Directive, rule: &mut Rule) -> bool {
    let (code, text) = match directive.words.len() {
        1 if directive.word(0).contains("://") => ("302", directive.word(0)),
        _ => (directive.word(0), directive.word(1)),
    };
    match code {
        "301" | "302" | "303" | "307" | "308" => {
            if !is_known(&variables(text)) {
                return false;
            }
            rule.keys.set("redirect", &variables(text));
            rule.keys.write("status", code);
        }
        "403" | "444" if text.is_empty() => rule.deny(),
        code if code.parse::<u16>().is_ok() => {
            rule.keys.write("status", code);
            if !text.is_empty() {
                rule.keys.set("body", text);
            }
        }
        _ => return false,
    }
    true
}

fn rewritten(directive: &Directive, rule: &mut Rule) -> bool {
    let (pattern, target, flag) = (directive.word(0), variables(directive.word(1)), directive.word(2));
    let redirects = matches!(flag, "redirect" | "permanent") || target.contains("://");
    if !is_known(&target) {
        return false;
    }
    rule.paths = vec![format!("~{pattern}")];
    rule.keys.set(if redirects { "redirect" } else { "rewrite" }, &target);
    match (redirects, flag) {
        (true, "permanent") => rule.keys.write("status", "301"),
        (false, "break") => rule.keys.write("last", "true"),
        _ => {}
    }
    true
}

/// Replaces nginx's variables with this server's. The query's variables are removed, because the query is kept anyway.
pub(super) fn variables(text: &str) -> String {
    let pairs = [
        ("$is_args$args", ""),
        ("?$query_string", ""),
        ("?$args", ""),
        ("$request_uri", "$path"),
        ("$document_uri", "$path"),
        ("$uri", "$path"),
        ("$server_name", "$host"),
        ("$http_host", "$host"),
        ("$remote_addr", "$client"),
    ];
    pairs.iter().fold(text.to_owned(), |text, (theirs, own)| text.replace(theirs, own))
}

/// `true` if targets of rules know all variables of the text. Those with a digit or in braces are groups.
fn is_known(target: &str) -> bool {
    target.split('$').skip(1).all(|rest| {
        let name = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(rest, |end| &rest[..end]);
        matches!(name, "path" | "host" | "scheme" | "method" | "client" | "query")
            || rest.starts_with(|c: char| c.is_ascii_digit() || c == '{')
    })
}

/// Number of seconds in an `expires` time.
fn seconds(time: &str) -> Option<u64> {
    let time = if time == "max" { "3650d" } else { time };
    let time = time.strip_prefix('+').unwrap_or(time);
    let unit_at = time.find(|c: char| !c.is_ascii_digit()).unwrap_or(time.len());
    let factor = match &time[unit_at..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 604_800,
        "M" => 2_592_000,
        "y" => 31_536_000,
        _ => return None,
    };
    time[..unit_at].parse::<u64>().ok()?.checked_mul(factor)
}
