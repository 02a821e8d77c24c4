//! Worker mode: scripts that stay booted and loop over requests.

mod octane;
mod package;
mod pools;
mod profiler;
mod request_loop;
mod slow_boot;
mod wear;
