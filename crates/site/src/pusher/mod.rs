//! The Pusher protocol of a site: its application, and the watcher of its channels, which announces members and sends
//! webhooks (`webhooks`).

mod webhooks;

use crate::server::Server;
use howdah_config::SiteSettings;
use howdah_live::{Change, Hub, Noted, Origin, Watcher};
use howdah_pusher::channel::{self, Kind};
use howdah_pusher::{App, message};
use serde_json::{Value, json};
use std::sync::Arc;
use webhooks::Webhooks;

/// The application of a site, and the watcher of its channels.
#[derive(Debug)]
pub(crate) struct Pusher {
    pub(crate) app: Arc<App>,
    watcher: Arc<Announcer>,
}

impl Pusher {
    /// Returns `None` if the site has no Pusher application. An error names the setting and the problem.
    pub(crate) fn new(server: &Arc<Server>, settings: &SiteSettings) -> Result<Option<Arc<Self>>, String> {
        let Some(app) = &settings.pusher.app else { return Ok(None) };
        let app = Arc::new(App::new(app.expose()).map_err(|why| format!("pusher.app: {why}"))?);
        let path = settings.pusher.webhook.as_ref();
        let webhooks = path.map(|path| Webhooks::new(server, settings, path, app.clone())).transpose()?;
        Ok(Some(Arc::new(Self { app, watcher: Arc::new(Announcer { webhooks }) })))
    }

    /// Makes this application's watcher receive the changes of a hub, instead of the watcher from before a reload.
    pub(crate) fn watch(&self, hub: &Hub) {
        let watcher: Arc<dyn Watcher> = self.watcher.clone();
        hub.watch(&watcher);
    }

    /// Queues a webhook for a subscription to a cache channel without a last event.
    pub(crate) fn note_cache_miss(&self, channel: &str) {
        if let Some(webhooks) = &self.watcher.webhooks {
            webhooks.push(json!({ "name": "cache_miss", "channel": channel }));
        }
    }

    /// Queues a webhook for an event of a client.
    pub(crate) fn note_client_event(&self, name: &str, channel: &str, data: &Value, socket: &str, user: Option<&str>) {
        let Some(webhooks) = &self.watcher.webhooks else { return };
        let data = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
        let mut event =
            json!({ "name": "client_event", "channel": channel, "event": name, "data": data, "socket_id": socket });
        if let Some(user) = user {
            event["user_id"] = user.into();
        }
        webhooks.push(event);
    }
}

/// Announces changes of channels to their members and by webhooks.
#[derive(Debug)]
struct Announcer {
    webhooks: Option<Webhooks>,
}

impl Watcher for Announcer {
    fn changed(&self, hub: &Hub, noted: &Noted) {
        let Noted { topic, subscriber, change, origin } = noted;
        let is_new = *origin != Origin::Restored;
        let Some(channel) = channel::name(topic).filter(|name| Kind::from_name(name) != Some(Kind::User)) else {
            return;
        };
        let event = match change {
            Change::Occupied => json!({ "name": "channel_occupied", "channel": channel }),
            Change::Vacated => json!({ "name": "channel_vacated", "channel": channel }),
            Change::Added(member) => {
                if is_new {
                    hub.notify(message::member_added(channel, member, subscriber));
                }
                json!({ "name": "member_added", "channel": channel, "user_id": &*member.id })
            }
            Change::Removed(member) => {
                hub.notify(message::member_removed(channel, member));
                json!({ "name": "member_removed", "channel": channel, "user_id": &*member.id })
            }
        };
        if let Some(webhooks) = self.webhooks.as_ref().filter(|_| *origin != Origin::Other) {
            webhooks.push(event);
        }
    }
}
