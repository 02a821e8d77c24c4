//! The data model of a rule, which `read` creates from settings and from `presets`.

use crate::auth::Auth;
use crate::limit::Limit;
use crate::pattern::{PathPattern, TextPattern};
use crate::query::QueryConditions;
use crate::response::ResponseChange;
use crate::template::Template;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use ipnet::IpNet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A rule: conditions that must all hold, and the actions that follow.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Name in logs: the configured name, or the position (`rule[3]`).
    pub name: Arc<str>,
    /// The line on which the rule begins; 0 if it is not from a file.
    pub line: usize,
    /// All of these must hold.
    pub conditions: Conditions,
    /// None of these may hold.
    pub not: Conditions,
    /// The actions, in this order.
    pub actions: Vec<Action>,
    /// Stop the evaluation after this rule.
    pub last: bool,
}

/// Conditions of a rule. A condition with several values holds if one of them matches, but all headers and query
/// parameters must match. An empty condition always holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conditions {
    /// The requested host, without its port.
    pub host: Vec<TextPattern>,
    /// The decoded path.
    pub path: Vec<PathPattern>,
    /// Methods; `GET` includes `HEAD`.
    pub method: Vec<Method>,
    /// Headers, all of which must match.
    pub header: Vec<(HeaderName, TextPattern)>,
    /// The query.
    pub query: QueryConditions,
    /// The client's address.
    pub client: Vec<IpNet>,
    /// The client's connection is encrypted.
    pub https: Option<bool>,
    /// The kinds of the path's target.
    pub exists: Vec<Kind>,
}

impl Conditions {
    /// The conditions on host and path only.
    pub(crate) fn host_and_path(&self) -> Self {
        Self { host: self.host.clone(), path: self.path.clone(), ..Self::default() }
    }
}

/// The kind of a path's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    Directory,
    /// Neither a file nor a directory.
    No,
}

#[derive(Debug, Clone)]
pub enum Action {
    /// Serves files from another directory from here on.
    Place(Arc<Place>),
    /// The index files to try in a directory.
    Index(Arc<[String]>),
    /// The script that runs if no file matches; `None` answers 404.
    FrontController(Option<Arc<str>>),
    /// Paths to try in order.
    TryFiles(Arc<[Try]>),
    /// Runs scripts, or refuses them: their source is never sent.
    Php(bool),
    /// Admits only these clients; others get 403.
    Allow(Vec<IpNet>),
    /// Refuses these clients with 403.
    Deny(Vec<IpNet>),
    /// Limits the rate and concurrency of each client.
    Limit(Arc<Limit>),
    /// Requires a user's name and password; `None` cancels the requirement of earlier rules.
    Auth(Option<Arc<Auth>>),
    /// Changes a request header; `None` removes it.
    RequestHeader(HeaderName, Option<HeaderValue>),
    /// Sets a variable for PHP.
    Variable(Arc<str>, Arc<str>),
    /// Changes of the response's headers.
    Response(Arc<ResponseChange>),
    /// Origins whose scripts may read responses.
    Cors(Arc<Cors>),
    /// Media types by file extension.
    Mime(Arc<Mime>),
    ErrorPages(Arc<ErrorPages>),
    /// Lists directories that have no index.
    Listing(bool),
    /// Directories, relative to the root, into which symbolic links are followed. Applies to the whole site, not to a
    /// request.
    Links(Vec<PathBuf>),
    /// The requests' name in metrics and traces, and their share of the workers.
    Route(Arc<Route>),
    /// The pool that runs scripts.
    Pool(Arc<str>),
    /// The script that gets the events of WebSocket connections to this path.
    WebSocket(Arc<str>),
    /// Time limits of requests.
    Times(Times),
    /// Maximum length of a request's body in bytes.
    MaxBody(u64),
    /// Logs the request in the access log, or does not.
    AccessLog(bool),
    /// Replaces path and query for the following rules and for the destination.
    Rewrite(Template, QueryMode),
    /// Final action: redirects the client.
    Redirect(Template, QueryMode, StatusCode),
    /// Final action: answers with a status, and an error page or a body.
    Status(StatusCode, Option<Arc<Body>>),
    /// Final action: answers 503 while the flag file exists, or always if there is none.
    Maintenance(Arc<Maintenance>),
    /// Final action: passes the request to an upstream server.
    Proxy(Arc<str>),
}

/// Requests that a rule sends to a pool, an upstream server or a WebSocket's script, or that have their own share of
/// the workers, as a unit in metrics, traces and queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Name in metrics: the rule's name, else its first path, else its position.
    pub name: Arc<str>,
    /// The rule's first path, for traces.
    pub path: Option<Arc<str>>,
    /// Number among the routes of these rules, from 1.
    pub number: usize,
    /// Share of the workers, if it differs from that of other requests.
    pub share: Option<Share>,
}

/// A route's share of a pool's workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Position among the shares of all sites; set once all of them are known.
    pub number: u16,
    /// Maximum number of the route's concurrent requests in a pool; 0 for no limit.
    pub workers: usize,
    /// Weight while requests are queued; a client's other requests have 1.
    pub weight: u32,
}

/// Time limits of requests; `None` if the rule sets none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// Maximum time in PHP; zero for no limit.
    pub deadline: Option<Duration>,
    /// Maximum time in the queue for a worker; zero if the request must not wait.
    pub queue: Option<Duration>,
}

/// The directory that a path's files are served from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The directory (or, for an exact path, the file).
    pub directory: PathBuf,
    /// The path prefix that the directory replaces, without a trailing slash; empty for a root.
    pub mount: Box<str>,
}

/// One step of `try_files`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Try {
    /// A path: used if it is a file, or, with a trailing slash, a directory. The last path is always used.
    Path(Template),
    /// Answers with this status.
    Status(StatusCode),
}

/// Treatment of the request's query when a rewrite or redirect names a new path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueryMode {
    /// Appended to the target's own query.
    #[default]
    Append,
    /// Dropped: only the target's own query remains.
    Drop,
}

/// Origins whose scripts may read responses (the Fetch standard's CORS protocol).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors {
    /// Origins, which may contain stars; `*` for all.
    pub origins: Vec<crate::pattern::Glob>,
    /// Every origin is allowed.
    pub any: bool,
    /// Allowed methods.
    pub methods: HeaderValue,
    /// Allowed request headers; `None` allows the ones that the preflight requests.
    pub headers: Option<HeaderValue>,
    /// Headers that scripts may read.
    pub expose: Option<HeaderValue>,
    /// Cookies are allowed.
    pub credentials: bool,
    /// Lifetime of a preflight's result.
    pub max_age: Option<HeaderValue>,
}

/// Media types by file extension.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mime(pub Vec<(Box<str>, HeaderValue)>);

impl Mime {
    /// The media type of a name.
    pub fn of(&self, name: &[u8]) -> Option<&HeaderValue> {
        let name = name.rsplit(|&b| b == b'/').next().unwrap_or(name);
        let fits = |ending: &str| {
            name.len() > ending.len() + 1
                && name[name.len() - ending.len() - 1] == b'.'
                && name[name.len() - ending.len()..].eq_ignore_ascii_case(ending.as_bytes())
        };
        self.0.iter().find(|(ending, _)| fits(ending)).map(|(_, media)| media)
    }
}

/// Error pages: paths that are requested internally instead.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorPages(pub Vec<(Statuses, Arc<str>)>);

/// One status, or a class of statuses by their first digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statuses {
    One(u16),
    /// `4xx` or `5xx`.
    Class(u16),
}

impl ErrorPages {
    /// The page for a status; an exact status takes precedence over a class.
    pub fn page(&self, status: u16) -> Option<&str> {
        let of = |wanted: Statuses| self.0.iter().find(|(statuses, _)| *statuses == wanted).map(|(_, page)| &**page);
        of(Statuses::One(status)).or_else(|| of(Statuses::Class(status / 100)))
    }
}

/// PHP settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ini {
    /// Settings that scripts can change.
    pub values: Vec<(Box<str>, Box<str>)>,
    /// Settings that scripts cannot change.
    pub admin: Vec<(Box<str>, Box<str>)>,
}

/// The body of a response that a rule defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    pub media_type: HeaderValue,
    pub text: bytes::Bytes,
}

/// Maintenance mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maintenance {
    /// The path of the maintenance page.
    pub page: Option<Arc<str>>,
    /// Active only while this file exists.
    pub flag: Option<PathBuf>,
    /// Value of `Retry-After`.
    pub retry_after: Duration,
}
