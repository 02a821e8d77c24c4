//! Open connections, found by id from any thread. Each is a subscriber of its site's hub, whose queue holds everything
//! that waits for the client: messages to its channels, and messages to it alone.

use crate::close::Close;
use bytes::Bytes;
use howdah_budget::Charge;
use howdah_live::{
    Channel, End, Event, Hub, Interest, JoinError, Member, QueueLimits, SlowPolicy, Subscriber, Subscription, Update,
};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use rustls::crypto::aws_lc_rs;
use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};

/// Bytes of messages that may wait for one client; beyond that it is disconnected, or loses its oldest messages.
const MAX_QUEUE: usize = 4 << 20;
/// Maximum size of a connection's state, in bytes.
const MAX_STATE: usize = 4096;

/// An open connection, as senders see it.
#[derive(Debug)]
pub struct Link {
    hub: Hub,
    subscriber: Arc<Subscriber>,
    /// Scripts can find it. Others were admitted by settings of their protocol, so they end when these change.
    is_listed: bool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The close to send after the queued messages.
    close: Option<Close>,
    state: Bytes,
}

/// The next thing to send.
pub(crate) enum Next {
    Message(Arc<Update>),
    Close(Close),
    /// The settings of the connection's protocol have changed: the client must connect again.
    Reconnect,
    Idle,
}

impl Link {
    /// `false` once the connection is to end, or has ended.
    pub fn is_open(&self) -> bool {
        self.subscriber.ended().is_none()
    }

    /// Its id, which cannot be guessed.
    pub fn id(&self) -> &str {
        &self.subscriber.interest.id
    }

    /// The state that the application stores with the connection.
    pub fn state(&self) -> Bytes {
        self.inner.lock().state.clone()
    }

    /// Replaces the state; `false` if it is too long.
    pub fn set_state(&self, state: Bytes) -> bool {
        let fits = state.len() <= MAX_STATE;
        if fits {
            // Copied, because the slice would keep the whole order in memory.
            self.inner.lock().state = Bytes::copy_from_slice(&state);
        }
        fits
    }

    /// Queues a message. A client that is too far behind is disconnected, unless `drop_oldest` was called.
    pub fn send(&self, message: Update) {
        self.subscriber.send(&Arc::new(message));
    }

    /// Subscribes to a channel. With `after`, messages of the history after that id are queued first.
    ///
    /// # Errors
    /// The connection has too many channels, the name is empty or too long, or the member is too large.
    pub fn subscribe(&self, channel: &str, member: Option<Member>, after: Option<&str>) -> Result<(), JoinError> {
        self.hub.join(&self.subscriber, channel, member, after)
    }

    /// Queues the last message to a channel that was published as `cached`; `false` if there is none.
    pub fn send_last(&self, channel: &str) -> bool {
        self.hub.send_last(&self.subscriber, channel)
    }

    /// From now on at most this many messages wait for the client, and the oldest are dropped.
    pub fn drop_oldest(&self, max_messages: usize) {
        self.subscriber.drop_oldest(max_messages);
    }

    /// Ends a subscription; `false` if there is none.
    pub fn unsubscribe(&self, channel: &str) -> bool {
        self.hub.leave(&self.subscriber, channel)
    }

    /// Its subscription to a channel.
    pub fn channel(&self, name: &str) -> Option<Channel> {
        self.subscriber.channels().into_iter().find(|own| *own.topic == *name)
    }

    /// Closes the connection after its queued messages.
    pub fn close(&self, close: Close) {
        self.inner.lock().close.get_or_insert(close);
        self.subscriber.end();
    }

    /// The reason to close the connection, if there is one.
    pub(crate) fn pending_close(&self) -> Option<Close> {
        match self.subscriber.ended()? {
            End::TooSlow => Some(Close::of(Close::POLICY_VIOLATION, "the client is too slow")),
            End::OutOfMemory => Some(Close::of(Close::TRY_AGAIN_LATER, "the server has no memory left")),
            End::Requested => self.inner.lock().close.clone(),
        }
    }

    pub(crate) fn next(&self, waker: &Waker) -> Next {
        loop {
            match self.subscriber.poll_next(&mut Context::from_waker(waker)) {
                Poll::Ready(Event::Update(update)) => {
                    if let Some(code) = update.close {
                        self.close(Close::of(code, "closed by the application"));
                    }
                    return Next::Message(update);
                }
                Poll::Ready(Event::Ended(_)) => return self.pending_close().map_or(Next::Idle, Next::Close),
                // The connections of scripts ignore it: the server closes them when it stops, and new settings of a hub
                // do not affect them.
                Poll::Ready(Event::Closing(_)) if self.is_listed => {}
                Poll::Ready(Event::Closing(_)) => return Next::Reconnect,
                Poll::Pending => return Next::Idle,
            }
        }
    }
}

/// 128 random bits in hexadecimal digits; `None` if the system has none.
pub fn new_id() -> Option<Box<str>> {
    static PROVIDER: LazyLock<rustls::crypto::CryptoProvider> = LazyLock::new(aws_lc_rs::default_provider);
    let mut random = [0; 16];
    PROVIDER.secure_random.fill(&mut random).ok()?;
    Some(format!("{:032x}", u128::from_ne_bytes(random)).into())
}

/// A connection in a set that is searched by id.
#[derive(Debug)]
struct ById(Arc<Link>);

impl Borrow<str> for ById {
    fn borrow(&self) -> &str {
        self.0.id()
    }
}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl Eq for ById {}

/// The open connections of a server, by site.
#[derive(Debug, Default)]
pub struct Connections(Mutex<FxHashMap<Arc<str>, FxHashSet<ById>>>);

impl Connections {
    /// Registers a connection of a site with this hub until the result is dropped. `charge` is for its queued messages.
    pub fn open(self: &Arc<Self>, id: Box<str>, site: &str, hub: &Hub, charge: Charge) -> Registered {
        let mut registered = Registered::new(id, hub, charge, true);
        let mut sites = self.0.lock();
        // Entries are never removed: sites are few.
        let name = sites.get_key_value(site).map_or_else(|| site.into(), |(name, _)| name.clone());
        sites.entry(name.clone()).or_default().insert(ById(registered.link.clone()));
        drop(sites);
        registered.list = Some((self.clone(), name));
        registered
    }

    /// The connection with this id, if it is of this site.
    pub fn find(&self, site: &str, id: &[u8]) -> Option<Arc<Link>> {
        let id = std::str::from_utf8(id).ok()?;
        self.0.lock().get(site)?.get(id).map(|found| found.0.clone())
    }

    /// The connections of a site, at most this many.
    pub fn list(&self, site: &str, max: usize) -> Vec<Arc<Link>> {
        self.0.lock().get(site).into_iter().flatten().take(max).map(|own| own.0.clone()).collect()
    }

    /// Number of connections of a site.
    pub fn count(&self, site: &str) -> usize {
        self.0.lock().get(site).map_or(0, FxHashSet::len)
    }
}

/// Registration of a connection. Dropping it removes the connection from its channels and ends its queue.
#[derive(Debug)]
pub struct Registered {
    pub link: Arc<Link>,
    list: Option<(Arc<Connections>, Arc<str>)>,
    _subscription: Subscription,
}

impl Registered {
    /// A connection that scripts cannot find. It ends when the hub ends its subscriptions.
    pub fn unlisted(id: Box<str>, hub: &Hub, charge: Charge) -> Self {
        Self::new(id, hub, charge, false)
    }

    fn new(id: Box<str>, hub: &Hub, charge: Charge, is_listed: bool) -> Self {
        let interest = Interest { id, trusted: true, ..Interest::default() };
        let terms = QueueLimits { slow: SlowPolicy::Disconnect, max_updates: usize::MAX, max_bytes: MAX_QUEUE, charge };
        let subscription = hub.subscribe(interest, None, terms).subscription;
        let subscriber = subscription.subscriber().clone();
        let link = Arc::new(Link { hub: hub.clone(), subscriber, is_listed, inner: Mutex::default() });
        Self { link, list: None, _subscription: subscription }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some((connections, site)) = &self.list
            && let Some(own) = connections.0.lock().get_mut(site)
        {
            own.remove(self.link.id());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message;
    use howdah_budget::Budgets;
    use howdah_live::Limits;

    struct Fixture {
        connections: Arc<Connections>,
        hub: Hub,
        budgets: Budgets,
    }

    impl Fixture {
        fn new(memory: u64) -> Self {
            let (hub, budgets) = (Hub::new(Limits::default()), Budgets::new(memory, 1 << 26));
            Self { connections: Arc::default(), hub, budgets }
        }

        fn open(&self) -> Registered {
            let charge = Charge::new(self.budgets.memory, None);
            self.connections.open(new_id().unwrap(), "here", &self.hub, charge)
        }

        fn publish(&self, topic: &str, text: &str) {
            let topics = Box::new([topic.into()]);
            self.hub.publish(Update { topics, id: text.into(), private: true, ..message(text.as_bytes(), false) });
        }
    }

    fn drain(link: &Link) -> (Vec<String>, Option<Close>) {
        let mut messages = Vec::new();
        loop {
            match link.next(Waker::noop()) {
                Next::Message(update) => messages.push(String::from_utf8_lossy(&update.data).into_owned()),
                Next::Reconnect => messages.push("reconnect".to_owned()),
                Next::Close(close) => return (messages, Some(close)),
                Next::Idle => return (messages, None),
            }
        }
    }

    #[test]
    fn each_site_has_its_own_connections() {
        let stage = Fixture::new(1 << 26);
        let charge = || Charge::new(stage.budgets.memory, None);
        let there = stage.connections.open(new_id().unwrap(), "there", &stage.hub, charge());
        let _unlisted = Registered::unlisted(new_id().unwrap(), &stage.hub, charge());
        let here = [stage.open(), stage.open()];
        assert_eq!(["here", "there", "nowhere"].map(|site| stage.connections.count(site)), [2, 1, 0]);
        let of: Vec<_> = stage.connections.list("there", 9).iter().map(|link| link.id().to_owned()).collect();
        assert_eq!(of, [there.link.id()]);
        assert_eq!(stage.connections.list("here", 1).len(), 1);
        assert!(stage.connections.find("here", there.link.id().as_bytes()).is_none());
        here[0].link.close(Close::GOING_AWAY);
        let found = stage.connections.find("here", here[0].link.id().as_bytes()).unwrap();
        assert!(!found.is_open() && here[1].link.is_open());
        drop((here, there));
        assert_eq!(["here", "there"].map(|site| stage.connections.count(site)), [0, 0]);
    }

    #[test]
    fn a_channel_reaches_its_subscribers_until_they_leave() {
        let stage = Fixture::new(1 << 26);
        let all = [stage.open(), stage.open()];
        for registered in &all {
            registered.link.subscribe("news", None, None).unwrap();
            registered.link.subscribe("news", None, None).unwrap();
        }
        let id = all[0].link.id().to_owned();
        assert!(stage.connections.find("here", id.as_bytes()).is_some());
        assert!(stage.connections.find("elsewhere", id.as_bytes()).is_none());
        stage.publish("news", "one");
        assert_eq!(all.each_ref().map(|registered| drain(&registered.link).0.len()), [1, 1]);
        assert!(all[0].link.unsubscribe("news") && !all[0].link.unsubscribe("news"));
        stage.publish("news", "two");
        assert_eq!(all.each_ref().map(|registered| drain(&registered.link).0.len()), [0, 1]);
        let link = all[0].link.clone();
        drop(all);
        link.subscribe("too late", None, None).unwrap();
        link.send(message(b"too late", false));
        assert_eq!(drain(&link), (vec![], None));
        assert!(stage.connections.count("here") == 0 && stage.hub.is_empty() && stage.hub.channels("").is_empty());
        assert_eq!(stage.budgets.memory.used(), 0);
    }

    #[test]
    fn a_returning_client_gets_the_messages_that_it_has_missed() {
        let stage = Fixture::new(1 << 26);
        for (topic, text) in [("a", "1"), ("a", "2"), ("b", "3"), ("a", "4")] {
            stage.publish(topic, text);
        }
        let registered = stage.open();
        registered.link.subscribe("a", None, Some("1")).unwrap();
        stage.publish("a", "5");
        registered.link.subscribe("b", None, None).unwrap();
        assert_eq!(drain(&registered.link).0, ["2", "4", "5"]);
    }

    #[test]
    fn a_client_may_lose_its_oldest_messages_instead_of_its_connection() {
        let stage = Fixture::new(1 << 26);
        let registered = stage.open();
        registered.link.subscribe("news", None, None).unwrap();
        registered.link.drop_oldest(2);
        for text in ["1", "2", "3"] {
            stage.publish("news", text);
        }
        registered.link.send(message(b"alone", false));
        assert!(registered.link.is_open());
        assert_eq!(drain(&registered.link).0, ["3", "alone"]);
        stage.publish("news", "4");
        assert_eq!(drain(&registered.link).0, ["4"]);
    }

    #[test]
    fn a_close_is_the_last_message() {
        let stage = Fixture::new(1 << 26);
        let registered = stage.open();
        registered.link.send(message(b"before", false));
        registered.link.close(Close::of(4000, "enough"));
        registered.link.send(message(b"after", false));
        assert_eq!(drain(&registered.link), (vec!["before".to_owned()], Some(Close::of(4000, "enough"))));
    }

    #[test]
    fn clients_too_far_behind_or_without_memory_are_closed() {
        let large = || message(&vec![b'x'; 1 << 20], false);
        let stage = Fixture::new(1 << 26);
        let slow = stage.open();
        (0..4).for_each(|_| slow.link.send(large()));
        assert_eq!(drain(&slow.link), (vec![], Some(Close::of(1008, "the client is too slow"))));
        assert_eq!(stage.budgets.memory.used(), 0);
        let scarce = Fixture::new(3 << 20);
        let poor = scarce.open();
        (0..4).for_each(|_| poor.link.send(large()));
        assert_eq!(drain(&poor.link).1.unwrap().code, Some(Close::TRY_AGAIN_LATER));
        assert_eq!(scarce.budgets.memory.used(), 0);
    }

    #[test]
    fn a_state_is_bounded() {
        let stage = Fixture::new(1 << 26);
        let Registered { link, .. } = &stage.open();
        assert!(link.set_state(Bytes::from(vec![0; MAX_STATE])));
        assert!(!link.set_state(Bytes::from(vec![0; MAX_STATE + 1])) && link.state().len() == MAX_STATE);
    }
}
