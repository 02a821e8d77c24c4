//! The rules of a site, as part of the settings.

use std::ops::Deref;
use std::sync::Arc;

use howdah_rules::Rules;

/// The compiled rules of a site. Sites without rules share those of the top level, including their per-client state.
#[derive(Debug, Clone, Default)]
pub struct SiteRules {
    pub(crate) compiled: Arc<Rules>,
    /// The source of each rule, without its header.
    pub(crate) written: Vec<String>,
}

/// Compares the rules' source only; their per-client state does not count.
impl PartialEq for SiteRules {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written && self.rules().len() == other.rules().len()
    }
}

impl Deref for SiteRules {
    type Target = Rules;

    fn deref(&self) -> &Rules {
        &self.compiled
    }
}
