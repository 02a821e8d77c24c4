//! The result of a reproduction: everything that its pages show, as one file for a repository.

use serde::{Deserialize, Serialize};

use super::article::Article;
use super::counting::Counting;
use super::entry::{CaseEntry, Why, of_cell};
use super::method::{self, Form};
use super::verdict::{self, JudgedConclusion};
use crate::explain;
use crate::record::{Machine, ResultSet, SystemStatus};
use crate::view::{self, CaseView};
use crate::warn;

/// Value that distinguishes such a file from other summaries.
pub const KIND: &str = "reproduction";

/// A reproduction of one article.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Document {
    /// [`KIND`].
    pub kind: String,
    /// Name of the article.
    pub article: String,
    pub form: Form,
    pub started: String,
    pub finished: Option<String>,
    pub interrupted: bool,
    pub lab_version: String,
    pub command: Vec<String>,
    pub generator: String,
    pub machine: Machine,
    pub differences: Vec<String>,
    /// Notes about the measured application for the reader.
    #[serde(default)]
    pub notes: Vec<String>,
    pub warnings: Vec<String>,
    pub systems: Vec<SystemEntry>,
    pub cases: Vec<CaseEntry>,
    pub conclusions: Vec<JudgedConclusion>,
    #[serde(default)]
    pub counting: Option<Counting>,
}

/// A system, found or not.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SystemEntry {
    pub id: String,
    pub title: String,
    pub status: SystemStatus,
    pub tuning: Vec<String>,
    #[serde(default)]
    pub php: Option<String>,
}

impl Document {
    /// Collects the results measured so far.
    pub fn of(article: &Article, form: Form, results: &ResultSet, notes: &[String]) -> Self {
        let views = view::cases(results);
        let mut cases = Vec::new();
        for setup in method::setups(article, form) {
            for row in method::rows(article, form) {
                let id = method::case_id(row, setup);
                let Some(view) = views.iter().find(|view| view.case.id == id) else { continue };
                cases.push(CaseEntry {
                    row: row.id.clone(),
                    setup: setup.id.name().to_owned(),
                    title: view.case.title.clone(),
                    load: view.case.load(),
                    cells: view.cells.iter().map(|cell| (cell.system.id.clone(), of_cell(&cell.state))).collect(),
                    why: why(article, view),
                });
            }
        }
        Self {
            kind: KIND.to_owned(),
            article: article.name.clone(),
            form,
            started: results.started.clone(),
            finished: results.finished.clone(),
            interrupted: results.interrupted,
            lab_version: results.lab_version.clone(),
            command: results.command.clone(),
            generator: results.settings.generator.clone(),
            machine: results.machine.clone(),
            differences: method::differences(article, form, &results.machine, &results.settings.generator),
            notes: notes.to_vec(),
            warnings: warn::all(results).iter().map(warn::Warning::text).collect(),
            systems: results.systems.iter().map(system).collect(),
            conclusions: verdict::all(article, &cases),
            counting: Counting::of(&views),
            cases,
        }
    }

    pub fn system(&self, id: &str) -> Option<&SystemEntry> {
        self.systems.iter().find(|system| system.id == id)
    }

    /// Returns the display name of a system.
    pub fn title<'a>(&'a self, id: &'a str) -> &'a str {
        self.system(id).map_or(id, |system| &system.title)
    }

    /// Returns the missing systems, with the missing program and the way to install it.
    pub fn missing(&self) -> Vec<(&str, &str, &str)> {
        let missing = |system| match system {
            &SystemEntry { ref title, status: SystemStatus::Missing { ref what, ref how }, .. } => {
                Some((title.as_str(), what.as_str(), how.as_str()))
            }
            _ => None,
        };
        self.systems.iter().filter_map(missing).collect()
    }
}

/// Returns the kept facts of a system.
pub fn system(record: &crate::record::SystemRecord) -> SystemEntry {
    SystemEntry {
        id: record.id.clone(),
        title: record.title.clone(),
        status: record.status.clone(),
        tuning: record.tuning.clone(),
        php: record.php.as_ref().map(|php| php.version.clone()),
    }
}

/// Explains the article's pair, and each other system compared with the base.
fn why(article: &Article, view: &CaseView<'_>) -> Vec<Why> {
    let others = article.systems.iter().map(|system| &system.id).filter(|id| **id != article.base);
    others
        .filter_map(|other| explain::between(view, &article.base, other))
        .map(|found| Why { headline: found.headline, causes: found.causes })
        .collect()
}
