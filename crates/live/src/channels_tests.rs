use super::*;
use crate::{Event, Interest, Limits, QueueLimits, Selector, SlowPolicy, Subscription, Update};
use howdah_budget::{Budgets, Charge};
use parking_lot::Mutex;
use std::task::{Context, Poll, Waker};

fn open(hub: &Hub, id: &str) -> Subscription {
    let charge = Charge::new(Budgets::new(1 << 26, 1 << 26).memory, None);
    let queue_limits = QueueLimits { slow: SlowPolicy::Disconnect, max_updates: usize::MAX, max_bytes: 1000, charge };
    let interest = Interest { id: id.into(), trusted: true, ..Interest::default() };
    hub.subscribe(interest, None, queue_limits).subscription
}

fn update(id: &str, topics: &[&str]) -> Update {
    let topics = topics.iter().map(|topic| (*topic).into()).collect();
    Update { id: id.into(), topics, private: true, ..Update::default() }
}

fn ids(subscription: &mut Subscription) -> Vec<String> {
    let mut ids = Vec::new();
    while let Poll::Ready(Event::Update(update)) = subscription.poll_next(&mut Context::from_waker(Waker::noop())) {
        ids.push(update.id.to_string());
    }
    ids
}

fn member(id: &str) -> Option<Member> {
    Some(Member { id: id.into(), info: None })
}

/// Notes changes as text.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl Watcher for Notes {
    fn changed(&self, _: &Hub, noted: &Noted) {
        let Noted { topic, subscriber, change, .. } = noted;
        let change = match change {
            Change::Occupied => "occupied".to_owned(),
            Change::Vacated => "vacated".to_owned(),
            Change::Added(member) => format!("+{}", member.id),
            Change::Removed(member) => format!("-{}", member.id),
        };
        self.0.lock().push(format!("{topic} {subscriber} {change}"));
    }
}

#[test]
fn members_come_with_their_first_connection_and_go_with_their_last() {
    let (hub, notes) = (Hub::new(Limits::default()), Arc::new(Notes::default()));
    hub.watch(&(notes.clone() as Arc<dyn Watcher>));
    let [one, two, other] = ["1", "2", "3"].map(|id| open(&hub, id));
    hub.join(one.subscriber(), "room", member("ann"), None).unwrap();
    hub.join(two.subscriber(), "room", member("ann"), None).unwrap();
    hub.join(other.subscriber(), "room", member("bob"), None).unwrap();
    hub.join(other.subscriber(), "hall", None, None).unwrap();
    let names: Vec<_> = hub.members("room").iter().map(|member| member.id.to_string()).collect();
    assert_eq!(names, ["ann", "bob"]);
    assert_eq!(hub.channels("room"), [("room".into(), 3)]);
    assert!(hub.leave(one.subscriber(), "room") && !hub.leave(one.subscriber(), "room"));
    drop(two);
    drop(other);
    let expected = ["room 1 occupied", "room 1 +ann", "room 3 +bob", "hall 3 occupied", "room 2 -ann", "room 3 -bob"];
    let noted = std::mem::take(&mut *notes.0.lock());
    assert_eq!(noted[..6], expected);
    assert_eq!(noted[6..], ["room 3 vacated", "hall 3 vacated"]);
    assert!(hub.members("room").is_empty() && hub.channels("").is_empty() && hub.0.state.lock().presence.is_empty());
}

#[test]
fn subscribers_that_choose_a_channels_topic_themselves_are_not_of_the_channel() {
    let (hub, notes) = (Hub::new(Limits::default()), Arc::new(Notes::default()));
    hub.watch(&(notes.clone() as Arc<dyn Watcher>));
    let selectors = vec![Selector::new("room"), Selector::new("hall")];
    let charge = Charge::new(Budgets::new(1 << 20, 1 << 20).memory, None);
    let terms = QueueLimits { slow: SlowPolicy::Disconnect, max_updates: 1, max_bytes: 1, charge };
    let chosen = hub.subscribe(Interest { selectors, ..Interest::default() }, None, terms).subscription;
    let one = open(&hub, "1");
    hub.join(one.subscriber(), "room", None, None).unwrap();
    assert_eq!((hub.channels(""), hub.count_of_channel("hall")), (vec![("room".into(), 1)], 0));
    drop(one);
    assert_eq!(*notes.0.lock(), ["room 1 occupied", "room 1 vacated"]);
    assert!(hub.channels("").is_empty());
    assert_eq!(hub.publish(Update { private: false, ..update("x", &["hall"]) }), 1);
    drop(chosen);
}

#[test]
fn missed_updates_are_queued_once_and_the_newest_if_not_all_fit() {
    let hub = Hub::new(Limits::default());
    for id in ["1", "2", "3"] {
        hub.publish(update(id, &["a"]));
    }
    hub.publish(update("4", &["a", "b"]));
    let mut subscription = open(&hub, "");
    hub.join(subscription.subscriber(), "b", None, Some("3")).unwrap();
    hub.join(subscription.subscriber(), "a", None, Some("1")).unwrap();
    assert_eq!(ids(&mut subscription), ["4", "2", "3"]);
    let mut late = open(&hub, "");
    let fit = 1000 / update("1", &["a"]).size();
    (5..100).for_each(|id| _ = hub.publish(update(&id.to_string(), &["a"])));
    hub.join(late.subscriber(), "a", None, Some("earliest")).unwrap();
    let newest: Vec<_> = (100 - fit..100).map(|id| id.to_string()).collect();
    assert_eq!(ids(&mut late), newest);
}

#[test]
fn an_update_may_leave_out_one_subscriber() {
    let hub = Hub::new(Limits::default());
    let mut all = ["1", "2"].map(|id| open(&hub, id));
    for subscription in &all {
        hub.join(subscription.subscriber(), "a", None, None).unwrap();
    }
    assert_eq!(hub.publish(Update { except: Some("1".into()), ..update("x", &["a"]) }), 1);
    assert_eq!(all.each_mut().map(ids), [vec![], vec!["x".to_owned()]]);
}

#[test]
fn channels_are_bounded_in_number_and_name() {
    let hub = Hub::new(Limits::default());
    let subscription = open(&hub, "1");
    let join = |topic: &str| hub.join(subscription.subscriber(), topic, None, None);
    (0..MAX_CHANNELS).for_each(|number| join(&number.to_string()).unwrap());
    assert_eq!((join("one more"), join("0")), (Err(JoinError::TooMany), Ok(())));
    assert_eq!((join(""), join(&"x".repeat(257))), (Err(JoinError::Name), Err(JoinError::Name)));
}
