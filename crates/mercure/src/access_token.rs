//! Claims of Mercure 1.0: access tokens (RFC 9068) with authorization details (RFC 9396).

use crate::claims::{Claims, MAX_SELECTORS, TokenError};
use crate::matcher;
use howdah_live::Selector;
use serde_json::{Map, Value};
use std::time::SystemTime;

/// The type of Mercure's authorization details.
pub const DETAIL_TYPE: &str = "https://mercure.rocks/authorization-detail";

/// `true` for the `typ` of access tokens.
pub(crate) fn is_access_token(typ: &str) -> bool {
    let prefix = "application/";
    let short = match typ.get(..prefix.len()) {
        Some(begin) if begin.eq_ignore_ascii_case(prefix) => &typ[prefix.len()..],
        _ => typ,
    };
    short.eq_ignore_ascii_case("at+jwt")
}

/// Reads the claims of an access token, whose times have been checked.
pub(crate) fn read(
    claims: &Map<String, Value>,
    expires: Option<SystemTime>,
    hubs: &[String],
) -> Result<Claims, TokenError> {
    let issuer = claims.get("iss").and_then(Value::as_str);
    if expires.is_none() || issuer.is_none_or(str::is_empty) {
        return Err(TokenError::Claims);
    }
    let is_meant = |audience: &Value| audience.as_str().is_some_and(|audience| hubs.iter().any(|hub| hub == audience));
    let is_audience = match claims.get("aud") {
        Some(Value::Array(all)) => all.iter().any(is_meant),
        Some(one) => is_meant(one),
        None => false,
    };
    if !is_audience {
        return Err(TokenError::Audience);
    }
    let hub = hubs.first().map(String::as_str).unwrap_or_default();
    let mut read = Claims { expires, is_access_token: true, ..Claims::default() };
    let details = match claims.get("authorization_details") {
        None => return Ok(read),
        Some(details) => details.as_array().ok_or(TokenError::Claims)?,
    };
    let mut left = MAX_SELECTORS;
    for detail in details {
        let detail = detail.as_object().ok_or(TokenError::Claims)?;
        if detail.get("type").and_then(Value::as_str) == Some(DETAIL_TYPE) {
            add(&mut read, detail, hub, &mut left).ok_or(TokenError::Claims)?;
        }
    }
    Ok(read)
}

/// Adds a detail; `None` if it is invalid, which makes the token invalid.
fn add(claims: &mut Claims, detail: &Map<String, Value>, hub: &str, left: &mut usize) -> Option<()> {
    let filled = |name: &str| detail.get(name)?.as_array().filter(|all| !all.is_empty());
    let actions: Vec<&str> = filled("actions")?.iter().map(Value::as_str).collect::<Option<_>>()?;
    let topics = filled("topics")?;
    *left = left.checked_sub(topics.len())?;
    let topics: Vec<Selector> = topics.iter().map(|topic| matcher::selector(topic, hub)).collect::<Option<_>>()?;
    let payload = detail.get("payload").map(|payload| payload.as_object().ok_or(())).transpose().ok()?;
    if actions.contains(&"publish") {
        claims.publish.get_or_insert_default().extend(topics.iter().cloned());
    }
    if actions.contains(&"subscribe") {
        let payload = payload.map(|payload| Value::Object(payload.clone()).to_string().into());
        claims.subscribe.get_or_insert_default().extend(topics.iter().cloned());
        claims.payloads.push((topics, payload));
    }
    Some(())
}
