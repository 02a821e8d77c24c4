//! What was found: what a route leaves behind, what others see of that, and how sure it is.

use crate::compare::Difference;
use crate::mode::Mode;
use serde::{Deserialize, Serialize};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Another request can see it, or the process grows by it.
    Leak,
    /// It stays, and nobody was seen to be harmed: a cache, something that is set anew before it is read.
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
    /// What has changed: `App\Cart::$items`, `date.timezone`.
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
    /// What a finding of another run must have to be the same one.
    #[must_use]
    pub fn same(&self) -> (Mode, &str, &str, &str, Option<&str>) {
        (self.mode, &self.route, &self.kind, &self.name, self.seen_on.as_deref())
    }

    /// Whether it makes the mode unsafe for its route.
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
