//! Carries out scripts' orders for the WebSocket connections, channels and Mercure hub of their site, and answers their
//! questions about connections.

use crate::mercure::{has_connections, text};
use crate::server::Server;
use bytes::Bytes;
use howdah_config::SiteSettings;
use howdah_live::Update;
use howdah_pool::{LiveField, LiveKind, LiveOrder, LiveSink, put_connection};
use howdah_websocket::{Close, Link, message};
use std::sync::{Arc, Weak};

/// Maximum number of connections that a script gets at once: with the largest states 40 MB.
const MAX_LISTED: usize = 10_000;

/// Carries out the orders of one site's scripts.
#[derive(Debug)]
pub(crate) struct SiteLive {
    /// Weak: orders are ignored once the server is gone.
    server: Weak<Server>,
    site: Arc<str>,
    has_hub: bool,
}

impl SiteLive {
    /// Returns `None` if the site has neither WebSocket connections nor a Mercure hub.
    pub(crate) fn of(server: &Arc<Server>, settings: &SiteSettings) -> Option<Arc<dyn LiveSink>> {
        let has_connections = has_connections(settings);
        let has_hub = settings.mercure.is_used();
        (has_connections || has_hub).then(|| -> Arc<dyn LiveSink> {
            Arc::new(Self { server: Arc::downgrade(server), site: settings.name.as_str().into(), has_hub })
        })
    }

    fn link(&self, server: &Server, order: &LiveOrder) -> Option<Arc<Link>> {
        server.websockets().find(&self.site, &order.field(LiveField::Connection)?)
    }

    /// Carries out an order. `None` if the connection does not exist or a field is missing; the order is then ignored.
    fn follow(&self, server: &Server, order: &LiveOrder) -> Option<()> {
        let data = || order.field(LiveField::Data);
        let message = || Some(message(&data()?, order.field(LiveField::Binary).is_some()));
        match order.kind() {
            LiveKind::Send => self.link(server, order)?.send(message()?),
            LiveKind::Close => {
                let code = order.field(LiveField::Code)?;
                let code = std::str::from_utf8(&code).ok()?.parse().ok()?;
                let reason = Bytes::copy_from_slice(&data()?);
                let is_valid = matches!(code, 1000 | 3000..=4999) && std::str::from_utf8(&reason).is_ok();
                let close = Close { code: Some(code), reason };
                self.link(server, order)?.close(if is_valid { close } else { Close::of(1000, "") });
            }
            LiveKind::Subscribe => {
                let link = self.link(server, order)?;
                let after = order.field(LiveField::After).map(text);
                if let Some(keep) = order.field(LiveField::Keep).and_then(|keep| text(keep).parse().ok()) {
                    link.drop_oldest(keep);
                }
                for channel in order.all(LiveField::Topic).map(text) {
                    if let Err(why) = link.subscribe(&channel, None, after.as_deref()) {
                        tracing::warn!(target: "howdah::websocket", site = &*self.site, "cannot subscribe: {why}");
                    }
                }
            }
            LiveKind::Unsubscribe => {
                let link = self.link(server, order)?;
                order.all(LiveField::Topic).map(text).for_each(|channel| _ = link.unsubscribe(&channel));
            }
            LiveKind::State => drop(self.link(server, order)?.set_state(data()?)),
            LiveKind::Publish => {
                let id = order.field(LiveField::Id).map(text).filter(|id| !id.is_empty());
                // The worker has checked the id, but workers are not trusted.
                id.as_deref().map_or(Ok(()), howdah_mercure::check_id).ok()?;
                let is_kept = id.is_some();
                let update = Update {
                    topics: order.all(LiveField::Topic).map(|topic| text(topic).into()).collect(),
                    id: id.unwrap_or_default().into(),
                    // Channels are only for connections that the application has subscribed.
                    private: true,
                    ..message()?
                };
                let hub = server.hubs().of(&self.site);
                if is_kept {
                    hub.publish(update)
                } else {
                    hub.broadcast(update)
                };
            }
            LiveKind::Update if self.has_hub => server.hubs().publish(&self.site, order, &server.metrics),
            LiveKind::Update | LiveKind::Exists | LiveKind::Count | LiveKind::Connections => {}
        }
        Some(())
    }

    /// The connections of the site or of a channel, at most `MAX_LISTED`.
    fn connections(&self, server: &Server, channel: Option<&str>) -> Vec<Arc<Link>> {
        let Some(channel) = channel else { return server.websockets().list(&self.site, MAX_LISTED) };
        let subscribers = server.hubs().of(&self.site).subscribers_of_channel(channel);
        let link = |id: &str| server.websockets().find(&self.site, id.as_bytes());
        subscribers.iter().filter_map(|subscriber| link(&subscriber.interest.id)).take(MAX_LISTED).collect()
    }

    fn found(&self, server: &Server, question: &LiveOrder) -> Vec<u8> {
        let channel = question.field(LiveField::Topic).map(text);
        match (question.kind(), channel) {
            (LiveKind::Exists, _) => match self.link(server, question) {
                Some(link) if link.is_open() => b"1".to_vec(),
                _ => Vec::new(),
            },
            (LiveKind::Count, None) => server.websockets().count(&self.site).to_string().into(),
            (LiveKind::Count, Some(channel)) => {
                server.hubs().of(&self.site).count_of_channel(&channel).to_string().into()
            }
            (LiveKind::Connections, channel) => {
                let mut found = Vec::new();
                for link in self.connections(server, channel.as_deref()) {
                    put_connection(&mut found, link.id(), &link.state());
                }
                found
            }
            _ => Vec::new(),
        }
    }
}

impl LiveSink for SiteLive {
    fn take(&self, order: LiveOrder) {
        if let Some(server) = self.server.upgrade() {
            let _ = self.follow(&server, &order);
        }
    }

    fn ask(&self, question: &LiveOrder) -> Vec<u8> {
        self.server.upgrade().map_or_else(Vec::new, |server| self.found(&server, question))
    }
}
