//! The state that phases share about one request, from its head to the last byte of its response. Dropping it ends the
//! exchange: `phase::access_log` then counts and logs the request, unless its purpose or a rule excludes it.

use crate::applied_rules::AppliedRules;
pub use crate::event_request::Purpose;
use crate::event_request::StreamSlot;
use crate::forwarded::Client;
use crate::preferred_pool::PreferredPool;
use crate::site::Site;
use crate::sites::{Found, Sites};
use crate::{forwarded, request_id};
use howdah_config::TrustedHeader;
use howdah_observe::Front;
use howdah_pool::{RequestId, RequestStats};
use howdah_protocol::{Connection, EndObserver, Head, Informational, Messages, Params, Request, RequestBody};
use howdah_rules::rule::Ini;
use howdah_telemetry::{Trace, TraceId};
use http::HeaderMap;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};
use tracing::field::DisplayValue;

/// A request and its response.
#[derive(Debug)]
pub struct Exchange {
    /// The site that serves the request, or whose limits apply to its refusal (`misdirected`).
    pub site: Arc<Site>,
    /// `true` if no site serves the requested host on this connection.
    pub misdirected: bool,
    /// The connection that the request arrived on.
    pub connection: Arc<Connection>,
    /// The request's head.
    pub head: Box<Head>,
    /// The client, as named by trusted proxies if there are any. Rules that change the head do not affect it.
    pub client: Client,
    /// Sends informational (1xx) responses.
    pub informational: Option<Informational>,
    /// The variables sent by a web server in front (FastCGI). Scripts get these instead of the server's own.
    pub variables: Option<Box<Params>>,
    /// Messages for that web server's log.
    pub messages: Option<Arc<Messages>>,
    /// The request's id.
    pub id: RequestId,
    /// Set if the server makes the request itself.
    pub purpose: Option<Purpose>,
    /// The time at which the head was complete.
    pub started: Instant,
    /// Wall-clock time of arrival.
    pub time: SystemTime,
    /// Settings from rules; `None` if they have no effect.
    pub ruled: Option<Box<AppliedRules>>,
    /// The status whose error page is being served.
    pub error_status: Option<u16>,
    /// Number, among the site's routes, of the rule whose route the request took; 0 for none.
    pub route: usize,
    /// The part of the server that responded, for metrics.
    pub front: Front,
    /// The response's status; 499 (client closed the request) until there is a response.
    pub status: u16,
    /// The response's header fields, kept only if the access log format uses any of them.
    pub logged_headers: Option<Box<HeaderMap>>,
    /// The coding that the server compressed the response with.
    pub coding: Option<&'static str>,
    /// The worker that ran the request, and its timings.
    pub ran: PhpRun,
    /// Bytes of body handed to the connection.
    pub bytes: u64,
    /// The response ended before its body did.
    pub cut_off: bool,
    /// Changes by `.htaccess` files or an event.
    pub changes: Option<Box<Changes>>,
    /// Its position in a trace; `None` if tracing is disabled.
    pub trace: Option<Box<Trace>>,
}

/// Changes of a script's request by `.htaccess` files, and the variables of an event.
#[derive(Debug, Default)]
pub struct Changes {
    /// The query that replaces the request's; the inner `None` for no query.
    pub query: Option<Option<Vec<u8>>>,
    /// Variables that are set.
    pub variables: Vec<(Arc<str>, Arc<[u8]>)>,
    /// Settings of PHP.
    pub ini: Vec<Arc<Ini>>,
    /// The largest body, in bytes.
    pub max_body: Option<u64>,
    /// The authenticated user.
    pub user: Option<Arc<str>>,
    /// Gets the server's end of a stream to a script that may hold the client's connection.
    pub stream: Option<StreamSlot>,
}

/// The worker that ran a request, and its timings.
#[derive(Debug)]
pub enum PhpRun {
    /// PHP did not run it.
    Nowhere,
    Known(RequestStats),
    /// Set when the response stream has ended.
    Later(Arc<OnceLock<RequestStats>>),
}

impl PhpRun {
    /// The statistics, if they are known yet.
    pub fn stats(&self) -> Option<&RequestStats> {
        match self {
            Self::Nowhere => None,
            Self::Known(stats) => Some(stats),
            Self::Later(stats) => stats.get(),
        }
    }
}

/// Status logged for a request whose client disconnected before the response.
const CLIENT_GONE: u16 = 499;

impl Exchange {
    /// Begins an exchange: finds the site, the client and the id. Returns the request body separately.
    #[must_use]
    pub fn begin(sites: &Sites, request: Request) -> (Box<Self>, RequestBody) {
        // Read in place, and moved once: a head is long.
        let (head, connection) = (&request.head, &request.connection);
        let settings = &sites.server.settings.http;
        let client = match &request.variables {
            Some(variables) => Client::of_variables(variables),
            None => forwarded::client(&connection.peer, &head.headers, settings),
        };
        let (mut id, mut found) = (None, sites.only().map(Found::Site));
        if let Some(variables) = &request.variables {
            found = found.or_else(|| {
                Some(Found::Site(sites.of_web_server(&connection.peer, forwarded::named_host(head), variables)))
            });
        } else if connection.peer.trusted {
            found = found.or_else(|| Some(sites.find(forwarded::host(head, &client))));
            if settings.trusted_headers.contains(&TrustedHeader::RequestId) {
                let last = head.headers.get_all("x-request-id").iter().next_back();
                id = last.and_then(|id| request_id::parse(id.as_bytes()));
            }
        }
        let (site, misdirected) = match found.unwrap_or_else(|| sites.find(forwarded::named_host(head))) {
            // A connection opened with another site's certificate must not get this site's pages.
            Found::Site(site) => (site, !sites.may_serve(site, forwarded::named_host(head), connection)),
            Found::NoSite(site) => (site, true),
        };
        let trace = sites.server.telemetry().map(|telemetry| telemetry.begin(&head.headers, connection.peer.trusted));
        let exchange = Box::new(Self {
            site: site.current_release(),
            misdirected,
            connection: request.connection,
            head: request.head,
            client,
            informational: request.informational,
            variables: request.variables,
            messages: request.messages,
            id: id.unwrap_or_else(request_id::next),
            purpose: None,
            started: request.received,
            time: request.time,
            ruled: None,
            error_status: None,
            route: 0,
            front: Front::Error,
            status: CLIENT_GONE,
            logged_headers: None,
            coding: None,
            ran: PhpRun::Nowhere,
            bytes: 0,
            cut_off: false,
            changes: None,
            trace,
        });
        (exchange, request.body)
    }
}

impl Exchange {
    /// Counts the request for the rule whose route it takes, if there is one.
    pub(crate) fn count_by_rule(&mut self) {
        let route = self.ruled.as_ref().and_then(|ruled| ruled.outcome.route.as_ref());
        self.route = route.map_or(0, |route| route.number);
    }

    /// The host that the client asked for, with its port if it named one.
    pub fn host(&self) -> Option<&[u8]> {
        forwarded::host(&self.head, &self.client)
    }

    /// `true` if the pool that has booted the site's application runs this visitor's requests.
    pub(crate) fn is_for(&self, preferred: &PreferredPool) -> bool {
        preferred.includes(&self.head, self.host_text(), self.client.https)
    }

    /// [`Self::host`] as text; empty if there is none. `limits` has checked that it is ASCII.
    pub fn host_text(&self) -> &str {
        self.host().and_then(|host| std::str::from_utf8(host).ok()).unwrap_or_default()
    }

    /// `false` if passwords and client limits do not apply because the server itself made the request.
    pub fn asks_for_access(&self) -> bool {
        self.purpose.is_none_or(Purpose::asks_for_access)
    }

    /// The id of the WebSocket connection whose event this is.
    pub(crate) fn websocket_id(&self) -> Option<&str> {
        let mut all = self.changes.as_ref()?.variables.iter();
        all.find(|(name, _)| &**name == "HOWDAH_WEBSOCKET_ID").and_then(|(_, id)| std::str::from_utf8(id).ok())
    }

    /// The query after the changes by `.htaccess` files or rules.
    pub fn query(&self) -> Option<&[u8]> {
        let of_files = self.changes.as_ref().and_then(|changes| changes.query.as_ref().map(Option::as_deref));
        let of_rules = self.ruled.as_ref().and_then(|ruled| ruled.outcome.query.as_ref().map(Option::as_deref));
        of_files.or(of_rules).unwrap_or_else(|| self.head.target.query())
    }

    /// The trace id for log lines; `None` if tracing is disabled.
    pub fn trace_id(&self) -> Option<DisplayValue<TraceId>> {
        self.trace.as_ref().map(|trace| tracing::field::display(trace.id()))
    }

    /// Maximum request body in bytes, if a rule or the settings limit it. A rule takes precedence.
    pub fn max_body(&self) -> Option<u64> {
        let own = self.ruled.as_ref().and_then(|ruled| ruled.outcome.max_body);
        own.or(self.site.limits.max_body)
    }
}

impl EndObserver for Exchange {
    fn ended(mut self: Box<Self>, bytes: u64, complete: bool) {
        self.bytes = bytes;
        self.cut_off = !complete;
        if !complete {
            if let Some(trace) = &mut self.trace {
                trace.cut_off = true;
            }
            tracing::debug!(target: "howdah::request", request = %self.id, bytes, "response cut off");
        }
    }
}
