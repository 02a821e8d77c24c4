use super::*;

fn loaded(text: &str, change: impl FnOnce(&mut Arguments)) -> Result<Configuration, String> {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("php-fpm.conf");
    std::fs::write(&config, text).unwrap();
    let mut given = Arguments { config, prefix: Some(dir.path().to_owned()), ..Arguments::default() };
    change(&mut given);
    load(&given, &Environment { current_dir: dir.path().to_owned(), ..Environment::default() })
}

const STATIC: &str = "pm = static\npm.max_children = 2\n";

#[test]
fn each_pool_is_a_site_at_its_address_with_its_own_pool() {
    let text = format!(
        "[global]\npid = run/p.pid\nerror_log = /var/log/e.log\nlog_level = warning\nprocess_control_timeout = 7\ndaemonize = no\n\
         [a]\nlisten = a.sock\nlisten.mode = 0600\n{STATIC}ping.response = hey\nsecurity.limit_extensions = .php .html\n\
         php_admin_value[memory_limit] = 32M\nphp_value[x.y] = 1\nlisten.backlog = 5\n\
         [b]\nlisten = 127.0.0.1:9001\nlisten.allowed_clients = 127.0.0.1\npm = dynamic\npm.max_children = 9\n\
         pm.min_spare_servers = 2\npm.max_spare_servers = 6\nsecurity.limit_extensions =\nrequest_terminate_timeout = 1m\n"
    );
    let read = loaded(&text, |given| given.defined.push(("x.y".to_owned(), "2".to_owned()))).unwrap();
    let settings = &read.loaded.settings;
    assert!(!read.daemonize);
    assert_eq!(
        read.notes,
        ["[pool a] listen.backlog has no effect: 4096 connections may wait, and requests wait in the server's queue"]
    );
    let names: Vec<_> = settings.pools.iter().map(|pool| &*pool.name).collect();
    assert_eq!(names, ["a", "b"], "no pool starts that no address leads to");
    let sites: Vec<_> = settings.sites.iter().map(|site| (&*site.name, &*site.pool, site.listen.len())).collect();
    assert_eq!(sites, [("a", "a", 1), ("b", "b", 1)]);
    assert_eq!((settings.listen.len(), settings.grace.as_secs()), (2, 7));
    assert!(settings.listen[0].to_string().ends_with("/a.sock") && settings.listen[1].is_fastcgi());
    let [a, b] = &settings.pools[..] else { panic!() };
    let of = |pool: &howdah_config::PoolSettings| pool.fpm.clone().unwrap();
    assert_eq!((of(a).ping_response.as_str(), of(b).ping_response.as_str()), ("hey", "pong"));
    assert_eq!((of(a).extensions, of(b).extensions), (vec![".php".to_owned(), ".html".to_owned()], Vec::new()));
    assert_eq!((of(a).clients, of(b).clients), (None, Some(vec!["127.0.0.1".parse().unwrap()])));
    assert_eq!((a.deadline, b.deadline.map(|time| time.as_secs())), (None, Some(60)));
    assert_eq!((a.start_workers, b.start_workers, b.workers.min, b.workers.max), (0, 4, 2, 9));
    assert_eq!((&*a.php.ini["x.y"], &*b.php.ini["x.y"], &*a.php.admin_ini["memory_limit"]), ("1", "2", "32M"));
    assert!(a.php.clear_env && b.php.clear_env);
    let fpm = settings.fpm.as_ref().unwrap();
    assert!(fpm.pid_file.as_ref().unwrap().ends_with("run/p.pid"));
    assert_eq!(fpm.sockets.values().next().unwrap().mode, Some(0o600));
}

#[test]
fn errors_are_those_of_php_fpm_and_name_their_pool() {
    for (text, message) in [
        ("[global]\n", "No pool defined"),
        ("[a]\npm = static\npm.max_children = 2\n", "[pool a] no listen address"),
        ("[a]\nlisten = 9000\nfoo = 1\n", "unknown entry 'foo'"),
        ("[a]\nlisten = 9000\nphp_admin_value = 1\n", "unknown entry 'php_admin_value'"),
        (
            "[a]\nlisten = s\npm = static\npm.max_children = 2\naccess.log = /no/such/log\n",
            "[pool a] access.log = /no/such/log: there is no directory /no/such",
        ),
        (
            "[a]\nlisten = s\npm = static\npm.max_children = 2\nslowlog = /no/such/log\nrequest_slowlog_timeout = 1\n",
            "[pool a] slowlog = /no/such/log: there is no directory",
        ),
        ("[global]\nerror_log = /no/such/log\n[a]\nlisten = 1\n", "error_log = /no/such/log: there is no directory"),
        ("[a]\nlisten = 9000\nenv[] = 1\n", "env[]: a key is missing"),
        ("[global]\nlog_level = loud\n[a]\n", "log_level = loud"),
        ("[a]\nlisten = s\npm = static\npm.max_children = 2\nlisten.mode = 9\n", "[pool a] listen.mode"),
        ("[a]\nlisten = s\npm = static\npm.max_children = 2\nlisten.owner = no-such-user\n", "[pool a] listen.owner"),
        ("[a]\nlisten = s\npm = static\npm.max_children = 2\nchroot = /srv\n", "chroot is not supported"),
        ("[default]\nlisten = s\npm = static\npm.max_children = 2\n", "another name"),
        (
            "[a]\nlisten = 1\npm = static\npm.max_children = 2\n[b]\nlisten = 1\npm = static\npm.max_children = 2\n",
            "is listed twice",
        ),
    ] {
        let error = loaded(text, |_| {}).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn every_directive_of_the_packaged_files_is_known() {
    for (file, is_pool) in [("/etc/php/8.2/fpm/php-fpm.conf", false), ("/etc/php/8.2/fpm/pool.d/www.conf", true)] {
        // Includes directives that are commented out.
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        let names = text.lines().filter_map(|line| {
            let (name, _) = line.trim_start_matches(';').split_once('=')?;
            let name = name.trim().split('[').next()?;
            (!name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || matches!(b, b'.' | b'_')))
                .then_some(name)
        });
        for name in names.filter(|name| *name != "include") {
            assert!(super::super::directives::fate(name, is_pool).is_some(), "{file}: {name}");
        }
    }
}
