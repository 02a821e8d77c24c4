//! Wakes the subscribers of an update in slices. Tasks that are woken together run one after the other: without slices,
//! a request on the same thread would wait until an update has been sent to all of its subscribers.

use std::task::Waker;
use std::vec;
use tokio::runtime::Handle;

/// Number of subscribers woken at a time. Each sends for about 10 µs, so other tasks wait for some milliseconds.
const SLICE: usize = 256;

/// Wakes all tasks: a few at once, many by a task of the current runtime.
pub(crate) fn wake_all(wakers: Vec<Waker>) {
    let rest = Rest(wakers.into_iter());
    if rest.0.len() > SLICE
        && let Ok(runtime) = Handle::try_current()
    {
        drop(runtime.spawn(rest.wake()));
    }
}

/// Tasks that are still to be woken. Dropping it wakes them, so that none is forgotten if the runtime ends.
struct Rest(vec::IntoIter<Waker>);

impl Rest {
    async fn wake(mut self) {
        while self.0.len() > 0 {
            self.0.by_ref().take(SLICE).for_each(Waker::wake);
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.0.by_ref().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::{Poll, Wake};

    const TASKS: usize = 4000;

    #[test]
    fn other_tasks_run_while_many_are_woken() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (done, wakers) = (Rc::new(RefCell::new(0)), Rc::new(RefCell::new(Vec::new())));
        let tasks = tokio::task::LocalSet::new();
        tasks.block_on(&runtime, async {
            let waiting: Vec<_> = (0..TASKS)
                .map(|_| {
                    let (done, wakers, mut is_woken) = (done.clone(), wakers.clone(), false);
                    tokio::task::spawn_local(async move {
                        poll_fn(|cx| {
                            if is_woken {
                                return Poll::Ready(());
                            }
                            is_woken = true;
                            wakers.borrow_mut().push(cx.waker().clone());
                            Poll::Pending
                        })
                        .await;
                        *done.borrow_mut() += 1;
                    })
                })
                .collect();
            while wakers.borrow().len() < TASKS {
                tokio::task::yield_now().await;
            }
            wake_all(wakers.take());
            let mut seen = Vec::new();
            while *done.borrow() < TASKS {
                seen.push(*done.borrow());
                tokio::task::yield_now().await;
            }
            assert!(seen.len() >= TASKS / SLICE / 4, "{seen:?}");
            assert!(seen.windows(2).all(|pair| pair[1] - pair[0] <= 4 * SLICE), "{seen:?}");
            for task in waiting {
                task.await.unwrap();
            }
        });
    }

    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn all_are_woken_without_a_runtime_and_when_it_ends() {
        let counter = Arc::new(Counter(AtomicUsize::new(0)));
        let wakers = || (0..TASKS).map(|_| Waker::from(counter.clone())).collect::<Vec<_>>();
        wake_all(wakers());
        assert_eq!(counter.0.load(Relaxed), TASKS);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let entered = runtime.enter();
        wake_all(wakers());
        drop(entered);
        assert_eq!(counter.0.load(Relaxed), TASKS, "the runtime has not run");
        drop(runtime);
        assert_eq!(counter.0.load(Relaxed), 2 * TASKS);
    }
}
