//! mod_rewrite in the context of a directory: `rule` reads rules and conditions, `template` what is put in a path's
//! place, `engine` runs them, `location` makes addresses of what comes of it.

mod cookie;
mod engine;
mod location;
mod rule;
mod template;

pub(crate) use cookie::Cookie;
pub(crate) use engine::{Effects, Outcome, run};
pub(crate) use location::{escape_path, has_scheme, qualified};
pub(crate) use rule::{Condition, Options, Rewrite, Rule, known_status};
pub(crate) use template::Template;
