//! Checks settings as a whole: what each value alone cannot tell (files that exist, names that match), and values that
//! would be understood but could not work.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::address::ListenAddr;
use crate::choice::{Mode, SandboxProfile, SystemCalls};
use crate::glob::Glob;
use crate::origin::Origin;
use crate::settings::{DEFAULT_POOL, PoolSettings, Settings};
use crate::source::Source;
use crate::strict::nearest;
use crate::{check_proxies, check_users};

/// Reports everything that is wrong with settings which were read.
pub(crate) fn check(settings: &Settings, source: &mut Source<'_>) {
    server(settings, source);
    for pool in &settings.pools {
        self::pool(pool, source);
    }
    concurrency(settings, source);
    writable_code(settings, source);
    routes(settings, source);
    check_proxies::check(settings, source);
    http(settings, source);
    replies(settings, source);
    handed_over(settings, source);
    check_users::check(settings, source);
}

fn server(settings: &Settings, source: &mut Source<'_>) {
    let root = &settings.root;
    if root == Path::new("/") && source.origins.of("root") == Origin::Default {
        let message = "no root was given and the current directory is /; name the directory to serve";
        source.object("root", message.to_owned());
    } else if !root.is_dir() {
        let what = if root.exists() { "is not a directory" } else { "does not exist" };
        source.object("root", format!("{} {what}", root.display()));
    } else if std::fs::metadata(root.join(".")).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
        source.object("root", format!("{} cannot be entered by the user who runs this", root.display()));
    }
    if settings.listen.is_empty() {
        source.object("listen", "needs at least one address".to_owned());
    }
    for (at, addr) in settings.listen.iter().enumerate() {
        let any_port = matches!(addr, ListenAddr::Tcp(addr) if addr.port() == 0);
        if settings.listen[..at].contains(addr) && !any_port {
            source.object("listen", format!("{addr} is named twice"));
        }
        if settings.admin == *addr && !any_port {
            source.object("admin", format!("{addr} is an address of `listen` too; give it an address of its own"));
        }
    }
    if let Some(front) = &settings.front_controller
        && (front.starts_with('/') || front.split('/').any(|part| part == ".."))
    {
        source.object("front_controller", format!("\"{front}\" must be a path under the root, such as \"index.php\""));
    }
    if let Some(bad) = settings.index.iter().find(|name| name.is_empty() || name.contains('/')) {
        source.object("index", format!("\"{bad}\" is not a file name"));
    }
}

fn pool(pool: &PoolSettings, source: &mut Source<'_>) {
    let is_default = pool.name == DEFAULT_POOL;
    let name = |key: &str| if is_default { key.to_owned() } else { format!("pool.{}.{key}", pool.name) };
    let php = |key: &str| if is_default { format!("php.{key}") } else { format!("pool.{}.{key}", pool.name) };
    match (pool.mode, &pool.script, &pool.boot) {
        (Mode::Worker | Mode::Async, None, _) => {
            let message = format!("mode \"{}\" needs a script; for example: script = \"worker.php\"", pool.mode);
            source.object(&name("mode"), message);
        }
        (Mode::Snapshot, None, None) => {
            let message = "mode \"snapshot\" needs a script or a boot file; for example: boot = \"boot.php\"";
            source.object(&name("mode"), message.to_owned());
        }
        _ => {}
    }
    for (key, path) in [("script", &pool.script), ("boot", &pool.boot)] {
        if let Some(path) = path
            && pool.mode != Mode::Classic
            && !path.is_file()
        {
            source.object(&name(key), format!("there is no file {}", path.display()));
        }
    }
    if source.origins.of(&php("binary")) != Origin::Default {
        let binary = &pool.php.binary;
        if !binary.is_file() {
            source.object(&php("binary"), format!("there is no file {}", binary.display()));
        } else if std::fs::metadata(binary).is_ok_and(|found| found.permissions().mode() & 0o111 == 0) {
            source.object(&php("binary"), format!("{} is not executable", binary.display()));
        }
    }
    if let Some(config) = &pool.php.config
        && !config.exists()
    {
        source.object(&php("config"), format!("there is no file or directory {}", config.display()));
    }
    for (setting, values) in [("ini", &pool.php.ini), ("admin_ini", &pool.php.admin_ini)] {
        for (key, value) in values {
            if key.is_empty() || key.contains(['\n', '\0', '=', '[', ']']) || value.contains(['\n', '\0']) {
                source.object(&php(setting), format!("{key:?} cannot be set: no line breaks, = or brackets"));
            }
        }
    }
    for (key, value) in &pool.php.env {
        if key.is_empty() || key.contains(['=', '\0']) || value.contains('\0') {
            source.object(&php("env"), format!("{key:?} is not a name of an environment variable"));
        }
    }
    if let Some(path) = pool.warmup.iter().find(|path| !path.starts_with('/')) {
        source.object(&name("warmup"), format!("\"{path}\" must be a request path, such as \"/{path}\""));
    }
    for pattern in &pool.watch {
        if let Err(why) = Glob::new(pattern, Path::new("/")) {
            source.object(&name("watch"), format!("\"{pattern}\" {why}"));
        }
    }
    not_zero(source, &name("boot_timeout"), pool.boot_timeout);
    sandbox(pool, source);
}

fn sandbox(pool: &PoolSettings, source: &mut Source<'_>) {
    let is_default = pool.name == DEFAULT_POOL;
    let name =
        |key: &str| if is_default { format!("sandbox.{key}") } else { format!("pool.{}.sandbox.{key}", pool.name) };
    let sandbox = &pool.sandbox;
    if sandbox.profile == SandboxProfile::Off {
        return;
    }
    if let Some(both) = sandbox.deny.iter().find(|group| sandbox.allow.contains(group)) {
        source.object(&name("deny"), format!("\"{both}\" stands in `allow` too"));
    }
    if pool.mode == Mode::Snapshot && sandbox.deny.contains(&SystemCalls::Fork) {
        let message = "workers in mode \"snapshot\" are forked from one another, so \"fork\" cannot be refused there";
        source.object(&name("deny"), message.to_owned());
    }
    for (key, paths) in [("read", &sandbox.read), ("execute", &sandbox.execute)] {
        if let Some(path) = paths.iter().find(|path| !path.exists()) {
            source.object(&name(key), format!("there is no file or directory {}", path.display()));
        }
    }
    for (key, paths) in [("write", &sandbox.write), ("write_code", &sandbox.write_code)] {
        if let Some(path) = paths.iter().find(|path| path.exists() && !path.is_dir()) {
            source.object(&name(key), format!("{} is not a directory", path.display()));
        }
    }
}

/// What requests run must not be writable: a directory that may be written to is not above the root or the script.
fn writable_code(settings: &Settings, source: &mut Source<'_>) {
    for pool in settings.pools.iter().filter(|pool| pool.sandbox.profile != SandboxProfile::Off) {
        let section =
            if pool.name == DEFAULT_POOL { "sandbox".to_owned() } else { format!("pool.{}.sandbox", pool.name) };
        let code = [Some(&settings.root), pool.script.as_ref(), pool.boot.as_ref()];
        for (key, paths) in [("write", &pool.sandbox.write), ("write_code", &pool.sandbox.write_code)] {
            let above = |path: &&PathBuf| code.iter().flatten().any(|code| code.starts_with(path));
            if let Some(path) = paths.iter().find(above) {
                let message =
                    format!("{} holds the code that requests run; name the directories in it", path.display());
                source.object(&format!("{section}.{key}"), message);
            }
        }
    }
}

/// A `concurrency` that no pool uses is a mistake. One at the top level is for the pools below that are async, and the
/// default one stands in what `howdah check` shows.
fn concurrency(settings: &Settings, source: &mut Source<'_>) {
    let name = |pool: &PoolSettings| match pool.name.as_str() {
        DEFAULT_POOL => "concurrency".to_owned(),
        name => format!("pool.{name}.concurrency"),
    };
    let default = PoolSettings::default().concurrency;
    let (of_use, others): (Vec<_>, Vec<_>) = settings.pools.iter().partition(|pool| pool.mode == Mode::Async);
    for pool in others.into_iter().filter(|pool| pool.concurrency != default) {
        let origin = source.origins.of(&name(pool));
        if of_use.iter().all(|pool| source.origins.of(&name(pool)) != origin) {
            let message = format!(
                "is for mode \"async\"; a worker in mode \"{}\" runs one request at a time, see `workers`",
                pool.mode
            );
            source.object(&name(pool), message);
        }
    }
}

fn routes(settings: &Settings, source: &mut Source<'_>) {
    let names: Vec<&str> = settings.pools.iter().map(|pool| pool.name.as_str()).collect();
    for (at, route) in settings.routes.iter().enumerate() {
        let (name, pool) = (format!("route[{at}].pool"), route.pool.as_str());
        if !names.contains(&pool) {
            let advice = match nearest(pool, &names) {
                Some(near) => format!("; did you mean \"{near}\"?"),
                None => format!("; there is {}", names.join(", ")),
            };
            source.object(&name, format!("there is no pool \"{pool}\"{advice}"));
        }
    }
}

fn http(settings: &Settings, source: &mut Source<'_>) {
    let http = &settings.http;
    for (key, value) in [
        ("header_timeout", http.header_timeout),
        ("body_timeout", http.body_timeout),
        ("write_timeout", http.write_timeout),
        ("idle_timeout", http.idle_timeout),
    ] {
        not_zero(source, &format!("http.{key}"), value);
    }
    if let Some(dir) = &http.temp_dir
        && !dir.is_dir()
    {
        source.object("http.temp_dir", format!("there is no directory {}", dir.display()));
    }
    if let Some(name) = &http.request_id_header
        && !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        source.object("http.request_id_header", format!("\"{name}\" is not a field name, such as \"X-Request-Id\""));
    }
    let values =
        [("http.server_header", &http.server_header), ("static.cache_control", &settings.static_files.cache_control)];
    for (key, value) in values {
        if let Some(value) = value
            && !value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        {
            source.object(key, "must be printable ASCII".to_owned());
        }
    }
}

fn replies(settings: &Settings, source: &mut Source<'_>) {
    for (extension, media) in &settings.static_files.mime {
        if extension.is_empty() || extension.contains(['.', '/']) {
            source.object("static.mime", format!("\"{extension}\" must be a file name extension without a dot"));
        }
        if !is_media_type(media) {
            source.object("static.mime", format!("\"{media}\" is not a media type, such as \"text/plain\""));
        }
    }
    if let Some(media) = settings.compression.types.iter().find(|media| !is_media_type(media)) {
        let message = format!("\"{media}\" is not a media type, such as \"text/css\" or \"text/*\"");
        source.object("compression.types", message);
    }
}

/// Directories of files that only scripts may give out.
fn handed_over(settings: &Settings, source: &mut Source<'_>) {
    let files = &settings.static_files;
    for (prefix, directory) in &files.x_accel_redirect {
        if !prefix.starts_with('/') || !prefix.ends_with('/') {
            let message = format!("\"{prefix}\" must begin and end with a slash, such as \"/protected/\"");
            source.object("static.x_accel_redirect", message);
        }
        private_directory(settings, "static.x_accel_redirect", Path::new(directory), source);
    }
    for directory in &files.x_sendfile {
        private_directory(settings, "static.x_sendfile", directory, source);
    }
}

fn private_directory(settings: &Settings, name: &str, directory: &Path, source: &mut Source<'_>) {
    if !directory.is_absolute() {
        source.object(name, format!("{} must be an absolute path", directory.display()));
    } else if !directory.is_dir() {
        source.object(name, format!("there is no directory {}", directory.display()));
    } else if let (Ok(real), Ok(root)) = (directory.canonicalize(), settings.root.canonicalize())
        && (real.starts_with(&root) || root.starts_with(&real))
    {
        let message = format!("{} and the root overlap: clients could ask for its files", directory.display());
        source.object(name, message);
    }
}

fn is_media_type(text: &str) -> bool {
    let fits = |byte: u8| (b' '..=b'~').contains(&byte);
    text.split_once('/').is_some_and(|(kind, sub)| !kind.is_empty() && !sub.is_empty()) && text.bytes().all(fits)
}

fn not_zero(source: &mut Source<'_>, name: &str, value: Duration) {
    if value.is_zero() {
        source.object(name, "must be more than 0".to_owned());
    }
}
