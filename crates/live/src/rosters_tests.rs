//! Hubs of several servers, whose log is a list.

use super::*;
use crate::presence_wire::{MAX_ENTRY, MAX_MEMBER};
use crate::{Hub, Interest, Limits, QueueLimits, SlowPolicy, Subscription, Watcher};
use bytes::Bytes;
use howdah_budget::{Budgets, Charge};
use parking_lot::Mutex;
use std::fmt::Write as _;

/// A server that reads the log from where it joined.
struct Server {
    hub: Hub,
    notes: Arc<Notes>,
    read: usize,
}

/// Changes as text: `+ann`, and `(+ann)` if another server reports it.
#[derive(Debug, Default)]
struct Notes(Mutex<String>);

impl Watcher for Notes {
    fn changed(&self, _: &Hub, noted: &Noted) {
        let change = match &noted.change {
            Change::Occupied => format!("{}!", noted.topic),
            Change::Vacated => format!("{}.", noted.topic),
            Change::Added(member) => format!("+{}", member.id),
            Change::Removed(member) => format!("-{}", member.id),
        };
        let mut notes = self.0.lock();
        match noted.origin {
            Origin::Own => write!(notes, "{change} "),
            Origin::Other => write!(notes, "({change}) "),
            Origin::Restored => write!(notes, "[{change}] "),
        }
        .unwrap();
    }
}

impl Server {
    fn start(number: u64, log: &Log) -> Self {
        let (hub, notes) = (Hub::new(Limits::default()), Arc::new(Notes::default()));
        hub.watch(&(notes.clone() as Arc<dyn Watcher>));
        hub.share_presence(number);
        hub.begin_presence();
        Self { hub, notes, read: log.0.len() }
    }

    fn open(&self, id: &str) -> Subscription {
        let charge = Charge::new(Budgets::new(1 << 26, 1 << 26).memory, None);
        let slow = SlowPolicy::Disconnect;
        let limits = QueueLimits { slow, max_updates: usize::MAX, max_bytes: usize::MAX, charge };
        let interest = Interest { id: id.into(), trusted: true, ..Interest::default() };
        self.hub.subscribe(interest, None, limits).subscription
    }

    fn join(&self, topic: &str, member: Option<&str>) -> Subscription {
        let subscription = self.open("1.2");
        let member = member.map(|id| Member { id: id.into(), info: Some(format!("\"{id}\"").into()) });
        self.hub.join(subscription.subscriber(), topic, member, None).unwrap();
        subscription
    }

    /// The changes since the last call.
    fn noted(&self) -> String {
        std::mem::take(&mut *self.notes.0.lock()).trim_end().to_owned()
    }

    fn members(&self, topic: &str) -> String {
        self.hub.members(topic).iter().map(|member| &*member.id).collect::<Vec<_>>().join(" ")
    }

    fn tick(&self) {
        self.hub.tick_presence(true, true);
    }

    /// Reads the log; passes its own entries on.
    fn pass(&mut self, log: &mut Log) -> bool {
        let own = self.hub.presence_entries();
        let is_quiet = own.is_empty() && self.read == log.0.len();
        log.0.extend(own);
        while let Some(entry) = log.0.get(self.read) {
            self.hub.receive_presence(entry.clone());
            self.read += 1;
        }
        self.hub.notify_watcher();
        !is_quiet
    }
}

#[derive(Default)]
struct Log(Vec<Bytes>);

/// Passes entries until nothing moves.
fn settle(log: &mut Log, servers: &mut [&mut Server]) {
    while servers.iter_mut().fold(false, |moved, server| server.pass(log) | moved) {}
}

/// Three servers that know each other.
fn three(log: &mut Log) -> [Server; 3] {
    let mut all = [1, 2, 3].map(|number| Server::start(number, log));
    settle(log, &mut all.each_mut());
    all
}

fn noted(servers: &[Server; 3]) -> [String; 3] {
    servers.each_ref().map(Server::noted)
}

#[test]
fn members_of_all_servers_are_one_list_and_each_change_has_one_maker() {
    let mut log = Log::default();
    let mut all = three(&mut log);
    let ann = all[0].join("room", Some("ann"));
    assert_eq!((all[0].hub.count_of_channel("room"), all[0].noted()), (1, String::new()));
    settle(&mut log, &mut all.each_mut());
    assert_eq!(noted(&all), ["room! +ann", "(room!) (+ann)", "(room!) (+ann)"]);
    let bob = all[1].join("room", Some("bob"));
    let again = all[1].join("room", Some("ann"));
    let news = all[2].join("news", None);
    settle(&mut log, &mut all.each_mut());
    assert_eq!(noted(&all), ["(+bob) (news!)", "+bob (news!)", "(+bob) news!"]);
    for server in &all {
        assert_eq!((server.members("room"), server.members("news")), ("ann bob".to_owned(), String::new()));
        assert!(server.hub.members("room").iter().all(|member| member.info.is_some()));
        let counts = if server.read == 0 { 2 } else { 3 };
        assert!((2..=counts).contains(&server.hub.count_of_channel("room")));
    }
    // Exact counts follow with the next tick.
    all.iter().for_each(|server| server.hub.tick_presence(false, true));
    settle(&mut log, &mut all.each_mut());
    for server in &all {
        assert_eq!(server.hub.channels(""), [("news".into(), 1), ("room".into(), 3)]);
        assert_eq!(server.hub.channels("ro"), [("room".into(), 3)]);
    }
    // Two connections of a user end in the same moment: the later one in the log makes the change.
    drop((ann, again));
    settle(&mut log, &mut all.each_mut());
    assert_eq!(noted(&all), ["(-ann)", "-ann", "(-ann)"]);
    drop((bob, news));
    settle(&mut log, &mut all.each_mut());
    assert_eq!(noted(&all), ["(-bob) (room.) (news.)", "-bob room. (news.)", "(-bob) (room.) news."]);
    for server in &all {
        let state = server.hub.0.state.lock();
        let rosters = state.rosters.as_ref().unwrap();
        assert!(rosters.servers.values().all(|roster| roster.bytes == 0 && roster.channels.is_empty()));
        assert_eq!(rosters.servers.len(), 3);
    }
}

#[test]
fn a_user_who_joins_on_two_servers_at_once_is_added_once() {
    let mut log = Log::default();
    let mut all = three(&mut log);
    let _both = [all[0].join("room", Some("ann")), all[1].join("room", Some("ann"))];
    settle(&mut log, &mut all.each_mut());
    assert_eq!(noted(&all), ["room! +ann", "(room!) (+ann)", "(room!) (+ann)"]);
}

#[test]
fn a_server_that_starts_late_learns_of_all() {
    let mut log = Log::default();
    let mut all = three(&mut log);
    let _ann = all[0].join("room", Some("ann"));
    // A roster of several entries.
    let info = "x".repeat(30_000);
    let _others: Vec<_> = (0..20)
        .map(|number| {
            let subscription = all[1].open("1.2");
            let member = Member { id: format!("{number:02}").into(), info: Some(info.clone().into()) };
            all[1].hub.join(subscription.subscriber(), "room", Some(member), None).unwrap();
            subscription
        })
        .collect();
    settle(&mut log, &mut all.each_mut());
    noted(&all);
    let mut late = Server::start(4, &log);
    let [a, b, c] = &mut all;
    let begin = log.0.len();
    settle(&mut log, &mut [a, b, c, &mut late]);
    assert!(log.0[begin..].iter().all(|entry| entry.len() <= MAX_ENTRY));
    assert!(log.0.len() - begin > 10, "parts of a roster");
    assert_eq!(late.members("room"), all[0].members("room"));
    assert_eq!((late.hub.count_of_channel("room"), late.hub.members("room").len()), (21, 21));
    let changes = late.noted();
    assert!(changes.starts_with("(room!) (+") && changes.matches('+').count() == 21, "{changes}");
    assert_eq!(noted(&all), ["", "", ""], "the others know it already");
    let _new = late.join("room", Some("eve"));
    let [a, b, c] = &mut all;
    settle(&mut log, &mut [a, b, c, &mut late]);
    assert_eq!(noted(&all), ["(+eve)", "(+eve)", "(+eve)"]);
}

#[test]
fn a_server_that_falls_silent_is_gone_and_one_server_reports_it() {
    let mut log = Log::default();
    let mut all = three(&mut log);
    let _lost = [all[0].join("room", Some("ann")), all[0].join("hall", Some("ann"))];
    let bob = all[1].join("room", Some("bob"));
    settle(&mut log, &mut all.each_mut());
    noted(&all);
    let [dead, b, c] = &mut all;
    for _ in 0..=MAX_SILENCE {
        [&*b, &*c].iter().for_each(|server| server.tick());
        settle(&mut log, &mut [b, c]);
        assert_eq!((b.noted(), c.noted()), (String::new(), String::new()));
    }
    [&*b, &*c].iter().for_each(|server| server.tick());
    settle(&mut log, &mut [b, c]);
    assert_eq!((&*b.noted(), &*c.noted()), ("-ann hall. -ann", "(-ann) (hall.) (-ann)"));
    assert_eq!((b.members("room"), c.hub.channels("")), ("bob".to_owned(), vec![("room".into(), 1)]));
    // It was only cut off, and reads all that happened: its clients have missed nothing, the webhooks have.
    drop(bob);
    settle(&mut log, &mut [dead, b, c]);
    assert_eq!(dead.noted(), "(-bob) [hall!] [+ann] [room!] [+ann]");
    assert_eq!(
        (&*b.noted(), &*c.noted()),
        ("-bob room. (hall!) (+ann) (room!) (+ann)", "(-bob) (room.) (hall!) (+ann) (room!) (+ann)")
    );
    assert_eq!(all.each_ref().map(|server| server.members("room")), ["ann"; 3]);
}

#[test]
fn no_server_is_gone_while_the_log_does_not_work() {
    let mut log = Log::default();
    let mut all = three(&mut log);
    let _ann = all[0].join("room", Some("ann"));
    settle(&mut log, &mut all.each_mut());
    for _ in 0..10 {
        // Own entries are delivered at once while the broker is away.
        all[1].hub.tick_presence(true, false);
        let own = all[1].hub.presence_entries();
        own.into_iter().for_each(|entry| all[1].hub.receive_presence(entry));
        // Or they do not come back.
        all[2].tick();
    }
    assert_eq!((all[1].members("room"), all[2].members("room")), ("ann".to_owned(), "ann".to_owned()));
}

#[test]
fn a_server_that_stops_leaves_its_webhooks_to_another_one() {
    let mut log = Log::default();
    let mut all = three(&mut log);
    let (ann, _stays) = (all[0].join("room", Some("ann")), all[0].join("hall", Some("bob")));
    settle(&mut log, &mut all.each_mut());
    noted(&all);
    all[0].hub.close(std::time::Duration::ZERO);
    drop(ann);
    settle(&mut log, &mut all.each_mut());
    assert_eq!(noted(&all), ["(-ann) (room.)", "-ann room.", "(-ann) (room.)"]);
    all[0].hub.leave_presence();
    settle(&mut log, &mut all.each_mut());
    assert_eq!(noted(&all), ["", "-bob hall.", "(-bob) (hall.)"]);
    all[0].tick();
    settle(&mut log, &mut all.each_mut());
    assert_eq!(all[1].hub.0.state.lock().rosters.as_ref().unwrap().servers.len(), 2);
}

#[test]
fn lost_entries_are_noticed_and_the_roster_replaces_what_was_known() {
    let mut log = Log::default();
    let mut all = three(&mut log);
    let (ann, _bob) = (all[0].join("room", Some("ann")), all[0].join("room", Some("bob")));
    settle(&mut log, &mut all.each_mut());
    noted(&all);
    drop(ann);
    let _eve = all[0].join("hall", Some("eve"));
    let [a, b, c] = &mut all;
    settle(&mut log, &mut [a, b]);
    // The log no longer has these entries when the third server comes back.
    c.read = log.0.len();
    assert_eq!(c.members("room"), "ann bob");
    a.tick();
    a.pass(&mut log);
    (0..2).for_each(|_| _ = c.pass(&mut log));
    // It has requested the roster, but misses that as well.
    settle(&mut log, &mut [a, b]);
    c.read = log.0.len();
    [&*a, &*c].into_iter().for_each(Server::tick);
    settle(&mut log, &mut [a, b, c]);
    assert_eq!(c.noted(), "(-ann) (hall!) (+eve)");
    assert_eq!((c.members("room"), c.members("hall")), ("bob".to_owned(), "eve".to_owned()));
    assert_eq!((&*a.noted(), &*b.noted()), ("-ann hall! +eve", "(-ann) (hall!) (+eve)"));
}

#[test]
fn bytes_of_the_broker_are_not_trusted() {
    let mut log = Log::default();
    let mut all = three(&mut log);
    let _joined = [all[0].join("room", Some("ann")), all[0].join("hall", None)];
    settle(&mut log, &mut all.each_mut());
    all[0].hub.close(std::time::Duration::ZERO);
    all[0].hub.leave_presence();
    all[0].tick();
    let _late = Server::start(4, &log).pass(&mut log);
    settle(&mut log, &mut all.each_mut());
    for entry in &log.0 {
        let known = Entry::from_bytes(entry.clone()).unwrap();
        for end in 0..entry.len() {
            // Cut between rows, it is an entry with fewer rows.
            let cut = Entry::from_bytes(entry.slice(..end));
            let is_shorter = matches!(known.content, Content::Changes(_) | Content::Roster { .. });
            assert!(cut.is_none_or(|cut| is_shorter && cut != known), "{end} of {entry:?}");
        }
        for at in 0..entry.len() {
            let mut wrong = entry.to_vec();
            wrong[at] ^= 0xff;
            all[2].hub.receive_presence(wrong.into());
        }
    }
    let long = [entry_of(2, &Row::Count("x".repeat(257).into(), 1)), entry_of(2, &Row::Count("".into(), 1))];
    assert!(long.into_iter().all(|entry| Entry::from_bytes(entry).is_none()));
    let large = Member { id: "a".into(), info: Some("x".repeat(MAX_MEMBER).into()) };
    assert!(Entry::from_bytes(entry_of(2, &Row::Joined("a".into(), large.into(), "".into()))).is_none());
    assert!(Entry::from_bytes(Bytes::from(vec![0; MAX_ENTRY + 1])).is_none());
}

fn entry_of(server: u64, row: &Row) -> Bytes {
    let mut writer = EntryWriter::new(server);
    writer.change(row);
    writer.take().remove(0)
}

#[test]
fn a_server_cannot_fill_the_memory_of_others() {
    let mut rosters = Rosters::new(1);
    let mut writer = EntryWriter::new(2);
    writer.roster(std::iter::empty());
    let info: Box<str> = "x".repeat(MAX_MEMBER - 10).into();
    for number in 0..3000 {
        let member = Member { id: number.to_string().into(), info: Some(info.clone()) };
        writer.change(&Row::Joined("room".into(), member.into(), "".into()));
    }
    for number in 0..2 * MAX_SERVERS as u64 {
        let mut other = EntryWriter::new(100 + number);
        other.roster(std::iter::once(Row::Count(number.to_string().into(), 1)));
        for entry in writer.take().into_iter().chain(other.take()) {
            rosters.receive(Entry::from_bytes(entry).unwrap());
        }
    }
    assert_eq!(rosters.servers.len(), MAX_SERVERS);
    let full = &rosters.servers[&2];
    assert!(full.bytes <= MAX_BYTES && full.bytes > MAX_BYTES - MAX_MEMBER - 2 * OVERHEAD, "{}", full.bytes);
    rosters.receive(Entry { server: 3, number: 1, content: Content::Gone(2) });
    assert!(rosters.members("room").is_empty());
}
