//! Parts of nginx's servers and locations that become rules in addition to the location's rule: conditions, rewrites,
//! access.

use super::Import;
use super::access::{self, PROTECTING, protects};
use super::condition;
use super::file;
use super::location::{Location, fixed_script, location, root};
use super::map::{self, ENTRY, UNKNOWN};
use super::request_uri;
use crate::commands::import::directive::Directive;
use crate::commands::import::include::names_file;
use crate::commands::import::report::refuses;
use crate::commands::import::site::{Keys, Rule, Site, is_for_all_directories};
use crate::commands::import::table::Scope;

pub(super) const BY_HAND: &str = "write its conditions as a rule by hand";

/// Directives that a location within another one inherits if it has none of that name.
const INHERITED: &[&str] =
    &["root", "add_header", "expires", "error_page", "client_max_body_size", "access_log", "autoindex", "index"];

/// Patterns that match every path.
const MATCH_ALL: &[&str] = &["^", "^.*$", "^.*", ".*", "^/", ".", "^.+$"];

/// `true` for directives that `rewrites` and `protect` handle, and for locations.
pub(super) fn is_handled_before(part: &Directive) -> bool {
    matches!(&*part.name, ENTRY | UNKNOWN | "rewrite" | "if" | "limit_except" | "location" | "set" | "break")
        || protects(part)
}

/// Adds to a block what it inherits from the enclosing one.
pub(super) fn with_inherited(inner: &[Directive], outer: &[Directive]) -> Vec<Directive> {
    inner.iter().chain(inherited(inner, outer)).cloned().collect()
}

/// The directives of the enclosing block that a block inherits: those of which it has none.
pub(super) fn inherited<'a>(inner: &'a [Directive], outer: &'a [Directive]) -> impl Iterator<Item = &'a Directive> {
    // The stand-in for an entry of a map is inherited like the directive in it.
    let kind = |part: &'a Directive| match part.inner() {
        [of_entry] if part.name == ENTRY => kind_of(of_entry),
        _ => kind_of(part),
    };
    let inherits = move |own: &str| INHERITED.contains(&own) || PROTECTING.contains(&own);
    outer.iter().filter(move |part| inherits(kind(part)) && inner.iter().all(|own| kind(own) != kind(part)))
}

/// Adds to a location's block the access control that it inherits from the server.
pub(super) fn with_access(inner: &[Directive], server: &[Directive]) -> Vec<Directive> {
    inner.iter().chain(inherited(inner, server).filter(|part| protects(part))).cloned().collect()
}

/// The name of a directive; `allow` and `deny` are one list.
fn kind_of(directive: &Directive) -> &str {
    if directive.name == "deny" { "allow" } else { &directive.name }
}

/// Parameters of scripts that the server sets itself.
const BUILT_IN: &[&str] = &["HTTPS", "SERVER_NAME", "SCRIPT_NAME", "REDIRECT_STATUS", "HTTP_PROXY", "PATH_INFO"];

/// Collects the paths of locations whose requests go to PHP.
fn paths_to_php(block: &[Directive], parent: Option<&Location>, root: Option<&str>, paths: &mut Vec<String>) {
    for directive in block.iter().filter(|directive| directive.name == "location") {
        let own = location(directive, parent);
        paths_to_php(directive.inner(), Some(&own), root, paths);
        if own.is_named() && own.runs_php {
            let script = fixed_script(directive.inner(), root);
            paths.extend(script.map_or(vec!["/*".to_owned()], |script| vec![script.to_owned(), format!("{script}/*")]));
        } else if own.runs_php {
            paths.extend(own.paths);
        }
    }
}

/// The scripts that locations send to PHP.
pub(super) enum ToPhp {
    /// All that are in no other location.
    All,
    /// Those of these paths; none without any.
    Named(Vec<String>),
}

impl ToPhp {
    pub(super) fn of(server: &[Directive]) -> Self {
        let mut paths = Vec::new();
        paths_to_php(server, None, root(server), &mut paths);
        let is_for_all = |path: &String| path.strip_prefix('~').map_or(path == "/*", is_for_all_directories);
        if paths.iter().any(is_for_all) { Self::All } else { Self::Named(paths) }
    }
}

/// Returns a rule that refuses scripts, for a location without a handler of PHP: nginx would send their source.
pub(super) fn without_scripts(inner: &[Directive], own: &Location, base: &Rule) -> Option<Rule> {
    let ends = |part: &Directive| part.name.ends_with("_pass") || part.name == "return" || is_missing(part);
    let has = |name: &str| inner.iter().any(|part| part.name == name);
    let is_closed = inner.iter().any(|part| part.name == "deny" && part.word(0) == "all") && !has("allow");
    let refuses = own.may_name_scripts() && !inner.iter().any(ends) && (!is_closed || has("satisfy"));
    refuses.then(|| {
        let mut rule = base.conditions();
        rule.refuse_scripts();
        rule
    })
}

/// `true` for an `include` whose file could not be read: others are replaced by their content.
pub(super) fn is_missing(directive: &Directive) -> bool {
    directive.name == "include" && names_file(directive) && !file::is_built_in(directive)
}

/// Converts a `fastcgi_param` with a fixed value for some requests.
fn parameter_of(part: &Directive, rule: &mut Rule) -> &'static str {
    match part.word(0) {
        name if BUILT_IN.contains(&name) || part.word(1).contains('$') => "dropped: it is built in",
        name if name.starts_with("PHP_") => "dropped: settings of PHP are the same for all scripts of a site",
        name => {
            rule.keys.set_in("env", name, part.word(1));
            "taken: env"
        }
    }
}

/// Converts a `fastcgi_param` with a fixed value.
pub(super) fn parameter(part: &Directive, site: &mut Site) -> &'static str {
    let (name, value) = (part.word(0), part.word(1));
    match name {
        _ if value.contains('$') => "dropped: it is built in",
        name if BUILT_IN.contains(&name) => "dropped: it is built in",
        "PHP_FLAG" | "PHP_ADMIN_FLAG" => "dropped: PHP-FPM ignores it",
        "PHP_VALUE" | "PHP_ADMIN_VALUE" => {
            let table = if name == "PHP_VALUE" { "ini" } else { "admin_ini" };
            let text = value.replace("\\n", "\n");
            for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
                site.section("pool").set_in(table, key.trim(), value.trim().trim_end_matches(';'));
            }
            "changed: pool.ini, for all scripts of the site"
        }
        _ => {
            let mut rule = Rule::default();
            rule.keys.set_in("env", name, value);
            site.rules.push(rule);
            "taken: env"
        }
    }
}

impl Import {
    /// Rules for a server's access control. Exact locations and those with `^~` may have their own.
    pub(super) fn protect_server(&mut self, block: &[Directive], site: &mut Site) {
        let mut base = Rule::default();
        for directive in block.iter().filter(|directive| directive.name == "location") {
            let own = location(directive, None);
            if own.is_final && directive.inner().iter().any(protects) {
                base.except.extend(own.paths);
            }
        }
        self.protect(block, &base, site);
    }

    /// A rule for the access control of a block, and one for each `limit_except`.
    pub(super) fn protect(&mut self, block: &[Directive], base: &Rule, site: &mut Site) {
        let lines: Vec<&Directive> = block.iter().filter(|part| protects(part)).collect();
        if !lines.is_empty() {
            self.report_access(&lines);
            site.rules.push(access::rule(&lines, base));
        }
        for limit in block.iter().filter(|part| part.name == "limit_except") {
            let mut base = base.conditions();
            base.unless.set_list("method", &limit.words);
            let lines: Vec<&Directive> = limit.inner().iter().filter(|part| protects(part)).collect();
            self.page.report.say(limit, "taken: a rule for other methods");
            self.report_access(&lines);
            site.rules.push(access::rule(&lines, &base));
        }
    }

    fn report_access(&mut self, lines: &[&Directive]) {
        for line in lines {
            let became = match &*line.name {
                "auth_request" if line.word(0) != "off" => {
                    "changed: all clients are refused: the application must check them"
                }
                "auth_basic" | "auth_basic_user_file" => "taken: auth",
                _ => "taken: allow, deny",
            };
            self.page.report.say(line, became);
        }
    }

    /// Rules for `rewrite` and `if`, in their order.
    pub(super) fn rewrites(&mut self, inner: &[Directive], own: Option<&Location>, base: &Rule, site: &mut Site) {
        for part in inner {
            match (&*part.name, &part.block) {
                ("rewrite", None) => {
                    let rule = self.rewrite(part, own, base);
                    site.rules.extend(rule);
                }
                ("if", Some(block)) => self.condition(part, block, own, base, site),
                (ENTRY, Some(block)) => self.entry(part, block, own, base, site),
                (UNKNOWN, Some(_)) => self.unknown(&part.inner()[0], part.word(0), base, site),
                ("set", None) => {
                    self.page.report.dropped(part, "there are no variables; a fixed text may be set in server")
                }
                ("break", None) => self.page.report.say(part, "taken: built in"),
                _ => {}
            }
        }
    }

    /// A rewrite within the paths of a location and under the conditions of `base`.
    fn rewrite(&mut self, part: &Directive, own: Option<&Location>, base: &Rule) -> Option<Rule> {
        let mut rule = base.conditions();
        let (paths, pattern) = (rule.paths.clone(), part.word(0));
        self.apply(part, Scope::Rule(&mut rule));
        if rule.keys.is_empty() {
            return None;
        }
        let location = own.filter(|own| !own.is_whole());
        let uses_groups = part.word(1).contains("$1") || part.word(1).contains("$2");
        if MATCH_ALL.contains(&pattern) && !uses_groups && !paths.is_empty() {
            rule.paths = paths;
        } else {
            rule.paths = vec![format!("~{}", location.map_or(pattern.to_owned(), |own| own.within(pattern)))];
        }
        Some(rule)
    }

    /// An `if`: a rule with its condition in addition to those of `base`, and one for each rewrite in it.
    pub(super) fn condition(
        &mut self,
        directive: &Directive,
        inner: &[Directive],
        own: Option<&Location>,
        base: &Rule,
        site: &mut Site,
    ) {
        let mut rule = base.conditions();
        let has_path = |rule: &Rule| rule.paths != base.paths;
        // Groups of a condition other than the path are unknown to targets.
        let uses_groups = |part: &Directive| part.name == "return" && part.words.iter().any(|word| word.contains("$1"));
        // A refused request needs no variable.
        let is_variable = |part: &Directive| part.name == "set" && !inner.iter().any(refuses);
        let mut further = Vec::new();
        if inner.iter().any(refuses) && base.paths.is_empty() {
            let words = condition::inside(&directive.words);
            further = request_uri::further(&words.iter().map(String::as_str).collect::<Vec<_>>(), base);
        }
        let mut has_counterpart = condition::add(&directive.words, &mut rule).is_some();
        if !has_counterpart && let Some(other) = further.pop() {
            (rule, has_counterpart) = (other, true);
        }
        let is_known = has_counterpart
            && inner.iter().all(|part| part.block.is_none() && !is_variable(part))
            && (has_path(&rule) || !inner.iter().any(uses_groups));
        if !is_known {
            return self.unknown(directive, BY_HAND, base, site);
        }
        self.page.report.say(directive, "taken: the conditions of a rule");
        self.under(rule, inner, own, base, site);
        let keys = site.rules.last().map_or_else(Keys::default, |rule| rule.keys.clone());
        further.iter_mut().for_each(|rule| rule.keys = keys.clone());
        site.rules.extend(further);
    }

    /// An `if` without a counterpart.
    pub(super) fn unknown(&mut self, directive: &Directive, why: &str, base: &Rule, site: &mut Site) {
        if !self.page.close(directive, why, base, site) {
            self.page.report.dropped_block(directive, why);
        }
    }

    /// An entry of a map: like an `if` with its conditions.
    pub(super) fn entry(
        &mut self,
        directive: &Directive,
        inner: &[Directive],
        own: Option<&Location>,
        base: &Rule,
        site: &mut Site,
    ) {
        match self.maps.rule(directive, base) {
            Some(rule) => self.under(rule, inner, own, base, site),
            None if self.page.close(&map::shown(directive), BY_HAND, base, site) => {}
            None => inner.iter().for_each(|part| self.page.report.dropped_block(part, BY_HAND)),
        }
    }

    /// The directives of an `if` whose conditions `rule` has in addition to those of `base`.
    fn under(&mut self, mut rule: Rule, inner: &[Directive], own: Option<&Location>, base: &Rule, site: &mut Site) {
        let has_path = |rule: &Rule| rule.paths != base.paths;
        let conditions = rule.conditions();
        for part in inner.iter().filter(|part| !protects(part)) {
            match &*part.name {
                "rewrite" if has_path(&rule) && !MATCH_ALL.contains(&part.word(0)) => {
                    self.page.report.dropped(part, BY_HAND);
                }
                "rewrite" => {
                    let rewrite = self.rewrite(part, own, &conditions);
                    site.rules.extend(rewrite);
                }
                "break" => self.page.report.say(part, "taken: built in"),
                "fastcgi_param" => {
                    let became = parameter_of(part, &mut rule);
                    self.page.report.say(part, became);
                }
                _ => self.apply(part, Scope::Rule(&mut rule)),
            }
        }
        site.rules.push(rule);
        let lines: Vec<&Directive> = inner.iter().filter(|part| protects(part)).collect();
        if !lines.is_empty() {
            self.report_access(&lines);
            site.rules.push(access::rule(&lines, &conditions));
        }
    }

    /// `types`: media types by extension.
    pub(super) fn types(&mut self, directive: &Directive, inner: &[Directive], rule: &mut Rule) {
        self.page.report.say(directive, "taken: mime");
        for kind in inner {
            kind.words.iter().for_each(|extension| rule.keys.set_in("mime", extension, &kind.name));
            self.page.report.say(kind, "taken: mime");
        }
    }
}
