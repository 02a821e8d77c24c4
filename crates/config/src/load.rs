//! Loads settings: finds and reads `howdah.toml`, reads every section through its sources, resolves computed values,
//! and checks the result.

use std::path::{Path, PathBuf};

use crate::address::ListenAddr;
use crate::admin_address::{admin_dirs, admin_name};
use crate::check;
use crate::check_users;
use crate::choice::{Mode, RootLinks};
use crate::cli::ServeFlags;
use crate::detected;
use crate::file::File;
use crate::load_proxies;
use crate::load_rules::{self, Gathered};
use crate::load_sites::{self, make_absolute, sites_of};
use crate::origin::{ConfigError, ConfigErrors, Origin, Origins};
use crate::quantity::ByteSize;
use crate::recipe;
use crate::settings::{PhpSettings, PoolSettings, Settings};
use crate::settings_acme::AcmeSettings;
use crate::settings_deploy::DeploySettings;
use crate::settings_file::read_file;
use crate::settings_http::{CompressionSettings, HttpSettings, LogSettings, StaticSettings};
use crate::settings_mercure::MercureSettings;
use crate::settings_pusher::PusherSettings;
use crate::settings_sandbox::SandboxSettings;
use crate::settings_site::SiteSettings;
use crate::settings_telemetry::TelemetrySettings;
use crate::settings_tls::TlsSettings;
use crate::source::{Environment, Scope, Source, absolute};
use crate::strict;
use crate::{check_acme, check_mercure, check_telemetry};
use howdah_budget::machine;
use howdah_detect::Application;

/// Settings with their origins.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The resulting settings.
    pub settings: Settings,
    pub origins: Origins,
    /// The `howdah.toml` that was read.
    pub file: Option<PathBuf>,
    /// The application detected in the directory, if there is no such file.
    pub found: Option<Application>,
    /// Values that were adjusted to the machine.
    pub(crate) adjusted: Vec<String>,
}

/// Loads the settings of `howdah serve` with these flags.
///
/// # Errors
/// All errors in the settings.
pub fn load(flags: &ServeFlags) -> Result<Loaded, ConfigErrors> {
    load_in(flags, &Environment::of_process())
}

/// Loads settings for a process with these surroundings.
///
/// # Errors
/// All errors in the settings.
pub fn load_in(flags: &ServeFlags, environment: &Environment) -> Result<Loaded, ConfigErrors> {
    let (loaded, errors) = load_as_far_as_possible(flags, environment)?;
    if errors.is_empty() { Ok(loaded) } else { Err(ConfigErrors(errors)) }
}

/// Loads settings and their errors, for commands that only inspect them: invalid values count as unset.
///
/// # Errors
/// No `howdah.toml` could be read.
pub fn load_as_far_as_possible(
    flags: &ServeFlags,
    environment: &Environment,
) -> Result<(Loaded, Vec<ConfigError>), ConfigErrors> {
    let file = read_file(flags.config.as_deref(), environment)?;
    Ok(load_file(file, flags, environment))
}

/// Loads settings from the text of a `howdah.toml` that is not in a file. `path` is shown in errors, and its directory
/// is the base of relative paths.
///
/// # Errors
/// All errors in the settings.
pub fn load_text(path: &Path, text: String, environment: &Environment) -> Result<Loaded, ConfigErrors> {
    let full = absolute(&environment.current_dir, path);
    let file = File::parse(path.to_path_buf(), &full, text.into_bytes(), false).map_err(ConfigErrors)?;
    let (loaded, errors) = load_file(Some(file), &ServeFlags::default(), environment);
    if errors.is_empty() { Ok(loaded) } else { Err(ConfigErrors(errors)) }
}

fn load_file(file: Option<File>, flags: &ServeFlags, environment: &Environment) -> (Loaded, Vec<ConfigError>) {
    let mut errors = file.as_ref().map_or_else(Vec::new, strict::unknown_keys);
    let site_files = read_site_files(file.as_ref(), flags, environment, &mut errors);
    errors.extend(site_files.iter().flat_map(strict::unknown_keys_of_sites));
    let mut source = Source::new(file.as_ref(), &flags.values, environment, errors);
    let found = detected::look(&mut source);
    let mut settings = read_all(&mut source, &site_files, found.as_ref());
    resolve(&mut settings, &mut source, &site_files, found.as_ref());
    check::check(&settings, &mut source);
    settings.site_files = site_files.iter().map(|file| absolute(&environment.current_dir, &file.path)).collect();
    settings.config_file = file.as_ref().map(|file| absolute(&environment.current_dir, &file.path));
    let files: Vec<&Path> = file.iter().chain(&site_files).map(|file| file.path.as_path()).collect();
    let (origins, adjusted, errors) = (source.origins, source.warnings, in_order(source.errors, &files));
    (Loaded { settings, origins, file: file.map(|file| file.path.to_path_buf()), found, adjusted }, errors)
}

/// Loads only the settings of certificates, for `howdah trust` in any directory.
///
/// # Errors
/// Errors in these settings.
pub fn find_acme(flags: &ServeFlags) -> Result<AcmeSettings, ConfigErrors> {
    let environment = Environment::of_process();
    let file = read_file(flags.config.as_deref(), &environment)?;
    let mut source = Source::new(file.as_ref(), &flags.values, &environment, Vec::new());
    let mut acme = AcmeSettings::read(&mut source, Scope::Top);
    if source.origins.of("acme.state") == Origin::Default {
        acme.state = check_acme::find_state(&source, check_users::of_server().as_ref());
    }
    if source.errors.is_empty() { Ok(acme) } else { Err(ConfigErrors(source.errors)) }
}

/// Reads the site files that the settings name.
fn read_site_files(
    file: Option<&File>,
    flags: &ServeFlags,
    environment: &Environment,
    errors: &mut Vec<ConfigError>,
) -> Vec<File> {
    let Some(main) = file else { return Vec::new() };
    let patterns =
        Settings::read(&mut Source::new(file, &flags.values, environment, Vec::new()), Scope::Top).site_patterns;
    load_sites::read_files(main, &patterns, errors)
}

/// Reads every section.
fn read_all<'a>(source: &mut Source<'a>, site_files: &'a [File], found: Option<&Application>) -> Settings {
    let default = PoolSettings {
        php: PhpSettings::read(source, Scope::Top),
        sandbox: SandboxSettings::read(source, Scope::Top),
        ..PoolSettings::read(source, Scope::Top)
    };
    let main = source.file;
    let files: Vec<&File> = main.into_iter().chain(site_files).collect();
    let sites: Vec<_> =
        files.iter().flat_map(|file| sites_of(file, main.is_some_and(|main| std::ptr::eq(main, *file)))).collect();
    let mut pools = vec![default];
    pools.extend(load_sites::read_pools(source, &files, &sites));
    let mut gathered = Gathered { proxies: load_proxies::read(source), shares: 0 };
    let mut settings = Settings {
        pools,
        http: HttpSettings::read(source, Scope::Top),
        tls: TlsSettings::read(source, Scope::Top),
        static_files: StaticSettings::read(source, Scope::Top),
        compression: CompressionSettings::read(source, Scope::Top),
        acme: AcmeSettings::read(source, Scope::Top),
        mercure: MercureSettings::read(source, Scope::Top),
        pusher: PusherSettings::read(source, Scope::Top),
        deploy: DeploySettings::read(source, Scope::Top),
        log: LogSettings::read(source, Scope::Top),
        telemetry: TelemetrySettings::read(source, Scope::Top),
        ..Settings::read(source, Scope::Top)
    };
    if let Some(found) = found {
        detected::take(found, &mut settings, source);
    }
    let written = load_rules::Written { file: main, own: source.section(""), section: "" };
    settings.rules =
        load_rules::read(source, written, settings.app.name(), &settings.pools, &mut gathered).unwrap_or_default();
    settings.sites = load_sites::read_sites(source, &sites, &settings, &mut gathered);
    settings.proxies = gathered.proxies;
    settings
}

/// Sets values that depend on the surroundings, unless they were set explicitly.
fn resolve(settings: &mut Settings, source: &mut Source<'_>, site_files: &[File], found: Option<&Application>) {
    let base = source.file.map_or_else(|| source.environment.current_dir.clone(), |file| file.dir.clone());
    let watched = base.clone();
    if source.origins.of("root") == Origin::Default {
        let public = base.join("public");
        settings.root = if public.is_dir() { public } else { base };
    }
    for pool in &mut settings.pools {
        make_absolute(&mut pool.watch, &watched);
    }
    recipe::add(settings, found, source);
    resolve_warm_up(settings, source);
    choose_comparisons(settings);
    resolve_auto(settings, source);
    if source.origins.of("admin") == Origin::Default {
        let dir = admin_dirs(source.environment).find(|dir| is_writable_dir(dir));
        let dir = dir.unwrap_or_else(std::env::temp_dir);
        settings.admin = ListenAddr::Unix(dir.join(admin_name(&settings.listen)));
    }
    check_users::resolve(settings, source);
    if source.origins.of("acme.state") == Origin::Default {
        // `check` reports an unknown user.
        settings.acme.state = check_acme::find_state(source, settings.account().ok().flatten().as_ref());
    }
    check_mercure::resolve(settings, source);
    check_telemetry::resolve(&mut settings.telemetry, source);
    resolve_room(settings, source);
    let roots: Vec<PathBuf> = settings.pools.iter().map(|pool| settings.root_of(pool).to_path_buf()).collect();
    let dirs: Vec<&Path> = source.file.into_iter().chain(site_files).map(|file| file.dir.as_path()).collect();
    for (pool, root) in settings.pools.iter_mut().zip(roots) {
        pool.php.binary.find(source.environment);
        for script in [&mut pool.script, &mut pool.boot].into_iter().flatten() {
            if !script.exists() {
                under_root(script, &root, &source.environment.current_dir, &dirs);
            }
        }
    }
    resolve_links(settings);
}

/// Chooses the classic-mode pool to compare with, if no recipe has set one.
fn choose_comparisons(settings: &mut Settings) {
    let classic = |pool: &PoolSettings| {
        let fits =
            |other: &&PoolSettings| other.mode == Mode::Classic && settings.root_of(other) == settings.root_of(pool);
        settings.pools.iter().find(fits).map(|other| other.name.clone())
    };
    let is_open =
        |pool: &PoolSettings| pool.compare_one_in > 0 && pool.mode != Mode::Classic && pool.compare_with.is_none();
    let found: Vec<_> = settings.pools.iter().map(|pool| is_open(pool).then(|| classic(pool)).flatten()).collect();
    for (pool, found) in settings.pools.iter_mut().zip(found) {
        pool.compare_with = pool.compare_with.take().or(found);
    }
}

/// Resolves links if `root_links` asks for it now. `check` reports missing targets.
fn resolve_links(settings: &mut Settings) {
    let links = |settings: &Settings, pool: &PoolSettings| {
        settings.site_of(pool).map_or(settings.root_links, |site| site.root_links)
    };
    let now: Vec<bool> = settings.pools.iter().map(|pool| links(settings, pool) == RootLinks::Reload).collect();
    let resolve = |path: &mut PathBuf| {
        if let Ok(real) = path.canonicalize() {
            *path = real;
        }
    };
    for (pool, _) in settings.pools.iter_mut().zip(now).filter(|(_, now)| *now) {
        [&mut pool.script, &mut pool.boot].into_iter().flatten().for_each(resolve);
    }
    if settings.root_links == RootLinks::Reload {
        resolve(&mut settings.root);
    }
    let sites = settings.sites.iter_mut().filter(|site| site.root_links == RootLinks::Reload);
    sites.for_each(|site| resolve(&mut site.root));
}

/// Octane's script, which boots Laravel in its first request. With a snapshot and no warm-up, that is every request.
const BOOTS_LATE: &str = "laravel/octane/bin/frankenphp-worker.php";

/// Enables learned warm-ups for pools whose snapshot would be taken before the boot. For other scripts it is unknown
/// what they keep of a warm-up.
fn resolve_warm_up(settings: &mut Settings, source: &Source<'_>) {
    for pool in &mut settings.pools {
        let boots_late = pool.script.as_ref().is_some_and(|script| script.ends_with(BOOTS_LATE));
        let is_cold = pool.mode == Mode::Snapshot && boots_late && pool.warmup.is_empty();
        pool.warmup_auto |= is_cold && !recipe::is_set(pool, "warmup_auto", source);
    }
}

/// Applies `tls.auto`: adds hosts of sites to `acme.names`, or `localhost` if no name is left, and sets `listen`.
fn resolve_auto(settings: &mut Settings, source: &Source<'_>) {
    let is_own = |site: &SiteSettings| source.origins.of(&format!("site.{}.tls.auto", site.name)) != Origin::Default;
    let all = settings.tls.auto && !settings.acme.is_used();
    let wanted = |site: &&SiteSettings| site.tls.auto && site.tls.certificates.is_empty() && (all || is_own(site));
    for name in settings.sites.iter().filter(wanted).flat_map(SiteSettings::certifiable_hosts) {
        if !settings.acme.names.contains(name) {
            settings.acme.names.push(name.clone());
        }
    }
    if !settings.tls.auto {
        return;
    }
    let is_public = settings.acme.on_demand.is_some() || !settings.acme.names.is_empty();
    if !settings.acme.is_used() {
        settings.acme.names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    }
    if source.origins.of("listen") == Origin::Default {
        let addresses = if is_public { [":80", "https://:443"] } else { ["127.0.0.1:8080", "https://127.0.0.1:8443"] };
        settings.listen = addresses.iter().filter_map(|addr| addr.parse().ok()).collect();
    }
}

/// Descriptors per worker in the server: its lane, its sockets, its process, a body in transit.
const DESCRIPTORS_OF_WORKER: u64 = 8;
/// Descriptors per site: its root and its log.
const DESCRIPTORS_OF_SITE: u64 = 2;
/// Descriptors for logs, listeners, zygotes, runtimes and the admin endpoint.
const DESCRIPTORS_OF_SERVER: u64 = 256;

/// Limits connections to the number of available descriptors, less those that their requests need.
fn limit_connections(settings: &mut Settings, source: &mut Source<'_>) {
    const REMEDY: &str = "raise the limit (`LimitNOFILE=` of systemd, `ulimit -Hn`)";
    // The server raises its soft limit to this maximum when it starts.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let descriptors = limit.maximum.unwrap_or(u64::MAX);
    let workers: u64 = settings.pools.iter().map(|pool| u64::from(pool.workers.max)).sum();
    let sites = settings.sites.len() as u64 * DESCRIPTORS_OF_SITE;
    let kept =
        DESCRIPTORS_OF_SERVER + sites + settings.static_files.open_files as u64 + workers * DESCRIPTORS_OF_WORKER;
    let most = machine::most_connections(descriptors, kept);
    let wanted = &mut settings.http.max_connections;
    if source.origins.of("http.max_connections") == Origin::Default {
        *wanted = machine::default_connections(descriptors, kept, machine::memory());
        if descriptors <= kept {
            source.warnings.push(format!(
                "http.max_connections is {wanted}: the process may have only {descriptors} descriptors; {REMEDY}"
            ));
        }
    } else if *wanted == 0 {
        *wanted = most;
    } else if *wanted > most {
        source.warnings.push(format!(
            "http.max_connections = {wanted} needs more than {descriptors} descriptors; {most} are used; {REMEDY}"
        ));
        *wanted = most;
    }
}

/// Sets values that depend on the machine's memory, disk and descriptors.
fn resolve_room(settings: &mut Settings, source: &mut Source<'_>) {
    let http = &mut settings.http;
    let named = source.environment.env.get("TMPDIR").map(PathBuf::from);
    http.temp_dir = Some(machine::temp_dir(named, is_memory, is_writable_dir));
    if source.origins.of("http.spool") == Origin::Default
        && let Some(found) =
            http.temp_dir.as_ref().and_then(|dir| rustix::fs::statvfs(dir).ok().map(|stat| (dir, stat)))
    {
        let (dir, stat) = found;
        http.spool = ByteSize(machine::default_spool(stat.f_bavail.saturating_mul(stat.f_frsize), is_memory(dir)));
    }
    limit_connections(settings, source);
    let http = &settings.http;
    // Sites copied these settings before their values were known.
    for site in &mut settings.sites {
        site.http.temp_dir.clone_from(&http.temp_dir);
        site.http.spool = http.spool;
        site.http.max_connections = http.max_connections;
    }
}

/// `true` if this directory is on a memory file system.
fn is_memory(dir: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    // The width of `f_type` depends on the architecture; the magic numbers have 32 bits.
    rustix::fs::statfs(dir).is_ok_and(|stat| matches!(stat.f_type as u64 & 0xffff_ffff, TMPFS | RAMFS))
}

/// Looks below the root for a script that does not exist relative to the file or the current directory.
fn under_root(script: &mut PathBuf, root: &Path, current: &Path, dirs: &[&Path]) {
    let bases = [current].into_iter().chain(dirs.iter().copied());
    let relative = bases.filter_map(|base| script.strip_prefix(base).ok());
    if let Some(found) = relative.map(|relative| root.join(relative)).find(|path| path.is_file()) {
        *script = found;
    }
}

fn is_writable_dir(dir: &Path) -> bool {
    dir.is_dir() && rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Sorts errors by file, then those of flags and of the settings as a whole; removes duplicates.
fn in_order(mut errors: Vec<ConfigError>, files: &[&Path]) -> Vec<ConfigError> {
    let line = |error: &ConfigError| match error.origin {
        Some(Origin::File(_, line)) => line,
        _ => usize::MAX,
    };
    let file = |error: &ConfigError| match &error.origin {
        Some(Origin::File(path, _)) => files.iter().position(|file| *file == **path).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    errors.sort_by_key(|error| (file(error), line(error)));
    let mut seen: Vec<ConfigError> = Vec::new();
    for error in errors {
        // An error in an inherited value is reported once, not once per pool.
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
