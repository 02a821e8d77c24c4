//! A Caddyfile, with FrankenPHP's directives: each site becomes a site, and its directives become rules in Caddy's
//! order of directives.

mod errors;
mod file;
mod matcher;
mod table;

use super::directive::Directive;
use super::page::Page;
use super::site::{Rule, Site};
use super::table::{Scope, apply, drop_reason};
use std::path::Path;
use table::{GLOBALS, TABLE};

/// Caddy's order of directives; all others come after these.
const ORDER: &[&str] = &[
    "root",
    "header",
    "request_body",
    "redir",
    "rewrite",
    "uri",
    "try_files",
    "basic_auth",
    "basicauth",
    "forward_auth",
    "request_header",
    "handle",
    "route",
    "abort",
    "error",
    "respond",
    "reverse_proxy",
    "php_fastcgi",
    "php_server",
    "file_server",
];

/// Converts a Caddyfile, with a comment for each line. Files that it imports are read from `directory`.
///
/// # Errors
/// A mistake in the file, or no site in it.
pub(super) fn converted(text: &str, directory: Option<&Path>) -> Result<String, String> {
    let all = file::parse(text, directory)?;
    let mut import = Import::default();
    for one in &all {
        if one.name == "{" {
            import.globals(one.inner());
        } else {
            import.site(one);
        }
    }
    if import.page.sites.is_empty() {
        return Err("there is no site in it".to_owned());
    }
    import.global_workers();
    // Caddy redirects plain HTTP requests to HTTPS, except for sites that are HTTP only.
    let only_plain = |site: &Site| site.listen.iter().all(|addr| !addr.starts_with("https://"));
    if !import.page.sites.iter().any(only_plain) && import.page.sites.iter().any(|site| site.listen.len() > 1) {
        import.page.section("tls").write("redirect", "true");
    }
    Ok(import.page.finish("a Caddyfile"))
}

#[derive(Default)]
struct Import {
    page: Page,
    /// `worker` lines in the global options: each for the site whose root contains the script.
    workers: Vec<Directive>,
    /// Paths whose scripts run, of the site that is read; `None` if the scripts of all paths do.
    to_php: Option<Vec<String>>,
}

impl Import {
    fn globals(&mut self, options: &[Directive]) {
        for option in options {
            match (&*option.name, &option.block) {
                ("frankenphp" | "servers", Some(inner)) => self.globals(inner),
                ("frankenphp", None) => self.page.report.say(option, "taken: PHP runs here"),
                ("worker", _) => self.workers.push(option.clone()),
                _ => {
                    let became = apply(GLOBALS, option, &mut Scope::Page(&mut self.page));
                    self.page.report.say(option, became);
                }
            }
        }
    }

    fn site(&mut self, definition: &Directive) {
        let mut site = Site::default();
        site.keys.write("front_controller", "\"\"");
        definition.words.iter().for_each(|addr| address(addr, &mut site));
        self.page.report.say(definition, "taken: hosts, listen");
        let inner = definition.inner();
        let mut named = Vec::new();
        matchers(inner, &mut named);
        self.to_php = Some(Vec::new());
        self.directives(inner, &Rule::default(), &named, &mut site);
        if let Some(rule) = self.other_scripts(inner) {
            site.rules.push(rule);
        }
        if site.listen.iter().any(|addr| addr.starts_with("https://")) && site.certificate.0.is_none() {
            site.section("tls").write("auto", "true");
        }
        self.page.sites.push(site);
    }

    /// A rule that refuses scripts which the site sends as files.
    fn other_scripts(&mut self, inner: &[Directive]) -> Option<Rule> {
        let paths = self.to_php.take()?;
        if !paths.is_empty() {
            return Some(Rule::no_scripts_but(paths));
        }
        let mut rule = Rule::default();
        rule.keys.write("php", "false");
        (has_anywhere(inner, &["file_server"]) && !has_anywhere(inner, PHP)).then_some(rule)
    }

    /// Notes the paths whose scripts run.
    fn runs_php(&mut self, rule: &Rule) {
        match &mut self.to_php {
            Some(paths) if !rule.paths.is_empty() => paths.extend(rule.paths.iter().cloned()),
            all => *all = None,
        }
    }

    /// Handles directives, under the conditions of the enclosing block.
    fn directives(&mut self, inner: &[Directive], base: &Rule, named: &[Directive], site: &mut Site) {
        let mut sorted: Vec<&Directive> = inner.iter().filter(|one| !one.name.starts_with('@')).collect();
        sorted.sort_by_key(|one| rank(one));
        // Scripts here run before files are looked for.
        let runs_all = sorted.iter().any(|one| is_php(one) && !one.words.first().is_some_and(|word| is_matcher(word)));
        let shows_files = |one: &Directive| one.name == "file_server" && !has_anywhere(one.inner(), &["browse"]);
        // Requests that no earlier `handle` has taken.
        let mut left = Some(base.clone());
        for directive in sorted {
            let Some(base) = left.clone() else {
                self.page.report.say_all(directive, "dropped: an earlier `handle` takes every request");
                continue;
            };
            let (rule, bare) = match conditions(directive, &base, named) {
                Ok(found) => found,
                Err(why) => {
                    if !self.page.close(directive, &why, &base, site) {
                        self.page.report.dropped(directive, &why);
                    }
                    continue;
                }
            };
            if matches!(&*directive.name, "handle" | "handle_path") {
                left = base.without(&rule);
            }
            if is_php(directive) {
                self.runs_php(&rule);
            }
            if runs_all && shows_files(directive) && !bare.shown().contains("browse") {
                self.page.report.say(directive, SENT);
                continue;
            }
            let before = site.rules.len();
            self.directive(directive, &bare, rule, named, site);
            if !runs_all && directive.name == "file_server" {
                site.rules[before..].iter_mut().for_each(|rule| rule.keys.write("php", "false"));
            }
        }
        for matcher in inner.iter().filter(|one| one.name.starts_with('@')) {
            self.page.report.say(matcher, "taken: wherever it is used");
        }
    }

    /// Handles a directive: separates its words from its matcher, and collects the conditions in a rule.
    fn directive(
        &mut self,
        directive: &Directive,
        bare: &Directive,
        mut rule: Rule,
        named: &[Directive],
        site: &mut Site,
    ) {
        let is_whole =
            rule.paths.is_empty() && rule.except.is_empty() && rule.when.is_empty() && rule.unless.is_empty();
        // In a final `handle`, for the remaining requests: the site's own setting.
        let is_rest = rule.paths.is_empty() && rule.when.is_empty();
        match &*directive.name {
            "handle" | "route" => {
                self.page.report.say(directive, "taken: conditions of rules");
                return self.directives(directive.inner(), &rule, named, site);
            }
            "handle_path" => {
                self.page.report.say(directive, "taken: conditions of rules");
                return self.stripped(directive, &rule, site);
            }
            "php_server" | "php_fastcgi" if is_rest => return self.php(directive, bare, site),
            "file_server" if is_rest && !bare.shown().contains("browse") && bare.block.is_none() => {
                return self.page.report.say(directive, SENT);
            }
            "reverse_proxy" => {
                let became = self.proxy(bare, &mut rule);
                self.page.report.say(directive, became);
                return site.rules.push(rule);
            }
            "handle_errors" => return errors::pages(directive, named, rule, site, &mut self.page.report),
            _ => {}
        }
        let became = if is_whole {
            apply(TABLE, bare, &mut Scope::Site(site))
        } else {
            let became = apply(TABLE, bare, &mut Scope::Rule(&mut rule));
            site.rules.push(rule);
            became
        };
        self.page.report.say(directive, became);
    }

    /// `handle_path`: the directives in it see the path without the prefix.
    fn stripped(&mut self, block: &Directive, base: &Rule, site: &mut Site) {
        let mut rule = base.clone();
        let has_scripts = has_anywhere(block.inner(), PHP);
        if has_scripts {
            self.runs_php(base);
        } else if has_anywhere(block.inner(), &["file_server"]) {
            rule.keys.write("php", "false");
        }
        for inner in block.inner() {
            let words = inner.words.iter().filter(|word| *word != "*").cloned().collect();
            let bare = Directive { words, ..inner.clone() };
            let became = match &*inner.name {
                "root" => {
                    rule.keys.set("alias", bare.word(0));
                    "taken: alias".to_owned()
                }
                "reverse_proxy" => {
                    let prefix = block.word(0).trim_end_matches('*').trim_end_matches('/').replace('.', "\\.");
                    rule.paths = vec![format!("~^{prefix}/(.*)$")];
                    rule.keys.set("rewrite", "/$1");
                    self.proxy(&bare, &mut rule)
                }
                "php_server" | "php_fastcgi" => "taken: PHP runs here".to_owned(),
                _ => apply(TABLE, &bare, &mut Scope::Rule(&mut rule)),
            };
            self.page.report.say(inner, became);
        }
        site.rules.push(rule);
    }

    fn php(&mut self, directive: &Directive, bare: &Directive, site: &mut Site) {
        site.keys.set("front_controller", "index.php");
        self.page.report.say(directive, "taken: front_controller; PHP runs here");
        for one in bare.inner() {
            let became = match &*one.name {
                "index" => {
                    let script = if one.word(0) == "off" { "" } else { one.word(0) };
                    site.keys.set("front_controller", script);
                    "taken: front_controller"
                }
                "root" => {
                    site.keys.set("root", one.word(0));
                    "taken: root"
                }
                "env" => {
                    site.section("pool").set_in("env", one.word(0), one.word(1));
                    "taken: pool.env"
                }
                "try_files" => {
                    let became = apply(TABLE, one, &mut Scope::Site(site));
                    self.page.report.say(one, became);
                    continue;
                }
                "worker" => worker(one, site),
                _ => "dropped: it is built in",
            };
            self.page.report.say(one, became);
        }
    }

    /// Assigns each global worker to the site whose root contains its script, else to the first site.
    fn global_workers(&mut self) {
        for directive in std::mem::take(&mut self.workers) {
            let file = worker_file(&directive).to_owned();
            let sites = &mut self.page.sites;
            let root = |site: &Site| site.keys.text("root").is_some_and(|root| file.starts_with(&root));
            let at = sites.iter().position(root).unwrap_or_default();
            let became = worker(&directive, &mut sites[at]);
            self.page.report.say(&directive, became);
        }
    }

    fn proxy(&mut self, directive: &Directive, rule: &mut Rule) -> String {
        let of_block = directive.inner().iter().filter(|one| one.name == "to").flat_map(|to| &to.words);
        let words: Vec<&String> = directive.words.iter().chain(of_block).collect();
        let Some(to) = words.iter().map(|word| table::upstream(word)).collect::<Option<Vec<String>>>() else {
            return "dropped: an upstream is HOST:PORT, http://, https:// or unix/".to_owned();
        };
        let of = |name: &'static str| directive.inner().iter().find(|one| one.name == name);
        let health = of("health_uri").map(|health| health.word(0).to_owned());
        match to.as_slice() {
            [] => return "dropped: there is no address in it".to_owned(),
            [one] if health.is_none() => rule.keys.set("proxy", one),
            _ => {
                let name = format!("upstream{}", self.page.sites.len() * 100 + directive.line);
                let section = self.page.section(&format!("proxy.{name}"));
                section.set_list("to", &to);
                health.iter().for_each(|path| section.set("health", path));
                rule.keys.set("proxy", &name);
            }
        }
        for one in directive.inner() {
            match &*one.name {
                "to" | "health_uri" => self.page.report.say(one, "taken: [proxy.NAME]"),
                _ => {
                    let why = drop_reason(table::PROXY, &one.name).unwrap_or("set it in [proxy.NAME] by hand");
                    self.page.report.dropped(one, why);
                }
            }
        }
        "taken: proxy".to_owned()
    }
}

/// Caddy's order: that of the names, then directives with longer paths, then those without a matcher.
fn rank(directive: &Directive) -> (usize, bool, usize) {
    // Caddy sorts the blocks of both kinds together.
    let name = if directive.name == "handle_path" { "handle" } else { &*directive.name };
    let place = ORDER.iter().position(|own| *own == name).unwrap_or(ORDER.len());
    let is_ordered = matches!(&*directive.name, "handle" | "handle_path");
    let first = directive.word(0);
    let path = if is_ordered && first.starts_with('/') { first.len() } else { 0 };
    (place, is_ordered && matches!(first, "" | "*"), usize::MAX - path)
}

/// Collects the named matchers of a site, including those in its blocks.
fn matchers(inner: &[Directive], named: &mut Vec<Directive>) {
    for one in inner {
        if one.name.starts_with('@') {
            named.push(one.clone());
        } else {
            matchers(one.inner(), named);
        }
    }
}

const SENT: &str = "taken: files are sent anyway";

/// Directives that run scripts.
const PHP: &[&str] = &["php_server", "php_fastcgi"];

fn is_php(directive: &Directive) -> bool {
    PHP.contains(&&*directive.name)
}

/// `true` for words that name requests: all, those of a path or of a named matcher.
fn is_matcher(word: &str) -> bool {
    word == "*" || word.starts_with('/') || word.starts_with('@')
}

fn has_anywhere(inner: &[Directive], names: &[&str]) -> bool {
    inner.iter().any(|one| names.contains(&&*one.name) || has_anywhere(one.inner(), names))
}

/// Returns the conditions of a directive's matcher and its block, and the directive without the matcher.
fn conditions(directive: &Directive, base: &Rule, named: &[Directive]) -> Result<(Rule, Directive), String> {
    let mut rule = base.clone();
    let mut bare = directive.clone();
    let first = directive.word(0);
    // With a single word, these directives have a target and no matcher, even if the word looks like a path.
    let is_target = directive.words.len() == 1 && matches!(&*directive.name, "root" | "rewrite" | "redir");
    if !is_matcher(first) || is_target || directive.name == "try_files" {
        return Ok((rule, bare));
    }
    bare.words.remove(0);
    if first.starts_with('@') {
        let found = named.iter().find(|one| one.name == first);
        let paths = std::mem::take(&mut rule.paths);
        matcher::named(found.ok_or_else(|| format!("there is no matcher {first}"))?, &mut rule)?;
        if rule.paths.is_empty() {
            rule.paths = paths;
        }
    } else if first != "*" {
        rule.paths = vec![first.to_owned()];
    }
    Ok((rule, bare))
}

/// Adds an address of a site: its host, and the address to listen on.
fn address(addr: &str, site: &mut Site) {
    let (scheme, rest) = addr.split_once("://").unwrap_or(("", addr));
    let rest = rest.split('/').next().unwrap_or_default();
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => (host, port),
        _ => (rest, ""),
    };
    if host.is_empty() || host == "*" {
        site.is_default = true;
    } else {
        site.hosts.push(host.to_owned());
    }
    let is_plain = scheme == "http" || port == "80" || (scheme.is_empty() && host.is_empty() && port != "443");
    let (plain, tls) =
        (format!(":{}", if port.is_empty() { "80" } else { port }), if port.is_empty() { "443" } else { port });
    if is_plain {
        site.listen.push(plain);
    } else {
        site.listen.extend((port.is_empty()).then_some(plain));
        site.listen.push(format!("https://:{tls}"));
    }
}

/// Script of a `worker`, in its block or on its line.
fn worker_file(directive: &Directive) -> &str {
    directive.inner().iter().find(|one| one.name == "file").map_or_else(|| directive.word(0), |file| file.word(0))
}

/// Converts a FrankenPHP worker to the site's pool.
fn worker(directive: &Directive, site: &mut Site) -> &'static str {
    let file = worker_file(directive);
    let root = site.keys.text("root").unwrap_or_default();
    let pool = site.section("pool");
    if pool.has("script") {
        return "dropped: a second worker needs [pool.NAME], and a rule with its path and pool";
    }
    let is_relative = !file.starts_with('/') && !root.is_empty();
    pool.set("mode", "worker");
    pool.set("script", &if is_relative { format!("{}/{file}", root.trim_end_matches('/')) } else { file.to_owned() });
    let of = |name: &'static str| directive.inner().iter().filter(move |one| one.name == name);
    let number = of("num").next().map_or_else(|| directive.word(1), |number| number.word(0));
    if number.parse::<u16>().is_ok() {
        pool.write("workers", number);
    }
    of("env").for_each(|env| pool.set_in("env", env.word(0), env.word(1)));
    of("watch").for_each(|watch| pool.add("watch", if watch.word(0).is_empty() { "**/*.php" } else { watch.word(0) }));
    "taken: pool: mode, script, workers"
}

#[cfg(test)]
mod tests;
