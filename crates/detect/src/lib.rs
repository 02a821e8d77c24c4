//! Detects the PHP application in a directory by its files: installed Composer packages, and constants in source files
//! of applications without Composer. **No code of the application is run**, so a server started as root can use this
//! too.
//!
//! ```text
//! look(dir) ── catalog.rs   the applications and their signs, most specific first
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

/// A detected application.
#[derive(Debug, Clone)]
pub struct Application {
    pub kind: &'static Kind,
    /// Its version, if its files contain one.
    pub version: Option<String>,
    /// The directory with the signs; with Composer, the directory of `composer.json`.
    pub project: PathBuf,
    /// The document root.
    pub root: PathBuf,
    /// The file that identified it, relative to `project`.
    pub evidence: &'static str,
    packages: Vec<String>,
}

impl Application {
    /// Its name, with the version if known.
    pub fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.kind.title),
            None => self.kind.title.to_owned(),
        }
    }

    /// The recipe that boots it by default, if it has one and meets the recipe's requirements.
    pub fn recipe(&self) -> Option<&'static Recipe> {
        let recipe = self.kind.recipe?;
        recipe.package.is_none_or(|package| self.has(package)).then_some(recipe)
    }

    /// `true` if this Composer package is installed or required.
    pub fn has(&self, package: &str) -> bool {
        self.packages.iter().any(|name| name == package)
    }
}

/// Detects the application of `dir`, which may be its project or its document root. `None` if no known application is
/// found.
pub fn look(dir: &Path) -> Option<Application> {
    let here = Project::at(dir);
    let above = dir.parent().map(Project::at);
    CATALOG.iter().find_map(|kind| {
        let in_project = detected_kind(kind, &here);
        in_project
            .or_else(|| above.as_ref().and_then(|above| detected_kind(kind, above)).filter(|found| found.root == dir))
    })
}

/// Returns the application, if this project has a sign of that kind and a document root.
fn detected_kind(kind: &'static Kind, project: &Project) -> Option<Application> {
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
