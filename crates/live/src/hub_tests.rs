use super::*;
use crate::selector::Selector;
use crate::subscriber::{End, SlowPolicy};
use crate::update::Form;
use bytes::Bytes;
use howdah_budget::{Budgets, Charge};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;
use std::task::{Wake, Waker};

fn update(id: impl ToString, topics: &[&str], private: bool) -> Update {
    let id = id.to_string();
    let topics = topics.iter().map(|topic| (*topic).into()).collect();
    Update { data: id.clone().into(), id: id.into(), topics, private, ..Update::default() }
}

fn interest(selectors: &[&str], allowed: &[&str]) -> Interest {
    let read = |texts: &[&str]| texts.iter().map(|text| Selector::new(text)).collect();
    Interest { selectors: read(selectors), allowed: read(allowed), ..Interest::default() }
}

fn queue_limits(max_updates: usize, max_bytes: usize) -> QueueLimits {
    static BUDGETS: LazyLock<Budgets> = LazyLock::new(|| Budgets::new(1 << 30, 1 << 30));
    let charge = Charge::new(BUDGETS.memory, None);
    QueueLimits { slow: SlowPolicy::Disconnect, max_updates, max_bytes, charge }
}

fn plenty() -> QueueLimits {
    queue_limits(usize::MAX, usize::MAX)
}

fn join(hub: &Hub, selectors: &[&str]) -> Subscription {
    hub.subscribe(interest(selectors, &[]), None, plenty()).subscription
}

/// The ids of all waiting updates, and the event after them.
fn taken(subscription: &mut Subscription) -> (Vec<String>, Option<Event>) {
    let mut ids = Vec::new();
    loop {
        match subscription.poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Event::Update(update)) => ids.push(update.id.to_string()),
            Poll::Ready(event) => return (ids, Some(event)),
            Poll::Pending => return (ids, None),
        }
    }
}

fn ids(subscription: &mut Subscription) -> Vec<String> {
    taken(subscription).0
}

#[test]
fn an_update_goes_once_to_each_subscriber_of_one_of_its_topics() {
    let hub = Hub::new(Limits::default());
    let mut exact = join(&hub, &["/a"]);
    let mut template = join(&hub, &["/{x}"]);
    let mut all = join(&hub, &["*", "/a", "/{x}", "/{y}"]);
    let mut other = join(&hub, &["/other"]);
    assert_eq!(hub.publish(update(1, &["/a"], false)), 3);
    assert_eq!(hub.publish(update(2, &["/x/y", "/a"], false)), 3);
    assert_eq!(hub.publish(update(3, &["/x/y"], false)), 1);
    assert_eq!(ids(&mut exact), ["1", "2"]);
    assert_eq!(ids(&mut template), ["1", "2"]);
    assert_eq!(ids(&mut all), ["1", "2", "3"]);
    assert_eq!(ids(&mut other), [""; 0]);
    assert_eq!((hub.len(), hub.topics_in_use(), hub.published()), (4, 2, 3));
    drop((exact, template, all, other));
    assert!(hub.is_empty() && hub.0.state.lock().index.is_empty(), "nothing is left of subscribers that have gone");
    assert_eq!(hub.publish(update(4, &["/a"], false)), 0);
}

#[test]
fn a_private_update_goes_to_subscribers_that_may_have_one_of_its_topics() {
    let hub = Hub::new(Limits::default());
    let subscribe =
        |selectors: &[&str], allowed: &[&str]| hub.subscribe(interest(selectors, allowed), None, plenty()).subscription;
    let mut anonymous = subscribe(&["/books/{id}"], &[]);
    let mut user = subscribe(&["/books/{id}"], &["/users/1{?topic}"]);
    let mut reader = subscribe(&["/books/1"], &["/books/{id}"]);
    let mut elsewhere = subscribe(&["/films/{id}"], &["*"]);
    hub.publish(update(1, &["/books/1"], true));
    hub.publish(update(2, &["/books/2", "/users/1?topic=2"], true));
    hub.publish(update(3, &["/books/1", "/books/2"], false));
    assert_eq!(ids(&mut anonymous), ["3"]);
    assert_eq!(ids(&mut user), ["2", "3"]);
    assert_eq!(ids(&mut reader), ["1", "3"]);
    assert_eq!(ids(&mut elsewhere), [""; 0]);
    // Including those in the history.
    let after = |interest| hub.subscribe(interest, Some("earliest"), plenty()).subscription;
    assert_eq!(ids(&mut after(interest(&["*"], &[]))), ["3"]);
    assert_eq!(ids(&mut after(interest(&["*"], &["/books/1"]))), ["1", "3"]);
}

#[test]
fn a_slow_subscriber_ends_or_loses_the_oldest_and_disturbs_no_other() {
    let hub = Hub::new(Limits::default());
    let subscribe = |queue_limits| hub.subscribe(interest(&["t"], &[]), None, queue_limits).subscription;
    let (mut quick, mut slow) = (subscribe(queue_limits(3, usize::MAX)), subscribe(queue_limits(3, usize::MAX)));
    let mut lossy = subscribe(QueueLimits { slow: SlowPolicy::DropOldest, ..queue_limits(3, usize::MAX) });
    let mut seen = Vec::new();
    for id in 0..10 {
        hub.publish(update(id, &["t"], false));
        seen.extend(ids(&mut quick));
    }
    assert_eq!(seen.len(), 10);
    let (left, event) = taken(&mut slow);
    assert!(left.is_empty() && matches!(event, Some(Event::Ended(End::TooSlow))), "{left:?} {event:?}");
    assert_eq!((ids(&mut lossy), lossy.dropped()), (vec!["7".to_owned(), "8".to_owned(), "9".to_owned()], 7));
}

#[test]
fn a_queue_is_bounded_in_bytes_and_takes_one_update_of_any_size() {
    let hub = Hub::new(Limits::default());
    let mut subscription = hub.subscribe(interest(&["t"], &[]), None, queue_limits(usize::MAX, 1000)).subscription;
    let large = || Update { data: Bytes::from(vec![0; 5000]), ..update("large", &["t"], false) };
    hub.publish(large());
    assert_eq!(ids(&mut subscription), ["large"]);
    hub.publish(large());
    hub.publish(large());
    assert!(matches!(taken(&mut subscription).1, Some(Event::Ended(End::TooSlow))));
}

#[test]
fn a_closing_hub_asks_each_subscriber_to_end_at_another_time() {
    let hub = Hub::new(Limits::default());
    let mut subscriptions: Vec<_> = (0..10).map(|_| join(&hub, &["t"])).collect();
    let begin = Instant::now();
    hub.close(Duration::from_secs(100));
    hub.publish(update(1, &["t"], false));
    let mut times = BTreeSet::new();
    for subscription in &mut subscriptions {
        let (before, event) = taken(subscription);
        let Some(Event::Closing(at)) = event else { panic!("{event:?}") };
        assert!(before.is_empty() && at < begin + Duration::from_secs(100));
        times.insert(at);
        assert_eq!(ids(subscription), ["1"], "updates go on, and the end is announced once");
    }
    assert_eq!(times.len(), 10);
    let mut late = join(&hub, &["t"]);
    assert!(matches!(taken(&mut late).1, Some(Event::Closing(at)) if at <= Instant::now()));
}

#[test]
fn a_client_that_comes_back_while_updates_go_on_misses_none_and_gets_none_twice() {
    const UPDATES: usize = 3000;
    let limits = Limits { history: UPDATES, ..Limits::default() };
    let hub = Hub::new(limits);
    let publishing = AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..UPDATES).for_each(|id| _ = hub.publish(update(id, &["t"], false)));
            publishing.store(false, Relaxed);
        });
        for after in ["earliest", "0", "earliest"] {
            let (hub, publishing) = (&hub, &publishing);
            scope.spawn(move || {
                while hub.published() == 0 {
                    std::thread::yield_now();
                }
                let mut last = after.to_owned();
                let mut seen: Vec<usize> = Vec::new();
                loop {
                    let is_last = !publishing.load(Relaxed);
                    // It reconnects after every few updates, and whenever it was too slow.
                    let mut subscription =
                        hub.subscribe(interest(&["t"], &[]), Some(&last), queue_limits(8, usize::MAX)).subscription;
                    for id in ids(&mut subscription) {
                        seen.push(id.parse().unwrap());
                        last = id;
                    }
                    if is_last {
                        break;
                    }
                }
                let first = usize::from(after == "0");
                assert!(seen.iter().copied().eq(first..UPDATES), "{} updates after {after}", seen.len());
            });
        }
    });
    assert!(hub.is_empty());
}

/// Counts wake-ups.
#[derive(Default)]
struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_reader_that_waits_is_woken_once_and_all_share_the_bytes() {
    let hub = Hub::new(Limits::default());
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut subscriptions: Vec<_> = (0..2).map(|_| join(&hub, &["t"])).collect();
    for subscription in &mut subscriptions {
        assert!(subscription.poll_next(&mut Context::from_waker(&waker)).is_pending());
    }
    hub.publish(update(1, &["t"], false));
    hub.publish(update(2, &["t"], false));
    assert_eq!(woken.0.load(Relaxed), 2, "a reader that has not polled yet is not woken again");
    let bytes: BTreeSet<*const u8> = subscriptions
        .iter_mut()
        .map(|subscription| match subscription.poll_next(&mut Context::from_waker(&waker)) {
            Poll::Ready(Event::Update(update)) => update.form(Form::Event, || update.data.to_vec().into()).as_ptr(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(bytes.len(), 1);
}

#[test]
fn many_subscribers_of_one_topic_and_many_topics_are_cheap() {
    let hub = Hub::new(Limits::default());
    let same: Vec<_> = (0..10_000).map(|_| join(&hub, &["same"])).collect();
    let other: Vec<_> = (0..10_000).map(|at| join(&hub, &[&format!("/topic/{at}")])).collect();
    assert_eq!(hub.publish(update(1, &["same"], false)), 10_000);
    // If each update were compared with each subscriber, this would take 100,000,000 comparisons.
    let reached: usize = (0..10_000).map(|at| hub.publish(update(at, &[&format!("/topic/{at}")], false))).sum();
    assert_eq!(reached, 10_000);
    drop((same, other));
    assert!(hub.is_empty());
}

#[test]
fn templates_are_not_matched_with_private_updates_that_their_subscribers_may_not_receive() {
    use crate::template_matcher::tests::STEPS;
    let hub = Hub::new(Limits::default());
    let mut anonymous = join(&hub, &["{+x}{+y}{+z}"]);
    STEPS.set(0);
    assert!(!hub.is_watched(&"/subscriptions/a".into()));
    hub.publish(update(1, &["/a"], true));
    assert_eq!((STEPS.get(), ids(&mut anonymous)), (0, vec![]));
    hub.publish(update(2, &["/a"], false));
    assert!(STEPS.get() > 0);
    assert_eq!(ids(&mut anonymous), ["2"]);
    drop(anonymous);
    assert!(hub.0.state.lock().index.is_empty());
}
