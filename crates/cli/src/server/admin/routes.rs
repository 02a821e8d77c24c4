//! `POST /routes/restore?path=PATH` (percent-encoded): returns demoted routes, which run in classic mode, to their
//! pools.

use crate::control::outcome::outcome;
use crate::control::parameter::{self, PATH};
use crate::server::pools::Pools;
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, StatusCode};

/// The order to restore routes.
pub(crate) fn restore(pools: &Pools, query: Option<&str>) -> Response<Full<Bytes>> {
    let Some(path) = query.and_then(|query| query.strip_prefix(PATH)).and_then(decoded) else {
        return outcome(StatusCode::BAD_REQUEST, false, "POST /routes/restore?path=PATH, or path=* for all routes");
    };
    let restored: usize = pools.iter().filter_map(|pool| pool.demotions()).map(|pool| pool.restore(&path)).sum();
    match restored {
        0 => outcome(StatusCode::NOT_FOUND, false, &format!("no route was demoted for {path}: see `howdah routes`")),
        1 => outcome(StatusCode::OK, true, "one route runs in its pool again"),
        more => outcome(StatusCode::OK, true, &format!("{more} routes run in their pools again")),
    }
}

/// Decodes the path of an order, which must be valid UTF-8 and not empty.
fn decoded(parameter: &str) -> Option<String> {
    String::from_utf8(parameter::decoded(parameter)?).ok().filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reaches_the_server_as_it_is() {
        for path in ["/", "*", "/items/#", "/a b/%41?x=1&y=ü"] {
            assert_eq!(decoded(&parameter::encoded(path.as_bytes())).as_deref(), Some(path));
        }
        for wrong in ["", "%", "%4", "%zz", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
