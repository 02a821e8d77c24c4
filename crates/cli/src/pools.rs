//! From settings to running pools, and the way from the HTTP front to them.

use howdah_config::{Mode, PoolSettings, SandboxSettings, Settings, SystemCalls};
use howdah_http::upstream::{Answer, Upstream};
use howdah_observe::Metrics;
use howdah_pool::{Call, Fault, FaultKind, Pool, PoolConfig, ReplyBody, RouteShare, SandboxSpec, Shards, start_pool};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The pools in the order of the settings.
#[derive(Debug)]
pub(crate) struct Pools(Vec<Arc<Pool>>);

impl Pools {
    /// Starts every pool; they boot in the background. On the main thread's runtime: see `howdah_pool::start_pool`.
    pub(crate) fn start(settings: &Settings, shards: &Shards, metrics: &Metrics) -> Self {
        let start =
            |pool: &PoolSettings| start_pool(pool_config(settings, pool), shards.clone(), metrics.pool(&pool.name));
        Self(settings.pools.iter().map(start).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.0.iter()
    }

    /// Reloads every pool, one after the other. The error names the pools that kept their old workers.
    pub(crate) async fn reload(&self) -> Result<(), String> {
        let mut failed = Vec::new();
        for pool in &self.0 {
            if let Err(why) = pool.reload().await {
                failed.push(format!("pool {}: {why}", pool.name()));
            }
        }
        if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
    }

    /// Stops every pool; returns when no process of theirs is left.
    pub(crate) async fn stop(&self, grace: Duration) {
        let mut stops = tokio::task::JoinSet::new();
        for pool in &self.0 {
            let pool = pool.clone();
            stops.spawn(async move { pool.stop(grace).await });
        }
        while stops.join_next().await.is_some() {}
    }
}

impl Upstream for Pools {
    type Body = ReplyBody;

    async fn call(&self, pool: usize, call: Call) -> Result<Answer<ReplyBody>, Fault> {
        match self.0.get(pool) {
            Some(pool) => pool.call(call).await.map(Answer::from),
            None => Err(Fault::with(FaultKind::PoolDown, format!("no pool number {pool}"))),
        }
    }

    async fn room(&self, pool: usize) {
        if let Some(pool) = self.0.get(pool) {
            pool.room().await;
        }
    }
}

fn path_text(path: Option<&Path>) -> String {
    path.map(|p| p.to_string_lossy().into_owned()).unwrap_or_default()
}

fn sandbox(settings: &SandboxSettings) -> SandboxSpec {
    let paths = |paths: &[PathBuf]| paths.iter().map(|path| path_text(Some(path))).collect();
    let groups = |groups: &[SystemCalls]| groups.iter().map(ToString::to_string).collect();
    SandboxSpec {
        profile: settings.profile.to_string(),
        required: settings.required,
        detect: settings.detect,
        read: paths(&settings.read),
        write: paths(&settings.write),
        write_code: paths(&settings.write_code),
        execute: paths(&settings.execute),
        connect: settings.connect.clone(),
        bind: settings.bind.clone(),
        allow: groups(&settings.allow),
        deny: groups(&settings.deny),
        private_tmp: settings.private_tmp,
    }
}

pub(crate) fn pool_config(settings: &Settings, pool: &PoolSettings) -> PoolConfig {
    let pairs = |map: &std::collections::BTreeMap<String, String>| {
        map.iter().map(|(k, v)| (k.clone(), v.clone())).collect::<Vec<_>>()
    };
    PoolConfig {
        name: pool.name.clone(),
        binary: pool.php.binary.clone(),
        mode: pool.mode.to_string(),
        script: path_text(pool.script.as_deref()),
        boot_script: path_text(pool.boot.as_deref()),
        ini_path: path_text(pool.php.config.as_deref()),
        ini: pairs(&pool.php.ini),
        admin_ini: pairs(&pool.php.admin_ini),
        env: pairs(&pool.php.env),
        clear_env: pool.php.clear_env,
        min_workers: pool.workers.min as usize,
        max_workers: pool.workers.max as usize,
        concurrency: if pool.mode == Mode::Async { pool.concurrency } else { 1 },
        deadline: pool.deadline,
        queue: pool.queue,
        queue_timeout: pool.queue_timeout,
        queue_target: pool.queue_target,
        slow_after: pool.slow_after,
        slow_workers: pool.slow_workers,
        routes: settings.routes.iter().map(|r| RouteShare { workers: r.workers, weight: r.weight }).collect(),
        boot_timeout: pool.boot_timeout,
        shrink_after: pool.shrink_after,
        max_requests: pool.max_requests,
        max_memory: pool.max_memory.map_or(0, howdah_config::ByteSize::bytes),
        warmup: pool.warmup.clone(),
        root: settings.root.clone(),
        front_controller: settings.front_controller.clone().unwrap_or_default(),
        reply_memory: settings.http.reply_memory.bytes() as usize,
        temp_dir: settings.http.temp_dir.clone().unwrap_or_else(std::env::temp_dir),
        sandbox: sandbox(&pool.sandbox),
        software: concat!("Howdah/", env!("CARGO_PKG_VERSION"), " (like nginx)").to_owned(),
    }
}
