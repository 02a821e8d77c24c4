//! The maximum body for PHP, and the treatment of larger ones.
//!
//! PHP has its own limit for forms, `post_max_size`, and applications rely on its behavior: the script runs with an
//! empty `$_POST`, and `CONTENT_LENGTH` shows the reason. So without `max_body`, a form above that limit (and above
//! `DEFAULT_MAX_BODY`) is read and dropped. Other bodies are read by the script, which could not recognize a truncated
//! one, so they are refused.

use crate::exchange::Exchange;
use crate::phase::limits::DEFAULT_MAX_BODY;
use crate::upstream::{Target, Upstream};
use howdah_config::ini;
use http::{Method, header};

/// Body limit of one request, and the treatment of larger bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::phase) struct Allowance {
    /// In bytes.
    pub(in crate::phase) most: u64,
    /// `true` if a larger body is dropped and the request runs without it; otherwise the request is refused.
    pub(in crate::phase) drops: bool,
}

impl Allowance {
    /// Returns the limit of a request for an upstream server.
    pub(in crate::phase) fn of_proxy(exchange: &Exchange) -> Self {
        Self { most: exchange.max_body().unwrap_or(DEFAULT_MAX_BODY), drops: false }
    }

    /// Returns the limit of a request for PHP.
    pub(super) fn of_php<U: Upstream>(upstream: &U, exchange: &Exchange, target: Target) -> Self {
        let limit = Self::without_files(upstream, exchange, target);
        let of_files = exchange.changes.as_ref().and_then(|changes| changes.max_body);
        of_files.filter(|most| *most < limit.most).map_or(limit, |most| Self { most, drops: false })
    }

    /// Returns the limit without `.htaccess` files.
    fn without_files<U: Upstream>(upstream: &U, exchange: &Exchange, target: Target) -> Self {
        if let Some(most) = exchange.max_body() {
            return Self { most, drops: false };
        }
        let of_pools = Some(target.pool).into_iter().chain(target.preferred).map(|pool| upstream.form_limit(pool));
        let limits: Option<Vec<u64>> = of_pools.chain(of_request(exchange)).collect();
        match limits.and_then(|limits| limits.into_iter().max()) {
            Some(most) => Self { most: most.max(DEFAULT_MAX_BODY), drops: is_form(exchange) },
            None => {
                let share = exchange.site.server.budgets.spool.share();
                Self { most: share.max(DEFAULT_MAX_BODY), drops: false }
            }
        }
    }
}

/// Returns the `post_max_size` that rules and `.htaccess` files set for a request; the inner `None` means no limit.
fn of_request(exchange: &Exchange) -> Option<Option<u64>> {
    let of_rules = exchange.ruled.as_ref().map(|ruled| &ruled.outcome.ini);
    let of_files = exchange.changes.as_ref().map(|changes| &changes.ini);
    let all = of_rules.into_iter().chain(of_files).flatten();
    let mut pairs = all.flat_map(|ini| ini.values.iter().chain(&ini.admin));
    let (_, text) = pairs.rfind(|(name, _)| &**name == "post_max_size")?;
    Some(ini::size(text).filter(|bytes| *bytes > 0))
}

/// Returns `true` if PHP reads the body before the script runs.
fn is_form(exchange: &Exchange) -> bool {
    let media = exchange.head.headers.get(header::CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let media = media.split(|byte| matches!(byte, b';' | b',' | b' ')).next().unwrap_or_default();
    exchange.head.method == Method::POST
        && [&b"application/x-www-form-urlencoded"[..], b"multipart/form-data"]
            .iter()
            .any(|form| media.eq_ignore_ascii_case(form))
}
