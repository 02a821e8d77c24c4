//! The Pusher protocol, from the view of its clients and of application servers.

mod api;
mod channels;
pub(crate) mod clients;

use howdah_tests::websocket::{TEXT, WebSocket};
use howdah_tests::{Request, Setup, Site, php};
use serde_json::{Value, json};

const APP: &str = php!("app.php");

/// A site with a Pusher application and its PHP side.
pub(crate) fn pusher(setup: Setup) -> Setup {
    setup
        .http1("the upgrade of a connection is HTTP/1.1's")
        .php("app.php", APP)
        .setting("pusher.app", "\"app:the-key:the secret\"")
        .setting("pusher.webhook", "\"/app.php?do=webhook\"")
}

/// A client that writes the protocol's messages by hand.
pub(crate) struct Client {
    pub(crate) socket: WebSocket,
    id: String,
}

impl Client {
    pub(crate) fn connect(site: &Site) -> Self {
        let mut socket = WebSocket::open(site, "/app/the-key?protocol=7&client=js&version=8.4.0&flash=false");
        let first: Value = serde_json::from_str(&socket.next(TEXT)).unwrap();
        assert_eq!(first["event"], "pusher:connection_established");
        let data: Value = serde_json::from_str(first["data"].as_str().unwrap()).unwrap();
        assert!(data["activity_timeout"].as_u64().is_some_and(|seconds| seconds > 0), "{data}");
        Self { socket, id: data["socket_id"].as_str().unwrap().to_owned() }
    }

    pub(crate) fn say(&mut self, message: &Value) {
        self.socket.send(TEXT, message.to_string());
    }

    /// The next message; its data is parsed if it is JSON in a string.
    pub(crate) fn next(&mut self) -> Value {
        let mut message: Value = serde_json::from_str(&self.socket.next(TEXT)).unwrap();
        if let Some(data) = message["data"].as_str().and_then(|data| serde_json::from_str(data).ok()) {
            message["data"] = data;
        }
        message
    }

    /// Subscribes to a channel with the application's response to `query`; returns the server's answer.
    pub(crate) fn subscribe(&mut self, site: &Site, channel: &str, query: &str) -> Value {
        let target = format!("/app.php?do=auth&socket_id={}&channel_name={channel}{query}", self.id);
        let mut data: Value = site.get(&target).expect(200).json();
        data["channel"] = channel.into();
        self.say(&json!({ "event": "pusher:subscribe", "data": data }));
        self.next()
    }

    /// Signs in as this user.
    fn sign_in(&mut self, site: &Site, user: &str) {
        let target = format!("/app.php?do=sign-in&user={user}&socket_id={}", self.id);
        let data: Value = site.get(&target).expect(200).json();
        self.say(&json!({ "event": "pusher:signin", "data": data }));
        assert_eq!(self.next()["event"], "pusher:signin_success");
    }

    /// Waits for the answer to a ping: everything sent before has arrived by then.
    pub(crate) fn ping(&mut self) {
        self.say(&json!({ "event": "pusher:ping", "data": {} }));
        assert_eq!(self.next()["event"], "pusher:pong");
    }
}

/// A request of the application's server to the HTTP API; returns status and document.
pub(crate) fn api(site: &Site, path: &str, query: &str, body: Option<&Value>) -> (u64, Value) {
    let target = format!("/app.php?do=api&path={path}{query}");
    let request = match body {
        Some(body) => Request::post(&target, "application/json", body.to_string()),
        None => Request::get(&target),
    };
    let answer: Value = site.send(&request).expect(200).json();
    let document = answer["body"].as_str().and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default();
    (answer["status"].as_u64().unwrap(), document)
}

pub(crate) fn publish(site: &Site, name: &str, channel: &str, data: &str) {
    let body = json!({ "name": name, "channels": [channel], "data": data });
    assert_eq!(api(site, "events", "", Some(&body)), (200, json!({})));
}
