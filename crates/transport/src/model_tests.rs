//! Runs `wake` and `request_state` in every order in which two processors may execute them, with up to three
//! preemptions, by the model checker loom. No side may sleep forever, and no request may run twice or not at all. The
//! same models must fail if words lack their fence or an exchange is not atomic; otherwise the models would prove
//! nothing.

use crate::request_state;
use crate::wake::{self, WORKER_WAITS_EVENT, WORKER_WAITS_REQUEST, WORKER_WAITS_ROOM};
use crate::word::Word;
use loom::cell::UnsafeCell;
use loom::sync::Notify;
use loom::sync::atomic::{AtomicU32, AtomicU64, fence};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};
use std::time::Duration;

/// Defect of a word.
#[derive(Clone, Copy, PartialEq)]
enum Defect {
    Nothing,
    Fence,
    Exchange,
}

/// A word of the model, with the futex that sleeps on it.
struct ModelWord {
    value: AtomicU32,
    /// A wake-up between the load of the word and the sleep ends the sleep; the kernel ensures this with a lock.
    futex: Notify,
    lack: Defect,
}

impl ModelWord {
    fn new(lack: Defect) -> Self {
        Self { value: AtomicU32::new(0), futex: Notify::new(), lack }
    }
}

impl Word for ModelWord {
    fn load(&self, order: Ordering) -> u32 {
        self.value.load(order)
    }

    fn store(&self, value: u32, order: Ordering) {
        self.value.store(value, order);
    }

    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.value.swap(value, order)
    }

    fn exchange(&self, old: u32, new: u32, order: Ordering) -> bool {
        if self.lack != Defect::Exchange {
            return self.value.compare_exchange(old, new, order, Relaxed).is_ok();
        }
        let same = self.value.load(Acquire) == old;
        if same {
            self.value.store(new, Release);
        }
        same
    }

    fn fence(&self) {
        if self.lack != Defect::Fence {
            fence(SeqCst);
        }
    }

    fn sleep_while(&self, value: u32, _: Option<Duration>) {
        if self.value.load(Relaxed) == value {
            self.futex.wait();
        }
    }

    fn wake_sleeper(&self) {
        self.futex.notify();
    }
}

/// A lane without its bytes: a cursor in each direction, and the words.
struct Model {
    worker_word: ModelWord,
    server_word: ModelWord,
    room_wanted: ModelWord,
    request_head: AtomicU64,
    request_tail: AtomicU64,
    response_head: AtomicU64,
    response_tail: AtomicU64,
    aborted: AtomicU64,
    /// Edge-triggered descriptors: a write ends one wait, the next or the current one.
    worker_wake: Notify,
    server_wake: Notify,
}

/// Runs both sides in every order. Three preemptions are enough for each of the failures below.
fn in_every_order(lack: Defect, worker: fn(&Model), server: fn(&Model)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let model = Arc::new(Model {
            worker_word: ModelWord::new(lack),
            server_word: ModelWord::new(lack),
            room_wanted: ModelWord::new(lack),
            request_head: AtomicU64::new(0),
            request_tail: AtomicU64::new(0),
            response_head: AtomicU64::new(0),
            response_tail: AtomicU64::new(0),
            aborted: AtomicU64::new(0),
            worker_wake: Notify::new(),
            server_wake: Notify::new(),
        });
        let other = model.clone();
        let thread = thread::spawn(move || worker(&other));
        server(&model);
        thread.join().unwrap();
    });
}

// --- a worker that waits for requests, and then for room

fn send_requests(model: &Model) {
    for n in 1..=2 {
        model.request_head.store(n, Release);
        wake::wake_worker(&model.worker_word, WORKER_WAITS_REQUEST);
    }
}

fn wait_for_requests(model: &Model) {
    let mut tail = 0;
    while tail < 2 {
        let head = model.request_head.load(Acquire);
        if head == tail {
            let ready = || model.request_head.load(Acquire) != tail;
            wake::sleep_worker(&model.worker_word, WORKER_WAITS_REQUEST, None, ready);
        }
        tail = head;
    }
}

#[test]
fn a_worker_that_waits_for_requests_gets_each() {
    in_every_order(Defect::Nothing, wait_for_requests, send_requests);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fence_a_worker_would_miss_its_request() {
    in_every_order(Defect::Fence, wait_for_requests, send_requests);
}

fn give_room_and_send_a_request(model: &Model) {
    model.response_tail.store(1, Release);
    wake::wake_worker(&model.worker_word, WORKER_WAITS_ROOM);
    model.request_head.store(1, Release);
    wake::wake_worker(&model.worker_word, WORKER_WAITS_REQUEST);
}

fn wait_for_room_and_for_a_request(model: &Model) {
    while model.response_tail.load(Acquire) == 0 {
        let ready = || model.response_tail.load(Acquire) != 0;
        wake::sleep_worker(&model.worker_word, WORKER_WAITS_ROOM, None, ready);
    }
    while model.request_head.load(Acquire) == 0 {
        let ready = || model.request_head.load(Acquire) != 0;
        wake::sleep_worker(&model.worker_word, WORKER_WAITS_REQUEST, None, ready);
    }
}

#[test]
fn a_worker_is_woken_for_the_reason_it_waits_for() {
    in_every_order(Defect::Nothing, wait_for_room_and_for_a_request, give_room_and_send_a_request);
}

fn abort(model: &Model) {
    model.aborted.store(1, Relaxed);
    wake::wake_worker(&model.worker_word, WORKER_WAITS_ROOM);
}

fn wait_for_room_or_the_clients_end(model: &Model) {
    while model.aborted.load(Relaxed) == 0 {
        let ready = || model.response_tail.load(Acquire) != 0 || model.aborted.load(Relaxed) == 1;
        wake::sleep_worker(&model.worker_word, WORKER_WAITS_ROOM, None, ready);
    }
}

#[test]
fn a_worker_that_waits_for_room_notices_a_disconnected_client() {
    in_every_order(Defect::Nothing, wait_for_room_or_the_clients_end, abort);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fence_a_worker_would_miss_the_disconnect() {
    in_every_order(Defect::Fence, wait_for_room_or_the_clients_end, abort);
}

// --- a worker that waits for its wake pipe among other descriptors

fn send_requests_with_the_wake_pipe(model: &Model) {
    for n in 1..=2 {
        model.request_head.store(n, Release);
        if wake::take(&model.worker_word, WORKER_WAITS_EVENT) {
            model.worker_wake.notify();
        }
    }
}

fn wait_for_the_wake_pipe(model: &Model) {
    let mut tail = 0;
    while tail < 2 {
        let head = model.request_head.load(Acquire);
        if head == tail {
            if wake::prepare_worker_event(&model.worker_word, || model.request_head.load(Acquire) != tail) {
                model.worker_wake.wait();
            }
            model.worker_word.store(0, Relaxed);
        }
        tail = head;
    }
}

#[test]
fn a_worker_that_waits_for_its_wake_pipe_gets_each_request() {
    in_every_order(Defect::Nothing, wait_for_the_wake_pipe, send_requests_with_the_wake_pipe);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fence_its_wake_would_be_lost() {
    in_every_order(Defect::Fence, wait_for_the_wake_pipe, send_requests_with_the_wake_pipe);
}

// --- the server

fn publish_frames(model: &Model) {
    for n in 1..=2 {
        model.response_head.store(n, Release);
        if wake::take_any(&model.server_word) {
            model.server_wake.notify();
        }
    }
}

fn wait_for_frames(model: &Model) {
    let mut tail = 0;
    while tail < 2 {
        let head = model.response_head.load(Acquire);
        if head == tail && wake::prepare_server_sleep(&model.server_word, || model.response_head.load(Acquire) != tail)
        {
            model.server_wake.wait();
        }
        tail = head;
    }
}

#[test]
fn the_server_gets_each_frame() {
    in_every_order(Defect::Nothing, publish_frames, wait_for_frames);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fence_the_server_would_miss_a_frame() {
    in_every_order(Defect::Fence, publish_frames, wait_for_frames);
}

fn give_back(model: &Model) {
    model.request_tail.store(1, Release);
    if wake::take_any(&model.room_wanted) {
        model.server_wake.notify();
    }
}

fn want_room(model: &Model) {
    wake::announce(&model.room_wanted, 1);
    while model.request_tail.load(Acquire) == 0 {
        model.server_wake.wait();
    }
}

#[test]
fn a_server_that_waits_for_room_is_notified() {
    in_every_order(Defect::Nothing, give_back, want_room);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fence_a_wait_for_room_could_last_forever() {
    in_every_order(Defect::Fence, give_back, want_room);
}

// --- ownership of a request

/// One request in one slot: the worker begins it while the server takes it back, and then the slot is reused.
fn exchange_in_every_order(lack: Defect) {
    struct Slot {
        state: ModelWord,
        /// The payload. The model fails if one side writes while the other may read.
        bytes: UnsafeCell<u32>,
        head: AtomicU64,
        tail: AtomicU64,
    }

    fn work(slot: &Slot) -> u32 {
        if slot.head.load(Acquire) == 0 {
            return 0;
        }
        let begun = request_state::begin(&slot.state);
        if begun {
            slot.bytes.with(|_| ());
        }
        slot.tail.store(1, Release);
        u32::from(begun)
    }

    loom::model(move || {
        // The model's threads run on one thread of the system.
        #[allow(clippy::arc_with_non_send_sync)]
        let slot = Arc::new(Slot {
            state: ModelWord::new(lack),
            bytes: UnsafeCell::new(0),
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
        });
        let other = slot.clone();
        let thread = thread::spawn(move || work(&other));
        slot.bytes.with_mut(|_| ());
        slot.state.store(request_state::QUEUED, Relaxed);
        slot.head.store(1, Release);
        // If the server takes the request back, it runs elsewhere.
        let elsewhere = u32::from(!request_state::is_decided(&slot.state) && request_state::take_back(&slot.state));
        if slot.tail.load(Acquire) == 1 {
            slot.bytes.with_mut(|_| ());
        }
        let mut here = thread.join().unwrap();
        if slot.tail.load(Acquire) == 0 {
            // The worker had polled before the request was published.
            here = work(&slot);
        }
        assert_eq!(here + elsewhere, 1, "a request runs once");
    });
}

#[test]
fn a_request_runs_once_whichever_side_comes_first() {
    exchange_in_every_order(Defect::Nothing);
}

#[test]
#[should_panic(expected = "a request runs once")]
fn without_the_exchange_it_would_run_twice() {
    exchange_in_every_order(Defect::Exchange);
}
