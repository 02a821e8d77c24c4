//! Open connections, found by their ids and channels from any thread, and what waits for each.

use crate::close::Close;
use crate::message::Message;
use bytes::Bytes;
use howdah_budget::Charge;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use rustls::crypto::aws_lc_rs;
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};
use std::task::Waker;

/// Bytes of messages that may wait for one client; a slower one loses its connection.
const MAX_QUEUE: usize = 4 << 20;
/// Bytes that a message counts besides its own.
const PER_MESSAGE: usize = 64;
/// Maximum number of channels of a connection.
const MAX_CHANNELS: usize = 256;
/// Longest name of a channel, in bytes.
const MAX_CHANNEL: usize = 256;
/// Longest state of a connection, in bytes.
const MAX_STATE: usize = 4096;

/// An open connection, as senders see it.
#[derive(Debug)]
pub struct Link {
    id: Box<str>,
    site: Arc<str>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    queue: VecDeque<Message>,
    /// Bytes that the queue counts.
    bytes: usize,
    charge: Charge,
    /// The connection is to be closed after the queue.
    close: Option<Close>,
    /// Nothing is sent any more.
    gone: bool,
    state: Bytes,
    channels: Vec<Channel>,
    /// The connection's task.
    waker: Option<Waker>,
}

/// The next thing to send.
pub(crate) enum Next {
    Message(Message),
    Close(Close),
    Nothing,
}

impl Link {
    /// A connection of a site, whose queue is charged.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn new(site: Arc<str>, charge: Charge) -> Result<Arc<Self>, &'static str> {
        let inner = Inner {
            queue: VecDeque::new(),
            bytes: 0,
            charge,
            close: None,
            gone: false,
            state: Bytes::new(),
            channels: Vec::new(),
            waker: None,
        };
        Ok(Arc::new(Self { id: new_id().ok_or("no random bytes")?, site, inner: Mutex::new(inner) }))
    }

    /// Its id, which cannot be guessed.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The state that the application keeps with it.
    #[must_use]
    pub fn state(&self) -> Bytes {
        self.inner.lock().state.clone()
    }

    /// Replaces the state; `false` if it is too long.
    pub fn set_state(&self, state: Bytes) -> bool {
        let fits = state.len() <= MAX_STATE;
        if fits {
            // A copy: the order that it came in is larger.
            self.inner.lock().state = Bytes::copy_from_slice(&state);
        }
        fits
    }

    /// Queues a message. A client that is too far behind loses its connection.
    pub fn send(&self, message: &Message) {
        let mut inner = self.inner.lock();
        if inner.gone || inner.close.is_some() {
            return;
        }
        let size = message.size() + PER_MESSAGE;
        if inner.bytes + size > MAX_QUEUE && !inner.queue.is_empty() {
            inner.drop_queue();
            inner.close = Some(Close::of(Close::POLICY, "the client is too slow"));
        } else if !inner.charge.grow(size as u64) {
            inner.drop_queue();
            inner.close = Some(Close::of(Close::LATER, "the server has no memory left"));
        } else {
            inner.bytes += size;
            inner.queue.push_back(message.clone());
        }
        inner.wake();
    }

    /// Closes the connection after the messages that wait.
    pub fn close(&self, close: Close) {
        let mut inner = self.inner.lock();
        inner.close.get_or_insert(close);
        inner.wake();
    }

    /// The reason to close the connection, if there is one.
    pub(crate) fn closes(&self) -> Option<Close> {
        self.inner.lock().close.clone()
    }

    pub(crate) fn next(&self, waker: &Waker) -> Next {
        let mut inner = self.inner.lock();
        if inner.waker.as_ref().is_none_or(|own| !own.will_wake(waker)) {
            inner.waker = Some(waker.clone());
        }
        if let Some(message) = inner.queue.pop_front() {
            let size = message.size() + PER_MESSAGE;
            inner.bytes -= size;
            inner.charge.shrink(size as u64);
            if inner.queue.is_empty() {
                inner.queue = VecDeque::new();
            }
            return Next::Message(message);
        }
        inner.close.clone().map_or(Next::Nothing, Next::Close)
    }
}

impl Inner {
    fn drop_queue(&mut self) {
        self.queue = VecDeque::new();
        self.bytes = 0;
        self.charge.clear();
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }
}

/// 128 random bits in hexadecimal digits.
fn new_id() -> Option<Box<str>> {
    static PROVIDER: LazyLock<rustls::crypto::CryptoProvider> = LazyLock::new(aws_lc_rs::default_provider);
    let mut random = [0; 16];
    PROVIDER.secure_random.fill(&mut random).ok()?;
    Some(format!("{:032x}", u128::from_ne_bytes(random)).into())
}

/// A channel of a site.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Channel(Arc<str>, Bytes);

/// The open connections of a server.
#[derive(Debug, Default)]
pub struct Connections {
    open: Mutex<FxHashMap<Box<str>, Arc<Link>>>,
    /// Locked before a link.
    channels: Mutex<FxHashMap<Channel, Vec<Arc<Link>>>>,
}

impl Connections {
    /// Adds a connection, for as long as the result lives.
    #[must_use]
    pub fn add(self: &Arc<Self>, link: &Arc<Link>) -> Registered {
        self.open.lock().insert(link.id.clone(), link.clone());
        Registered { connections: self.clone(), link: link.clone() }
    }

    /// Removes a connection from here and from its channels. Nothing is sent to it any more.
    fn remove(&self, link: &Link) {
        self.open.lock().remove(&*link.id);
        let channels = {
            let mut inner = link.inner.lock();
            inner.gone = true;
            inner.drop_queue();
            inner.waker = None;
            std::mem::take(&mut inner.channels)
        };
        if channels.is_empty() {
            return;
        }
        let mut all = self.channels.lock();
        channels.iter().for_each(|channel| leave(&mut all, channel, link));
    }

    /// The open connection with this id, if it is of this site.
    #[must_use]
    pub fn find(&self, site: &str, id: &[u8]) -> Option<Arc<Link>> {
        let id = std::str::from_utf8(id).ok()?;
        self.open.lock().get(id).filter(|link| *link.site == *site).cloned()
    }

    /// Number of open connections.
    #[must_use]
    pub fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// Subscribes a connection to a channel of its site.
    ///
    /// # Errors
    /// It has too many, or the name is too long.
    pub fn subscribe(&self, link: &Arc<Link>, channel: &[u8]) -> Result<(), &'static str> {
        if channel.is_empty() || channel.len() > MAX_CHANNEL {
            return Err("the name of a channel has 1 to 256 bytes");
        }
        let channel = Channel(link.site.clone(), Bytes::copy_from_slice(channel));
        let mut all = self.channels.lock();
        let mut inner = link.inner.lock();
        if inner.gone || inner.channels.contains(&channel) {
            return Ok(());
        }
        if inner.channels.len() >= MAX_CHANNELS {
            return Err("a connection may subscribe to 256 channels");
        }
        inner.channels.push(channel.clone());
        all.entry(channel).or_default().push(link.clone());
        Ok(())
    }

    /// Ends a subscription.
    pub fn unsubscribe(&self, link: &Link, channel: &[u8]) {
        let channel = Channel(link.site.clone(), Bytes::copy_from_slice(channel));
        let mut all = self.channels.lock();
        link.inner.lock().channels.retain(|own| *own != channel);
        leave(&mut all, &channel, link);
    }

    /// Sends a message to the subscribers of a site's channel.
    pub fn publish(&self, site: &Arc<str>, channel: &Bytes, message: &Message) {
        let subscribers = self.channels.lock().get(&Channel(site.clone(), channel.clone())).cloned();
        for link in subscribers.into_iter().flatten() {
            link.send(message);
        }
    }
}

/// A connection that senders find.
#[derive(Debug)]
pub struct Registered {
    connections: Arc<Connections>,
    pub(crate) link: Arc<Link>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.connections.remove(&self.link);
    }
}

fn leave(all: &mut FxHashMap<Channel, Vec<Arc<Link>>>, channel: &Channel, link: &Link) {
    let Some(subscribers) = all.get_mut(channel) else { return };
    subscribers.retain(|other| other.id != link.id);
    if subscribers.is_empty() {
        all.remove(channel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_budget::Budgets;

    fn link(site: &Arc<str>, budgets: &Budgets) -> Arc<Link> {
        Link::new(site.clone(), Charge::new(budgets.memory, None)).unwrap()
    }

    fn drained(link: &Link) -> (usize, Option<Close>) {
        let mut messages = 0;
        loop {
            match link.next(Waker::noop()) {
                Next::Message(_) => messages += 1,
                Next::Close(close) => return (messages, Some(close)),
                Next::Nothing => return (messages, None),
            }
        }
    }

    #[test]
    fn a_channel_reaches_its_subscribers_in_its_site_until_they_leave() {
        let (budgets, connections) = (Budgets::new(1 << 26, 1 << 26), Arc::new(Connections::default()));
        let (here, elsewhere): (Arc<str>, Arc<str>) = ("here".into(), "elsewhere".into());
        let all = [link(&here, &budgets), link(&here, &budgets), link(&elsewhere, &budgets)];
        let registered: Vec<_> = all.iter().map(|link| connections.add(link)).collect();
        for link in &all {
            connections.subscribe(link, b"news").unwrap();
            connections.subscribe(link, b"news").unwrap();
        }
        assert!(connections.find("here", all[0].id().as_bytes()).is_some());
        assert!(connections.find("elsewhere", all[0].id().as_bytes()).is_none());
        let news = Bytes::from_static(b"news");
        connections.publish(&here, &news, &Message::new(b"one", false));
        assert_eq!(all.each_ref().map(|link| drained(link).0), [1, 1, 0]);
        connections.unsubscribe(&all[0], b"news");
        connections.publish(&here, &news, &Message::new(b"two", false));
        assert_eq!(all.each_ref().map(|link| drained(link).0), [0, 1, 0]);
        drop(registered);
        connections.subscribe(&all[0], b"too late").unwrap();
        all[0].send(&Message::new(b"too late", false));
        assert_eq!(drained(&all[0]), (0, None));
        assert!(connections.count() == 0 && connections.channels.lock().is_empty());
        assert_eq!(budgets.memory.used(), 0);
    }

    #[test]
    fn a_client_that_is_too_far_behind_is_closed_and_so_is_one_for_which_there_is_no_memory() {
        let site: Arc<str> = "site".into();
        let message = Message::new(&vec![b'x'; 1 << 20], false);
        let budgets = Budgets::new(1 << 26, 1 << 26);
        let slow = link(&site, &budgets);
        (0..4).for_each(|_| slow.send(&message));
        assert_eq!(drained(&slow), (0, Some(Close::of(1008, "the client is too slow"))));
        assert_eq!(budgets.memory.used(), 0);
        let scarce = Budgets::new(3 << 20, 1 << 26);
        let poor = link(&site, &scarce);
        (0..4).for_each(|_| poor.send(&message));
        assert_eq!(drained(&poor).1.unwrap().code, Some(Close::LATER));
        assert_eq!(scarce.memory.used(), 0);
    }

    #[test]
    fn channels_and_state_are_bounded() {
        let (budgets, connections) = (Budgets::new(1 << 26, 1 << 26), Arc::new(Connections::default()));
        let link = link(&"site".into(), &budgets);
        for number in 0..MAX_CHANNELS {
            connections.subscribe(&link, number.to_string().as_bytes()).unwrap();
        }
        assert!(connections.subscribe(&link, b"one more").is_err());
        assert!(connections.subscribe(&link, &[b'x'; 257]).is_err() && connections.subscribe(&link, b"").is_err());
        assert!(link.set_state(Bytes::from(vec![0; MAX_STATE])));
        assert!(!link.set_state(Bytes::from(vec![0; MAX_STATE + 1])) && link.state().len() == MAX_STATE);
    }
}
