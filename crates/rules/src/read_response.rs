//! Reads the response changes of a rule.

use crate::pattern::Glob;
use crate::read::Reader;
use crate::read_actions::Keys;
use crate::response::{HeaderChange, ResponseChange};
use crate::rule::Action;
use crate::tree::Tree;
use http::header::{self, HeaderName, HeaderValue};
use std::sync::Arc;

impl Reader<'_> {
    pub(crate) fn response(&mut self, keys: Keys<'_>, actions: &mut Vec<Action>) {
        let types = keys.get("types").map_or_else(Vec::new, |node| self.each("types", node, media_type));
        let mut changes = Vec::new();
        if let Some(node) = keys.get("headers") {
            changes.extend(self.table("headers", node, change));
        }
        let mut list: Vec<ResponseChange> =
            changes.into_iter().map(|change| ResponseChange { types: types.clone(), success: false, change }).collect();
        if let Some(node) = keys.get("cache_control") {
            if matches!(node.tree, Tree::Table(_)) {
                list.extend(self.table("cache_control", node, |name, value| {
                    Ok(ResponseChange { types: vec![media_type(name)?], success: true, change: cache_control(value)? })
                }));
            } else {
                let change = self.each("cache_control", node, cache_control).pop();
                list.extend(change.map(|change| ResponseChange { types: types.clone(), success: true, change }));
            }
        }
        if let Some(node) = keys.get("types").filter(|_| list.is_empty()) {
            self.problem(node, "types", "needs `headers` or `cache_control` in the same rule");
        }
        actions.extend(list.into_iter().map(|change| Action::Response(Arc::new(change))));
        if let Some(node) = keys.get("cors") {
            actions.extend(self.cors(node).map(|cors| Action::Cors(Arc::new(cors))));
        }
    }
}

/// Parses a change: `Name`, `+Name` or `?Name`, and the value.
fn change(name: &str, value: &str) -> Result<HeaderChange, String> {
    if let Some(name) = name.strip_prefix('+') {
        return header_line(name, value).map(|(name, value)| HeaderChange::Add(name, value));
    }
    if let Some(name) = name.strip_prefix('?') {
        return header_line(name, value).map(|(name, value)| HeaderChange::Default(name, value));
    }
    let (name, value) = header_line(name, value)?;
    Ok(if value.is_empty() { HeaderChange::Remove(name) } else { HeaderChange::Set(name, value) })
}

fn cache_control(text: &str) -> Result<HeaderChange, String> {
    header_line("cache-control", text).map(|(_, value)| HeaderChange::Default(header::CACHE_CONTROL, value))
}

/// Headers of the connection and of message framing, which rules cannot change.
const KEPT: [HeaderName; 6] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TRAILER,
    header::TE,
];

fn header_line(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let header: HeaderName = name.parse().map_err(|_| format!("{name:?} is not a header"))?;
    if KEPT.contains(&header) {
        return Err(format!("{name} is set by the server only"));
    }
    let value = HeaderValue::from_str(value).map_err(|_| format!("{value:?} cannot be a header's value"))?;
    Ok((header, value))
}

fn media_type(text: &str) -> Result<Glob, String> {
    if text == "*" || text.contains('/') {
        Ok(Glob::new(text))
    } else {
        Err(format!("{text:?} is not a media type such as \"image/*\""))
    }
}
