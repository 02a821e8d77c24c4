//! What a site must do with a request after its rules: the result of [`Rules::evaluate`](crate::Rules::evaluate), and
//! of whatever else has rules of its own (`.htaccess`).
//!
//! **The order in which a site acts on it**: `access` in its order, then `stop` if there is one, else the file, script or
//! front controller at `path`. `response` is applied to whatever response comes of that, refusals included.

use crate::auth::Auth;
use crate::limit::Limit;
use crate::response::ResponseChange;
use crate::rule::{Body, Cors, ErrorPages, Ini, Maintenance, Mime, Place, Times};
use http::{HeaderName, HeaderValue, StatusCode};
use std::sync::Arc;

/// What a site must do. What no rule touched is empty, and then the site's own settings count.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The path in the place of the request's: decoded and normalised.
    pub path: Option<Vec<u8>>,
    /// The query in the place of the request's; the inner none for no query.
    pub query: Option<Option<Vec<u8>>>,
    /// What is asked before anything is given out, in this order.
    pub access: Vec<Access>,
    /// Where files lie.
    pub place: Option<Arc<Place>>,
    /// The names that are tried in a directory.
    pub index: Option<Arc<[String]>>,
    /// What runs where no file matches (the path of a script); the inner none for 404.
    pub front_controller: Option<Option<Arc<str>>>,
    /// What is tried in turn instead of the path, already filled in: the last one is taken in any case.
    pub try_files: Option<Vec<Attempt>>,
    /// Whether scripts are run; where they are not, they are refused with 403 and never sent.
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
    /// Whether a directory without an index is listed.
    pub listing: Option<bool>,
    /// The pool that runs scripts.
    pub pool: Option<Arc<str>>,
    /// Settings of PHP for this request; a later one counts more.
    pub ini: Vec<Arc<Ini>>,
    /// How long the request may take.
    pub times: Times,
    /// The largest body of the request.
    pub max_body: Option<u64>,
    /// Whether the request is in the access log.
    pub access_log: Option<bool>,
    /// What the request ends with, instead of a file or script.
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

    /// Whether a rule is among them.
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

/// What is asked before anything is given out.
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

/// What a request ends with.
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
    /// What went wrong.
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
