//! Reports: the raw data as JSON, and a summary and a Markdown page computed from it alone.

pub mod blocks;
pub mod compare;
pub mod json;
pub mod kinds;
pub mod markdown;
pub mod summary;

use std::path::Path;

use anyhow::Result;

use crate::record::ResultSet;

pub use crate::figures::{bytes, number, time};

/// The files of a result set.
pub const FILES: [&str; 3] = [json::FILE, summary::FILE, markdown::FILE];

/// Writes all of them.
pub fn write_all(dir: &Path, results: &ResultSet) -> Result<()> {
    json::write(dir, results)?;
    summary::write(dir, results)
}
