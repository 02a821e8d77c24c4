//! Apache's .htaccess files.
#![forbid(unsafe_code)]
mod compare;
mod dialect;
mod expression;
mod expression_value;
mod limits;
mod networks;
mod pattern;
mod rewrite;
mod scene;
mod text;
mod wildcard;
mod world;
