//! Settings from `howdah.toml`, environment and flags together: values, origins, and every error at once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod directory;

use directory::Site;
use std::time::Duration;

use howdah_config::{
    AccessTarget, ByteSize, ListenAddr, Loaded, Mode, Origin, ServeFlags, Symlinks, TrustedProxy, WorkerRange,
};

#[test]
fn defaults_are_the_documented_ones() {
    let site = Site::new("");
    std::fs::remove_file(site.path().join("howdah.toml")).unwrap();
    let Loaded { settings, origins, file, .. } = site.load().unwrap();
    assert_eq!(file, None);
    assert_eq!(settings.root, site.path());
    assert_eq!(settings.listen, [ListenAddr::Tcp("127.0.0.1:8080".parse().unwrap())]);
    assert_eq!(settings.admin, ListenAddr::Unix(site.path().join("howdah-127.0.0.1-8080.sock")));
    assert_eq!(settings.pools.len(), 1);
    let pool = &settings.pools[0];
    assert_eq!((pool.name.as_str(), pool.mode), ("default", Mode::Classic));
    assert_eq!(pool.deadline, Some(Duration::from_secs(60)));
    assert_eq!(pool.workers.min, pool.workers.max);
    assert_eq!(settings.front_controller.as_deref(), Some("index.php"));
    assert_eq!(settings.http.max_body, None, "PHP has the limit");
    assert_eq!(settings.http.server_header.as_deref(), Some("Howdah"));
    assert_eq!(settings.static_files.follow_symlinks.follow, Symlinks::Inside);
    assert_eq!(settings.log.access, AccessTarget::Off);
    assert_eq!(origins.of("listen"), Origin::Default);

    std::fs::create_dir(site.path().join("public")).unwrap();
    assert_eq!(site.load().unwrap().settings.root, site.path().join("public"));
}

#[test]
fn every_kind_of_value_is_understood() {
    let site = Site::new(
        r#"
root = "web"
listen = [":80", "[::1]:81", "unix:run/h.sock", "fastcgi:unix:run/f.sock", "fastcgi::9000"]
admin = "127.0.0.1:9"
threads = 3
grace = 5
index = "app.php"
front_controller = ""
workers = "2-8"
deadline = 0
max_memory = "256M"

[php]
ini = { memory_limit = "64M", display_errors = true, precision = 14 }

[http]
client_timeout = 1.5
max_connections = 8192
trusted_proxies = ["10.0.0.0/8", "unix", "::1"]
probes = true
server_header = ""

[log]
access = "logs/access"
"#,
    );
    std::fs::create_dir(site.path().join("web")).unwrap();
    let settings = site.load().unwrap().settings;
    assert_eq!(settings.root, site.path().join("web"));
    assert_eq!(
        settings.listen,
        [
            ListenAddr::Tcp("0.0.0.0:80".parse().unwrap()),
            ListenAddr::Tcp("[::1]:81".parse().unwrap()),
            ListenAddr::Unix(site.path().join("run/h.sock")),
            ListenAddr::FastCgiUnix(site.path().join("run/f.sock")),
            ListenAddr::FastCgiTcp("0.0.0.0:9000".parse().unwrap()),
        ]
    );
    assert_eq!(settings.admin, ListenAddr::Tcp("127.0.0.1:9".parse().unwrap()));
    assert_eq!((settings.threads, settings.grace), (3, Duration::from_secs(5)));
    assert_eq!((settings.index, settings.front_controller), (vec!["app.php".to_owned()], None));
    let pool = &settings.pools[0];
    assert_eq!(pool.workers, WorkerRange { min: 2, max: 8 });
    assert_eq!((pool.deadline, pool.max_memory), (None, Some(ByteSize(256 << 20))));
    let ini: Vec<_> = pool.php.ini.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(ini, [("display_errors", "true"), ("memory_limit", "64M"), ("precision", "14")]);
    let http = &settings.http;
    assert_eq!(http.client_timeout, Duration::from_millis(1500));
    assert_eq!((http.max_connections, http.probes, http.server_header.as_deref()), (8192, true, None));
    assert!(http.trusted_proxies.contains(&TrustedProxy::Unix));
    assert!(http.trusted_proxies[0].contains("10.9.8.7".parse().unwrap()));
    assert_eq!(settings.log.access, AccessTarget::File(site.path().join("logs/access")));
}

#[test]
fn all_errors_come_at_once_with_line_and_advice() {
    let site = Site::new(
        r#"thread = 2
workers = "8-2"
root = "nowhere"
client_timeout = "5s"

[http]
clent_timeout = "5s"
memory = "2K"
probes = "yes"
idle_timeout = 0
trusted_proxies = ["10.0.0.0/8",
  "10.0.0.0/99"]
queue = 3

[logs]
level = "info"

[pool.api]
mode = "worker"
scrpt = "a.php"

[[rule]]
path = "/api/*"
pool = "apo"
"#,
    );
    let expected = [
        "howdah.toml:1: thread: unknown key; did you mean threads?",
        "howdah.toml:2: workers: expected a number of workers (4) or a range (\"2-8\"), at most 4096, found \"8-2\"; for example: workers = \"2-16\"",
        &format!("howdah.toml:3: root: {} does not exist", site.path().join("nowhere").display()),
        "howdah.toml:4: client_timeout: unknown key; it belongs to [http]",
        "howdah.toml:7: [http] clent_timeout: unknown key; did you mean client_timeout?",
        "howdah.toml:8: [http] memory: must be from 1048576 to 1099511627776, not 2048",
        "howdah.toml:9: [http] probes: expected true or false, found \"yes\"; for example: probes = true",
        "howdah.toml:10: [http] idle_timeout: must be more than 0",
        "howdah.toml:12: [http] trusted_proxies: expected an address, a network such as \"10.0.0.0/8\", or \"unix\", or a list of such, \
         found \"10.0.0.0/99\"; for example: trusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\", \"unix\"]",
        "howdah.toml:13: [http] queue: unknown key; it belongs to the top level, before the first section",
        "howdah.toml:15: logs: unknown key; did you mean log?",
        "howdah.toml:19: [pool.api] mode: mode \"worker\" needs a script; for example: script = \"worker.php\"",
        "howdah.toml:20: [pool.api] scrpt: unknown key; did you mean script?",
        "howdah.toml:22: [rule] pool: there is no pool \"apo\": add [pool.apo]",
    ];
    assert_eq!(site.errors(), expected);
}

#[test]
fn broken_toml_is_reported_with_every_line() {
    let site = Site::new("root = \nqueue = 1\n[http\nh2 = true\n");
    let errors = site.errors();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].starts_with("howdah.toml:1: ") && errors[1].starts_with("howdah.toml:3: "), "{errors:?}");
}

#[test]
fn flags_are_over_environment_over_file_over_default() {
    let mut site = Site::new("queue = 1\nthreads = 1\ngrace = \"1s\"\n[php.ini]\na = 1\nb = 1\n");
    site.env.insert("HOWDAH_QUEUE".to_owned(), "2".to_owned());
    site.env.insert("HOWDAH_GRACE".to_owned(), "2m".to_owned());
    site.env.insert("HOWDAH_HTTP_PROBES".to_owned(), "on".to_owned());
    site.env.insert("HOWDAH_SERVICE_HOST".to_owned(), "ignored".to_owned());
    site.flags.set("queue", "3");
    site.flags.set("php.ini", "b=3");
    site.flags.set("php.ini", "c = x=y");
    site.flags.set("php.ini", "d");
    site.flags.set("listen", "127.0.0.1:1,127.0.0.1:2");
    site.flags.set("listen", "unix:s");
    let Loaded { settings, origins, .. } = site.load().unwrap();
    let pool = &settings.pools[0];
    assert_eq!(
        (pool.queue, settings.threads, settings.grace, settings.http.probes),
        (3, 1, Duration::from_secs(120), true)
    );
    assert_eq!(settings.listen.len(), 3);
    assert_eq!(settings.listen[2], ListenAddr::Unix(site.path().join("s")));
    let ini: Vec<_> = pool.php.ini.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(ini, [("a", "1"), ("b", "3"), ("c", "x=y"), ("d", "1")]);
    for (name, origin) in [
        ("queue", "--set queue"),
        ("grace", "environment HOWDAH_GRACE"),
        ("threads", "howdah.toml:2"),
        ("deadline", "default"),
        ("http.probes", "environment HOWDAH_HTTP_PROBES"),
        ("php.ini.a", "howdah.toml:5"),
        ("php.ini.b", "--define"),
    ] {
        assert_eq!(origins.of(name).to_string(), origin, "{name}");
    }
}

#[test]
fn bad_flags_and_variables_are_named() {
    let mut site = Site::new("");
    site.flags.set("threads", "100");
    site.flags.set("php.ini", "=1");
    site.env.insert("HOWDAH_GRACE".to_owned(), "soon".to_owned());
    let errors = site.errors();
    assert!(errors.contains(&"--set threads: threads: must be from 1 to 64, not 100".to_owned()), "{errors:?}");
    assert!(errors.iter().any(|error| error.starts_with("--define: [php] ini: expected ")), "{errors:?}");
    let grace = errors.iter().find(|error| error.contains("HOWDAH_GRACE")).unwrap();
    assert!(grace.ends_with("found \"soon\"; for example: HOWDAH_GRACE=10s"), "{grace}");
    assert_eq!(errors.len(), 3, "{errors:?}");
}

#[test]
fn an_unsupported_trace_protocol_is_an_error_of_its_variable() {
    let mut site = Site::new("[telemetry]\nendpoint = \"env\"\n");
    site.env.insert("OTEL_EXPORTER_OTLP_PROTOCOL".to_owned(), "http/protobuf".to_owned());
    assert_eq!(site.load().unwrap().settings.telemetry.address(), "http://localhost:4318/v1/traces");
    site.env.insert("OTEL_EXPORTER_OTLP_PROTOCOL".to_owned(), "grpc".to_owned());
    let errors = site.errors();
    let expected = "\"grpc\" is not supported; use \"http/protobuf\", usually on port 4318";
    assert!(errors.len() == 1 && errors[0].contains("OTEL_EXPORTER_OTLP_PROTOCOL"), "{errors:?}");
    assert!(errors[0].ends_with(expected), "{errors:?}");
}

#[test]
fn concurrency_is_for_async_pools() {
    let site = Site::new("concurrency = 7\n[pool.live]\nmode = \"async\"\nscript = \"live.php\"\n");
    site.write("live.php", "");
    let settings = site.load().unwrap().settings;
    assert_eq!(settings.pool("live").map(|pool| (pool.mode, pool.concurrency)), Some((Mode::Async, 7)));

    let mut site = Site::new("[pool.api]\nmode = \"worker\"\nscript = \"w.php\"\nconcurrency = 7\n");
    site.write("w.php", "");
    let unused = "is for mode \"async\"; a worker in mode \"worker\" runs one request at a time, see `workers`";
    assert_eq!(site.errors(), [format!("howdah.toml:4: [pool.api] concurrency: {unused}")]);
    site.flags.set("concurrency", "0");
    let range = "--set concurrency: concurrency: must be from 1 to 10000, not 0".to_owned();
    assert!(site.errors().contains(&range), "{:?}", site.errors());

    let mut site = Site::new("");
    site.flags.set("mode", "async");
    let needed = "--mode: mode: mode \"async\" needs a script; for example: script = \"worker.php\"";
    assert_eq!(site.errors(), [needed]);
}

#[test]
fn pools_inherit_and_rules_choose_them() {
    let site = Site::new(
        r#"
workers = 3
queue = 7
[php]
ini = { memory_limit = "64M", precision = 14 }
env = { APP_ENV = "prod" }
[pool.api]
mode = "worker"
script = "api.php"
workers = 5
ini = { memory_limit = "256M" }
[pool.slow-jobs]
deadline = "10m"
[[rule]]
path = "/api/*"
pool = "api"
[[rule]]
path = "/*/jobs"
pool = "slow-jobs"
"#,
    );
    site.write("api.php", "");
    let Loaded { settings, origins, .. } = site.load().unwrap();
    let api = settings.pool("api").unwrap();
    assert_eq!((api.mode, api.workers.max, api.queue), (Mode::Worker, 5, 7));
    assert_eq!(api.script.as_deref(), Some(site.path().join("api.php").as_path()));
    assert_eq!((api.php.ini["memory_limit"].as_str(), api.php.ini["precision"].as_str()), ("256M", "14"));
    assert_eq!(api.php.env["APP_ENV"], "prod");
    let slow = settings.pool("slow-jobs").unwrap();
    assert_eq!((slow.mode, slow.workers.max, slow.deadline), (Mode::Classic, 3, Some(Duration::from_secs(600))));
    assert_eq!(settings.pools[0].php.ini["memory_limit"], "64M");
    assert_eq!(settings.rules.pools().collect::<Vec<_>>(), ["api", "slow-jobs"]);
    assert_eq!(origins.of("pool.api.workers").to_string(), "howdah.toml:10");
    assert_eq!(origins.of("pool.slow-jobs.workers").to_string(), "howdah.toml:2");
    assert_eq!(origins.of("pool.slow-jobs.mode"), Origin::Default);
}

#[test]
fn invalid_pools_are_refused() {
    let site = Site::new("[pool]\nworkers = 3\n[pool.default]\nqueue = 1\n[pool.\"a b\"]\n");
    let errors = site.errors();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors[0].contains("write a pool's settings into [pool.NAME]"), "{errors:?}");
    assert!(
        errors[1].starts_with("howdah.toml:3: [pool.default]: the default pool is set at the top level"),
        "{errors:?}"
    );
    assert!(errors[2].contains("letters, digits"), "{errors:?}");
}

#[test]
fn an_inherited_mistake_is_reported_once() {
    let site = Site::new("queue = \"many\"\nmode = \"worker\"\n[pool.a]\n[pool.b]\n");
    assert_eq!(site.errors().len(), 2, "{:?}", site.errors());
}

#[test]
fn paths_lose_dots_but_not_those_after_links() {
    let site =
        Site::new("mode = \"worker\"\nscript = \"link/../public/./up/../worker.php\"\nroot = \"public/../public\"\n");
    let top = site.path();
    std::fs::create_dir_all(top.join("releases/public/up")).unwrap();
    std::fs::create_dir(top.join("releases/one")).unwrap();
    std::fs::create_dir(top.join("public")).unwrap();
    std::fs::write(top.join("releases/public/worker.php"), "<?php").unwrap();
    std::os::unix::fs::symlink(top.join("releases/one"), top.join("link")).unwrap();
    let settings = site.load().unwrap().settings;
    assert_eq!(settings.root, top.join("public"));
    assert_eq!(settings.pools[0].script, Some(top.join("link/../public/worker.php")), "not after a link");
}

#[test]
fn a_script_may_lie_under_the_root() {
    let mut site = Site::new("mode = \"worker\"\nscript = \"worker.php\"\n");
    assert_eq!(
        site.errors(),
        [format!("howdah.toml:2: script: there is no file {}", site.path().join("worker.php").display())]
    );
    site.write("public/worker.php", "");
    assert_eq!(site.load().unwrap().settings.pools[0].script, Some(site.path().join("public/worker.php")));
    site.flags.set("script", "other.php");
    site.write("other.php", "");
    assert_eq!(site.load().unwrap().settings.pools[0].script, Some(site.path().join("other.php")));
}

#[test]
fn paths_are_relative_to_their_file() {
    let mut site = Site::new("this file is not read");
    site.write("etc/h.toml", "root = \"../web\"\n[log]\nerror = \"e.log\"\n");
    site.write("web/x", "");
    site.write("public/x", "");
    site.flags.config = Some("etc/h.toml".into());
    let Loaded { settings, origins, .. } = site.load().unwrap();
    assert_eq!(settings.root, site.path().join("web"));
    assert_eq!(settings.log.error, howdah_config::LogTarget::File(site.path().join("etc/e.log")));
    assert_eq!(origins.of("root").to_string(), "etc/h.toml:1");
    site.flags.set("root", "public");
    let Loaded { settings, origins, .. } = site.load().unwrap();
    assert_eq!((settings.root, origins.of("root").to_string()), (site.path().join("public"), "ROOT".to_owned()));
    site.flags.config = Some("etc/none.toml".into());
    assert!(site.errors()[0].starts_with("cannot read etc/none.toml: "), "{:?}", site.errors());
}

#[test]
fn the_binary_is_found_in_path_and_a_named_one_must_exist() {
    let mut site = Site::new("");
    site.write("bin/howdah-php", "");
    site.env.insert("PATH".to_owned(), format!("/nonexistent:{}", site.path().join("bin").display()));
    assert_eq!(site.load().unwrap().settings.pools[0].php.binary.path, site.path().join("bin/howdah-php"));
    site.flags.set("php.binary", "bin/howdah-php8.9");
    assert!(site.errors()[0].starts_with("--php: [php] binary: there is no file "), "{:?}", site.errors());
    site.write("bin/howdah-php8.9", "");
    assert!(site.errors()[0].ends_with("bin/howdah-php8.9 is not executable"), "{:?}", site.errors());
}

#[test]
fn each_pool_names_its_version_of_php() {
    use std::os::unix::fs::PermissionsExt;
    let mut site = Site::new(
        "php = \"8.3\"\n[pool.new]\nphp = \"8.4\"\n[pool.own]\nphp = \"bin/mine\"\n[pool.long]\nbinary = \"8.4\"\n[pool.same]\n",
    );
    for program in ["bin/howdah-php8.3", "bin/howdah-php8.4", "bin/mine"] {
        site.write(program, "");
        std::fs::set_permissions(site.path().join(program), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    site.env.insert("PATH".to_owned(), site.path().join("bin").display().to_string());
    let loaded = site.load().unwrap();
    let paths: Vec<_> = loaded.settings.pools.iter().map(|pool| pool.php.binary.path.clone()).collect();
    let names = ["howdah-php8.3", "howdah-php8.4", "mine", "howdah-php8.4", "howdah-php8.3"];
    assert_eq!(paths, names.map(|name| site.path().join("bin").join(name)));
    let site =
        Site::new("[pool.new]\nphp = \"8.4\"\nbinary = \"8.4\"\n[pool.old]\nphp = \"7.4\"\n[pool.odd]\nphp = 8\n");
    let errors = site.errors();
    assert!(errors[0].starts_with("howdah.toml:2: [pool.new] php: unknown key"), "{errors:?}");
    assert!(errors[1].starts_with("howdah.toml:3: [pool.new] binary: there is no howdah-php8.4 in "), "{errors:?}");
    assert!(errors[2].starts_with("howdah.toml:5: [pool.old] binary: there is no howdah-php7.4 in "), "{errors:?}");
    assert!(errors[3].contains("[pool.odd] binary: expected a version of PHP in quotes (\"8.4\")"), "{errors:?}");
}

#[test]
fn the_output_of_check_is_a_settings_file_with_the_same_meaning() {
    let mut site = Site::new(
        "queue = 9\n[php.ini]\na = \"x\\\"y\"\n[pool.api]\nworkers = 5\nini = { \"b.c\" = 2 }\n[[rule]]\npath = \"/api/*\"\npool = \"api\"\n",
    );
    site.flags.set("grace", "90");
    let loaded = site.load().unwrap();
    let shown = loaded.show();
    for line in [
        "queue = 9  # howdah.toml:1",
        "grace = \"90s\"  # --set grace",
        "workers = 5  # howdah.toml:5",
        "probes = false  # default",
    ] {
        let (setting, origin) = line.split_once("  # ").unwrap();
        let found = shown.lines().any(|have| have.starts_with(setting) && have.ends_with(&format!("# {origin}")));
        assert!(found, "missing {line} in\n{shown}");
    }
    assert!(shown.contains("# a: howdah.toml:3, b.c: howdah.toml:6"), "{shown}");
    std::fs::write(site.path().join("howdah.toml"), &shown).unwrap();
    // The program does not exist, but its name is printed.
    let again = shown.lines().filter(|line| !line.starts_with("binary = ")).collect::<Vec<_>>().join("\n");
    std::fs::write(site.path().join("howdah.toml"), again).unwrap();
    site.flags = ServeFlags::default();
    assert_eq!(site.load().unwrap().settings, loaded.settings);
}

#[test]
fn directories_for_x_sendfile_must_not_overlap_the_root() {
    let toml = "[static]\nx_accel_redirect = { \"/p/\" = \"DIR/files\", \"/q\" = \"files\" }\nx_sendfile = [\"DIR/files\", \"public/x\", \".\", \"none\"]\n";
    let mut site = Site::new("");
    let directory = site.path().display().to_string();
    site.write("files/a", "");
    site.write("public/x/a", "");
    site.write("howdah.toml", &toml.replace("DIR", &directory));
    let errors = site.errors().join("\n");
    for expected in [
        "\"/q\" must begin and end with a slash",
        "files must be an absolute path",
        "public/x and the root overlap",
        "there is no directory",
    ] {
        assert!(errors.contains(expected), "{expected}: {errors}");
    }
    assert_eq!(errors.matches("overlap").count(), 2, "{errors}");
    assert!(!errors.contains("/p/"), "{errors}");
    site.write(
        "howdah.toml",
        &toml
            .replace("DIR", &directory)
            .replace(", \"/q\" = \"files\"", "")
            .replace(", \"public/x\", \".\", \"none\"", ""),
    );
    site.flags = Default::default();
    assert_eq!(site.load().unwrap().settings.static_files.x_sendfile, [site.path().join("files")]);
}

#[test]
fn invalid_limits_and_open_admin_addresses_are_refused() {
    for (text, what) in [
        ("[php]\nlimits = { nofiles = 3 }", "did you mean \"nofile\""),
        ("[php]\nlimits.nofile = \"4:2\"", "exceeds the hard limit"),
        ("[php]\numask = \"0999\"", "permissions in octal"),
        ("[php]\ncgroup_limits = { \"pids.max\" = 3 }", "needs `cgroup`"),
        ("[php]\ncgroup = \"/a\"\ncgroup_limits = { \"pids.min\" = 3 }", "unknown limit \"pids.min\""),
        ("admin = \"0.0.0.0:9090\"", "other machines can reach 0.0.0.0:9090"),
        ("admin = \"[::]:9090\"", "other machines can reach"),
        ("admin = \"192.0.2.1:9090\"", "other machines can reach"),
    ] {
        let errors = Site::new(text).errors().join("\n");
        assert!(errors.contains(what), "{text}: {errors}");
    }
    for text in [
        "[php]\numask = \"0027\"",
        "admin = \"127.0.0.2:9090\"",
        "admin = \"[::ffff:127.0.0.1]:9090\"",
        "admin = \":9090\"\nadmin_token = \"x\"",
    ] {
        Site::new(text).load().unwrap();
    }
}

#[test]
fn proxies_are_names_or_addresses_and_errors_are_reported() {
    let site = Site::new(
        "[proxy.app]\nto = [\"http://a:1\", \"unix:/run/b.sock weight=3\"]\nmax_connections = 1\n\
         [[rule]]\npath = \"/app/*\"\nproxy = \"app\"\n\
         [[rule]]\npath = \"/x/*\"\nproxy = \"http://c:2\"\n[[rule]]\npath = \"/y/*\"\nproxy = \"http://c:2\"\n",
    );
    let settings = site.load().unwrap().settings;
    let named: Vec<_> = settings.proxies.iter().map(|proxy| (proxy.name.as_str(), proxy.to.len())).collect();
    assert_eq!(named, [("app", 2), ("http://c:2", 1)]);
    let found: Vec<_> = settings.rules.routes().iter().map(|route| &*route.name).collect();
    assert_eq!(found, ["/app/*", "/x/*", "/y/*"]);
    assert_eq!(settings.proxies[0].max_connections, 1);

    let site = Site::new(
        "[proxy.app]\nresponse_timeout = 0\nhealth = \"x\"\nca = \"none.pem\"\n\
         [proxy.\"a b\"]\nto = \"ftp://a\"\nnone = 1\n\
         [[rule]]\npath = \"/1/*\"\nproxy = \"ap\"\n\
         [[rule]]\npath = \"/2/*\"\nproxy = \"127.0.0.1:3000\"\n",
    );
    let errors = site.errors();
    for expected in [
        "proxy.app] to: needs at least one server",
        "response_timeout: must be more than 0",
        "health: must be a path",
        "none.pem does not exist",
        "a proxy's name must consist of letters",
        "expected a server",
        "unknown key",
        "there is no proxy \"ap\": add [proxy.ap], or write an address",
    ] {
        assert!(errors.iter().any(|error| error.contains(expected)), "{expected} is not in\n{}", errors.join("\n"));
    }
}

#[test]
fn names_of_other_servers_and_typos_get_a_hint() {
    for (toml, expected) in [
        ("client_max_body_size = 1\n", "client_max_body_size: unknown key; here it is [http] max_body"),
        ("[http]\nclient_max_body_size = 1\n", "[http] client_max_body_size: unknown key; here it is [http] max_body"),
        ("[php]\nphp_admin_value = 1\n", "[php] php_admin_value: unknown key; here it is [php] admin_ini"),
        ("port = 80\n", "port: unknown key; here it is listen"),
        ("[lgo]\nlevel = \"info\"\n", "lgo: unknown key; did you mean log?"),
        ("workers = 5000\n", "at most 4096, found 5000"),
        ("listen = 99999\n", "listen: expected an address"),
        ("[[route]]\nmatch = \"/x\"\n", "route: unknown key; here it is [[rule]] with `path` for `match`"),
        ("[[rule]]\nmatch = \"/x\"\nweight = 2\n", "is not a key of a rule, did you mean `path`?"),
        ("[[rule]]\npath = \"/x\"\nreturn = 404\n", "is not a key of a rule, did you mean `status` or `redirect`?"),
        ("[[rule]]\npath = \"/x\"\nlocation = \"/y\"\n", "is not a key of a rule, did you mean `path`?"),
    ] {
        let errors = Site::new(toml).errors();
        assert!(errors.iter().any(|error| error.contains(expected)), "{toml}: {errors:?}");
    }
}
