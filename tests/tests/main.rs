//! Black-box scenarios, grouped by what they look at. One binary, so that linking happens once.

mod compression;
mod crash;
mod input;
mod lifecycle;
mod listeners;
mod load;
mod output;
mod php_settings;
mod php_source;
mod protocol;
mod script_life;
mod server_variables;
mod sessions;
mod slow_clients;
mod static_files;
