//! JSON Web Tokens (RFC 7519) in compact serialization, and their claims about Mercure.

use crate::access_token;
use crate::claims::{Claims, MAX_SELECTORS, TokenError};
use crate::keys::Keys;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use howdah_live::Selector;
use serde_json::{Map, Value};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum length of a token.
const MAX_LENGTH: usize = 16 * 1024;

impl Claims {
    /// Verifies a token at this time and returns its claims. `hubs`: the hub's URLs, of which an access token must name
    /// one; relative patterns in it are relative to the first.
    ///
    /// # Errors
    /// The reason why it is refused.
    pub fn verify(token: &str, keys: &Keys, now: SystemTime, hubs: &[String]) -> Result<Self, TokenError> {
        if token.len() > MAX_LENGTH {
            return Err(TokenError::Malformed);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (head, claims) = message.split_once('.').ok_or(TokenError::Malformed)?;
        let head = object(head).ok_or(TokenError::Malformed)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenError::Malformed)?;
        if head.contains_key("crit") {
            return Err(TokenError::Critical);
        }
        let algorithm = head.get("alg").and_then(Value::as_str).ok_or(TokenError::Algorithm)?;
        let id = head.get("kid").map(|id| id.as_str().ok_or(TokenError::Malformed)).transpose()?;
        let is_access_token = head.get("typ").and_then(Value::as_str).is_some_and(access_token::is_access_token);
        let mut error = TokenError::KeyId;
        for key in keys.of(id) {
            match key.verifies(algorithm, message.as_bytes(), &signature) {
                Some(true) => {
                    let claims = object(claims).ok_or(TokenError::Claims)?;
                    return Self::read(&claims, now, is_access_token.then_some(hubs));
                }
                Some(false) => error = TokenError::Signature,
                None if error == TokenError::KeyId => error = TokenError::Algorithm,
                None => {}
            }
        }
        Err(error)
    }

    /// `hubs` is `Some` for access tokens.
    fn read(claims: &Map<String, Value>, now: SystemTime, hubs: Option<&[String]>) -> Result<Self, TokenError> {
        let expires = time(claims, "exp")?;
        if expires.is_some_and(|expires| expires <= now) {
            return Err(TokenError::Expired);
        }
        if time(claims, "nbf")?.is_some_and(|begin| begin > now) {
            return Err(TokenError::NotYet);
        }
        // Access tokens with the claim of 0.x alone are read as those of 0.x.
        if let Some(hubs) =
            hubs.filter(|_| !claims.contains_key("mercure") || claims.contains_key("authorization_details"))
        {
            return access_token::read(claims, expires, hubs);
        }
        let mercure = match claims.get("mercure") {
            None | Some(Value::Null) => return Ok(Self { expires, ..Self::default() }),
            Some(Value::Object(mercure)) => mercure,
            Some(_) => return Err(TokenError::Claims),
        };
        let payload = mercure.get("payload").filter(|payload| !payload.is_null());
        Ok(Self {
            publish: selectors(mercure, "publish")?,
            subscribe: selectors(mercure, "subscribe")?,
            payload: payload.map(|payload| payload.to_string().into()),
            expires,
            ..Self::default()
        })
    }
}

fn object(part: &str) -> Option<Map<String, Value>> {
    match serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()? {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

/// A time in seconds since 1970, which may have a fraction.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<SystemTime>, TokenError> {
    let Some(time) = claims.get(name).filter(|time| !time.is_null()) else { return Ok(None) };
    let seconds = time.as_f64().ok_or(TokenError::Claims)?;
    // Times before 1970 count as expired long ago, and times that the system cannot represent as never.
    let since = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    Ok(UNIX_EPOCH.checked_add(since).or_else(|| UNIX_EPOCH.checked_add(Duration::from_secs(u64::from(u32::MAX) * 60))))
}

fn selectors(mercure: &Map<String, Value>, name: &str) -> Result<Option<Vec<Selector>>, TokenError> {
    let list = match mercure.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(list)) if list.len() <= MAX_SELECTORS => list,
        Some(_) => return Err(TokenError::Claims),
    };
    let read = |selector: &Value| selector.as_str().map(Selector::new).ok_or(TokenError::Claims);
    list.iter().map(read).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
