//! Tests of the assignment of requests.

use super::test_scheduler::{TestScheduler, share};
use super::*;
use crate::lane::precedence;
use crate::queue::waiting::Limits;
use crate::request::estimate::ExpectedDuration;
use howdah_config::Share;

const HELLO: &str = "/hello.php";
const REPORT: &str = "/report.php";

/// A stage with this many workers, whose estimates are 10 µs for a hello and 20 ms for a report.
fn stage(workers: u32) -> TestScheduler {
    let mut stage = TestScheduler::new(workers);
    stage.teach(HELLO, 10);
    stage.teach(REPORT, 20_000);
    stage
}

#[test]
fn long_requests_get_a_worker_each_and_the_rest_waits_in_the_queue() {
    let mut stage = stage(2);
    let _clients: Vec<_> = (1..=5).map(|id| stage.submit(id, REPORT)).collect();
    assert_eq!(stage.places(), [vec![2], vec![1], vec![3, 4, 5]]);
}

#[test]
fn unknown_requests_get_a_worker_each() {
    let mut stage = stage(3);
    let _clients: Vec<_> = (1..=3).map(|id| stage.submit(id, "/new.php")).collect();
    assert_eq!(stage.places(), [vec![3], vec![2], vec![1], vec![]]);
}

#[test]
fn short_requests_share_a_worker_as_long_as_none_waits_for_long() {
    let mut stage = stage(3);
    let _clients: Vec<_> = (1..=8).map(|id| stage.submit(id, HELLO)).collect();
    assert_eq!(stage.places(), [vec![], vec![], (1..=8).collect(), vec![]]);
    let _more: Vec<_> = (9..=12).map(|id| stage.submit(id, HELLO)).collect();
    assert_eq!(stage.places(), [vec![], (9..=12).collect(), (1..=8).collect(), vec![]]);
}

#[test]
fn a_short_request_is_never_put_behind_a_long_one_while_a_worker_is_idle() {
    let mut stage = stage(3);
    let _slow = stage.submit(1, REPORT);
    let _fast: Vec<_> = (2..=4).map(|id| stage.submit(id, HELLO)).collect();
    assert_eq!(stage.places(), [vec![], vec![2, 3, 4], vec![1], vec![]]);
}

#[test]
fn requests_queued_after_one_that_turns_out_to_be_long_go_to_an_idle_worker() {
    let mut stage = stage(2);
    let _clients: Vec<_> = (1..=4).map(|id| stage.submit(id, HELLO)).collect();
    assert_eq!(stage.places(), [vec![], vec![1, 2, 3, 4], vec![]]);
    stage.begin(1);
    stage.now = 100;
    let now = stage.instant();
    assert!(stage.scheduler.spread(0, now).is_none(), "no request waits behind another");
    assert_eq!(stage.places(), [vec![2], vec![1], vec![3, 4]]);
}

/// The ends of requests are read late: the request that the worker runs now counts.
#[test]
fn running_time_counts_from_the_current_request_while_earlier_ends_are_unread() {
    let mut stage = stage(2);
    let _clients: Vec<_> = (1..=4).map(|id| stage.submit(id, HELLO)).collect();
    for request in 0..3 {
        stage.begin(1);
        stage.now = 50 * (request + 1);
        stage.end(1);
    }
    stage.begin(1);
    let now = stage.instant();
    assert!(stage.scheduler.spread(0, now).is_none());
    assert_eq!(stage.places(), [vec![], vec![1, 2, 3, 4], vec![]]);
}

#[test]
fn a_worker_that_begins_nothing_loses_its_queued_requests() {
    let mut stage = stage(2);
    let _clients: Vec<_> = (1..=3).map(|id| stage.submit(id, HELLO)).collect();
    stage.now = 900;
    let now = stage.instant();
    assert!(stage.scheduler.spread(0, now).is_some(), "the worker may still be waking up");
    assert_eq!(stage.places(), [vec![], vec![1, 2, 3], vec![]]);
    stage.now = 1_100;
    let now = stage.instant();
    stage.scheduler.spread(0, now);
    assert_eq!(stage.places(), [vec![2], vec![1], vec![3]]);
}

#[test]
fn without_idle_workers_short_requests_queue_behind_short_ones() {
    let mut stage = stage(1);
    let _clients: Vec<_> = (1..=10).map(|id| stage.submit(id, HELLO)).collect();
    let _report = stage.submit(11, REPORT);
    assert_eq!(stage.places(), [(1..=8).collect(), vec![9, 10, 11]]);
    for ends in 1..=3 {
        let number = stage.begin(0);
        stage.end(0);
        stage.hear(0, number, 10);
        let kept: Vec<u64> = (ends + 1..=(ends + 8).min(10)).collect();
        assert_eq!(stage.lane(0).in_flight.len(), kept.len(), "{:?}", stage.places());
    }
    assert_eq!(stage.places(), [(4..=10).collect(), vec![11]], "a long request is not put behind others");
}

#[test]
fn no_request_is_queued_behind_one_that_is_only_expected_to_end_soon() {
    let mut stage = stage(2);
    stage.teach("/quick.php", 1_000);
    let _clients = [stage.submit(1, REPORT), stage.submit(2, "/quick.php"), stage.submit(3, REPORT)];
    let _more = stage.submit(4, HELLO);
    assert_eq!(stage.places(), [vec![2], vec![1], vec![3, 4]]);
    let number = stage.begin(0);
    stage.now = 1_000;
    stage.end(0);
    stage.hear(0, number, 1_000);
    assert_eq!(stage.places(), [vec![4], vec![1], vec![3]], "the queue is fair by time");
}

#[test]
fn a_free_worker_takes_requests_behind_a_long_one() {
    let mut stage = stage(2);
    let _clients: Vec<_> = (1..=3).map(|id| stage.submit(id, HELLO)).collect();
    let _report = stage.submit(4, REPORT);
    assert_eq!(stage.places(), [vec![4], vec![1, 2, 3], vec![]]);
    stage.begin(1);
    let number = stage.begin(0);
    stage.now = 500;
    stage.end(0);
    stage.hear(0, number, 500);
    assert_eq!(stage.places(), [vec![3], vec![1, 2], vec![]]);
}

#[test]
fn a_lane_that_ends_returns_all_waiting_requests() {
    let mut stage = stage(2);
    let _clients: Vec<_> = (1..=3).map(|id| stage.submit(id, HELLO)).collect();
    let now = stage.instant();
    stage.scheduler.drain_lane(1, now);
    assert_eq!(stage.places(), [vec![1], vec![], vec![2, 3]]);
}

/// Regression: a request that waited behind a running one, not in the queue, was run although its client had left. The
/// place of a request depends on the thread that accepted its connection.
#[test]
fn a_client_that_leaves_is_noticed_wherever_its_request_waits() {
    let mut stage = stage(1);
    let mut clients: Vec<_> = (1..=10).map(|id| stage.submit(id, HELLO)).collect();
    assert_eq!(stage.places(), [(1..=8).collect(), vec![9, 10]]);
    let now = stage.instant();
    stage.scheduler.expire(now);
    assert_eq!(stage.scheduler.waiting(), 9);
    clients.drain(7..9);
    stage.scheduler.expire(now);
    assert_eq!((stage.places(), stage.scheduler.waiting()), (vec![(1..=7).collect(), vec![10]], 7));
}

#[test]
fn a_route_with_a_limit_leaves_workers_for_the_rest() {
    let shares = Shares::new(vec![share(1, 1)]);
    let mut stage = TestScheduler::with(3, Limits::default(), shares);
    let _reports: Vec<_> = (1..=3).map(|id| stage.submit_for(id, REPORT, 0, Some(0))).collect();
    assert_eq!(stage.places(), [vec![], vec![], vec![1], vec![2, 3]]);
    let _others: Vec<_> = (4..=5).map(|id| stage.submit(id, "/other.php")).collect();
    assert_eq!(stage.places(), [vec![5], vec![4], vec![1], vec![2, 3]]);
    for (worker, places) in [(0, [vec![], vec![4], vec![1], vec![2, 3]]), (2, [vec![], vec![4], vec![2], vec![3]])] {
        let number = stage.begin(worker);
        stage.end(worker);
        stage.hear(worker, number, 10);
        assert_eq!(stage.places(), places);
    }
}

/// The order in which a worker takes waiting requests.
fn order(limits: Limits, routes: Vec<Share>, requests: &[(u64, &str, u64, Option<u16>)]) -> Vec<u64> {
    let mut stage = TestScheduler::with(1, limits, Shares::new(routes));
    stage.teach(HELLO, 10);
    stage.teach(REPORT, 20_000);
    let _running = stage.submit(0, REPORT);
    let _clients: Vec<_> =
        requests.iter().map(|&(id, script, client, route)| stage.submit_for(id, script, client, route)).collect();
    let mut order = Vec::new();
    while stage.can_begin(0) {
        let number = stage.begin(0);
        order.push(stage.lane(0).in_flight.front().unwrap().pending.request.id.0);
        stage.end(0);
        stage.hear(0, number, 10);
    }
    assert_eq!(order.len(), requests.len() + 1);
    order.split_off(1)
}

#[test]
fn one_greedy_client_does_not_keep_the_others_waiting() {
    let greedy = (1..=50).map(|id| (id, REPORT, 7, None));
    let requests: Vec<_> = greedy.chain([(60, REPORT, 8, None), (61, REPORT, 9, None)]).collect();
    let order = order(Limits::default(), Vec::new(), &requests);
    let place = |id| order.iter().position(|&other| other == id).unwrap();
    assert!(place(60) <= 3 && place(61) <= 3, "{order:?}");
    assert!(order.iter().filter(|&&id| id <= 50).is_sorted(), "{order:?}");
}

#[test]
fn a_clients_short_requests_do_not_wait_for_all_its_long_ones() {
    let requests: Vec<_> = (1..=20).map(|id| (id, if id % 2 == 0 { HELLO } else { REPORT }, 7, None)).collect();
    let order = order(Limits::default(), Vec::new(), &requests);
    let last_short = order.iter().rposition(|id| id % 2 == 0).unwrap();
    assert!(last_short <= 11, "{order:?}");
}

#[test]
fn a_route_with_a_weight_gets_more_of_the_workers_time() {
    let mut requests: Vec<_> = (1..=20).map(|id| (id, REPORT, 7, None)).collect();
    requests.extend((101..=120).map(|id| (id, REPORT, 7, Some(0))));
    let order = order(Limits::default(), vec![share(0, 4)], &requests);
    let weighted = order.iter().take(20).filter(|&&id| id > 100).count();
    assert!((14..=17).contains(&weighted), "{order:?}");
}

#[test]
fn a_standing_queue_refuses_requests_that_wait_for_long_and_a_burst_does_not() {
    let second = Duration::from_secs(1);
    let limits = Limits { requests: 100, patience: 10 * second, target: second };
    let mut stage = TestScheduler::with(1, limits, Shares::default());
    stage.teach(REPORT, 20_000);
    let _running = stage.submit(1, REPORT);
    let mut clients = Vec::new();
    let mut tick = |stage: &mut TestScheduler, seconds: u64| {
        for _ in 0..seconds {
            clients.push(stage.submit(100 + stage.now, REPORT));
            stage.now += 1_000_000;
            let now = stage.instant();
            stage.scheduler.expire(now);
        }
        stage.scheduler.queue.len()
    };
    assert_eq!(tick(&mut stage, 9), 9, "a burst waits");
    assert_eq!(tick(&mut stage, 10), 1, "more requests arrive than can be served");
    assert_eq!(tick(&mut stage, 10), 1);
}

#[test]
fn computing_requests_yield_to_short_ones_and_have_separate_workers() {
    const COMPUTES: MeasuredDuration = MeasuredDuration { php: 9_000, cpu: Some(9_000), memory: 0 };
    for restores in [true, false] {
        let mut stage = TestScheduler::new(4);
        stage.scheduler.precedence = Precedence::new(12);
        stage.scheduler.precedence.restores = restores;
        let long = stage.pending(0, "long", 0, None).0.key;
        (0..30).for_each(|_| stage.scheduler.estimates.note(long, COMPUTES));
        stage.teach("short", 10);
        let gives_way =
            |stage: &TestScheduler| (0..4).filter(|&worker| stage.lane(worker).gives_way()).collect::<Vec<_>>();

        let _alone = stage.submit(1, "long");
        assert!(gives_way(&stage).is_empty(), "there is no request to give way to");
        let _short = stage.submit(2, "short");
        let _clients = [3, 4].map(|id| stage.submit(id, "long"));
        assert_eq!(gives_way(&stage).len(), 2, "half of the workers");
        for worker in 0..4 {
            let number = stage.begin(worker);
            stage.end(worker);
            stage.hear(worker, number, 10);
        }
        let before = gives_way(&stage);
        let _again = stage.submit(5, "long");
        assert_eq!(gives_way(&stage), before, "the request that computes found a worker that gives way already");
        let _shorts = [6, 7, 8].map(|id| stage.submit(id, "short"));
        for worker in 0..4 {
            while stage.can_begin(worker) {
                let number = stage.begin(worker);
                stage.end(worker);
                stage.hear(worker, number, 10);
            }
        }
        assert_eq!(gives_way(&stage), before, "short requests run on workers that do not give way");
    }
}

#[test]
fn a_worker_restores_its_priority_for_a_short_request() {
    const COMPUTES: ExpectedDuration = ExpectedDuration { mean: 9_000, high: 9_000, cpu: 9_000 };
    for restores in [true, false] {
        let mut stage = TestScheduler::new(1);
        stage.scheduler.precedence = Precedence::new(12);
        stage.scheduler.precedence.restores = restores;
        let ordered = |stage: &TestScheduler, gives_way, giving| {
            let precedence = &stage.scheduler.precedence;
            precedence::ordered(precedence.flags(stage.lane(0).gives_way(), gives_way, COMPUTES, (giving, 2)))
        };
        assert_eq!(ordered(&stage, false, 0), None, "the priority stays");
        assert_eq!((ordered(&stage, true, 0), ordered(&stage, true, 1)), (Some(true), restores.then_some(true)));
        let LaneKind::Serial(serial) = &mut stage.scheduler.lanes[0].as_mut().unwrap().kind else { unreachable!() };
        serial.gives_way = true;
        assert_eq!((ordered(&stage, true, 1), ordered(&stage, false, 1)), (Some(true), restores.then_some(false)));
    }
}
