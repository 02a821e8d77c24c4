//! A Symfony and a Laravel project in Composer's layout, on Debian's packages, served by `howdah serve` alone. Its
//! recipe boots each once, and the responses are those of classic mode. Projects that do not boot are served in classic
//! mode.

use super::project::{INDEX, KERNEL, LARAVEL, OF_LARAVEL, Project, need_symfony};
use howdah_tests::Request;
use howdah_tests::howdah::{php_program, program};
use howdah_tests::process::{PATIENCE, eventually};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

const PAGES: &[&str] =
    &["/env", "/zone", "/items/4", "/server", "/session", "/nowhere", "/broken", "/style.css", "/other.php", "/.env"];

#[test]
fn a_symfony_project_is_booted_unmodified_and_responds_as_in_classic_mode() {
    need_symfony!();
    let project = Project::symfony();
    let served = project.classic();
    served.wait_for_mode("classic");
    let classic = served.pages(PAGES);
    assert!(classic[0].contains(r#"["hello","hello",false,"prod",false]"#), "{}", classic[0]);
    assert!(classic[4].contains("1 of session, 1 here") && classic[5].contains(" 404 "), "{classic:?}");
    let said = served.finish();
    assert!(said.contains("classic mode; faster: snapshot mode by the recipe symfony"), "{said}");

    let served = project.serve(&[]);
    served.wait_for_mode("snapshot");
    for _ in 0..3 {
        assert_eq!(served.pages(PAGES), classic);
    }
    let terminated = |path: &str| project.read("var/terminated").lines().filter(|line| *line == path).count();
    let before = terminated("/items/77");
    assert_eq!(served.get("/items/77"), (200, "item 77".to_owned()));
    assert!(eventually(PATIENCE, || terminated("/items/77") == before + 1), "terminate() has not run");
    let said = served.finish();
    assert!(said.contains("booted once, in snapshot mode by the recipe symfony"), "{said}");
}

/// Compares a page of a project in classic mode with repeated requests to the booted project.
fn is_the_same_when_booted(project: &Project, path: &str, shown: &str) {
    let served = project.classic();
    served.wait_for_mode("classic");
    let classic = served.pages(&[path]);
    assert!(classic[0].contains(shown), "{classic:?}");
    served.finish();
    let served = project.serve(&[]);
    served.wait_for_mode("snapshot");
    for _ in 0..3 {
        assert_eq!(served.pages(&[path]), classic);
    }
    served.finish();
}

/// FrameworkBundle 6.4 sets variables like this.
#[test]
fn variables_that_a_bundle_sets_when_it_boots_are_there_for_each_request() {
    need_symfony!();
    let project = Project::symfony();
    let bundle = "final class OwnBundle extends \\Symfony\\Component\\HttpKernel\\Bundle\\Bundle
        { public function boot(): void { $_ENV['OF_BUNDLE'] = $_SERVER['OF_BUNDLE'] ??= 'set'; } }";
    let registered = "yield new FrameworkBundle(); yield new OwnBundle();";
    project.write("src/Kernel.php", &(KERNEL.replace("yield new FrameworkBundle();", registered) + bundle));
    is_the_same_when_booted(&project, "/server", "\"OF_BUNDLE\": \"set\"");
}

#[test]
fn variables_that_laravels_bootstrap_sets_are_there_for_each_request() {
    if !Path::new(LARAVEL).exists() {
        howdah_skip::skip!("laravel", "Debian's php-laravel-framework is not installed");
    }
    let project = Project::of(OF_LARAVEL);
    let bootstrap = project.read("bootstrap/app.php").replace("<?php", "<?php\n$_SERVER['OF_BOOTSTRAP'] = 'set';");
    project.write("bootstrap/app.php", &bootstrap);
    let routes = project.read("routes/web.php") + "Route::get('/server', fn () => [$_SERVER['OF_BOOTSTRAP'] ?? null]);";
    project.write("routes/web.php", &routes);
    is_the_same_when_booted(&project, "/server", "[\"set\"]");
}

#[test]
fn two_visitors_of_a_booted_application_do_not_see_each_other() {
    need_symfony!();
    let project = Project::symfony();
    let served = project.serve(&[]);
    served.wait_for_mode("snapshot");
    let mut cookies: Vec<String> = Vec::new();
    for visitor in 0..3 {
        for n in 1..=3 {
            let request = Request::get("/session");
            let request = match cookies.get(visitor) {
                Some(cookie) => request.header("Cookie", cookie),
                None => request,
            };
            let response = served.send(request);
            assert_eq!(response.text(), format!("{n} of session, 1 here"));
            if let Some(cookie) = response.header("set-cookie").filter(|_| n == 1) {
                cookies.push(cookie.split(';').next().unwrap().to_owned());
            }
        }
    }
    assert!(cookies[0] != cookies[1] && cookies[1] != cookies[2], "{cookies:?}");
    served.finish();
}

#[test]
fn a_booted_application_follows_its_settings_and_in_debug_mode_its_code() {
    need_symfony!();
    let project = Project::symfony();
    project.write(".env", "APP_ENV=dev\nAPP_SECRET=secret\nGREETING=hello\n");
    // The classic pool, which serves before the boot, must check files at every request, not every other second.
    let served = project.serve(&["-d", "opcache.revalidate_freq=0"]);
    served.wait_for_mode("snapshot");
    assert!(served.get("/env").1.contains(r#"["hello","hello",false,"dev",true]"#));
    project.write(".env", "APP_ENV=dev\nAPP_SECRET=secret\nGREETING=bye\n");
    for _ in 0..4 {
        assert!(served.get("/env").1.contains(r#"["bye","bye",false,"dev",true]"#));
    }
    // A file that the boot looked for and did not find.
    project.write(".env.local", "GREETING=local\n");
    for _ in 0..4 {
        assert!(served.get("/env").1.contains(r#"["local","local",false,"dev",true]"#));
    }
    fs::remove_file(project.dir.join(".env.local")).unwrap();
    for _ in 0..4 {
        assert!(served.get("/env").1.contains(r#"["bye","bye",false,"dev",true]"#));
    }
    project.write("src/Kernel.php", &KERNEL.replace("\"item $id\"", "\"new item $id\""));
    for _ in 0..4 {
        assert_eq!(served.get("/items/1"), (200, "new item 1".to_owned()), "{}", served.log());
    }
    served.finish();
}

/// A removed file has no modification time by which the next check could detect its removal.
#[test]
fn settings_that_are_removed_while_an_application_boots_are_not_served() {
    need_symfony!();
    let project = Project::symfony();
    let bundle = "final class OwnBundle extends \\Symfony\\Component\\HttpKernel\\Bundle\\Bundle
        { public function boot(): void { \\Howdah\\mode() === 'snapshot' && @unlink(__DIR__ . '/../.env.local'); } }";
    let registered = "yield new FrameworkBundle(); yield new OwnBundle();";
    project.write("src/Kernel.php", &(KERNEL.replace("yield new FrameworkBundle();", registered) + bundle));
    project.write(".env.local", "GREETING=local\n");
    // A file written in the second in which the boot begins counts as changed.
    let written = fs::metadata(project.dir.join(".env.local")).unwrap().ctime();
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    assert!(eventually(PATIENCE, || now() > written.unsigned_abs()));
    let served = project.serve(&[]);
    served.wait_for_mode("snapshot");
    assert!(!project.dir.join(".env.local").exists());
    for _ in 0..4 {
        let (_, told) = served.get("/env");
        assert!(told.contains(r#"["hello","hello""#), "{told}: {}", served.log());
    }
    served.finish();
}

#[test]
fn a_front_controller_that_does_more_is_served_in_classic_mode() {
    need_symfony!();
    let project = Project::symfony();
    project.write(
        "public/index.php",
        &INDEX.replace("return function", "$_SERVER['SEEN'] = $_GET['a'] ?? 'none';\n\nreturn function"),
    );
    let served = project.serve(&[]);
    for n in 0..20 {
        assert_eq!(served.get(&format!("/items/{n}")), (200, format!("item {n}")));
    }
    served.wait_for_log("it does more than return the application; the pool default serves in classic mode");
    served.wait_for_mode("classic");
    served.finish();
}

#[test]
fn a_page_that_fails_in_the_warm_up_keeps_the_application_in_classic_mode() {
    need_symfony!();
    let project = Project::symfony();
    project.write("var/broken", "");
    let served = project.serve(&[]);
    served.wait_for_log("warm-up: / was answered with status 500; the pool default serves in classic mode");
    served.wait_for_mode("classic");
    served.finish();
}

/// A project that does not boot is still served, so it is no reason to refuse the successor.
#[test]
fn a_server_that_fell_back_to_classic_mode_can_be_upgraded() {
    need_symfony!();
    let project = Project::symfony();
    project.write("var/broken", "");
    let mut served = project.serve(&[]);
    served.wait_for_log("; the pool default serves in classic mode");
    served.wait_for_mode("classic");
    project.command(&["upgrade"]);
    served.wait_for_mode("classic");
    project.command(&["stop"]);
    let old = served.child.take().unwrap().wait_with_output().unwrap();
    assert!(old.status.success(), "{}", served.log());
}

#[test]
fn an_application_that_stops_booting_falls_back_without_losing_requests_and_recovers() {
    need_symfony!();
    let project = Project::symfony();
    let served = project.serve(&[]);
    served.wait_for_mode("snapshot");
    let over = AtomicBool::new(false);
    let statuses = std::thread::scope(|scope| {
        let visits = || {
            let mut seen = Vec::new();
            while !over.load(Ordering::Relaxed) {
                seen.push(served.get("/items/1").0);
            }
            seen
        };
        let visitors = [scope.spawn(visits), scope.spawn(visits)];
        // The front controller's own code still works: only code that runs once at boot does not.
        let broken = INDEX
            .replace("return new Kernel", "if (Howdah\\mode() === 'snapshot') { exit(3); }\n    return new Kernel");
        project.write("public/index.php", &broken);
        served.wait_for_mode("classic");
        served.wait_for_log("the pool default serves in classic mode, which takes 1.5 to 4 times the processor time");
        project.write("public/index.php", INDEX);
        served.wait_for_mode("snapshot");
        over.store(true, Ordering::Relaxed);
        visitors.map(|visitor| visitor.join().unwrap())
    });
    let statuses = statuses.concat();
    assert!(statuses.len() > 10 && statuses.iter().all(|status| *status == 200), "{statuses:?} {}", served.log());
    served.finish();
}

#[test]
fn a_page_that_kills_its_workers_is_run_in_classic_mode() {
    need_symfony!();
    let project = Project::symfony();
    let served = project.serve(&[]);
    served.wait_for_mode("snapshot");
    for _ in 0..3 {
        assert_eq!(served.get("/kill"), (200, "alive".to_owned()), "{}", served.log());
    }
    served.wait_for_log("worker died: running the request in pool default");
    // Then the route is demoted, and the rest stays in snapshot mode.
    served.wait_for_log("demoted: its requests run in the pool default in classic mode from now on");
    served.wait_for_mode("snapshot");
    served.finish();
}

#[test]
fn a_page_that_kills_its_worker_is_not_run_again_where_the_settings_forbid_it() {
    need_symfony!();
    let project = Project::symfony();
    let served = project.serve(&["--set", "replay=0"]);
    served.wait_for_mode("snapshot");
    assert_eq!(served.get("/kill").0, 502, "{}", served.log());
    assert!(!served.log().contains("running the request"), "{}", served.log());
    served.finish();
}

#[test]
fn a_page_of_a_booted_application_that_differs_is_run_in_classic_mode() {
    need_symfony!();
    let project = Project::symfony();
    project.write("howdah.toml", "app = \"symfony\"\nmode = \"worker\"\ncompare_one_in = 1\n");
    let served = project.serve(&[]);
    served.wait_for_mode("worker");
    // The page counts its visits in a static property.
    let demoted = || {
        served.get("/");
        served.log().contains("demoted: its requests run in the pool default")
    };
    assert!(eventually(PATIENCE, demoted), "{}", served.log());
    assert_eq!(served.get("/"), (200, "home of hello 1".to_owned()));
    served.wait_for_mode("worker");
    served.finish();
}

#[test]
fn a_pool_learns_its_warm_up_requests_from_traffic() {
    need_symfony!();
    let project = Project::symfony();
    let served = project.serve(&[]);
    served.wait_for_mode("snapshot");
    for n in 0..120 {
        assert_eq!(served.get(&format!("/items/{n}")).0, 200);
        served.get("/nowhere?token=0123456789abcdef0123456789abcdef");
    }
    served.wait_for_log("from traffic; starting new workers with it");
    served.wait_for_log("reload: new workers serve");
    let terminated = project.read("var/terminated").lines().count();
    assert_eq!(served.get("/items/5"), (200, "item 5".to_owned()));
    assert!(terminated > 120, "the warm-up requests the learned paths");
    let log = served.finish();
    let line = log.lines().find(|line| line.contains("warm-up: learned")).unwrap();
    assert!(line.contains("/items/") && !line.contains("nowhere"), "{line}");

    // After the next start it applies before the first request.
    project.write("var/terminated", "");
    let served = project.serve(&[]);
    served.wait_for_log("before this start");
    served.wait_for_mode("snapshot");
    let asked = project.read("var/terminated");
    assert!(
        asked.lines().any(|path| path.starts_with("/items/")),
        "the warm-up requested only {asked}: {}",
        served.log()
    );
    assert_eq!(served.get("/items/7"), (200, "item 7".to_owned()));
    served.finish();
}

#[test]
fn a_recipe_is_written_down_by_init_and_an_explicit_mode_counts_more() {
    need_symfony!();
    let project = Project::symfony();
    let command = |arguments: &[&str]| {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(&project.dir).env("HOWDAH_ALLOW_ROOT", "true");
        let output = command.env("HOWDAH_PHP", php_program()).output().unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
        )
    };
    // However the directory is spelled.
    let served = project.serve(&["./public/"]);
    served.wait_for_mode("snapshot");
    served.finish();
    assert!(command(&["init"]).0);
    assert!(project.read("howdah.toml").contains("app = \"symfony\"\n"));
    let served = project.serve(&[]);
    served.wait_for_mode("snapshot");
    served.finish();
    let served = project.classic();
    served.wait_for_mode("classic");
    served.finish();
    let served = project.serve(&["--mode", "worker"]);
    served.wait_for_mode("worker");
    assert_eq!(served.get("/items/3"), (200, "item 3".to_owned()));
    served.finish();
    for (flags, what) in [
        (["--app", "nothing"], "unknown application"),
        (["--set", "front_controller=other.php"], "`front_controller` is another script"),
    ] {
        let (done, said) = command(&[&["check"], &flags[..]].concat());
        assert!(!done && said.contains(what), "{said}");
    }
}

#[test]
fn a_laravel_project_is_booted_unmodified_and_responds_as_in_classic_mode() {
    if !Path::new(LARAVEL).exists() {
        howdah_skip::skip!("laravel", "Debian's php-laravel-framework is not installed");
    }
    let paths = [
        "/",
        "/?q=a+b",
        "/items/7?x=1",
        "/items/8",
        "/rows",
        "/check?mail=no",
        "/token",
        "/visits",
        "/queries",
        "/zone",
        "/started",
        "/nowhere",
        "/.env",
    ];
    let project = Project::of(OF_LARAVEL);
    let served = project.classic();
    served.wait_for_mode("classic");
    let classic = served.pages(&paths);
    served.finish();
    assert!(classic[0].contains("<title>Laravel</title>") && classic[2].contains("\"own\":1,\"all\":1"), "{classic:?}");

    let served = project.serve(&[]);
    served.wait_for_mode("snapshot");
    for _ in 0..3 {
        assert_eq!(served.pages(&paths), classic);
    }
    let form = |_| served.get("/form").1;
    let forms: Vec<String> = (0..3).map(form).collect();
    assert!(forms[0] != forms[1] && forms[1] != forms[2], "all visitors got one token: {forms:?}");
    assert_eq!(served.send(Request::form("/form", "a=b")).status, 419);
    assert_eq!(served.get("/terminates").1, "soon");
    assert!(eventually(PATIENCE, || project.read("storage/terminated") == "x\n"), "terminate() has not run");
    project.write(".env", "APP_NAME=\"From the environment\"\n");
    for _ in 0..4 {
        assert!(served.get("/").1.contains("<title>From the environment</title>"));
    }
    // A different front controller may do anything.
    project.write("public/index.php", "<?php echo 'own ', Howdah\\mode();");
    assert!(eventually(PATIENCE, || served.get("/").1 == "own classic"), "{}", served.log());
    served.wait_for_log("is not Laravel's own: echo 'own '");
    served.finish();
}

#[test]
fn laravel_in_worker_mode_runs_octanes_script() {
    let project = Project::of(OF_LARAVEL);
    let served = project.serve(&["--mode", "worker"]);
    served.wait_for_log("worker mode needs Laravel Octane");
    served.finish();
    let worker = "<?php
        $own = [$_SERVER['APP_BASE_PATH'], $_ENV['APP_PUBLIC_PATH'], $_SERVER['LARAVEL_OCTANE'], $_SERVER['MAX_REQUESTS'] > 1000];
        $n = 0;
        while (frankenphp_handle_request(function () use ($own, &$n) {
            echo $_SERVER['REQUEST_URI'] === '/mode' ? Howdah\\mode() . ' 1' : json_encode([...$own, ++$n], JSON_UNESCAPED_SLASHES);
        }));";
    project.write("vendor/laravel/octane/bin/frankenphp-worker.php", worker);
    let served = project.serve(&["--mode", "worker", "--workers", "1"]);
    served.wait_for_mode("worker");
    let dir = project.dir.display();
    assert_eq!(served.get("/a").1, format!("[\"{dir}\",\"{dir}/public\",\"1\",true,1]"));
    assert!(served.get("/b").1.ends_with(",2]"));
    served.finish();
}
