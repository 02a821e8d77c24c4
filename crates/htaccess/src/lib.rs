//! Apache's .htaccess files: parsing, and their effect on a request.
//!
//! Reading order: `text` (lines and words), `directives` (parses them) into `config`, `store` (caches files and merges
//! them along a path), `decision` (runs the modules for a request), `response` (changes the response). Each Apache
//! module is a file or folder: `rewrite`, `access`, `response_headers`, `media`, `environment`, `redirects`,
//! `decision/directory`. `limits` bounds the cost of a request. The limit is much lower on a thread that serves other
//! connections: that thread gives up with `Dear`, and another one takes over. `known` lists directives without effect.
//!
//! Everything here is pure except for access through the trait [`World`].
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
