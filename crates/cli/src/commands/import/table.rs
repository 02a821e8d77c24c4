//! Tables of directives: each row names a directive, its result, and the reason. An importer consists of a reader and
//! such a table.

use super::directive::Directive;
use super::page::Page;
use super::site::{Rule, Site};

/// Reason to drop a directive that needs no setting.
pub(super) const BUILT_IN: &str = "it is built in, or set for the server as a whole";

/// Writes a directive and accepts it.
macro_rules! accept {
    ($write:expr) => {{
        $write;
        true
    }};
}
pub(super) use accept;

/// A row. If a directive has several, the first that accepts its words applies.
pub(super) struct Row {
    /// Names separated by `|`, case-insensitive; `*` at the end of a name matches any text.
    names: &'static str,
    fate: RowTarget,
    /// The resulting setting, or the reason for dropping the directive.
    why: &'static str,
    changed: bool,
}

/// Writes a directive to a part of the page. Returns `false`, and must write nothing, if its words have no counterpart.
pub(super) type WriteFn<T> = fn(&Directive, &mut T) -> bool;

enum RowTarget {
    Page(WriteFn<Page>),
    Site(WriteFn<Site>),
    Rule(WriteFn<Rule>),
    Dropped,
}

const fn row(names: &'static str, why: &'static str, fate: RowTarget) -> Row {
    Row { names, fate, why, changed: false }
}

/// A directive for the whole server.
pub(super) const fn page(names: &'static str, why: &'static str, into: WriteFn<Page>) -> Row {
    row(names, why, RowTarget::Page(into))
}

/// A directive of a site.
pub(super) const fn site(names: &'static str, why: &'static str, into: WriteFn<Site>) -> Row {
    row(names, why, RowTarget::Site(into))
}

/// A directive for a path, or for a site, which gets a rule.
pub(super) const fn rule(names: &'static str, why: &'static str, into: WriteFn<Rule>) -> Row {
    row(names, why, RowTarget::Rule(into))
}

pub(super) const fn dropped(names: &'static str, why: &'static str) -> Row {
    row(names, why, RowTarget::Dropped)
}

impl Row {
    /// Marks a result that differs from the directive's meaning; `why` explains it.
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

/// The part of the page that a directive applies to.
pub(super) enum Scope<'a> {
    Page(&'a mut Page),
    Site(&'a mut Site),
    Rule(&'a mut Rule),
}

/// Applies the first row that accepts a directive. Returns the result for the report.
pub(super) fn apply(table: &[Row], directive: &Directive, scope: &mut Scope<'_>) -> String {
    let mut is_known = false;
    for row in table.iter().filter(|row| row.fits(&directive.name)) {
        is_known = true;
        let accepted = match (&row.fate, &mut *scope) {
            (RowTarget::Dropped, _) => return format!("dropped: {}", row.why),
            (RowTarget::Page(into), Scope::Page(page)) => tried(*into, directive, *page),
            (RowTarget::Site(into), Scope::Site(site)) => tried(*into, directive, site),
            (RowTarget::Rule(into), Scope::Rule(rule)) => tried(*into, directive, rule),
            (RowTarget::Rule(into), Scope::Site(site)) => {
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

/// Reason why every directive of this name is dropped. `None` if it has a counterpart or is unknown.
pub(super) fn drop_reason(table: &[Row], name: &str) -> Option<&'static str> {
    let row = table.iter().find(|row| row.fits(name))?;
    matches!(row.fate, RowTarget::Dropped).then_some(row.why)
}

/// Applies a row to a copy, because a row that does not accept the directive may have written some values.
fn tried<T: Clone>(into: WriteFn<T>, directive: &Directive, part: &mut T) -> bool {
    let mut copy = part.clone();
    let accepted = into(directive, &mut copy);
    if accepted {
        *part = copy;
    }
    accepted
}
