//! Names of routes, for counts per route: the path without its query, with `#` for each number. If a recipe reports
//! which route responded, all paths of a route with as many segments have one name, with `*` for a segment in which
//! they differ.
//!
//! A route is reported only after its request has run, but its name is needed before. So a new path is assigned to the
//! route whose known paths are most like it. A wrong assignment at worst runs the request in classic mode.

use std::collections::BTreeMap;

/// Maximum length of a name, and of the name that the application reports, in bytes.
pub(super) const MAX_NAME_LEN: usize = 200;
const MAX_REPORTED_LEN: usize = 128;
/// Maximum number of reported routes; beyond it each path is a route.
const MAX_ROUTES: usize = 256;
const ANY: &str = "*";

/// Common pattern of each route's paths, by the reported name and the number of path segments.
#[derive(Debug, Default)]
pub(super) struct Routes(BTreeMap<(Vec<u8>, usize), String>);

impl Routes {
    /// Name of a target's route. A name maps to itself.
    pub(super) fn of(&self, target: &[u8]) -> String {
        let path = without_numbers(target);
        let similar = self.0.values().filter(|known| has_words(known) && covers(known, &path));
        similar.min_by_key(|known| count_any(known)).cloned().unwrap_or(path)
    }

    /// Notes that the route `reported` responded to this target. Returns the route's new name if its paths were known
    /// by other names.
    pub(super) fn note(&mut self, reported: &[u8], target: &[u8]) -> Option<String> {
        if reported.is_empty() || reported.len() > MAX_REPORTED_LEN {
            return None;
        }
        let path = without_numbers(target);
        let key = (reported.to_vec(), path.split('/').count());
        let is_full = self.0.len() >= MAX_ROUTES;
        let Some(known) = self.0.get_mut(&key) else {
            if !is_full {
                self.0.insert(key, path);
            }
            return None;
        };
        if covers(known, &path) {
            return None;
        }
        let parts = known.split('/').zip(path.split('/'));
        *known = parts.map(|(one, other)| if one == other { one } else { ANY }).collect::<Vec<_>>().join("/");
        has_words(known).then(|| known.clone())
    }
}

/// False for a pattern whose segments all vary: it would match any path with as many.
fn has_words(route: &str) -> bool {
    route.split('/').any(|part| !part.is_empty() && part != ANY)
}

fn count_any(route: &str) -> usize {
    route.split('/').filter(|part| *part == ANY).count()
}

pub(super) fn covers(route: &str, path: &str) -> bool {
    let (mut parts, mut others) = (route.split('/'), path.split('/'));
    loop {
        match (parts.next(), others.next()) {
            (None, None) => return true,
            (Some(part), Some(other)) if part == ANY || part == other => {}
            _ => return false,
        }
    }
}

fn without_numbers(target: &[u8]) -> String {
    let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    let text = String::from_utf8_lossy(&path[..path.len().min(MAX_NAME_LEN)]);
    let mut route = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '0'..='9' if route.ends_with('#') => {}
            '0'..='9' => route.push('#'),
            other => route.push(other),
        }
    }
    route
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_that_no_recipe_reports_is_a_path_without_its_query_and_numbers() {
        let routes = Routes::default();
        assert_eq!(routes.of(b"/items/77/a1?page=2"), "/items/#/a#");
        assert_eq!(routes.of(b"/items/#/a#"), "/items/#/a#", "a name stands for itself");
        assert!(routes.of(&[b'/'; 10_000]).len() <= MAX_NAME_LEN);
    }

    #[test]
    fn paths_of_one_reported_route_get_one_name_and_those_of_others_stay_apart() {
        let mut routes = Routes::default();
        assert_eq!(routes.note(b"latest", b"/products/latest"), None);
        assert_eq!(routes.note(b"product", b"/products/mug?size=1"), None);
        assert_eq!(routes.of(b"/products/mug"), "/products/mug");
        assert_eq!(routes.note(b"product", b"/products/cap"), Some("/products/*".to_owned()));
        assert_eq!(routes.note(b"product", b"/products/shirt"), None, "it is covered");
        assert_eq!(routes.of(b"/products/never-seen?x"), "/products/*");
        assert_eq!(routes.of(b"/products/*"), "/products/*", "a name stands for itself");
        assert_eq!(routes.of(b"/products/latest"), "/products/latest", "another route");
        assert_eq!(routes.of(b"/products/mug/reviews"), "/products/mug/reviews", "of other parts");
        assert_eq!(routes.note(b"item", b"/items/5"), None);
        assert_eq!(routes.note(b"item", b"/items/77"), None, "numbers are one already");
    }

    #[test]
    fn routes_need_a_common_word_and_their_number_is_limited() {
        let mut routes = Routes::default();
        assert_eq!((routes.note(b"page", b"/about"), routes.note(b"page", b"/team")), (None, None));
        assert_eq!(routes.of(b"/mode"), "/mode");
        assert_eq!((routes.note(b"", b"/a/b"), routes.note(&[b'x'; 500], b"/a/b")), (None, None));
        for n in 0..1000 {
            let _ = routes.note(format!("route{n}").as_bytes(), b"/x");
        }
        assert_eq!(routes.0.len(), MAX_ROUTES);
    }
}
