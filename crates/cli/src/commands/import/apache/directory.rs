//! Apache's `<Directory>`: the paths that lead to a directory, and the section that controls access to it.

use super::{is_one_of, restricts};
use crate::commands::import::directive::Directive;
use crate::commands::import::site::Rule;
use std::path::{Path, PathBuf};

/// Directories that a site serves.
pub(super) struct Served {
    /// Path and directory: of the root, whose path is empty, and of each `Alias`.
    targets: Vec<(String, PathBuf)>,
    /// Directories of sections that control access.
    deciding: Vec<PathBuf>,
}

impl Served {
    pub(super) fn new(lines: &[&Directive], sections: &[&Directive]) -> Self {
        let root = lines.iter().rfind(|line| is_one_of(line, &["DocumentRoot"]));
        let root = root.map_or("/var/www/html", |line| line.word(0));
        let aliases = lines.iter().filter(|line| is_one_of(line, &["Alias"]));
        let aliases = aliases.map(|line| (line.word(0).trim_end_matches('/').to_owned(), plain(line.word(1))));
        let deciding = sections
            .iter()
            .filter(|section| is_one_of(section, &["Directory"]) && section.inner().iter().any(restricts))
            .map(|section| plain(section.word(0)));
        Self {
            targets: std::iter::once((String::new(), plain(root))).chain(aliases).collect(),
            deciding: deciding.collect(),
        }
    }

    /// The paths that lead to a directory or into it; none for the whole site. `None` if no path does.
    pub(super) fn paths(&self, directory: &str) -> Option<Vec<String>> {
        let directory = plain(directory);
        let found: Vec<String> =
            self.targets.iter().filter_map(|(path, target)| within(path, target, &directory)).collect();
        match found.as_slice() {
            [] => None,
            _ if found.iter().any(String::is_empty) => Some(Vec::new()),
            _ => Some(found),
        }
    }

    /// Paths to which this section controls access: in Apache, the innermost directory does. `None` if there are none.
    pub(super) fn decided(&self, directory: &str) -> Option<Rule> {
        let directory = plain(directory);
        let decider = |target: &Path| {
            let around = self.deciding.iter().filter(|other| target.starts_with(other));
            around.max_by_key(|other| other.components().count())
        };
        let (own, others): (Vec<_>, Vec<_>) =
            self.targets.iter().partition(|(_, target)| decider(target) == Some(&directory));
        let is_inside = |(_, target): &&(String, PathBuf)| directory.starts_with(target) && directory != *target;
        let inside = self.targets.iter().filter(is_inside);
        let mut paths: Vec<String> = own.iter().map(|(path, _)| path.clone()).collect();
        paths.extend(inside.filter_map(|(path, target)| within(path, target, &directory)));
        if paths.is_empty() {
            return None;
        }
        let is_whole = paths.iter().any(String::is_empty);
        let mut rule = Rule::for_paths(if is_whole { Vec::new() } else { with_contents(&paths) });
        let below = self.deciding.iter().filter(|other| other.starts_with(&directory) && **other != directory);
        let mut except: Vec<String> = below
            .flat_map(|below| self.targets.iter().filter_map(move |(path, target)| within(path, target, below)))
            .collect();
        if is_whole {
            except.extend(others.iter().filter(|(_, target)| decider(target).is_some()).map(|(path, _)| path.clone()));
        }
        let is_own = |path: &String| is_whole || paths.iter().any(|own| path.starts_with(&format!("{own}/")));
        except.retain(|path| !path.is_empty() && !paths.contains(path) && is_own(path));
        except.sort();
        except.dedup();
        rule.except = with_contents(&except);
        Some(rule)
    }
}

fn plain(directory: &str) -> PathBuf {
    PathBuf::from(if directory == "/" { directory } else { directory.trim_end_matches('/') })
}

/// The path of a directory at or below a target, or the target's own path if the directory contains it.
fn within(path: &str, target: &Path, directory: &Path) -> Option<String> {
    if target.starts_with(directory) {
        return Some(path.to_owned());
    }
    directory.strip_prefix(target).ok().map(|rest| format!("{path}/{}", rest.display()))
}

/// Each path, and everything below it.
pub(super) fn with_contents(paths: &[String]) -> Vec<String> {
    paths.iter().flat_map(|path| [path.clone(), format!("{path}/*")]).collect()
}
