//! A Laravel application on Debian's packages, with Composer's layout and without a `howdah.toml`: the doctor must boot
//! it as `howdah serve` does, and mention this in its advice.

use super::{leaks, mode, report};
use std::fs;
use std::path::Path;
use std::process::Command;

const LARAVEL: &str = "/usr/share/php/Illuminate/autoload.php";

/// The application of the recipe's tests.
fn laravel(dir: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apps/laravel");
    let copied = Command::new("cp").arg("-r").arg(source).arg(dir).status().unwrap();
    assert!(copied.success());
    for name in ["bootstrap/cache", "storage/framework/sessions", "storage/framework/views", "storage/logs", "vendor"] {
        fs::create_dir_all(dir.join(name)).unwrap();
    }
    fs::rename(dir.join("autoload.php"), dir.join("vendor/autoload.php")).unwrap();
    fs::write(dir.join("composer.json"), "{}").unwrap();
    let lock = r#"{"packages": [{"name": "laravel/framework", "version": "v8.83.26"}]}"#;
    fs::write(dir.join("composer.lock"), lock).unwrap();
    // Laravel 8 on PHP 8.2.
    fs::write(dir.join("public/.user.ini"), "error_reporting = E_ALL & ~E_DEPRECATED\n").unwrap();
}

#[test]
fn laravel_is_booted_by_its_recipe_and_the_recipe_is_advised() {
    if !Path::new(LARAVEL).exists() {
        howdah_skip::skip!("laravel", "Debian's php-laravel-framework is not installed");
    }
    let top = tempfile::tempdir().unwrap();
    let (dir, list) = (top.path().join("shop"), top.path().join("pages"));
    laravel(&dir);
    // One page counts in a singleton and in a static, one in the session, one shows the visitor's token.
    fs::write(&list, "/\n/items/7\n/visits\n/form\n/nowhere\n").unwrap();
    let list = list.display().to_string();
    let report = report(top.path(), &dir, &["--list", &list, "--modes", "snapshot,worker,async"]);

    let snapshot = mode(&report, "snapshot");
    assert_eq!(snapshot["recipe"], "laravel", "{snapshot}");
    assert_eq!(leaks(snapshot), [], "{snapshot}");

    // The recipe's worker mode is Octane's, which is not installed.
    let worker = report["modes"].as_array().unwrap().iter().find(|mode| mode["mode"] == "worker").unwrap();
    let why = worker["fails"].as_str().unwrap();
    assert!(why.contains("worker mode needs Laravel Octane"), "{why}");

    // In async mode the front controller runs again and again without any restore.
    assert!(!leaks(mode(&report, "async")).is_empty(), "{report}");

    let advice = &report["advice"];
    if advice["mode"] == "snapshot" {
        assert_eq!(advice["settings"], "mode = \"snapshot\"\napp = \"laravel\"\n");
    }
}
