//! The FrankenPHP admin endpoints that Laravel Octane and its tools use: liveness (`GET /config/apps/frankenphp`),
//! reload (`PATCH` on the same path, or `POST /frankenphp/workers/restart`), and the state of the workers (`GET
//! /frankenphp/threads`).

use crate::server::pools::Pools;
use crate::server::reload::Server;
use howdah_config::ReloadFlags;
use howdah_pool::PoolStatus;
use hyper::{Method, StatusCode};
use serde::Serialize;
use std::sync::Arc;

/// Body of a response: JSON or, as in FrankenPHP, plain text.
pub(crate) struct Content {
    pub(crate) status: StatusCode,
    pub(crate) media_type: &'static str,
    pub(crate) body: Vec<u8>,
}

#[derive(Serialize)]
struct Config {
    workers: Vec<WorkerConfig>,
}

#[derive(Serialize)]
struct WorkerConfig {
    name: String,
    file_name: String,
    num: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Threads {
    thread_debug_states: Vec<Thread>,
    reserved_thread_count: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Thread {
    index: u32,
    name: String,
    state: &'static str,
    is_waiting: bool,
    is_busy: bool,
    #[serde(rename = "CurrentURI")]
    current_uri: Option<String>,
    current_method: Option<String>,
    request_count: u64,
}

/// Responds to requests for FrankenPHP's paths; `None` for any other path.
pub(crate) async fn respond(method: &Method, path: &str, pools: &Pools, server: &Arc<Server>) -> Option<Content> {
    match (method, path) {
        (&Method::GET, "/config/apps/frankenphp") => Some(json(&config(pools))),
        (&Method::PATCH, "/config/apps/frankenphp") => Some(restart(server, "").await),
        (&Method::GET, "/frankenphp/threads") => Some(json(&threads(pools))),
        (&Method::POST, "/frankenphp/workers/restart") => {
            Some(restart(server, "workers restarted successfully\n").await)
        }
        (_, "/config/apps/frankenphp" | "/frankenphp/threads" | "/frankenphp/workers/restart") => {
            Some(plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n"))
        }
        _ => None,
    }
}

async fn restart(server: &Arc<Server>, done: &str) -> Content {
    match server.reload(ReloadFlags::default()).await {
        Ok(_) => plain(StatusCode::OK, done),
        Err(why) => plain(StatusCode::INTERNAL_SERVER_ERROR, &why),
    }
}

fn config(pools: &Pools) -> Config {
    let workers = pools.iter().filter(|pool| !pool.config().boot.worker.script.is_empty()).map(|pool| WorkerConfig {
        name: pool.name().to_owned(),
        file_name: pool.config().boot.worker.script.as_str().to_owned(),
        num: pool.config().min_workers(),
    });
    Config { workers: workers.collect() }
}

fn threads(pools: &Pools) -> Threads {
    let states = pools.iter().flat_map(|pool| threads_of(&pool.status()));
    Threads { thread_debug_states: states.collect(), reserved_thread_count: 0 }
}

fn threads_of(pool: &PoolStatus) -> Vec<Thread> {
    let thread = |worker: &howdah_pool::WorkerStatus| {
        let mut words = worker.label.as_deref().unwrap_or_default().splitn(2, ' ').map(str::to_owned);
        let (current_method, current_uri) = (words.next().filter(|word| !word.is_empty()), words.next());
        Thread {
            index: worker.worker,
            name: format!("Worker PHP Process - {} ({})", pool.name, worker.pid),
            state: if worker.phase == "serving" { "ready" } else { worker.phase },
            is_waiting: worker.phase == "serving" && !worker.busy,
            is_busy: worker.busy,
            current_uri,
            current_method,
            request_count: worker.requests,
        }
    };
    pool.workers.iter().map(thread).collect()
}

fn json(value: &impl Serialize) -> Content {
    let body = serde_json::to_vec(value).unwrap_or_default();
    Content { status: StatusCode::OK, media_type: "application/json", body }
}

fn plain(status: StatusCode, text: &str) -> Content {
    Content { status, media_type: "text/plain; charset=utf-8", body: text.as_bytes().to_vec() }
}
