//! A Symfony application (`lab/apps/symfony`, on Debian's packages) in snapshot mode, booted by the files of
//! `examples/snapshot`: its pages are those of classic mode.

use howdah_tests::site::replace_file;
use howdah_tests::{Kind, Setup, Site, run};
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn text(path: &str) -> String {
    let path = repository(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The project around the document root, with the names that Symfony's own skeleton has.
fn project(setup: Setup) -> Setup {
    let sources = ["Kernel", "Order", "OrderController", "Product", "ProductController"];
    let setup = sources
        .iter()
        .map(|class| format!("src/{class}.php"))
        .chain(["bootstrap.php".to_owned()])
        .fold(setup, |s, file| s.file(&format!("../{file}"), text(&format!("lab/apps/symfony/{file}"))));
    let setup = ["base", "order"].iter().fold(setup, |s, name| {
        s.file(&format!("../templates/{name}.html.twig"), text(&format!("lab/apps/symfony/templates/{name}.html.twig")))
    });
    setup
        .workers(1)
        .file("index.php", text("lab/apps/symfony/public/index.php"))
        .file("symfony-worker.php", text("examples/snapshot/symfony-worker.php"))
        .file("../symfony-boot.php", text("examples/snapshot/symfony-boot.php"))
        .file(
            "../vendor/autoload.php",
            "<?php namespace App; require_once dirname(__DIR__) . '/bootstrap.php';
            // The application's kernel, and an answer to the test that asks whether the server is ready.
            class Kernel { private $kernel; function __construct(...$all) { $this->kernel = new \\Orders\\Kernel(...$all); }
                function __call($name, $all) { return $this->kernel->$name(...$all); }
                function boot() { $this->kernel->boot(); } function shutdown() { $this->kernel->shutdown(); }
                function terminate($request, $response) { $this->kernel->terminate($request, $response); }
                function handle($request) { return $request->getPathInfo() === '/gate.php'
                    ? new \\Symfony\\Component\\HttpFoundation\\Response('ready') : $this->kernel->handle($request); } }",
        )
        .ini("display_errors", "0")
        .ini("error_reporting", "E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED")
        .ini("log_errors", "0")
}

const PAGES: [&str; 7] = [
    "/api/products/7",
    "/api/orders/7",
    "/api/orders/7?currency=USD",
    "/api/orders/8/page",
    "/api/orders/9?currency=",
    "/api/section5/3/what",
    "/nowhere",
];

fn answers(setup: impl FnOnce(Setup) -> Setup) -> Vec<String> {
    let mut answers = Vec::new();
    run(
        Kind::Classic,
        |s| setup(project(s)),
        |site| {
            for round in 0..50 {
                for (n, page) in PAGES.iter().enumerate() {
                    let answer = site.get(page);
                    let shown =
                        format!("{page} {} {:?} {}", answer.status, answer.header("content-type"), answer.text());
                    if round == 0 {
                        answers.push(shown);
                    } else {
                        assert_eq!(shown, answers[n], "round {round}");
                    }
                }
            }
        },
    );
    answers
}

#[test]
fn symfonys_pages_are_the_same_in_snapshot_mode() {
    let classic = answers(|s| s);
    assert!(classic[1].starts_with("/api/orders/7 200") && classic[1].contains("\"id\":7"), "{}", classic[1]);
    assert!(classic[6].starts_with("/nowhere 404"), "{}", classic[6]);
    let by_script = answers(|s| {
        s.setting("mode", "\"snapshot\"")
            .setting("script", "\"../root/symfony-worker.php\"")
            .setting("warmup", "[\"/api/orders/1\", \"/api/orders/1/page\"]")
    });
    assert_eq!(by_script, classic);
    let by_boot_file = answers(|s| s.setting("mode", "\"snapshot\"").setting("boot", "\"../symfony-boot.php\""));
    assert_eq!(by_boot_file, classic);
}

/// As a deployment does: another file of the application, then `cache:clear`.
fn deploy(site: &Site) {
    let top = &site.place().top;
    let kernel = top.join("src/Kernel.php");
    let text = std::fs::read_to_string(&kernel).unwrap();
    assert!(text.contains("'/api/products/{id}'"));
    replace_file(&kernel, &text.replace("'/api/products/{id}'", "'/api/renamed/{id}'"));
    std::fs::remove_dir_all(top.join("var/cache/prod")).unwrap();
    let boot = "require 'vendor/autoload.php'; (new Orders\\Kernel('prod', false))->boot();";
    let built = Command::new("php").args(["-d", "error_reporting=0", "-r", boot]).current_dir(top).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stdout));
}

fn follows_a_new_container(setup: impl FnOnce(Setup) -> Setup) {
    run(
        Kind::Classic,
        |s| setup(project(s)).workers(3).setting("mode", "\"snapshot\""),
        |site| {
            let page = site.get_ok("/api/products/7");
            assert_eq!(site.get("/api/renamed/7").status, 404);
            deploy(site);
            for _ in 0..9 {
                assert_eq!(site.get_ok("/api/renamed/7"), page);
                assert_eq!(site.get("/api/products/7").status, 404);
            }
            let _ = site.wait_for_log(&["the container was built anew"]);
        },
    );
}

#[test]
fn symfony_in_snapshot_mode_follows_a_new_container() {
    follows_a_new_container(|s| s.setting("script", "\"../root/symfony-worker.php\""));
    follows_a_new_container(|s| s.setting("boot", "\"../symfony-boot.php\""));
}

#[test]
fn symfony_is_the_same_in_a_sandbox() {
    let free = answers(|s| s);
    let sandboxed = |s: Setup| s.setting("sandbox", "\"app\"");
    assert_eq!(answers(sandboxed), free);
    let by_script = |s: Setup| s.setting("mode", "\"snapshot\"").setting("script", "\"../root/symfony-worker.php\"");
    assert_eq!(answers(|s| sandboxed(by_script(s))), free);
    let in_worker_mode = |s: Setup| s.setting("mode", "\"worker\"").setting("script", "\"../root/symfony-worker.php\"");
    assert_eq!(answers(|s| sandboxed(in_worker_mode(s))), answers(in_worker_mode));
}
