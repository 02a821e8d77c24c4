//! A Symfony application (`lab/apps/symfony`, on Debian's packages) in snapshot mode, booted by the files of
//! `examples/snapshot`. Its pages must equal those of classic mode.

use howdah_tests::site::replace_file;
use howdah_tests::{Mode, Setup, Site, run};
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn text(path: &str) -> String {
    let path = repository(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The project around the document root, with the names used by Symfony's skeleton.
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
        .file("../vendor/autoload.php", include_str!("php/symfony/project.php"))
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

fn answers(mode: Mode, setup: impl FnOnce(Setup) -> Setup) -> Vec<String> {
    let mut answers = Vec::new();
    run(
        mode,
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
    let classic = answers(Mode::Classic, |s| s);
    assert!(classic[1].starts_with("/api/orders/7 200") && classic[1].contains("\"id\":7"), "{}", classic[1]);
    assert!(classic[6].starts_with("/nowhere 404"), "{}", classic[6]);
    let by_script = answers(Mode::Snapshot, |s| {
        s.script("symfony-worker.php").setting("warmup", "[\"/api/orders/1\", \"/api/orders/1/page\"]")
    });
    assert_eq!(by_script, classic);
    let by_boot_file = answers(Mode::Snapshot, |s| s.boot("../symfony-boot.php"));
    assert_eq!(by_boot_file, classic);
}

/// Simulates a deployment: another version of a file of the application, then `cache:clear`.
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
        Mode::Snapshot,
        |s| setup(project(s)).workers(3),
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
    follows_a_new_container(|s| s.script("symfony-worker.php"));
    follows_a_new_container(|s| s.boot("../symfony-boot.php"));
}

/// A kernel of Symfony's own class with a service that is reset between requests; marks record which code has run.
const SMALL: &str = include_str!("php/symfony/small.php");

/// The loop of the package `howdah/runtime`.
const RUNNER: &str = "<?php require dirname(__DIR__) . '/vendor/autoload.php';
(new Symfony\\Component\\Dotenv\\Dotenv())->bootEnv(dirname(__DIR__) . '/.env', 'prod');
(new Howdah\\Runtime\\KernelRunner(new App\\Kernel('prod', false), new Howdah\\Runtime\\Loop()))->run();";

fn small(setup: Setup, script: &str, way: &str) -> Setup {
    let package = repository("php/runtime/src/");
    let setup = if way.is_empty() { setup } else { setup.env("HOWDAH_SNAPSHOT_PAGES", way) };
    setup
        .workers(2)
        .script("worker.php")
        .setting("warmup", "[\"/warm\"]")
        .file("worker.php", script)
        .file("../vendor/autoload.php", SMALL.replace("@PACKAGE@", &format!("{}/", package.display())))
        .file("../.env", "OF_ENV=one\n")
        .ini("display_errors", "0")
        .ini("error_reporting", "E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED")
}

#[test]
fn symfonys_terminate_runs_and_its_services_are_reset_after_the_warm_up() {
    for (name, script) in [("example", text("examples/snapshot/symfony-worker.php")), ("runner", RUNNER.to_owned())] {
        for way in ["", "fork"] {
            run(
                Mode::Snapshot,
                |s| small(s, &script, way),
                |site| {
                    assert_eq!(site.get_ok("/a"), "1 one /a", "{name}");
                    let resets = site.marks("reset");
                    assert_eq!(resets, 3, "{name}: two by rounds of the warm-up, one after it");
                    for n in 1..=5 {
                        assert_eq!(site.get_ok("/b"), "1 one /b", "{name}");
                        site.wait_for_mark("terminate-b", n);
                    }
                    assert_eq!(site.marks("reset"), resets, "{name}: requests find services that have been reset");
                    let status = site.howdah().status();
                    assert_eq!(status["pools"][0]["snapshot_warmup"], serde_json::json!([]), "{name}");
                },
            );
        }
    }
}

#[test]
fn symfonys_worker_script_loads_and_follows_its_env_file() {
    let script = text("examples/snapshot/symfony-worker.php");
    run(
        Mode::Snapshot,
        |s| small(s, &script, ""),
        |site| {
            assert_eq!(site.get_ok("/a"), "1 one /a");
            replace_file(&site.place().top.join(".env"), "OF_ENV=two\n");
            for _ in 0..6 {
                assert_eq!(site.get_ok("/a"), "1 two /a");
            }
            let _ = site.wait_for_log(&[".env has changed"]);
            // Symfony's file for one machine overrides it.
            std::fs::write(site.place().top.join(".env.local"), "OF_ENV=three\n").unwrap();
            for _ in 0..6 {
                assert_eq!(site.get_ok("/a"), "1 three /a");
            }
        },
    );
}

#[test]
fn symfony_is_the_same_in_a_sandbox() {
    let free = answers(Mode::Classic, |s| s);
    let sandboxed = |s: Setup| s.setting("sandbox", "\"app\"");
    assert_eq!(answers(Mode::Classic, sandboxed), free);
    let by_script = |s: Setup| s.script("symfony-worker.php");
    assert_eq!(answers(Mode::Snapshot, |s| sandboxed(by_script(s))), free);
    assert_eq!(answers(Mode::Worker, |s| sandboxed(by_script(s))), answers(Mode::Worker, by_script));
}
