//! The Composer package `howdah/runtime` (`php/runtime`), as worker scripts use it.

use howdah_tests::{Kind, Part, Request, Setup, multipart, run};

/// A worker script that finds the package's classes.
fn worker(setup: Setup, code: &str) -> Setup {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../php/runtime/src/");
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
                let answer = site.send(&Request::form(&format!("/{path}?a=1&{path}"), "b=2")).expect(202);
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

/// Debian has PSR-7 packages and none of PSR-15, whose two interfaces are these.
const PSR15: &str = "namespace Psr\\Http\\Server {
    interface RequestHandlerInterface { public function handle(\\Psr\\Http\\Message\\ServerRequestInterface $request): \\Psr\\Http\\Message\\ResponseInterface; } }";

/// A PSR-15 application: tells what it got, in headers and a body of several pieces.
const PSR15_APP: &str = "namespace { require __DIR__ . '/autoload.php';
    final class App implements Psr\\Http\\Server\\RequestHandlerInterface {
        public int $n = 0;
        public function __construct(private $factory) {}
        public function handle(Psr\\Http\\Message\\ServerRequestInterface $r): Psr\\Http\\Message\\ResponseInterface {
            $this->n++;
            if (isset($r->getQueryParams()['throw'])) { throw new Exception('thrown on purpose'); }
            $files = array_map(fn ($f) => [$f->getClientFilename(), $f->getSize(), md5((string) $f->getStream())], $r->getUploadedFiles()['f'] ?? []);
            $body = json_encode([$this->n, $r->getMethod(), (string) $r->getUri(), $r->getQueryParams(), $r->getParsedBody(), $r->getCookieParams(),
                $r->getHeaderLine('X-Mark'), strlen((string) $r->getBody()), $files, $r->getProtocolVersion(), $r->getServerParams()['REMOTE_ADDR']]);
            return $this->factory->createResponse(str_ends_with($r->getUri()->getPath(), 'gate.php') ? 200 : 203, 'Told')->withHeader('Content-Type', 'application/json')->withAddedHeader('X-Two', 'a')->withAddedHeader('X-Two', 'b')
                ->withAddedHeader('Set-Cookie', 'one=1')->withAddedHeader('Set-Cookie', 'two=2')->withBody($this->factory->createStream($body . str_repeat(' ', 200000)));
        }
    }
    (new Howdah\\Runtime\\Psr15Loop(new App(new FACTORY)))->run(); }";

fn a_psr15_application_is_served(package: &str, factory: &str) {
    let autoload = format!(
        "require __DIR__ . '/gate.php'; require '{package}';
        spl_autoload_register(function ($class) {{ if (str_starts_with($class, 'Howdah\\\\Runtime\\\\')) {{ require '{}' . substr($class, 15) . '.php'; }} }});",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../php/runtime/src/")
    );
    run(
        Kind::Classic,
        |s| {
            s.workers(1)
                .ini("display_errors", "0")
                .expect_log("thrown on purpose")
                .setting("mode", "\"worker\"")
                .setting("script", "\"../root/worker.php\"")
                .library("autoload.php", &autoload)
                .file("worker.php", format!("<?php\n{PSR15}\n{}", PSR15_APP.replace("FACTORY", factory)))
        },
        |site| {
            let host = format!("localhost:{}", site.port());
            let first = site.conn().exchange(&Request::get("/ready")).json()[0].as_u64().unwrap();
            let form = Request::form("/p/a%20b?q=1&l[]=2", "a=1&b[]=2")
                .header("Host", &host)
                .header("Cookie", "c=3; d=4")
                .header("X-Mark", "m");
            let told = site.send(&form).expect(203);
            assert_eq!((told.reason.as_str(), told.header("content-type")), ("Told", Some("application/json")));
            assert_eq!((told.all("x-two"), told.all("set-cookie")), (vec!["a", "b"], vec!["one=1", "two=2"]));
            assert!(told.body.len() > 200_000);
            let expected = serde_json::json!([
                first + 1, "POST", format!("http://{host}/p/a%20b?q=1&l[]=2"), { "q": "1", "l": ["2"] },
                { "a": "1", "b": ["2"] }, { "c": "3", "d": "4" }, "m", 9, [], "1.1", "127.0.0.1"
            ]);
            let mut seen = told.json();
            // One of the packages encodes the brackets in a query.
            seen[2] = seen[2].as_str().unwrap().replace("%5B", "[").replace("%5D", "]").into();
            assert_eq!(seen, expected);
            let json = site.send(&Request::post("/j", "application/json", "{\"a\":1}")).expect(203).json();
            assert_eq!((&json[4], &json[7]), (&serde_json::Value::Null, &7.into()), "only forms are parsed");
            let upload =
                multipart("/u", &[Part { name: "f[]", file: Some(("a.txt", "text/plain")), content: b"small" }]);
            let files = &site.send(&upload).expect(203).json()[8];
            assert_eq!(*files, serde_json::json!([["a.txt", 5, "eb5c1399a871211c7e7ed732d15e3a8b"]]));
            assert_eq!(site.get("/?throw=1").status, 500);
            let last = site.get("/").expect(203).json();
            assert_eq!(
                (&last[0], &last[3], &last[5]),
                (&(first + 5).into(), &serde_json::json!([]), &serde_json::json!([]))
            );
        },
    );
}

#[test]
fn psr15_with_nyholms_messages() {
    a_psr15_application_is_served("/usr/share/php/Nyholm/Psr7/autoload.php", "Nyholm\\Psr7\\Factory\\Psr17Factory");
}

#[test]
fn psr15_with_guzzles_messages() {
    a_psr15_application_is_served("/usr/share/php/GuzzleHttp/Psr7/autoload.php", "GuzzleHttp\\Psr7\\HttpFactory");
}

#[test]
fn stubs_say_what_is_there() {
    let stubs = include_str!("../../php/stubs/howdah.stub.php");
    // The stub file under other names, then each of its functions and constants beside the real one.
    let code = "$text = preg_replace(['/^<\\?php/', '/^namespace \\{/m', '/^namespace Howdah \\{/m'], ['', 'namespace Stub {', 'namespace Stub\\Howdah {'], file_get_contents(__DIR__ . '/stubs.txt'));
        eval($text); $wrong = []; $n = 0;
        $describe = fn (ReflectionFunction $f) => [array_map(fn ($p) => [$p->getName(), (string) $p->getType(), $p->isOptional() ? $p->getDefaultValue() : '-'], $f->getParameters()), (string) $f->getReturnType()];
        foreach (get_defined_functions()['user'] as $name) {
            if (!str_starts_with($name, 'stub\\\\')) { continue; }
            $n++; $real = substr($name, 5);
            if (!function_exists($real)) { $wrong[] = \"$real is not there\"; continue; }
            [$said, $is] = [$describe(new ReflectionFunction($name)), $describe(new ReflectionFunction($real))];
            if ($said !== $is) { $wrong[] = [$real, $said, $is]; }
        }
        foreach (get_defined_constants(true)['user'] as $name => $value) {
            if (str_starts_with($name, 'Stub\\\\')) { $n++; if (constant(substr($name, 5)) !== $value) { $wrong[] = $name; } }
        }
        echo json_encode([$n > 15, $wrong]);";
    run(
        Kind::Classic,
        |s| s.file("stubs.txt", stubs).php("check.php", code),
        |site| assert_eq!(site.get_ok("/check.php"), "[true,[]]"),
    );
}
