//! Howdah's settings: what the program uses ([`Settings`]), and the way there from flags, environment and
//! `howdah.toml`. Reading order: `settings` (each setting once: type, default, documentation, example), `table` (what
//! is made of that), `value`, `quantity`, `collection`, `choice` and `address` (how values are written), `document`,
//! `source` and `load` (how settings are read), `strict` and `check` (what is refused), `cli` (commands), `show` and
//! `reference` (what is printed).
#![forbid(unsafe_code)]

mod account;
mod address;
mod check;
mod check_proxies;
mod check_users;
mod choice;
pub mod cli;
mod collection;
pub mod control_group;
mod document;
mod glob;
mod kind;
pub mod limits;
mod load;
mod origin;
mod pattern;
mod quantity;
pub mod reference;
mod settings;
mod settings_http;
mod settings_proxy;
mod settings_sandbox;
mod show;
mod source;
mod strict;
mod table;
mod upstream_address;
mod value;
mod warnings;

pub use account::{Account, find_group};
pub use address::{ListenAddr, TrustedProxy};
pub use choice::{
    AccessFormat, AccessTarget, Algorithm, Balance, ForwardedFields, LogFormat, LogLevel, LogTarget, Mode, ProxyHost,
    SandboxProfile, Symlinks, SystemCalls, TrustedHeader,
};
pub use cli::{Cli, Command, ControlFlags, ServeFlags};
pub use glob::Glob;
pub use kind::Kind;
pub use load::{AdminAddress, Loaded, find_admin, load, load_in};
pub use origin::{ConfigError, ConfigErrors, Origin, Origins};
pub use pattern::{NamePattern, PathPattern};
pub use quantity::{ByteSize, FileMode, WorkerRange};
pub use settings::{DEFAULT_POOL, PhpSettings, PoolSettings, Route, RouteKeys, Settings};
pub use settings_http::{CompressionSettings, HttpSettings, LogSettings, StaticSettings};
pub use settings_proxy::ProxySettings;
pub use settings_sandbox::SandboxSettings;
pub use source::Surroundings;
pub use table::Row;
pub use upstream_address::{UpstreamAddr, UpstreamPlace};
