//! Apache's .htaccess files: parsing, and their effect on a request.
//!
//! Reading order: `text` (lines and words), `directives` (parses them) into `config`, `store` (caches files and merges
//! them along a path), `decision` (runs the modules for a request), `response` (changes the response). Each Apache
//! module is a file or folder: `rewrite`, `access`, `response_headers`, `media`, `environment`, `redirects`,
//! `decision/directory`. `limits` bounds the cost of a request. The limit is much lower on a thread that serves other
//! connections: that thread gives up with `TooExpensive`, and another one takes over. `known` lists directives without
//! effect.
//!
//! Files are accessed through the trait [`System`], except those of passwords (`howdah_rules::users`).
#![forbid(unsafe_code)]

mod access;
mod compare;
mod config;
mod decision;
mod dialect;
mod directives;
mod environment;
pub mod expression;
mod expression_value;
mod known;
mod limits;
mod media;
mod networks;
mod pattern;
mod place;
mod redirects;
mod request_state;
mod response;
mod response_headers;
mod rewrite;
mod store;
mod substitute;
mod system;
mod text;
mod unlisted;
mod wildcard;

pub use decision::{Decision, Htaccess};
pub use directives::Note;
pub use media::FileType;
pub use redirects::ErrorDocument;
pub use request_state::Environment;
pub use response::{Response, ResponseSource};
pub use response_headers::Validity;
pub use system::{Entry, Facts, Kind, OwnedFacts, Stamp, System, TooExpensive};
pub use text::{Kind as LineKind, Line, SyntaxError, lines, rewrite_words, words};
pub use unlisted::Unlisted;
