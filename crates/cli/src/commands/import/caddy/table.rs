//! Directives and global options of a Caddyfile and their counterparts. Matchers have been converted to conditions
//! before.

use crate::commands::import::directive::Directive;
use crate::commands::import::site::Rule;
use crate::commands::import::table::{BUILT_IN, Row, accept, dropped, page, rule, site};

pub(super) const GLOBALS: &[Row] = &[
    page("email", "acme.email", |email, page| accept!(page.section("acme").set("email", email.word(0)))),
    page("acme_ca", "acme.directory", |url, page| accept!(page.section("acme").set("directory", url.word(0)))),
    page("acme_ca_root", "acme.ca_file", |file, page| accept!(page.section("acme").set("ca_file", file.word(0)))),
    page("num_threads", "workers", |number, page| {
        page.keys.write("workers", number.word(0));
        number.word(0).parse::<u16>().is_ok()
    }),
    page("max_wait_time", "queue_timeout", |time, page| accept!(page.keys.set("queue_timeout", time.word(0)))),
    page("php_ini", "php.ini", |value, page| {
        let lone = [value.clone()];
        let block =
            value.block.as_ref().map(|block| block.iter().map(|one| (one.name.as_str(), one.word(0))).collect());
        let pairs: Vec<(&str, &str)> =
            block.unwrap_or_else(|| lone.iter().map(|one| (one.word(0), one.word(1))).collect());
        pairs.iter().for_each(|(name, text)| page.section("php").set_in("ini", name, text));
        true
    }),
    page("grace_period", "grace", |time, page| accept!(page.keys.set("grace", time.word(0)))),
    page("trusted_proxies", "http.trusted_proxies", |networks, page| {
        page.section("http").set_list("trusted_proxies", &super::matcher::networks(&networks.words[1..]));
        networks.word(0) == "static"
    }),
    page("debug", "log.level", |_, page| accept!(page.section("log").set("level", "debug"))),
    dropped("admin|persist_config", "the admin endpoint has status, metrics and reload, but no settings"),
    dropped("order|local_certs|skip_install_trust|auto_https|http_port|https_port|default_bind|storage|log", BUILT_IN),
    dropped("max_threads|max_idle_time", "workers may be a range: \"2-16\""),
    dropped("acme_eab", "set acme.eab"),
    dropped("on_demand_tls", "set acme.on_demand"),
    dropped("shutdown_delay", "wait before the signal to stop, as `preStop` of Kubernetes does"),
    dropped("preferred_chains|cert_issuer|key_type|events|pki|ocsp_stapling", "there is no counterpart"),
    dropped("protocols|timeouts|client_ip_headers|strict_sni_host|metrics|max_header_size", BUILT_IN),
];

pub(super) const TABLE: &[Row] = &[
    site("root", "root", |root, site| {
        site.keys.set("root", root.word(0));
        !root.word(0).contains('{')
    }),
    rule("root", "root", |root, rule| {
        rule.keys.set("root", root.word(0));
        !root.word(0).contains('{')
    }),
    site("tls", "tls.certificates", |files, site| {
        site.certificate = (Some(files.word(0).to_owned()), Some(files.word(1).to_owned()));
        files.words.len() == 2
    }),
    site("tls", "tls.auto: private names get their certificate from the local CA", |tls, _| tls.word(0) == "internal"),
    dropped("tls", "certificates are ordered for the hosts; acme.email and tls.min_version set the rest"),
    site("log", "log.access", |log, site| {
        let of = |name: &str| log.inner().iter().find(|one| one.name == name);
        let target = match of("output") {
            Some(output) if output.word(0) == "file" => output.word(1),
            Some(output) if output.word(0) == "stderr" => "stderr",
            Some(output) if output.word(0) == "discard" => "off",
            _ => "stdout",
        };
        site.section("log").set("access", target);
        if of("format").is_some_and(|format| format.word(0) == "json") {
            site.section("log").set("format", "json");
        }
        true
    }),
    rule("log_skip|skip_log", "access_log", |_, rule| accept!(rule.keys.write("access_log", "false"))),
    site("request_body", "http.max_body", |body, site| {
        let size = size(body);
        size.inspect(|size| site.section("http").set("max_body", size)).is_some()
    }),
    rule("request_body", "max_body", |body, rule| {
        let size = size(body);
        size.inspect(|size| rule.keys.set("max_body", size)).is_some()
    }),
    rule("redir", "redirect", |redirect, rule| {
        let status = match redirect.word(1) {
            "permanent" => "301",
            "" | "temporary" => "302",
            status => status,
        };
        let target = target(redirect.word(0));
        target.iter().for_each(|target| rule.keys.set("redirect", target));
        rule.keys.write("status", status);
        target.is_some() && status.parse::<u16>().is_ok()
    }),
    rule("rewrite", "rewrite", |rewrite, rule| {
        target(rewrite.word(0)).inspect(|target| rule.keys.set("rewrite", target)).is_some()
    }),
    rule("uri", "rewrite", |uri, rule| {
        let prefix = uri.word(1).trim_end_matches('/');
        rule.paths = vec![format!("~^{}(?:/(.*))?$", prefix.replace('.', "\\."))];
        rule.keys.set("rewrite", "/$1");
        uri.word(0) == "strip_prefix" && prefix.starts_with('/')
    }),
    site("try_files", "front_controller", |files, site| {
        let last = files.words.last().map_or("", String::as_str).split('?').next().unwrap_or_default();
        site.keys.set("front_controller", last.trim_start_matches('/'));
        last.starts_with('/') && last.ends_with(".php") && files.word(0) == "{path}"
    }),
    rule("try_files", "try_files", |files, rule| {
        let words: Option<Vec<String>> = files.words.iter().map(|word| target(word)).collect();
        words.inspect(|words| rule.keys.set_list("try_files", words)).is_some()
    }),
    rule("respond|error", "status, body or deny", |respond, rule| {
        let is_status = |word: &str| word.len() == 3 && word.parse::<u16>().is_ok();
        let (body, status) = match respond.words.as_slice() {
            [status] if is_status(status) => ("", status.as_str()),
            [body] => (body.as_str(), if respond.name == "error" { "500" } else { "200" }),
            [body, status] => (body.as_str(), status.as_str()),
            _ => return false,
        };
        if status == "403" && body.is_empty() {
            rule.deny();
        } else {
            rule.keys.write("status", status);
            if !body.is_empty() {
                rule.keys.set("body", body);
            }
        }
        is_status(status) && !body.contains('{')
    }),
    rule("abort", "deny: 403 instead of a closed connection", |_, rule| accept!(rule.deny())).changed(),
    rule("header", "headers", |header, rule| {
        let lines = header.block.clone().unwrap_or_else(|| vec![as_line(header)]);
        lines.iter().filter(|line| line.name != "defer").all(|line| field(line, rule))
    }),
    rule("request_header", "request_headers", |header, rule| {
        let (name, value) = (header.word(0), header.word(1));
        let name = name.strip_prefix('-').unwrap_or(name);
        rule.keys.set_in("request_headers", name, if header.words.len() == 1 { "" } else { value });
        !name.starts_with('+') && !value.contains('{')
    }),
    rule("basic_auth|basicauth", "auth.users", |auth, rule| {
        auth.inner().iter().for_each(|user| rule.keys.set_in("auth.users", &user.name, user.word(0)));
        auth.inner().iter().all(|user| user.word(0).starts_with("$2"))
    }),
    rule("basic_auth|basicauth", "all clients are refused: write the passwords by hand", |_, rule| {
        accept!(rule.deny())
    })
    .changed(),
    rule("forward_auth", "all clients are refused: the application must check them", |_, rule| accept!(rule.deny()))
        .changed(),
    rule("file_server", "files, without scripts", |server, rule| {
        rule.keys.write("front_controller", "\"\"");
        if server.words.iter().any(|word| word == "browse") || server.inner().iter().any(|one| one.name == "browse") {
            rule.keys.write("listing", "true");
        }
        true
    }),
    rule("php_server|php_fastcgi", "front_controller: PHP runs here", |php, rule| {
        let index = php.inner().iter().find(|one| one.name == "index").map_or("index.php", |index| index.word(0));
        rule.keys.set("front_controller", &format!("/{}", index.trim_start_matches('/')));
        for env in php.inner().iter().filter(|one| one.name == "env") {
            rule.keys.set_in("env", env.word(0), env.word(1));
        }
        true
    }),
    dropped("encode|php|bind|metrics|tracing|log_append|vars|map|method", BUILT_IN),
    dropped("import", "convert the file that it names, too"),
    dropped("handle_errors", "write error_pages by hand"),
    dropped("mercure", "write [mercure] with publisher_key, subscriber_key or anonymous"),
    dropped("intercept", "scripts hand over files if static.x_accel_redirect is set"),
    dropped("hot_reload", "`howdah dev` loads changed code and reloads pages"),
    dropped("templates|acme_server|push|fs|invoke|vulcain", "there is no counterpart"),
];

/// Options of `reverse_proxy` that are not converted.
pub(super) const PROXY: &[Row] = &[
    dropped("lb_policy", "set balance in [proxy.NAME]"),
    dropped("lb_*|fail_duration|max_fails|flush_interval|stream_timeout", BUILT_IN),
    dropped("health_interval", "servers are checked every 5 seconds"),
    dropped("header_up", "for Host set host = \"upstream\" in [proxy.NAME]; other fields are not added"),
    dropped("header_down", "write a rule with headers"),
    dropped("request_buffers", "set buffer in [proxy.NAME]"),
    dropped("transport", "set response_timeout, ca, server_name and verify in [proxy.NAME]"),
    dropped("trusted_proxies", "set http.trusted_proxies"),
];

/// Replaces Caddy's placeholders in a target with this server's variables; `None` if one has no counterpart.
pub(super) fn target(text: &str) -> Option<String> {
    let pairs = [
        ("?{query}", ""),
        ("{uri}", "$path"),
        ("{http.request.uri}", "$path"),
        ("{path}", "$path"),
        ("{http.request.uri.path}", "$path"),
        ("{query}", "$query"),
        ("{host}", "$host"),
        ("{http.request.host}", "$host"),
        ("{scheme}", "$scheme"),
        ("{method}", "$method"),
        ("{client_ip}", "$client"),
        ("{remote_host}", "$client"),
    ];
    let mut made = pairs.iter().fold(text.to_owned(), |text, (theirs, own)| text.replace(theirs, own));
    // `{re.NAME.1}` and `{re.1}`.
    while let Some((before, rest)) = made.split_once("{re.") {
        let (inside, after) = rest.split_once('}')?;
        let number = inside.rsplit('.').next().filter(|number| number.parse::<u8>().is_ok())?;
        made = format!("{before}${{{number}}}{after}").replace(&format!("${{{number}}}"), &format!("${number}"));
    }
    (!made.contains('{')).then_some(made)
}

/// Converts `10MB` to `10M`.
fn size(body: &Directive) -> Option<String> {
    let size = body.inner().iter().find(|one| one.name == "max_size")?.word(0).to_ascii_uppercase();
    let size = size.trim_end_matches('B').trim_end_matches('I').to_owned();
    size.ends_with(|c: char| c.is_ascii_digit() || matches!(c, 'K' | 'M' | 'G')).then_some(size)
}

/// Converts the words of a directive to a line of its block.
fn as_line(directive: &Directive) -> Directive {
    let (name, words) = directive
        .words
        .split_first()
        .map_or((String::new(), Vec::new()), |(name, words)| (name.clone(), words.to_vec()));
    Directive { name, words, block: None, line: directive.line }
}

fn field(line: &Directive, rule: &mut Rule) -> bool {
    let name = line.name.trim_start_matches('>');
    let value = line.word(0);
    match name.strip_prefix('-') {
        Some(name) => rule.keys.set_in("headers", name, ""),
        None => rule.keys.set_in("headers", name, value),
    }
    !name.is_empty() && !name.contains('*') && !value.contains('{') && line.words.len() < 2
}

/// Converts an upstream to the address of a proxy.
pub(super) fn upstream(word: &str) -> Option<String> {
    if let Some(path) = word.strip_prefix("unix/") {
        return Some(format!("unix:{path}"));
    }
    let (scheme, rest) = word.split_once("://").unwrap_or(("http", word));
    let rest = if rest.starts_with(':') { format!("127.0.0.1{rest}") } else { rest.to_owned() };
    let port = if rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        ""
    } else if scheme == "https" {
        ":443"
    } else {
        ":80"
    };
    (matches!(scheme, "http" | "https") && !rest.contains(['/', '{'])).then(|| format!("{scheme}://{rest}{port}"))
}
