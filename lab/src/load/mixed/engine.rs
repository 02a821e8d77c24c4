//! The loop of the generator: timers, events and connections.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::epoll;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use super::connection::{Connection, Pending, State};
use super::random::Poisson;
use super::reply;
use super::requests::{Group, Prepared};
use super::tally::{End, Latencies, Tally};
use super::{Mark, MixReport, Phases};
use crate::cases::mix::{Rhythm, Source};
use crate::interrupt::Interrupt;

/// Maximum number of connections that are opened at the same time before the load begins: less than any usual backlog.
const OPENING_AT_ONCE: usize = 64;

/// Maximum time that a client waits for its response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Delay after which a client that could not connect tries again.
const RETRY: Duration = Duration::from_millis(10);

/// Interval between checks for timeouts.
const SCAN: Duration = Duration::from_millis(50);

/// Maximum time for opening the connections before the load.
const OPEN_WITHIN: Duration = Duration::from_secs(10);

/// Data of the timer's events.
const TIMER: u64 = u64::MAX;

/// Maximum number of events per call: few, so that requests that become due meanwhile are not late.
const EVENTS: usize = 64;

/// The connection has failed.
const BROKEN: epoll::EventFlags = epoll::EventFlags::ERR.union(epoll::EventFlags::HUP);

const BUFFER: usize = 64 * 1024;

/// Times when a group's requests are due.
#[derive(Debug)]
enum Arrivals {
    Closed,
    Poisson { moments: Poisson, next: Instant },
    Waves { size: u32, every: Duration, next: Instant },
}

impl Arrivals {
    fn next(&self) -> Option<Instant> {
        match self {
            Self::Closed => None,
            Self::Poisson { next, .. } | Self::Waves { next, .. } => Some(*next),
        }
    }

    /// Returns the next time and the number of requests due at it, unless it is after `now`.
    fn take(&mut self, now: Instant) -> Option<(Instant, u32)> {
        match self {
            Self::Poisson { moments, next } if *next <= now => {
                let due = *next;
                *next += Duration::from_secs_f64(moments.gap());
                Some((due, 1))
            }
            Self::Waves { size, every, next } if *next <= now => {
                let due = *next;
                *next += *every;
                Some((due, *size))
            }
            _ => None,
        }
    }
}

/// State of a running group.
#[derive(Debug)]
struct Crowd<'a> {
    group: &'a Group,
    arrivals: Arrivals,
    /// Position in the group's order.
    place: usize,
    /// Idle connections, used in turn.
    free: VecDeque<usize>,
    /// Due times of requests that found no idle connection.
    waiting: VecDeque<Instant>,
    /// Index of this group's first connection.
    first: usize,
}

/// The state of a run.
pub(super) struct Engine<'a> {
    load: &'a Prepared,
    crowds: Vec<Crowd<'a>>,
    connections: Vec<Connection>,
    tallies: Vec<Tally>,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    timer: OwnedFd,
    /// Time for which the timer is set.
    armed: Option<Instant>,
    buffer: Vec<u8>,
    /// Connections that could not be opened, and the time to try again.
    retries: VecDeque<(Instant, usize)>,
    /// The measured period, once it is known.
    window: Option<(Instant, Instant)>,
    /// Requests due in the measured period that have not ended.
    unfinished: u64,
    bytes: u64,
    opened: u64,
    lateness: Latencies,
    /// Processor time of this thread: at the last mark, then between the two marks.
    cpu: f64,
}

fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

impl<'a> Engine<'a> {
    pub(super) fn new(load: &'a Prepared) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("no epoll")?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags).context("no timer")?;
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &timer, epoll::EventData::new_u64(TIMER), edge)?;
        let (mut crowds, mut connections) = (Vec::new(), Vec::new());
        for (index, group) in load.groups.iter().enumerate() {
            let first = connections.len();
            let source = |number| address_of(group.from, number);
            connections.extend((0..group.connections).map(|number| Connection::new(index, source(number))));
            crowds.push(Crowd {
                group,
                arrivals: Arrivals::Closed,
                place: 0,
                free: VecDeque::new(),
                waiting: VecDeque::new(),
                first,
            });
        }
        Ok(Self {
            load,
            crowds,
            connections,
            tallies: load.kinds.iter().map(|kind| Tally::new(kind)).collect::<Result<_>>()?,
            epoll,
            events: Vec::with_capacity(EVENTS),
            timer,
            armed: None,
            buffer: vec![0; BUFFER],
            retries: VecDeque::new(),
            window: None,
            unfinished: 0,
            bytes: 0,
            opened: 0,
            lateness: Latencies::new()?,
            cpu: 0.0,
        })
    }

    /// Opens persistent connections, a few at a time, before any request. Connections that the server refuses or leaves
    /// in its backlog are opened when needed; the load fails only if there is no listener.
    pub(super) fn open_all(&mut self, interrupt: &Interrupt) -> Result<()> {
        let deadline = Instant::now() + OPEN_WITHIN;
        let mut wanted: VecDeque<usize> = (0..self.connections.len())
            .filter(|index| self.crowds[self.connections[*index].group].group.keep_alive)
            .collect();
        let (mut opening, all, mut refused) = (Vec::new(), wanted.len(), 0);
        while !(wanted.is_empty() && opening.is_empty()) && Instant::now() < deadline {
            interrupt.check()?;
            while opening.len() < OPENING_AT_ONCE
                && let Some(index) = wanted.pop_front()
            {
                self.connections[index]
                    .open(self.load.address, &self.epoll, index)
                    .with_context(|| format!("cannot open connection {} to {}", index + 1, self.load.address))?;
                opening.push(index);
            }
            self.wait(Instant::now() + SCAN, |engine, index, flags| {
                let connection = &mut engine.connections[index];
                if flags.intersects(BROKEN | epoll::EventFlags::IN | epoll::EventFlags::RDHUP) {
                    connection.close();
                } else if flags.contains(epoll::EventFlags::OUT) {
                    connection.state = State::Idle;
                }
            })?;
            refused += opening.iter().filter(|index| self.connections[**index].state == State::Closed).count();
            opening.retain(|index| self.connections[*index].state == State::Connecting);
        }
        if all > 0 && refused == all {
            bail!("{} takes no connections", self.load.address);
        }
        Ok(())
    }

    /// Runs the load through all phases.
    pub(super) fn run(&mut self, phases: Phases, mark: &mut dyn FnMut(Mark), interrupt: &Interrupt) -> Result<()> {
        let start = Instant::now();
        let (from, until) = (start + phases.settle, start + phases.settle + phases.measure);
        let give_up = until + phases.tail;
        self.window = Some((from, until));
        let mut marks = VecDeque::from([(from, Mark::Begin), (until, Mark::End)]);
        let mut scan = start + SCAN;
        self.begin(start);
        loop {
            let now = Instant::now();
            if marks.front().is_some_and(|(moment, _)| *moment <= now)
                && let Some((_, reached)) = marks.pop_front()
            {
                self.cpu = thread_seconds() - self.cpu;
                mark(reached);
                if reached == Mark::End {
                    self.count_starved(from);
                }
            }
            if now >= give_up || (now >= until && self.unfinished == 0) {
                break;
            }
            if now >= scan {
                interrupt.check()?;
                self.time_out_requests(now);
                scan = now + SCAN;
            }
            self.send_due_requests(now);
            self.retry(now);
            let due = self.crowds.iter().filter_map(|crowd| crowd.arrivals.next());
            let mark = marks.front().map(|(moment, _)| *moment);
            let retry = self.retries.front().map(|(moment, _)| *moment);
            let next = due.chain(mark).chain(retry).fold(scan, Instant::min);
            self.wait(next, Self::event)?;
        }
        self.leave();
        Ok(())
    }

    /// Counts requests that were due before the measured period and have waited through all of it: in a closed loop
    /// without responses, no request becomes due in that period, so these would be missing.
    fn count_starved(&mut self, from: Instant) {
        for connection in &mut self.connections {
            if let Some(pending) = &mut connection.pending
                && pending.due < from
            {
                pending.counted = true;
                self.unfinished += 1;
                self.tallies[self.load.groups[connection.group].requests[pending.request].kind].due();
            }
        }
    }

    /// Returns the results.
    pub(super) fn report(self, phases: Phases) -> MixReport {
        let mut all = self.lateness.clone();
        all.clear();
        self.tallies.iter().for_each(|tally| all.merge(tally.latencies()));
        let mut kinds: Vec<_> = self.tallies.iter().map(Tally::sample).collect();
        for (index, crowd) in self.crowds.iter().enumerate() {
            // The counts per connection are meaningful if it repeats one kind of request that no other group sends.
            if !matches!(crowd.arrivals, Arrivals::Closed) {
                continue;
            }
            let kind = crowd.group.requests[0].kind;
            let others = self.crowds.iter().enumerate().filter(|(other, _)| *other != index);
            let alone = !others.flat_map(|(_, other)| &other.group.requests).any(|request| request.kind == kind);
            if alone && crowd.group.requests.iter().all(|request| request.kind == kind) {
                let own = &self.connections[crowd.first..crowd.first + crowd.group.connections as usize];
                let good = || own.iter().map(|connection| connection.good);
                kinds[kind].per_connection = good().min().zip(good().max());
            }
        }
        MixReport {
            seconds: phases.measure.as_secs_f64(),
            responses: self.tallies.iter().map(Tally::responses).sum(),
            bytes: self.bytes,
            kinds,
            latency: all.summary(),
            generator_cpu: self.cpu,
            opened: self.opened,
            lateness: self.lateness.summary(),
        }
    }

    fn begin(&mut self, now: Instant) {
        for index in 0..self.crowds.len() {
            let crowd = &mut self.crowds[index];
            let seed = self.load.seed.wrapping_add(index as u64);
            crowd.arrivals = match crowd.group.rhythm {
                Rhythm::Poisson { per_second } => {
                    let mut moments = Poisson::new(per_second, seed);
                    let next = now + Duration::from_secs_f64(moments.gap());
                    Arrivals::Poisson { moments, next }
                }
                Rhythm::Waves { size, every_ms } => {
                    Arrivals::Waves { size, every: Duration::from_millis(u64::from(every_ms)), next: now }
                }
                Rhythm::Closed | Rhythm::PoissonShare { .. } => Arrivals::Closed,
            };
            let own = crowd.first..crowd.first + crowd.group.connections as usize;
            if matches!(crowd.arrivals, Arrivals::Closed) {
                own.for_each(|connection| self.ask_at(connection, Instant::now()));
            } else {
                crowd.free.extend(own);
            }
        }
    }

    /// Sends requests that are due by now, or queues them for an idle connection.
    fn send_due_requests(&mut self, now: Instant) {
        for index in 0..self.crowds.len() {
            while let Some((due, count)) = self.crowds[index].arrivals.take(now) {
                let counted = self.counts(due);
                for _ in 0..count {
                    self.unfinished += u64::from(counted);
                    let crowd = &mut self.crowds[index];
                    match crowd.free.pop_front() {
                        Some(connection) => {
                            // All requests of a wave but the first are late, because they cannot be sent at once.
                            if counted && count == 1 {
                                self.lateness.add(due.elapsed());
                            }
                            self.ask(connection, due, counted);
                        }
                        None => crowd.waiting.push_back(due),
                    }
                }
            }
        }
    }

    fn counts(&self, moment: Instant) -> bool {
        self.window.is_some_and(|(from, until)| from <= moment && moment < until)
    }

    /// Returns the next request of a group's order.
    fn choose(&mut self, crowd: usize) -> usize {
        let crowd = &mut self.crowds[crowd];
        let chosen = crowd.group.order[crowd.place];
        crowd.place = (crowd.place + 1) % crowd.group.order.len();
        chosen as usize
    }

    /// Sends a closed loop's next request.
    fn ask_at(&mut self, index: usize, now: Instant) {
        let counted = self.counts(now);
        self.unfinished += u64::from(counted);
        self.ask(index, now, counted);
    }

    fn ask(&mut self, index: usize, due: Instant, counted: bool) {
        let group = self.connections[index].group;
        let request = self.choose(group);
        if counted {
            self.tallies[self.load.groups[group].requests[request].kind].due();
        }
        self.connections[index].pending = Some(Pending { request, due, counted });
        self.submit(index);
    }

    /// Sends the pending request, on a new connection if there is none (any more); if one is being opened, once it is
    /// open.
    fn submit(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let Some(pending) = connection.pending else { return };
        if connection.state == State::Connecting {
            return;
        }
        let request = &self.load.groups[connection.group].requests[pending.request];
        if connection.state == State::Idle && connection.send(&request.bytes).is_ok() {
            return;
        }
        match connection.open(self.load.address, &self.epoll, index) {
            Ok(()) => self.opened += u64::from(self.counts(Instant::now())),
            Err(_) => self.finish(index, End::Connect, false),
        }
    }

    /// Ends the pending request with this result.
    fn finish(&mut self, index: usize, end: End, keep: bool) {
        self.finish_at(Instant::now(), index, end, keep);
    }

    fn finish_at(&mut self, now: Instant, index: usize, end: End, keep: bool) {
        let in_time = self.counts(now);
        let connection = &mut self.connections[index];
        if keep {
            connection.state = State::Idle;
        } else {
            connection.close();
        }
        let Some(pending) = connection.pending.take() else { return };
        let kind = self.load.groups[connection.group].requests[pending.request].kind;
        connection.good += u64::from(end == End::Good && in_time);
        self.unfinished -= u64::from(pending.counted);
        self.tallies[kind].end(end, now.saturating_duration_since(pending.due), pending.counted, in_time);
        if end == End::Connect {
            self.retries.push_back((now + RETRY, index));
        } else {
            self.next(index, now);
        }
    }

    /// Called when a connection has become idle.
    fn next(&mut self, index: usize, now: Instant) {
        let crowd = &mut self.crowds[self.connections[index].group];
        if matches!(crowd.arrivals, Arrivals::Closed) {
            self.ask_at(index, now);
        } else if let Some(due) = crowd.waiting.pop_front() {
            let counted = self.counts(due);
            self.ask(index, due, counted);
        } else {
            crowd.free.push_back(index);
        }
    }

    fn retry(&mut self, now: Instant) {
        while self.retries.front().is_some_and(|(moment, _)| *moment <= now)
            && let Some((_, index)) = self.retries.pop_front()
        {
            self.next(index, now);
        }
    }

    /// Ends requests that have waited too long.
    fn time_out_requests(&mut self, now: Instant) {
        for index in 0..self.connections.len() {
            if self.connections[index]
                .pending
                .is_some_and(|pending| now.saturating_duration_since(pending.due) > RESPONSE_TIMEOUT)
            {
                self.finish(index, End::Timeout, false);
            }
        }
        for index in 0..self.crowds.len() {
            while let Some(due) = self.crowds[index].waiting.front().copied()
                && now.saturating_duration_since(due) > RESPONSE_TIMEOUT
            {
                self.crowds[index].waiting.pop_front();
                let counted = self.counts(due);
                let in_time = self.counts(now);
                let kind = self.kind_of_next(index);
                if counted {
                    self.tallies[kind].due();
                }
                self.unfinished -= u64::from(counted);
                self.tallies[kind].end(End::Timeout, now - due, counted, in_time);
            }
        }
    }

    fn kind_of_next(&mut self, crowd: usize) -> usize {
        let request = self.choose(crowd);
        self.load.groups[crowd].requests[request].kind
    }

    /// Counts requests without a response at the end of the run.
    fn leave(&mut self) {
        let end = Instant::now();
        for connection in &self.connections {
            if let Some(pending) = connection.pending.filter(|pending| pending.counted) {
                let kind = self.load.groups[connection.group].requests[pending.request].kind;
                self.tallies[kind].unanswered(end.saturating_duration_since(pending.due));
            }
        }
        for index in 0..self.crowds.len() {
            while let Some(due) = self.crowds[index].waiting.pop_front() {
                if self.counts(due) {
                    let kind = self.kind_of_next(index);
                    self.tallies[kind].due();
                    self.tallies[kind].unanswered(end.saturating_duration_since(due));
                }
            }
        }
    }

    /// Waits for events until a given time, and passes on those of current sockets.
    fn wait(&mut self, until: Instant, mut handle: impl FnMut(&mut Self, usize, epoll::EventFlags)) -> Result<()> {
        let now = Instant::now();
        let nothing = Timespec { tv_sec: 0, tv_nsec: 0 };
        // A timer that fires too early costs less than setting it again for each wait.
        if until > now && self.armed.is_none_or(|armed| armed <= now || until < armed) {
            let left = until - now;
            let value = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos().into() };
            let once = Itimerspec { it_interval: nothing, it_value: value };
            rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).context("no timer")?;
            self.armed = Some(until);
        }
        let limit = (until <= now).then_some(&nothing);
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), limit) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for events"),
        }
        for event in &events {
            let (data, flags) = (event.data.u64(), event.flags);
            let index = (data & u64::from(u32::MAX)) as usize;
            if data != TIMER && self.connections[index].is_life(data) {
                handle(self, index, flags);
            }
        }
        self.events = events;
        Ok(())
    }

    fn event(&mut self, index: usize, flags: epoll::EventFlags) {
        if self.connections[index].state == State::Connecting {
            if flags.intersects(BROKEN) {
                return self.finish(index, End::Connect, false);
            }
            if flags.contains(epoll::EventFlags::OUT) {
                self.connections[index].state = State::Idle;
                let life = self.connections[index].life();
                self.submit(index);
                if self.connections[index].life() != life {
                    return;
                }
            }
        } else if flags.contains(epoll::EventFlags::OUT)
            && let Some(pending) = self.connections[index].pending
        {
            let connection = &mut self.connections[index];
            // An error shows again when the reply is read.
            let _ = connection.send_rest(&self.load.groups[connection.group].requests[pending.request].bytes);
        }
        // Includes data sent before a request: a server without capacity may respond and close at once.
        if flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::RDHUP | BROKEN) {
            self.read(index, flags.intersects(epoll::EventFlags::RDHUP | BROKEN));
        }
    }

    /// Reads available data; to the end, if the server has finished sending.
    fn read(&mut self, index: usize, ends: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let life = self.connections[index].life();
        while self.connections[index].life() == life {
            let received = self.connections[index].receive(&mut buffer);
            // One time for the bytes and the response that they complete: the measured period may begin in between.
            let now = Instant::now();
            match received {
                Ok(None) => break,
                Ok(Some(0)) | Err(_) => {
                    let held = std::mem::take(&mut self.connections[index].held);
                    self.reply(now, index, &held, true);
                    break;
                }
                Ok(Some(count)) => {
                    if self.counts(now) {
                        self.bytes += count as u64;
                    }
                    let mut held = std::mem::take(&mut self.connections[index].held);
                    if held.is_empty() {
                        self.reply(now, index, &buffer[..count], false);
                    } else {
                        held.extend_from_slice(&buffer[..count]);
                        self.reply(now, index, &held, false);
                    }
                    // A short read has emptied the socket; more data causes a new event.
                    if count < buffer.len() && !ends {
                        break;
                    }
                }
            }
        }
        self.buffer = buffer;
    }

    /// Handles all received bytes of a reply.
    fn reply(&mut self, now: Instant, index: usize, bytes: &[u8], ended: bool) {
        let connection = &mut self.connections[index];
        let Some(pending) = connection.pending else { return connection.close() };
        let group = &self.load.groups[connection.group];
        match reply::parse(bytes, ended) {
            Ok(None) => connection.held.extend_from_slice(bytes),
            Ok(Some(reply)) if reply.length == bytes.len() => {
                let right = group.requests[pending.request].body.as_deref();
                let end = End::of(reply.status, &reply.body, right);
                let keep = group.keep_alive && !reply.closes && !ended;
                self.finish_at(now, index, end, keep);
            }
            Ok(Some(_)) | Err(reply::Broken) => self.finish_at(now, index, End::Read, false),
        }
    }
}

fn address_of(from: Source, number: u32) -> Option<Ipv4Addr> {
    match from {
        Source::Any => None,
        Source::One(address) => Some(address),
        Source::Each(first) => Some(Ipv4Addr::from(u32::from(first).wrapping_add(number))),
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
