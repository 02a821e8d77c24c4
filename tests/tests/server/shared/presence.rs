//! Members and channels of the Pusher protocol across several servers. Webhooks are counted: each change has one.

use super::{Broker, sharing};
use crate::server::pusher::{Client, api, pusher};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Setup, Site};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

const ROOM: &str = "presence-room";

impl Broker {
    /// A site whose servers notice within seconds that one is gone.
    fn presence(&self) -> Setup {
        self.presence_at(self.server.port)
    }

    fn presence_at(&self, port: u16) -> Setup {
        let setup = sharing(pusher(Setup::default()), self.scheme, port).time("presence_interval", "1s");
        setup.allow_log("reach other servers when it is back")
    }
}

with_each_broker!(
    members_and_channels_are_those_of_all_servers,
    a_killed_server_takes_its_members_with_it_once,
    a_server_without_clients_reports_the_end_of_another_one,
    a_server_that_is_cut_off_comes_back_with_its_members,
    a_server_that_starts_late_sees_all_and_one_that_stops_takes_its_members_with_it,
);

fn joined(site: &Site, user: &str) -> (Client, Value) {
    let mut client = Client::connect(site);
    let mut answer = client.subscribe(site, ROOM, &format!("&user={user}"));
    assert_eq!(answer["event"], "pusher_internal:subscription_succeeded");
    (client, answer["data"]["presence"].take())
}

fn join_public(site: &Site, channel: &str) -> Client {
    let mut client = Client::connect(site);
    client.say(&json!({ "event": "pusher:subscribe", "data": { "channel": channel } }));
    assert_eq!(client.next()["event"], "pusher_internal:subscription_succeeded");
    client
}

/// Waits until this server's HTTP API lists these users.
fn has_users(site: &Site, users: &[&str]) {
    let expected = json!({ "users": users.iter().map(|id| json!({ "id": id })).collect::<Vec<_>>() });
    let read = || api(site, &format!("channels/{ROOM}/users"), "", None).1;
    assert!(eventually(PATIENCE, || read() == expected), "{} instead of {expected}", read());
}

/// The client's next message says that a user has come or gone.
fn notices(client: &mut Client, event: &str, user: &str) {
    let message = client.next();
    assert_eq!(message["event"], format!("pusher_internal:{event}"), "{message}");
    assert_eq!((&message["channel"], &message["data"]["user_id"]), (&json!(ROOM), &json!(user)));
}

/// The webhooks of a site in their order.
fn webhooks(site: &Site) -> Vec<String> {
    let notes = std::fs::read_to_string(site.file("webhooks")).unwrap_or_default();
    let events = notes.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| json!({ "name": line })));
    let text = |event: Value| match (event["name"].as_str().unwrap(), event["user_id"].as_str()) {
        ("member_added", Some(user)) => format!("+{user}"),
        ("member_removed", Some(user)) => format!("-{user}"),
        (name, _) => {
            format!("{} {}", name.trim_start_matches("channel_"), event["channel"].as_str().unwrap_or_default())
        }
    };
    events.map(text).collect()
}

/// All webhooks of these sites so far, sorted, once the webhook of a last change has arrived at each of them.
fn all_webhooks(sites: &[&Site]) -> Vec<String> {
    let mut all = Vec::new();
    for (number, site) in sites.iter().enumerate() {
        let channel = format!("last-{}-{number}", webhooks(site).len());
        let client = join_public(site, &channel);
        let last = format!("occupied {channel}");
        assert!(eventually(PATIENCE, || webhooks(site).contains(&last)), "{:?}", webhooks(site));
        all.extend(webhooks(site).into_iter().filter(|text| !text.contains("last-")));
        drop(client);
    }
    all.sort_unstable();
    all
}

fn members_and_channels_are_those_of_all_servers(broker: Broker) {
    let sites = [(); 3].map(|()| Site::start(Mode::Classic, &broker.presence()));
    let [a, b, c] = &sites;
    let (mut ann, list) = joined(a, "ann");
    assert_eq!(list["ids"], json!(["ann"]), "itself at once");
    has_users(b, &["ann"]);
    let (mut bob, list) = joined(b, "bob");
    let hash = json!({ "ann": { "name": "ANN" }, "bob": { "name": "BOB" } });
    assert_eq!(list, json!({ "count": 2, "ids": ["ann", "bob"], "hash": hash }));
    notices(&mut ann, "member_added", "bob");
    has_users(c, &["ann", "bob"]);
    let (mut eve, list) = joined(c, "eve");
    assert_eq!(list["count"], 3);
    [&mut ann, &mut bob].into_iter().for_each(|client| notices(client, "member_added", "eve"));
    // A user's second connection, on another server, is no other member.
    let (again, list) = joined(b, "ann");
    assert_eq!(list["count"], 3);
    let news = join_public(a, "news");
    let channels = json!({ "channels": {
        "news": { "subscription_count": 1 }, ROOM: { "subscription_count": 4, "user_count": 3 },
    }});
    let query = "&query=info=user_count%2Csubscription_count";
    let read = || api(c, "channels", query, None).1;
    assert!(eventually(PATIENCE, || read() == channels), "{}", read());
    assert_eq!(api(c, "channels/news", "", None), (200, json!({ "occupied": true })));
    let body = json!({ "name": "e", "data": "1", "channel": ROOM, "info": "user_count" });
    assert_eq!(api(c, "events", "", Some(&body)).1, json!({ "channels": { ROOM: { "user_count": 3 } } }));
    [&mut ann, &mut bob, &mut eve].into_iter().for_each(|client| assert_eq!(client.next()["event"], "e"));
    drop(ann);
    has_users(c, &["ann", "bob", "eve"]);
    drop(again);
    [&mut bob, &mut eve].into_iter().for_each(|client| notices(client, "member_removed", "ann"));
    drop(bob);
    notices(&mut eve, "member_removed", "bob");
    drop(eve);
    sites.iter().for_each(|site| has_users(site, &[]));
    let occupied = format!("occupied {ROOM}");
    let expected =
        ["+ann", "+bob", "+eve", "-ann", "-bob", "-eve", "occupied news", &occupied, &format!("vacated {ROOM}")];
    assert_eq!(all_webhooks(&[a, b, c]), expected);
    assert_eq!(webhooks(a)[..2], [occupied, "+ann".to_owned()], "by the server where they joined");
    drop((news, broker));
    sites.into_iter().for_each(Site::finish);
}

fn a_killed_server_takes_its_members_with_it_once(broker: Broker) {
    let killed = Site::start(Mode::Classic, &broker.presence().expect_exit(None));
    let [b, c] = [(); 2].map(|()| Site::start(Mode::Classic, &broker.presence()));
    let (ann, _) = joined(&killed, "ann");
    let news = join_public(&killed, "news");
    has_users(&b, &["ann"]);
    let (mut bob, _) = joined(&b, "bob");
    has_users(&c, &["ann", "bob"]);
    let (mut eve, _) = joined(&c, "eve");
    notices(&mut bob, "member_added", "eve");
    killed.howdah().signal(Signal::KILL);
    for client in [&mut bob, &mut eve] {
        notices(client, "member_removed", "ann");
        client.ping();
    }
    for site in [&b, &c] {
        has_users(site, &["bob", "eve"]);
        assert_eq!(api(site, "channels/news", "", None).1, json!({ "occupied": false }));
    }
    assert_eq!(all_webhooks(&[&b, &c]), ["+bob", "+eve", "-ann", "vacated news"]);
    drop((ann, news, bob, eve, broker));
    [killed, b, c].into_iter().for_each(Site::finish);
}

fn a_server_without_clients_reports_the_end_of_another_one(broker: Broker) {
    let killed = Site::start(Mode::Classic, &broker.presence().expect_exit(None));
    let quiet = Site::start(Mode::Classic, &broker.presence());
    let (ann, _) = joined(&killed, "ann");
    has_users(&quiet, &["ann"]);
    killed.howdah().signal(Signal::KILL);
    let expected = ["-ann".to_owned(), format!("vacated {ROOM}")];
    assert!(eventually(PATIENCE, || webhooks(&quiet) == expected), "{:?}", webhooks(&quiet));
    drop((ann, broker));
    [killed, quiet].into_iter().for_each(Site::finish);
}

fn a_server_that_is_cut_off_comes_back_with_its_members(broker: Broker) {
    let network = broker.relay(Duration::ZERO);
    let near = Site::start(Mode::Classic, &broker.presence());
    let far = Site::start(Mode::Classic, &broker.presence_at(network.port));
    let (mut ann, _) = joined(&near, "ann");
    has_users(&far, &["ann"]);
    let (mut bob, _) = joined(&far, "bob");
    notices(&mut ann, "member_added", "bob");
    network.cut();
    notices(&mut ann, "member_removed", "bob");
    // The server that is cut off goes on with what it knows.
    let (mut eve, list) = joined(&far, "eve");
    assert_eq!(list["ids"], json!(["ann", "bob", "eve"]));
    notices(&mut bob, "member_added", "eve");
    let (mut dan, list) = joined(&near, "dan");
    assert_eq!(list["ids"], json!(["ann", "dan"]));
    notices(&mut ann, "member_added", "dan");
    network.mend();
    for client in [&mut ann, &mut dan] {
        notices(client, "member_added", "bob");
        notices(client, "member_added", "eve");
    }
    // They have missed one change, and were never gone themselves.
    for client in [&mut bob, &mut eve] {
        notices(client, "member_added", "dan");
        client.ping();
    }
    for site in [&near, &far] {
        has_users(site, &["ann", "bob", "dan", "eve"]);
    }
    drop(dan);
    [&mut ann, &mut bob, &mut eve].into_iter().for_each(|client| notices(client, "member_removed", "dan"));
    // The webhook that was made meanwhile has its counterpart.
    let far_webhooks = || webhooks(&far).into_iter().filter(|text| text == "+bob").count();
    assert!(eventually(PATIENCE, || far_webhooks() == 2), "{:?}", webhooks(&far));
    let near_webhooks = all_webhooks(&[&near]);
    assert_eq!(near_webhooks, ["+ann", "+dan", "-bob", "-dan", &format!("occupied {ROOM}")]);
    drop((ann, bob, eve, network, broker));
    [near, far].into_iter().for_each(Site::finish);
}

fn a_server_that_starts_late_sees_all_and_one_that_stops_takes_its_members_with_it(broker: Broker) {
    let [mut a, b] = [(); 2].map(|()| Site::start(Mode::Classic, &broker.presence()));
    let (mut ann, _) = joined(&a, "ann");
    has_users(&b, &["ann"]);
    let (mut bob, _) = joined(&b, "bob");
    notices(&mut ann, "member_added", "bob");
    let news = join_public(&a, "news");
    let late = Site::start(Mode::Classic, &broker.presence());
    has_users(&late, &["ann", "bob"]);
    assert_eq!(api(&late, "channels/news", "", None).1, json!({ "occupied": true }));
    let (mut eve, list) = joined(&late, "eve");
    assert_eq!(list["ids"], json!(["ann", "bob", "eve"]));
    [&mut ann, &mut bob].into_iter().for_each(|client| notices(client, "member_added", "eve"));
    a.howdah().signal(Signal::TERM);
    for mut client in [ann, news] {
        assert_eq!(client.socket.closed(), 1001);
    }
    assert_eq!(a.howdah_mut().wait(), Some(0));
    for client in [&mut bob, &mut eve] {
        notices(client, "member_removed", "ann");
        client.ping();
    }
    for site in [&b, &late] {
        has_users(site, &["bob", "eve"]);
        assert_eq!(api(site, "channels/news", "", None).1, json!({ "occupied": false }));
    }
    assert_eq!(all_webhooks(&[&b, &late]), ["+bob", "+eve", "-ann", "vacated news"]);
    drop((bob, eve, broker));
    [a, b, late].into_iter().for_each(Site::finish);
}
