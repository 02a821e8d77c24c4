//! Repeats requests at Howdah and compares the responses with the old server's.

use super::coding::decode;
use super::sample::{MAX_BODY, Sample};
use super::tally::Tally;
use crate::against::{PageDifference, between, differences};
use crate::client::{Request, response_to};
use crate::traffic::Skip;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;

/// Number of Howdah's workers, and of copies that they run at the same time.
pub(super) const WORKERS: u32 = 4;
/// Maximum number of responses that are compared at the same time. Most of them wait to be compared again.
const MAX_COMPARED: usize = 16;
/// Pause before Howdah is asked again, so that times in the page differ.
const PAUSE: Duration = Duration::from_millis(1100);

/// Limits of what runs at the same time.
#[derive(Debug)]
struct Turns {
    requests: Semaphore,
    /// Splitting a body into words takes many times its memory: one at a time.
    computing: Semaphore,
}

/// Starts the tasks that repeat queued requests at the server `own` and compare the responses.
pub(super) fn start(queue: Receiver<Sample>, own: SocketAddr, tally: &Arc<Tally>) -> JoinSet<()> {
    let queue = Arc::new(Mutex::new(queue));
    let turns = Arc::new(Turns { requests: Semaphore::new(WORKERS as usize), computing: Semaphore::new(1) });
    let mut tasks = JoinSet::new();
    for _ in 0..MAX_COMPARED {
        let (queue, turns, tally) = (Arc::clone(&queue), Arc::clone(&turns), Arc::clone(tally));
        tasks.spawn(async move {
            loop {
                let next = queue.lock().await.recv().await;
                let Some(sample) = next else { return };
                let path = sample.request.path.clone();
                match compare(sample, own, &turns).await {
                    Ok(found) => tally.record(&path, found),
                    Err(why) => tally.skipped(why),
                }
            }
        });
    }
    tasks
}

/// Finds the differences from the old server's response, except in values that vary between two responses of Howdah:
/// the old server gets the request only once, from the client.
async fn compare(mut sample: Sample, own: SocketAddr, turns: &Turns) -> Result<Vec<PageDifference>, Skip> {
    if !decode(&mut sample.response, MAX_BODY) {
        return Err(Skip::Coding);
    }
    let sample = Arc::new(sample);
    let ask = |request: &Request| {
        let request = request.clone();
        async move {
            let _turn = turns.requests.acquire().await.map_err(|_| Skip::Ended)?;
            let mut response = response_to(own, &request, MAX_BODY).await;
            decode(&mut response, MAX_BODY).then_some(response).ok_or(Skip::Coding)
        }
    };
    let first = Arc::new(ask(&sample.request).await?);
    let (there, here) = (Arc::clone(&sample), Arc::clone(&first));
    let found = alone(&turns.computing, move || differences(std::slice::from_ref(&there.response), &here)).await?;
    if found.is_empty() {
        return Ok(found);
    }
    // This also gives the doctor time to notice that both it and Howdah are being stopped.
    tokio::time::sleep(PAUSE).await;
    let second = ask(&sample.request).await?;
    let both = [(*first).clone(), second];
    alone(&turns.computing, move || match both.iter().find(|response| response.status == 0) {
        Some(none) => differences(std::slice::from_ref(&sample.response), none),
        None => between(&sample.response, &both),
    })
    .await
}

/// Computes in another thread.
async fn alone<T: Send + 'static>(one: &Semaphore, compute: impl FnOnce() -> T + Send + 'static) -> Result<T, Skip> {
    let _turn = one.acquire().await.map_err(|_| Skip::Ended)?;
    tokio::task::spawn_blocking(compute).await.map_err(|_| Skip::Ended)
}
