//! Reads what becomes of a response, and `proxy`.

use crate::pattern::Glob;
use crate::proxy::{Balance, Health, Proxy, Upstream};
use crate::quantity;
use crate::read::Reader;
use crate::read_actions::Keys;
use crate::response::{HeaderChange, ResponseChange};
use crate::rule::Action;
use crate::tree::{Node, Value};
use http::header::{self, HeaderName, HeaderValue};
use std::sync::Arc;

impl Reader<'_> {
    pub(crate) fn response(&mut self, keys: Keys<'_>, actions: &mut Vec<Action>) {
        let types = keys.get("types").map_or_else(Vec::new, |node| self.each("types", node, media_type));
        let mut changes = Vec::new();
        if let Some(node) = keys.get("headers") {
            changes.extend(self.table("headers", node, |name, value| {
                let (name, value) = header_line(name, value)?;
                Ok(if value.is_empty() { HeaderChange::Remove(name) } else { HeaderChange::Set(name, value) })
            }));
        }
        if let Some(node) = keys.get("add_headers") {
            changes.extend(self.table("add_headers", node, |name, value| {
                header_line(name, value).map(|(name, value)| HeaderChange::Add(name, value))
            }));
        }
        if let Some(node) = keys.get("default_headers") {
            changes.extend(self.table("default_headers", node, |name, value| {
                header_line(name, value).map(|(name, value)| HeaderChange::Default(name, value))
            }));
        }
        let mut list: Vec<ResponseChange> =
            changes.into_iter().map(|change| ResponseChange { types: types.clone(), success: false, change }).collect();
        for (key, read) in [("cache_control", cache_control as ByType), ("expires", expires)] {
            let Some(node) = keys.get(key) else { continue };
            if matches!(node.value, Value::Table(_)) {
                list.extend(self.table(key, node, |name, value| {
                    Ok(ResponseChange { types: vec![media_type(name)?], success: true, change: read(value)? })
                }));
            } else {
                let change = self.each(key, node, read).pop();
                list.extend(change.map(|change| ResponseChange { types: types.clone(), success: true, change }));
            }
        }
        if let Some(node) = keys.get("types").filter(|_| list.is_empty()) {
            self.problem(node, "types", "is for headers, cache_control and expires, of which the rule has none");
        }
        actions.extend(list.into_iter().map(|change| Action::Response(Arc::new(change))));
        if let Some(node) = keys.get("cors") {
            actions.extend(self.cors(node).map(|cors| Action::Cors(Arc::new(cors))));
        }
    }

    /// Servers, or a table of servers and how they are asked.
    pub(crate) fn proxy(&mut self, node: &Node) -> Option<Proxy> {
        const KNOWN: [&str; 12] = [
            "to",
            "balance",
            "strip_prefix",
            "preserve_host",
            "connect_timeout",
            "timeout",
            "retries",
            "keepalive",
            "max_requests",
            "max_fails",
            "fail_for",
            "health",
        ];
        let mut proxy = Proxy::default();
        if !matches!(node.value, Value::Table(_)) {
            proxy.upstreams = self.each("proxy", node, Upstream::new);
            return (!proxy.upstreams.is_empty()).then_some(proxy);
        }
        self.unknown_keys(node.entries(), &KNOWN);
        let keys = Keys(node.entries());
        let Some(to) = keys.get("to") else {
            self.problem(node, "proxy", "needs servers: { to = [\"http://127.0.0.1:3000\"] }");
            return None;
        };
        proxy.upstreams = self.each("proxy.to", to, Upstream::new);
        if let Some(balance) = keys.get("balance") {
            proxy.balance = self.each("proxy.balance", balance, balance_of).pop()?;
        }
        if let Some(prefix) = keys.get("strip_prefix") {
            proxy.strip_prefix = self.address("proxy.strip_prefix", prefix).map(|it| it.trim_end_matches('/').into());
        }
        if let Some(node) = keys.get("preserve_host") {
            proxy.preserve_host = self.flag("proxy.preserve_host", node)?;
        }
        proxy.connect_timeout =
            self.duration("proxy.connect_timeout", keys.get("connect_timeout"), proxy.connect_timeout)?;
        proxy.timeout = self.duration("proxy.timeout", keys.get("timeout"), proxy.timeout)?;
        proxy.fail_for = self.duration("proxy.fail_for", keys.get("fail_for"), proxy.fail_for)?;
        proxy.retries = self.number("proxy.retries", keys.get("retries"), proxy.retries)?.min(10);
        proxy.max_fails = self.number("proxy.max_fails", keys.get("max_fails"), proxy.max_fails)?;
        proxy.keepalive = self.number("proxy.keepalive", keys.get("keepalive"), 32)?.min(4096) as usize;
        proxy.max_requests = self.number("proxy.max_requests", keys.get("max_requests"), 0)? as usize;
        if let Some(node) = keys.get("health") {
            proxy.health = self.health(node);
        }
        (!proxy.upstreams.is_empty()).then_some(proxy)
    }

    /// A path, or a table with how often and how long.
    fn health(&mut self, node: &Node) -> Option<Health> {
        let ten = std::time::Duration::from_secs(10);
        if !matches!(node.value, Value::Table(_)) {
            let path = self.address("proxy.health", node)?.into();
            return Some(Health { path, interval: ten, timeout: ten / 2 });
        }
        self.unknown_keys(node.entries(), &["path", "interval", "timeout"]);
        let keys = Keys(node.entries());
        let Some(path) = keys.get("path") else {
            self.problem(node, "proxy.health", "needs a path");
            return None;
        };
        Some(Health {
            path: self.address("proxy.health.path", path)?.into(),
            interval: self.duration("proxy.health.interval", keys.get("interval"), ten)?,
            timeout: self.duration("proxy.health.timeout", keys.get("timeout"), ten / 2)?,
        })
    }
}

type ByType = fn(&str) -> Result<HeaderChange, String>;

fn cache_control(text: &str) -> Result<HeaderChange, String> {
    header_line("cache-control", text).map(|(_, value)| HeaderChange::Default(header::CACHE_CONTROL, value))
}

fn expires(text: &str) -> Result<HeaderChange, String> {
    let after = quantity::duration(text).ok_or_else(|| format!("{text:?} is no duration such as \"30d\""))?;
    Ok(HeaderChange::Expires(after))
}

fn balance_of(text: &str) -> Result<Balance, String> {
    Ok(match text {
        "round_robin" => Balance::RoundRobin,
        "least_requests" => Balance::LeastRequests,
        "client" => Balance::Client,
        "first" => Balance::First,
        _ => return Err(format!("{text:?} is none of round_robin, least_requests, client, first")),
    })
}

/// Headers that are about the connection or the message's length are the server's own business.
const KEPT: [HeaderName; 6] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TRAILER,
    header::TE,
];

fn header_line(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let header: HeaderName = name.parse().map_err(|_| format!("{name:?} is no header"))?;
    if KEPT.contains(&header) {
        return Err(format!("{name} is written by the server alone"));
    }
    let value = HeaderValue::from_str(value).map_err(|_| format!("{value:?} cannot be a header's value"))?;
    Ok((header, value))
}

fn media_type(text: &str) -> Result<Glob, String> {
    if text == "*" || text.contains('/') {
        Ok(Glob::new(text))
    } else {
        Err(format!("{text:?} is no media type such as \"image/*\""))
    }
}
