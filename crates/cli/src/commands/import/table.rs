//! Tables of directives: a row names a directive, its fate, and why. An importer is a reader and such a table.

use super::directive::Directive;
use super::page::Page;
use super::site::{Rule, Site};

/// A row. A directive may have several: the first one that accepts its words counts.
pub(super) struct Row {
    /// Names with `|` between them, in any case; `*` at the end of one stands for any text.
    names: &'static str,
    fate: Fate,
    /// The setting that it becomes, or the reason why it is dropped.
    why: &'static str,
    changed: bool,
}

/// Writes a directive into a part of the page. `false` for words that have no counterpart: then nothing is written.
pub(super) type Into<T> = fn(&Directive, &mut T) -> bool;

enum Fate {
    Page(Into<Page>),
    Site(Into<Site>),
    Rule(Into<Rule>),
    Dropped,
}

const fn row(names: &'static str, why: &'static str, fate: Fate) -> Row {
    Row { names, fate, why, changed: false }
}

/// A directive of the whole server.
pub(super) const fn page(names: &'static str, why: &'static str, into: Into<Page>) -> Row {
    row(names, why, Fate::Page(into))
}

/// A directive of a site.
pub(super) const fn site(names: &'static str, why: &'static str, into: Into<Site>) -> Row {
    row(names, why, Fate::Site(into))
}

/// A directive of a path, or of a site, which gets a rule for it.
pub(super) const fn rule(names: &'static str, why: &'static str, into: Into<Rule>) -> Row {
    row(names, why, Fate::Rule(into))
}

pub(super) const fn dropped(names: &'static str, why: &'static str) -> Row {
    row(names, why, Fate::Dropped)
}

impl Row {
    /// The result differs from the directive's meaning: `why` says how.
    pub(super) const fn changed(mut self) -> Self {
        self.changed = true;
        self
    }

    fn fits(&self, name: &str) -> bool {
        self.names.split('|').any(|own| match own.strip_suffix('*') {
            Some(start) => name.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)),
            None => name.eq_ignore_ascii_case(own),
        })
    }
}

/// The part of the page that a directive is for.
pub(super) enum Scope<'a> {
    Page(&'a mut Page),
    Site(&'a mut Site),
    Rule(&'a mut Rule),
}

/// Carries out the first row that accepts a directive. Returns its fate, for the report.
pub(super) fn apply(table: &[Row], directive: &Directive, scope: &mut Scope<'_>) -> String {
    let mut is_known = false;
    for row in table.iter().filter(|row| row.fits(&directive.name)) {
        is_known = true;
        let accepted = match (&row.fate, &mut *scope) {
            (Fate::Dropped, _) => return format!("dropped: {}", row.why),
            (Fate::Page(into), Scope::Page(page)) => tried(*into, directive, *page),
            (Fate::Site(into), Scope::Site(site)) => tried(*into, directive, site),
            (Fate::Rule(into), Scope::Rule(rule)) => tried(*into, directive, rule),
            (Fate::Rule(into), Scope::Site(site)) => {
                let mut rule = Rule::default();
                let accepted = into(directive, &mut rule);
                site.rules.extend(accepted.then_some(rule));
                accepted
            }
            _ => false,
        };
        if accepted {
            return format!("{}: {}", if row.changed { "changed" } else { "taken" }, row.why);
        }
    }
    let why = if is_known { "these words have no counterpart here" } else { "there is no counterpart" };
    format!("dropped: {why}")
}

/// Carries out a row on a copy, as one that does not accept may have begun to write.
fn tried<T: Clone>(into: Into<T>, directive: &Directive, part: &mut T) -> bool {
    let mut copy = part.clone();
    let accepted = into(directive, &mut copy);
    if accepted {
        *part = copy;
    }
    accepted
}
