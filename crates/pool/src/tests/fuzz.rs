//! A fuzz target: frames of a worker that follows no protocol, read by the lane reader, which turns them into
//! responses. `howdah_transport::fuzz` defines the scripts; `make fuzz` runs this for longer.

use crate::fault::Fault;
use crate::response::sink::Response;
use crate::tests::test_pool::{PendingResponse, TestPool};
use howdah_fuzz_driver::Target;
use howdah_transport::fuzz::{RawWorker, Step, WORDS, script};
use std::pin::Pin;

/// Number of the worker's requests; scripts respond to them, and to others.
const REQUESTS: u64 = 4;
/// Maximum number of turns of other tasks for which a step waits for room.
const MAX_ROUNDS: usize = 200;

/// Takes the whole response and returns the size of its body.
async fn read(response: PendingResponse) -> usize {
    // The request would be run again but there is no worker, so it waits forever.
    let Ok(Ok(response)) = response.await else { return 0 };
    let Response { status, headers, mut body, .. } = response;
    assert!((200..=599).contains(&status), "status {status}");
    assert!(headers.iter().all(|(name, value)| !name.contains(&b':') && name.len() + value.len() <= 1 << 20));
    let mut bytes = 0;
    while let Some(chunk) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_chunk(cx)).await {
        match chunk {
            Ok(chunk) => bytes += chunk.data.len(),
            Err(Fault { .. }) => break,
        }
    }
    bytes
}

async fn responses(data: &[u8]) {
    let steps = script(data);
    let mut stage = TestPool::new(REQUESTS as usize);
    let mut process = stage.worker().await;
    let mut responses = Vec::new();
    for _ in 0..REQUESTS {
        responses.push(tokio::spawn(read(stage.get().await)));
    }
    assert_eq!(process.take().len() as u64, REQUESTS);
    let mut worker = RawWorker::attach(&process.lane, process.eventfd.try_clone().unwrap()).unwrap();
    let mut written = 0;
    for step in &steps {
        for _ in 0..MAX_ROUNDS {
            if !worker.must_wait(step) {
                break;
            }
            worker.show();
            tokio::task::yield_now().await;
        }
        if let Step::Frame { payload, .. } = step {
            written += payload.len();
        }
        worker.play(step);
    }
    worker.show();
    for _ in 0..MAX_ROUNDS {
        tokio::task::yield_now().await;
    }
    process.life.kill().unwrap();
    // The reader always ends and reports it; a panic would show as a missing report, or as the reason.
    assert_ne!(stage.reported_end().await, Some("panicked"));
    let mut read = 0;
    for response in responses {
        if response.is_finished() {
            read += response.await.unwrap();
        } else {
            response.abort();
        }
    }
    assert!(read <= written, "{read} bytes were sent, {written} written");
}

fn worker_responses(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(responses(data));
}

#[test]
fn nothing_that_a_worker_sends_breaks_the_reader() {
    let target = Target { name: "worker_responses", corpus: "worker_frames", words: WORDS, run: worker_responses };
    howdah_fuzz_driver::drive(&target, 150);
}
