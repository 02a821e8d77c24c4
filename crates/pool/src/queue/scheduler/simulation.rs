//! The scheduler under thousands of generated loads: its real code, with a simulated clock and workers.
//!
//! A load is generated from a seed: a number of workers, kinds of requests with their service times (even, spread out,
//! with rare long ones, of a changing length), and clients (a fixed number at once, random arrivals, or waves). The
//! server learns of the end of a request a little later, and a worker that slept begins a little later. After each
//! event the rules are checked:
//!
//! - no request waits for longer than `ALLOWED` while a worker is idle;
//! - each request is run exactly once.

use super::test_scheduler::TestScheduler;
use crate::queue::shares::Shares;
use crate::queue::waiting::Limits;
use crate::response::sink::ResponseBody;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

/// Maximum wait of a request while a worker is idle, in microseconds: it was put behind requests that were expected to
/// be short, which the next check, or the one after that, notices.
const ALLOWED: u64 = 1_000;
/// Time until a sleeping worker begins a request, in microseconds.
const WAKE: u64 = 30;
/// Number of requests of a load.
const REQUESTS: u64 = 300;

/// A random number generator (PCG's multiplier and increment, the upper half of the state).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Exponentially distributed.
    fn around(&mut self, mean: u64) -> u64 {
        let uniform = (self.next() as f64 + 1.0) / f64::from(1u32 << 31);
        (-(uniform.ln()) * mean as f64) as u64 + 1
    }
}

/// A kind of request and how long it takes.
#[derive(Debug, Clone, Copy)]
enum Times {
    Even(u64),
    Spread(u64),
    /// One in this many takes a thousand times as long.
    RarelyLong(u64, u64),
    /// Short until the middle of the load, then long.
    Turns(u64, u64),
}

impl Times {
    fn any(random: &mut Random) -> Self {
        let usual = [5, 10, 20, 50, 200, 1_000, 5_000, 20_000, 100_000][random.below(9) as usize];
        match random.below(6) {
            0 | 1 => Self::Even(usual),
            2 | 3 => Self::Spread(usual),
            4 => Self::RarelyLong(usual.min(50), 5 + random.below(40)),
            _ => Self::Turns(usual.min(50), usual * 10),
        }
    }

    fn draw(self, random: &mut Random, request: u64) -> u64 {
        match self {
            Self::Even(time) => time,
            Self::Spread(mean) => random.around(mean),
            Self::RarelyLong(time, one_in) if random.below(one_in) == 0 => time * 1_000,
            Self::RarelyLong(time, _) => time,
            Self::Turns(short, long) => {
                if request < REQUESTS / 2 {
                    short
                } else {
                    long
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive,
    /// A worker polls its lane.
    Begin(usize),
    End(usize),
    Hear(usize, u64, u64),
    Look,
    Tick,
}

/// Behavior of clients.
#[derive(Debug, Clone, Copy)]
enum Clients {
    /// A number of clients, each of which sends its next request when it has its response.
    Closed(u64),
    /// Random arrivals, with this mean interval.
    Open(u64),
    /// This many at once, at this interval.
    Waves(u64, u64),
}

struct Simulation {
    stage: TestScheduler,
    random: Random,
    kinds: Vec<Times>,
    clients: Clients,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    arrived: u64,
    done: u64,
    /// Clients of requests that have not ended.
    clients_of: HashMap<u64, ResponseBody>,
    /// Requests that wait although a worker is idle, and since when.
    waits_since: HashMap<u64, u64>,
    /// A check is scheduled.
    looks: bool,
    asleep: Vec<bool>,
    /// By worker: when the server learns of the last request's end.
    heard: Vec<u64>,
    what: String,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        random.next();
        let workers = 1 + random.below(8);
        let kinds: Vec<_> = (0..1 + random.below(4)).map(|_| Times::any(&mut random)).collect();
        let clients = match random.below(3) {
            0 => Clients::Closed(1 + random.below(40)),
            1 => Clients::Open(1 + random.below(5_000)),
            _ => Clients::Waves(1 + random.below(60), 1 + random.below(50_000)),
        };
        let hour = Duration::from_secs(3600);
        let limits = Limits { requests: usize::MAX, patience: hour, target: hour };
        let stage = TestScheduler::with(workers as u32, limits, Shares::default());
        let what = format!("seed {seed}: {workers} workers, {kinds:?}, {clients:?}");
        let mut simulation = Self {
            stage,
            random,
            kinds,
            clients,
            events: BinaryHeap::new(),
            sequence: 0,
            arrived: 0,
            done: 0,
            clients_of: HashMap::new(),
            waits_since: HashMap::new(),
            looks: false,
            asleep: vec![true; workers as usize],
            heard: vec![0; workers as usize],
            what,
        };
        let first = match clients {
            Clients::Closed(clients) => clients,
            Clients::Open(_) | Clients::Waves(..) => 1,
        };
        (0..first).for_each(|_| simulation.at(0, Event::Arrive));
        simulation.at(0, Event::Tick);
        simulation
    }

    fn at(&mut self, after: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((self.stage.now + after, self.sequence, event)));
    }

    fn run(mut self) {
        let mut ticks = 0;
        while self.done < REQUESTS {
            let Some(Reverse((time, _, event))) = self.events.pop() else { panic!("each tick schedules the next") };
            // The first ticks may expire requests.
            ticks = if event == Event::Tick && self.events.is_empty() { ticks + 1 } else { 0 };
            assert!(
                ticks < 1_000,
                "{}: nothing happens any more, {} of {REQUESTS} done; {:?}",
                self.what,
                self.done,
                self.stage.places()
            );
            self.stage.now = time;
            self.play(event);
            self.wake_workers();
            self.check();
        }
        assert!(self.clients_of.is_empty() && self.stage.scheduler.waiting() == 0, "{}", self.what);
    }

    fn play(&mut self, event: Event) {
        match event {
            Event::Arrive => self.arrive(),
            Event::Begin(worker) if self.stage.can_begin(worker) => {
                let request = self.arrived;
                self.stage.begin(worker);
                let id = self.running(worker);
                let kind = self.kinds[id as usize % self.kinds.len()];
                let time = kind.draw(&mut self.random, request);
                self.at(time, Event::End(worker));
            }
            Event::Begin(worker) => self.asleep[worker] = true,
            Event::End(worker) => {
                let (number, micros) = self.stage.end(worker);
                // In the order in which they happened.
                let heard = self.heard[worker].max(self.stage.now + self.random.below(40));
                self.heard[worker] = heard;
                self.at(heard - self.stage.now, Event::Hear(worker, number, micros));
                self.at(0, Event::Begin(worker));
            }
            Event::Hear(worker, number, micros) => {
                let id = self.stage.lane(worker).in_flight.get(number).map(|request| request.pending.request.id.0);
                let id = id.unwrap_or_else(|| panic!("{}: the end of a request that does not run", self.what));
                self.stage.hear(worker, number, micros);
                assert!(self.clients_of.remove(&id).is_some(), "{}: request {id} ran twice", self.what);
                self.done += 1;
                if matches!(self.clients, Clients::Closed(_)) && self.arrived < REQUESTS {
                    self.at(5, Event::Arrive);
                }
            }
            Event::Look => {
                let now = self.stage.instant();
                self.looks = false;
                if let Some(again) = self.stage.scheduler.spread(0, now) {
                    self.look_in(again.as_micros() as u64);
                }
            }
            Event::Tick => {
                let now = self.stage.instant();
                self.stage.scheduler.expire(now);
                self.at(100_000, Event::Tick);
            }
        }
    }

    /// The request that a worker runs: the last one it has begun.
    fn running(&self, worker: usize) -> u64 {
        let lane = self.stage.lane(worker);
        let number = self.stage.workers[worker].runs.map(|(number, _)| number);
        number.and_then(|number| lane.in_flight.get(number)).map_or(0, |request| request.pending.request.id.0)
    }

    fn arrive(&mut self) {
        let requests = if let Clients::Waves(requests, _) = self.clients { requests } else { 1 };
        for _ in 0..requests.min(REQUESTS - self.arrived) {
            let id = self.arrived;
            let script = format!("/{}.php", id as usize % self.kinds.len());
            let client = self.random.below(5);
            let receiver = self.stage.submit_for(id, &script, client, None);
            self.clients_of.insert(id, receiver);
            self.arrived += 1;
        }
        if self.arrived < REQUESTS {
            match self.clients {
                Clients::Closed(_) => {}
                Clients::Open(mean) => {
                    let pause = self.random.around(mean);
                    self.at(pause, Event::Arrive);
                }
                Clients::Waves(_, every) => self.at(every, Event::Arrive),
            }
        }
    }

    fn look_in(&mut self, micros: u64) {
        self.looks = true;
        self.at(micros + self.random.0 % 20, Event::Look);
    }

    /// Simulates the wake-ups of workers after published requests, and of the watch after its notification.
    fn wake_workers(&mut self) {
        for worker in 0..self.asleep.len() {
            if self.asleep[worker] && self.stage.can_begin(worker) {
                self.asleep[worker] = false;
                self.at(WAKE, Event::Begin(worker));
            }
        }
        if !self.looks && self.stage.scheduler.is_watched(0) {
            self.look_in(100);
        }
    }

    fn check(&mut self) {
        let mut since = HashMap::new();
        if self.stage.scheduler.idle_longest().is_some() {
            for id in self.stage.waiting() {
                let began = self.waits_since.get(&id).copied().unwrap_or(self.stage.now);
                let waited = self.stage.now - began;
                assert!(
                    waited <= ALLOWED,
                    "{}: request {id} has waited for {waited} us while a worker is idle: {:?}",
                    self.what,
                    self.stage.places(),
                );
                since.insert(id, began);
            }
        }
        self.waits_since = since;
    }
}

/// An open loop of `times` as many requests as the workers can serve, all of one length. Returns for each begun request
/// its start and its age then. Time is simulated.
fn overload(workers: u32, times: u64, service: u64, patience: u64, end: u64) -> Vec<(u64, u64)> {
    let limits =
        Limits { requests: usize::MAX, patience: Duration::from_micros(patience), target: Duration::from_secs(2) };
    let mut stage = TestScheduler::with(workers, limits, Shares::default());
    stage.teach("/0.php", service);
    let every = service / u64::from(workers) / times;
    let (mut clients, mut begun, mut ends) = (Vec::new(), Vec::new(), vec![None; workers as usize]);
    while stage.now < end {
        let id = clients.len() as u64;
        clients.push(stage.submit_for(id, "/0.php", 0, None));
        stage.now += every;
        if id.is_multiple_of(100_000 / every) {
            let now = stage.instant();
            stage.scheduler.expire(now);
        }
        for (worker, ends) in ends.iter_mut().enumerate() {
            if let Some((_, number)) = ends.take_if(|(at, _)| *at <= stage.now) {
                let (_, micros) = stage.end(worker);
                stage.hear(worker, number, micros);
            }
            if stage.can_begin(worker) {
                let number = stage.begin(worker);
                let request = stage.lane(worker).in_flight.get(number).unwrap();
                // One request arrived at each step.
                begun.push((stage.now, stage.now - request.pending.request.id.0 * every));
                *ends = Some((stage.now + service, number));
            }
        }
    }
    begun
}

#[test]
fn in_overload_workers_stay_busy_with_requests_that_are_not_late() {
    const QUEUE_TIMEOUT: u64 = 1_000_000;
    let end = 6 * QUEUE_TIMEOUT;
    for (workers, times, service) in [(1, 2, 20_000), (4, 2, 20_000), (2, 10, 40_000), (8, 10, 80_000)] {
        let begun = overload(workers, times, service, QUEUE_TIMEOUT, end);
        let what = format!("{workers} workers, {times} times as many requests of {service} us");
        let most = end / service * u64::from(workers);
        assert!(begun.len() as u64 * 100 >= most * 95, "{what}: {} of {most} were run", begun.len());
        // A request may wait in its lane while the one before it runs.
        let late = begun.iter().find(|(_, age)| *age > QUEUE_TIMEOUT + service);
        assert!(late.is_none(), "{what}: {late:?}");
        // Once the queue is overloaded, requests are begun with time left to run.
        let old = begun.iter().find(|(at, age)| *at > 3 * QUEUE_TIMEOUT && *age + service > QUEUE_TIMEOUT * 3 / 4);
        assert!(old.is_none(), "{what}: {old:?}");
    }
}

#[test]
fn no_request_waits_while_a_worker_is_idle_and_every_request_is_run_once() {
    let loads = std::env::var("HOWDAH_TEST_SIMULATED_LOADS").ok().and_then(|loads| loads.parse().ok()).unwrap_or(500);
    for seed in 0..loads {
        Simulation::new(seed).run();
    }
}
