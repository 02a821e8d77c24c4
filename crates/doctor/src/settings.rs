//! Settings of the doctor's servers: the application's own, except for addresses, limits and the mode.

use crate::mode::Mode;
use crate::place::{PHP, Place, REPORTS};
use anyhow::{Context, Result};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

const LOOP: &str = include_str!("../php/loop.php");
const PREPEND: &str = include_str!("../php/prepend.php");
const PROBE: &str = include_str!("../php/probe.php");

/// The recipes that the doctor can boot, as in `howdah-php`.
const RECIPES: [(&str, &str); 2] = [
    ("laravel", include_str!("../../../php/recipes/laravel.php")),
    ("symfony", include_str!("../../../php/recipes/symfony.php")),
];

/// The script that recipes boot.
const FRONT: &str = "index.php";

/// Source of the workers' script or boot file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Boot {
    /// The application's own.
    Own,
    /// The recipe of this name.
    Recipe(&'static str),
    /// Created by the doctor.
    Made,
}

/// Parameters of one server.
#[derive(Debug)]
pub(crate) struct ServerParams<'a> {
    pub(crate) mode: Mode,
    pub(crate) port: u16,
    /// Directory of the server.
    pub(crate) room: &'a Path,
    /// `true` if the probe runs in the server.
    pub(crate) probed: bool,
    /// Additional warm-up paths of a recipe's pool.
    pub(crate) learnt: &'a [String],
    /// Number of workers of each pool.
    pub(crate) workers: u32,
}

/// Complete settings of an application, as `howdah check` prints them.
#[derive(Debug)]
pub(crate) struct Settings {
    given: Table,
}

impl Settings {
    pub(crate) fn read(shown: &str) -> Result<Self> {
        Ok(Self { given: shown.parse().context("the settings of the application")? })
    }

    fn text(&self, key: &str) -> &str {
        self.given.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Host of requests to the application.
    pub(crate) fn host(&self) -> String {
        let sites = self.given.get("site").and_then(Value::as_array).into_iter().flatten();
        let hosts = sites.filter_map(|site| site.get("hosts")?.as_array()?.first()?.as_str());
        let named = hosts.chain([self.text("server_name")]).find(|host| !host.is_empty() && !host.contains('*'));
        named.unwrap_or("localhost").to_owned()
    }

    /// The document root.
    pub(crate) fn root(&self) -> &Path {
        Path::new(self.text("root"))
    }

    /// The application's current mode.
    pub(crate) fn mode(&self) -> &str {
        self.text("mode")
    }

    /// Its worker script.
    pub(crate) fn script(&self) -> Option<&str> {
        Some(self.text("script")).filter(|script| !script.is_empty())
    }

    /// Its boot file.
    pub(crate) fn boot(&self) -> Option<&str> {
        Some(self.text("boot")).filter(|boot| !boot.is_empty())
    }

    /// Source of the workers' script or boot file in this mode.
    pub(crate) fn boots(&self, mode: Mode) -> Boot {
        let own = self.script().is_some() || (mode == Mode::Snapshot && self.boot().is_some());
        // With no script set, the server boots the recipe in these modes.
        let said =
            if matches!(self.text("mode"), "snapshot" | "worker") { self.text("app") } else { Default::default() };
        let recipe = RECIPES.iter().find(|(name, _)| *name == said);
        match recipe.filter(|_| matches!(mode, Mode::Snapshot | Mode::Worker)) {
            _ if own => Boot::Own,
            Some((name, _)) => Boot::Recipe(name),
            None => Boot::Made,
        }
    }

    /// Writes a server's `howdah.toml` and the scripts that it runs; returns the path of the `howdah.toml`.
    pub(crate) fn write(&self, wanted: &ServerParams<'_>, place: &Place) -> Result<PathBuf> {
        let mut table = self.given.clone();
        let quiet = "
            admin_group = ''\nadmin_token = ''
            dashboard_orders = false\ngrace = '2s'\nthreads = 1\nspare_workers = 0\nmax_requests = 0
            compare_one_in = 0\nwarmup_auto = false\nmax_memory = 0\nwatch = []\nslow_log_after = 0\nslow_log = 'stderr'\ncpu_deadline = 0\nsites = []
            php.cgroup = ''\nphp.cgroup_limits = {}\ncompression.enabled = false\ntelemetry.endpoint = ''
            tls.certificates = []\ntls.auto = false\ntls.http3 = false\ntls.client_auth = 'off'\ntls.redirect = false
            acme.names = []\nacme.on_demand = ''\nlog.level = 'info'\nlog.format = 'text'\nlog.error = 'stderr'\nlog.access = 'off'";
        merge(&mut table, quiet.parse().context("the doctor's settings")?);
        let mut own = Table::new();
        own.insert("listen".to_owned(), vec![format!("127.0.0.1:{}", wanted.port)].into());
        own.insert("admin".to_owned(), format!("unix:{}", wanted.room.join("admin.sock").display()).into());
        own.insert("workers".to_owned(), i64::from(wanted.workers).into());
        merge(&mut table, own);
        self.choose_mode(&mut table, wanted, place)?;
        if wanted.probed {
            probe(&mut table, &wanted.room.join(PHP))?;
        }
        let mut value = Value::Table(table);
        open_sandboxes(&mut value, wanted.room);
        each_text(&mut value, &|text| place.moved(text));
        let path = wanted.room.join("howdah.toml");
        let text = toml::to_string(&value)?;
        // The file may contain secrets (`php.env`), and the server reads it as this process's user.
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// Sets the mode of the default pool. Other pools get the mode too if they have a script for it, else classic mode.
    fn choose_mode(&self, table: &mut Table, wanted: &ServerParams<'_>, place: &Place) -> Result<()> {
        if let Some(Value::Table(pools)) = table.get_mut("pool") {
            pools.iter_mut().filter_map(|(_, pool)| pool.as_table_mut()).for_each(|pool| another_pool(pool, wanted));
        }
        for site in table.get_mut("site").and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(site) = site.as_table_mut() else { continue };
            site.remove("certificates");
            if let Some(Value::Table(pool)) = site.get_mut("pool") {
                another_pool(pool, wanted);
            }
        }
        table.insert("mode".to_owned(), wanted.mode.name().into());
        let own_boot = self.boot().filter(|_| wanted.mode == Mode::Snapshot && self.script().is_none());
        if let (Some(boot), true) = (own_boot, wanted.probed) {
            let text = format!("<?php\n\nrequire '{}';\n", quoted(&place.moved(boot)));
            write_boot(table, "boot", &looking_back(&text), &wanted.room.join(PHP))?;
        } else if wanted.mode == Mode::Classic {
            table.insert("script".to_owned(), "".into());
            table.insert("boot".to_owned(), "".into());
        } else if let Boot::Recipe(name) = self.boots(wanted.mode) {
            self.write_recipe(table, name, &wanted.room.join(PHP), place)?;
            if wanted.mode == Mode::Snapshot && !wanted.learnt.is_empty() {
                let own = table.get("warmup").and_then(Value::as_array).cloned().unwrap_or_default();
                let learnt = wanted.learnt.iter().map(|path| Value::String(path.clone()));
                let learnt = learnt.filter(|path| !own.contains(path)).collect::<Vec<_>>();
                table.insert("warmup".to_owned(), [own, learnt].concat().into());
            }
        } else if self.boots(wanted.mode) == Boot::Made {
            let (key, text) = match wanted.mode {
                Mode::Snapshot if wanted.probed => ("boot", looking_back(&boot_file(&self.autoloader(), place))),
                Mode::Snapshot => ("boot", boot_file(&self.autoloader(), place)),
                _ => ("script", self.loop_script(place)),
            };
            write_boot(table, key, &text, &wanted.room.join(PHP))?;
        }
        Ok(())
    }

    /// Writes the recipe as a worker script, so that the server has no classic pool to fall back to.
    fn write_recipe(&self, table: &mut Table, name: &str, room: &Path, place: &Place) -> Result<()> {
        let recipe = RECIPES.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text);
        let front = quoted(&place.moved(&self.root().join(FRONT).to_string_lossy()));
        // Requests see this name, so it is the front controller's.
        let dir = room.join("recipe");
        std::fs::create_dir_all(&dir)?;
        std::fs::write(dir.join("recipe.php"), recipe)?;
        let path = dir.join(FRONT);
        let text = format!(
            "<?php\n\n$_SERVER['SCRIPT_FILENAME'] = '{front}';\nrequire __DIR__ . '/recipe.php';\nrequire '{front}';\n"
        );
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        table.insert("script".to_owned(), path.to_string_lossy().into_owned().into());
        Ok(())
    }

    /// Composer's autoloader, in or above the document root.
    pub(crate) fn autoloader(&self) -> PathBuf {
        let root = self.root();
        let dirs = [Some(root), root.parent()];
        let files = dirs.into_iter().flatten().map(|dir| dir.join("vendor/autoload.php"));
        files.into_iter().find(|file| file.is_file()).unwrap_or_default()
    }

    /// Worker loop for an application without a worker script.
    pub(crate) fn loop_script(&self, place: &Place) -> String {
        let here = |text: &str| quoted(&place.moved(text));
        LOOP.replace("__ROOT__", &here(&self.root().to_string_lossy()))
            .replace("__FRONT__", &here(self.text("front_controller")))
            .replace("__AUTOLOAD__", &here(&self.autoloader().to_string_lossy()))
    }
}

/// Escapes a text for a PHP string in single quotes.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

/// A boot file after which the probe records the state that it leaves.
fn looking_back(boot: &str) -> String {
    let rest = boot.trim_start_matches("<?php");
    format!("<?php\n\nrequire __DIR__ . '/prepend.php';{rest}\nHowdah\\Doctor\\Probe::booted();\n")
}

fn write_boot(table: &mut Table, key: &str, text: &str, room: &Path) -> Result<()> {
    let path = room.join(format!("{key}.php"));
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    table.insert(key.to_owned(), path.to_string_lossy().into_owned().into());
    Ok(())
}

/// A boot file for an application without one: it only loads the autoloader.
fn boot_file(autoloader: &Path, place: &Place) -> String {
    let text = quoted(&place.moved(&autoloader.to_string_lossy()));
    if text.is_empty() { "<?php\n".to_owned() } else { format!("<?php\n\nrequire '{text}';\n") }
}

fn another_pool(pool: &mut Table, wanted: &ServerParams<'_>) {
    let mode = wanted.mode;
    let has = |key: &str| pool.get(key).and_then(Value::as_str).is_some_and(|path| !path.is_empty());
    // A pool in classic mode inherits a script without using it.
    let is_classic = pool.get("mode").and_then(Value::as_str).is_some_and(|own| own == Mode::Classic.name());
    let fits = !is_classic && (has("script") || (mode == Mode::Snapshot && has("boot")));
    if mode == Mode::Classic || !fits {
        pool.insert("script".to_owned(), "".into());
        pool.insert("boot".to_owned(), "".into());
        pool.insert("mode".to_owned(), Mode::Classic.name().into());
    } else {
        pool.insert("mode".to_owned(), mode.name().into());
    }
    // As in the default pool: disables what could end or repeat the doctor's requests, or replace their workers.
    for (key, value) in
        [("workers", i64::from(wanted.workers)), ("spare_workers", 0), ("max_requests", 0), ("compare_one_in", 0)]
    {
        pool.insert(key.to_owned(), value.into());
    }
    for key in ["max_memory", "slow_log_after", "cpu_deadline"] {
        pool.insert(key.to_owned(), 0.into());
    }
    pool.insert("warmup_auto".to_owned(), false.into());
    pool.insert("watch".to_owned(), Value::Array(Vec::new()));
}

/// Adds the probe, which runs before each script and between a script's loop and the server.
fn probe(table: &mut Table, room: &Path) -> Result<()> {
    let ini = table.entry("php").or_insert_with(|| Table::new().into()).as_table_mut();
    let ini = ini.and_then(|php| php.entry("ini").or_insert_with(|| Table::new().into()).as_table_mut());
    let ini = ini.context("php.ini of the settings is not a table")?;
    let own = ini.get("auto_prepend_file").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut prepend = PREPEND.to_owned();
    if !own.is_empty() {
        prepend.push_str(&format!("\nrequire '{}';\n", quoted(&own)));
    }
    let path = room.join("prepend.php");
    std::fs::write(&path, prepend)?;
    std::fs::write(room.join("probe.php"), PROBE)?;
    ini.insert("auto_prepend_file".to_owned(), path.to_string_lossy().into_owned().into());
    let disabled = ini.get("disable_functions").and_then(Value::as_str).unwrap_or_default();
    let disabled =
        [disabled, "frankenphp_handle_request"].iter().filter(|name| !name.is_empty()).copied().collect::<Vec<_>>();
    let disabled = disabled.join(",");
    ini.insert("disable_functions".to_owned(), disabled.into());
    Ok(())
}

/// Merges one table into another; values of `over` win.
fn merge(table: &mut Table, over: Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) if !above.is_empty() => merge(below, above),
            (_, value) => drop(table.insert(key, value)),
        }
    }
}

/// Lets sandboxed workers read the doctor's PHP files and write the probe's report. A pool without these lists inherits
/// those of all pools.
fn open_sandboxes(value: &mut Value, room: &Path) {
    let children: Vec<&mut Value> = match value {
        Value::Table(table) => {
            if let Some(Value::Table(sandbox)) = table.get_mut("sandbox") {
                for (key, dir) in [("read", PHP), ("write", REPORTS)] {
                    if let Some(Value::Array(paths)) = sandbox.get_mut(key) {
                        paths.push(room.join(dir).to_string_lossy().into_owned().into());
                    }
                }
            }
            table.iter_mut().map(|(_, child)| child).collect()
        }
        Value::Array(items) => items.iter_mut().collect(),
        _ => return,
    };
    children.into_iter().for_each(|child| open_sandboxes(child, room));
}

fn each_text(value: &mut Value, change: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Table(table) => table.iter_mut().for_each(|(_, item)| each_text(item, change)),
        _ => {}
    }
}
