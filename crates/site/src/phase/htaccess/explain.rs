//! What the `.htaccess` files make of a request, for `howdah explain`.

use super::{Machine, lookup_of, with_facts};
use crate::exchange::Exchange;
use crate::explanation::ExplanationBuilder;
use crate::phase::destination;
use crate::phase::rules::served::Served;
use crate::request_path::plain_path;
use crate::route::resolve_settled;
use howdah_htaccess::Decision;
use howdah_rules::outcome::{Access, Stop};
use http::StatusCode;

/// Records the decision of the `.htaccess` files and what it leads to. Error documents are left out.
pub(super) fn explain(exchange: &Exchange, explaining: &mut ExplanationBuilder) {
    let site = exchange.site.clone();
    let Some(htaccess) = &site.htaccess else { return };
    let Ok(path) = plain_path(exchange.head.target.path()) else {
        return explaining.respond(StatusCode::BAD_REQUEST, StatusCode::BAD_REQUEST.to_string());
    };
    let machine = Machine { site: &site, shared: false };
    let decided = with_facts(exchange, &path, |facts| htaccess.decide(facts, &machine, exchange.started));
    let Ok(decision) = decided else {
        return explaining.respond(StatusCode::INTERNAL_SERVER_ERROR, "500: the `.htaccess` files take too long");
    };
    if decision.outcome.access.iter().any(|access| matches!(access, Access::Auth(_))) {
        explaining.notes.add("htaccess", "asks for a user and a password");
    }
    if let Some(stop) = &decision.outcome.stop {
        return explain_end(stop, explaining);
    }
    let chosen = decision.response.path();
    if *chosen != *path {
        explaining.notes.add("htaccess", format!("the path becomes {}", String::from_utf8_lossy(chosen)));
    }
    explain_target(exchange, &decision, explaining);
}

fn explain_end(stop: &Stop, explaining: &mut ExplanationBuilder) {
    match stop {
        Stop::Redirect(status, location) => {
            explaining.found.location = Some(String::from_utf8_lossy(location.as_bytes()).into_owned());
            explaining.respond(*status, format!("{status}, from a `.htaccess` file"));
        }
        Stop::Status(status, _) => explaining.respond(*status, format!("{status}, from a `.htaccess` file")),
        Stop::Failed(failure) => {
            explaining.respond(StatusCode::INTERNAL_SERVER_ERROR, format!("500: {}", failure.reason))
        }
        // `.htaccess` files have neither.
        Stop::Maintenance(_) | Stop::Proxy(_) => {}
    }
}

fn explain_target(exchange: &Exchange, decision: &Decision, explaining: &mut ExplanationBuilder) {
    let site = exchange.site.clone();
    let (php, lookup) = lookup_of(&site, exchange, decision);
    let path = decision.response.path();
    let route = resolve_settled(&site, path, php, &lookup);
    let served = Served { path: Some(path), stands_in: false, route: Some(&route) };
    if destination::may_be_served(&site, exchange, served, explaining) {
        destination::explain_route(exchange, route, &lookup, explaining);
    }
}
