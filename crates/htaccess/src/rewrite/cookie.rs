//! `[CO=name:value:domain…]`: the cookie that a rule sets.

use http::HeaderValue;
use std::time::{Duration, SystemTime};

/// A cookie's name, and the line that sets it.
#[derive(Debug, Clone)]
pub(crate) struct Cookie {
    pub name: String,
    pub line: HeaderValue,
}

impl Cookie {
    /// Parses `name:value:domain[:minutes[:path[:secure[:httponly[:samesite]]]]]`. After a leading `;`, the separator
    /// is `;`.
    pub(super) fn new(text: &[u8], now: SystemTime) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (text, between) = text.strip_prefix(';').map_or((text, ':'), |rest| (rest, ';'));
        let mut parts = text.split(between).filter(|part| !part.is_empty());
        let (name, value, domain) = (parts.next()?, parts.next()?, parts.next()?);
        let minutes = parts.next().map_or(0, |minutes| crate::compare::number(minutes.as_bytes()));
        let path = parts.next().unwrap_or("/");
        let on = |word: Option<&str>, more: &str| {
            word.is_some_and(|word| word == "1" || word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case(more))
        };
        let (secure, http_only) = (on(parts.next(), "secure"), on(parts.next(), "httponly"));
        let same_site = parts.next().filter(|word| *word != "0" && !word.eq_ignore_ascii_case("false"));
        let mut made = format!("{name}={value}; path={path}; domain={domain}");
        if minutes != 0 {
            let far = Duration::from_secs(minutes.unsigned_abs().min(5_256_000) * 60);
            let then = if minutes > 0 { now.checked_add(far) } else { now.checked_sub(far) };
            let date = httpdate::fmt_http_date(then?);
            // Netscape's date format: `Sun, 06-Nov-1994 08:49:37 GMT`.
            made.push_str(&format!("; expires={}-{}-{}", &date[..7], &date[8..11], &date[12..]));
        }
        for (wanted, word) in [(secure, "; secure"), (http_only, "; HttpOnly")] {
            made.push_str(if wanted { word } else { "" });
        }
        if let Some(same_site) = same_site {
            made.push_str(&format!("; SameSite={same_site}"));
        }
        Some(Self { name: name.to_owned(), line: HeaderValue::from_str(&made).ok()? })
    }
}
