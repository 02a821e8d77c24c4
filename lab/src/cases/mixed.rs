//! The cases of suite `mixed`: realistic loads, with slow and fast requests at the same time, waves, and overload.

use std::net::Ipv4Addr;

use super::mix::{Clients, Draw, Mix, Rhythm, Scope, Source, Work};
use super::{Case, Expect, Pool};

/// PHP workers of every case here.
const WORKERS: u32 = 8;

/// First address of the clients that have a separate address each.
const LIGHT_CLIENT: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);

/// The address of the greedy client.
const HEAVY_CLIENT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The case whose capacity the open loops of ordinary requests refer to.
const OPEN_CAPACITY: &str = "open-capacity";

/// The case whose capacity the overload with 5 ms of computing refers to.
const OVERLOAD_CAPACITY: &str = "overload-capacity";

fn case(id: &str, title: &str, about: &str, clients: impl IntoIterator<Item = Clients>) -> Case {
    let mix = Mix::of(clients);
    let expect = Expect::Exactly { media_type: "text/html", body: b"Hello, world!".to_vec() };
    Case {
        mix: Some(mix.clone()),
        accept_encoding: "identity".into(),
        ..Case::script(id, title, about, expect).path("/hello.php").load(mix.connections(), WORKERS)
    }
}

fn fast(connections: u32) -> Clients {
    Clients::closed("fast", connections, Work::Hello)
}

fn slow(connections: u32, work: Work) -> Clients {
    Clients::closed("slow", connections, work)
}

fn open(connections: u32, rhythm: Rhythm, requests: Vec<Draw>) -> Clients {
    Clients { requests, connections, keep_alive: true, from: Source::Any, rhythm }
}

/// Returns every case.
pub fn cases() -> Vec<Case> {
    let mut cases = closed();
    cases.extend(tails());
    cases.extend(open_loops());
    cases.extend(waves());
    cases.extend(heavy_client_cases());
    cases.extend(overload());
    cases.extend(pools());
    cases
}

/// Their names, for the suite.
pub const IDS: &[&str] = &[
    "mix-sleep-1",
    "mix-sleep-4",
    "mix-compute-2",
    "mix-compute-4",
    "mix-both",
    "mix-lognormal",
    "mix-pareto",
    "open-capacity",
    "open-50",
    "open-80",
    "open-95",
    "open-own-80",
    "open-own-95",
    "waves",
    "waves-hello",
    "greedy",
    "greedy-hello",
    "crowd-100",
    "crowd-500",
    "crowd-1500",
    "crowd-4000",
    "overload-capacity",
    "overload-2",
    "overload-10",
    "growing",
    "kept-alive",
    "closing",
    "replacing",
];

fn closed() -> Vec<Case> {
    let compute = |ms| Work::Compute { ms };
    vec![
        case(
            "mix-sleep-1",
            "1 × usleep with 7 × hello",
            "a request that waits 20 ms, with seven that take no time",
            [fast(7), slow(1, Work::Sleep)],
        ),
        case(
            "mix-sleep-4",
            "4 × usleep with 4 × hello",
            "half of the workers wait, the other half could serve",
            [fast(4), slow(4, Work::Sleep)],
        ),
        case(
            "mix-compute-2",
            "2 × 10 ms of computing with 6 × hello",
            "as many long computations as processors",
            [fast(6), slow(2, compute(10.0))],
        ),
        case(
            "mix-compute-4",
            "4 × 1.5 ms of computing with 4 × hello",
            "more short computations than processors",
            [fast(4), slow(4, compute(1.5))],
        ),
        case(
            "mix-both",
            "4 × usleep with 4 × 1.5 ms of computing",
            "requests that wait, with requests that compute",
            [Clients::closed("fast", 4, compute(1.5)), slow(4, Work::Sleep)],
        ),
    ]
}

fn tails() -> Vec<Case> {
    let tail = |id: &str, title: &str, work: Work| {
        let about = "computing whose time has a heavy tail; two requests for each worker";
        case(id, title, about, [Clients::closed("tail", 2 * WORKERS, work)])
    };
    vec![
        tail("mix-lognormal", "lognormal computing", Work::LogNormal { median_ms: 1.0, sigma: 1.5 }),
        tail("mix-pareto", "Pareto computing", Work::Pareto { least_ms: 0.5, alpha: 1.2 }),
    ]
}

/// Mostly quick requests, some that compute, a few that wait.
fn ordinary() -> Vec<Draw> {
    let draw = |kind: &str, work, weight| Draw { kind: kind.into(), work, weight };
    vec![
        draw("fast", Work::Hello, 90.0),
        draw("computing", Work::Compute { ms: 1.5 }, 8.0),
        draw("waiting", Work::Sleep, 2.0),
    ]
}

fn open_loops() -> Vec<Case> {
    let mut cases = vec![case(
        OPEN_CAPACITY,
        "ordinary requests, as many as it can",
        "how many ordinary requests a system serves; the open loops refer to it",
        [open(4 * WORKERS, Rhythm::Closed, ordinary())],
    )];
    for (prefix, scope, whose) in
        [("open", Scope::Slowest, "the slowest system's"), ("open-own", Scope::Own, "its own")]
    {
        for percent in [50, 80, 95] {
            if scope == Scope::Own && percent == 50 {
                continue;
            }
            let rhythm = Rhythm::PoissonShare { share: f64::from(percent) / 100.0, of: OPEN_CAPACITY, scope };
            cases.push(case(
                &format!("{prefix}-{percent}"),
                &format!("ordinary requests at {percent} % of {whose} capacity"),
                "open loop: requests come at random times, whether or not the system keeps up",
                [open(1000, rhythm, ordinary())],
            ));
        }
    }
    cases
}

fn waves() -> Vec<Case> {
    let wave = |kind: &str, size, every_ms, work| {
        Clients::closed(kind, 2 * size, work).rhythm(Rhythm::Waves { size, every_ms })
    };
    vec![
        case(
            "waves",
            "waves of computing with single requests",
            "repeated waves of 64 requests of 1.5 ms, with single quick requests at random times",
            [
                wave("wave", 64, 250, Work::Compute { ms: 1.5 }),
                Clients::closed("fast", 64, Work::Hello).rhythm(Rhythm::Poisson { per_second: 200.0 }),
            ],
        ),
        case(
            "waves-hello",
            "waves of hello",
            "500 quick requests at once, twice a second",
            [wave("wave", 500, 500, Work::Hello)],
        ),
    ]
}

fn heavy_client_cases() -> Vec<Case> {
    let against = |id: &str, title: &str, work: Work| {
        case(
            id,
            title,
            "one client with 200 connections, and twenty with one each; a fair server gives each client the same",
            [
                Clients::closed("modest", 20, work.clone()).from(Source::Each(LIGHT_CLIENT)),
                Clients::closed("greedy", 200, work).from(Source::One(HEAVY_CLIENT)),
            ],
        )
    };
    vec![
        against("greedy", "a greedy client, 1.5 ms of computing", Work::Compute { ms: 1.5 }),
        against("greedy-hello", "a greedy client, hello", Work::Hello),
    ]
}

fn overload() -> Vec<Case> {
    let crowd = |connections: u32| {
        case(
            &format!("crowd-{connections}"),
            &format!("hello, {connections} connections at once"),
            "quick requests from clients that repeat as soon as they get a response, refusals included",
            [Clients::closed("fast", connections, Work::Hello)],
        )
    };
    let compute = Work::Compute { ms: 5.0 };
    let mut cases: Vec<Case> = [100, 500, 1500, 4000].map(crowd).into();
    cases.push(case(
        OVERLOAD_CAPACITY,
        "5 ms of computing, as many as it can",
        "how many computations a system serves; the overloads refer to it",
        [Clients::closed("all", 2 * WORKERS, compute.clone())],
    ));
    for times in [2, 10] {
        let rhythm = Rhythm::PoissonShare { share: f64::from(times), of: OVERLOAD_CAPACITY, scope: Scope::Own };
        let mut overload = case(
            &format!("overload-{times}"),
            &format!("5 ms of computing, {times} times as many as it can"),
            "open loop with more than the system can do: some must wait or be refused, and the rest must not suffer for it",
            [Clients::closed("all", 4000, compute.clone()).rhythm(rhythm)],
        );
        overload.pool.queue_timeout_ms = Some(QUEUE_TIMEOUT_MS);
        cases.push(overload);
    }
    cases
}

/// Maximum time in the queue under overload, for systems with such a setting.
pub const QUEUE_TIMEOUT_MS: u32 = 1000;

fn pools() -> Vec<Case> {
    let mut growing = case(
        "growing",
        "8 × usleep on 1 to 8 workers",
        "a pool that starts with one worker, from the first request on",
        [slow(8, Work::Sleep)],
    );
    growing.pool.min_workers = Some(1);
    growing.cold = true;
    let mut replacing = case(
        "replacing",
        "hello, a new worker every 100 requests",
        "quick requests while workers are replaced again and again",
        [fast(8)],
    );
    replacing.pool = Pool { max_requests: Some(100), ..Pool::default() };
    vec![
        growing,
        case("kept-alive", "hello, 8 connections kept alive", "the peer of the next case", [fast(8)]),
        case(
            "closing",
            "hello, a connection for each request",
            "connecting is part of the latency",
            [fast(8).closing()],
        ),
        replacing,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_has_every_case_in_order_and_capacities_come_first() {
        let all = cases();
        let ids: Vec<&str> = all.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(ids, IDS);
        for (place, case) in all.iter().enumerate() {
            let mix = case.mix.as_ref().unwrap();
            if let Some((of, _)) = mix.capacity_case() {
                assert!(ids[..place].contains(&of), "{}: {of}", case.id);
            }
            assert_eq!(case.connections, mix.connections(), "{}", case.id);
        }
    }

    #[test]
    fn loads_in_words() {
        let words = |id: &str| cases().into_iter().find(|case| case.id == id).unwrap().record().clients.join(" | ");
        assert_eq!(words("mix-sleep-1"), "hello on 7 connections | usleep 20 ms on 1 connection");
        assert_eq!(
            words("open-80"),
            "90 % hello, 8 % 1.5 ms of computing, 2 % usleep 20 ms on 1000 connections, open loop, at random times, 0.8 × the \
             slowest system's rate on open-capacity"
        );
        assert!(words("greedy").contains("each from its own address (127.0.1.1 and up)"), "{}", words("greedy"));
        assert!(words("waves").contains("64 at once every 250 ms"), "{}", words("waves"));
        assert_eq!(words("closing"), "hello on 8 connections, a new one for each request");
    }
}
