//! Black-box scenarios, grouped by what they look at. One binary, so that linking happens once.

// Everything here is a test or a helper of one.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod async_connections;
mod async_databases;
mod async_difference;
mod async_extensions;
mod async_isolation;
mod async_library;
mod async_lifecycle;
mod async_pool;
mod async_waits;
mod compression;
mod crash;
mod difference;
mod early_hints;
mod half_closed_clients;
mod handed_over_files;
mod input;
mod lifecycle;
mod listeners;
mod load;
mod markers;
mod octane;
mod output;
mod php_settings;
mod php_source;
mod protocol;
mod raw_targets;
mod script_life;
mod server_variables;
mod sessions;
mod slow_clients;
mod snapshot_boot_again;
mod snapshot_connections;
mod snapshot_difference;
mod snapshot_extensions;
mod snapshot_mode;
mod snapshot_servers;
mod snapshot_state;
mod snapshot_template;
mod static_files;
mod step_debugging;
mod worker_loop;
mod worker_package;
mod worker_pools;
