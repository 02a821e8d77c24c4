//! The HTML page.

use crate::record::ResultSet;

/// The whole page.
pub fn page(_results: &ResultSet) -> String {
    String::new()
}
