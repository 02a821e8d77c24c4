//! The language: a rule as data. `read` makes it from a file; a translator of another format (`.htaccess`) may also
//! make it by hand.

use crate::auth::Auth;
use crate::limit::Limit;
use crate::pattern::{PathPattern, TextPattern};
use crate::response::ResponseChange;
use crate::template::Template;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use ipnet::IpNet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A rule: what all must hold, and what is done then.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Name in logs: its own, or its place (`rule[3]`).
    pub name: Arc<str>,
    /// The line it begins on; 0 where there is no file.
    pub line: usize,
    /// All of these must hold.
    pub conditions: Conditions,
    /// None of these may hold.
    pub not: Conditions,
    /// The actions, in this order.
    pub actions: Vec<Action>,
    /// Stop after this rule.
    pub last: bool,
}

/// Conditions of a rule. One with several values holds if one of them fits; an empty one is no condition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conditions {
    /// The host that was asked for, without its port.
    pub host: Vec<TextPattern>,
    /// The decoded path.
    pub path: Vec<PathPattern>,
    /// Methods; `GET` stands for `HEAD` too.
    pub method: Vec<Method>,
    /// Headers, each of which must fit.
    pub header: Vec<(HeaderName, TextPattern)>,
    /// Parts of the query, each of which must fit.
    pub query: Vec<(Box<str>, TextPattern)>,
    /// The client's address.
    pub client: Vec<IpNet>,
    /// The connection to the client is encrypted.
    pub https: Option<bool>,
    /// The kinds of the path's target.
    pub exists: Vec<Kind>,
}

impl Conditions {
    /// Those of its conditions that are about the host and the path.
    pub(crate) fn host_and_path(&self) -> Self {
        Self { host: self.host.clone(), path: self.path.clone(), ..Self::default() }
    }
}

/// The kind of a path's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Neither.
    No,
}

/// Something that a rule does.
#[derive(Debug, Clone)]
pub enum Action {
    /// Files are looked for elsewhere from here on.
    Place(Arc<Place>),
    /// The names that are tried in a directory.
    Index(Arc<[String]>),
    /// The script that runs if no file matches; `None` for 404.
    FrontController(Option<Arc<str>>),
    /// Paths to try in order.
    TryFiles(Arc<[Try]>),
    /// Scripts are run; else they are refused: source is never sent.
    Php(bool),
    /// Only these clients; others get 403.
    Allow(Vec<IpNet>),
    /// Not these clients: they get 403.
    Deny(Vec<IpNet>),
    /// A rate and a number of requests for each client.
    Limit(Arc<Limit>),
    /// A user's name and password; none for what earlier rules ask for no more.
    Auth(Option<Arc<Auth>>),
    /// Changes of the request's headers, as PHP sees it; none removes one.
    RequestHeader(HeaderName, Option<HeaderValue>),
    /// A variable for PHP.
    Variable(Arc<str>, Arc<str>),
    /// Changes of the response's headers.
    Response(Arc<ResponseChange>),
    /// Which origins' scripts may read responses.
    Cors(Arc<Cors>),
    /// Media types by the endings of names.
    Mime(Arc<Mime>),
    /// Pages for errors.
    ErrorPages(Arc<ErrorPages>),
    /// Directories without an index are listed.
    Listing(bool),
    /// Directories, from the root, into which symbolic links are followed: not a request's, but all the site's.
    Links(Vec<PathBuf>),
    /// The name that metrics and traces have for these requests, and their share of the workers.
    Route(Arc<Route>),
    /// The pool that runs scripts.
    Pool(Arc<str>),
    /// The script that gets the events of WebSocket connections to this path.
    WebSocket(Arc<str>),
    /// Time limits of requests.
    Times(Times),
    /// The largest body of a request.
    MaxBody(u64),
    /// The request is in the access log.
    AccessLog(bool),
    /// Another path and query. Further rules see these.
    Rewrite(Template, QueryMode),
    /// Ends: sends the client elsewhere.
    Redirect(Template, QueryMode, StatusCode),
    /// Ends: a status, with an error page or a body.
    Status(StatusCode, Option<Arc<Body>>),
    /// Ends: 503 while the flag file is there, or always if there is none.
    Maintenance(Arc<Maintenance>),
    /// Ends: another server responds.
    Proxy(Arc<str>),
}

/// Requests that a rule sends to a pool or another server, as metrics, traces and queues tell them apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Its name in metrics: the rule's name, else its first path, else its place.
    pub name: Arc<str>,
    /// The rule's first path, for traces.
    pub path: Option<Arc<str>>,
    /// Its number among the routes of these rules, from 1.
    pub number: usize,
    /// Its share of the workers, where it differs from that of other requests.
    pub share: Option<Share>,
}

/// A route's share of a pool's workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Its position among the shares of all sites, set where all of them are known.
    pub number: u16,
    /// Maximum number of its requests that run at once; 0 for no limit.
    pub workers: usize,
    /// Its weight while requests wait, where a client's other requests have 1.
    pub weight: u32,
}

/// Time limit of requests; `None` if the rule has none, zero for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// In PHP.
    pub deadline: Option<Duration>,
    /// For a worker.
    pub queue: Option<Duration>,
}

/// Where files lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The directory (or, for an exact path, the file).
    pub directory: PathBuf,
    /// The part of the path that the directory stands for, without a slash at its end: empty for a root.
    pub mount: Box<str>,
}

/// One step of `try_files`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Try {
    /// A path: taken if it is a file, or a directory where it ends in a slash. The last one is taken in any case.
    Path(Template),
    /// This status.
    Status(StatusCode),
}

/// Treatment of the request's query when a rewrite or redirect names a new path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueryMode {
    /// It follows the target's own.
    #[default]
    Append,
    /// Only the target's own.
    Drop,
}

/// Which origins' scripts may read responses (the Fetch standard's CORS protocol).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors {
    /// Origins, `*` for all; stars may stand within them.
    pub origins: Vec<crate::pattern::Glob>,
    /// Every origin is allowed.
    pub any: bool,
    /// Methods.
    pub methods: HeaderValue,
    /// Headers that requests may have; none for those that they ask for.
    pub headers: Option<HeaderValue>,
    /// Headers that scripts may read.
    pub expose: Option<HeaderValue>,
    /// Cookies are allowed.
    pub credentials: bool,
    /// Lifetime of a preflight.
    pub max_age: Option<HeaderValue>,
}

/// Media types by the endings of names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mime(pub Vec<(Box<str>, HeaderValue)>);

impl Mime {
    /// The media type of a name.
    #[must_use]
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

/// Error pages: paths that are requested instead.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorPages(pub Vec<(Statuses, Arc<str>)>);

/// One status, or all that begin with a digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statuses {
    /// This one.
    One(u16),
    /// `4xx` or `5xx`.
    Class(u16),
}

impl ErrorPages {
    /// The page for a status; one that names the status itself comes first.
    #[must_use]
    pub fn page(&self, status: u16) -> Option<&str> {
        let of = |wanted: Statuses| self.0.iter().find(|(statuses, _)| *statuses == wanted).map(|(_, page)| &**page);
        of(Statuses::One(status)).or_else(|| of(Statuses::Class(status / 100)))
    }
}

/// Settings of PHP.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ini {
    /// Those that scripts can change.
    pub values: Vec<(Box<str>, Box<str>)>,
    /// Those that they cannot.
    pub admin: Vec<(Box<str>, Box<str>)>,
}

/// The body of a response that a rule writes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// Its media type.
    pub media_type: HeaderValue,
    /// The text.
    pub text: bytes::Bytes,
}

/// A site that is away for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maintenance {
    /// The path of its page.
    pub page: Option<Arc<str>>,
    /// Only while this file is there.
    pub flag: Option<PathBuf>,
    /// When clients may come again.
    pub retry_after: Duration,
}
