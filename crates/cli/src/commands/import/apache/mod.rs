//! Apache's virtual hosts: each becomes a site, and its sections become rules.

mod condition;
mod directory;
mod expression;
mod file;
mod handlers;
mod require;
mod rewrite;
mod rewrite_condition;
mod table;

use super::directive::Directive;
use super::include::names_file;
use super::page::Page;
use super::site::{Rule, Site, escaped};
use super::table::{Scope, apply, drop_reason};
use directory::{Served, with_contents};
use expression::Node;
use rewrite::Outcome;
use std::path::Path;
use table::TABLE;

/// Converts a configuration, with a comment for each line. Files that it includes are read from `directory`.
///
/// # Errors
/// A mistake in the configuration, or a configuration that serves nothing.
pub(super) fn converted(text: &str, directory: Option<&Path>) -> Result<String, String> {
    let all = file::parse(text, directory)?;
    let mut import = Import::default();
    let is_host = |directive: &&Directive| directive.name.eq_ignore_ascii_case("VirtualHost");
    let (hosts, others): (Vec<&Directive>, Vec<&Directive>) = all.iter().partition(is_host);
    // Outside virtual hosts, sections apply to all of them, other lines to the server.
    let (sections, lines): (Vec<&Directive>, Vec<&Directive>) = others.into_iter().partition(|one| one.block.is_some());
    if hosts.is_empty() {
        let serves =
            all.iter().any(|one| ["DocumentRoot", "Alias"].iter().any(|name| one.name.eq_ignore_ascii_case(name)));
        if !serves {
            return Err("there is no <VirtualHost>, no DocumentRoot and no Alias in it".to_owned());
        }
        let lines: Vec<&Directive> = lines.into_iter().filter(|line| !import.listen(line)).collect();
        import.site(&lines, &sections, Site::default());
    } else {
        for line in lines {
            if !import.listen(line) && !import.is_unread(line) {
                let known = drop_reason(TABLE, &line.name);
                import.page.report.dropped(line, known.unwrap_or("it is outside of <VirtualHost>: set it by hand"));
            }
        }
    }
    for host in hosts {
        let inner: Vec<&Directive> = host.inner().iter().collect();
        let (own, lines): (Vec<&Directive>, Vec<&Directive>) = inner.into_iter().partition(|one| one.block.is_some());
        import.page.report.say(host, "taken: a site, selected by host at any address");
        let is_tls = lines.iter().any(|line| line.name.eq_ignore_ascii_case("SSLEngine") && line.word(0) != "off");
        let listen = host.words.iter().map(|addr| address(addr, is_tls)).collect();
        import.site(
            &lines,
            &sections.iter().copied().chain(own).collect::<Vec<_>>(),
            Site { listen, ..Site::default() },
        );
    }
    // Apache's first virtual host serves hosts that no other one names.
    import.page.sites[0].is_default = true;
    Ok(import.page.finish("a configuration of Apache"))
}

/// Converts an address of `<VirtualHost>` or `Listen`.
fn address(addr: &str, is_tls: bool) -> String {
    let (host, port) = addr.rsplit_once(':').unwrap_or((if addr.parse::<u16>().is_ok() { "" } else { addr }, "80"));
    let port = if addr.parse::<u16>().is_ok() { addr } else { port };
    let host = if matches!(host, "*" | "_default_") { "" } else { host };
    format!("{}{host}:{port}", if is_tls { "https://" } else { "" })
}

/// Lines about passwords: `Require` decides whether one is required.
const PASSWORDS: &[&str] = &["AuthType", "AuthName", "AuthUserFile", "AuthBasicProvider"];

/// Lines that take effect together.
const PROTECTING: &[&str] = &["Allow", "Deny", "Order", "Satisfy"];

fn is_one_of(line: &Directive, names: &[&str]) -> bool {
    names.iter().any(|name| line.name.eq_ignore_ascii_case(name))
}

/// `true` for lines that control access.
fn restricts(line: &Directive) -> bool {
    require::is_part(line) || is_one_of(line, PROTECTING) || is_one_of(line, &["Limit", "LimitExcept"])
}

#[derive(Default)]
struct Import {
    page: Page,
}

impl Import {
    /// Handles `Listen`. If only a port is given, the virtual hosts decide on TLS.
    fn listen(&mut self, line: &Directive) -> bool {
        let is_listen = line.name.eq_ignore_ascii_case("Listen");
        if is_listen {
            self.page.report.say(line, "changed: listen, of the ports that sites have");
        }
        is_listen
    }

    /// Reports an `Include` whose file could not be read: others are replaced by their content.
    fn is_unread(&mut self, line: &Directive) -> bool {
        let is_unread = is_one_of(line, &["Include"]) && names_file(line);
        if is_unread {
            self.page.report.unread(line);
        }
        is_unread
    }

    fn apply(&mut self, directive: &Directive, mut scope: Scope<'_>) {
        if self.is_unread(directive) {
            return;
        }
        let became = apply(TABLE, directive, &mut scope);
        self.page.report.say(directive, became);
    }

    fn site(&mut self, lines: &[&Directive], sections: &[&Directive], mut site: Site) {
        // Defaults of Debian's Apache.
        site.keys.write("front_controller", "\"\"");
        site.keys.set_list("index", &["index.html".to_owned(), "index.php".to_owned()]);
        self.lines(lines.iter().copied(), None, &mut site);
        if !site.keys.has("root") && !lines.iter().any(|line| line.name.to_ascii_lowercase().starts_with("re")) {
            site.keys.set("root", "/var/www/html");
        }
        self.sections(sections, "", &Rule::default(), &Served::new(lines, sections), &mut site);
        site.rules.extend(handlers::only_named(lines, sections));
        self.page.sites.push(site);
    }

    /// Handles the lines of a site. Rewrite lines are collected, because a RewriteRule uses the conditions before it.
    fn lines<'a>(&mut self, lines: impl Iterator<Item = &'a Directive>, directory: Option<&str>, site: &mut Site) {
        let mut list = rewrite::List::default();
        for line in lines {
            match line.name.to_ascii_lowercase().as_str() {
                "rewritecond" => list.condition(line),
                "rewriterule" => {
                    let (conditions, outcome) = list.rule(line, directory, site);
                    let became = match outcome {
                        Outcome::Taken(what) => what.to_owned(),
                        Outcome::Dropped(why) => format!("dropped: {why}"),
                        Outcome::Closed(base, why) => {
                            site.rules.push(base.closed(line));
                            self.page.report.closed(line, &why);
                            format!("changed: all clients are refused: {why}")
                        }
                    };
                    conditions.iter().for_each(|condition| self.page.report.say(condition, became.as_str()));
                    self.page.report.say(line, became);
                }
                _ => self.apply(line, Scope::Site(site)),
            }
        }
    }

    /// Handles sections, those with an expression last, as Apache does. `base` has the conditions around them.
    fn sections(&mut self, sections: &[&Directive], within: &str, base: &Rule, served: &Served, site: &mut Site) {
        let (conditions, others): (Vec<&Directive>, Vec<&Directive>) =
            sections.iter().partition(|one| is_one_of(one, &["If", "ElseIf", "Else"]));
        for section in others {
            self.section(section, within, served, site);
        }
        // Holds if no earlier expression does. After one without a counterpart, no later one can be converted.
        let mut before: Result<Option<Node>, String> = Ok(None);
        for section in conditions {
            if is_one_of(section, &["If"]) {
                before = Ok(None);
            }
            let own = match is_one_of(section, &["Else"]) {
                true => Ok(Node::Constant(true)),
                false => expression::parse(&section.words.join(" ")),
            };
            let node = before.clone().and_then(|before| {
                let own = own.clone()?;
                Ok(before.map_or(own.clone(), |before| Node::And(Box::new(before), Box::new(own))))
            });
            self.condition(section, node, base, site);
            before = before.and_then(|before| {
                let fails = Node::Not(Box::new(own?));
                Ok(Some(before.map_or(fails.clone(), |before| Node::And(Box::new(before), Box::new(fails)))))
            });
        }
    }

    /// Handles an `<If>`: its lines become rules with the conditions of the expression in addition to those of `base`.
    fn condition(&mut self, section: &Directive, node: Result<Node, String>, base: &Rule, site: &mut Site) {
        let both = |rule: &Rule| base.and(rule).ok_or_else(|| "two conditions of one kind must hold".to_owned());
        let rules = node
            .and_then(|node| condition::rules(&node))
            .and_then(|rules| rules.iter().map(both).collect::<Result<Vec<_>, _>>());
        let rules = match rules {
            Ok(rules) => rules,
            Err(why) => {
                let why = format!("{why}: write it as rules by hand");
                if !self.page.close(section, &why, base, site) {
                    self.page.report.dropped_block(section, &why);
                }
                return;
            }
        };
        self.page.report.say(section, "taken: the conditions of rules");
        let (sections, lines): (Vec<&Directive>, Vec<&Directive>) =
            section.inner().iter().partition(|one| one.block.is_some() && !require::is_part(one));
        sections.iter().for_each(|inner| self.page.report.dropped_block(inner, "write it as rules by hand"));
        let (protecting, others): (Vec<&Directive>, Vec<&Directive>) =
            lines.into_iter().partition(|one| require::is_part(one) || is_one_of(one, PASSWORDS));
        for base in rules {
            let mut rule = base.clone();
            for line in &others {
                let name = line.name.to_ascii_lowercase();
                if name.starts_with("rewrite") {
                    self.page.report.dropped(line, "write it as a rule by hand");
                } else if !["redirect", "alias", "proxypass"].iter().any(|start| name.starts_with(start)) {
                    self.apply(line, Scope::Rule(&mut rule));
                } else if base.paths.is_empty() {
                    // These directives set the paths of their rules.
                    let mut own = base.clone();
                    self.apply(line, Scope::Rule(&mut own));
                    site.rules.push(own);
                } else {
                    self.page.report.dropped(line, "a rule has one path: write it as a rule by hand");
                }
            }
            site.rules.push(rule);
            self.protect(&protecting, &[], &base, site);
        }
    }

    /// Handles a section, for the whole site or, as a rule, for some paths. `within` is the path of the enclosing
    /// directory.
    fn section(&mut self, section: &Directive, within: &str, served: &Served, site: &mut Site) {
        let name = section.name.to_ascii_lowercase();
        let place = section.word(0);
        let own_paths = match name.as_str() {
            "directory" if !place.contains(['*', '?', '[', '~']) => match served.paths(place) {
                None => return self.page.report.dropped(section, "no path leads to this directory"),
                paths => paths,
            },
            "location" if place != "~" => Some(vec![place.trim_end_matches('/').to_owned()]),
            _ => None,
        };
        let paths = match (&*name, &own_paths) {
            (_, Some(paths)) if paths.iter().all(String::is_empty) => Vec::new(),
            (_, Some(paths)) => with_contents(paths),
            ("location", _) => vec![format!("~{}", section.word(1))],
            ("locationmatch", _) => vec![format!("~{place}")],
            ("filesmatch", _) => vec![files(place, within)],
            ("files", _) if place == "~" => vec![files(section.word(1), within)],
            ("files", _) => vec![format!("{within}*/{place}")],
            ("proxy", _) => return self.page.report.dropped(section, "it is built in"),
            ("ifmodule" | "ifdefine" | "ifversion" | "iffile", _) if !place.starts_with(['~', '/']) => {
                let why = "dropped: this condition does not hold: Apache 2.4 with all modules";
                return self.page.report.say_all(section, why);
            }
            _ => return self.page.report.dropped_block(section, "write it as rules by hand"),
        };
        self.page.report.say(section, if paths.is_empty() { "taken: the site" } else { "taken: a rule" });
        let (protecting, others): (Vec<&Directive>, Vec<&Directive>) =
            section.inner().iter().partition(|one| require::is_part(one) || is_one_of(one, PASSWORDS));
        let (sections, own): (Vec<&Directive>, Vec<&Directive>) = others.iter().partition(|one| one.block.is_some());
        let is_whole = paths.is_empty();
        let base = Rule::for_paths(paths);
        let mut rule = base.clone();
        // Lines that protect the whole site become one rule, so that they take effect together.
        let in_rule = |line: &&&Directive| match is_whole {
            true => is_one_of(line, PROTECTING),
            false => !line.name.to_ascii_lowercase().starts_with("rewrite"),
        };
        let (old, other): (Vec<&Directive>, Vec<&Directive>) =
            own.iter().copied().filter(|line| in_rule(&line)).partition(|line| is_one_of(line, PROTECTING));
        other.iter().for_each(|line| self.apply(line, Scope::Rule(&mut rule)));
        site.rules.push(rule);
        let (limits, sections): (Vec<&Directive>, Vec<&Directive>) =
            sections.into_iter().partition(|one| is_one_of(one, &["Limit", "LimitExcept"]));
        match if name == "directory" { served.decided(place) } else { Some(base.clone()) } {
            Some(mut access) => {
                self.protect(&protecting, &[], &access, site);
                limits.iter().for_each(|limit| self.limit(limit, &protecting, &access, site));
                old.iter().for_each(|line| self.apply(line, Scope::Rule(&mut access)));
                site.rules.push(access);
            }
            None => {
                let lines = protecting.iter().chain(&limits).chain(&old);
                lines.for_each(|line| self.page.report.say_all(line, "taken: no rule: inner directories override it"));
            }
        }
        let first = own_paths.as_ref().map(|paths| paths.first().map_or("", String::as_str));
        self.lines(own.iter().filter(|line| !in_rule(line)).copied(), first.filter(|_| name == "directory"), site);
        let all = own_paths.clone().filter(|paths| !paths.is_empty());
        for path in all.unwrap_or_else(|| vec![first.unwrap_or(within).to_owned()]) {
            self.sections(&sections, &path, &base, served, site);
        }
    }
}

impl Import {
    /// Rules for the `Require` lines of a section. `outer` has the lines of the section around a `<Limit>`.
    fn protect(&mut self, lines: &[&Directive], outer: &[&Directive], base: &Rule, site: &mut Site) {
        let (requires, passwords): (Vec<&Directive>, Vec<&Directive>) =
            lines.iter().partition(|line| require::is_part(line));
        let mut auth = Rule::default();
        for line in outer.iter().filter(|line| is_one_of(line, PASSWORDS)).chain(&passwords) {
            self.apply(line, Scope::Rule(&mut auth));
        }
        site.rules.extend(require::rules(&requires, base, &auth.keys));
        for line in requires {
            self.required(line);
        }
    }

    fn required(&mut self, line: &Directive) {
        if line.block.is_none() && require::is_unknown(line) {
            self.page.report.say(line, "changed: no client meets it: write this condition by hand");
        } else {
            self.page.report.say(line, "taken: allow, deny, auth");
        }
        line.inner().iter().for_each(|inner| self.required(inner));
    }

    /// `<Limit>` and `<LimitExcept>`: rules for some methods.
    fn limit(&mut self, limit: &Directive, outer: &[&Directive], base: &Rule, site: &mut Site) {
        // In Apache, they count as one of the section's lines, of which a single one must hold.
        let is_stricter = outer.iter().any(|line| require::is_part(line));
        let became = if is_stricter {
            "changed: the methods of a rule, regardless of the section's other lines"
        } else {
            "taken: the methods of a rule"
        };
        self.page.report.say(limit, became);
        let mut base = base.clone();
        let methods = if limit.name.eq_ignore_ascii_case("Limit") { &mut base.when } else { &mut base.unless };
        methods.set_list("method", &limit.words);
        let inner: Vec<&Directive> = limit.inner().iter().collect();
        let (lines, others): (Vec<&Directive>, Vec<&Directive>) =
            inner.into_iter().partition(|one| require::is_part(one) || is_one_of(one, PASSWORDS));
        self.protect(&lines, outer, &base, site);
        let mut rule = base;
        for line in others {
            match line.block {
                Some(_) => self.page.report.dropped(line, "write it as rules by hand"),
                None => self.apply(line, Scope::Rule(&mut rule)),
            }
        }
        site.rules.push(rule);
    }
}

/// Converts a `<FilesMatch>` pattern, which matches the last segment of a path, to a pattern for whole paths within
/// this one.
fn files(pattern: &str, within: &str) -> String {
    let within = if within.is_empty() { String::new() } else { format!("^{}(?:/.*)?", escaped(within)) };
    let pattern = match pattern.strip_prefix('^') {
        Some(rest) => format!("{within}/{rest}"),
        None => format!("{within}/[^/]*{pattern}"),
    };
    if pattern.ends_with('$') { format!("~{pattern}") } else { format!("~{pattern}[^/]*$") }
}

#[cfg(test)]
mod tests;
