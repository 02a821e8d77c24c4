//! A connection's life cycle with a simulated client, with shorter timeouts (`session`).

use super::*;
use crate::connections::{Connections, Link, new_id};
use crate::events::HandlerFuture;
use crate::frames_tests::frame;
use crate::message::message;
use howdah_budget::{Budgets, Charge};
use howdah_live::{Hub, Limits};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The client's side of the HTTP connection.
struct Client {
    stream: DuplexStream,
    stops: Arc<AtomicBool>,
}

impl Upgraded for Client {
    fn is_to_end(&self) -> bool {
        self.stops.load(Relaxed)
    }
}

impl tokio::io::AsyncRead for Client {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl tokio::io::AsyncWrite for Client {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Records events; the handler of a message "wait" waits.
#[derive(Clone, Default)]
struct Noted {
    events: Arc<Mutex<Vec<Event>>>,
    go: Arc<Notify>,
}

impl Events for Noted {
    fn handle(&self, _: &Link, event: Event) -> HandlerFuture {
        let (noted, waits) = (self.clone(), event == Event::Message("wait".into(), false));
        Box::pin(async move {
            if waits {
                noted.go.notified().await;
            }
            noted.events.lock().push(event);
            200
        })
    }
}

struct Stage {
    peer: DuplexStream,
    link: Arc<Link>,
    noted: Noted,
    stops: Arc<AtomicBool>,
    running: JoinHandle<()>,
    budgets: Budgets,
}

impl Stage {
    /// `room`: number of bytes that the client accepts without reading.
    fn new(room: usize) -> Self {
        Self::with(room, Budgets::new(1 << 26, 1 << 26))
    }

    fn with(room: usize, budgets: Budgets) -> Self {
        let (stream, peer) = duplex(room);
        let stops = Arc::new(AtomicBool::new(false));
        let (hub, charge) = (Hub::new(Limits::default()), Charge::new(budgets.memory, None));
        let registered = Arc::new(Connections::default()).open(new_id().unwrap(), "site", &hub, charge);
        let link = registered.link.clone();
        let noted = Noted::default();
        let grace = Duration::from_millis(20);
        let session = Session::new(
            registered,
            Box::new(noted.clone()),
            false,
            Arc::default(),
            grace,
            Charge::new(budgets.memory, None),
        );
        let client = Box::new(Client { stream, stops: stops.clone() });
        let running = tokio::spawn(Box::new(session).run(client));
        Self { peer, link, noted, stops, running, budgets }
    }

    async fn read(&mut self, bytes: usize) -> Vec<u8> {
        let mut came = vec![0; bytes];
        self.peer.read_exact(&mut came).await.unwrap();
        came
    }

    /// All events, after the end of the connection.
    async fn end(self) -> Vec<Event> {
        self.running.await.unwrap();
        assert_eq!(self.budgets.memory.used(), 0);
        std::mem::take(&mut self.noted.events.lock())
    }
}

fn closed(code: u16, reason: &'static str) -> Event {
    Event::Close(code, reason.into())
}

#[tokio::test]
async fn a_silent_client_is_pinged_and_then_disconnected() {
    let mut stage = Stage::new(1000);
    assert_eq!(stage.read(2).await, [0x89, 0]);
    stage.peer.write_all(&frame(0x8a, b"")).await.unwrap();
    assert_eq!(stage.read(2).await, [0x89, 0], "it gets another one, as it has answered");
    let mut rest = Vec::new();
    stage.peer.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty(), "{rest:?}");
    assert_eq!(stage.end().await, [closed(1006, "")]);
}

#[tokio::test]
async fn messages_are_handled_before_the_close_and_none_after_a_failure() {
    let mut stage = Stage::new(10_000);
    stage.peer.write_all(&frame(0x81, b"wait")).await.unwrap();
    stage.peer.write_all(&frame(0x82, b"next")).await.unwrap();
    stage.peer.write_all(&frame(0x88, b"\x03\xe8bye")).await.unwrap();
    assert_eq!(stage.read(7).await, b"\x88\x05\x03\xe8bye");
    stage.noted.go.notify_one();
    let messages = [Event::Message("wait".into(), false), Event::Message("next".into(), true)];
    assert_eq!(stage.end().await, [&messages[..], &[closed(1000, "bye")]].concat());
}

#[tokio::test]
async fn a_connection_that_is_cut_ends_with_all_its_events() {
    let mut stage = Stage::new(10_000);
    stage.peer.write_all(&frame(0x81, b"wait")).await.unwrap();
    stage.peer.write_all(&frame(0x81, b"next")).await.unwrap();
    stage.peer.write_all(&frame(0x89, b"")).await.unwrap();
    assert_eq!(stage.read(2).await, [0x8a, 0]);
    stage.running.abort();
    stage.noted.go.notify_one();
    let all = [Event::Message("wait".into(), false), Event::Message("next".into(), false), closed(1006, "")];
    while stage.noted.events.lock().len() < all.len() {
        tokio::task::yield_now().await;
    }
    assert_eq!(*stage.noted.events.lock(), all);
}

#[tokio::test]
async fn a_stopping_server_closes_with_1001_and_does_not_wait_for_the_client() {
    let mut stage = Stage::new(1000);
    stage.link.send(message(b"last", false));
    assert_eq!(stage.read(6).await, b"\x81\x04last");
    stage.stops.store(true, Relaxed);
    // The next event wakes the task, as the server does.
    stage.link.send(message(b"x", false));
    assert_eq!(stage.read(3).await, b"\x81\x01x");
    let close = stage.read(4).await;
    assert_eq!((close[0], &close[2..]), (0x88, &1001u16.to_be_bytes()[..]));
    assert_eq!(stage.end().await, [closed(1001, "the server restarts")]);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut_off_once_too_much_is_pending() {
    let stage = Stage::new(100);
    for _ in 0..6 {
        stage.link.send(message(&vec![b'x'; 1 << 20], false));
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.end().await, [closed(1008, "the client is too slow")]);
}

#[tokio::test]
async fn a_message_for_which_there_is_no_memory_closes_its_connection() {
    let mut stage = Stage::with(100_000, Budgets::new(300_000, 1 << 26));
    let (mut reader, mut writer) = tokio::io::split(std::mem::replace(&mut stage.peer, duplex(1).0));
    let writing = tokio::spawn(async move { writer.write_all(&frame(0x82, &[0; 1 << 20])).await });
    let mut came = [0; 4];
    reader.read_exact(&mut came).await.unwrap();
    assert_eq!((came[0], &came[2..]), (0x88, &1013u16.to_be_bytes()[..]));
    // The rest is dropped.
    writing.await.unwrap().unwrap();
    drop(reader);
    assert_eq!(stage.end().await, [closed(1013, "the server has no memory left")]);
}
