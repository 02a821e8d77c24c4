//! RewriteRule and its RewriteCond lines: become a front controller or a rule.

use super::condition;
use super::expression::Node;
use super::rewrite_condition::{self, flags};
use crate::commands::import::directive::Directive;
use crate::commands::import::site::{Rule, Site, escaped};
use howdah_htaccess::expression::Word;

/// Patterns that match every path.
const MATCH_ALL: &[&str] = &["^", ".", "^(.*)$", "^.*$", "(.*)", ".*", "^(.+)$", ".+", "^.", "^(.*)", "^.+$"];

/// The rewrite lines of a section up to the next rule.
#[derive(Default)]
pub(super) struct List {
    /// Conditions of the next rule.
    conditions: Vec<Directive>,
    /// Requests that a rule without a target has taken out of the list, each an expression.
    exempt: Vec<Node>,
    /// Reason why later rules cannot be converted: an earlier one ends or skips the list on unknown conditions.
    unknown: Option<String>,
}

/// Result of converting a rule.
pub(super) enum Outcome {
    Taken(&'static str),
    Dropped(String),
    /// The rule refuses requests on conditions without a counterpart: under these conditions all are refused.
    Closed(Rule, String),
}

impl List {
    pub(super) fn condition(&mut self, condition: &Directive) {
        self.conditions.push(condition.clone());
    }

    /// Writes a rule to the site. `directory` is the path of the enclosing directory, which patterns are relative to.
    /// Returns the rule's conditions, too.
    pub(super) fn rule(
        &mut self,
        rule: &Directive,
        directory: Option<&str>,
        site: &mut Site,
    ) -> (Vec<Directive>, Outcome) {
        let conditions = std::mem::take(&mut self.conditions);
        let flags = flags(rule.word(2));
        let outcome = match self.converted(rule, &conditions, &flags, directory, site) {
            Ok(what) => Outcome::Taken(what),
            Err(why) if refuses(&flags) => {
                let path = path(rule.word(0), is_any_case(&flags), directory).ok();
                Outcome::Closed(Rule::for_paths(path.into_iter().collect()), why)
            }
            Err(why) => Outcome::Dropped(why),
        };
        (conditions, outcome)
    }

    fn converted(
        &mut self,
        rule: &Directive,
        conditions: &[Directive],
        flags: &[String],
        directory: Option<&str>,
        site: &mut Site,
    ) -> Result<&'static str, String> {
        let has = |name: &str| flags.iter().any(|flag| flag == name);
        let (pattern, target) = (rule.word(0), rule.word(1));
        if flags.iter().any(|flag| flag.starts_with("E=HTTP_AUTHORIZATION")) {
            return Ok("taken: built in: scripts see HTTP_AUTHORIZATION");
        }
        if has("C") || flags.iter().any(|flag| flag.starts_with("S=")) {
            let why = "a rule that chains or skips others: write them by hand";
            self.unknown = Some("a rule before it chains or skips others".to_owned());
            return Err(why.to_owned());
        }
        let own = rewrite_condition::expression(conditions);
        if target == "-" && !refuses(flags) {
            if !has("L") && !has("END") {
                return Ok("taken: nothing, as it changes no request");
            }
            return self.exempted(pattern, is_any_case(flags), own, directory);
        }
        if let Some(why) = self.unknown.as_ref().filter(|_| !refuses(flags)) {
            return Err(why.clone());
        }
        let exempt = self.exempt.iter().map(|node| Node::Not(Box::new(node.clone())));
        let node = exempt.chain([own?]).reduce(|before, own| Node::And(Box::new(before), Box::new(own)));
        let rules = condition::rules(&node.unwrap_or(Node::Constant(true)))?;
        let script = target.trim_start_matches("%{DOCUMENT_ROOT}").trim_start_matches('/');
        let redirects = flags.iter().any(|flag| *flag == "R" || flag.starts_with("R=")) || target.contains("://");
        let is_whole = MATCH_ALL.contains(&pattern) && directory.is_none_or(str::is_empty);
        let is_script = script.ends_with(".php") && !script.contains(['?', '$']) && !redirects && !refuses(flags);
        let only_missing =
            !conditions.is_empty() && conditions.iter().all(|condition| condition.word(1).starts_with("!-"));
        let [one] = rules.as_slice() else { return self.written(rule, rules, flags, directory, site) };
        if is_whole && is_script && (only_missing || one.is_for_missing()) {
            site.keys.set("front_controller", script);
            return Ok("taken: front_controller");
        }
        self.written(rule, rules, flags, directory, site)
    }

    /// A rule for each alternative of the conditions.
    fn written(
        &self,
        rule: &Directive,
        rules: Vec<Rule>,
        flags: &[String],
        directory: Option<&str>,
        site: &mut Site,
    ) -> Result<&'static str, String> {
        let (pattern, target) = (rule.word(0), replaced(rule.word(1), directory)?);
        let has = |name: &str| flags.iter().any(|flag| flag == name);
        let status = flags.iter().find_map(|flag| flag.strip_prefix("R="));
        let path = path(pattern, is_any_case(flags), directory)?;
        let mut all = Vec::new();
        for mut made in rules {
            if made.paths.is_empty() {
                made.paths = vec![path.clone()];
            } else if !MATCH_ALL.contains(&pattern)
                || directory.is_some_and(|path| !path.is_empty())
                || target.contains('$')
            {
                return Err("a rule has one path: write it as a rule by hand".to_owned());
            }
            if has("F") || status == Some("403") {
                made.deny();
            } else if has("G") {
                made.keys.write("status", "410");
            } else if let Some(status) = status.filter(|status| is_error(status)) {
                made.keys.write("status", status);
            } else if has("R") || status.is_some() || target.contains("://") {
                made.keys.set("redirect", &target);
                made.keys.write(
                    "status",
                    match status.unwrap_or("302") {
                        "permanent" => "301",
                        "temp" => "302",
                        "seeother" => "303",
                        number => number,
                    },
                );
            } else {
                made.keys.set("rewrite", &target);
            }
            if has("END") {
                made.keys.write("last", "true");
            }
            all.push(made);
        }
        site.rules.extend(all);
        Ok("taken: a rule")
    }

    /// A rule without a target, which ends the list for some requests: the rules after it exclude them.
    fn exempted(
        &mut self,
        pattern: &str,
        any_case: bool,
        own: Result<Node, String>,
        directory: Option<&str>,
    ) -> Result<&'static str, String> {
        let node = own.and_then(|own| {
            let exempts_all = MATCH_ALL.contains(&pattern);
            let node = if exempts_all {
                own
            } else {
                let path = path(pattern, any_case, directory)?;
                let regex = path.trim_start_matches('~').to_owned();
                let path = Node::Matches(Word::Variable("REQUEST_URI".to_owned()), regex);
                Node::And(Box::new(path), Box::new(own))
            };
            // Fails if no rule can exclude it.
            condition::rules(&Node::Not(Box::new(node.clone()))).map(|_| node)
        });
        match node {
            Ok(node) => {
                self.exempt.push(node);
                Ok("taken: exceptions of the rules after it")
            }
            Err(why) => {
                self.unknown = Some(format!("a rule before it ends the list for some requests: {why}"));
                Err(why)
            }
        }
    }
}

/// `true` for flags that refuse requests.
fn refuses(flags: &[String]) -> bool {
    flags.iter().any(|flag| flag == "F" || flag == "G" || flag.strip_prefix("R=").is_some_and(is_error))
}

fn is_error(status: &str) -> bool {
    status.len() == 3 && status.starts_with('4') && status.parse::<u16>().is_ok()
}

fn is_any_case(flags: &[String]) -> bool {
    flags.iter().any(|flag| flag == "NC")
}

/// Converts a pattern to a condition on the whole path.
fn path(pattern: &str, no_case: bool, directory: Option<&str>) -> Result<String, &'static str> {
    if pattern.starts_with('!') {
        return Err("its pattern is negated: write it as `not`");
    }
    let case = if no_case { "(?i)" } else { "" };
    let Some(directory) = directory else { return Ok(format!("~{case}{pattern}")) };
    let start = escaped(directory.trim_end_matches('/'));
    Ok(match pattern.strip_prefix('^') {
        Some(rest) => format!("~{case}^{start}/{}", rest.trim_start_matches("/?")),
        None if pattern.starts_with("(.*)") || pattern.starts_with("(.+)") => format!("~{case}^{start}/{pattern}"),
        None => format!("~{case}^{start}/.*{pattern}"),
    })
}

/// Replaces Apache's variables in a target with this server's.
fn replaced(target: &str, directory: Option<&str>) -> Result<String, &'static str> {
    let pairs = [
        ("%{DOCUMENT_ROOT}", ""),
        ("%{HTTP_HOST}", "$host"),
        ("%{SERVER_NAME}", "$host"),
        ("%{REQUEST_URI}", "$path"),
        ("?%{QUERY_STRING}", ""),
        ("%{QUERY_STRING}", "$query"),
        ("%{REQUEST_SCHEME}", "$scheme"),
    ];
    let made = pairs.iter().fold(target.to_owned(), |text, (theirs, own)| text.replace(theirs, own));
    if made.contains('%') {
        return Err("a part of a condition in its target has no counterpart");
    }
    let is_relative = made != "-" && !made.starts_with('/') && !made.starts_with('$') && !made.contains("://");
    Ok(if is_relative { format!("{}/{made}", directory.unwrap_or_default().trim_end_matches('/')) } else { made })
}
