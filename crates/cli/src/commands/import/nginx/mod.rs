//! nginx's virtual hosts: each `server` with files or scripts becomes a site, and its locations become rules.
//!
//! In nginx, a single location serves a request: an exact one, else the longest prefix with `^~`, else the first
//! regular expression, else the longest prefix. Here every matching rule applies, so each rule excludes the paths of
//! other locations.

mod file;
mod location;
mod table;

use super::directive::Directive;
use super::page::Page;
use super::site::{Rule, Site};
use super::table::{Scope, apply};
use location::{Location, excepted, location, resolved};
use table::{TABLE, variables};

const CONDITIONS: &str = "write its conditions as a rule by hand";

/// Converts a configuration, with a comment for each line.
///
/// # Errors
/// A mistake in the configuration, or no server that serves anything.
pub(super) fn converted(text: &str) -> Result<String, String> {
    let mut import = Import::default();
    import.blocks(&file::parse(text)?);
    if import.page.sites.is_empty() {
        return Err("there is no server { } with a root or a location in it".to_owned());
    }
    Ok(import.page.finish("a configuration of nginx"))
}

#[derive(Default)]
struct Import {
    page: Page,
}

impl Import {
    /// Handles the top level, `http`, and included files.
    fn blocks(&mut self, directives: &[Directive]) {
        for directive in directives {
            match (&*directive.name, &directive.block) {
                ("server", Some(block)) => self.server(directive, block),
                ("http", Some(block)) => self.blocks(block),
                _ => self.page.report.dropped(directive, "it is outside of server { }: see the guide of settings"),
            }
        }
    }

    fn apply(&mut self, directive: &Directive, mut scope: Scope<'_>) {
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
        let chosen: Vec<Location> = locations().map(location).collect();
        for directive in block {
            match (&*directive.name, &directive.block) {
                ("try_files", None) => self.front_controller(directive, &[], &mut site),
                (_, None) => self.apply(directive, Scope::Site(&mut site)),
                ("location", Some(inner)) => self.location(directive, inner, block, &chosen, &mut site),
                (_, Some(_)) => self.page.report.dropped(directive, CONDITIONS),
            }
        }
        // Only scripts that some location sends to PHP by name may run.
        let to_php = |directive: &&Directive| directive.inner().iter().any(|part| part.name == "fastcgi_pass");
        let scripts: Vec<String> = locations().filter(to_php).flat_map(|directive| location(directive).paths).collect();
        if !scripts.is_empty() && scripts.iter().all(|path| path.starts_with("~^/") || path.starts_with('/')) {
            let mut rule = Rule::for_paths(vec!["~\\.php(/|$)".to_owned()]);
            rule.except = scripts;
            rule.when.set("exists", "file");
            rule.keys.write("php", "false");
            site.rules.push(rule);
        }
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
        server: &[Directive],
        chosen: &[Location],
        site: &mut Site,
    ) {
        let own = location(directive);
        if own.is_named() {
            return self.page.report.say(directive, "taken: where it is named");
        }
        let is_whole = own.is_whole();
        let has = |names: &[&str]| inner.iter().any(|part| names.contains(&&*part.name));
        if has(&["fastcgi_pass"]) {
            return self.scripts(directive, inner, &own, site);
        }
        let except = excepted(&own, chosen);
        let mut rule = Rule { paths: own.paths, except, ..Rule::default() };
        if has(&["internal"]) {
            let became = "changed: clients get 404; for files that scripts hand over set static.x_accel_redirect";
            self.page.report.say(directive, became);
            rule.keys.write("status", "404");
            return site.rules.push(rule);
        }
        self.page.report.say(directive, "taken: a rule, or the site itself");
        if is_whole {
            rule.paths.clear();
        }
        for part in inner {
            match (&*part.name, &part.block) {
                ("try_files", None) if is_whole => self.front_controller(part, server, site),
                ("try_files", None) => {
                    let words: Vec<_> = part.words.iter().map(|word| variables(resolved(word, server))).collect();
                    rule.keys.set_list("try_files", &words);
                    self.page.report.say(part, "taken: try_files");
                }
                // A rewrite has its own pattern, so it becomes a separate rule.
                ("rewrite", None) => self.apply(part, Scope::Site(site)),
                ("location", Some(nested)) => self.location(part, nested, server, &[], site),
                (_, Some(_)) => self.page.report.dropped(part, CONDITIONS),
                (_, None) => self.apply(part, Scope::Rule(&mut rule)),
            }
        }
        if !is_whole && !has(&["try_files", "return", "rewrite", "proxy_pass", "deny", "error_page"]) {
            rule.keys.write("front_controller", "\"\"   # files alone");
        }
        site.rules.push(rule);
    }

    /// Handles a location whose requests go to PHP.
    fn scripts(&mut self, directive: &Directive, inner: &[Directive], own: &Location, site: &mut Site) {
        self.page.report.say(directive, "taken: these scripts run in the pool of the site");
        for part in inner {
            let is_constant = part.name == "fastcgi_param" && !part.word(1).contains('$');
            let of_server = matches!(part.word(0), "HTTPS" | "SERVER_NAME" | "REDIRECT_STATUS");
            let mut rule = Rule::default();
            if is_constant && !of_server {
                rule.keys.set_in("env", part.word(0), part.word(1));
                self.page.report.say(part, "taken: env");
            } else if part.name == "try_files" && part.words.last().is_some_and(|last| last == "=404") {
                rule.paths.clone_from(&own.paths);
                rule.when.set("exists", "no");
                rule.keys.write("status", "404");
                self.page.report.say(part, "taken: a rule for scripts that do not exist");
            } else {
                self.page.report.dropped(part, "it is built in");
            }
            site.rules.push(rule);
        }
    }
}

#[cfg(test)]
mod tests;
