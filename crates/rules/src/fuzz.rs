//! Fuzz target that generates rules and a request from the same bytes. The author of rules is trusted, but the paths of
//! requests are not; mutating both makes patterns meet paths that nearly match. `howdah_site::fuzz` drives it.

use crate::pattern::{PathPattern, TextPattern};
use crate::regex::Regex;
use crate::request::{NoFiles, Request};
use crate::rule::{Action, Conditions, QueryMode, Rule};
use crate::template::Template;
use crate::trace::{Lines, NoTrace};
use crate::{Rules, Stop};
use http::{HeaderMap, Method, StatusCode};

/// Input lines: the path, the query, the host, then one line per rule. A rule's line has a letter for the kind of its
/// pattern, a letter for its action, the pattern, and after a blank the action's target.
///
/// Asserts that evaluation terminates, that the index excludes no matching rule, and that every outcome can be sent.
pub fn rules(data: &[u8]) {
    let mut lines = data.splitn(40, |&b| b == b'\n');
    let mut next = || lines.next().unwrap_or_default();
    let (path, query, host) = (next(), next(), next());
    let Ok(path) = crate::path::normalise(&[b"/", path].concat()) else { return };
    let rules: Vec<Rule> = lines.enumerate().filter_map(|(at, line)| rule(at, line)).collect();
    let Ok(rules) = Rules::new(rules) else { return };
    let headers = HeaderMap::new();
    let request = Request {
        method: &Method::GET,
        https: false,
        host,
        path: &path,
        query: Some(query).filter(|query| !query.is_empty()),
        headers: &headers,
        client: Some([192, 0, 2, 1].into()),
    };
    let outcome = rules.evaluate(&request, &NoFiles, &mut NoTrace);
    // With a trace every rule is evaluated; without one, only the index's candidates.
    let traced = rules.evaluate(&request, &NoFiles, &mut Lines::default());
    assert_eq!(format!("{outcome:?}"), format!("{traced:?}"));
    let Some(outcome) = outcome else { return };
    if let Some(path) = &outcome.path {
        assert_eq!(crate::path::normalise(path).as_ref(), Ok(path));
    }
    if let Some(Stop::Redirect(_, location)) = &outcome.stop {
        assert!(location.as_bytes().iter().all(|&b| b > b' ' && b < 0x7f), "{location:?}");
        assert!(!location.as_bytes().starts_with(b"//"), "{location:?}");
    }
}

/// Parses the rule of a line.
fn rule(at: usize, line: &[u8]) -> Option<Rule> {
    let text = std::str::from_utf8(line).ok()?;
    let mut letters = text.chars();
    let (kind, does) = (letters.next()?, letters.next()?);
    let (pattern, target) = letters.as_str().split_once(' ').unwrap_or((letters.as_str(), ""));
    let mut conditions = Conditions::default();
    match kind {
        'p' => conditions.path.push(PathPattern::new(pattern).ok()?),
        'h' => conditions.host.push(TextPattern::new(pattern).ok()?),
        'q' => conditions.query.parts.push(("q".into(), TextPattern::new(pattern).ok()?)),
        'w' => conditions.query.whole.push(TextPattern::new(pattern).ok()?),
        _ => conditions.path.push(PathPattern::Regex(Regex::new(pattern).ok()?)),
    }
    // Skips input that the reader of rules would refuse.
    let fits = |text: &str| !text.starts_with('/') && text.bytes().all(|b| b > b' ' && b < 0x7f);
    let below = |text: &str| Template::new(&format!("/{text}")).ok().filter(|_| fits(text));
    let action = match does {
        'd' => Action::Status(StatusCode::FORBIDDEN, None),
        'r' => Action::Redirect(below(target)?, QueryMode::Append, StatusCode::FOUND),
        'w' => Action::Rewrite(below(target)?, QueryMode::Append),
        _ => Action::Php(false),
    };
    Some(Rule {
        name: format!("rule[{at}]").into(),
        line: at,
        conditions,
        not: Conditions::default(),
        actions: vec![action],
        last: does == 'l',
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_and_unusual_rules_satisfy_the_target() {
        for data in [
            &b"wiki/A b\nx=1\nexample.org\nr w\nxw^/wiki/(.*)$ index.php?t=$1\npd/index.php"[..],
            b"a\n\nh\npa/* $1$1$1$1\nxr^/(.*) $1",
            b"//evil.org\nq\nh\npr/* $1",
            b"\xff\n\xfe\n\xfd\nxr^/(.*)$ x/$1?$1#$1\nhd*",
            b"a\n\n\npr/a $query",
            b"a\n\\\"<>\n\npr/* x?y",
        ] {
            rules(data);
        }
    }
}
