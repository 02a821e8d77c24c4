//! Instructions to a site for one request: the result of [`Rules::evaluate`](crate::Rules::evaluate), and of
//! `.htaccess` files.
//!
//! **The order in which a site acts on it**: the response to a preflight, if `cors` is set; the checks in `access`, in
//! order; then `stop`, if set; else the file, script or front controller at `path`. `response` is applied to every
//! response, including refusals.

use crate::auth::Auth;
use crate::limit::Limit;
use crate::response::ResponseChange;
use crate::rule::{Body, Cors, ErrorPages, Ini, Maintenance, Mime, Place, Route, Times};
use http::{HeaderName, HeaderValue, StatusCode};
use std::sync::Arc;

/// Instructions to a site. A field that no rule has set is empty, and the site's settings apply.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The path that replaces the request's: decoded and normalized.
    pub path: Option<Vec<u8>>,
    /// The query that replaces the request's; the inner `None` for no query.
    pub query: Option<Option<Vec<u8>>>,
    /// Checks before anything is served, in this order.
    pub access: Vec<Access>,
    /// The directory that files are served from.
    pub place: Option<Arc<Place>>,
    /// The index files to try in a directory.
    pub index: Option<Arc<[String]>>,
    /// The script (as a path) that runs if no file matches; the inner `None` answers 404.
    pub front_controller: Option<Option<Arc<str>>>,
    /// Paths to try in order instead of `path`, with references expanded; the last one is always used.
    pub try_files: Option<Vec<Attempt>>,
    /// `true` runs scripts; `false` refuses them with 403. Their source is never sent.
    pub php: Option<bool>,
    /// Changes of request headers; `None` removes the header.
    pub request_headers: Vec<(HeaderName, Option<HeaderValue>)>,
    /// Variables for PHP.
    pub variables: Vec<(Arc<str>, Arc<[u8]>)>,
    /// Changes of the response's headers, in this order.
    pub response: Vec<Arc<ResponseChange>>,
    /// Origins whose scripts may read the response.
    pub cors: Option<Arc<Cors>>,
    /// Media types by file extension; later entries take precedence.
    pub mime: Vec<Arc<Mime>>,
    /// Pages for errors; later entries take precedence.
    pub error_pages: Vec<Arc<ErrorPages>>,
    /// Lists directories that have no index.
    pub listing: Option<bool>,
    /// The pool that runs scripts.
    pub pool: Option<Arc<str>>,
    /// The script that gets the events of WebSocket connections.
    pub websocket: Option<Arc<str>>,
    /// The route that metrics and traces name.
    pub route: Option<Arc<Route>>,
    /// Position of the route's share of the workers among those of all sites.
    pub share: Option<u16>,
    /// PHP settings for this request; later entries take precedence.
    pub ini: Vec<Arc<Ini>>,
    /// Time limits of the request.
    pub times: Times,
    /// Maximum length of the request's body in bytes.
    pub max_body: Option<u64>,
    /// The request is in the access log.
    pub access_log: Option<bool>,
    /// The end of the request, instead of a file or script.
    pub stop: Option<Stop>,
    /// Numbers of the protecting rules that were already applied.
    pub judged: Numbers,
}

/// A set of rule numbers. The first ones need no allocation.
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

    /// `true` if the set contains the rule.
    pub fn has(&self, number: u16) -> bool {
        if number < 64 { self.first & 1 << number != 0 } else { self.others.contains(&number) }
    }

    /// Adds all numbers of another set.
    pub fn extend(&mut self, others: &Self) {
        self.first |= others.first;
        others.others.iter().for_each(|&number| self.add(number));
    }
}

/// A check before anything is served.
#[derive(Debug, Clone)]
pub enum Access {
    /// Limits the rate and concurrency of each client.
    Limit(Arc<Limit>),
    /// Requires a user's name and password.
    Auth(Arc<Auth>),
}

/// One step of `try_files`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// A path (decoded and normalized), and the query if the step sets one.
    Path(Vec<u8>, Option<Vec<u8>>),
    Status(StatusCode),
}

/// The end of a request.
#[derive(Debug, Clone)]
pub enum Stop {
    /// A status, with an error page or the rule's body.
    Status(StatusCode, Option<Arc<Body>>),
    /// Redirects the client.
    Redirect(StatusCode, HeaderValue),
    /// 503 with a maintenance page.
    Maintenance(Arc<Maintenance>),
    /// An upstream server responds.
    Proxy(Arc<str>),
    /// 500: a rule could not be evaluated. The site logs the failure with the rule's name.
    Failed(Failure),
}

/// The reason why a rule could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The rule's name.
    pub rule: Arc<str>,
    pub reason: &'static str,
}

impl Outcome {
    pub fn error_page(&self, status: u16) -> Option<&str> {
        self.error_pages.iter().rev().find_map(|pages| pages.page(status))
    }

    /// The media type that rules assign to a name.
    pub fn media_type(&self, name: &[u8]) -> Option<&HeaderValue> {
        self.mime.iter().rev().find_map(|mime| mime.of(name))
    }
}
