//! The explanation of a request for `howdah explain`, filled in by the responders.

use crate::notes::{Note, Notes};
use http::StatusCode;

/// The outcome of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Each step, in order.
    pub notes: Vec<Note>,
    /// The name of the site.
    pub site: Option<String>,
    /// The status, unless a script or an upstream server decides it.
    pub status: Option<u16>,
    /// The file that is sent.
    pub file: Option<String>,
    /// The target of a redirect.
    pub location: Option<String>,
    /// The proxy that the request is forwarded to.
    pub proxy: Option<String>,
    pub script: Option<ScriptRun>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptRun {
    /// `SCRIPT_FILENAME`.
    pub filename: String,
    /// `SCRIPT_NAME`.
    pub name: String,
    /// `PATH_INFO`.
    pub path_info: String,
    pub pool: String,
}

/// An explanation in the making.
#[derive(Debug, Default)]
pub(crate) struct ExplanationBuilder {
    pub(crate) notes: Notes,
    pub(crate) found: Explanation,
}

impl ExplanationBuilder {
    /// `true` once the responder is known.
    pub(crate) fn is_settled(&self) -> bool {
        self.found.status.is_some() || self.found.proxy.is_some() || self.found.script.is_some()
    }

    /// Ends the explanation with a response of this status, for this reason.
    pub(crate) fn respond(&mut self, status: StatusCode, why: impl Into<String>) {
        self.notes.add("response", why);
        self.found.status = Some(status.as_u16());
    }

    pub(crate) fn finish(self) -> Explanation {
        Explanation { notes: self.notes.into_inner(), ..self.found }
    }
}
