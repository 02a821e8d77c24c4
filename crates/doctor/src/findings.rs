//! Findings: state that a route leaves behind, its effect on others, and how certain it is.

use crate::compare::Difference;
use crate::mode::Mode;
use serde::{Deserialize, Serialize};

/// Severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Another request can see it, or the process grows by it.
    Leak,
    /// It stays, but no visitor was seen to be harmed: a cache, or a value that is set again before it is read.
    Note,
}

/// Something that a route does in a mode and would not do in classic mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub mode: Mode,
    /// The route that is to blame, `GET /cart`.
    pub route: String,
    pub severity: Severity,
    /// `static`, `ini`, `response`, `memory` and so on.
    pub kind: String,
    /// The changed state: `App\Cart::$items`, `date.timezone`.
    pub name: String,
    /// The file of the class or function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// One sentence.
    pub what: String,
    /// The route whose response shows it, where that is not the one that is to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_on: Option<String>,
}

impl Finding {
    /// Identity of a finding across runs.
    #[must_use]
    pub fn same(&self) -> (Mode, &str, &str, &str, Option<&str>) {
        (self.mode, &self.route, &self.kind, &self.name, self.seen_on.as_deref())
    }

    /// `true` if it makes the mode unsafe for its route.
    #[must_use]
    pub fn is_leak(&self) -> bool {
        self.severity == Severity::Leak
    }

    /// A response that is not that of classic mode.
    pub(crate) fn response(mode: Mode, route: &str, kind: &str, found: &Difference, why: &str) -> Self {
        Self {
            mode,
            route: route.to_owned(),
            severity: Severity::Leak,
            kind: kind.to_owned(),
            name: found.what.clone(),
            file: None,
            what: format!("{why}: classic mode says `{}`, here it is `{}`", found.classic, found.here),
            seen_on: None,
        }
    }
}
