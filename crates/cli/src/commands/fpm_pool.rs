//! Converts a pool's file of PHP-FPM into a `howdah.toml`: `howdah init /etc/php/8.2/fpm/pool.d/www.conf`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Directives with a counterpart that takes the value as it is written: text, or a duration where a number means seconds.
const SAME: &[(&str, &str)] = &[
    ("request_terminate_timeout", "deadline"),
    ("request_slowlog_timeout", "slow_log_after"),
    ("slowlog", "slow_log"),
    ("pm.status_path", "status_path"),
    ("listen.group", "listen_group"),
];

/// Directives that the number of workers is made from.
const NUMBERS: &[&str] = &[
    "pm",
    "pm.max_children",
    "pm.min_spare_servers",
    "pm.max_spare_servers",
    "pm.process_idle_timeout",
    "pm.max_requests",
];

/// Directives of `[php]` and its tables.
const OF_PHP: &[&str] = &["user", "group", "clear_env"];

/// Directives of the address.
const OF_LISTEN: &[&str] = &["listen", "listen.allowed_clients"];

/// A `howdah.toml` with the settings of the first pool in the text. Directives without a counterpart are listed in comments.
///
/// # Errors
/// The directive that makes no sense, as PHP-FPM would refuse it.
pub(crate) fn converted(text: &str) -> Result<String, String> {
    let pool = Pool::parse(text)?;
    let mut page = format!("# From PHP-FPM's pool {}.\n", pool.name);
    page.push_str("\n# The directory that clients may see: nginx's `root`.\nroot = \"public\"\n\n");
    if let Some(addr) = pool.get("listen") {
        let _ = writeln!(page, "listen = [{}]", quoted(&address(addr)));
    }
    page.push_str(&workers(&pool)?);
    if let Some(number) = pool.number("pm.max_requests")?.filter(|number| *number > 0) {
        let _ = writeln!(page, "max_requests = {number}");
    }
    for (name, key) in SAME {
        if let Some(value) = pool.get(name) {
            let _ = writeln!(page, "{key} = {}", value_of(value));
        }
    }
    let clears = !pool.get("clear_env").is_some_and(is_off);
    let _ = writeln!(page, "\n[php]\nclear_env = {clears}");
    if let Some(user) = pool.get("user") {
        let group = pool.get("group").map(|group| format!(":{group}")).unwrap_or_default();
        let _ = writeln!(page, "user = {}", quoted(&format!("{user}{group}")));
    }
    for (key, names) in [
        ("env", &["env"][..]),
        ("ini", &["php_value", "php_flag"]),
        ("admin_ini", &["php_admin_value", "php_admin_flag"]),
    ] {
        let entries: Vec<String> = pool
            .tables
            .iter()
            .filter(|((table, _), _)| names.contains(&table.as_str()))
            .map(|((_, name), value)| format!("{} = {}", quoted(name), quoted(value)))
            .collect();
        if !entries.is_empty() {
            let _ = writeln!(page, "{key} = {{ {} }}", entries.join(", "));
        }
    }
    if let Some(clients) = pool.get("listen.allowed_clients") {
        let clients: Vec<String> = clients.split(',').map(|client| quoted(client.trim())).collect();
        let _ = writeln!(page, "\n[http]\ntrusted_proxies = [{}]", clients.join(", "));
    }
    let known = |name: &str| {
        NUMBERS.contains(&name)
            || OF_LISTEN.contains(&name)
            || OF_PHP.contains(&name)
            || SAME.iter().any(|(directive, _)| *directive == name)
    };
    let left: Vec<&str> = pool.values.keys().map(String::as_str).filter(|name| !known(name)).collect();
    if !left.is_empty() {
        let _ = writeln!(page, "\n# Without a counterpart here: {}.", left.join(", "));
    }
    Ok(page)
}

/// The address of a pool: a path, a port of all addresses, or an address with its port.
fn address(listen: &str) -> String {
    if listen.starts_with('/') {
        format!("fastcgi:unix:{listen}")
    } else if listen.parse::<u16>().is_ok() {
        format!("fastcgi:[::]:{listen}")
    } else {
        format!("fastcgi:{listen}")
    }
}

/// `workers`, and what belongs to it.
fn workers(pool: &Pool) -> Result<String, String> {
    let Some(manager) = pool.get("pm") else { return Ok(String::new()) };
    let max = pool.number("pm.max_children")?.filter(|max| *max > 0);
    let max = max.ok_or("pm needs pm.max_children, the largest number of workers")?;
    match manager {
        "static" => Ok(format!("workers = {max}\n")),
        "ondemand" => {
            // Idle workers end after PHP-FPM's default time.
            Ok(format!("workers = \"0-{max}\"\n"))
        }
        "dynamic" => {
            let number = |name: &str| Ok::<_, String>(pool.number(name)?.unwrap_or(0));
            let (least, most) = (number("pm.min_spare_servers")?, number("pm.max_spare_servers")?);
            if least == 0 || least > most || most > max {
                return Err(format!(
                    "pm = dynamic needs 1 <= pm.min_spare_servers ({least}) <= pm.max_spare_servers ({most}) <= \
                     pm.max_children ({max})"
                ));
            }
            Ok(format!("workers = \"{least}-{max}\"\nspare_workers = \"{least}-{most}\"\n"))
        }
        other => Err(format!("pm = {other}: expected static, dynamic or ondemand")),
    }
}

/// The directives of one pool.
#[derive(Default)]
struct Pool {
    name: String,
    values: BTreeMap<String, String>,
    /// `env[NAME]` and the like, by both words.
    tables: BTreeMap<(String, String), String>,
}

impl Pool {
    fn parse(text: &str) -> Result<Self, String> {
        let mut pool = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with([';', '#'])) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                if !pool.name.is_empty() {
                    break;
                }
                if name != "global" {
                    name.clone_into(&mut pool.name);
                }
                continue;
            }
            if pool.name.is_empty() {
                continue;
            }
            let (name, value) = line.split_once('=').ok_or_else(|| format!("{line}: expected NAME = VALUE"))?;
            let value = unquoted(value.split(" ;").next().unwrap_or_default().trim());
            // PHP-FPM puts the pool's name for it.
            let value = value.replace("$pool", &pool.name);
            match name.trim().split_once('[') {
                Some((table, entry)) => {
                    pool.tables.insert((table.to_owned(), entry.trim_end_matches(']').to_owned()), value);
                }
                None => {
                    pool.values.insert(name.trim().to_owned(), value);
                }
            }
        }
        if pool.name.is_empty() { Err("there is no pool in it, which begins with [NAME]".to_owned()) } else { Ok(pool) }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let parse = |text: &str| text.parse().map_err(|_| format!("{name} = {text}: expected a number"));
        self.get(name).map(parse).transpose()
    }
}

fn unquoted(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

fn is_off(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "no" | "off" | "false" | "0")
}

/// A number of seconds stays one; permissions, durations and text stand in quotes.
fn value_of(text: &str) -> String {
    let is_number = text.parse::<u32>().is_ok() && !(text.starts_with('0') && text.len() > 1);
    if is_number { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(pool: &str) -> Vec<String> {
        let page = converted(&format!("[global]\npid = x\n[www]\n{pool}")).unwrap();
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
                    php_flag[display_errors] = off\n; a comment\n[second]\nuser = other\n";
        let page = converted(&format!("[www]\n{pool}")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("public")).unwrap();
        std::fs::write(dir.path().join("howdah.toml"), &page).unwrap();
        let around = howdah_config::Surroundings {
            current_dir: dir.path().to_owned(),
            ..howdah_config::Surroundings::default()
        };
        let settings = howdah_config::load_in(&howdah_config::ServeFlags::default(), &around);
        let settings = settings.unwrap_or_else(|errors| panic!("{errors}\n{page}")).settings;
        let pool = &settings.pools[0];
        assert_eq!((pool.workers.min, pool.workers.max, pool.max_requests), (4, 4, 500));
        assert_eq!(pool.deadline.map(|time| time.as_secs()), Some(30));
        assert_eq!(pool.slow_log_after.map(|time| time.as_secs()), Some(5));
        assert_eq!(pool.status_path.as_deref(), Some("/status"));
        assert_eq!((pool.php.user.as_deref(), pool.php.clear_env), (Some("www-data:www-data"), false));
        assert_eq!((&*pool.php.env["APP_ENV"], &*pool.php.admin_ini["memory_limit"]), ("prod", "128M"));
        assert_eq!(pool.php.ini["display_errors"], "off");
        assert_eq!(settings.listen[0].to_string(), "fastcgi:unix:/run/php.sock");
        assert_eq!(settings.http.trusted_proxies.len(), 2);
        let other = |listen| address(listen).parse::<howdah_config::ListenAddr>().map(|addr| addr.to_string());
        assert_eq!(other("9000"), Ok("fastcgi:[::]:9000".to_owned()));
        assert_eq!(other("127.0.0.1:9000"), Ok("fastcgi:127.0.0.1:9000".to_owned()));
        assert!(
            page.contains("slow_log = \"/var/log/www.slow\"")
                && page.contains("counterpart here: listen.backlog, listen.mode."),
            "{page}"
        );
    }

    #[test]
    fn what_php_fpm_refuses_is_an_error() {
        for (pool, message) in [
            ("pm = static\n", "pm needs pm.max_children"),
            ("pm = dyn\npm.max_children = 5\n", "pm = dyn: expected static, dynamic or ondemand"),
            ("pm = dynamic\npm.max_children = 5\n", "pm = dynamic needs 1 <= pm.min_spare_servers (0)"),
            ("pm = static\npm.max_children = many\n", "pm.max_children = many: expected a number"),
            ("pm\n", "pm: expected NAME = VALUE"),
        ] {
            assert!(converted(&format!("[www]\n{pool}")).unwrap_err().contains(message), "{pool}");
        }
        assert!(converted("<?php\n").unwrap_err().contains("there is no pool"));
    }
}
