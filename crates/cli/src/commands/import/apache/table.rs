//! Apache's directives and their counterparts.

use crate::commands::import::directive::Directive;
use crate::commands::import::site::{Rule, Site, escaped};
use crate::commands::import::table::{BUILT_IN, Row, accept, dropped, rule, site};
use howdah_htaccess::Validity;

pub(super) const TABLE: &[Row] = &[
    site("ServerName", "hosts", |name, site| host(name.word(0), site)),
    site("ServerAlias", "hosts", |names, site| names.words.iter().all(|name| host(name, site))),
    dropped("ServerAlias", "hosts are names or *.NAME"),
    site("DocumentRoot", "root", |root, site| accept!(site.keys.set("root", root.word(0).trim_end_matches('/')))),
    site("DirectoryIndex", "index", |names, site| {
        let names: &[String] = if names.word(0) == "disabled" { &[] } else { &names.words };
        site.keys.set_list("index", names);
        true
    }),
    rule("DirectoryIndex", "index", |names, rule| {
        rule.keys.set_list("index", &names.words);
        names.word(0) != "disabled"
    }),
    dropped("DirectoryIndex", "a site has its index everywhere"),
    site("FallbackResource", "front_controller", |script, site| {
        let script = if script.word(0) == "disabled" { "" } else { script.word(0).trim_start_matches('/') };
        site.keys.set("front_controller", script);
        true
    }),
    rule("FallbackResource", "front_controller", |script, rule| {
        accept!(rule.keys.set("front_controller", if script.word(0) == "disabled" { "" } else { script.word(0) }))
    }),
    site("AllowOverride", "nothing: .htaccess files are not read", |what, _| what.word(0).eq_ignore_ascii_case("None")),
    site("AllowOverride|AllowOverrideList", "htaccess, with every directive of these files", |_, site| {
        accept!(site.keys.write("htaccess", "true"))
    })
    .changed(),
    dropped("AllowOverride*", "htaccess applies to a whole site"),
    site("SSLEngine", "listen", |_, _| true),
    site("SSLCertificateFile", "tls.certificates", |file, site| {
        accept!(site.certificate.0 = Some(file.word(0).to_owned()))
    }),
    site("SSLCertificateKeyFile", "tls.certificates", |file, site| {
        accept!(site.certificate.1 = Some(file.word(0).to_owned()))
    }),
    dropped("SSLCertificateChainFile", "append it to the file of SSLCertificateFile"),
    site("CustomLog|TransferLog", "log.access, in the combined format", |log, site| {
        let file = log.word(0);
        site.section("log").set("access", file);
        file.starts_with('/')
    })
    .changed(),
    dropped("ErrorLog|LogLevel", "the server has one error log: [log] error"),
    site("LimitRequestBody", "http.max_body", |size, site| {
        site.section("http").write("max_body", size.word(0));
        size.word(0).parse::<u64>().is_ok()
    }),
    rule("LimitRequestBody", "max_body", |size, rule| {
        rule.keys.write("max_body", size.word(0));
        size.word(0).parse::<u64>().is_ok()
    }),
    rule("php_flag|php_admin_flag|php_value|php_admin_value", "php", |flag, rule| {
        rule.keys.write("php", "false");
        flag.word(0) == "engine" && !on(flag.word(1))
    }),
    site("php_value|php_flag", "pool.ini", |value, site| ini(value, site, "ini")),
    site("php_admin_value|php_admin_flag", "pool.admin_ini", |value, site| ini(value, site, "admin_ini")),
    dropped("php_*", "values of a directory need its own [pool.NAME], and a rule with pool"),
    rule("Options", "listing", |options, rule| {
        rule.keys.write("listing", "true");
        options.words.iter().any(|word| matches!(word.trim_start_matches('+'), "Indexes" | "All"))
    }),
    dropped("Options", "without a listing of directories it is built in"),
    rule("Deny", "deny", |who, rule| {
        match who.word(1) {
            "all" => rule.deny(),
            client => rule.keys.add("deny", client),
        }
        is_network(who.word(1))
    }),
    rule("Deny", "all clients are refused: write this condition by hand", refused).changed(),
    rule("Allow", "nothing, as everything is allowed", |who, rule| {
        rule.keys.remove("deny");
        who.word(1) == "all"
    }),
    rule("Allow", "allow", |who, rule| who.words[1..].iter().all(|client| allow(rule, client))),
    dropped("Order|Satisfy", "Allow and Deny have become allow and deny"),
    rule("AuthType", "auth", |kind, _| kind.word(0).eq_ignore_ascii_case("Basic")),
    rule("AuthType", "all clients are refused: only passwords are supported (Basic)", refused).changed(),
    rule("AuthName", "auth.realm", |name, rule| accept!(rule.keys.set("auth.realm", name.word(0)))),
    rule("AuthUserFile", "auth.file", |file, rule| accept!(rule.keys.set("auth.file", file.word(0)))),
    dropped("AuthBasicProvider", "passwords are in a file"),
    rule("Redirect|RedirectPermanent|RedirectTemp", "redirect", redirect),
    rule("RedirectMatch", "redirect", redirect_match),
    rule("Alias", "alias", alias),
    rule("ErrorDocument", "error_pages", |page, rule| {
        rule.keys.set_in("error_pages", page.word(0), page.word(1));
        page.word(1).starts_with('/')
    }),
    dropped("ErrorDocument", "an error page is a path"),
    rule("Header", "headers", header),
    rule("RequestHeader", "request_headers", |header, rule| {
        let value = if header.word(0) == "unset" { "" } else { header.word(2) };
        rule.keys.set_in("request_headers", header.word(1), value);
        matches!(header.word(0), "set" | "unset") && !value.contains('%') && header.words.len() <= 3
    }),
    dropped("ExpiresActive", "the other Expires lines suffice"),
    rule("ExpiresByType", "cache_control", |time, rule| {
        let seconds = seconds(&time.words[1..].join(" "));
        seconds.inspect(|age| rule.keys.set_in("cache_control", time.word(0), &format!("max-age={age}"))).is_some()
    }),
    rule("ExpiresDefault", "cache_control", |time, rule| {
        let seconds = seconds(&time.words.join(" "));
        seconds.inspect(|age| rule.keys.set("cache_control", &format!("max-age={age}"))).is_some()
    }),
    rule("SetEnv", "env", |env, rule| accept!(rule.keys.set_in("env", env.word(0), env.word(1)))),
    dropped("AddHandler|Action|FcgidWrapper|ProxyFCGI*|FastCgi*", "PHP runs here, for names that end in .php"),
    rule("SetHandler", "built in: PHP runs here", |handler, _| handler.word(0).contains("php") || is_fcgi(handler)),
    rule("SetHandler", "php", |handler, rule| {
        rule.keys.write("php", "false");
        matches!(handler.word(0), "none" | "default-handler" | "None")
    }),
    rule("RemoveHandler|RemoveType", "php", |_, rule| accept!(rule.keys.write("php", "false"))),
    dropped("AddType", BUILT_IN),
    rule("ProxyPass|ProxyPassMatch", "built in: PHP runs here", |to, _| is_fcgi(to)),
    rule("ProxyPass", "proxy", proxy),
    dropped("ProxyPassReverse*|ProxyPreserveHost|ProxyRequests|ProxyTimeout|ProxyVia", BUILT_IN),
    dropped("Include|IncludeOptional", "it sets up modules, or no file matches"),
    dropped("Use", "convert the named macro, too"),
    dropped(
        "Define|UnDefine|ServerAdmin|ServerSignature|ServerTokens|UseCanonicalName|RewriteEngine|RewriteBase",
        BUILT_IN,
    ),
    dropped(
        "KeepAlive*|Timeout|SSL*|Protocols|AddDefaultCharset|AddCharset|AcceptPathInfo|Dav|EnableSendfile",
        BUILT_IN,
    ),
    dropped(
        "AddOutputFilterByType|SetOutputFilter|Deflate*|FileETag|DirectorySlash|HostnameLookups|LogFormat",
        BUILT_IN,
    ),
    dropped("LoadModule|ServerRoot|PidFile|User|Group|MaxRequestWorkers|ThreadsPerChild|StartServers", BUILT_IN),
];

fn on(word: &str) -> bool {
    matches!(word.to_ascii_lowercase().as_str(), "on" | "1" | "yes" | "true")
}

fn is_fcgi(directive: &Directive) -> bool {
    directive.words.iter().any(|word| word.contains("fcgi://"))
}

fn is_network(client: &str) -> bool {
    let addr = client.split('/').next().unwrap_or_default();
    client == "all" || addr.parse::<std::net::IpAddr>().is_ok()
}

/// Admits a client. Returns `false` for texts that are not an address.
fn allow(rule: &mut Rule, client: &str) -> bool {
    rule.keys.remove("deny");
    rule.keys.add("allow", client);
    is_network(client) && client != "all"
}

/// Refuses all clients if an access restriction has no counterpart: ignoring it would open the site.
fn refused(_: &Directive, rule: &mut Rule) -> bool {
    rule.keys.remove("allow");
    rule.deny();
    true
}

fn host(name: &str, site: &mut Site) -> bool {
    let name = name.split_once("://").map_or(name, |(_, rest)| rest);
    let name = name.rsplit_once(':').map_or(name, |(name, _)| name);
    site.hosts.push(name.to_owned());
    !name.trim_start_matches("*.").contains(['*', '?'])
}

fn ini(directive: &Directive, site: &mut Site, table: &str) -> bool {
    let (name, value) = (directive.word(0), directive.words[1..].join(" "));
    let value = match directive.name.to_ascii_lowercase().ends_with("_flag") {
        true if on(&value) => "1",
        true => "0",
        false => &value,
    };
    site.section("pool").set_in(table, name, value);
    !name.is_empty()
}

fn redirect(directive: &Directive, rule: &mut Rule) -> bool {
    let (status, rest) = status(directive);
    let (path, target) = match rest {
        [path, target] => (path, Some(target.as_str())),
        [path] => (path, None),
        _ => return false,
    };
    let start = path.trim_end_matches('/');
    match target {
        // Redirect appends the rest of the path to its target.
        Some(target) if matches!(status, "301" | "302" | "303" | "307" | "308") => {
            let end = if path.ends_with('/') { "(/.*)$" } else { "(/.*)?$" };
            rule.paths = vec![format!("~^{}{end}", escaped(start))];
            rule.keys.set("redirect", &format!("{}$1", target.trim_end_matches('/')));
        }
        None => rule.paths = vec![path.to_owned(), format!("{start}/*")],
        Some(_) => return false,
    }
    rule.keys.write("status", status);
    true
}

fn redirect_match(directive: &Directive, rule: &mut Rule) -> bool {
    let (status, rest) = status(directive);
    rule.paths = rest.first().map(|pattern| format!("~{pattern}")).into_iter().collect();
    rule.keys.write("status", status);
    if let Some(target) = rest.get(1) {
        rule.keys.set("redirect", target);
    }
    !rule.paths.is_empty() && (rest.len() == 2 || !status.starts_with('3'))
}

/// Status of a redirect, and the words after it.
fn status(directive: &Directive) -> (&str, &[String]) {
    let of_name = if directive.name.eq_ignore_ascii_case("RedirectPermanent") { "301" } else { "302" };
    match directive.words.as_slice() {
        [word, rest @ ..] => match word.as_str() {
            "permanent" => ("301", rest),
            "temp" => ("302", rest),
            "seeother" => ("303", rest),
            "gone" => ("410", rest),
            number if number.parse::<u16>().is_ok() => (number, rest),
            _ => (of_name, &directive.words),
        },
        [] => (of_name, &[]),
    }
}

fn alias(directive: &Directive, rule: &mut Rule) -> bool {
    let path = directive.word(0).trim_end_matches('/');
    rule.paths = vec![path.to_owned(), format!("{path}/*")];
    rule.keys.set("alias", directive.word(1));
    rule.keys.write("front_controller", "\"\"   # files only");
    path.starts_with('/')
}

fn header(directive: &Directive, rule: &mut Rule) -> bool {
    let words = directive.words.strip_prefix(&["always".to_owned()]).unwrap_or(&directive.words);
    let words = words.strip_prefix(&["onsuccess".to_owned()]).unwrap_or(words);
    let (action, name, value) = match words {
        [action, name] if action == "unset" => (action, name, ""),
        [action, name, value] => (action, name, value.as_str()),
        _ => return false,
    };
    let sign = match action.as_str() {
        "set" | "unset" => "",
        "setifempty" => "?",
        "add" | "append" => "+",
        _ => return false,
    };
    rule.keys.set_in("headers", &format!("{sign}{name}"), value);
    !value.contains('%')
}

fn proxy(directive: &Directive, rule: &mut Rule) -> bool {
    let (path, target) = (directive.word(0), directive.word(1));
    let start = path.trim_end_matches('/');
    if target == "!" {
        rule.paths = vec![path.to_owned(), format!("{start}/*")];
        rule.keys.write("last", "true");
        return true;
    }
    let target = target.strip_prefix("ws").map_or_else(|| target.to_owned(), |rest| format!("http{rest}"));
    let Some((scheme, rest)) = target.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
    else {
        return false;
    };
    let (host, base) = rest.split_once('/').map_or((rest, ""), |(host, base)| (host, base.trim_end_matches('/')));
    if start.trim_start_matches('/') == base {
        rule.paths = if start.is_empty() { Vec::new() } else { vec![start.to_owned(), format!("{start}/*")] };
    } else {
        rule.paths = vec![format!("~^{}(?:/(.*))?$", escaped(start))];
        rule.keys.set("rewrite", &if base.is_empty() { "/$1".to_owned() } else { format!("/{base}/$1") });
    }
    rule.keys.set("proxy", &format!("{scheme}://{host}"));
    true
}

/// Number of seconds in `access plus 1 month 2 days` or `A3600`.
fn seconds(text: &str) -> Option<u64> {
    Validity::new(text).ok()?.after_access()
}
