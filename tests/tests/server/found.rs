//! A directory without a `howdah.toml`: detection of applications, the resulting settings, and the output of `howdah
//! init`.

use howdah_tests::howdah::{php_program, program};
use howdah_tests::process::{PATIENCE, eventually, signal};
use howdah_tests::{Conn, Request, Target, php};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A skeleton with the files by which a framework is detected, and a page that prints its path.
fn project(package: &str, version: &str) -> (TempDir, PathBuf) {
    let top = tempfile::tempdir().unwrap();
    let dir = top.path().join("project");
    let lock = format!(r#"{{"packages": [{{"name": "{package}", "version": "{version}"}}]}}"#);
    for (name, text) in [
        ("composer.json", "{}"),
        ("composer.lock", &*lock),
        (".env", "APP_KEY=secret"),
        ("vendor/private.txt", "secret"),
        ("public/index.php", "<?php echo 'page ', $_SERVER['REQUEST_URI'];"),
        ("public/other.php", "<?php echo 'other';"),
        ("public/style.css", "a {}"),
        ("public/storage/upload.php", "<?php echo 'uploaded';"),
        ("storage/app/public/shown.txt", "shown"),
        ("storage/app/private.txt", "secret"),
    ] {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    // The links that Laravel creates for its public directory, whichever user runs it.
    for (name, to) in [("linked", "../storage/app/public"), ("other", "../storage/app")] {
        let link = dir.join("public").join(name);
        std::os::unix::fs::symlink(to, &link).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(link, Some(12345), None).unwrap();
        }
    }
    (top, dir)
}

/// `howdah ARGUMENTS` in this directory, with an environment independent of the test's.
fn howdah(top: &Path, dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program()).args(arguments).current_dir(dir).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("TMPDIR", top).env("HOWDAH_ALLOW_ROOT", "true").env("HOWDAH_PHP", php_program());
    command
}

fn run(top: &Path, dir: &Path, arguments: &[&str]) -> (Output, String, String) {
    let output = howdah(top, dir, arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    (output, out, error)
}

/// The line of `howdah check` with this setting.
fn said(top: &Path, dir: &Path, arguments: &[&str], key: &str) -> String {
    let (output, out, error) = run(top, dir, &[&["check"], arguments].concat());
    assert!(output.status.success(), "{error}");
    let line = out.lines().find(|line| line.starts_with(&format!("{key} = ")));
    line.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap()
}

/// Serves the directory while `ask` sends requests; returns the server's output.
fn served(top: &Path, dir: &Path, arguments: &[&str], ask: impl FnOnce(&dyn Fn(&str) -> (u16, String))) -> String {
    let (socket, admin) = (top.join("http.sock"), format!("unix:{}", top.join("admin.sock").display()));
    let listen = format!("unix:{}", socket.display());
    let fixed = ["serve", "--listen", &listen, "--admin", &admin, "--workers", "1"];
    let mut server = howdah(top, dir, &[&fixed, arguments].concat());
    let server = server.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let target = Target::Unix(socket);
    assert!(eventually(PATIENCE, || Conn::try_open(&target).is_ok()), "the server does not listen");
    ask(&|path| {
        let response = Conn::open(&target).exchange(&Request::get(path).close());
        (response.status, response.text())
    });
    signal(server.id(), Signal::TERM);
    let output = server.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

fn laravel_is_served(ask: &dyn Fn(&str) -> (u16, String)) {
    assert_eq!(ask("/posts/1?a=b"), (200, "page /posts/1?a=b".to_owned()));
    assert_eq!(ask("/style.css"), (200, "a {}".to_owned()));
    assert_eq!(ask("/other.php").0, 404, "only index.php is a script");
    assert_eq!(ask("/posts/").0, 301, "one address for each page");
    let (_, upload) = ask("/storage/upload.php");
    assert!(!upload.contains("uploaded"), "{upload}");
    assert_eq!(ask("/storage/none.txt").1, "page /storage/none.txt", "a route may send it");
    assert_eq!(ask("/linked/shown.txt").1, "shown");
    assert_eq!(ask("/other/private.txt").0, 404);
    for path in ["/.env", "/vendor/private.txt", "/composer.lock", "/public/index.php"] {
        let (_, text) = ask(path);
        assert!(!text.contains("secret") && !text.contains("packages"), "{path}: {text}");
    }
}

#[test]
fn a_laravel_project_is_served_from_its_directory_with_its_rules() {
    let (top, dir) = project("laravel/framework", "v11.33.2");
    let said = served(top.path(), &dir, &[], laravel_is_served);
    assert!(said.contains("found Laravel 11.33.2 (by composer.lock)"), "{said}");
    assert!(said.contains("with the rules of app = \"laravel\""), "{said}");
    assert!(said.contains("howdah init"), "{said}");
}

#[test]
fn assets_of_bundles_are_served_behind_the_links_that_symfony_makes() {
    let (top, dir) = project("symfony/framework-bundle", "7.4.1");
    for (name, text) in [
        ("vendor/acme/bundle/Resources/public/acme.js", "acme"),
        ("vendor/acme/bundle/Resources/public/acme.php", "<?php echo 'run';"),
        ("vendor/acme/bundle/private.txt", "secret"),
        ("config/secret.txt", "secret"),
    ] {
        fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
        fs::write(dir.join(name), text).unwrap();
    }
    fs::create_dir_all(dir.join("public/bundles")).unwrap();
    for (name, to) in
        [("acme", "vendor/acme/bundle/Resources/public"), ("all", "vendor/acme/bundle"), ("own", "config")]
    {
        let link = dir.join("public/bundles").join(name);
        std::os::unix::fs::symlink(Path::new("../..").join(to), &link).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(link, Some(12345), None).unwrap();
        }
    }
    served(top.path(), &dir, &[], |ask| {
        assert_eq!(ask("/bundles/acme/acme.js"), (200, "acme".to_owned()));
        assert_eq!(ask("/bundles/acme/acme.php").0, 404);
        assert_eq!(ask("/bundles/acme/none.js").1, "page /bundles/acme/none.js");
        for hidden in ["/bundles/all/private.txt", "/bundles/own/secret.txt"] {
            assert_eq!(ask(hidden).0, 404, "{hidden}");
        }
    });
}

#[test]
fn settings_written_by_init_serve_the_same() {
    let (top, dir) = project("laravel/framework", "v11.33.2");
    let (output, printed, _) = run(top.path(), &dir, &["init", "--print"]);
    assert!(output.status.success() && !dir.join("howdah.toml").exists());
    let (output, out, error) = run(top.path(), &dir, &["init"]);
    assert!(output.status.success() && out.contains("howdah.toml"), "{out}{error}");
    assert_eq!(fs::read_to_string(dir.join("howdah.toml")).unwrap(), printed);
    let said = served(top.path(), &dir, &[], laravel_is_served);
    assert!(!said.contains("found Laravel"), "detection ran despite the file: {said}");
    // A file that was written in the meantime stays unchanged.
    fs::write(dir.join("howdah.toml"), "root = \"public\"\n").unwrap();
    let (output, _, error) = run(top.path(), &dir, &["init"]);
    assert!(!output.status.success() && error.contains("exists already"), "{error}");
    assert_eq!(fs::read_to_string(dir.join("howdah.toml")).unwrap(), "root = \"public\"\n");
}

#[test]
fn init_as_root_names_the_user_that_serve_needs() {
    let (top, dir) = project("laravel/framework", "v11.33.2");
    let init = |allowed: &str| {
        let output = howdah(top.path(), &dir, &["init", "--print"]).env("HOWDAH_ALLOW_ROOT", allowed).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    assert_eq!(init("false").contains("\nphp.user = \"www-data\"\n"), is_root);
    assert!(!init("true").contains("user ="));
    // As a user types it: no environment, and only the file.
    let check = |text: &str| {
        fs::write(dir.join("howdah.toml"), text).unwrap();
        let output = howdah(top.path(), &dir, &["check"]).env_remove("HOWDAH_ALLOW_ROOT").output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = check(&init("false"));
    assert!(!said.contains("started as root"), "{said}");
    // The same for configurations of other servers, which name no user of PHP.
    let public = dir.join("public").display().to_string();
    for (name, text) in [
        ("nginx.conf", format!("server {{ listen 8080; root {public}; if ($a) {{ return 403; }} }}\n")),
        ("site.conf", format!("<VirtualHost *:8080>\nDocumentRoot {public}\n</VirtualHost>\n")),
        (
            "Caddyfile",
            format!("{{\n frankenphp {{\n  php_ini precision 9\n }}\n}}\n:8080\nroot * {public}\nphp_server\n"),
        ),
        (
            ".rr.yaml",
            "http:\n  address: 127.0.0.1:8080\nserver:\n  command: php worker.php\n  env:\n    - A: b\n".to_owned(),
        ),
    ] {
        fs::write(dir.join(name), text).unwrap();
        let output = howdah(top.path(), &dir, &["init", "--print", name]).env("HOWDAH_ALLOW_ROOT", "false").output();
        let page = String::from_utf8(output.unwrap().stdout).unwrap();
        let said = check(&page);
        assert!(page.contains("user = \"www-data\"") == is_root && !said.contains("started as root"), "{page}{said}");
        assert!(!said.contains("TOML") && !said.contains("duplicate"), "{page}{said}");
    }
}

#[test]
fn a_project_is_detected_from_its_document_root_and_by_its_path() {
    let (top, dir) = project("symfony/framework-bundle", "v7.1.5");
    let public = dir.join("public");
    let root = format!("root = \"{}\" # found Symfony 7.1.5", public.display());
    assert_eq!(said(top.path(), &dir, &[], "root"), root);
    assert_eq!(said(top.path(), &public, &[], "app"), "app = \"symfony\" # found Symfony 7.1.5");
    let (output, out, error) = run(top.path(), top.path(), &["explain", "/other.php", "--root", dir.to_str().unwrap()]);
    assert!(output.status.success() && out.contains("symfony-one-script"), "{out}{error}");
}

#[test]
fn explicit_settings_override_detected_ones() {
    let (top, dir) = project("laravel/framework", "v11.33.2");
    let app = |arguments: &[&str]| said(top.path(), &dir, arguments, "app");
    assert_eq!(app(&[]), "app = \"laravel\" # found Laravel 11.33.2");
    assert_eq!(app(&["--set", "app=none"]), "app = \"none\" # --app");
    assert_eq!(app(&["--set", "front_controller=other.php"]), "app = \"auto\" # default");
    assert_eq!(app(&["--htaccess"]), "app = \"auto\" # default");
    assert_eq!(app(&["--mode", "worker", "--script", "public/other.php"]), "app = \"auto\" # default");
    fs::write(dir.join("howdah.toml"), "workers = 1\n").unwrap();
    assert_eq!(app(&[]), "app = \"auto\" # default");
}

/// WordPress in Bedrock's layout: pages from `web`, WordPress's own files in `web/wp`, uploads in `web/app`.
#[test]
fn a_bedrock_project_is_served_from_its_web_directory_with_its_rules() {
    let top = tempfile::tempdir().unwrap();
    let dir = top.path().join("project");
    for (name, text) in [
        ("composer.lock", r#"{"packages": [{"name": "roots/wordpress", "version": "6.1.1"}]}"#),
        (".env", "DB_PASSWORD=secret"),
        ("config/application.php", "<?php echo 'secret';"),
        ("web/index.php", "<?php echo 'page ', $_SERVER['REQUEST_URI'];"),
        ("web/wp-config.php", "<?php echo 'secret';"),
        ("web/wp/wp-login.php", "<?php echo 'login';"),
        ("web/wp/wp-admin/index.php", "<?php echo 'admin';"),
        ("web/wp/wp-includes/version.php", "<?php $wp_version = '6.1.1'; echo 'secret';"),
        ("web/app/themes/a/style.css", "a {}"),
        ("web/app/uploads/evil.php", "<?php echo 'secret';"),
    ] {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let said = served(top.path(), &dir, &[], |ask| {
        assert_eq!(ask("/a-post/"), (200, "page /a-post/".to_owned()));
        assert_eq!(ask("/wp/wp-login.php"), (200, "login".to_owned()));
        assert_eq!(ask("/wp/wp-admin/"), (200, "admin".to_owned()));
        assert_eq!(ask("/app/themes/a/style.css"), (200, "a {}".to_owned()));
        for path in [
            "/.env",
            "/wp-config.php",
            "/wp/wp-includes/version.php",
            "/app/uploads/evil.php",
            "/config/application.php",
        ] {
            let (status, text) = ask(path);
            assert!(!text.contains("secret"), "{path}: {status} {text}");
        }
    });
    assert!(said.contains("found WordPress (Bedrock) 6.1.1 (by composer.lock)"), "{said}");
    assert!(said.contains("with the rules of app = \"bedrock\""), "{said}");
}

/// Boots by its recipe if possible, and otherwise reports the reason for classic mode.
#[test]
fn a_detected_wordpress_boots_by_its_recipe_if_possible() {
    let wordpress = |config: &str| {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join("project");
        for (name, code) in [
            ("index.php", "define('WP_USE_THEMES', true);\nrequire __DIR__ . '/wp-blog-header.php';"),
            ("wp-blog-header.php", "require_once __DIR__ . '/wp-load.php';\necho Howdah\\mode();"),
            ("wp-load.php", php!("wordpress_hosts/wp-load.php")),
            ("wp-config.php", config),
            ("wp-includes/version.php", "$wp_version = '6.4';"),
            ("wp-includes/vars.php", ""),
        ] {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("<?php {code}")).unwrap();
        }
        (top, dir)
    };
    let (top, dir) = wordpress("");
    let said = served(top.path(), &dir, &[], |ask| {
        assert!(eventually(PATIENCE, || ask("/") == (200, "snapshot".to_owned())), "{:?}", ask("/"));
    });
    assert!(said.contains("found WordPress 6.4 (by wp-includes/version.php)"), "{said}");
    let to_installation = "foreach ($wp_filter['wp_redirect'][PHP_INT_MAX] ?? [] as ['function' => $filter]) {
            $filter('http://a.example/wp-admin/install.php');
        }";
    for (config, reason) in [
        (to_installation, "recipe wordpress: WordPress is not installed yet"),
        ("if (isset($_GET['x'])) { exit; }", "wp-config.php:1 has $_GET"),
    ] {
        let (top, dir) = wordpress(config);
        let admin = format!("unix:{}", top.path().join("admin.sock").display());
        let said = served(top.path(), &dir, &[], |ask| {
            let status = || run(top.path(), &dir, &["status", "--admin", &admin]).1;
            assert!(eventually(PATIENCE, || status().contains(reason)), "{reason}: {}", status());
            assert_eq!(ask("/"), (200, "classic".to_owned()), "{reason}");
        });
        assert!(said.contains("the pool default serves in classic mode"), "{said}");
    }
}

/// Two lines for each detected application: its name, and how it runs, with a faster alternative.
#[test]
fn the_detected_application_is_reported_with_its_faster_alternative() {
    for (package, what, how) in [
        (
            "slim/slim",
            "found Slim 4.14.0 (by composer.lock): serving ",
            "classic mode; faster: worker mode by the package howdah/runtime",
        ),
        (
            "psr/http-server-handler",
            "found PSR-15 4.14.0 (by composer.lock): serving ",
            "docs/guide/psr15.md; `howdah init` writes",
        ),
        (
            "symfony/framework-bundle",
            "found Symfony 4.14.0 (by composer.lock): serving ",
            "once the project has the package symfony/runtime",
        ),
        (
            "a/library",
            "found plain PHP (by index.php): serving ",
            "classic mode; `howdah doctor` finds out whether a faster mode suits the code",
        ),
    ] {
        let (top, dir) = project(package, "v4.14.0");
        let said = served(top.path(), &dir, &[], |ask| assert_eq!(ask("/a").0, 200));
        assert!(said.contains(what) && said.contains(how), "{package}: {said}");
        assert!(said.contains(&dir.join("public").display().to_string()), "{package}: {said}");
        let said = served(top.path(), &dir, &["--set", "app=none"], |ask| assert_eq!(ask("/a").0, 200));
        assert!(!said.contains("found "), "{said}");
    }
}

#[test]
fn init_reports_a_missing_application_and_accepts_unknown_ones() {
    let top = tempfile::tempdir().unwrap();
    let (output, out, error) = run(top.path(), top.path(), &["init"]);
    assert!(!output.status.success() && error.contains("there is no index.php"), "{out}{error}");
    fs::write(top.path().join("index.php"), "<?php echo 'plain';").unwrap();
    let (output, _, error) = run(top.path(), top.path(), &["init"]);
    assert!(output.status.success(), "{error}");
    let said = served(top.path(), top.path(), &[], |ask| {
        assert_eq!(ask("/some/path"), (200, "plain".to_owned()));
        let (_, text) = ask("/howdah.toml");
        assert!(!text.contains("front_controller"), "{text}");
    });
    assert!(!said.contains("found "), "{said}");
}
