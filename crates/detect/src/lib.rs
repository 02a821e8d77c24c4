//! Which PHP application lies in a directory, told by its files: what Composer has installed, and constants in the files
//! of applications that have no Composer. **Nothing of the application is run**, so a server that is started as root can
//! look, too.
//!
//! ```text
//! look(dir) ── catalog.rs   the applications and their signs, most special first
//!           │      └─ recipe.rs   how some of them boot once for many requests
//!           └─ project.rs   reads a project's files, all of them with a bound
//! ```
#![forbid(unsafe_code)]

mod catalog;
mod project;
mod recipe;
mod wordpress;

pub use catalog::{CATALOG, Kind};
pub use recipe::{RECIPES, Recipe, Visitors, Watched};
pub use wordpress::{believes_proxies, only_host};

use catalog::Sign;
use project::Project;
use std::path::{Path, PathBuf};

/// An application that was found.
#[derive(Debug, Clone)]
pub struct Application {
    /// Its kind.
    pub kind: &'static Kind,
    /// Its version, as far as its files tell.
    pub version: Option<String>,
    /// The directory with its signs; with Composer, the one with `composer.json`.
    pub project: PathBuf,
    /// The document root.
    pub root: PathBuf,
    /// The file that told it, from `project`.
    pub evidence: &'static str,
    packages: Vec<String>,
}

impl Application {
    /// Its name, with the version where that is known.
    #[must_use]
    pub fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.kind.title),
            None => self.kind.title.to_owned(),
        }
    }

    /// The recipe that boots it by default, if it has one and its requirements are met.
    #[must_use]
    pub fn recipe(&self) -> Option<&'static Recipe> {
        let recipe = self.kind.recipe?;
        recipe.package.is_none_or(|package| self.has(package)).then_some(recipe)
    }

    /// `true` if Composer has this package for it.
    #[must_use]
    pub fn has(&self, package: &str) -> bool {
        self.packages.iter().any(|name| name == package)
    }
}

/// Looks which application `dir` belongs to: its project, or the document root in a project. None: no sign of one that is
/// known.
#[must_use]
pub fn look(dir: &Path) -> Option<Application> {
    let here = Project::at(dir);
    let above = dir.parent().map(Project::at);
    CATALOG.iter().find_map(|kind| {
        let in_project = told(kind, &here);
        in_project.or_else(|| above.as_ref().and_then(|above| told(kind, above)).filter(|found| found.root == dir))
    })
}

/// The application, if this project is of that kind and has a document root.
fn told(kind: &'static Kind, project: &Project) -> Option<Application> {
    let (version, evidence) = kind.signs.iter().find_map(|sign| match *sign {
        Sign::Package(name) => {
            let package = project.package(name)?;
            Some((package.version.clone(), project.list_name()))
        }
        Sign::Text { file, text } => Some((project.number_after(file, text)?, file)),
    })?;
    let root = kind.roots.iter().map(|root| project.dir(root)).find(|root| root.join("index.php").is_file())?;
    Some(Application {
        kind,
        version,
        project: project.dir("."),
        root,
        evidence,
        packages: project.packages().map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests;
