//! Module mod_rewrite in the context of a directory: `rule` parses rules and conditions, `template` expands
//! substitutions, `engine` runs the rules, `location` builds URLs from the results.

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
