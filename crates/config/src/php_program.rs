//! Selects a pool's `howdah-php`: a program, or a PHP version whose program is searched in the directories of packages.

use std::path::{Path, PathBuf};

use crate::kind::Kind;
use crate::source::Environment;
use crate::value::Value;
use howdah_rules::tree::quoted;

/// The default program.
const PLAIN: &str = "howdah-php";
/// The PHP versions that the host supports, newest first.
const VERSIONS: &[&str] = &["8.5", "8.4", "8.3", "8.2"];
/// Directory of internal programs, relative to the parent of `howdah`'s directory.
const LIBEXEC: &str = "libexec/howdah";

/// A `howdah-php`, by its path or by the version of PHP that it hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhpProgram {
    /// Its path; only a name before the search and if the search failed.
    pub path: PathBuf,
    /// The requested version: `8.4`.
    pub version: Option<String>,
}

impl PhpProgram {
    /// The default program.
    pub fn plain() -> Self {
        Self { path: PathBuf::from(PLAIN), version: None }
    }

    /// The program for a version of PHP, or the default one.
    ///
    /// # Errors
    /// No such program; the error lists the searched directories.
    pub fn located(version: Option<&str>, environment: &Environment) -> Result<Self, String> {
        let path = version.map_or_else(|| PLAIN.to_owned(), |version| format!("{PLAIN}{version}"));
        let mut program = Self { path: PathBuf::from(path), version: version.map(str::to_owned) };
        program.find(environment);
        program.missing(environment).map_or(Ok(program), Err)
    }

    /// Replaces the name with the path, if the program is found.
    pub(crate) fn find(&mut self, environment: &Environment) {
        if self.path.components().count() != 1 {
            return;
        }
        let mut found = find(&self.path, environment);
        if self.version.is_none() && found.is_none() {
            found = hosts(environment).into_iter().next().map(|(_, path)| path);
        }
        if let Some(found) = found {
            self.path = found;
        }
    }

    /// Error and remedy if no program was found.
    pub(crate) fn missing(&self, environment: &Environment) -> Option<String> {
        if self.path.is_file() {
            return None;
        }
        let name = self.path.display();
        if self.path.components().count() != 1 {
            return Some(format!("there is no file {name}"));
        }
        let package = match &self.version {
            Some(version) => format!("howdah-php{version}"),
            None => "howdah-php with a version (howdah-php8.4)".to_owned(),
        };
        let others: Vec<_> = hosts(environment).into_iter().map(|(version, _)| version).collect();
        let others = if others.is_empty() { String::new() } else { format!(" (there is: {})", others.join(", ")) };
        let dirs: Vec<_> = own_dirs(environment).map(|dir| dir.display().to_string()).collect();
        Some(format!(
            "there is no {name} in {}{}PATH{others}; install the package {package}, or name the program by its path",
            dirs.join(", "),
            if dirs.is_empty() { "" } else { " or " }
        ))
    }
}

/// All installed versions, newest first.
fn hosts(environment: &Environment) -> Vec<(&'static str, PathBuf)> {
    let program =
        |version: &&'static str| Some((*version, find(Path::new(&format!("{PLAIN}{version}")), environment)?));
    VERSIONS.iter().filter_map(program).collect()
}

fn find(name: &Path, environment: &Environment) -> Option<PathBuf> {
    let path = environment.env.get("PATH").map(String::as_str).unwrap_or_default();
    let dirs = own_dirs(environment).chain(path.split(':').filter(|dir| !dir.is_empty()).map(PathBuf::from));
    dirs.map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// The directory of `howdah`, and the directory of packaged programs.
fn own_dirs(environment: &Environment) -> impl Iterator<Item = PathBuf> + use<> {
    let beside = environment.program_dir.clone();
    let libexec = beside.as_ref().and_then(|dir| Some(dir.parent()?.join(LIBEXEC)));
    beside.into_iter().chain(libexec)
}

impl Value for PhpProgram {
    const KIND: Kind = Kind::PhpProgram;

    fn from_text(text: &str) -> Option<Self> {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if text.split_once('.').is_some_and(|(major, minor)| digits(major) && digits(minor)) {
            return Some(Self { path: PathBuf::from(format!("{PLAIN}{text}")), version: Some(text.to_owned()) });
        }
        (!text.is_empty()).then(|| Self { path: PathBuf::from(text), version: None })
    }

    fn show(&self) -> String {
        match &self.version {
            Some(version) if self.path.components().count() == 1 => quoted(version),
            _ => quoted(&self.path.to_string_lossy()),
        }
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        // A version is searched for; it is not relative to the settings file.
        if self.version.is_some() { Vec::new() } else { vec![&mut self.path] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new(files: &[&str]) -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            for file in files {
                let path = place.0.path().join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "").unwrap();
            }
            place
        }

        fn environment(&self) -> Environment {
            let path = self.0.path().join("elsewhere").to_str().unwrap().to_owned();
            Environment {
                program_dir: Some(self.0.path().join("bin")),
                env: [("PATH".to_owned(), path)].into(),
                ..Environment::default()
            }
        }

        fn found(&self, text: &str) -> PathBuf {
            let mut program = PhpProgram::from_text(text).unwrap();
            program.find(&self.environment());
            program.path.strip_prefix(self.0.path()).map_or_else(|_| program.path.clone(), Path::to_path_buf)
        }
    }

    #[test]
    fn a_version_is_found_next_to_the_server_in_libexec_and_in_path() {
        let place = Place::new(&["bin/howdah-php8.2", "libexec/howdah/howdah-php8.2", "libexec/howdah/howdah-php8.3"]);
        assert_eq!(place.found("8.2"), Path::new("bin/howdah-php8.2"));
        assert_eq!(place.found("8.3"), Path::new("libexec/howdah/howdah-php8.3"));
        assert_eq!(Place::new(&["elsewhere/howdah-php8.4"]).found("8.4"), Path::new("elsewhere/howdah-php8.4"));
    }

    #[test]
    fn without_a_version_the_plain_program_precedes_the_newest_one() {
        let versions = ["libexec/howdah/howdah-php8.2", "libexec/howdah/howdah-php8.4"];
        assert_eq!(Place::new(&versions).found(PLAIN), Path::new("libexec/howdah/howdah-php8.4"));
        let plain = [&versions[..], &["elsewhere/howdah-php"]].concat();
        assert_eq!(Place::new(&plain).found(PLAIN), Path::new("elsewhere/howdah-php"));
    }

    #[test]
    fn a_missing_version_is_named_with_its_package_and_the_installed_ones() {
        let place = Place::new(&["libexec/howdah/howdah-php8.2"]);
        let mut program = PhpProgram::from_text("8.4").unwrap();
        program.find(&place.environment());
        let said = program.missing(&place.environment()).unwrap();
        assert!(said.starts_with("there is no howdah-php8.4 in "), "{said}");
        assert!(said.contains("or PATH (there is: 8.2); install the package howdah-php8.4"), "{said}");
        assert_eq!(program.show(), "\"8.4\"");
        let path = PhpProgram::from_text("/x/howdah-php").unwrap();
        assert_eq!(path.missing(&place.environment()).unwrap(), "there is no file /x/howdah-php");
    }
}
