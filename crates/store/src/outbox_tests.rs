//! Two or three ends of one log, whose broker is a list: entries are counted.

use super::*;
use parking_lot::Mutex;
use std::sync::Arc;

/// One server's end, and the entries that it has delivered.
struct Server {
    outbox: Outbox,
    sent: u64,
    delivered: Arc<Mutex<Vec<String>>>,
    /// Number of log entries that it has read.
    read: usize,
}

impl Server {
    fn new(origin: u64) -> Self {
        Self { outbox: Outbox::new(origin), sent: 0, delivered: Arc::default(), read: 0 }
    }

    fn deliver(&self) -> impl Fn(Bytes, bool) + Send + Sync + 'static {
        let delivered = self.delivered.clone();
        move |payload, _| delivered.lock().push(String::from_utf8(payload.to_vec()).unwrap())
    }

    fn append(&mut self, text: &str) {
        let deliver = self.deliver();
        assert!(self.outbox.append(Bytes::copy_from_slice(text.as_bytes()), &deliver));
    }

    /// Writes the waiting entries. Without an acknowledgement they are written again the next time.
    fn write(&mut self, log: &mut Vec<Bytes>, is_confirmed: bool) {
        let (entries, last) = self.outbox.after(self.outbox.last_stored(), 100);
        log.extend(entries);
        self.sent = last;
        if is_confirmed {
            self.outbox.stored(last);
        } else {
            let deliver = self.deliver();
            self.outbox.cannot_write(&deliver);
        }
    }

    fn read(&mut self, log: &[Bytes]) {
        let deliver = self.deliver();
        log[self.read..].iter().for_each(|entry| self.outbox.received(entry, &deliver));
        self.read = log.len();
        self.outbox.reads(true, &deliver);
    }

    fn fail_to_read(&mut self) {
        let deliver = self.deliver();
        self.outbox.reads(false, &deliver);
    }

    fn delivered(&self) -> Vec<String> {
        self.delivered.lock().clone()
    }
}

#[test]
fn all_servers_deliver_in_the_order_of_the_log() {
    let (mut one, mut two, mut log) = (Server::new(1), Server::new(2), Vec::new());
    one.append("a");
    two.append("b");
    one.append("c");
    assert!(one.delivered().is_empty(), "nothing is delivered before its place in the log is known");
    two.write(&mut log, true);
    one.write(&mut log, true);
    one.read(&log);
    two.read(&log);
    assert_eq!((one.delivered(), two.delivered()), (vec!["b".into(), "a".into(), "c".into()], one.delivered()));
    assert!(one.outbox.waiting.is_empty() && one.outbox.bytes == 0);
}

#[test]
fn entries_that_were_written_twice_are_delivered_once() {
    let (mut one, mut two, mut log) = (Server::new(1), Server::new(2), Vec::new());
    one.append("a");
    one.append("b");
    // The entries were written, and the connection broke before the reply.
    one.write(&mut log, false);
    one.append("c");
    one.write(&mut log, true);
    assert_eq!(log.len(), 5);
    one.read(&log);
    two.read(&log);
    for server in [&one, &two] {
        assert_eq!(server.delivered(), ["a", "b", "c"]);
        assert_eq!(server.outbox.missed, 0);
    }
    assert!(one.outbox.waiting.is_empty());
}

#[test]
fn a_server_without_the_broker_delivers_at_once_and_shares_later() {
    let (mut one, mut two, mut log) = (Server::new(1), Server::new(2), Vec::new());
    one.append("a");
    one.fail_to_read();
    assert_eq!(one.delivered(), ["a"]);
    one.append("b");
    assert_eq!(one.delivered(), ["a", "b"]);
    two.append("x");
    two.write(&mut log, true);
    two.read(&log);
    one.write(&mut log, true);
    assert!(one.outbox.is_unreachable(), "it can write and not read");
    one.read(&log);
    two.read(&log);
    assert!(!one.outbox.is_unreachable());
    assert_eq!(one.delivered(), ["a", "b", "x"], "its own ones are not repeated");
    assert_eq!(two.delivered(), ["x", "a", "b"]);
}

#[test]
fn waiting_updates_are_bounded_and_counted() {
    let mut one = Server::new(1);
    one.fail_to_read();
    let deliver = one.deliver();
    let payload = Bytes::from(vec![b'x'; MAX_ENTRY]);
    let queued = (0..20).filter(|_| one.outbox.append(payload.clone(), &deliver)).count();
    assert_eq!(queued, MAX_WAITING / MAX_ENTRY);
    assert_eq!((one.outbox.unshared, one.delivered().len()), (20 - queued as u64, 20));
    assert!(!one.outbox.append(Bytes::from(vec![b'x'; MAX_ENTRY + 1]), &deliver), "it is too large in any case");
}

#[test]
fn a_gap_in_the_log_is_counted_and_invalid_entries_are_ignored() {
    let (mut one, mut two, mut log) = (Server::new(1), Server::new(2), Vec::new());
    one.append("a");
    one.write(&mut log, true);
    two.read(&log);
    for text in ["b", "c", "d"] {
        one.append(text);
    }
    one.write(&mut log, true);
    // The log drops entries while this server is disconnected.
    log.drain(1..3);
    log.extend([Bytes::new(), Bytes::from_static(b"short"), one.outbox.encode(900, &Bytes::new())]);
    two.read(&log);
    assert_eq!(two.delivered()[..2], ["a", "d"]);
    one.read(&log);
    assert!(one.delivered().iter().all(|text| !text.is_empty()), "it has not appended that: {:?}", one.delivered());
    assert!(two.outbox.missed >= 2);
}
