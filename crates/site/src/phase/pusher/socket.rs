//! WebSocket connections of clients. They work like those of `websocket` rules, but their messages are handled here.

use crate::exchange::Exchange;
use crate::phase::websocket::switched;
use crate::pusher::Pusher;
use crate::refusal::Refusal;
use howdah_live::{Hub, JoinError, Member};
use howdah_mercure::form;
use howdah_protocol::Response;
use howdah_pusher::channel::{self, Kind};
use howdah_pusher::message::{self, Incoming};
use howdah_websocket::{Close, Event, Events, HandlerFuture, Link, Registered, Session, message as text, negotiate};
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of events that a client may publish per [`RATE_TIME`].
const RATE: u32 = 10;
const RATE_TIME: Duration = Duration::from_secs(1);
/// Supported versions of the protocol.
const VERSIONS: std::ops::RangeInclusive<u32> = 5..=7;

/// Opens the connection of a client; `None` if it does not ask for a WebSocket.
pub(super) fn respond(pusher: &Arc<Pusher>, exchange: &Exchange, key: &str) -> Result<Option<Response>, Refusal> {
    let Some(offer) = exchange.head.asks_to_upgrade() else { return Ok(None) };
    let Some(negotiated) = negotiate(&exchange.head.method, &exchange.head.headers, &offer) else { return Ok(None) };
    let accepted = negotiated.map_err(|_| Refusal::bad_request("an invalid handshake of a WebSocket"))?;
    let (server, site) = (&exchange.site.server, &exchange.site);
    let hub = server.hubs().of(&site.settings.name);
    pusher.watch(&hub);
    let id = new_id().ok_or(Refusal::new(StatusCode::SERVICE_UNAVAILABLE))?;
    let registered = Registered::unlisted(id, &hub, exchange.connection.charge());
    let link = registered.link.clone();
    let version = form::fields(exchange.query().unwrap_or_default()).find(|(name, _)| name == "protocol");
    let is_spoken = version.is_none_or(|(_, version)| version.parse().is_ok_and(|number| VERSIONS.contains(&number)));
    if key != pusher.app.key() {
        refuse(&link, message::UNKNOWN_APP, "no application has this key");
    } else if !is_spoken {
        refuse(&link, message::VERSION, "unsupported version of the protocol");
    } else {
        say(&link, &message::established(link.id()));
    }
    let socket = Socket { pusher: pusher.clone(), hub, published: Mutex::new((Instant::now(), 0)) };
    let session = Session::new(
        registered,
        Box::new(socket),
        accepted.deflate.is_some(),
        server.metrics.clone(),
        server.settings.grace,
        exchange.connection.charge(),
    );
    Ok(Some(switched(accepted, &offer, session)))
}

/// Returns a new id in the protocol's form: two numbers. It is visible to other clients and not secret.
fn new_id() -> Option<Box<str>> {
    let random = howdah_websocket::new_id()?;
    let half = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let (left, right) = (half(random.get(..12)?)?, half(random.get(12..24)?)?);
    Some(format!("{left}.{right}").into())
}

fn say(link: &Link, message: &str) {
    link.send(text(message.as_bytes(), false));
}

fn refuse(link: &Link, code: u16, why: &'static str) {
    say(link, &message::error(Some(code), why));
    link.close(Close::of(code, why));
}

/// Handles the messages of one client.
struct Socket {
    pusher: Arc<Pusher>,
    hub: Hub,
    /// Start of the current rate window, and the number of events published in it.
    published: Mutex<(Instant, u32)>,
}

impl Events for Socket {
    fn handle(&self, link: &Link, event: Event) -> HandlerFuture {
        if let Event::Message(data, _) = event {
            match Incoming::read(&data) {
                Ok(incoming) => self.take(link, incoming),
                Err(why) => say(link, &message::error(None, why)),
            }
        }
        Box::pin(std::future::ready(200))
    }
}

impl Socket {
    fn take(&self, link: &Link, incoming: Incoming) {
        match incoming {
            Incoming::Nothing => {}
            Incoming::Ping => say(link, &message::pong()),
            Incoming::Subscribe { channel, auth, data } => {
                match self.subscribe(link, &channel, auth.as_deref(), data.as_deref()) {
                    Ok(subscribed) => {
                        say(link, &subscribed);
                        if Kind::is_cached(&channel) && !link.send_last(&channel::topic(&channel)) {
                            say(link, &message::cache_miss(&channel));
                            self.pusher.note_cache_miss(&channel);
                        }
                    }
                    Err(why) => say(link, &message::refused(&channel, &why)),
                }
            }
            Incoming::Unsubscribe(channel) => _ = link.unsubscribe(&channel::topic(&channel)),
            Incoming::SignIn { auth, user_data } => self.sign_in(link, &auth, &user_data),
            Incoming::Event { name, channel, data } => self.publish(link, &name, &channel, &data),
        }
    }

    /// Subscribes, and returns the message for the client. An error is the reason for its refusal.
    fn subscribe(&self, link: &Link, name: &str, auth: Option<&str>, data: Option<&str>) -> Result<String, String> {
        let kind = Kind::from_name(name).filter(|kind| *kind != Kind::User).ok_or("invalid name of a channel")?;
        let is_admitted = || auth.is_some_and(|auth| self.pusher.app.authorizes(link.id(), name, data, auth));
        if kind != Kind::Public && !is_admitted() {
            return Err("the signature does not admit this connection to the channel".to_owned());
        }
        let topic = channel::topic(name);
        let member = match kind {
            Kind::Presence => data.and_then(message::member).ok_or("channel_data without a user_id")?,
            _ => {
                link.subscribe(&topic, None, None).map_err(|why: JoinError| why.to_string())?;
                return Ok(message::subscribed(name, None));
            }
        };
        link.subscribe(&topic, Some(member.clone()), None).map_err(|why: JoinError| why.to_string())?;
        let mut members = self.hub.members(&topic);
        // With several servers its own change may still be on its way.
        if let Err(at) = members.binary_search_by(|other| other.id.cmp(&member.id)) {
            members.insert(at, Arc::new(member));
        }
        Ok(message::subscribed(name, Some(&members)))
    }

    fn sign_in(&self, link: &Link, auth: &str, user_data: &str) {
        let user = message::member(user_data).filter(|_| self.pusher.app.authenticates(link.id(), user_data, auth));
        let Some(Member { id, .. }) = user else {
            return say(link, &message::error(None, "the signature does not identify this user"));
        };
        match link.subscribe(&channel::topic(&format!("{}{id}", channel::USER)), None, None) {
            Ok(()) => say(link, &message::signed_in(user_data)),
            Err(why) => say(link, &message::error(None, &why.to_string())),
        }
    }

    /// Publishes an event of the client to the other subscribers of its channel.
    fn publish(&self, link: &Link, name: &str, channel: &str, data: &Value) {
        let may_publish = Kind::from_name(channel).is_some_and(Kind::allows_client_events);
        let Some(joined) = link.channel(&channel::topic(channel)).filter(|_| may_publish) else {
            let why = "client events are for private and presence channels that the connection has subscribed to";
            return say(link, &message::error(None, why));
        };
        if self.is_too_fast() {
            return say(link, &message::error(Some(message::RATE), "more than 10 client events in a second"));
        }
        let user = joined.member.as_ref().map(|member| &*member.id);
        self.hub.broadcast(message::event(name, channel, data, user, Some(link.id())));
        self.pusher.note_client_event(name, channel, data, link.id(), user);
    }

    fn is_too_fast(&self) -> bool {
        let mut published = self.published.lock();
        if published.0.elapsed() >= RATE_TIME {
            *published = (Instant::now(), 0);
        }
        published.1 += 1;
        published.1 > RATE
    }
}
