//! A user's application without a script that boots once: its front controller can be booted by a recipe of Howdah, and
//! run as a worker of FrankenPHP.

use std::fs;
use std::path::Path;

/// Requirement of a front controller that runs as a worker of FrankenPHP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrontWorker {
    /// Nothing: `symfony/runtime` has a runner for it since 7.4.
    Alone,
    /// This class in `APP_RUNTIME`.
    With(&'static str),
}

/// Packages with a runtime for FrankenPHP: a file of each below `vendor`, and what it needs.
const RUNTIMES: [(&str, FrontWorker); 2] = [
    ("symfony/runtime/Runner/FrankenPhpWorkerRunner.php", FrontWorker::Alone),
    ("runtime/frankenphp-symfony/src/Runtime.php", FrontWorker::With("Runtime\\FrankenPhpSymfony\\Runtime")),
];

fn has_symfony_runtime(root: &Path) -> bool {
    fs::read_to_string(root.join("index.php")).is_ok_and(|code| code.contains("autoload_runtime.php"))
}

/// Returns Howdah's recipe for the application with this document root, which boots in worker and in snapshot mode.
pub fn recipe(root: &Path) -> Option<&'static str> {
    if has_symfony_runtime(root) {
        return Some("symfony");
    }
    root.parent().is_some_and(|app| app.join("artisan").is_file()).then_some("laravel")
}

/// Returns how FrankenPHP runs its front controller as a worker, if a package for that is installed.
pub fn worker(root: &Path) -> Option<FrontWorker> {
    let vendor = root.parent().filter(|_| has_symfony_runtime(root))?.join("vendor");
    RUNTIMES.into_iter().find(|(file, _)| vendor.join(file).is_file()).map(|(_, worker)| worker)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_front_controller_boots_once_if_its_framework_allows_it() {
        let app = tempfile::tempdir().unwrap();
        let root = app.path().join("public");
        write(&root.join("index.php"), "<?php echo 1;");
        write(&app.path().join("vendor").join(RUNTIMES[1].0), "<?php");
        assert_eq!((recipe(&root), worker(&root)), (None, None), "plain PHP");
        write(&root.join("index.php"), "<?php require dirname(__DIR__) . '/vendor/autoload_runtime.php';");
        assert_eq!((recipe(&root), worker(&root)), (Some("symfony"), Some(RUNTIMES[1].1)));
        write(&app.path().join("vendor").join(RUNTIMES[0].0), "<?php");
        assert_eq!(worker(&root), Some(FrontWorker::Alone));
        fs::remove_dir_all(app.path().join("vendor")).unwrap();
        assert_eq!(worker(&root), None, "no package for FrankenPHP");
    }

    #[test]
    fn laravel_is_known_by_its_console() {
        let app = tempfile::tempdir().unwrap();
        let root = app.path().join("public");
        write(&root.join("index.php"), "<?php require __DIR__ . '/../bootstrap/app.php';");
        write(&app.path().join("artisan"), "#!/usr/bin/env php");
        assert_eq!((recipe(&root), worker(&root)), (Some("laravel"), None));
    }
}
