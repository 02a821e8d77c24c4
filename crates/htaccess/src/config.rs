//! Merged directives: of one file, of one section, or of everything that applies to a request.

use crate::access::{Compat, Require};
use crate::environment::{Change, SetIf};
use crate::expression::Expression;
use crate::media::Media;
use crate::pattern::{BudgetExceeded, Pattern, StepBudget};
use crate::redirects::{ErrorDocument, Redirect};
use crate::request_state::RequestState;
use crate::response_headers::{Expires, HeaderLine};
use crate::rewrite::Rewrite;
use crate::unlisted::Unlisted;
use crate::wildcard;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A set of directives. Lists hold parsed values behind references; merging copies no pattern.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    pub rewrite: Option<Arc<Rewrite>>,
    pub headers: Vec<Arc<HeaderLine>>,
    pub request_headers: Vec<Arc<HeaderLine>>,
    pub expires: Expires,
    pub index: Option<Arc<Vec<String>>>,
    pub slash: Option<bool>,
    /// The inner `None` disables the fallback.
    pub fallback: Option<Option<String>>,
    pub require: Option<Arc<Require>>,
    pub merging: Merging,
    pub compat: Option<Arc<Compat>>,
    pub satisfy_any: Option<bool>,
    pub auth: Auth,
    pub ssl_required: bool,
    pub php: BTreeMap<String, String>,
    pub errors: BTreeMap<u16, ErrorDocument>,
    pub redirects: Vec<Arc<Redirect>>,
    pub changes: Vec<Change>,
    pub set_if: Vec<Arc<SetIf>>,
    pub media: Media,
    pub listing: Option<bool>,
    pub unlisted: Unlisted,
    pub etag: Option<bool>,
    pub body_limit: Option<u64>,
}

/// Combination of a directory's `Require` lines with those above it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Merging {
    #[default]
    Off,
    And,
    Or,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Auth {
    pub kind: Option<String>,
    pub realm: Option<String>,
    pub file: Option<String>,
}

/// A parsed file.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub config: Config,
    pub sections: Vec<Arc<Section>>,
}

/// Directives for certain requests only.
#[derive(Debug)]
pub(crate) struct Section {
    pub select: Select,
    pub config: Config,
    pub sections: Vec<Arc<Section>>,
}

#[derive(Debug)]
pub(crate) enum Select {
    /// `<Files>` and `<FilesMatch>`.
    Files(NameTest),
    /// `<If>`, `<ElseIf>` and `<Else>`: applies if none of the expressions in `before` held.
    If { before: Vec<Arc<Expression>>, this: Option<Arc<Expression>> },
    /// `<Limit>` (`true`) or `<LimitExcept>` (`false`).
    Methods(Vec<String>, bool),
}

#[derive(Debug)]
pub(crate) enum NameTest {
    Wild(Vec<u8>),
    Pattern(Pattern),
}

impl NameTest {
    pub(crate) fn holds(&self, name: &[u8], budget: &mut StepBudget) -> Result<bool, BudgetExceeded> {
        match self {
            Self::Wild(pattern) => {
                budget.spend((name.len() * pattern.len()) as u64)?;
                Ok(wildcard::matches(pattern, name, true))
            }
            Self::Pattern(pattern) => pattern.is_in(name, budget),
        }
    }
}

impl Select {
    pub(crate) fn holds(&self, state: &mut RequestState<'_>) -> Result<bool, BudgetExceeded> {
        match self {
            Self::Files(test) => {
                let at = state.filename.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
                test.holds(&state.filename[at..], &mut state.budget)
            }
            Self::If { before, this } => {
                for other in before {
                    if other.holds(state)? {
                        return Ok(false);
                    }
                }
                this.as_ref().map_or(Ok(true), |this| this.holds(state))
            }
            Self::Methods(methods, wanted) => {
                let named = methods.iter().any(|name| crate::access::allows_method(name, state.method));
                Ok(named == *wanted)
            }
        }
    }
}

impl Config {
    /// Approximate number of bytes that a merge copies.
    pub(crate) fn weight(&self) -> u64 {
        let compat = self.compat.as_ref().map_or(0, |compat| compat.allow.len() + compat.deny.len());
        let shared = self.headers.len() + self.request_headers.len() + self.redirects.len() + self.set_if.len();
        let copied = self.expires.by_type.len() + self.changes.len() + self.php.len() + self.errors.len() + compat;
        512 + (16 * shared + 128 * (copied + self.media.len())) as u64
    }

    /// Merges the directives of a deeper directory or a later section.
    pub(crate) fn merge(&mut self, later: &Self) {
        self.merge_rewrite(later.rewrite.as_ref());
        self.headers.extend(later.headers.iter().cloned());
        self.request_headers.extend(later.request_headers.iter().cloned());
        self.expires.active = later.expires.active.or(self.expires.active);
        self.expires.usual = later.expires.usual.or(self.expires.usual);
        self.expires.by_type.extend(later.expires.by_type.iter().cloned());
        take(&mut self.index, later.index.as_ref());
        take(&mut self.slash, later.slash.as_ref());
        take(&mut self.fallback, later.fallback.as_ref());
        take(&mut self.satisfy_any, later.satisfy_any.as_ref());
        take(&mut self.compat, later.compat.as_ref());
        self.merge_require(later);
        take(&mut self.auth.kind, later.auth.kind.as_ref());
        take(&mut self.auth.realm, later.auth.realm.as_ref());
        take(&mut self.auth.file, later.auth.file.as_ref());
        self.ssl_required |= later.ssl_required;
        self.php.extend(later.php.iter().map(|(name, value)| (name.clone(), value.clone())));
        self.errors.extend(later.errors.iter().map(|(status, document)| (*status, document.clone())));
        self.redirects.splice(0..0, later.redirects.iter().cloned());
        self.changes.extend(later.changes.iter().cloned());
        self.set_if.extend(later.set_if.iter().cloned());
        self.media.merge(&later.media);
        take(&mut self.listing, later.listing.as_ref());
        self.unlisted.merge(&later.unlisted);
        take(&mut self.etag, later.etag.as_ref());
        take(&mut self.body_limit, later.body_limit.as_ref());
    }

    /// Merges a `<Limit>` section: its access control lines extend the existing ones.
    pub(crate) fn merge_methods(&mut self, section: &Self) {
        let mut section = section.clone();
        if let (Some(ours), Some(theirs)) = (&self.compat, &section.compat) {
            let mut both = (**ours).clone();
            both.allow_first = theirs.allow_first.or(both.allow_first);
            both.allow.extend(theirs.allow.iter().cloned());
            both.deny.extend(theirs.deny.iter().cloned());
            section.compat = Some(Arc::new(both));
        }
        self.merge(&section);
    }

    fn merge_require(&mut self, later: &Self) {
        let Some(theirs) = &later.require else { return };
        let both = |ours: &Arc<Require>| vec![Require::Shared(ours.clone()), Require::Shared(theirs.clone())];
        self.require = Some(match (&self.require, later.merging) {
            (Some(ours), Merging::And) => Arc::new(Require::All(both(ours))),
            (Some(ours), Merging::Or) => Arc::new(Require::Any(both(ours))),
            _ => theirs.clone(),
        });
    }

    /// Merges rewrite directives: a file with any of them replaces the rules above it, unless rules are inherited.
    fn merge_rewrite(&mut self, later: Option<&Arc<Rewrite>>) {
        let Some(theirs) = later else { return };
        let Some(ours) = &self.rewrite else {
            self.rewrite = Some(theirs.clone());
            return;
        };
        let above = ours.options.unwrap_or_default();
        let options = theirs.options.unwrap_or(above);
        let down = !options.ignore_inherit;
        let before = options.inherit_before || (down && above.inherit_down_before);
        let after = options.inherit || (down && above.inherit_down);
        let rules = match (before, after) {
            (true, _) => Arc::new(ours.rules.iter().chain(theirs.rules.iter()).cloned().collect()),
            (_, true) => Arc::new(theirs.rules.iter().chain(ours.rules.iter()).cloned().collect()),
            _ => theirs.rules.clone(),
        };
        let base = theirs.base.clone().or_else(|| ours.base.clone().filter(|_| options.merge_base));
        self.rewrite = Some(Arc::new(Rewrite {
            engine: theirs.engine.or(ours.engine),
            base,
            options: Some(options),
            rules,
            directory: theirs.directory.clone(),
        }));
    }
}

fn take<T: Clone>(ours: &mut Option<T>, theirs: Option<&T>) {
    if let Some(theirs) = theirs {
        *ours = Some(theirs.clone());
    }
}
