//! `handle_errors` of a Caddyfile: becomes error pages.

use crate::commands::import::directive::Directive;
use crate::commands::import::report::Report;
use crate::commands::import::site::{Rule, Site};

/// Placeholders for the status.
const STATUS: [&str; 2] = ["{err.status_code}", "{http.error.status_code}"];

/// Statuses that the server responds with itself: for pages that are named after them.
const STATUSES: &[&str] = &["400", "401", "403", "404", "405", "410", "413", "429", "500", "502", "503", "504"];

/// Converts the rewrites of a `handle_errors` to error pages.
pub(super) fn pages(directive: &Directive, named: &[Directive], rule: Rule, site: &mut Site, report: &mut Report) {
    let statuses = match directive.words.as_slice() {
        [] => vec!["4xx".to_owned(), "5xx".to_owned()],
        words => words.to_vec(),
    };
    let mut errors = Errors { rule, named, report };
    errors.report.say(directive, "taken: error_pages");
    errors.block(directive.inner(), &statuses);
    site.rules.push(errors.rule);
}

struct Errors<'a> {
    rule: Rule,
    named: &'a [Directive],
    report: &'a mut Report,
}

impl Errors<'_> {
    fn block(&mut self, inner: &[Directive], statuses: &[String]) {
        for part in inner.iter().filter(|part| !part.name.starts_with('@')) {
            let (matcher, word) = match part.words.as_slice() {
                [first, rest @ ..] if first == "*" || first.starts_with('@') => (first.as_str(), rest.first()),
                words => ("*", words.first()),
            };
            let Some(statuses) = self.statuses(matcher, statuses) else {
                self.report.dropped(part, "write error_pages by hand: its matcher is not a comparison with the status");
                continue;
            };
            match (&*part.name, word) {
                ("handle" | "route", _) => {
                    self.report.say(part, "taken: error_pages");
                    self.block(part.inner(), &statuses);
                }
                ("rewrite", Some(target)) if self.page(target, &statuses) => {
                    self.report.say(part, "taken: error_pages");
                }
                ("file_server" | "php_server" | "php_fastcgi" | "templates" | "root", _) => {
                    self.report.say(part, "taken: error pages are files or scripts of the site");
                }
                ("respond", Some(text)) if STATUS.iter().any(|status| text.starts_with(status)) => {
                    self.report.say(part, "taken: built in: the status and its name");
                }
                _ => self.report.dropped(part, "an error page is a path: write error_pages by hand"),
            }
        }
    }

    /// The statuses among these that a matcher admits; `None` if it compares something else.
    fn statuses(&self, matcher: &str, statuses: &[String]) -> Option<Vec<String>> {
        if matcher == "*" {
            return Some(statuses.to_vec());
        }
        let definition = self.named.iter().find(|one| one.name == matcher)?;
        let words: Vec<&str> = definition.words.iter().flat_map(|word| word.split_whitespace()).collect();
        let words = words.strip_prefix(&["expression"]).unwrap_or(&words);
        let (variable, rest) = words.split_first()?;
        let rest = rest.join(" ");
        if !STATUS.contains(variable) {
            return None;
        }
        let (operator, value) = rest.split_once(' ')?;
        let numbers = || value.trim_matches(['[', ']']).split(',').map(|number| number.trim().to_owned()).collect();
        match (operator, value) {
            ("==" | "in", _) => {
                let all: Vec<String> = numbers();
                all.iter().all(|number| number.len() == 3 && number.parse::<u16>().is_ok()).then_some(all)
            }
            (">=", "500") | (">", "499") => Some(vec!["5xx".to_owned()]),
            ("<", "500") | ("<=", "499") => Some(vec!["4xx".to_owned()]),
            _ => None,
        }
    }

    fn page(&mut self, target: &str, statuses: &[String]) -> bool {
        let with = |status: &str| STATUS.iter().fold(target.to_owned(), |text, name| text.replace(name, status));
        let is_named = STATUS.iter().any(|name| target.contains(name));
        let in_class = |status: &str, class: &str| class.ends_with("xx") && status.starts_with(&class[..1]);
        let mut pages: Vec<(String, String)> = Vec::new();
        for status in statuses {
            if is_named && status.ends_with("xx") {
                let all = STATUSES.iter().filter(|own| in_class(own, status));
                pages.extend(all.map(|own| ((*own).to_owned(), with(own))));
            } else {
                pages.push((status.clone(), with(status)));
            }
        }
        let is_path = pages.iter().all(|(_, page)| page.starts_with('/') && !page.contains(['{', '?']));
        if is_path {
            pages.iter().for_each(|(status, page)| self.rule.keys.set_in("error_pages", status, page));
        }
        is_path
    }
}
