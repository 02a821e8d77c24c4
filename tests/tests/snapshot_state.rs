//! Snapshot mode: whatever a request does to its process is gone with the next one, and nothing random comes twice.

use howdah_tests::{Kind, Part, Request, Setup, Site, multipart, run};
use std::collections::HashSet;

/// The ways to find written pages; the engine takes the first that works, and all have to.
const WAYS: [&str; 3] = ["scan", "pagemap", "fork"];

/// A worker script that runs `$handle` for each request; `code` defines it. Readiness asks for `/gate.php`.
fn by_script(setup: Setup, code: &str) -> Setup {
    setup
        .workers(1)
        .setting("mode", "\"snapshot\"")
        .setting("script", "\"../root/worker.php\"")
        .php("worker.php", &format!("{code}\nwhile (frankenphp_handle_request($handle)) {{}}"))
        .php("index.php", "echo 'the front controller ran, and not the worker script';")
}

/// A boot file; requests run their own scripts.
fn by_boot_file(setup: Setup, code: &str) -> Setup {
    setup.workers(1).setting("mode", "\"snapshot\"").setting("boot", "\"../root/boot.php\"").php("boot.php", code)
}

fn forced(setup: Setup, way: &str) -> Setup {
    setup.env("HOWDAH_SNAPSHOT_PAGES", way)
}

/// Everything that a script can leave behind, reported before it is left behind.
const LEAK: &str = r"
$report = [];
$report['static'] = Leaky::$n++; $report['function'] = counter(); $report['global'] = $GLOBALS['leak'] ?? null; $GLOBALS['leak'] = str_repeat('x', 3000);
$report['boot'] = $GLOBALS['boot']; $GLOBALS['boot'] = 'changed';
$report['ini'] = ini_get('precision'); ini_set('precision', '3');
$report['env'] = getenv('LEAK'); putenv('LEAK=1');
$report['cwd'] = getcwd(); chdir('/');
$report['umask'] = umask(); umask(0);
$report['zone'] = date_default_timezone_get(); date_default_timezone_set('Asia/Tokyo');
$report['locale'] = setlocale(LC_CTYPE, 0); setlocale(LC_ALL, 'C.UTF-8');
$report['constant'] = defined('LEAK'); define('LEAK', 1);
$report['class'] = class_exists('Made', false); eval('class Made {}');
$report['alias'] = class_exists('Other', false); class_alias('Leaky', 'Other');
$report['wrapper'] = in_array('leak', stream_get_wrappers()); stream_wrapper_register('leak', 'Leaky');
$report['handler'] = set_error_handler(fn () => true) !== null; set_exception_handler(fn () => null);
$report['autoload'] = count(spl_autoload_functions()); spl_autoload_register(fn () => null);
$report['object'] = $GLOBALS['thing']->list; $GLOBALS['thing']->list[] = 1;
$report['included'] = count(get_included_files()); 
$report['multibyte'] = mb_internal_encoding(); mb_internal_encoding('ISO-8859-1');
$report['mt'] = 0; mt_srand(5);
ob_start(fn ($b) => $b); register_shutdown_function(fn () => null);
$GLOBALS['cycle'] = new Leaky; $GLOBALS['cycle']->list = [$GLOBALS['cycle']];
echo json_encode($report);
";

const LEAK_BOOT: &str =
    "class Leaky { public static $n = 0; public $list = []; } function counter() { static $n = 0; return $n++; }
$GLOBALS['boot'] = 'as booted'; $GLOBALS['thing'] = new Leaky;";

fn all_answers_are_equal(site: &Site, target: &str, times: usize) {
    let mut conn = site.conn();
    let first = conn.exchange(&Request::get(target)).expect(200).text();
    assert!(first.contains("\"boot\":\"as booted\"") && first.contains("\"static\":0"), "{first}");
    for n in 1..times {
        let next = conn.exchange(&Request::get(target)).expect(200).text();
        assert_eq!(next, first, "answer {n}");
    }
}

#[test]
fn nothing_is_left_of_a_request_by_any_way() {
    for way in WAYS {
        run(
            Kind::Classic,
            |s| forced(by_script(s, &format!("{LEAK_BOOT} $handle = function () {{ {LEAK} }};")), way),
            |site| {
                all_answers_are_equal(site, "/", if way == "fork" { 50 } else { 500 });
                let status = String::from_utf8(site.howdah().command(&["status", "--json"]).stdout).unwrap();
                let name = if way == "scan" { "pagemap_scan" } else { way };
                assert!(status.contains(&format!("\"snapshot_pages\": \"{name}\"")), "{status}");
            },
        );
    }
}

/// The engine remembers which places of a page requests write to: here each request writes to another one, of many in few
/// pages, and looks at all of them.
#[test]
fn a_place_that_no_request_wrote_to_before_is_put_back() {
    const HANDLE: &str =
        "$GLOBALS['table'] = []; // one array that is changed where it is, and not a copy of a constant
        for ($i = 0; $i < 20000; $i++) { $GLOBALS['table'][] = $i; }
        $handle = function () {
            $changed = 0;
            for ($i = 0; $i < 20000; $i++) { $changed += (int) ($GLOBALS['table'][$i] !== $i); }
            $GLOBALS['table'][(int) ($_GET['n'] ?? 0) * 7919 % 20000] ^= 1;
            echo $changed;
        };";
    for copy in ["lines", "differences", "all"] {
        run(
            Kind::Classic,
            |s| by_script(s, HANDLE).env("HOWDAH_SNAPSHOT_COPY", copy),
            |site| {
                let mut conn = site.conn();
                for n in 0..2000 {
                    assert_eq!(
                        conn.exchange(&Request::get(&format!("/?n={n}"))).expect(200).text(),
                        "0",
                        "{copy}, {n}"
                    );
                }
            },
        );
    }
}

#[test]
fn nothing_is_left_of_a_request_after_a_boot_file() {
    run(
        Kind::Classic,
        |s| {
            by_boot_file(s, LEAK_BOOT)
                .php("leak.php", &format!("require_once __DIR__ . '/boot.php'; function only_here() {{}} {LEAK}"))
        },
        |site| all_answers_are_equal(site, "/leak.php", 500),
    );
}

#[test]
fn the_request_itself_is_new() {
    run(
        Kind::Classic,
        |s| {
            by_script(s, "$handle = function () { echo json_encode([$_GET, $_POST, $_COOKIE, $_REQUEST, $_SERVER['REQUEST_URI'],
                file_get_contents('php://input'), array_column($_FILES, 'size'), abs($_SERVER['REQUEST_TIME'] - time()) < 60]);
                foreach ($_FILES as $f) { header('X-Temp: ' . $f['tmp_name']); } };")
        },
        |site| {
            assert_eq!(site.get_ok("/a?g=1"), r#"[{"g":"1"},[],[],{"g":"1"},"\/a?g=1","",[],true]"#);
            let form = Request::form("/b", "p=2").header("Cookie", "c=3");
            assert_eq!(
                site.send(&form).expect(200).text(),
                r#"[[],{"p":"2"},{"c":"3"},{"p":"2"},"\/b","p=2",[],true]"#
            );
            let upload = multipart("/c", &[Part { name: "f", file: Some(("a", "text/plain")), content: b"12345" }]);
            let answer = site.send(&upload).expect(200);
            assert!(answer.text().contains("[5]"), "{}", answer.text());
            let temporary = answer.header("x-temp").unwrap().to_owned();
            assert_eq!(site.get_ok("/d"), r#"[[],[],[],[],"\/d","",[],true]"#);
            assert!(!std::path::Path::new(&temporary).exists(), "{temporary} was left behind");
        },
    );
}

#[test]
fn shutdown_functions_and_destructors_run_before_the_restore() {
    run(
        Kind::Classic,
        |s| {
            by_boot_file(
                s,
                "class D { function __construct(public $name) {} function __destruct() { echo \"[$this->name]\"; } }
                $booted = new D('boot'); register_shutdown_function(function () { echo '[shutdown]'; });",
            )
            .php("index.php", "$mine = new D('mine'); $keep = [new D('inner')]; echo 'body';")
        },
        |site| {
            for _ in 0..3 {
                assert_eq!(site.get_ok("/index.php"), "body[shutdown][mine][boot][inner]");
            }
        },
    );
}

#[test]
fn a_script_that_ends_badly_is_answered_and_undone() {
    run(
        Kind::Classic,
        |s| {
            by_script(s, "$n = 0; $handle = function () use (&$n) { $n++; switch ($_GET['do'] ?? '') {
                case 'exit': exit('bye'); case 'throw': throw new Exception('thrown here'); case 'call': no_such_function();
                case 'memory': $x = str_repeat('x', 1 << 30); case 'time': set_time_limit(1); while (true) {} } echo $n, ' ', getmypid(); };")
            .ini("display_errors", "0")
            .expect_log("thrown here")
            .expect_log("no_such_function")
            .expect_log("Allowed memory size")
            .expect_log("Maximum execution time")
        },
        |site| {
            let clean = site.get_ok("/");
            assert!(clean.starts_with("1 "), "{clean}");
            assert_eq!(site.get_ok("/?do=exit"), "bye");
            for bad in ["throw", "call", "memory", "time"] {
                assert_eq!(site.get(&format!("/?do={bad}")).status, 500, "{bad}");
                assert_eq!(site.get_ok("/"), clean, "after {bad}: same process, same state");
            }
        },
    );
}

#[test]
fn no_random_value_comes_twice() {
    const COUNT: usize = 10_000;
    let code = "$unseeded = [new Random\\Engine\\Mt19937(), new Random\\Engine\\PcgOneseq128XslRr64(), new Random\\Engine\\Xoshiro256StarStar()];
        $chosen = new Random\\Engine\\Mt19937(42); $randomizer = new Random\\Randomizer(); $letters = range('a', 'z'); mt_rand(); lcg_value(); random_bytes(4); openssl_random_pseudo_bytes(8);
        $handle = function () use ($unseeded, $chosen, $randomizer) { $letters = range('a', 'z'); shuffle($letters);
            echo json_encode([mt_rand() . mt_rand(), rand() . rand(), random_int(0, PHP_INT_MAX), bin2hex(random_bytes(16)), implode($letters), uniqid('', true),
                lcg_value() . lcg_value(), bin2hex(openssl_random_pseudo_bytes(16)), session_create_id(), password_hash('x', PASSWORD_BCRYPT, ['cost' => 4]),
                ...array_map(fn ($e) => bin2hex($e->generate() . $e->generate()), $unseeded),
                bin2hex($randomizer->getBytes(16)), bin2hex((new Random\\Engine\\Mt19937())->generate() . (new Random\\Engine\\Xoshiro256StarStar())->generate()),
                str_shuffle('abcdefghijklmnopqrstuvwxyz'), implode(',', array_rand(range(1, 200), 40)), bin2hex($chosen->generate())]); };";
    run(
        Kind::Classic,
        |s| by_script(s, code).workers(2),
        |site| {
            // Two values where one has 31 bits only: among 10,000 of those some repeat by chance.
            let mut seen: Vec<HashSet<String>> = vec![HashSet::new(); 17];
            let mut chosen = HashSet::new();
            let mut conn = site.conn();
            for n in 0..COUNT {
                let values = conn.exchange(&Request::get("/")).expect(200).json();
                for (i, set) in seen.iter_mut().enumerate() {
                    assert!(set.insert(values[i].to_string()), "value {i} of request {n} came before: {}", values[i]);
                }
                chosen.insert(values[17].to_string());
            }
            assert_eq!(chosen.len(), 1, "a seed of the application's own is kept");
        },
    );
}

/// Numbers of a worker that must not grow.
fn sizes(site: &Site, pid: &str) -> (usize, usize, u64) {
    assert!(site.get("/ready.txt").status == 200);
    howdah_tests::process::wait_until_asleep(pid.parse().unwrap());
    let count = |what: &str| std::fs::read_dir(format!("/proc/{pid}/{what}")).unwrap().count();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().lines().count();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let own = status.lines().find_map(|l| l.strip_prefix("RssAnon:")).unwrap().trim().trim_end_matches(" kB");
    (count("fd"), maps, own.parse().unwrap())
}

#[test]
fn descriptors_mappings_and_memory_stay_as_they_are() {
    let code = "$boot = fopen(__FILE__, 'r'); $at = ftell($boot); $handle = function () use ($boot, $at) {
            if (ftell($boot) !== $at || fgets($boot) !== \"<?php\\n\") { echo 'moved'; }
            $GLOBALS['open'] = [fopen('/etc/passwd', 'r'), tmpfile(), fopen('php://temp/maxmemory:1', 'w+'), stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0)];
            $GLOBALS['large'] = str_repeat('x', random_int(1, 9) << 20); static $list = []; for ($i = 0; $i < 2000; $i++) { $list[] = [$i]; }
            if (random_int(0, 9) === 0) { fclose($boot); } echo getmypid(); };";
    run(
        Kind::Classic,
        |s| by_script(s, code),
        |site| {
            let mut conn = site.conn();
            let pid = conn.exchange(&Request::get("/")).expect(200).text();
            for _ in 0..500 {
                assert_eq!(conn.exchange(&Request::get("/")).expect(200).text(), pid);
            }
            let before = sizes(site, &pid);
            for _ in 0..10_000 {
                assert_eq!(conn.exchange(&Request::get("/")).expect(200).text(), pid);
            }
            let after = sizes(site, &pid);
            assert_eq!((before.0, before.1), (after.0, after.1), "descriptors and mappings");
            assert!(after.2 < before.2 + 4096, "its own memory grew from {} to {} kB", before.2, after.2);
        },
    );
}

#[test]
fn howdahs_own_functions() {
    run(
        Kind::Classic,
        |s| {
            by_boot_file(s, "$order = ['boot']; Howdah\\on_restore(function () use (&$order) { $order[] = 'restored ' . ($_GET['n'] ?? ''); });
                $order[] = Howdah\\snapshot() ? 'taken' : 'refused'; $order[] = 'again ' . json_encode(Howdah\\snapshot());")
            .php("index.php", "echo Howdah\\mode(), ' ', implode(', ', $order);")
        },
        |site| {
            for n in ["1", "2"] {
                let text = site.get_ok(&format!("/index.php?n={n}"));
                assert_eq!(text, format!("snapshot boot, restored {n}, taken, again false"));
            }
        },
    );
}

#[test]
fn warm_up_is_in_the_snapshot() {
    run(
        Kind::Classic,
        |s| {
            by_script(s, "$loaded = []; $handle = function () use (&$loaded) { $loaded[] = $_SERVER['REQUEST_URI']; echo json_encode($loaded, JSON_UNESCAPED_SLASHES); };")
                .setting("warmup", "[\"/warm?a=1\", \"/other\"]")
        },
        |site| {
            for _ in 0..3 {
                let warm = r#""/warm?a=1","/other","#.repeat(3);
                assert_eq!(site.get_ok("/real"), format!(r#"[{warm}"/real"]"#));
            }
        },
    );
}

#[test]
fn a_boot_file_that_ends_early_is_reported() {
    run(
        Kind::Classic,
        |s| {
            by_boot_file(s, "exit(0);")
                .expect_boot_failure()
                .expect_log("did not reach its end")
                .expect_log("ended before it was ready")
        },
        |site| {
            let _ = site.wait_for_log(&["ended before it was ready"]);
            // Its PHP request ends in good order: a block of memory once belonged to the heap of PHP's startup.
            assert!(!site.log().contains("corrupted"), "{}", site.log());
        },
    );
}

/// PHP's start had left memory in a heap that was replaced: the end of the worker's script freed it in the wrong one.
#[test]
fn a_snapshot_worker_ends_in_good_order() {
    run(
        Kind::Classic,
        |s| by_script(s, "$handle = function () { echo 'ok'; };"),
        |site| {
            assert_eq!(site.get_ok("/"), "ok");
            assert!(site.howdah().command(&["reload"]).status.success());
            assert_eq!(site.get_ok("/"), "ok");
            assert!(site.howdah().command(&["stop"]).status.success());
            assert!(!site.log().contains("corrupted"), "{}", site.log());
        },
    );
}

fn restored_pages(site: &Site) -> u64 {
    let out = site.howdah().command(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let worker = &status["pools"][0]["workers"][0];
    assert!(worker["snapshot_restore_us"].as_f64().unwrap() > 0.0, "{worker}");
    worker["snapshot_restored_pages"].as_u64().unwrap()
}

/// Memory that a request allocates lies outside of the application's, whatever was free there, and is not restored.
#[test]
fn what_a_request_allocates_is_not_restored() {
    run(
        Kind::Classic,
        // Memory that is free at the snapshot, in pieces of many sizes between others that stay.
        |s| {
            by_script(
                s,
                "$kept = []; for ($i = 0; $i < 20000; $i++) { $kept[] = str_repeat('x', 16 + $i % 2500); }
                for ($i = 0; $i < 20000; $i += 2) { $kept[$i] = null; }
                $handle = function () { $own = [];
                    for ($i = 0; $i < (int) ($_GET['n'] ?? 0); $i++) { $own[] = str_repeat('y', 16 + $i % 2500); } echo count($own); };",
            )
        },
        |site| {
            let mut conn = site.conn();
            let mut pages = |n: usize| {
                // The numbers of a restore travel with the next answer.
                for _ in 0..3 {
                    assert_eq!(conn.exchange(&Request::get(&format!("/?n={n}"))).expect(200).text(), n.to_string());
                }
                restored_pages(site)
            };
            let few = pages(1);
            let many = pages(2000); // some 2.5 MB, or 600 pages
            assert!(
                few > 0 && many < few + 60,
                "{few} pages are restored after a small request, {many} after a large one"
            );
        },
    );
}

/// What a rare request has written is not copied back for ever after, and is clean each time it is written again.
#[test]
fn pages_that_only_a_rare_request_has_written_are_given_back() {
    let code = "$data = []; for ($i = 0; $i < 500; $i++) { $data[] = str_repeat('x', 3500 + $i); }
        $handle = function () use (&$data) { $found = 0;
            for ($i = isset($_GET['write']) ? 0 : 500; $i < 500; $i++) { $found += $data[$i][9] !== 'x'; $data[$i][9] = 'y'; }
            echo $found; };";
    for way in ["scan", "pagemap"] {
        run(
            Kind::Classic,
            |s| forced(by_script(s, code), way),
            |site| {
                let mut conn = site.conn();
                let mut ask = |target: &str, times: usize| {
                    for _ in 0..times {
                        assert_eq!(conn.exchange(&Request::get(target)).expect(200).text(), "0");
                    }
                    restored_pages(site)
                };
                let many = ask("/?write", 3);
                assert!(many > 400, "{many} pages are restored after 500 were written");
                assert!(ask("/", 5) > 400, "known pages are copied back");
                let few = ask("/", 200);
                assert!(few < 200, "{few} pages are restored after 200 requests that wrote to none of them");
                assert!(ask("/?write", 3) > 400);
                assert!(ask("/", 1100) < 200);
            },
        );
    }
}

/// A request may free objects of the application and put its own in their place.
#[test]
fn objects_in_the_place_of_the_applications_are_known_as_the_requests() {
    run(
        Kind::Classic,
        |s| {
            by_boot_file(
                s,
                "class D { function __construct(public $name) {} function __destruct() { echo \"[$this->name]\"; } }
                $holes = []; for ($i = 0; $i < 300; $i++) { $holes[] = new ArrayObject; if ($i === 150) { $booted = new D('boot'); } }
                for ($i = 0; $i < 300; $i += 3) { unset($holes[$i]); } unset($i);",
            )
            .php("index.php", "$booted = null; $mine = [new D('mine')]; echo 'body'; $other = [new D('other')];")
        },
        |site| {
            for _ in 0..3 {
                assert_eq!(site.get_ok("/index.php"), "[boot]body[mine][other]");
            }
        },
    );
}
