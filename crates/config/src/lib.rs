//! Howdah's settings: the result ([`Settings`]), and its sources: flags, environment and `howdah.toml`.
//!
//! Reading order: `settings` (each setting once: type, default, documentation, example), `table` (what the macro
//! generates from them), `value`, `quantity`, `collection`, `choice` and `address` (syntax of values), `file`,
//! `source`, `load` and `load_sites` (loading), `strict` and `check` (errors), `cli` (commands), `show` and `reference`
//! (output).
#![forbid(unsafe_code)]

mod account;
mod address;
mod admin_address;
mod app_choice;
mod changes;
mod check;
mod check_acme;
mod check_mercure;
mod check_sites;
mod check_telemetry;
mod check_users;
mod choice;
pub mod cli;
mod code_files;
mod collection;
pub mod control_group;
mod detected;
mod file;
mod fixed_time;
mod fpm;
mod fpm_access;
mod glob;
mod hidden;
mod host;
pub mod host_name;
pub mod ini;
mod kind;
pub mod limits;
mod link_policy;
mod load;
mod load_proxies;
mod load_rules;
mod load_sites;
mod log_target;
pub mod manual;
mod missing_directory;
mod origin;
mod other_servers;
mod pattern;
mod php_program;
mod quantity;
mod recipe;
mod recipe_pool;
pub mod reference;
mod row;
mod rules;
mod secret;
mod settings;
mod settings_acme;
mod settings_deploy;
mod settings_file;
mod settings_http;
mod settings_mercure;
mod settings_proxy;
mod settings_pusher;
mod settings_sandbox;
mod settings_site;
mod settings_telemetry;
mod settings_tls;
mod show;
mod sites;
mod source;
mod strict;
mod table;
mod unknown_variables;
mod upstream_address;
mod value;
mod warnings;
mod warnings_of_sites;
mod warnings_of_unit;

pub use account::{Account, find_group, user_name};
pub use address::{ListenAddr, SocketPlace, TrustedProxy};
pub use admin_address::{AdminAddress, find_admin};
pub use app_choice::AppChoice;
pub use changes::{Change, changes};
pub use choice::{
    Algorithm, Balance, ClientAuth, ForwardedFields, LogFormat, LogLevel, Mode, ParentTrust, Proof, ProxyHost,
    RootLinks, Sampler, SandboxProfile, ServerUser, Symlinks, SystemCalls, TlsVersion, TrustedHeader,
};
pub use cli::{Cli, Command, ControlFlags, ReloadFlags, ServeFlags};
pub use code_files::{code_patterns, page_patterns};
pub use fpm::{FpmPool, FpmServer, SocketAccess};
pub use fpm_access::{CpuTime, FpmAccess, FpmField, TimeUnit};
pub use glob::Glob;
pub use host::HostPattern;
pub use howdah_rules::Share;
pub use howdah_rules::host::{HostRoom, normal_host};
pub use howdah_rules::limit::client_number;
pub use howdah_rules::tree::quoted;
pub use kind::Kind;
pub use link_policy::LinkPolicy;
pub use load::{Loaded, find_acme, load, load_as_far_as_possible, load_in, load_text};
pub use log_target::{AccessTarget, LogService, LogTarget};
pub use missing_directory::MissingDirectory;
pub use origin::{ConfigError, ConfigErrors, Origin, Origins};
pub use pattern::NamePattern;
pub use php_program::PhpProgram;
pub use quantity::{ByteSize, FileMode, SpareWorkers, WorkerRange};
pub use recipe_pool::RecipePool;
pub use row::Row;
pub use rules::SiteRules;
pub use secret::Secret;
pub use settings::{DEFAULT_POOL, PhpSettings, PoolSettings, Settings};
pub use settings_acme::AcmeSettings;
pub use settings_deploy::DeploySettings;
pub use settings_file::installed_settings;
pub use settings_http::{CompressionSettings, HttpSettings, LogSettings, StaticSettings};
pub use settings_mercure::MercureSettings;
pub use settings_proxy::{ProxySettings, may_switch_to};
pub use settings_pusher::PusherSettings;
pub use settings_sandbox::SandboxSettings;
pub use settings_site::{SiteKeys, SiteSettings};
pub use settings_telemetry::{Ratio, SecretMap, TelemetrySettings};
pub use settings_tls::{CertificateFiles, TlsSettings};
pub use sites::ONLY_SITE;
pub use source::Environment;
pub use unknown_variables::{UnknownVariable, unknown_variables};
pub use upstream_address::{UpstreamAddr, UpstreamPlace};
