//! One Mercure hub across several servers. Every update is counted: none may arrive twice, and none may be missing.

use super::{Broker, sharing};
use crate::server::mercure::{HUB, Subscriber, bearer, hub, published, publisher};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Mode, Request, Setup, Site};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

impl Broker {
    /// A site whose hub is shared by this broker.
    fn setup(&self) -> Setup {
        self.setup_at(self.server.port)
    }

    /// A site that connects to the broker on another port.
    fn setup_at(&self, port: u16) -> Setup {
        let setup = sharing(hub(Setup::default()), self.scheme, port).http1("connections are counted");
        setup.allow_log("reach other servers when it is back")
    }
}

with_each_broker!(
    three_servers_deliver_every_update_once_and_in_one_order_over_a_slow_network_too,
    updates_that_a_killed_server_has_confirmed_reach_the_others_and_its_clients_continue_there,
    a_server_that_is_cut_off_serves_its_own_updates_and_shares_them_when_it_is_back,
    a_broker_that_hangs_and_dies_stops_no_hub,
);

fn subscribe(site: &Site) -> Subscriber {
    Subscriber::anonymous(site, "topic=t")
}

/// The id of the next event.
fn next(subscriber: &mut Subscriber) -> String {
    let event = subscriber.event();
    let id = event.strip_prefix("id: ").and_then(|rest| rest.lines().next());
    id.unwrap_or_else(|| panic!("no id in {event:?}")).to_owned()
}

fn take(subscriber: &mut Subscriber, count: usize) -> Vec<String> {
    (0..count).map(|_| next(subscriber)).collect()
}

fn publish(site: &Site, token: &str, id: &str) {
    published(site, token, &format!("topic=t&data=x&id={id}"));
}

/// Fails on duplicates; returns the set of received ids.
fn once(ids: &[String]) -> BTreeSet<&str> {
    let set: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(set.len(), ids.len(), "some came twice: {ids:?}");
    set
}

fn three_servers_deliver_every_update_once_and_in_one_order_over_a_slow_network_too(broker: Broker) {
    const EACH: usize = 40;
    let slow = broker.relay(Duration::from_millis(20));
    let port = broker.server.port;
    let sites = [port, port, slow.port].map(|port| Site::start(Mode::Classic, &broker.setup_at(port)));
    let token = publisher();
    let mut subscribers: Vec<Subscriber> = sites.iter().flat_map(|site| [subscribe(site), subscribe(site)]).collect();
    std::thread::scope(|scope| {
        for (at, site) in sites.iter().enumerate() {
            let token = &token;
            scope.spawn(move || (0..EACH).for_each(|number| publish(site, token, &format!("{at}-{number}"))));
        }
    });
    let seen: Vec<Vec<String>> = subscribers.iter_mut().map(|subscriber| take(subscriber, 3 * EACH)).collect();
    assert_eq!(once(&seen[0]).len(), 3 * EACH);
    let logs = || sites.iter().map(|site| site.log()).collect::<String>();
    assert!(seen.iter().all(|ids| *ids == seen[0]), "another order: {seen:?}; {}", logs());
    // A client continues on another server after the last event from the first one.
    let last = &seen[0][EACH];
    let mut moved = Subscriber::anonymous(&sites[2], &format!("topic=t&lastEventID={last}"));
    assert_eq!(take(&mut moved, 2 * EACH - 1), seen[0][EACH + 1..]);
    publish(&sites[0], &token, "end");
    subscribers.push(moved);
    for subscriber in &mut subscribers {
        assert_eq!(next(subscriber), "end", "nothing came in between");
    }
    drop((subscribers, slow, broker));
    sites.into_iter().for_each(Site::finish);
}

/// Publishes until the connection breaks; counts the updates that were confirmed.
fn publish_until_the_end(site: &Site, token: &str, confirmed: &AtomicUsize) {
    for number in 0.. {
        let request = bearer(Request::form(HUB, &format!("topic=t&data=x&id=k-{number}")), token);
        let Ok(mut conn) = Conn::try_open(site.target()) else { return };
        if conn.try_send(&request.bytes()).is_err() {
            return;
        }
        match conn.try_response("POST") {
            Some(response) if response.status == 200 => drop(confirmed.fetch_add(1, SeqCst)),
            _ => return,
        }
    }
}

fn updates_that_a_killed_server_has_confirmed_reach_the_others_and_its_clients_continue_there(broker: Broker) {
    let [first, second] = [(); 2].map(|()| Site::start(Mode::Classic, &broker.setup()));
    let killed = Site::start(Mode::Classic, &broker.setup().expect_exit(None));
    let token = publisher();
    let (mut one, mut two, mut lost) = (subscribe(&first), subscribe(&second), subscribe(&killed));
    let confirmed = AtomicUsize::new(0);
    let seen_before = std::thread::scope(|scope| {
        scope.spawn(|| publish_until_the_end(&killed, &token, &confirmed));
        assert!(eventually(PATIENCE, || confirmed.load(SeqCst) >= 50));
        // Confirmed is what the broker has; the server's own subscribers may get it later.
        let seen = take(&mut lost, 20);
        killed.howdah().signal(Signal::KILL);
        seen
    });
    let confirmed = confirmed.load(SeqCst);
    for number in 0..10 {
        publish(&first, &token, &format!("f-{number}"));
    }
    // The last one may have arrived without its confirmation.
    let mut seen = Vec::new();
    while seen.last().map(String::as_str) != Some("f-9") {
        seen.push(next(&mut one));
    }
    let set = once(&seen);
    assert!((0..confirmed).all(|number| set.contains(format!("k-{number}").as_str())), "{confirmed}: {seen:?}");
    assert!(seen.len() <= confirmed + 11, "{confirmed}: {seen:?}");
    assert_eq!(take(&mut two, seen.len()), seen);
    assert_eq!(seen_before, seen[..20]);
    let mut back = Subscriber::anonymous(&second, "topic=t&lastEventID=k-19");
    assert_eq!(take(&mut back, seen.len() - 20), seen[20..]);
    drop(back);
    // A newly started server has the history as well.
    let third = Site::start(Mode::Classic, &broker.setup());
    let mut back = Subscriber::anonymous(&third, "topic=t&lastEventID=k-19");
    assert_eq!(take(&mut back, seen.len() - 20), seen[20..]);
    drop((one, two, lost, back, broker));
    [first, second, third].into_iter().for_each(Site::finish);
    killed.finish();
}

fn a_server_that_is_cut_off_serves_its_own_updates_and_shares_them_when_it_is_back(broker: Broker) {
    let network = broker.relay(Duration::ZERO);
    let ports = [broker.server.port, network.port];
    let [near, far] = ports.map(|port| Site::start(Mode::Classic, &broker.setup_at(port)));
    let token = publisher();
    let (mut at_near, mut at_far) = (subscribe(&near), subscribe(&far));
    publish(&near, &token, "together");
    assert_eq!((next(&mut at_near), next(&mut at_far)), ("together".to_owned(), "together".to_owned()));
    network.cut();
    for number in 0..30 {
        publish(&near, &token, &format!("near-{number}"));
        publish(&far, &token, &format!("far-{number}"));
    }
    // Each server's subscribers receive its own updates.
    let (near_only, far_only) = (take(&mut at_near, 30), take(&mut at_far, 30));
    assert!(near_only.iter().all(|id| id.starts_with("near-")), "{near_only:?}");
    assert!(far_only.iter().all(|id| id.starts_with("far-")), "{far_only:?}");
    network.mend();
    // Bytes in flight at the cut arrive late, after they were sent again.
    let (from_far, from_near) = (take(&mut at_near, 30), take(&mut at_far, 30));
    assert_eq!((from_far, from_near), (far_only, near_only), "each once, in the order of its server");
    publish(&near, &token, "end");
    assert_eq!((next(&mut at_near), next(&mut at_far)), ("end".to_owned(), "end".to_owned()));
    drop((at_near, at_far, network, broker));
    [near, far].into_iter().for_each(Site::finish);
}

fn a_broker_that_hangs_and_dies_stops_no_hub(broker: Broker) {
    let site = Site::start(Mode::Classic, &broker.setup());
    let token = publisher();
    let mut subscriber = subscribe(&site);
    broker.server.suspend();
    for number in 0..20 {
        publish(&site, &token, &number.to_string());
    }
    assert_eq!(take(&mut subscriber, 20), (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
    broker.server.resume();
    let is_back = || site.log().contains("is back: howdah:log:");
    assert!(eventually(PATIENCE, is_back), "{}", site.log());
    publish(&site, &token, "back");
    assert_eq!(next(&mut subscriber), "back", "nothing comes twice");
    drop(broker);
    publish(&site, &token, "dead");
    assert_eq!(next(&mut subscriber), "dead");
    let mut late = Subscriber::anonymous(&site, "topic=t&lastEventID=19");
    assert_eq!(take(&mut late, 2), ["back", "dead"]);
    drop((subscriber, late));
    site.finish();
}
