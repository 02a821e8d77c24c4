//! Runs the rules of a directory for a request, as Apache does after it has mapped the path to a file.
//!
//! Rules see the path in the file system relative to their directory. They produce a path in the file system, an
//! absolute path or an address. A path in the file system is mapped back to a URL path by `RewriteBase` or the document
//! root, and the request restarts with it.

use crate::compare::number;
use crate::expression_value::file_test;
use crate::limits;
use crate::pattern::{BudgetExceeded, Captures};
use crate::request_state::RequestState;
use crate::rewrite::cookie::Cookie;
use crate::rewrite::location::{escape_address, escape_path, has_scheme, own_path, qualified};
use crate::rewrite::rule::{Condition, Rewrite, RuleParts, Test};
use crate::rewrite::template::{Expansion, Template};

/// Result of the rules.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The request continues unchanged, except perhaps for its query.
    Same,
    /// The request restarts with this path; its query is that of the state.
    Again(Vec<u8>),
    /// The client is redirected to this address.
    Redirect { status: u16, location: Vec<u8> },
    /// A refusal.
    Status(u16),
}

/// Side effects of a pass through the rules.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub cookies: Vec<Cookie>,
    pub media_type: Option<Vec<u8>>,
    pub handler: Option<Vec<u8>>,
}

struct Pass<'p, 'a> {
    state: &'p mut RequestState<'a>,
    directory: &'p [u8],
    effects: &'p mut Effects,
    status: Option<u16>,
    /// A rule has replaced the path.
    applied: bool,
    no_escape: bool,
    /// A rule with `PT` matched: the result is a URL path, whatever it looks like.
    passed: bool,
    end: bool,
}

enum Applied {
    No,
    /// The rule matched and has no substitution.
    Matched,
    Changed,
    /// The request ends.
    Refused(u16),
}

/// Runs the rules of a directory. The second value is `true` if a rule with `END` matched: no more rules are run for
/// this request.
pub(crate) fn run(
    rewrite: &Rewrite,
    state: &mut RequestState<'_>,
    effects: &mut Effects,
) -> Result<(Outcome, bool), BudgetExceeded> {
    if rewrite.engine != Some(true) || rewrite.rules.is_empty() {
        return Ok((Outcome::Same, false));
    }
    let directory = rewrite.directory.as_slice();
    let allows_no_slash = rewrite.options.is_some_and(|options| options.allow_no_slash);
    // The directory itself was requested without its slash: mod_dir adds the slash first.
    if !allows_no_slash && directory.strip_suffix(b"/") == Some(state.filename.as_slice()) {
        return Ok((Outcome::Same, false));
    }
    let (original, path_info, query) = (state.filename.clone(), state.path_info.clone(), state.query.clone());
    let mut pass =
        Pass { state, directory, effects, status: None, applied: false, no_escape: false, passed: false, end: false };
    let status = pass.list(rewrite)?;
    let outcome = match status {
        // Checked before everything else (mod_rewrite.c, hook_fixup).
        _ if (status.is_some() || pass.applied) && pass.has_bad_query() => Outcome::Status(403),
        Some(status) => Outcome::Status(status),
        None if pass.changed_from(&original) => pass.outcome(rewrite, query.as_deref()),
        None => Outcome::Same,
    };
    let end = pass.end;
    state.filename = original;
    state.path_info = path_info;
    Ok((outcome, end))
}

impl Pass<'_, '_> {
    fn changed_from(&self, original: &[u8]) -> bool {
        self.state.filename != original
    }

    /// `true` if the query has characters that are not allowed in a URL and would be used unencoded.
    fn has_bad_query(&self) -> bool {
        let has_blank = |query: &Vec<u8>| query.iter().any(|b| b.is_ascii_control() || *b == b' ');
        let encoded = has_scheme(&self.state.filename).is_some() && !self.no_escape && !self.passed;
        !encoded && self.state.query.as_ref().is_some_and(has_blank)
    }

    /// Runs all rules in order. Returns a status if a rule ends the request.
    fn list(&mut self, rewrite: &Rewrite) -> Result<Option<u16>, BudgetExceeded> {
        let rules = &*rewrite.rules;
        let (mut at, mut rounds) = (0, 0);
        while let Some(rule) = rules.get(at) {
            at += 1;
            let rule = &*rule.0;
            if (rule.flags.no_subrequest || rule.flags.redirect) && self.state.subrequest {
                continue;
            }
            let applied = self.rule(rule)?;
            if matches!(applied, Applied::No) {
                while rules.get(at - 1).is_some_and(|rule| rule.0.flags.chain) {
                    at += 1;
                }
                continue;
            }
            if self.state.filename.len() > limits::EXPANDED {
                return Ok(Some(500));
            }
            if let Applied::Refused(status) = applied {
                return Ok(Some(status));
            }
            if let Some(status) = rule.flags.refusal() {
                return Ok(Some(status));
            }
            if matches!(applied, Applied::Changed) {
                // Apache would use its proxy, which does not exist here.
                if rule.flags.proxy {
                    return Ok(Some(403));
                }
                self.applied = true;
                self.no_escape = rule.flags.no_escape;
            }
            if rule.flags.pass_through {
                self.no_escape = false;
                self.passed = true;
                break;
            }
            if rule.flags.last {
                self.end |= rule.flags.end;
                break;
            }
            if let Some(most) = rule.flags.next {
                rounds += 1;
                if rounds >= most.min(limits::ROUNDS) {
                    return Ok(Some(500));
                }
                at = 0;
                continue;
            }
            at += rule.flags.skip;
        }
        Ok(None)
    }

    fn rule(&mut self, rule: &RuleParts) -> Result<Applied, BudgetExceeded> {
        let full = [self.state.filename.as_slice(), &self.state.path_info].concat();
        let subject = full.strip_prefix(self.directory).unwrap_or(&full);
        let found = rule.pattern.find(subject, &mut self.state.budget)?;
        let groups = match (found, rule.negated) {
            (Some(found), false) => found,
            (None, true) => Captures::default(),
            _ => return Ok(Applied::No),
        };
        let Some(conditions) = self.conditions(&rule.conditions, &groups)? else { return Ok(Applied::No) };
        let expand =
            |text: &Template| text.make(self.state, &groups, &conditions, &rule.flags.escaping, rule.flags.query_last);
        let made = rule.substitution.as_ref().map(expand);
        if made.as_ref().is_some_and(|made| made.unsafe_query) && !rule.flags.allow_3f {
            return Ok(Applied::Refused(403));
        }
        self.side_effects(rule, &groups, &conditions);
        let Some(Expansion { text: mut made, .. }) = made else { return Ok(Applied::Matched) };
        if made.first() != Some(&b'/') && has_scheme(&made).is_none() {
            made.splice(0..0, self.directory.iter().copied());
        }
        if rule.flags.discard_path_info {
            self.state.path_info.clear();
        }
        self.state.filename = made;
        self.take_query(rule);
        if rule.flags.redirect {
            if has_scheme(&self.state.filename).is_none() {
                self.state.filename = qualified(&self.state.facts, &self.state.filename);
            }
            self.status = rule.flags.status;
            return Ok(Applied::Changed);
        }
        if let Some(path) = own_path(&self.state.facts, &self.state.filename) {
            self.state.filename = path;
        } else if has_scheme(&self.state.filename).is_some() {
            // Also resets the status: this is a redirect whatever status an earlier rule has set.
            self.status = rule.flags.status;
        }
        let written = rule.substitution.as_ref().is_some_and(Template::begins_with_two_slashes);
        if !rule.flags.keep_slashes && !written {
            let slashes = self.state.filename.iter().take_while(|b| **b == b'/').count();
            self.state.filename.drain(..slashes.saturating_sub(1));
        }
        Ok(Applied::Changed)
    }

    fn side_effects(&mut self, rule: &RuleParts, groups: &Captures, conditions: &Captures) {
        for variable in &rule.flags.variables {
            let text = variable.expand(self.state, groups, conditions);
            let end = text.iter().position(|&b| b == b':').unwrap_or(text.len());
            let name = String::from_utf8_lossy(&text[..end]);
            match name.strip_prefix('!') {
                Some(name) => self.state.environment.unset(name),
                None => self.state.environment.set(&name, text.get(end + 1..).unwrap_or_default().to_vec()),
            }
        }
        for cookie in &rule.flags.cookies {
            let text = cookie.expand(self.state, groups, conditions);
            let set = &mut self.effects.cookies;
            if let Some(cookie) = Cookie::new(&text, self.state.facts.time)
                && set.len() < 20
                && set.iter().all(|known| known.name != cookie.name)
            {
                set.push(cookie);
            }
        }
        if let Some(text) = &rule.flags.media_type {
            self.effects.media_type = Some(text.expand(self.state, groups, conditions)).filter(|text| !text.is_empty());
        }
        if let Some(text) = &rule.flags.handler {
            self.effects.handler = Some(text.expand(self.state, groups, conditions)).filter(|text| !text.is_empty());
        }
    }

    /// Splits the query from the result of a substitution.
    fn take_query(&mut self, rule: &RuleParts) {
        if rule.flags.discard_query || rule.flags.no_query {
            self.state.query = None;
        }
        if rule.flags.no_query {
            return;
        }
        let name = &self.state.filename;
        let at = if rule.flags.query_last {
            name.iter().rposition(|&b| b == b'?')
        } else {
            name.iter().position(|&b| b == b'?')
        };
        let Some(at) = at else { return };
        let mut query = name[at + 1..].to_vec();
        if rule.flags.append_query
            && let Some(old) = self.state.query.as_deref().filter(|old| !old.is_empty())
        {
            if !query.is_empty() {
                query.push(b'&');
            }
            query.extend_from_slice(old);
        }
        if query.last() == Some(&b'&') {
            query.pop();
        }
        self.state.filename.truncate(at);
        self.state.query = (!query.is_empty()).then_some(query);
    }

    /// Checks the conditions; returns the groups of the last match if they hold.
    fn conditions(&mut self, conditions: &[Condition], rule: &Captures) -> Result<Option<Captures>, BudgetExceeded> {
        let mut groups = Captures::default();
        let mut at = 0;
        while let Some(condition) = conditions.get(at) {
            at += 1;
            let holds = self.condition(condition, rule, &mut groups)?;
            if !condition.or_next {
                if !holds {
                    return Ok(None);
                }
            } else if holds {
                while conditions.get(at - 1).is_some_and(|condition| condition.or_next) {
                    at += 1;
                }
            }
        }
        Ok(Some(groups))
    }

    fn condition(
        &mut self,
        condition: &Condition,
        rule: &Captures,
        groups: &mut Captures,
    ) -> Result<bool, BudgetExceeded> {
        let subject = || condition.subject.expand(self.state, rule, groups);
        let holds = match &condition.test {
            Test::Always => !subject().is_empty(),
            Test::File(kind) => file_test(self.state, *kind, &subject())?,
            Test::Number(compare, wanted) => compare.holds(number(&subject()).cmp(wanted)),
            Test::Text(compare, wanted) => {
                let subject = subject();
                let ordering = if condition.no_case {
                    subject.to_ascii_lowercase().cmp(&wanted.to_ascii_lowercase())
                } else {
                    // A longer text compares as greater, whatever its content.
                    subject.len().cmp(&wanted.len()).then_with(|| subject.cmp(wanted))
                };
                compare.holds(ordering)
            }
            Test::Expression(expression) => expression.holds(self.state)?,
            Test::Pattern(pattern) => {
                let subject = subject();
                match pattern.find(&subject, &mut self.state.budget)? {
                    Some(found) => {
                        if !condition.negated {
                            *groups = found;
                        }
                        true
                    }
                    None => false,
                }
            }
        };
        Ok(holds != condition.negated)
    }

    /// Interprets the result of the rules.
    fn outcome(&mut self, rewrite: &Rewrite, old_query: Option<&[u8]>) -> Outcome {
        let made = std::mem::take(&mut self.state.filename);
        let scheme = has_scheme(&made).filter(|_| !self.passed);
        if let Some(scheme) = scheme {
            return self.redirect(rewrite, made, scheme, old_query);
        }
        if made.first() != Some(&b'/') {
            return Outcome::Status(400);
        }
        let in_root = made.strip_prefix(self.state.facts.root).filter(|rest| rest.first() == Some(&b'/'));
        let path = match (&rewrite.base, in_root) {
            (Some(base), _) if made.starts_with(self.directory) => replaced_prefix(&made, self.directory, base),
            // The root is replaced with an empty prefix, including its slash: the result is not a path (mod_rewrite.c,
            // hook_fixup).
            (Some(_), Some(rest)) => Some(rest[1..].to_vec()),
            (_, rest) => rest.map(<[u8]>::to_vec),
        };
        Outcome::Again(path.unwrap_or(made))
    }

    fn redirect(&self, rewrite: &Rewrite, mut made: Vec<u8>, scheme: usize, old_query: Option<&[u8]>) -> Outcome {
        if let Some(base) = &rewrite.base
            && let Some(slash) = made[scheme..].iter().position(|&b| b == b'/').map(|at| scheme + at)
            && let Some(path) = replaced_prefix(&made[slash..], self.directory, base)
        {
            made.truncate(slash);
            made.extend_from_slice(&path);
        }
        let mut location = if self.no_escape { made } else { escape_address(&made) };
        if let Some(query) = &self.state.query {
            location.push(b'?');
            if self.no_escape || old_query == Some(query) {
                location.extend_from_slice(query);
            } else {
                location.extend_from_slice(&escape_path(query));
            }
        }
        let status = self.status.unwrap_or(302);
        Outcome::Redirect { status, location }
    }
}

/// Maps a path below a directory to the same path below another.
fn replaced_prefix(place: &[u8], directory: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    let rest = place.strip_prefix(directory)?;
    let mut made = base.to_vec();
    if made.last() != Some(&b'/') {
        made.push(b'/');
    }
    made.extend_from_slice(rest);
    Some(made)
}
