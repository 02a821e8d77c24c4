//! The Composer package `howdah/runtime` (`php/`), as worker scripts use it.

use howdah_tests::{Kind, Setup, run};

/// A worker script that finds the package's classes.
fn worker(setup: Setup, code: &str) -> Setup {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../php/src/");
    let autoload = format!(
        "spl_autoload_register(function ($class) {{ if (str_starts_with($class, 'Howdah\\\\Runtime\\\\')) {{ \
         require '{package}' . substr($class, 15) . '.php'; }} }});"
    );
    setup
        .setting("mode", "\"worker\"")
        .setting("script", "\"../root/worker.php\"")
        .php("worker.php", &format!("require __DIR__ . '/gate.php'; {autoload}\n{code}"))
}

#[test]
fn the_loop_keeps_what_the_boot_set_and_ends_at_its_limit() {
    let code = "$_SERVER['FROM_BOOT'] = 'kept'; $n = 0; $loop = new Howdah\\Runtime\\Loop(3);
        $ran = $loop->run(
            function () use (&$n) { $n++; if (isset($_GET['throw'])) { throw new Exception('thrown on purpose'); }
                echo json_encode([$n, $_SERVER['FROM_BOOT'], $_SERVER['REQUEST_URI'], $_SERVER['SCRIPT_NAME'], Howdah\\Runtime\\Loop::isAvailable()]); },
            fn () => mark('after-' . $_SERVER['QUERY_STRING']));
        mark(\"ran-$ran\");";
    run(
        Kind::Classic,
        |s| worker(s.workers(1).ini("display_errors", "0").expect_log("thrown on purpose"), code),
        |site| {
            // Readiness took one request.
            assert_eq!(site.get_ok("/a?q"), r#"[2,"kept","\/a?q","\/worker.php",false]"#);
            assert_eq!(site.get("/?throw").status, 500);
            site.wait_for_mark("after-throw", 1);
            site.wait_for_mark("ran-3", 1);
            assert_eq!(site.get_ok("/b"), r#"[1,"kept","\/b","\/worker.php",false]"#);
        },
    );
}

#[test]
fn symfonys_runtime_loops_and_terminates_after_the_answer() {
    let code = "foreach (['Runtime', 'HttpKernel'] as $part) { require \"/usr/share/php/Symfony/Component/$part/autoload.php\"; }
        use Symfony\\Component\\HttpFoundation\\{Request, Response};
        class Kernel implements Symfony\\Component\\HttpKernel\\HttpKernelInterface, Symfony\\Component\\HttpKernel\\TerminableInterface {
            public int $handled = 0;
            function handle(Request $request, int $type = 1, bool $catch = true): Response { $this->handled++;
                return new Response(\"$this->handled {$request->getPathInfo()} {$request->query->get('a')} {$request->request->get('b')} {$_SERVER['APP_ENV']} {$_SERVER['APP_RUNTIME_MODE']}\", 202 - (int) ($request->getMethod() === 'GET') * 2); }
            function terminate(Request $request, Response $response): void {
                if ($request->query->has('hold')) { gate('g'); mark('terminated-' . $response->getStatusCode()); } } }
        $runtime = new Howdah\\Runtime\\Runtime(['env' => 'prod', 'disable_dotenv' => true, 'error_handler' => false]);
        [$make, $arguments] = $runtime->getResolver(fn () => new Kernel)->resolve();
        exit($runtime->getRunner($make(...$arguments))->run());";
    run(
        Kind::Classic,
        |s| worker(s.workers(1), code),
        |site| {
            let ask = |n: u32, path: &str| {
                let answer = site.send(&howdah_tests::Request::form(&format!("/{path}?a=1&{path}"), "b=2")).expect(202);
                assert_eq!(answer.text(), format!("{n} /{path} 1 2 prod web=1&worker=1"));
            };
            let gate = site.gate("g");
            let first: u32 = site.get("/").text().split(' ').next().unwrap().parse().unwrap();
            ask(first + 1, "hold");
            let held = gate.wait();
            assert_eq!(site.marks("terminated-202"), 0);
            held.release();
            site.wait_for_mark("terminated-202", 1);
            ask(first + 2, "next");
        },
    );
}
