//! nginx's virtual hosts: each `server` with files or scripts becomes a site, and its locations become rules.
//!
//! In nginx, a single location serves a request: an exact one, else the longest prefix with `^~`, else the first
//! regular expression, else the longest prefix. Here every matching rule applies, so each rule excludes the paths of
//! other locations.

mod access;
mod condition;
mod constant;
mod entry;
mod file;
mod location;
mod map;
mod part;
mod request_uri;
mod table;

use super::directive::Directive;
use super::page::Page;
use super::site::{Rule, Site};
use super::table::{Scope, apply, drop_reason};
use access::protects;
use location::{Location, excepted, fixed_script, location, resolved, root};
use map::{ENTRY, Maps, UNKNOWN};
use part::{ToPhp, is_missing};
use std::path::Path;
use std::slice;
use table::{GLOBALS, TABLE, variables};

/// Converts a configuration, with a comment for each line. Files that it includes are read from `directory`.
///
/// # Errors
/// A mistake in the configuration, or no server that serves anything.
pub(super) fn converted(text: &str, directory: Option<&Path>) -> Result<String, String> {
    let all = file::parse(text, directory)?;
    let mut import = Import { maps: Maps::read(&all), page: Page::default() };
    import.blocks(&all);
    import.maps.report(&mut import.page.report);
    if import.page.sites.is_empty() {
        return Err("there is no server { } with a root or a location in it".to_owned());
    }
    Ok(import.page.finish("a configuration of nginx"))
}

struct Import {
    maps: Maps,
    page: Page,
}

/// The server that a location belongs to.
struct Place<'a> {
    server: &'a [Directive],
    locations: &'a [Location],
    to_php: ToPhp,
}

impl Place<'_> {
    /// `true` for locations whose scripts no other location sends to PHP, where the site's own rule admits them.
    fn sends_files(&self, own: &Location) -> bool {
        let whole_runs = || self.locations.iter().any(|other| other.is_whole() && other.runs_php);
        matches!(self.to_php, ToPhp::All) && !own.is_whole() && (own.is_regex || own.is_final || whole_runs())
    }
}

impl Import {
    /// Handles the top level and `http`.
    fn blocks(&mut self, directives: &[Directive]) {
        // Access logs are not inherited.
        let outer: Vec<Directive> =
            directives.iter().filter(|one| one.block.is_none() && one.name != "access_log").cloned().collect();
        let servers = || directives.iter().filter(|one| one.name == "server" && one.block.is_some());
        let is_inherited =
            |one: &Directive| servers().any(|server| part::inherited(server.inner(), slice::from_ref(one)).count() > 0);
        for directive in directives {
            match (&*directive.name, &directive.block) {
                ("server", Some(block)) => {
                    let block = constant::replaced(&part::with_inherited(block, &outer));
                    let root = self.maps.default_root(&block);
                    let mut expanded = self.maps.expanded(&block, &mut self.page.report);
                    expanded.splice(0..0, root);
                    self.server(directive, &expanded);
                }
                // Reported at the end.
                ("map", Some(_)) => {}
                ("http", Some(block)) => self.blocks(block),
                _ if is_missing(directive) => self.page.report.unread(directive),
                // Reported by the servers.
                (name, None) if name != "access_log" && is_inherited(directive) => {}
                _ => {
                    let why = drop_reason(GLOBALS, &directive.name).or_else(|| drop_reason(TABLE, &directive.name));
                    self.page.report.dropped(directive, why.unwrap_or("it is outside of server { }: set it by hand"));
                }
            }
        }
    }

    fn apply(&mut self, directive: &Directive, mut scope: Scope<'_>) {
        if is_missing(directive) {
            return self.page.report.unread(directive);
        }
        let became = apply(TABLE, directive, &mut scope);
        self.page.report.say(directive, became);
    }

    fn server(&mut self, server: &Directive, block: &[Directive]) {
        let mut site = Site::default();
        let locations = || block.iter().filter(|directive| directive.name == "location");
        let serves = block.iter().any(|directive| directive.name == "root") || locations().next().is_some();
        if !serves && !block.iter().any(|directive| directive.name == "return") {
            return self.page.report.dropped(server, "it has neither a root nor a location");
        }
        let all = location::all(block, None);
        let place = Place { server: block, locations: &all, to_php: ToPhp::of(block) };
        self.protect_server(block, &mut site);
        let mut types = Rule::default();
        for directive in block.iter().filter(|directive| !protects(directive)) {
            match (&*directive.name, &directive.block) {
                ("try_files", None) => self.front_controller(directive, &[], &mut site),
                ("set", None) if !directive.word(1).contains('$') => {
                    self.page.report.say(directive, "taken: wherever it is used");
                }
                (_, None) => self.apply(directive, Scope::Site(&mut site)),
                ("location", Some(inner)) if inner.iter().any(protects) && location(directive, None).is_final => {
                    // The server's own rule excepts these.
                    let inner = part::with_access(inner, block);
                    self.location(directive, &inner, None, &place, &mut site);
                }
                ("location", Some(inner)) => self.location(directive, inner, None, &place, &mut site),
                ("if", Some(inner)) => self.condition(directive, inner, None, &Rule::default(), &mut site),
                (ENTRY, Some(inner)) => self.entry(directive, inner, None, &Rule::default(), &mut site),
                (UNKNOWN, Some(inner)) => self.unknown(&inner[0], directive.word(0), &Rule::default(), &mut site),
                ("types", Some(inner)) => self.types(directive, inner, &mut types),
                (_, Some(_)) => self.page.report.dropped(directive, part::BY_HAND),
            }
        }
        site.rules.push(types);
        only_named_scripts(block, &place, &mut site);
        self.page.sites.push(site);
    }

    /// Handles the site's `try_files`: its last word is the front controller.
    fn front_controller(&mut self, directive: &Directive, server: &[Directive], site: &mut Site) {
        let last = directive.words.last().map_or("", String::as_str);
        let last = resolved(last, server);
        let script = last.split(['?', '$']).next().unwrap_or_default().trim_start_matches('/');
        if !last.starts_with('=') && !script.ends_with(".php") {
            let why = "its last part names no script: set front_controller by hand";
            return self.page.report.dropped(directive, why);
        }
        site.keys.set("front_controller", if last.starts_with('=') { "" } else { script });
        if !directive.words.iter().any(|word| word == "$uri/") {
            // Without `$uri/`, nginx does not look for index files in directories.
            site.keys.set_list("index", &[]);
        }
        self.page.report.say(directive, "taken: front_controller");
    }

    fn location(
        &mut self,
        directive: &Directive,
        inner: &[Directive],
        parent: Option<&Location>,
        place: &Place<'_>,
        site: &mut Site,
    ) {
        let own = location(directive, parent);
        if own.is_named() {
            return self.page.report.say(directive, "taken: wherever it is used");
        }
        let has = |names: &[&str]| inner.iter().any(|part| names.contains(&&*part.name));
        let mut base = Rule::for_paths(own.paths.clone());
        base.except = excepted(&own, place.locations);
        let runs_php = own.runs_php;
        if has(&["internal"]) && !runs_php {
            let became = "changed: clients get 404; for files that scripts hand over set static.x_accel_redirect";
            self.page.report.say(directive, became);
            base.keys.write("status", "404");
            return site.rules.push(base);
        }
        if own.is_whole() {
            base.paths.clear();
        }
        self.page.report.say(
            directive,
            if runs_php {
                "taken: these scripts run in the pool of the site"
            } else {
                "taken: a rule, or the site itself"
            },
        );
        // `return` ends a request before its access is checked.
        self.rewrites(inner, Some(&own), &base, site);
        if has(&["return"]) {
            let lines = inner.iter().filter(|part| protects(part));
            lines.for_each(|line| self.page.report.dropped(line, "`return` ends the request before"));
        } else {
            self.protect(inner, &base, site);
        }
        if runs_php {
            self.scripts(inner, &base, place, site);
        } else {
            let scripts = part::without_scripts(inner, &own, &base).filter(|_| place.sends_files(&own));
            self.files(inner, &own, base, place, site);
            site.rules.extend(scripts);
        }
        for nested in inner.iter().filter(|part| part.name == "location") {
            let block = part::with_inherited(nested.inner(), inner);
            self.location(nested, &block, Some(&own), place, site);
        }
    }

    /// Handles a location whose requests are for files or other servers.
    fn files(&mut self, inner: &[Directive], own: &Location, base: Rule, place: &Place<'_>, site: &mut Site) {
        let has = |names: &[&str]| inner.iter().any(|part| names.contains(&&*part.name));
        let is_whole = own.is_whole();
        let mut rule = base;
        for part in inner.iter().filter(|part| !part::is_handled_before(part)) {
            match (&*part.name, &part.block) {
                ("try_files", None) if is_whole => self.front_controller(part, place.server, site),
                ("try_files", None) => {
                    let words: Vec<_> = part.words.iter().map(|word| variables(resolved(word, place.server))).collect();
                    rule.keys.set_list("try_files", &words);
                    self.page.report.say(part, "taken: try_files");
                }
                ("types", Some(types)) => self.types(part, types, &mut rule),
                (_, Some(_)) => self.page.report.dropped(part, part::BY_HAND),
                (_, None) => self.apply(part, Scope::Rule(&mut rule)),
            }
        }
        if let [path] = &*rule.paths
            && rule.keys.has("alias")
            && let Some(path) = path.strip_suffix('*').filter(|path| !path.starts_with('~') && !path.ends_with('/'))
        {
            rule.paths = vec![path.to_owned(), format!("{path}/*")];
        }
        if !is_whole && !has(&["try_files", "return", "rewrite", "proxy_pass", "deny", "error_page"]) {
            rule.keys.write("front_controller", "\"\"   # files only");
        }
        site.rules.push(rule);
    }

    /// Handles a location whose requests go to PHP.
    fn scripts(&mut self, inner: &[Directive], base: &Rule, place: &Place<'_>, site: &mut Site) {
        if let Some(script) = fixed_script(inner, root(inner).or_else(|| root(place.server))) {
            let mut rule = base.conditions();
            rule.keys.set("rewrite", script);
            site.rules.push(rule);
        }
        for part in inner.iter().filter(|part| !part::is_handled_before(part)) {
            let mut rule = base.conditions();
            match &*part.name {
                "fastcgi_param"
                    if part.word(0) == "SCRIPT_FILENAME" && fixed_script(slice::from_ref(part), None).is_some() =>
                {
                    self.page.report.say(part, "taken: rewrite");
                }
                "fastcgi_param" => {
                    let became = part::parameter(part, site);
                    self.page.report.say(part, became);
                }
                "try_files" if part.words.last().is_some_and(|last| last == "=404") => {
                    // Paths that are rewritten need no script.
                    let rewritten = inner.iter().filter(|part| part.name == "rewrite");
                    rule.except.extend(rewritten.map(|rewrite| format!("~{}", rewrite.word(0))));
                    rule.when.set("exists", "no");
                    rule.keys.write("status", "404");
                    self.page.report.say(part, "taken: a rule for scripts that do not exist");
                }
                "root" | "add_header" | "client_max_body_size" | "access_log" | "return" | "error_page" => {
                    self.apply(part, Scope::Rule(&mut rule));
                }
                "internal" => self.page.report.dropped(part, "clients may name the front controller, too"),
                _ if is_missing(part) => self.page.report.unread(part),
                _ => self.page.report.dropped(part, "it is built in"),
            }
            site.rules.push(rule);
        }
    }
}

/// Refuses scripts that no location sends to PHP, if none sends all of them.
fn only_named_scripts(block: &[Directive], place: &Place<'_>, site: &mut Site) {
    let ToPhp::Named(scripts) = &place.to_php else { return };
    if scripts.is_empty() && block.iter().any(has_missing) {
        return;
    }
    let mut rule = Rule::no_scripts_but(scripts.clone());
    // The path may continue after the front controller.
    let front = site.keys.text("front_controller").filter(|script| !script.is_empty() && !scripts.is_empty());
    rule.except.extend(front.map(|script| format!("/{script}/*")));
    site.rules.push(rule);
}

/// `true` if it includes a file that could not be read.
fn has_missing(directive: &Directive) -> bool {
    is_missing(directive) || directive.inner().iter().any(has_missing)
}

#[cfg(test)]
mod tests;
