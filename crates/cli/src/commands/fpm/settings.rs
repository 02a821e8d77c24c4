//! Converts a PHP-FPM configuration to settings: each pool becomes a site with its own pool, selected by the address of
//! the connection. Settings that a `howdah.toml` can express are written as text, so that they get the same checks.

use super::arguments::{Arguments, PREFIX, STATE, prefix_of};
use super::dump;
use super::file::{self, Config, Section};
use super::pool::{self, write};
use howdah_config::{
    Account, DEFAULT_POOL, Environment, FpmPool, FpmServer, ListenAddr, Loaded, SocketAccess, SocketPlace, find_group,
    load_text, quoted,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// User that a server started as root switches to, if it exists.
const OWN_USER: &str = "howdah";

/// A configuration that has been read and checked.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) loaded: Loaded,
    /// Directives without effect, one line each.
    pub(crate) notes: Vec<String>,
    /// All directives with their values, as `-tt` prints them.
    pub(crate) lines: Vec<String>,
    pub(crate) daemonize: bool,
}

/// Reads and checks the configuration.
///
/// # Errors
/// The first mistake in it.
pub(crate) fn load(given: &Arguments, environment: &Environment) -> Result<Configuration, String> {
    let prefix = given.prefix.clone().unwrap_or_else(|| PathBuf::from(PREFIX));
    let config = file::read(&given.config, &prefix)?;
    if config.pools.is_empty() {
        return Err("No pool defined. at least one pool section must be specified in config file".to_owned());
    }
    let mut notes = notes_of(&config.global, false)?;
    let mut lines = dump::global(&config.global, given)?;
    let is_root = environment.uid == Some(0);
    let mut text = server(&config, given, is_root)?;
    for (number, section) in config.pools.iter().enumerate() {
        let of_pool = |why: String| format!("[pool {}] {why}", section.name);
        notes.extend(notes_of(section, true).map_err(of_pool)?);
        text.push_str(&site(number, section, given, is_root, &mut notes).map_err(of_pool)?);
        lines.extend(dump::pool(section, given).map_err(of_pool)?);
    }
    let mut loaded = load_text(&given.config, text, environment).map_err(|errors| errors.to_string())?;
    complete(&mut loaded, &config, given)?;
    let daemonize = given.daemonize.unwrap_or(config.global.switch("daemonize")?.unwrap_or(true));
    Ok(Configuration { loaded, notes, lines, daemonize })
}

/// PHP settings only, without reading the configuration.
///
/// # Errors
/// The first mistake in them.
pub(super) fn of_php(given: &Arguments, environment: &Environment) -> Result<Loaded, String> {
    let mut text = format!("app = \"none\"\nsites = []\nallow_root = true\n{}", php_of_server(given));
    write(&mut text, pool::php(&Section::default(), &given.defined, scanned(given).as_deref(), Path::new(PREFIX))?);
    load_text(&given.config, text, environment).map_err(|errors| errors.to_string())
}

fn notes_of(section: &Section, is_pool: bool) -> Result<Vec<String>, String> {
    let pool = if is_pool { format!("[pool {}] ", section.name) } else { String::new() };
    let dropped = pool::dropped(section, is_pool)?;
    Ok(dropped.into_iter().map(|(name, why)| format!("{pool}{name} has no effect: {why}")).collect())
}

/// Text of the top-level settings.
fn server(config: &Config, given: &Arguments, is_root: bool) -> Result<String, String> {
    let global = &config.global;
    let addresses: Vec<String> =
        config.pools.iter().flat_map(|section| addresses(section, given)).map(|addr| quoted(&addr)).collect();
    let mut text = format!("app = \"none\"\nsites = []\nlisten = [{}]\n", addresses.join(", "));
    if is_root {
        let first = config.pools.iter().find_map(pool::user);
        let user = if Account::find(OWN_USER, &[]).is_ok() { Some(OWN_USER.to_owned()) } else { first };
        if let Some(user) = user {
            let _ = writeln!(text, "user = {}", quoted(&user));
        }
    }
    if given.allow_root {
        text.push_str("allow_root = true\n");
    }
    if let Some(grace) = global.seconds("process_control_timeout")?.filter(|seconds| *seconds > 0) {
        let _ = writeln!(text, "grace = {grace}");
    }
    let level = match global.get("log_level").unwrap_or("notice") {
        "alert" | "error" => "error",
        "warning" => "warn",
        "notice" => "info",
        "debug" => "debug",
        other => return Err(format!("log_level = {other}: expected alert, error, warning, notice or debug")),
    };
    let _ = writeln!(text, "\n[log]\nlevel = \"{level}\"");
    if let Some(log) = global.get("error_log").filter(|_| !given.force_stderr) {
        pool::has_directory("error_log", Some(log), given.prefix.as_deref().unwrap_or(Path::new(STATE)))?;
        let _ =
            writeln!(text, "error = {}", pool::log_target(log, given.prefix.as_deref().unwrap_or(Path::new(STATE))));
    }
    text.push_str(&php_of_server(given));
    // The top level admits clients of any pool; each request is checked against its own pool's clients.
    let clients: Option<Vec<&str>> =
        config.pools.iter().map(pool::clients).collect::<Option<Vec<_>>>().map(|all| all.concat());
    let clients = clients.unwrap_or_else(|| vec!["0.0.0.0/0", "::/0"]);
    let clients: Vec<String> = clients.into_iter().map(quoted).collect();
    let _ = writeln!(text, "\n[http]\ntrusted_proxies = [{}]", clients.join(", "));
    Ok(text)
}

/// Text of the `[php]` section, which all pools share.
fn php_of_server(given: &Arguments) -> String {
    let mut text = String::from("\n[php]\n");
    if let Some(version) = &given.version {
        let _ = writeln!(text, "binary = {}", quoted(version));
    }
    if let Some(ini) = php_ini(given) {
        let _ = writeln!(text, "config = {}", quoted(&ini.to_string_lossy()));
    }
    text
}

/// Returns the `php.ini`: the given one, or the configuration's directory if it has one, as in Debian's packages.
fn php_ini(given: &Arguments) -> Option<PathBuf> {
    let packaged = given.config.parent().filter(|dir| dir.join("php.ini").is_file()).map(Path::to_path_buf);
    given.php_ini.clone().or(packaged)
}

/// Directory of additional `php.ini` files. PHP's built-in default is another SAPI's.
fn scanned(given: &Arguments) -> Option<PathBuf> {
    let ini = php_ini(given)?;
    if ini == Path::new("/dev/null") {
        return Some(PathBuf::new());
    }
    let dir = if ini.is_dir() { ini } else { ini.parent()?.to_path_buf() }.join("conf.d");
    dir.is_dir().then_some(dir)
}

fn site(
    number: usize,
    section: &Section,
    given: &Arguments,
    is_root: bool,
    notes: &mut Vec<String>,
) -> Result<String, String> {
    let name = &section.name;
    if name == DEFAULT_POOL {
        return Err(format!("the name {DEFAULT_POOL} is reserved: give the pool another name"));
    }
    let prefix = prefix_of(section, given);
    section.get("listen").ok_or("no listen address have been defined!")?;
    // `complete` replaces this placeholder host: the address selects the site.
    let mut text = format!(
        "\n[[site]]\nname = {0}\nroot = \"/\"\nhosts = [\"pool-{number}.invalid\"]\n\n[site.pool]\n",
        quoted(name)
    );
    match pool::user(section) {
        Some(user) if is_root => {
            let account = Account::find(&user, &[])?;
            if account.uid == 0 && !given.allow_root {
                return Err("please specify user and group other than root".to_owned());
            }
            let _ = writeln!(text, "user = {}", quoted(&user));
        }
        Some(_) => {
            notes.push(format!("[pool {name}] user and group have no effect: the server was not started as root"))
        }
        None if is_root && !given.allow_root => return Err("user has not been defined".to_owned()),
        None => {}
    }
    write(&mut text, pool::pool(section, &prefix)?);
    write(&mut text, pool::php(section, &given.defined, scanned(given).as_deref(), &prefix)?);
    pool::has_directory("access.log", section.get("access.log"), &prefix)?;
    if section.seconds("request_slowlog_timeout")?.is_some_and(|seconds| seconds > 0) {
        pool::has_directory("slowlog", section.get("slowlog"), &prefix)?;
    }
    if let Some(log) = section.get("access.log") {
        let _ = writeln!(text, "\n[site.log]\naccess = {}", pool::access_target(log, &prefix));
    }
    Ok(text)
}

/// Addresses of the pool and of its status page.
fn addresses(section: &Section, given: &Arguments) -> Vec<String> {
    pool::addresses(section, &prefix_of(section, given)).collect()
}

/// Sets values that a `howdah.toml` cannot express.
fn complete(loaded: &mut Loaded, config: &Config, given: &Arguments) -> Result<(), String> {
    let settings = &mut loaded.settings;
    // The default pool is used by no site.
    settings.pools.retain(|pool| pool.name != DEFAULT_POOL);
    let mut sockets = BTreeMap::new();
    for section in &config.pools {
        let of_pool = |why: String| format!("[pool {}] {why}", section.name);
        let access = access(section).map_err(of_pool)?;
        let addresses: Vec<ListenAddr> =
            addresses(section, given).iter().filter_map(|addr| addr.parse().ok()).collect();
        sockets.extend(addresses.iter().filter_map(|addr| match addr.place() {
            SocketPlace::Unix(path) => Some((path.to_owned(), access)),
            SocketPlace::Tcp(_) => None,
        }));
        if let Some(site) = settings.sites.iter_mut().find(|site| site.name == section.name) {
            site.hosts.clear();
            site.listen = addresses;
        }
        let Some(pool) = settings.pools.iter_mut().find(|pool| pool.name == section.name) else { continue };
        if let Some(idle) = section.seconds("pm.process_idle_timeout").map_err(of_pool)? {
            pool.shrink_after = std::time::Duration::from_secs(idle);
        }
        pool.start_workers = pool::start_workers(section).map_err(of_pool)?.map_or(0, |number| number as usize);
        let addresses = pool::clients(section).map(|clients| clients.into_iter().map(str::parse).collect());
        let clients: Option<Result<Vec<_>, _>> = addresses;
        pool.fpm = Some(FpmPool {
            ping_path: section.get("ping.path").map(str::to_owned),
            ping_response: section.get("ping.response").unwrap_or("pong").to_owned(),
            extensions: pool::extensions(section),
            clients: clients
                .transpose()
                .map_err(|_| of_pool("listen.allowed_clients: expected addresses".to_owned()))?,
            access: pool::access(section).map_err(of_pool)?,
            trace_depth: section.number("request_slowlog_trace_depth").map_err(of_pool)?.unwrap_or(20) as usize,
        });
    }
    let pid =
        config.global.get("pid").map(|path| given.prefix.clone().unwrap_or_else(|| PathBuf::from(STATE)).join(path));
    settings.fpm = Some(FpmServer { pid_file: given.pid.clone().or(pid), sockets });
    Ok(())
}

/// Owner, group and mode of a pool's socket.
fn access(section: &Section) -> Result<SocketAccess, String> {
    let owner = section.get("listen.owner").map(|user| Account::find(user, &[])).transpose();
    let mode = section.get("listen.mode").map(|mode| u32::from_str_radix(mode, 8));
    Ok(SocketAccess {
        owner: owner.map_err(|why| format!("listen.owner: {why}"))?.map(|account| account.uid),
        group: section.get("listen.group").map(find_group).transpose().map_err(|why| format!("listen.group: {why}"))?,
        mode: mode.transpose().map_err(|_| "listen.mode: expected permissions in octal, such as 0660".to_owned())?,
    })
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
