//! A site's orders for a request after its rules: the result of [`Rules::evaluate`](crate::Rules::evaluate), and of
//! `.htaccess` files.
//!
//! **The order in which a site acts on it**: `access` in its order, then `stop` if there is one, else the file, script
//! or front controller at `path`. `response` is applied to the resulting response, refusals included.

use crate::auth::Auth;
use crate::limit::Limit;
use crate::response::ResponseChange;
use crate::rule::{Body, Cors, ErrorPages, Ini, Maintenance, Mime, Place, Route, Times};
use http::{HeaderName, HeaderValue, StatusCode};
use std::sync::Arc;

/// A site's orders. Fields that no rule touched are empty, and then the site's settings count.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The path that replaces the request's: decoded and normalized.
    pub path: Option<Vec<u8>>,
    /// The query that replaces the request's; the inner `None` for no query.
    pub query: Option<Option<Vec<u8>>>,
    /// Checks before anything is served, in this order.
    pub access: Vec<Access>,
    /// Where files lie.
    pub place: Option<Arc<Place>>,
    /// The names that are tried in a directory.
    pub index: Option<Arc<[String]>>,
    /// The script that runs if no file matches (its path); the inner `None` for 404.
    pub front_controller: Option<Option<Arc<str>>>,
    /// Paths to try in order instead of the path, filled in: the last one is taken in any case.
    pub try_files: Option<Vec<Attempt>>,
    /// Scripts are run; else they are refused with 403 and never sent.
    pub php: Option<bool>,
    /// Changes of the request's headers, as PHP sees it; none removes one.
    pub request_headers: Vec<(HeaderName, Option<HeaderValue>)>,
    /// Variables for PHP.
    pub variables: Vec<(Arc<str>, Arc<[u8]>)>,
    /// Changes of the response's headers, in this order.
    pub response: Vec<Arc<ResponseChange>>,
    /// Which origins' scripts may read the response.
    pub cors: Option<Arc<Cors>>,
    /// Media types by the endings of names; a later one counts more.
    pub mime: Vec<Arc<Mime>>,
    /// Pages for errors; a later one counts more.
    pub error_pages: Vec<Arc<ErrorPages>>,
    /// A directory without an index is listed.
    pub listing: Option<bool>,
    /// The pool that runs scripts.
    pub pool: Option<Arc<str>>,
    /// The script that gets the events of WebSocket connections.
    pub websocket: Option<Arc<str>>,
    /// The route that metrics and traces name.
    pub route: Option<Arc<Route>>,
    /// The position of its share of the workers among those of all sites.
    pub share: Option<u16>,
    /// Settings of PHP for this request; a later one counts more.
    pub ini: Vec<Arc<Ini>>,
    /// Time limits of the request.
    pub times: Times,
    /// The largest body of the request.
    pub max_body: Option<u64>,
    /// The request is in the access log.
    pub access_log: Option<bool>,
    /// The end of the request, instead of a file or script.
    pub stop: Option<Stop>,
    /// The rules that were followed, of those that protect something by its path.
    pub judged: Numbers,
}

/// Numbers of rules. Nothing is allocated for the first ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbers {
    first: u64,
    others: Vec<u16>,
}

impl Numbers {
    /// Adds a rule.
    pub fn add(&mut self, number: u16) {
        match number {
            0..64 => self.first |= 1 << number,
            _ if self.others.contains(&number) => {}
            _ => self.others.push(number),
        }
    }

    /// `true` if a rule is among them.
    #[must_use]
    pub fn has(&self, number: u16) -> bool {
        if number < 64 { self.first & 1 << number != 0 } else { self.others.contains(&number) }
    }

    /// Adds others.
    pub fn extend(&mut self, others: &Self) {
        self.first |= others.first;
        others.others.iter().for_each(|&number| self.add(number));
    }
}

/// A check before anything is served.
#[derive(Debug, Clone)]
pub enum Access {
    /// A rate and a number of requests for each client.
    Limit(Arc<Limit>),
    /// A user's name and password.
    Auth(Arc<Auth>),
}

/// One step of `try_files`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// A path (decoded and normalised), and a query where it brings one along.
    Path(Vec<u8>, Option<Vec<u8>>),
    /// A status.
    Status(StatusCode),
}

/// The end of a request.
#[derive(Debug, Clone)]
pub enum Stop {
    /// A status, with an error page or a body of the rule's own.
    Status(StatusCode, Option<Arc<Body>>),
    /// The client goes elsewhere.
    Redirect(StatusCode, HeaderValue),
    /// 503, with a page.
    Maintenance(Arc<Maintenance>),
    /// Another server responds.
    Proxy(Arc<str>),
    /// 500: a rule could not be followed. The site logs it with the rule's name.
    Failed(Failure),
}

/// Why a rule could not be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The rule's name.
    pub rule: Arc<str>,
    /// The failure.
    pub reason: &'static str,
}

impl Outcome {
    /// The page for an error.
    #[must_use]
    pub fn error_page(&self, status: u16) -> Option<&str> {
        self.error_pages.iter().rev().find_map(|pages| pages.page(status))
    }

    /// The media type that rules give a name.
    #[must_use]
    pub fn media_type(&self, name: &[u8]) -> Option<&HeaderValue> {
        self.mime.iter().rev().find_map(|mime| mime.of(name))
    }
}
