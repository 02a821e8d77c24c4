//! Conditions on the query of a request. Parameters have the names and values that PHP's scripts see in `$_GET`
//! (php-src main/php_variables.c), as another spelling of one must not bypass a rule.

use crate::pattern::TextPattern;
use crate::regex::TooManySteps;
use percent_encoding::percent_decode;
use std::borrow::Cow;

/// A condition on the query. The default always holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryConditions {
    /// Patterns of the whole query as sent, without its question mark; one must match.
    pub whole: Vec<TextPattern>,
    /// Parameters with patterns of their values; all must match.
    pub parts: Vec<(Box<str>, TextPattern)>,
}

/// Ways to read a request that programs understand differently, such as `?id=1&id=2` (PHP's scripts see one value, or
/// all in an array) or the method `delete` (which frameworks treat as `DELETE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// For conditions that must hold: one reading that meets them suffices.
    Any,
    /// For those in `not`: a harmless reading does not excuse another.
    Every,
}

impl QueryConditions {
    /// `true` for the condition that always holds.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.parts.is_empty()
    }

    /// `true` if a query without its question mark meets the condition. An empty query is none for `true` and `false`.
    pub(crate) fn hold(&self, query: &[u8], reading: Reading) -> Result<bool, TooManySteps> {
        for (name, pattern) in &self.parts {
            if !part_matches(query, name, pattern, reading)? {
                return Ok(false);
            }
        }
        for pattern in &self.whole {
            let value = match pattern {
                TextPattern::Present | TextPattern::Absent => Some(query).filter(|query| !query.is_empty()),
                _ => Some(query),
            };
            if pattern.matches(value)? {
                return Ok(true);
            }
        }
        Ok(self.whole.is_empty())
    }

    pub(crate) fn describe(&self) -> String {
        let whole = self.whole.iter().map(TextPattern::text).collect::<Vec<_>>().join(" or ");
        let parts = self.parts.iter().map(|(name, pattern)| format!("{name} = {}", pattern.text()));
        parts.chain(Some(whole).filter(|whole| !whole.is_empty())).collect::<Vec<_>>().join(" and ")
    }
}

fn part_matches(query: &[u8], name: &str, pattern: &TextPattern, reading: Reading) -> Result<bool, TooManySteps> {
    let wanted = registered(name.as_bytes());
    let mut found = false;
    for pair in query.split(|&b| b == b'&') {
        let at = pair.iter().position(|&b| b == b'=');
        let (key, value) = at.map_or((pair, &b""[..]), |at| (&pair[..at], &pair[at + 1..]));
        let key = decode_form(key);
        if !is_named(&registered(&key), &wanted) {
            continue;
        }
        found = true;
        let fits = pattern.matches(Some(&decode_form(value)))?;
        if fits == (reading == Reading::Any) {
            return Ok(fits);
        }
    }
    if found { Ok(reading == Reading::Every) } else { pattern.matches(None) }
}

/// `true` for the parameter itself, and for an element of the array of this name.
fn is_named(name: &[u8], wanted: &[u8]) -> bool {
    name.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest[0] == b'[')
}

/// The name under which PHP registers a parameter: up to a null byte, without spaces before it, and with `_` in place
/// of dots, spaces and brackets that are not closed, up to the first that is closed.
fn registered(name: &[u8]) -> Cow<'_, [u8]> {
    let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
    let name = &name[..end];
    let name = &name[name.iter().position(|&b| b != b' ').unwrap_or(end)..];
    let element = name.iter().position(|&b| b == b'[').filter(|&open| name[open..].contains(&b']'));
    let bare = element.unwrap_or(name.len());
    let is_replaced = |b: u8| matches!(b, b'.' | b' ' | b'[');
    if !name[..bare].iter().any(|&b| is_replaced(b)) {
        return Cow::Borrowed(name);
    }
    let mut made = name.to_vec();
    made[..bare].iter_mut().filter(|b| is_replaced(**b)).for_each(|b| *b = b'_');
    Cow::Owned(made)
}

/// Decodes percent-encoding and `+`; invalid sequences are kept.
fn decode_form(text: &[u8]) -> Vec<u8> {
    let spaced: Vec<u8> = text.iter().map(|&b| if b == b'+' { b' ' } else { b }).collect();
    percent_decode(&spaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(conditions: &QueryConditions, query: &str, reading: Reading) -> bool {
        conditions.hold(query.as_bytes(), reading).unwrap()
    }

    fn part(name: &str, pattern: &str) -> QueryConditions {
        QueryConditions { parts: vec![(name.into(), TextPattern::new(pattern).unwrap())], ..QueryConditions::default() }
    }

    #[test]
    fn other_spellings_of_a_parameter_are_found_as_php_does() {
        // `php -r 'parse_str($query, $_GET)'` of PHP 8.2 registers the parameter in all of these, and in none below.
        for query in [
            "do_it=x",
            "do.it=x",
            "do%2eit=x",
            "do%20it=x",
            "do+it=x",
            "%20+do_it=x",
            "do[it=x",
            "do_it%00b=x",
            "do_it[]=x",
            "do.it[a][b]=x",
            "a=1&&do_it=x",
            "%64o_it=%78",
        ] {
            assert!(holds(&part("do_it", "x"), query, Reading::Any), "{query}");
            assert!(holds(&part("do.it", "x"), query, Reading::Any), "{query}");
        }
        for query in ["", "do_it", "Do_it=x", "do_it=", "do_it2=x", "do=it=x", "x=do_it", "do[it]=x", "%00do_it=x"] {
            assert!(!holds(&part("do_it", "x"), query, Reading::Any), "{query}");
        }
        assert!(holds(&part("do[it]", "x"), "do[it]=x", Reading::Any));
    }

    #[test]
    fn of_a_repeated_parameter_one_value_suffices_and_in_not_all_are_needed() {
        let id = part("id", "~^[0-9]+$");
        for (query, one, all) in [
            ("id=1", true, true),
            ("id=1&id=2", true, true),
            ("id=1&id=x", true, false),
            ("id=x&id=1", true, false),
            ("id=1&id[]=x", true, false),
            ("id=x", false, false),
            ("", false, false),
        ] {
            let found = (holds(&id, query, Reading::Any), holds(&id, query, Reading::Every));
            assert_eq!(found, (one, all), "{query}");
        }
    }

    #[test]
    fn the_whole_query_is_compared_as_sent() {
        let whole = |pattern: TextPattern| QueryConditions { whole: vec![pattern], ..QueryConditions::default() };
        let text = |pattern: &str| whole(TextPattern::new(pattern).unwrap());
        for (conditions, query, expected) in [
            (text("~union.*select"), "a=union+select", true),
            (text("~union.*select"), "", false),
            (text("~^$"), "", true),
            (text("*%2e*"), "a=%2E", true),
            (text("a=1"), "a=1&b", false),
            (whole(TextPattern::Present), "", false),
            (whole(TextPattern::Present), "a", true),
            (whole(TextPattern::Absent), "", true),
            (whole(TextPattern::Absent), "a", false),
        ] {
            assert_eq!(holds(&conditions, query, Reading::Any), expected, "{conditions:?} {query}");
        }
    }
}
