//! The code files of a project, for watchers.

use std::path::Path;

/// Directories of a project into which applications write files that look like code.
const WRITTEN: &[&str] = &["var", "storage", "cache", "tmp", "temp", "logs", "node_modules", "vendor"];
/// Files whose change makes the loaded application outdated.
const CODE: &str = "*.{php,phtml,inc,twig,yaml,yml,ini}";

/// Files whose change affects pages: code, templates and assets.
const PAGES: &str = "*.{php,phtml,inc,twig,latte,yaml,yml,ini,html,htm,css,js,mjs,json,svg,png,jpg,jpeg,webp,avif}";
/// The page files that browsers load.
const ASSETS: &str = "*.{html,htm,css,js,mjs,svg,png,jpg,jpeg,webp,avif}";

/// Patterns for the files that affect a project's pages. `loads_code` is `true` if changed code is loaded without a
/// reload.
pub fn page_patterns(project: &Path, loads_code: bool) -> Vec<String> {
    let kind = if loads_code { PAGES } else { ASSETS };
    code_patterns(project, None).iter().map(|pattern| pattern.replace(CODE, kind)).collect()
}

/// Patterns for the project's own code: all directories except hidden ones, those that applications write to, and
/// `without`.
pub fn code_patterns(project: &Path, without: Option<&Path>) -> Vec<String> {
    let mut patterns = vec![format!("{}/{CODE}", project.display()), format!("{}/.env*", project.display())];
    let entries = std::fs::read_dir(project).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()) && without != Some(&entry.path()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.') && !WRITTEN.contains(&name.as_str()))
        // These characters would be interpreted as parts of a pattern.
        .filter(|name| !name.contains(['*', '{', '}', '[', ']', '?']))
        .collect();
    names.sort();
    patterns.extend(names.iter().map(|name| format!("{}/{name}/**/{CODE}", project.display())));
    patterns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_the_application_writes_are_not_watched() {
        let project = tempfile::tempdir().unwrap();
        for name in ["src", "var", "vendor", ".git", "public", "a{b"] {
            std::fs::create_dir(project.path().join(name)).unwrap();
        }
        let names = |without: Option<&Path>| -> Vec<String> {
            let found = code_patterns(project.path(), without);
            let dirs = found.iter().filter_map(|p| p.strip_suffix(CODE)?.strip_suffix("/**/"));
            dirs.filter_map(|dir| dir.rsplit('/').next()).map(str::to_owned).collect()
        };
        assert_eq!(names(None), ["public", "src"]);
        assert_eq!(names(Some(&project.path().join("public"))), ["src"]);
    }
}
