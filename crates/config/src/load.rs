//! Loads settings: finds and reads `howdah.toml`, reads every section through its sources, resolves what is computed,
//! and has the whole checked. All input and output of this crate happens here, in `check` and when `Cli` is parsed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::address::ListenAddr;
use crate::check;
use crate::cli::{ControlFlags, ServeFlags};
use crate::document::{self, Entry, Node, Tree};
use crate::origin::{ConfigError, ConfigErrors, Origin, Origins};
use crate::quantity::ByteSize;
use crate::settings::{DEFAULT_POOL, PhpSettings, PoolSettings, Route, RouteKeys, Settings};
use crate::settings_http::{CompressionSettings, HttpSettings, LogSettings, StaticSettings};
use crate::settings_proxy::ProxySettings;
use crate::settings_sandbox::SandboxSettings;
use crate::source::{File, Source, Surroundings, absolute, entries, find};
use crate::strict;
use crate::table::Row;
use howdah_budget::machine;

/// The name of the file that is read where no other is named.
const FILE_NAME: &str = "howdah.toml";

/// Settings, and where each comes from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What the program uses.
    pub settings: Settings,
    /// Where each value comes from.
    pub origins: Origins,
    /// The `howdah.toml` that was read.
    pub file: Option<PathBuf>,
}

/// Loads the settings of `howdah serve` with these flags.
///
/// # Errors
/// Everything that is wrong with the settings.
pub fn load(flags: &ServeFlags) -> Result<Loaded, ConfigErrors> {
    load_in(flags, &Surroundings::of_process())
}

/// Loads settings as a process would that is surrounded by this.
///
/// # Errors
/// Everything that is wrong with the settings.
pub fn load_in(flags: &ServeFlags, around: &Surroundings) -> Result<Loaded, ConfigErrors> {
    let file = read_file(flags.config.as_deref(), around)?;
    let errors = file.as_ref().map_or_else(Vec::new, strict::unknown_keys);
    let mut source = Source::new(file.as_ref(), &flags.values, around, errors);
    let mut settings = read_all(&mut source);
    resolve(&mut settings, &mut source);
    check::check(&settings, &mut source);
    settings.config_file = file.as_ref().map(|file| absolute(&around.current_dir, &file.path));
    let (origins, errors) = (source.origins, source.errors);
    if errors.is_empty() {
        Ok(Loaded { settings, origins, file: file.map(|file| file.path.to_path_buf()) })
    } else {
        Err(ConfigErrors(in_order(errors)))
    }
}

/// Where a running server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminAddress {
    /// Its admin endpoint.
    pub addr: ListenAddr,
    /// What requests must carry there.
    pub token: Option<String>,
}

/// Where the server is reached that `howdah status`, `reload` and `stop` mean: the address in the flags, environment
/// or `howdah.toml`, else the first socket there is of those that a server would take by default.
///
/// # Errors
/// What is wrong with the settings that decide it.
pub fn find_admin(flags: &ControlFlags) -> Result<AdminAddress, ConfigErrors> {
    find_admin_in(flags, &Surroundings::of_process())
}

fn find_admin_in(flags: &ControlFlags, around: &Surroundings) -> Result<AdminAddress, ConfigErrors> {
    let file = read_file(flags.serve.config.as_deref(), around)?;
    let mut source = Source::new(file.as_ref(), &flags.serve.values, around, Vec::new());
    let settings = Settings::read(&mut source);
    source.errors.retain(|error| matches!(error.setting.as_str(), "admin" | "admin_token" | "listen"));
    if !source.errors.is_empty() {
        return Err(ConfigErrors(source.errors));
    }
    if source.origins.of("admin") != Origin::Default {
        return Ok(AdminAddress { addr: settings.admin, token: settings.admin_token });
    }
    let paths: Vec<PathBuf> = admin_dirs(around).map(|dir| dir.join(admin_name(&settings.listen))).collect();
    let there = paths.iter().find(|path| path.exists()).or(paths.first()).cloned();
    Ok(AdminAddress { addr: ListenAddr::Unix(there.unwrap_or_default()), token: None })
}

/// Reads the `howdah.toml` that is named, or the one in the current directory if there is one.
fn read_file(named: Option<&Path>, around: &Surroundings) -> Result<Option<File>, ConfigErrors> {
    let shown = named.map_or_else(|| PathBuf::from(FILE_NAME), Path::to_path_buf);
    let full = absolute(&around.current_dir, &shown);
    let fail = |origin, message| Err(ConfigErrors(vec![ConfigError { origin, setting: String::new(), message }]));
    let text = match std::fs::read(&full) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => return fail(None, format!("{} is not UTF-8 text", shown.display())),
        },
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return fail(None, format!("cannot read {}: {error}", shown.display())),
    };
    let path = Arc::new(shown);
    match document::parse(&text) {
        Ok(mut root) => {
            sandbox_in_short(&mut root);
            Ok(Some(File { path, dir: full.parent().map_or_else(PathBuf::new, PathBuf::from), root }))
        }
        Err(errors) => Err(ConfigErrors(
            errors
                .into_iter()
                .map(|(line, message)| ConfigError {
                    origin: Some(Origin::File(Arc::clone(&path), line)),
                    setting: String::new(),
                    message,
                })
                .collect(),
        )),
    }
}

/// Writes out what stands for a section of its own: `sandbox = "app"`, at the top level and in pools.
fn sandbox_in_short(root: &mut Node) {
    let Tree::Table(top) = &mut root.tree else { return };
    for entry in top {
        match entry.key.as_str() {
            "sandbox" => profile_only(entry),
            "pool" => {
                let Tree::Table(pools) = &mut entry.node.tree else { continue };
                for pool in pools {
                    let Tree::Table(own) = &mut pool.node.tree else { continue };
                    own.iter_mut().filter(|entry| entry.key == "sandbox").for_each(profile_only);
                }
            }
            _ => {}
        }
    }
}

fn profile_only(entry: &mut Entry) {
    if matches!(entry.node.tree, Tree::Text(_)) {
        let profile = Entry { key: "profile".to_owned(), line: entry.line, node: entry.node.clone() };
        entry.node.tree = Tree::Table(vec![profile]);
    }
}

/// Reads every section.
fn read_all(source: &mut Source<'_>) -> Settings {
    let default = PoolSettings {
        php: PhpSettings::read(source),
        sandbox: SandboxSettings::read(source),
        ..PoolSettings::read(source)
    };
    let mut pools = vec![default];
    for entry in source.section("pool").iter().filter(|entry| entry.key != DEFAULT_POOL) {
        if let Tree::Table(own) = &entry.node.tree {
            let name = format!("pool.{}", entry.key);
            let own_sandbox = find(own, "sandbox").map_or(&[][..], |entry| entries(&entry.node));
            let sandbox = source.with_own(format!("{name}.sandbox"), own_sandbox, SandboxSettings::read);
            let pool = source.with_own(name, own, |source| PoolSettings {
                name: entry.key.clone(),
                php: PhpSettings::read(source),
                sandbox,
                ..PoolSettings::read(source)
            });
            pools.push(pool);
        }
    }
    let mut proxies = read_proxies(source);
    Settings {
        pools,
        routes: read_routes(source, &mut proxies),
        proxies,
        http: HttpSettings::read(source),
        static_files: StaticSettings::read(source),
        compression: CompressionSettings::read(source),
        log: LogSettings::read(source),
        ..Settings::read(source)
    }
}

/// Reads the proxies.
fn read_proxies(source: &mut Source<'_>) -> Vec<ProxySettings> {
    let mut proxies = Vec::new();
    for entry in source.section("proxy") {
        if let Tree::Table(own) = &entry.node.tree {
            let read = source.alone(format!("proxy.{}", entry.key), own, ProxySettings::read);
            proxies.push(ProxySettings { name: entry.key.clone(), ..read });
        }
    }
    proxies
}

/// The name of the proxy that a route hands its requests to: an address in the place of a name makes one.
fn proxy_of(text: String, proxies: &mut Vec<ProxySettings>) -> String {
    let Ok(address) = text.parse() else { return text };
    let proxy = ProxySettings::to(address);
    let name = proxy.name.clone();
    if proxies.iter().all(|known| known.name != name) {
        proxies.push(proxy);
    }
    name
}

/// Reads the routes. One that is not complete is reported, and kept so that the others keep their numbers.
fn read_routes(source: &mut Source<'_>, proxies: &mut Vec<ProxySettings>) -> Vec<Route> {
    let list = find(source.section(""), "route").map(|entry| &entry.node.tree);
    let Some(Tree::List(items)) = list else { return Vec::new() };
    let mut routes = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let name = format!("route[{at}]");
        let own = entries(item);
        let keys = source.alone(name.clone(), own, RouteKeys::read);
        routes.push(Route {
            pattern: keys.pattern.unwrap_or_default(),
            pool: keys.pool.unwrap_or_else(|| DEFAULT_POOL.to_owned()),
            proxy: keys.proxy.map(|proxy| proxy_of(proxy, proxies)),
            workers: keys.workers,
            weight: keys.weight,
        });
        let origin = source.file.map(|file| Origin::File(Arc::clone(&file.path), item.line));
        let is_there = |key: &str| {
            find(own, key).is_some_and(|entry| !matches!(&entry.node.tree, Tree::Text(text) if text.is_empty()))
        };
        let missing = |row: &&Row| {
            let required = row.key == "match" || (row.key == "pool" && !is_there("proxy"));
            required && !is_there(row.key)
        };
        for row in RouteKeys::ROWS.iter().filter(missing) {
            let message = format!("is required in each [[route]]; for example: {} = {}", row.key, row.example);
            source.error(origin.clone(), &format!("{name}.{}", row.key), message);
        }
    }
    routes
}

/// Puts in what depends on the surroundings, where nothing else was said.
fn resolve(settings: &mut Settings, source: &mut Source<'_>) {
    let base = source.file.map_or_else(|| source.around.current_dir.clone(), |file| file.dir.clone());
    let watched = base.clone();
    if source.origins.of("root") == Origin::Default {
        let public = base.join("public");
        settings.root = if public.is_dir() { public } else { base };
    }
    for pool in &mut settings.pools {
        for pattern in &mut pool.watch {
            *pattern = watched.join(&*pattern).to_string_lossy().into_owned();
        }
    }
    if source.origins.of("admin") == Origin::Default {
        let dir = admin_dirs(source.around).find(|dir| is_writable_dir(dir));
        let dir = dir.unwrap_or_else(std::env::temp_dir);
        settings.admin = ListenAddr::Unix(dir.join(admin_name(&settings.listen)));
    }
    resolve_room(settings, source);
    let beside = find_binary(&settings.pools[0].php.binary, source.around);
    for pool in &mut settings.pools {
        let name =
            if pool.name == DEFAULT_POOL { "php.binary".to_owned() } else { format!("pool.{}.binary", pool.name) };
        if source.origins.of(&name) == Origin::Default {
            pool.php.binary.clone_from(&beside);
        }
        for script in [&mut pool.script, &mut pool.boot].into_iter().flatten() {
            if !script.exists() {
                under_root(script, &settings.root, &source.around.current_dir, source.file);
            }
        }
    }
}

/// Descriptors that a worker needs in the server: its lane, its sockets, its process, a body on its way.
const DESCRIPTORS_OF_WORKER: u64 = 8;
/// Descriptors for logs, listeners, zygotes, runtimes and the admin endpoint.
const DESCRIPTORS_OF_SERVER: u64 = 256;

/// What depends on the machine's memory, disk and descriptors.
fn resolve_room(settings: &mut Settings, source: &Source<'_>) {
    let http = &mut settings.http;
    if http.temp_dir.is_none() {
        let named = source.around.env.get("TMPDIR").map(PathBuf::from);
        http.temp_dir = Some(machine::temp_dir(named, is_memory, is_writable_dir));
    }
    if source.origins.of("http.spool") == Origin::Default
        && let Some(found) =
            http.temp_dir.as_ref().and_then(|dir| rustix::fs::statvfs(dir).ok().map(|stat| (dir, stat)))
    {
        let (dir, stat) = found;
        http.spool = ByteSize(machine::default_spool(stat.f_bavail.saturating_mul(stat.f_frsize), is_memory(dir)));
    }
    if source.origins.of("http.max_connections") == Origin::Default {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let workers: u64 = settings.pools.iter().map(|pool| u64::from(pool.workers.max)).sum();
        let kept = DESCRIPTORS_OF_SERVER + settings.static_files.open_files as u64 + workers * DESCRIPTORS_OF_WORKER;
        // The server raises its limit to this when it starts.
        http.max_connections = machine::default_connections(limit.maximum.unwrap_or(u64::MAX), kept, machine::memory());
    }
}

/// Whether files in this directory are in memory.
fn is_memory(dir: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    // The type's width differs between architectures; the numbers have 32 bits.
    rustix::fs::statfs(dir).is_ok_and(|stat| matches!(stat.f_type as u64 & 0xffff_ffff, TMPFS | RAMFS))
}

/// A script that is not where its relative path leads from the file or the current directory may lie under the root.
fn under_root(script: &mut PathBuf, root: &Path, current: &Path, file: Option<&File>) {
    let bases = [Some(current), file.map(|file| file.dir.as_path())];
    let relative = bases.into_iter().flatten().filter_map(|base| script.strip_prefix(base).ok());
    if let Some(found) = relative.map(|relative| root.join(relative)).find(|path| path.is_file()) {
        *script = found;
    }
}

/// `howdah-php` beside the running program, else in `PATH`, else as it is.
fn find_binary(name: &Path, around: &Surroundings) -> PathBuf {
    let path = around.env.get("PATH").map(String::as_str).unwrap_or_default();
    let dirs =
        around.program_dir.clone().into_iter().chain(path.split(':').filter(|dir| !dir.is_empty()).map(PathBuf::from));
    dirs.map(|dir| dir.join(name)).find(|path| path.is_file()).unwrap_or_else(|| name.to_path_buf())
}

/// The directories that a server's admin socket may be in, best first.
fn admin_dirs(around: &Surroundings) -> impl Iterator<Item = PathBuf> + use<> {
    let runtime = around.env.get("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let temp = around.env.get("TMPDIR").filter(|dir| !dir.is_empty()).map_or_else(std::env::temp_dir, PathBuf::from);
    runtime.into_iter().chain([PathBuf::from("/run"), temp])
}

fn is_writable_dir(dir: &Path) -> bool {
    dir.is_dir() && rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok()
}

/// The name of a server's admin socket, made from its first listen address.
fn admin_name(listen: &[ListenAddr]) -> String {
    let address = listen.first().cloned().unwrap_or_default().to_string();
    let name: String = address.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    // The path of a socket has little more than a hundred bytes.
    let name = name.trim_matches('-');
    format!("howdah-{}.sock", &name[name.len().saturating_sub(60)..])
}

/// Errors in the order of the file, then those of flags and of the whole; each once.
fn in_order(mut errors: Vec<ConfigError>) -> Vec<ConfigError> {
    let line = |error: &ConfigError| match error.origin {
        Some(Origin::File(_, line)) => line,
        _ => usize::MAX,
    };
    errors.sort_by_key(line);
    let mut seen: Vec<ConfigError> = Vec::new();
    for error in errors {
        // A value that a pool inherits is wrong once, not once per pool.
        if !seen
            .iter()
            .any(|seen| seen.origin == error.origin && seen.message == error.message && same_key(seen, &error))
        {
            seen.push(error);
        }
    }
    seen
}

fn same_key(a: &ConfigError, b: &ConfigError) -> bool {
    let key = |error: &ConfigError| error.setting.rsplit(' ').next().unwrap_or_default().to_owned();
    a.origin.is_some() && key(a) == key(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admin_socket_is_named_after_the_first_address() {
        let name = |text: &str| admin_name(&[text.parse().unwrap()]);
        assert_eq!(name("127.0.0.1:8080"), "howdah-127.0.0.1-8080.sock");
        assert_eq!(name("[::1]:80"), "howdah-1--80.sock");
        assert_eq!(name("unix:/run/a/b.sock"), "howdah-unix--run-a-b.sock.sock");
        assert!(name(&format!("unix:/{}", "x".repeat(300))).len() < 80);
    }

    #[test]
    fn a_running_server_is_found_where_its_socket_is() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let around = Surroundings {
            current_dir: one.path().to_path_buf(),
            env: [("XDG_RUNTIME_DIR", one.path()), ("TMPDIR", two.path())]
                .map(|(name, dir)| (name.to_owned(), dir.to_str().unwrap().to_owned()))
                .into(),
            program_dir: None,
            uid: None,
        };
        let mut flags = ControlFlags::default();
        flags.serve.set("listen", "127.0.0.1:1");
        let found = find_admin_in(&flags, &around).unwrap().addr;
        assert_eq!(found, ListenAddr::Unix(one.path().join("howdah-127.0.0.1-1.sock")));
        std::fs::write(two.path().join("howdah-127.0.0.1-1.sock"), "").unwrap();
        let found = find_admin_in(&flags, &around).unwrap().addr;
        assert_eq!(found, ListenAddr::Unix(two.path().join("howdah-127.0.0.1-1.sock")));
        flags.serve.set("admin", "127.0.0.1:2");
        assert_eq!(find_admin_in(&flags, &around).unwrap().addr, "127.0.0.1:2".parse().unwrap());
    }
}
