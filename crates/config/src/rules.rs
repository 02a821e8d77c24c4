//! The rules of a site, as settings hold them.

use std::ops::Deref;
use std::sync::Arc;

use howdah_rules::Rules;

/// The compiled rules of a site. Sites that say nothing share those of the top level, with what these know of clients.
#[derive(Debug, Clone, Default)]
pub struct SiteRules {
    pub(crate) compiled: Arc<Rules>,
    /// Each as it is written, without its header.
    pub(crate) written: Vec<String>,
}

/// They are the same if the same is written: what they know of clients does not count.
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
