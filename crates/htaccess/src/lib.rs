//! Apache's .htaccess files: reading them, and what they mean for a request.
//!
//! Reading order: `text` (lines and words), `directives` (what they say) into `config`, `store` (files that were read, and
//! put together along a path), `decision` (the order in which modules are asked for a request), `response` (what
//! becomes of its response). Each module of Apache is a file or folder: `rewrite`, `access`, `response_headers`, `media`,
//! `environment`, `redirects`, `decision/directory`. What a request costs is bounded by `limits`, and much closer on a
//! thread that other connections wait for, which gives up (`Dear`) for another one to do it. `known` lists what has no
//! effect.
//!
//! Everything here is pure but for what goes through the trait [`World`].
#![forbid(unsafe_code)]

mod access;
mod compare;
mod config;
mod decision;
mod dialect;
mod directives;
mod environment;
mod expression;
mod expression_value;
mod known;
mod limits;
mod media;
mod networks;
mod pattern;
mod place;
mod redirects;
mod response;
mod response_headers;
mod rewrite;
mod scene;
mod store;
mod substitute;
mod text;
mod unlisted;
mod wildcard;
mod world;

pub use decision::{Decision, Htaccess};
pub use directives::Note;
pub use media::FileType;
pub use redirects::ErrorDocument;
pub use response::{Maker, Response};
pub use scene::Environment;
pub use text::{Kind as LineKind, Line, Mistake, lines, rewrite_words, words};
pub use unlisted::Unlisted;
pub use world::{Dear, Entry, Facts, Kind, OwnedFacts, Stamp, World};
