//! nginx's virtual hosts: each `server` with files or scripts becomes a site, its locations rules.
//!
//! In nginx one location serves a request: an exact one, else the longest prefix with `^~`, else the first regular
//! expression, else the longest prefix. Here every rule that applies counts, so a rule excludes what others serve.

use super::nginx_file::{Directive, parse};
use super::nginx_location::{Location, excepted, location, resolved};
use super::{Report, list};
use howdah_config::quoted;
use std::fmt::Write as _;

/// Directives that have nothing to do here: what they set is built in.
const BUILT_IN: &[&str] = &[
    "include",
    "http2",
    "fastcgi_index",
    "fastcgi_split_path_info",
    "fastcgi_buffers",
    "fastcgi_buffer_size",
    "fastcgi_busy_buffers_size",
    "fastcgi_intercept_errors",
    "fastcgi_keep_conn",
    "gzip",
    "gzip_vary",
    "gzip_types",
    "gzip_proxied",
    "gzip_comp_level",
    "gzip_min_length",
    "sendfile",
    "tcp_nopush",
    "charset",
    "default_type",
    "log_not_found",
    "client_body_buffer_size",
    "server_tokens",
];

/// The `howdah.toml` of a configuration, with a comment for each line.
///
/// # Errors
/// A mistake in it, or no server that serves anything.
pub(super) fn converted(text: &str) -> Result<String, String> {
    let all = parse(text)?;
    let mut import = Import::default();
    import.blocks(&all);
    if import.sites.is_empty() {
        return Err("there is no server { } with a root or a location in it".to_owned());
    }
    let mut page = "# From a configuration of nginx. `howdah check` shows what it means.\n\n".to_owned();
    let listen = &mut import.listen;
    // `[::]:80` takes IPv4 connections, too.
    let all_addresses = listen.clone();
    listen.retain(|addr| {
        let rest = addr.strip_prefix("https://").unwrap_or(addr);
        let wider = format!("{}[::]{rest}", &addr[..addr.len() - rest.len()]);
        !rest.starts_with(':') || !all_addresses.contains(&wider)
    });
    if !listen.is_empty() {
        let _ = writeln!(page, "listen = [{}]", listen.iter().map(|addr| quoted(addr)).collect::<Vec<_>>().join(", "));
    }
    for site in &import.sites {
        page.push_str(&site.page());
    }
    Ok(page + &import.report.comments())
}

#[derive(Default)]
struct Import {
    listen: Vec<String>,
    sites: Vec<Site>,
    report: Report,
}

#[derive(Default)]
struct Site {
    hosts: Vec<String>,
    is_default: bool,
    /// Lines of the site, in the order of the directives.
    lines: Vec<String>,
    sections: Vec<String>,
    certificate: (Option<String>, Option<String>),
    rules: Vec<Rule>,
    has_root: bool,
}

/// A rule: its path, the paths it is not for, and its other lines.
#[derive(Default)]
struct Rule {
    paths: Vec<String>,
    except: Vec<String>,
    lines: Vec<String>,
}

impl Site {
    fn page(&self) -> String {
        let mut hosts = self.hosts.clone();
        if self.is_default || hosts.is_empty() {
            hosts.push("default".to_owned());
        }
        let mut page = format!("\n[[site]]\nhosts = {}\n", list(&hosts));
        self.lines.iter().for_each(|line| page.push_str(&format!("{line}\n")));
        if let (Some(cert), Some(key)) = &self.certificate {
            let _ =
                write!(page, "\n[site.tls]\ncertificates = [{{ cert = {}, key = {} }}]\n", quoted(cert), quoted(key));
        }
        self.sections.iter().for_each(|section| page.push_str(&format!("\n{section}\n")));
        for rule in self.rules.iter().filter(|rule| !rule.lines.is_empty()) {
            page.push_str("\n[[site.rule]]\n");
            if !rule.paths.is_empty() {
                let _ = writeln!(page, "path = {}", list(&rule.paths));
            }
            if !rule.except.is_empty() {
                let _ = writeln!(page, "not = {{ path = {} }}", list(&rule.except));
            }
            rule.lines.iter().for_each(|line| page.push_str(&format!("{line}\n")));
        }
        page
    }
}

impl Import {
    /// The top level, `http`, and files that are included by it.
    fn blocks(&mut self, directives: &[Directive]) {
        for directive in directives {
            match (&*directive.name, &directive.block) {
                ("server", Some(block)) => self.server(directive, block),
                ("http", Some(block)) => self.blocks(block),
                _ => self.dropped(directive, "it is outside of server { }: see the guide of settings"),
            }
        }
    }

    fn dropped(&mut self, directive: &Directive, why: &str) {
        self.report.say(directive.line, directive.shown(), format!("dropped: {why}"));
    }

    fn taken(&mut self, directive: &Directive, key: &str) {
        self.report.say(directive.line, directive.shown(), format!("taken: {key}"));
    }

    fn server(&mut self, server: &Directive, block: &[Directive]) {
        let mut site = Site::default();
        let locations = || block.iter().filter(|directive| directive.name == "location");
        let serves = block.iter().any(|directive| directive.name == "root") || locations().next().is_some();
        let returns = block.iter().find(|directive| directive.name == "return");
        if !serves && returns.is_none() {
            return self.dropped(server, "it has neither a root nor a location");
        }
        let chosen: Vec<Location> = locations().map(location).collect();
        for directive in block {
            match &directive.block {
                None => self.of_server(directive, &mut site),
                Some(inner) if directive.name == "location" => {
                    self.location(directive, inner, block, &chosen, &mut site)
                }
                Some(_) => self.dropped(directive, "write its conditions as a rule by hand"),
            }
        }
        // Scripts that go to PHP by their names are the only ones that run.
        let to_php = |directive: &&Directive| {
            directive.block.as_ref().is_some_and(|inner| inner.iter().any(|part| part.name == "fastcgi_pass"))
        };
        let scripts: Vec<String> = locations().filter(to_php).flat_map(|directive| location(directive).paths).collect();
        if !scripts.is_empty() && scripts.iter().all(|path| path.starts_with("~^/") || path.starts_with('/')) {
            let (paths, lines) = (vec!["~\\.php(/|$)".to_owned()], vec!["exists = \"file\"\nphp = false".to_owned()]);
            site.rules.push(Rule { paths, except: scripts, lines });
        }
        if !site.has_root {
            // It only redirects.
            site.lines.push("root = \"/var/empty\"   # it serves no files".to_owned());
        }
        self.sites.push(site);
    }

    fn of_server(&mut self, directive: &Directive, site: &mut Site) {
        let value = directive.word(0);
        match &*directive.name {
            "listen" => {
                let is_tls = directive.words.iter().any(|word| word == "ssl");
                site.is_default |= directive.words.iter().any(|word| word == "default_server");
                let addr =
                    if value.parse::<u16>().is_ok() { format!(":{value}") } else { value.replace('*', "0.0.0.0") };
                let addr = if is_tls { format!("https://{addr}") } else { addr };
                self.taken(directive, &format!("listen {addr}"));
                if !self.listen.contains(&addr) {
                    self.listen.push(addr);
                }
            }
            "server_name" => {
                for name in &directive.words {
                    match name.as_str() {
                        "_" | "" => site.is_default = true,
                        name if name.starts_with('~') => {
                            self.dropped(directive, "hosts are names or *.NAME, no regular expressions");
                        }
                        name => match name.strip_prefix('.') {
                            Some(domain) => site.hosts.extend([domain.to_owned(), format!("*.{domain}")]),
                            None => site.hosts.push(name.to_owned()),
                        },
                    }
                }
                self.taken(directive, "hosts");
            }
            "root" => {
                site.has_root = true;
                site.lines.push(format!("root = {}", quoted(value)));
                self.taken(directive, "root");
            }
            "index" => {
                let names = directive.words.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
                site.lines.push(format!("index = [{names}]"));
                self.taken(directive, "index");
            }
            "ssl_certificate" => {
                site.certificate.0 = Some(value.to_owned());
                self.taken(directive, "tls.certificates");
            }
            "ssl_certificate_key" => {
                site.certificate.1 = Some(value.to_owned());
                self.taken(directive, "tls.certificates");
            }
            "client_max_body_size" => {
                site.sections.push(format!("[site.http]\nmax_body = {}", quoted(&size(value))));
                self.taken(directive, "http.max_body");
            }
            "access_log" if !value.starts_with("syslog") && !value.contains('$') => {
                site.sections.push(format!("[site.log]\naccess = {}", quoted(value)));
                self.report.say(directive.line, directive.shown(), "changed: log.access, in the combined format");
            }
            "error_log" => self.dropped(directive, "the server has one error log: [log] error"),
            "try_files" => self.front_controller(directive, &[], site),
            _ => {
                let mut rule = Rule::default();
                self.of_location(directive, &mut rule);
                site.rules.push(rule);
            }
        }
    }

    /// `try_files` of the site as a whole: the last word is the front controller.
    fn front_controller(&mut self, directive: &Directive, server: &[Directive], site: &mut Site) {
        let last = directive.words.last().map_or("", String::as_str);
        let last = resolved(last, server);
        let script = last.split(['?', '$']).next().unwrap_or_default().trim_start_matches('/');
        if last.starts_with('=') || script.ends_with(".php") {
            let script = if last.starts_with('=') { "" } else { script };
            site.lines.push(format!("front_controller = {}", quoted(script)));
            if !directive.words.iter().any(|word| word == "$uri/") {
                // Directories are not looked into, either.
                site.lines.retain(|line| !line.starts_with("index = "));
                site.lines.push("index = []".to_owned());
            }
            self.taken(directive, "front_controller");
        } else {
            self.dropped(directive, "its last part names no script: set front_controller by hand");
        }
    }

    fn location(
        &mut self,
        directive: &Directive,
        inner: &[Directive],
        server: &[Directive],
        chosen: &[Location],
        site: &mut Site,
    ) {
        let own = location(directive);
        if own.is_named() {
            return self.report.say(directive.line, directive.shown(), "taken: where it is named");
        }
        let is_internal = inner.iter().any(|inner| inner.name == "internal");
        let except = excepted(&own, chosen);
        if inner.iter().any(|inner| inner.name == "fastcgi_pass") {
            return self.scripts(directive, inner, &own, site);
        }
        if is_internal {
            self.report.say(
                directive.line,
                directive.shown(),
                "changed: clients get 404; for files that scripts hand over set static.x_accel_redirect",
            );
            let lines = vec!["status = 404".to_owned()];
            return site.rules.push(Rule { paths: own.paths, except, lines });
        }
        self.report.say(directive.line, directive.shown(), "taken: a rule, or the site itself");
        let is_whole = own.is_whole();
        let mut rule = Rule { paths: if is_whole { Vec::new() } else { own.paths }, except, lines: Vec::new() };
        for part in inner {
            match (&*part.name, &part.block) {
                ("try_files", None) if is_whole => self.front_controller(part, server, site),
                ("try_files", None) => {
                    let words = part.words.iter().map(|word| quoted(&variables(resolved(word, server))));
                    rule.lines.push(format!("try_files = [{}]", words.collect::<Vec<_>>().join(", ")));
                    self.taken(part, "try_files");
                }
                ("rewrite", None) => {
                    let mut own = Rule::default();
                    self.rewritten(part, &mut own);
                    site.rules.push(own);
                }
                ("location", Some(nested)) => self.location(part, nested, server, &[], site),
                (_, Some(_)) => self.dropped(part, "write its conditions as a rule by hand"),
                (_, None) => self.of_location(part, &mut rule),
            }
        }
        let serves_elsewhere = ["try_files", "return", "rewrite", "proxy_pass", "deny", "error_page"]
            .iter()
            .any(|name| inner.iter().any(|part| part.name == *name));
        if !is_whole && !serves_elsewhere {
            rule.lines.push("front_controller = \"\"   # files alone".to_owned());
        }
        site.rules.push(rule);
    }

    /// A location whose requests go to PHP.
    fn scripts(&mut self, directive: &Directive, inner: &[Directive], own: &Location, site: &mut Site) {
        self.report.say(directive.line, directive.shown(), "taken: these scripts run in the pool of the site");
        for part in inner {
            let is_constant = part.name == "fastcgi_param" && !part.word(1).contains('$');
            let of_server = matches!(part.word(0), "HTTPS" | "SERVER_NAME" | "REDIRECT_STATUS");
            if is_constant && !of_server {
                let lines = vec![format!("env = {{ {} = {} }}", part.word(0), quoted(part.word(1)))];
                site.rules.push(Rule { lines, ..Rule::default() });
                self.taken(part, "env");
            } else if part.name == "try_files" && part.words.last().is_some_and(|last| last == "=404") {
                let lines = vec!["exists = \"no\"\nstatus = 404".to_owned()];
                site.rules.push(Rule { paths: own.paths.clone(), except: Vec::new(), lines });
                self.taken(part, "a rule for scripts that do not exist");
            } else {
                self.dropped(part, "it is built in");
            }
        }
    }

    /// A directive that may be a key of a rule.
    fn of_location(&mut self, directive: &Directive, rule: &mut Rule) {
        let value = directive.word(0);
        let lines = &mut rule.lines;
        let key = match &*directive.name {
            "deny" if value == "all" => {
                // After `allow`, all others are refused anyway.
                if !lines.iter().any(|line| line.starts_with("allow = ")) {
                    lines.push("deny = true".to_owned());
                }
                "deny"
            }
            "allow" if value == "all" => "nothing, as everything is allowed",
            "allow" => match lines.iter_mut().find(|line| line.starts_with("allow = ")) {
                Some(line) => {
                    *line = line.replace(']', &format!(", {}]", quoted(value)));
                    "allow"
                }
                None => {
                    lines.push(format!("allow = [{}]", quoted(value)));
                    "allow"
                }
            },
            "return" => return self.returned(directive, rule),
            "rewrite" => return self.rewritten(directive, rule),
            "expires" if seconds(value).is_some() => {
                lines.push(format!("cache_control = \"max-age={}\"", seconds(value).unwrap_or_default()));
                "cache_control"
            }
            "add_header" if !directive.word(1).contains('$') => {
                lines.push(format!("headers.{} = {}", quoted(value), quoted(directive.word(1))));
                "headers"
            }
            "access_log" if value == "off" => {
                lines.push("access_log = false".to_owned());
                "access_log"
            }
            "alias" | "root" => {
                lines.push(format!("{} = {}", directive.name, quoted(value)));
                "alias, root"
            }
            "autoindex" if value == "on" => {
                lines.push("listing = true".to_owned());
                "listing"
            }
            "client_max_body_size" => {
                lines.push(format!("max_body = {}", quoted(&size(value))));
                "max_body"
            }
            "proxy_pass" if !value.contains('$') => {
                lines.push(format!("proxy = {}", quoted(value)));
                "proxy"
            }
            "error_page" if directive.words.len() == 2 && directive.word(1).starts_with('/') => {
                lines.push(format!("error_pages.{} = {}", quoted(value), quoted(directive.word(1))));
                "error_pages"
            }
            name if BUILT_IN.contains(&name) || name.starts_with("fastcgi_") || name.starts_with("ssl_") => {
                return self.dropped(directive, "it is built in, or set for the server as a whole");
            }
            _ => return self.dropped(directive, "there is no counterpart, or none that is known"),
        };
        self.taken(directive, key);
    }

    fn returned(&mut self, directive: &Directive, rule: &mut Rule) {
        // It ends a request before access is judged.
        rule.lines.retain(|line| !line.starts_with("deny = ") && !line.starts_with("allow = "));
        let (code, text) = match directive.words.len() {
            1 if directive.word(0).contains("://") => ("302", directive.word(0)),
            _ => (directive.word(0), directive.word(1)),
        };
        match code {
            "301" | "302" | "303" | "307" | "308" => {
                rule.lines.push(format!("redirect = {}\nstatus = {code}", quoted(&variables(text))));
            }
            "403" | "444" if text.is_empty() => rule.lines.push("deny = true".to_owned()),
            code if code.parse::<u16>().is_ok() => {
                rule.lines.push(format!("status = {code}"));
                if !text.is_empty() {
                    rule.lines.push(format!("body = {}", quoted(text)));
                }
            }
            _ => return self.dropped(directive, "its status is no number"),
        }
        self.taken(directive, "redirect, status or deny");
    }

    fn rewritten(&mut self, directive: &Directive, rule: &mut Rule) {
        let (pattern, target, flag) = (directive.word(0), variables(directive.word(1)), directive.word(2));
        let redirects = matches!(flag, "redirect" | "permanent") || target.contains("://");
        rule.paths = vec![format!("~{pattern}")];
        rule.lines.push(match (redirects, flag) {
            (true, "permanent") => format!("redirect = {}\nstatus = 301", quoted(&target)),
            (true, _) => format!("redirect = {}", quoted(&target)),
            (false, "break") => format!("rewrite = {}\nlast = true", quoted(&target)),
            (false, _) => format!("rewrite = {}", quoted(&target)),
        });
        self.taken(directive, "rewrite or redirect");
    }
}

/// nginx's variables by their names here. The query is kept without them.
fn variables(text: &str) -> String {
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

/// `64m` as `64M`; 0 is no limit in both.
fn size(text: &str) -> String {
    text.to_ascii_uppercase()
}

/// The seconds of a time as `expires` has it.
fn seconds(time: &str) -> Option<u64> {
    let time = if time == "max" { "3650d" } else { time };
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

#[cfg(test)]
#[path = "nginx_tests.rs"]
mod tests;
