//! Converts a PHP-FPM pool file to a `howdah.toml`: `howdah init /etc/php/8.2/fpm/pool.d/www.conf`.

use super::file::parse;
use super::pool::{self, write};
use howdah_config::quoted;
use std::fmt::Write as _;
use std::path::Path;

/// Converts the first pool in the text. Comments list the directives without a counterpart.
///
/// # Errors
/// An invalid directive, which PHP-FPM would refuse too.
pub(crate) fn converted(text: &str, path: &Path) -> Result<String, String> {
    let config = parse(text, path)?;
    let section = config.pools.first().ok_or("it has no section [NAME] of a pool")?;
    let prefix = Path::new("/usr");
    let dropped = pool::dropped(section, true)?;
    let mut page = format!("# From PHP-FPM's pool {}.\n", section.name);
    page.push_str("\n# The document root: nginx's `root`.\nroot = \"public\"\n\n");
    let addresses: Vec<String> = pool::addresses(section, prefix).map(|addr| quoted(&addr)).collect();
    if !addresses.is_empty() {
        let _ = writeln!(page, "listen = [{}]", addresses.join(", "));
    }
    if let Some(group) = section.get("listen.group") {
        let _ = writeln!(page, "listen_group = {}", quoted(group));
    }
    write(&mut page, pool::pool(section, prefix)?);
    page.push_str("\n[php]\n");
    if let Some(user) = pool::user(section) {
        let _ = writeln!(page, "user = {}", quoted(&user));
    }
    write(&mut page, pool::php(section, &[], None, prefix)?);
    if let Some(log) = section.get("access.log") {
        let _ = writeln!(page, "\n[log]\naccess = {}", pool::access_target(log, prefix));
    }
    if let Some(clients) = pool::clients(section) {
        let clients: Vec<String> = clients.into_iter().map(quoted).collect();
        let _ = writeln!(page, "\n[http]\ntrusted_proxies = [{}]", clients.join(", "));
    }
    let own = [
        "access.format",
        "access.suppress_path",
        "listen.owner",
        "listen.mode",
        "ping.path",
        "ping.response",
        "security.limit_extensions",
        "pm.start_servers",
    ];
    let own = own.into_iter().filter(|name| section.has(name));
    let own = own.map(|name| (name, "only howdah-fpm supports it"));
    let others: Vec<&str> = config.pools[1..].iter().map(|pool| &*pool.name).collect();
    if !others.is_empty() {
        let all = others.join(", ");
        let _ = write!(page, "\n# NOT TAKEN OVER: the pools {all}. Convert each alone; howdah-fpm reads all.\n");
    }
    let left: Vec<String> = own.chain(dropped).map(|(name, why)| format!("# {name}: {why}.\n")).collect();
    if !left.is_empty() {
        let _ = write!(page, "\n# Without a counterpart here:\n{}", left.concat());
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<String, String> {
        converted(text, Path::new("/etc/fpm.conf"))
    }

    #[test]
    fn included_pools_are_read_and_those_after_the_first_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("php-fpm.conf");
        let pool = "user = u\nlisten = /run/x\npm = static\npm.max_children = 3\n";
        std::fs::write(dir.path().join("a.conf"), format!("[a]\n{pool}[b]\n{pool}[c]\n{pool}")).unwrap();
        let page = converted("[global]\npid = x\ninclude = a.conf\n", &file).unwrap();
        assert!(page.contains("workers = 3\n") && page.contains("# NOT TAKEN OVER: the pools b, c. "), "{page}");
        assert!(!of(&format!("[a]\n{pool}")).unwrap().contains("NOT TAKEN"));
        let wrong = converted("[global]\n\ninclude = none.conf\n", &file).unwrap_err();
        assert!(wrong.contains("php-fpm.conf:3: ") && wrong.contains("none.conf"), "{wrong}");
    }

    fn lines_of(pool: &str) -> Vec<String> {
        let page = of(&format!("[global]\npid = x\n[www]\n{pool}")).unwrap();
        page.lines().filter(|line| line.contains('=')).map(str::to_owned).collect()
    }

    #[test]
    fn each_kind_of_pool_becomes_workers() {
        let first = |pool: &str| lines_of(pool)[1..].to_vec();
        assert_eq!(first("pm = static\npm.max_children = 5\npm.max_spare_servers = 3\n")[0], "workers = 5");
        let dynamic = "pm = dynamic\npm.max_children = 20\npm.min_spare_servers = 2\npm.max_spare_servers = 6\n";
        assert_eq!(first(dynamic)[..2], ["workers = \"2-20\"", "spare_workers = \"2-6\""]);
        let on_demand = "pm = ondemand\npm.max_children = 9\npm.process_idle_timeout = 3s\n";
        assert_eq!(first(on_demand)[0], "workers = \"0-9\"");
    }

    #[test]
    fn a_whole_pool_becomes_a_howdah_toml_that_can_be_read() {
        let pool = "user = www-data\ngroup = www-data\nlisten = /run/php.sock\nlisten.mode = 0660\n\
                    listen.allowed_clients = 127.0.0.1, 10.0.0.4\nlisten.backlog = 511\npm = static\n\
                    pm.max_children = 4\npm.max_requests = 500\nrequest_terminate_timeout = 30s\n\
                    request_slowlog_timeout = 5\nslowlog = /var/log/$pool.slow\npm.status_path = /status ; see below\n\
                    ping.path = /ping\nclear_env = no\nenv[APP_ENV] = \"prod\"\nphp_admin_value[memory_limit] = 128M\n\
                    php_flag[display_errors] = off\nrlimit_files = 512\n; a comment\n[second]\nuser = other\n";
        let page = of(&format!("[www]\n{pool}")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("public")).unwrap();
        std::fs::write(dir.path().join("howdah.toml"), &page).unwrap();
        let environment =
            howdah_config::Environment { current_dir: dir.path().to_owned(), ..howdah_config::Environment::default() };
        let settings = howdah_config::load_in(&howdah_config::ServeFlags::default(), &environment);
        let settings = settings.unwrap_or_else(|errors| panic!("{errors}\n{page}")).settings;
        let pool = &settings.pools[0];
        assert_eq!((pool.workers.min, pool.workers.max, pool.max_requests), (4, 4, 500));
        assert_eq!(pool.deadline.map(|time| time.as_secs()), Some(30));
        assert_eq!(pool.slow_log_after.map(|time| time.as_secs()), Some(5));
        assert_eq!(pool.status_path.as_deref(), Some("/status"));
        assert_eq!((pool.php.user.as_deref(), pool.php.clear_env), (Some("www-data:www-data"), false));
        assert_eq!((&*pool.php.env["APP_ENV"], &*pool.php.admin_ini["memory_limit"]), ("prod", "128M"));
        assert_eq!((&*pool.php.ini["display_errors"], &*pool.php.limits["nofile"]), ("0", "512"));
        assert_eq!(settings.listen[0].to_string(), "fastcgi:unix:/run/php.sock");
        assert_eq!(settings.http.trusted_proxies.len(), 2);
        let other = |listen| {
            let addr = pool::address(listen, Path::new("/usr")).parse::<howdah_config::ListenAddr>();
            addr.map(|addr| addr.to_string())
        };
        assert_eq!(other("9000"), Ok("fastcgi:[::]:9000".to_owned()));
        assert_eq!(other("127.0.0.1:9000"), Ok("fastcgi:127.0.0.1:9000".to_owned()));
        assert_eq!(other("*:9000"), Ok("fastcgi:0.0.0.0:9000".to_owned()));
        assert_eq!(other("run/a.sock"), Ok("fastcgi:unix:/usr/run/a.sock".to_owned()));
        assert!(
            page.contains("slow_log = \"/var/log/www.slow\"")
                && page.contains("# listen.backlog: 4096 ")
                && page.contains("# listen.mode: "),
            "{page}"
        );
    }

    #[test]
    fn settings_that_php_fpm_refuses_are_errors() {
        for (pool, message) in [
            ("", "pm is missing"),
            ("pm = static\n", "pm needs pm.max_children"),
            ("pm = dyn\npm.max_children = 5\n", "pm = dyn: expected static, dynamic or ondemand"),
            ("pm = dynamic\npm.max_children = 5\n", "pm = dynamic needs 1 <= pm.min_spare_servers (0)"),
            ("pm = static\npm.max_children = many\n", "pm.max_children = many: expected a number"),
            ("pm\n", "pm: expected NAME = VALUE"),
            ("pmx = static\n", "unknown entry 'pmx'"),
            ("chroot = /srv\n", "chroot is not supported"),
            ("pm = static\npm.max_children = 1\nrequest_slowlog_timeout = 1\n", "needs a slowlog"),
        ] {
            assert!(of(&format!("[www]\n{pool}")).unwrap_err().contains(message), "{pool}");
        }
        assert!(of("<?php\n").is_err());
        assert!(of("[global]\n").unwrap_err().contains("no section [NAME]"));
    }
}
