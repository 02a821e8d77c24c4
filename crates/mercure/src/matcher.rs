//! Topic matchers of Mercure 1.0: `match` parameters of subscribers, and matcher objects in tokens.

use howdah_live::Selector;
use serde_json::{Map, Value};

/// Maximum length of a matcher, in bytes.
const MAX_LENGTH: usize = 4096;

/// The types of matchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchType {
    /// The topic of this name.
    Exact,
    /// A URL pattern.
    UrlPattern,
}

/// A mistake in a matcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MatcherError {
    #[error("a matcher's type is neither `exact` nor `urlpattern`")]
    Type,
    #[error("a matcher is longer than 4096 bytes")]
    Long,
    #[error("a matcher contains control or format characters")]
    Character,
    #[error("a URL pattern is invalid or too complex")]
    Pattern,
}

impl MatchType {
    /// The type that a parameter of the query selects; `None` if its name does not begin with `match`.
    ///
    /// # Errors
    /// Other names that begin with `match` are reserved.
    pub fn of_parameter(name: &str) -> Option<Result<Self, MatcherError>> {
        match name {
            "match" | "match_exact" => Some(Ok(Self::Exact)),
            "match_urlpattern" => Some(Ok(Self::UrlPattern)),
            _ if name.get(..5).is_some_and(|begin| begin.eq_ignore_ascii_case("match")) => {
                Some(Err(MatcherError::Type))
            }
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::UrlPattern => "urlpattern",
        }
    }

    /// The type of a selector that [`Self::selector`] has made; `*` counts as exact.
    pub(crate) fn of(selector: &Selector) -> Self {
        if matches!(selector, Selector::Url(_)) { Self::UrlPattern } else { Self::Exact }
    }

    /// The selector of a matcher. `hub`: the URL that relative patterns and topics are relative to.
    ///
    /// # Errors
    /// The matcher is invalid.
    pub fn selector(self, text: &str, hub: &str) -> Result<Selector, MatcherError> {
        if text.len() > MAX_LENGTH {
            return Err(MatcherError::Long);
        }
        if !is_clean(text) {
            return Err(MatcherError::Character);
        }
        match self {
            Self::Exact => Ok(Selector::exact(text)),
            Self::UrlPattern => Selector::url_pattern(text, hub).ok_or(MatcherError::Pattern),
        }
    }
}

/// The selector of a matcher object in a token; `None` if it is invalid.
pub(crate) fn selector(object: &Value, hub: &str) -> Option<Selector> {
    let object: &Map<String, Value> = object.as_object()?;
    let kind = match object.get("match_type").map(Value::as_str) {
        None | Some(Some("exact")) => MatchType::Exact,
        Some(Some("urlpattern")) => MatchType::UrlPattern,
        Some(_) => return None,
    };
    kind.selector(object.get("match")?.as_str()?, hub).ok()
}

/// `true` without control characters and without format characters, which are invisible (Unicode's category `Cf`).
pub(crate) fn is_clean(text: &str) -> bool {
    const FORMAT: [(u32, u32); 21] = [
        (0xad, 0xad),
        (0x600, 0x605),
        (0x61c, 0x61c),
        (0x6dd, 0x6dd),
        (0x70f, 0x70f),
        (0x890, 0x891),
        (0x8e2, 0x8e2),
        (0x180e, 0x180e),
        (0x200b, 0x200f),
        (0x202a, 0x202e),
        (0x2060, 0x2064),
        (0x2066, 0x206f),
        (0xfeff, 0xfeff),
        (0xfff9, 0xfffb),
        (0x110bd, 0x110bd),
        (0x110cd, 0x110cd),
        (0x13430, 0x1343f),
        (0x1bca0, 0x1bca3),
        (0x1d173, 0x1d17a),
        (0xe0001, 0xe0001),
        (0xe0020, 0xe007f),
    ];
    let is_format = |c: char| FORMAT.iter().any(|(first, last)| (*first..=*last).contains(&u32::from(c)));
    !text.chars().any(|c| c.is_control() || (!c.is_ascii() && is_format(c)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HUB: &str = "https://hub.example/.well-known/mercure";

    #[test]
    fn parameters_name_the_type_and_reserve_the_rest() {
        for (name, kind) in [
            ("match", Some(Ok(MatchType::Exact))),
            ("match_exact", Some(Ok(MatchType::Exact))),
            ("match_urlpattern", Some(Ok(MatchType::UrlPattern))),
            ("match_regexp", Some(Err(MatcherError::Type))),
            ("Match", Some(Err(MatcherError::Type))),
            ("matching", Some(Err(MatcherError::Type))),
            ("topic", None),
            ("m\u{fc}tch", None),
        ] {
            assert_eq!(MatchType::of_parameter(name), kind, "{name}");
        }
    }

    #[test]
    fn a_matcher_is_exact_a_pattern_or_everything() {
        let matches = |object: Value, topic: &str| selector(&object, HUB).map(|selector| selector.matches(topic));
        assert_eq!(matches(json!({ "match": "/books/{id}" }), "/books/1"), Some(false));
        assert_eq!(matches(json!({ "match": "/books/{id}" }), "/books/{id}"), Some(true));
        assert_eq!(matches(json!({ "match": "/books/:id", "match_type": "urlpattern" }), "/books/1"), Some(true));
        for kind in ["exact", "urlpattern"] {
            assert_eq!(matches(json!({ "match": "*", "match_type": kind }), "anything"), Some(true));
        }
        for wrong in [
            json!("a"),
            json!({}),
            json!({ "match": 1 }),
            json!({ "match": "a", "match_type": "uritemplate" }),
            json!({ "match": "a", "match_type": null }),
            json!({ "match": "/(", "match_type": "urlpattern" }),
            json!({ "match": "a\u{200b}" }),
            json!({ "match": "a\u{85}" }),
            json!({ "match": "x".repeat(4097) }),
        ] {
            assert_eq!(matches(wrong.clone(), "a"), None, "{wrong}");
        }
    }
}
