//! Knowledge about applications: the project directory of a document root, directories that WordPress, Symfony and
//! Laravel write to, and the interpreter of a script that is run as a program.

use std::path::{Path, PathBuf};

/// A directory that an application writes to.
pub(crate) struct WritableDirectory {
    pub(crate) path: PathBuf,
    /// It holds PHP files that the application generates and includes.
    pub(crate) code: bool,
    /// The application that writes to it.
    pub(crate) application: &'static str,
}

/// Files at the top of a project whose document root is one of its subdirectories.
const TOPS: &[&str] = &["composer.json", "vendor/autoload.php", "artisan", "bin/console"];

/// The project around a document root or a script's directory, or that directory itself.
pub(crate) fn project(directory: &Path) -> &Path {
    match directory.parent() {
        Some(above) if above != Path::new("/") && TOPS.iter().any(|top| above.join(top).exists()) => above,
        _ => directory,
    }
}

/// Directories that the project's application writes to, if it is a known one.
pub(crate) fn written(root: &Path, project: &Path) -> Vec<WritableDirectory> {
    let mut found = Vec::new();
    let mut add = |application, path: PathBuf, code| found.push(WritableDirectory { path, code, application });
    if root.join("wp-includes/version.php").is_file() {
        add("WordPress", root.join("wp-content/uploads"), false);
    }
    if root.join("wp/wp-includes/version.php").is_file() {
        add("WordPress (Bedrock)", root.join("app/uploads"), false);
    }
    if project.join("bootstrap/app.php").is_file() && project.join("storage/framework").is_dir() {
        add("Laravel", project.join("storage"), false);
        add("Laravel", project.join("storage/framework/views"), true);
        add("Laravel", project.join("bootstrap/cache"), true);
    }
    if ["config/bundles.php", "src/Kernel.php", "symfony.lock"].iter().any(|file| project.join(file).is_file()) {
        add("Symfony", project.join("var"), false);
        add("Symfony", project.join("var/cache"), true);
    }
    found
}

/// The program named in a script's first line (`#!/bin/sh`).
pub(crate) fn interpreter(program: &Path) -> Option<PathBuf> {
    let mut first = [0u8; 256];
    let n = std::fs::File::open(program).and_then(|mut file| std::io::Read::read(&mut file, &mut first)).ok()?;
    let line = first[..n].strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let path = line.split(|byte| byte.is_ascii_whitespace()).find(|word| !word.is_empty())?;
    PathBuf::from(std::str::from_utf8(path).ok()?).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_detected_by_its_top_level_files() {
        let top = std::env::temp_dir().join(format!("howdah-project-{}", std::process::id()));
        let root = top.join("public");
        std::fs::create_dir_all(&root).unwrap();
        assert_eq!(project(&root), root, "a plain directory of scripts stands alone");
        std::fs::write(top.join("composer.json"), "{}").unwrap();
        assert_eq!(project(&root), top);
        assert_eq!(project(Path::new("/srv")), Path::new("/srv"), "never the whole machine");
        std::fs::remove_dir_all(&top).unwrap();
    }
}
