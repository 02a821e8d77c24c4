//! A Symfony application (`lab/apps/symfony`, on Debian's packages) in snapshot mode, booted by the files of
//! `examples/snapshot`: its pages are those of classic mode.

use howdah_tests::{Kind, Setup, run};
use std::path::{Path, PathBuf};

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
