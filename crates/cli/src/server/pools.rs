//! Builds running pools from the settings.

use crate::server::comparison::Comparison;
use crate::server::fpm_status;
use crate::server::identity;
use howdah_budget::Budgets;
use howdah_config::{Account, PoolSettings, SandboxProfile, SandboxSettings, Settings, SystemCalls, ini};
use howdah_observe::{Metrics, SlowLogs};
use howdah_pool::process::launcher::Launcher;
use howdah_pool::{Fault, FaultKind, IoThreads, Pool, PoolConfig, PoolParts, SandboxSpec, prepare_pool, start_pool};
use howdah_site::upstream::{PoolPageText, Target};
use howdah_site::warm_up;
use howdah_transport::privileges::{ControlGroup, Credentials, Privileges, ResourceLimit};
use howdah_transport::wire::WIRE_VERSION;
use howdah_transport::zygote_protocol::BootSpec;
use howdah_transport::{CText, Mode, WorkerSpec};
use hyper::StatusCode;
use std::ffi::NulError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// All pools, in the order of the settings.
#[derive(Debug)]
pub(crate) struct Pools {
    pools: Vec<Arc<Pool>>,
    /// The comparison of each pool with classic mode, at the pool's position.
    comparisons: Vec<Option<Arc<Comparison>>>,
    /// `true` if the server accepts no new connections and ends when the open ones are done.
    draining: AtomicBool,
}

/// The pool that runs a request.
#[derive(Debug)]
pub(crate) struct SelectedPool<'a> {
    pub(crate) pool: &'a Pool,
    /// Its comparison, if enabled.
    pub(crate) comparison: Option<&'a Arc<Comparison>>,
}

/// Parts shared by the pools of every revision.
pub(crate) struct PoolContext {
    pub(crate) io_threads: IoThreads,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) launcher: Launcher,
    pub(crate) slow_logs: SlowLogs,
}

impl Pools {
    /// Starts every pool; they boot in the background. Called on the main thread's runtime: see
    /// `howdah_pool::start_pool`.
    pub(crate) fn start(configs: Vec<PoolConfig>, context: &PoolContext, settings: &Arc<Settings>) -> Self {
        Self::make(configs, context, settings, start_pool)
    }

    /// Creates the pools that will replace `before`; nothing starts until `boot`.
    pub(crate) fn prepare(
        configs: Vec<PoolConfig>,
        context: &PoolContext,
        settings: &Arc<Settings>,
        before: &Self,
    ) -> Self {
        let prepare = |parts: PoolParts| {
            let before = before.named(&parts.config.settings.name).map(|pool| &**pool);
            prepare_pool(parts, before)
        };
        Self::make(configs, context, settings, prepare)
    }

    fn make(
        configs: Vec<PoolConfig>,
        context: &PoolContext,
        settings: &Arc<Settings>,
        make: impl Fn(PoolParts) -> Arc<Pool>,
    ) -> Self {
        let make = |(number, config): (usize, PoolConfig)| {
            let (name, of_pool) = (&config.settings.name, settings.clone());
            let pool = make(PoolParts {
                io_threads: context.io_threads.clone(),
                metrics: context.metrics.pool(name),
                launcher: context.launcher.clone(),
                encode_warm_up: Box::new(move |target: &str| warm_up::request(&of_pool, number, target)),
                slow_log: context.slow_logs.of_pool(settings, name, &context.metrics),
                config,
            });
            pool.reports_by(fpm_status::report);
            pool
        };
        let pools: Vec<Arc<Pool>> = configs.into_iter().enumerate().map(make).collect();
        let comparison = |(pool, settings): (&Arc<Pool>, &PoolSettings)| {
            let with = settings.compare_with.as_deref().filter(|_| settings.mode != Mode::Classic)?;
            let classic = pools.iter().find(|pool| pool.name() == with).filter(|_| settings.compare_one_in > 0)?;
            Some(Comparison::new(pool, classic, context.metrics.pool(pool.name()), settings.compare_one_in))
        };
        let comparisons: Vec<_> = pools.iter().zip(&settings.pools).map(comparison).collect();
        for (pool, settings) in pools.iter().zip(&settings.pools).filter(|(pool, _)| pool.config().yields()) {
            let behind = pools.iter().find(|behind| settings.compare_with.as_deref() == Some(behind.name()));
            behind.into_iter().for_each(|behind| pool.yields_to(behind));
        }
        Self { pools, comparisons, draining: AtomicBool::new(false) }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.pools.iter()
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Pool>> {
        self.pools.iter().find(|pool| pool.name() == name)
    }

    /// Boots prepared pools, one after the other. The error names the first pool that does not serve, with the reason.
    pub(crate) async fn boot(&self) -> Result<(), String> {
        for pool in &self.pools {
            match pool.reload().await {
                // Its fallback serves its requests, and the log has the reason.
                Err(_) if pool.config().yields() => {}
                done => done.map_err(|why| format!("pool {}: {why}", pool.name()))?,
            }
        }
        Ok(())
    }

    /// Marks the server as not ready.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Relaxed);
    }

    /// Pools that the server needs to be ready: those without a fallback.
    pub(crate) fn needed(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.pools.iter().filter(|pool| !pool.config().yields())
    }

    /// `Ok` if the server is ready for requests; the error is the reason why not.
    pub(crate) fn ready(&self) -> Result<(), String> {
        if self.draining.load(Relaxed) {
            return Err("the server is stopping".to_owned());
        }
        let down: Vec<&str> = self.needed().filter(|pool| !pool.can_serve()).map(|pool| pool.name()).collect();
        if down.is_empty() { Ok(()) } else { Err(format!("pools without a serving worker: {}", down.join(", "))) }
    }

    /// Stops every pool; returns when none of their processes is left.
    pub(crate) async fn stop(&self, grace: Duration) {
        let mut stops = tokio::task::JoinSet::new();
        for pool in &self.pools {
            let pool = pool.clone();
            stops.spawn(async move { pool.stop(grace).await });
        }
        while stops.join_next().await.is_some() {}
    }
}

impl Pools {
    /// Position of the pool that runs the request now.
    fn position_of(&self, target: Target) -> usize {
        let serves = |preferred: &usize| self.pools.get(*preferred).is_some_and(|pool| pool.serves());
        target.preferred.filter(serves).unwrap_or(target.pool)
    }

    /// Returns the pool with its comparison.
    ///
    /// # Errors
    /// A fault if there is no such pool.
    pub(crate) fn at(&self, target: Target) -> Result<SelectedPool<'_>, Fault> {
        let position = self.position_of(target);
        let Some(pool) = self.pools.get(position) else {
            return Err(Fault::with(FaultKind::PoolDown, format!("no pool number {position}")));
        };
        Ok(SelectedPool { pool, comparison: self.comparisons.get(position).and_then(Option::as_ref) })
    }

    /// Status page of the pool at this position.
    pub(crate) fn page(&self, pool: usize, query: &[u8]) -> Option<PoolPageText> {
        let pool = self.pools.get(pool)?;
        if query == b"ping" {
            let (status, body) = match pool.can_serve() {
                true => (StatusCode::OK, "pong".to_owned()),
                false => (StatusCode::SERVICE_UNAVAILABLE, format!("pool {} has no worker\n", pool.name())),
            };
            return Some(PoolPageText { status, media_type: "text/plain;charset=UTF-8", body });
        }
        let page = fpm_status::page(&pool.status(), query);
        Some(PoolPageText { status: StatusCode::OK, media_type: page.media_type, body: page.body })
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.pools.iter().position(|pool| pool.name() == name)
    }

    /// Maximum size of a form that PHP accepts in the pool at this position; `None` if unlimited, or before its first
    /// boot.
    pub(crate) fn form_limit(&self, pool: usize) -> Option<u64> {
        self.pools.get(pool)?.form_limit()
    }

    /// Waits until the pool that would run a request has room for it, for a limited time. Returns the time waited.
    pub(crate) async fn room(&self, target: Target) -> Duration {
        match self.pools.get(self.position_of(target)) {
            Some(pool) => pool.room().await,
            None => Duration::ZERO,
        }
    }
}

fn path_text(path: Option<&Path>) -> String {
    path.map(|p| p.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Configurations of the settings' pools.
///
/// # Errors
/// A user that does not exist or no longer exists.
pub(crate) fn configs(settings: &Settings, budgets: Budgets) -> Result<Vec<PoolConfig>, String> {
    settings.pools.iter().map(|pool| pool_config(settings, pool, budgets)).collect()
}

/// Privileges of a pool's processes, and the environment variables that name their user. Only root can switch users;
/// for other users the check of the settings has ensured that a named user is the current one.
fn privileges(settings: &Settings, pool: &PoolSettings) -> Result<(Privileges, Vec<(String, String)>), String> {
    let php = &pool.php;
    let root = identity::started_as_root();
    let account = if root { settings.account_of(pool)? } else { None };
    let limits = howdah_config::limits::read(&php.limits)?;
    let limit = |limit: howdah_config::limits::Limit| ResourceLimit {
        name: limit.name.to_owned(),
        soft: limit.soft,
        hard: limit.hard,
    };
    let cgroup_limits = howdah_config::control_group::read(&php.cgroup_limits)?;
    let cgroup = php
        .cgroup
        .as_deref()
        .map(|directory| ControlGroup { directory: path_text(Some(directory)), limits: cgroup_limits });
    let mut env = Vec::new();
    if let Some(account) = &account {
        env.push(("USER".to_owned(), account.name.clone()));
        env.push(("HOME".to_owned(), path_text(account.home.as_deref())));
    }
    let privileges = Privileges {
        user: account.map(|Account { uid, gid, groups, .. }| Credentials { uid, gid, groups }),
        limits: limits.into_iter().map(limit).collect(),
        cgroup,
        umask: php.umask.map(|mode| mode.0),
        no_new_privs: php.no_new_privs,
        // Learning mode reads the workers' memory.
        dumpable: settings.dumpable || pool.sandbox.profile == SandboxProfile::Learn,
    };
    Ok((privileges, env))
}

/// `roots` are the script roots in addition to the pool's first.
fn sandbox(settings: &SandboxSettings, roots: &[&Path]) -> SandboxSpec {
    let further: Vec<PathBuf> = roots.iter().map(|root| root.to_path_buf()).collect();
    let read = [&settings.read[..], &further].concat();
    let paths = |paths: &[PathBuf]| paths.iter().map(|path| path_text(Some(path))).collect();
    let groups = |groups: &[SystemCalls]| groups.iter().map(ToString::to_string).collect();
    SandboxSpec {
        profile: settings.profile,
        required: settings.required,
        detect: settings.detect,
        read: paths(&read),
        write: paths(&settings.write),
        write_code: paths(&settings.write_code),
        execute: paths(&settings.execute),
        connect: settings.connect.clone(),
        bind: settings.bind.clone(),
        allow: groups(&settings.allow),
        deny: groups(&settings.deny),
    }
}

/// Settings that PHP and the C code of a worker read.
fn worker_spec(settings: &Settings, pool: &PoolSettings) -> Result<WorkerSpec, NulError> {
    Ok(WorkerSpec {
        mode: pool.mode,
        script: CText::new(&path_text(pool.script.as_deref()))?,
        recipe: CText::new(pool.recipe.as_deref().unwrap_or_default())?,
        boot_host: CText::new(settings.booted_by(pool).and_then(|booted| booted.host.as_deref()).unwrap_or_default())?,
        boot_script: CText::new(&path_text(pool.boot.as_deref()))?,
        ini_path: CText::new(&path_text(pool.php.config.as_deref()))?,
        // PHP uses the last value of a setting, so fixed values come last.
        ini_text: CText::new(&(ini::text(&pool.php.ini) + &ini::text(&pool.php.admin_ini)))?,
        admin_ini_names: CText::new(&pool.php.admin_ini.keys().map(|name| format!("{name}\n")).collect::<String>())?,
        software: CText::new(concat!("Howdah/", env!("CARGO_PKG_VERSION"), " (like nginx)"))?,
        max_requests: pool.max_requests,
        max_memory: pool.max_memory.map_or(0, howdah_config::ByteSize::bytes),
        concurrency: if pool.mode.is_multiplexed() { pool.concurrency as u32 } else { 1 },
        warmup_check: pool.warmup_check,
        error_pages: settings.development,
    })
}

pub(crate) fn pool_config(settings: &Settings, pool: &PoolSettings, budgets: Budgets) -> Result<PoolConfig, String> {
    let (privileges, mut env) = privileges(settings, pool)?;
    env.extend(pool.php.env.clone());
    Ok(PoolConfig {
        boot: BootSpec {
            wire_version: WIRE_VERSION,
            pool: pool.name.clone(),
            worker: worker_spec(settings, pool).map_err(|error| format!("pool {}: {error}", pool.name))?,
            root: path_text(Some(settings.root_of(pool))),
            sandbox: sandbox(&pool.sandbox, &settings.further_roots_of(pool)),
        },
        settings: pool.clone(),
        state: Some(settings.acme.state.clone()),
        env,
        // Routes of all sites, so that their numbers are the same in every pool.
        routes: settings.shares(),
        response_memory: settings.http.response_memory.bytes() as usize,
        temp_dir: settings.http.temp_dir.clone().unwrap_or_else(std::env::temp_dir),
        budgets,
        privileges,
    })
}

#[cfg(test)]
mod tests {
    use howdah_config::{
        AcmeSettings, CompressionSettings, HttpSettings, LogSettings, MercureSettings, PoolSettings, ProxySettings,
        SandboxSettings, Settings, SiteKeys, StaticSettings, TelemetrySettings, TlsSettings,
    };
    use howdah_pool::process::environment;

    #[test]
    fn no_variable_of_a_setting_reaches_php() {
        let sections = [
            AcmeSettings::ROWS,
            CompressionSettings::ROWS,
            HttpSettings::ROWS,
            LogSettings::ROWS,
            MercureSettings::ROWS,
            PoolSettings::ROWS,
            ProxySettings::ROWS,
            SandboxSettings::ROWS,
            Settings::ROWS,
            SiteKeys::ROWS,
            StaticSettings::ROWS,
            TelemetrySettings::ROWS,
            TlsSettings::ROWS,
        ];
        let names: Vec<String> = sections.into_iter().flatten().filter_map(howdah_config::Row::variable).collect();
        assert!(names.len() > 80 && names.iter().any(|name| name == "HOWDAH_SHARE"), "{names:?}");
        let own = names.iter().map(|name| (name.into(), "secret".into()));
        assert_eq!(environment::of_php(own, false, &[]), [].into());
    }
}
