//! Snapshot mode: an application that boots once and is restored to that state after each request.

mod boot;
mod boot_again;
mod connections;
mod difference;
mod each_way;
mod extensions;
mod files;
mod kept_sessions;
mod loop_body;
mod other_random;
mod other_tls;
mod own_connections;
mod servers;
mod sessions;
mod state;
mod template;
mod warmup;
mod warmup_requests;
