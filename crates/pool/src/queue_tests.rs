//! Whatever is pushed, put back, popped, removed: nothing is lost, nothing comes twice, and clients get equal shares.

use super::*;
use crate::request::{Request, RequestBody, RequestId, RequestStats};
use crate::response_parts;
use crate::response_sink::{self, ResponseBody};
use howdah_transport::wire::RequestBuilder;
use std::collections::BTreeMap;
use std::sync::Arc;

fn pending(id: u64, client: u64, mean: u32) -> (Box<Pending>, ResponseBody) {
    let budgets = howdah_budget::Budgets::new(1 << 20, 1 << 20);
    let limits = response_parts::Limits { memory: 100, temp_dir: std::env::temp_dir(), budgets };
    let (sink, receiver) = response_sink::new(Arc::new(limits), RequestStats::default(), None);
    let now = Instant::now();
    let request = Request {
        head: RequestBuilder::new(id, 1001, 0).finish(),
        body: RequestBody::Empty,
        repeatable: true,
        id: RequestId(id),
        received: now,
        complete: now,
        client,
        route: None,
        limits: crate::time_limits::TimeLimits::default(),
        interim: None,
        share: None,
    };
    let mut pending = Box::new(Pending::new(request, sink));
    pending.expected = Expected { mean, high: mean, cpu: 0 };
    pending.cost = mean;
    (pending, receiver)
}

#[test]
fn nothing_is_lost_and_nothing_comes_twice() {
    for seed in 1..50_u64 {
        let mut random = seed;
        let mut next = move |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let (mut queue, mut inside, mut clients, mut outside) =
            (WaitingQueue::default(), BTreeMap::new(), BTreeMap::new(), Vec::new());
        for id in 0..400 {
            match next(10) {
                0..5 => {
                    let (pending, receiver) = pending(id, next(20), next(50_000) as u32);
                    inside.insert(id, ());
                    clients.insert(id, receiver);
                    queue.push(pending);
                }
                5..8 => {
                    let refused = next(20);
                    if let Some(pending) = queue.pop(|pending| pending.request.client != refused) {
                        assert!(pending.request.client != refused && inside.remove(&pending.request.id.0).is_some());
                        outside.push(pending);
                    } else {
                        assert!(queue.all().all(|pending| pending.request.client == refused));
                    }
                }
                8 => {
                    if let Some(pending) = outside.pop() {
                        inside.insert(pending.request.id.0, ());
                        queue.put_back(pending);
                    }
                }
                _ => {
                    let client = next(20);
                    if let Some(pending) = queue.remove_one(|pending| pending.request.client == client) {
                        assert!(inside.remove(&pending.request.id.0).is_some());
                    }
                }
            }
            assert_eq!(queue.len(), inside.len());
            assert_eq!(queue.is_empty(), inside.is_empty());
            assert_eq!(queue.all().count(), inside.len());
        }
        let rest = std::iter::from_fn(|| queue.pop(|_| true)).count();
        assert_eq!((rest, queue.len(), queue.order.len()), (inside.len(), 0, 0));
    }
}

#[test]
fn clients_that_have_gone_are_passed_by() {
    let mut queue = WaitingQueue::default();
    let mut receivers: Vec<_> = (0..10)
        .map(|id| {
            let (pending, receiver) = pending(id, id % 3, 10);
            queue.push(pending);
            receiver
        })
        .collect();
    receivers.retain(|_| false);
    assert!(queue.pop(|_| true).is_none());
    assert_eq!((queue.len(), queue.order.len()), (0, 0));
}

#[test]
fn two_hundred_requests_of_one_client_get_no_more_time_than_ten_of_another() {
    let mut queue = WaitingQueue::default();
    let mut receivers = Vec::new();
    for id in 0..200 {
        let (pending, receiver) = pending(id, 1, 1_000);
        queue.push(pending);
        receivers.push(receiver);
    }
    for client in 2..=21 {
        for id in 0..10 {
            let (pending, receiver) = pending(1_000 * client + id, client, 1_000);
            queue.push(pending);
            receivers.push(receiver);
        }
    }
    let mut served = BTreeMap::<u64, usize>::new();
    for _ in 0..100 {
        let pending = queue.pop(|_| true).unwrap();
        *served.entry(pending.request.client).or_default() += 1;
    }
    assert!(served.values().all(|requests| (4..=6).contains(requests)), "{served:?}");
}

#[test]
fn what_was_put_back_comes_first_and_by_age() {
    let mut queue = WaitingQueue::default();
    let (first, _a) = pending(1, 1, 10);
    let (second, _b) = pending(2, 1, 10);
    let (third, _c) = pending(3, 1, 10);
    queue.push(third);
    queue.put_back(second);
    queue.put_back(first);
    let order: Vec<_> = std::iter::from_fn(|| queue.pop(|_| true)).map(|pending| pending.request.id.0).collect();
    assert_eq!(order, [1, 2, 3]);
}
