//! Reports: the raw data as JSON, and a summary, a Markdown page and a self-contained HTML page computed from it alone.

pub mod blocks;
pub mod chart;
pub mod compare;
pub mod frame;
pub mod html;
pub mod json;
pub mod kinds;
pub mod markdown;
pub mod ratios;
pub mod summary;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::record::ResultSet;

pub use crate::figures::{bytes, number, time};

/// The files of a result set.
pub const FILES: [&str; 4] = [json::FILE, summary::FILE, markdown::FILE, html::FILE];

pub fn write_all(dir: &Path, results: &ResultSet) -> Result<()> {
    json::write(dir, results)?;
    summary::write(dir, results)?;
    let path = dir.join(html::FILE);
    fs::write(&path, html::page(results)).with_context(|| format!("cannot write {}", path.display()))
}
