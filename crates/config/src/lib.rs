//! Howdah's settings: what the program uses ([`Settings`]), and the way there from flags, environment and
//! `howdah.toml`. Reading order: `settings` (each setting once: type, default, documentation, example),
//! `value` (how one value is written), `choice` and `address` (types of values).
#![forbid(unsafe_code)]

mod address;
mod choice;
mod document;
mod settings;
mod settings_http;
mod table;
mod value;

pub use address::{ListenAddr, TrustedProxy};
pub use choice::{AccessFormat, AccessTarget, Algorithm, LogFormat, LogLevel, LogTarget, Mode, Symlinks};
pub use settings::{DEFAULT_POOL, PhpSettings, PoolSettings, Route, Settings};
pub use settings_http::{CompressionSettings, HttpSettings, LogSettings, StaticSettings};
pub use table::Row;
pub use value::{ByteSize, Kind, PathPattern, WorkerRange};
