//! Responder "pusher": the Pusher protocol of a site, for clients (`socket`) at `/app/KEY` and for servers (`api`) at
//! `/apps/ID/…`. Similar paths go to the application.

mod api;
mod socket;

use crate::exchange::Exchange;
use crate::explanation::ExplanationBuilder;
use crate::pusher::Pusher;
use crate::refusal::Refusal;
use crate::responder::{Context, Responder};
use crate::upstream::Upstream;
use howdah_protocol::{RequestBody, Response};
use howdah_pusher::api::Resource;
use http::StatusCode;
use std::sync::Arc;

/// Responds to clients and servers of the Pusher protocol.
pub(crate) struct PusherFront;

/// The part of the protocol that a path names.
enum PusherPath {
    /// A client's connection, for the application with this key.
    Connection(String),
    Api(Resource),
}

impl PusherFront {
    fn asked(exchange: &Exchange) -> Option<(Arc<Pusher>, PusherPath)> {
        let pusher = exchange.site.pusher.clone()?;
        let path = std::str::from_utf8(exchange.head.target.path()).ok()?;
        if let Some(key) = path.strip_prefix("/app/").filter(|key| !key.is_empty() && !key.contains('/')) {
            exchange.head.asks_to_upgrade()?;
            let asked = PusherPath::Connection(key.to_owned());
            return Some((pusher, asked));
        }
        let rest = path.strip_prefix("/apps/")?.strip_prefix(pusher.app.id())?.strip_prefix('/')?;
        let resource = Resource::new(rest)?;
        Some((pusher, PusherPath::Api(resource)))
    }
}

impl Responder for PusherFront {
    fn concerns(exchange: &Exchange) -> bool {
        exchange.site.pusher.is_some()
    }

    async fn respond<U: Upstream>(
        _: &Context<U>,
        exchange: &mut Exchange,
        body: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        match Self::asked(exchange) {
            // Boxed: plain requests do not need it.
            Some((pusher, PusherPath::Api(resource))) => {
                Box::pin(api::respond(&pusher, exchange, &resource, body)).await.map(Some)
            }
            Some((pusher, PusherPath::Connection(key))) => socket::respond(&pusher, exchange, &key),
            None => Ok(None),
        }
    }

    fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
        let Some(pusher) = &exchange.site.pusher else { return };
        if exchange.head.target.path() == format!("/app/{}", pusher.app.key()).as_bytes() {
            explaining.notes.add("pusher", "WebSocket connections of the Pusher protocol".to_owned());
        }
        if let Some((_, PusherPath::Api(resource))) = Self::asked(exchange) {
            let what = match resource {
                Resource::Terminate(_) => "ends the connections of a user",
                _ if resource.publishes() => "publishes",
                _ => "lists channels",
            };
            explaining.respond(StatusCode::OK, format!("200: the HTTP API of the Pusher protocol ({what})"));
        }
    }
}
