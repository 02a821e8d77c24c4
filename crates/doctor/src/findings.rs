//! Findings: state that a route leaves behind, its effect on other routes, and its severity.

use crate::compare::Difference;
use crate::mode::Mode;
use crate::state::Change;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Other requests can see the state, or the process grows.
    Leak,
    /// The state stays, but no harm was observed: a cache, or a value that is set again before it is read.
    Note,
}

/// A side effect of a route in a mode that it does not have in classic mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub mode: Mode,
    /// The route that causes it: `GET /cart`.
    pub route: String,
    pub severity: Severity,
    /// `static`, `ini`, `response`, `memory` and so on.
    pub kind: String,
    /// Name of the changed state: `App\Cart::$items`, `date.timezone`.
    pub name: String,
    /// File that defines the class or function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Description, one sentence.
    pub what: String,
    /// The route whose response shows the effect, if that is not the causing route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_on: Option<String>,
}

impl Finding {
    /// Fields that identify a finding across runs.
    pub fn same(&self) -> (Mode, &str, &str, &str, Option<&str>) {
        (self.mode, &self.route, &self.kind, &self.name, self.seen_on.as_deref())
    }

    /// `true` if the finding makes the mode unsafe for its route.
    pub fn is_leak(&self) -> bool {
        self.severity == Severity::Leak
    }

    pub(crate) fn new(mode: Mode, route: &str, severity: Severity, kind: &str, name: &str, what: String) -> Self {
        let (route, kind, name) = (route.to_owned(), kind.to_owned(), name.to_owned());
        Self { mode, route, severity, kind, name, file: None, what, seen_on: None }
    }

    /// A finding about state that a route leaves behind.
    pub(crate) fn of_change(mode: Mode, route: &str, change: &Change, severity: Severity, why: &str) -> Self {
        let what = format!("{why} ({})", change.values());
        let file = change.file.clone();
        Self { file, ..Self::new(mode, route, severity, &change.kind, &change.name, what) }
    }

    /// A finding about a response that differs from classic mode's.
    pub(crate) fn response(mode: Mode, route: &str, kind: &str, found: &Difference, why: &str) -> Self {
        let what = format!("{why}: `{}` in classic mode, `{}` here", found.classic, found.here);
        Self::new(mode, route, Severity::Leak, kind, &found.what, what)
    }
}
