//! Orders of scripts for connections and channels: they reach the site of their request, and a worker that sends
//! invalid ones loses its lane.

use crate::request::{LiveSink, Request, RequestBody};
use crate::tests::test_pool::{TestPool, finish, request};
use howdah_transport::live_order::{LiveField, LiveKind, LiveOrder, LiveOrderBuilder, MAX_LIVE_ORDER};
use howdah_transport::wire::WireDone;
use std::io::{Read as _, Seek as _};
use std::sync::{Arc, Mutex};

/// A site's receiver that records its orders.
#[derive(Debug, Default)]
struct Orders(Mutex<Vec<LiveOrder>>);

impl LiveSink for Orders {
    fn take(&self, order: LiveOrder) {
        self.0.lock().unwrap().push(order);
    }

    fn ask(&self, question: &LiveOrder) -> Vec<u8> {
        question.field(LiveField::Connection).unwrap_or_default().into()
    }
}

fn order(data: &[u8]) -> Vec<u8> {
    let mut builder = LiveOrderBuilder::default();
    builder.begin(LiveKind::Send as u16);
    assert!(builder.field(LiveField::Connection as u16, b"id") && builder.field(LiveField::Data as u16, data));
    builder.finish()
}

#[tokio::test]
async fn orders_of_any_size_reach_their_site_before_and_after_the_response() {
    let mut stage = TestPool::new(10);
    let mut worker = stage.worker().await;
    let orders = Arc::new(Orders::default());
    let with =
        stage.submit(Box::new(Request { live: Some(orders.clone()), ..*request(true, RequestBody::Empty) })).await;
    let without = stage.get().await;
    assert_eq!(worker.take(), [1, 2]);
    let long = vec![b'x'; 1 << 20];
    let (first, second) = (order(b"first"), order(&long));
    let writer = tokio::task::spawn_blocking(move || {
        worker.end.select(1);
        worker.end.live(&first);
        worker.end.live(&second);
        worker.end.head(false, &200u16.to_ne_bytes());
        worker.end.end_response(true);
        worker.end.live(&order(b"last"));
        worker.end.done(WireDone::default());
        worker.end.select(2);
        worker.end.live(&order(b"to no site"));
        worker.respond(2);
        worker
    });
    assert_eq!(finish(with).await.unwrap(), "");
    assert_eq!(finish(without).await.unwrap(), "2");
    let seen: Vec<_> = orders.0.lock().unwrap().iter().map(|order| order.field(LiveField::Data).unwrap()).collect();
    assert_eq!(seen, [&b"first"[..], &long, b"last"]);
    drop(writer.await.unwrap());
}

#[tokio::test]
async fn a_worker_that_sends_an_invalid_order_is_killed() {
    let mut cut = order(b"text");
    cut.pop();
    for payload in [b"".to_vec(), b"\xff\xff".to_vec(), cut, vec![0; MAX_LIVE_ORDER + 1]] {
        let mut stage = TestPool::new(10);
        let mut evil = stage.worker().await;
        let response = stage.get().await;
        assert_eq!(evil.take(), [1]);
        let crime = tokio::task::spawn_blocking(move || {
            evil.end.select(1);
            evil.end.live(&payload);
            evil
        });
        assert_eq!(stage.reported_end().await, Some("broken"));
        drop(response);
        drop(crime);
    }
}

fn question(kind: LiveKind) -> Vec<u8> {
    let mut builder = LiveOrderBuilder::default();
    builder.begin(kind as u16);
    assert!(builder.field(LiveField::Connection as u16, b"the text"));
    builder.finish()
}

#[tokio::test]
async fn questions_are_answered_while_bodies_arrive() {
    let mut stage = TestPool::new(10);
    let mut worker = stage.worker().await;
    let with = stage
        .submit(Box::new(Request { live: Some(Arc::<Orders>::default()), ..*request(true, RequestBody::Empty) }))
        .await;
    let without = stage.get().await;
    let large = RequestBody::Memory(vec![b'x'; stage.sizes.request as usize * 2].into());
    let upload = stage.submit(request(true, large)).await;
    // Asks for the body of the third.
    assert_eq!(worker.take(), [1, 2]);
    let asked = tokio::task::spawn_blocking(move || {
        let mut ask = |number, kind| {
            worker.end.select(number);
            let mut text = String::new();
            let answered = worker.end.ask_live(&question(kind)).unwrap();
            let mut file = std::fs::File::from(answered);
            file.rewind().unwrap();
            file.read_to_string(&mut text).unwrap();
            text
        };
        let texts = [LiveKind::Exists, LiveKind::Count, LiveKind::Connections].map(|kind| ask(1, kind));
        assert_eq!(texts, ["the text"; 3]);
        assert_eq!(ask(2, LiveKind::Count), "", "a site without connections");
        [1, 2].into_iter().for_each(|number| worker.respond(number));
        worker
    });
    let mut worker = asked.await.unwrap();
    assert_eq!(worker.take_at_least(1).await, [3]);
    worker.respond(3);
    for (response, text) in [(with, "1"), (without, "2"), (upload, "3")] {
        assert_eq!(finish(response).await.unwrap(), text);
    }
}

#[tokio::test]
async fn a_worker_that_asks_without_reading_responses_is_killed() {
    let mut stage = TestPool::new(10);
    let mut evil = stage.worker().await;
    let response = stage.get().await;
    assert_eq!(evil.take(), [1]);
    let crime = tokio::task::spawn_blocking(move || {
        evil.end.select(1);
        for _ in 0..100 {
            evil.end.live(&question(LiveKind::Exists));
        }
        evil.end.publish();
        evil
    });
    assert_eq!(stage.reported_end().await, Some("broken"));
    drop(response);
    drop(crime);
}
