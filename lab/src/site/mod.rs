//! `howdah-lab site`: renders all summaries in a repository as one small static site for any web host: no server side,
//! one line of script, no external resources.

mod suite;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;

use crate::choose;
use crate::report::blocks::{Block, Page};
use crate::report::summary;
use crate::reproduce;

#[derive(Debug, Args)]
pub struct SiteArgs {
    /// Directory of the summaries, at any depth
    #[arg(default_value = "lab/results")]
    results: PathBuf,
    /// Directory for the site
    #[arg(long, value_name = "DIR", default_value = "lab/raw/site")]
    out: PathBuf,
}

/// One summary, rendered.
struct Entry {
    /// Path of its page, from the site's directory.
    address: String,
    /// Its section of the index; sections are in this order.
    kind: &'static str,
    title: String,
    started: String,
    lines: Vec<String>,
    page: Page,
}

const ARTICLES: &str = "Published comparisons, reproduced";
const CHOICES: &str = "Choosing a set-up for an application";
const SUITES: &str = "The lab's own suites";

/// Renders the site.
pub fn main(args: &SiteArgs) -> Result<u8> {
    let mut files = Vec::new();
    gather(&args.results, &mut files)?;
    files.sort();
    if files.is_empty() {
        bail!("no {} below {}", summary::FILE, args.results.display());
    }
    let mut entries = Vec::new();
    for file in &files {
        entries.push(read(file, &args.results).with_context(|| format!("cannot show {}", file.display()))?);
    }
    // The newest first.
    entries.sort_by(|a, b| b.started.cmp(&a.started).then(a.address.cmp(&b.address)));
    for entry in &entries {
        let depth = entry.address.matches('/').count();
        let home = format!("{}index.html", "../".repeat(depth));
        write(&args.out.join(&entry.address), &entry.page.html(Some(&home)))?;
    }
    write(&args.out.join("index.html"), &index(&entries).html(None))?;
    eprintln!("{} pages and index.html in {}", entries.len(), args.out.display());
    Ok(0)
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn gather(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            gather(&entry.path(), files)?;
        } else if entry.file_name() == summary::FILE {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn read(file: &Path, results: &Path) -> Result<Entry> {
    let value: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let place = file.parent().and_then(|dir| dir.strip_prefix(results).ok()).unwrap_or(Path::new(""));
    let address = place.join("index.html").display().to_string();
    // The index already has that name at the top.
    let address = if address == "index.html" { "result/index.html".to_owned() } else { address };
    let kind = value["kind"].as_str().unwrap_or_default();
    if kind == reproduce::document::KIND {
        let document: reproduce::document::Document = serde_json::from_value(value)?;
        let article = reproduce::article::find(&document.article)?;
        let verdicts = document.conclusions.iter().map(|judged| {
            let with = judged.counterpart.as_ref();
            let with =
                with.map(|with| format!("; {} instead: {}", document.title(&with.system), with.verdict.description()));
            format!("{}: {}{}", judged.text, judged.verdict.description(), with.unwrap_or_default())
        });
        let lines = std::iter::once(after(&document.started, &document.machine.cpu)).chain(verdicts).collect();
        let page = reproduce::page::of(&article, &document);
        return Ok(Entry {
            address,
            kind: ARTICLES,
            title: article.title.clone(),
            started: document.started,
            lines,
            page,
        });
    }
    if kind == choose::document::KIND {
        let choice: choose::document::Choice = serde_json::from_value(value)?;
        let lines = vec![after(&choice.started, &choice.machine.cpu)];
        let page = choose::page::of(&choice);
        return Ok(Entry {
            address,
            kind: CHOICES,
            title: choice.application.clone(),
            started: choice.started,
            lines,
            page,
        });
    }
    let document: suite::Document = serde_json::from_value(value)?;
    let (lines, page) =
        (vec![after(&document.started, &document.machine.cpu), document.extent()], suite::page(&document, place));
    Ok(Entry { address, kind: SUITES, title: suite::title(&document, place), started: document.started, lines, page })
}

fn after(started: &str, cpu: &str) -> String {
    format!("{}, {cpu}", started.split('T').next().unwrap_or(started))
}

fn index(entries: &[Entry]) -> Page {
    let mut blocks = vec![Block::Text(
        "Each page is one measurement with its machine, versions and method. Figures of two pages are of two machines or two moments: \
         compare ratios within a page."
            .into(),
    )];
    for kind in [ARTICLES, CHOICES, SUITES] {
        let mine: Vec<&Entry> = entries.iter().filter(|entry| entry.kind == kind).collect();
        if mine.is_empty() {
            continue;
        }
        blocks.push(Block::Heading(kind.into()));
        let cards = mine.iter().map(|entry| (entry.address.clone(), entry.title.clone(), entry.lines.clone()));
        blocks.push(Block::Cards(cards.collect()));
    }
    Page {
        title: "Howdah's lab: results".into(),
        about: format!("{} measurements of PHP runtimes side by side.", entries.len()),
        blocks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::sample_results;

    #[test]
    fn every_kept_summary_has_a_page_that_the_index_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("kept");
        summary::write(&kept.join("2026/one"), &sample_results::results()).unwrap();
        summary::write(&kept.join("2026/two"), &sample_results::mixed()).unwrap();
        let out = dir.path().join("site");
        main(&SiteArgs { results: kept, out: out.clone() }).unwrap();
        let index = fs::read_to_string(out.join("index.html")).unwrap();
        assert!(
            index.contains("href=\"2026/one/index.html\"") && index.contains("href=\"2026/two/index.html\""),
            "{index}"
        );
        let page = fs::read_to_string(out.join("2026/one/index.html")).unwrap();
        assert!(
            page.contains("href=\"../../index.html\"") && page.contains("30 003") || page.contains("30 002"),
            "{page}"
        );
        assert!(page.contains("gone"), "what was missing is named: {page}");
    }

    #[test]
    fn a_directory_without_summaries_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let error = main(&SiteArgs { results: dir.path().to_owned(), out: dir.path().join("site") }).unwrap_err();
        assert!(error.to_string().contains("no summary.json"), "{error}");
    }
}
