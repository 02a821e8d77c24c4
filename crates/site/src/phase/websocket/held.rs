//! A connection that a script holds (`WebSocket::accept()`, async mode): messages travel in a stream between the
//! connection's task and the script's coroutine (`howdah_transport::connection_stream`).

use crate::event_request::StreamSlot;
use bytes::{Buf as _, BytesMut};
use howdah_budget::Charge;
use howdah_transport::connection_stream::{PartHead, PartKind};
use howdah_websocket::{Close, Event, Events, HandlerFuture, Link, MAX_MESSAGE, Outgoing, message};
use rustix::net::{Shutdown, shutdown};
use std::cell::RefCell;
use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Maximum bytes per read.
const READ: usize = 16 << 10;
const HEAD: usize = PartHead::LEN;
/// Time that a script has to take messages after the end of its connection.
const REST: Duration = Duration::from_secs(5);

thread_local! {
    static READS: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into());
}

/// A connection whose script has accepted it.
pub(super) struct Held {
    /// Watched for input only.
    stream: Arc<AsyncFd<UnixStream>>,
    /// Input that was read and not taken: at most one message and a read.
    input: BytesMut,
    charge: Charge,
    charged: usize,
    has_left: bool,
}

impl Held {
    /// Returns `None` if the script has not accepted the connection. Called once the response of the script is
    /// complete.
    pub(super) fn of(slot: &StreamSlot, charge: Charge) -> io::Result<Option<Self>> {
        let Some(mut stream) = slot.lock().take() else { return Ok(None) };
        let mut head = [0; HEAD];
        let accepted = stream.read(&mut head).is_ok_and(|read| read == HEAD)
            && PartHead::of(head) == PartHead::new(PartKind::Accept, 0);
        if !accepted {
            return Ok(None);
        }
        let stream = Arc::new(watched(stream, Interest::READABLE)?);
        Ok(Some(Self { stream, input: BytesMut::new(), charge, charged: 0, has_left: false }))
    }

    /// Takes the next part of the input, if it is complete. An error is the close for a script that breaks the layout.
    fn take_part(&mut self) -> Result<Option<Outgoing>, Close> {
        let broken = || Close::of(Close::INTERNAL_ERROR, "the application failed");
        let Some((head, _)) = self.input.split_first_chunk::<HEAD>() else { return Ok(None) };
        let head = PartHead::of(*head);
        let length = head.length as usize;
        if length > MAX_MESSAGE {
            return Err(broken());
        }
        if self.input.len() < HEAD + length {
            self.input.reserve(HEAD + length - self.input.len());
            return Ok(None);
        }
        self.input.advance(HEAD);
        let mut data = self.input.split_to(length).freeze();
        if self.input.is_empty() {
            // Idle connections have no buffer.
            self.input = BytesMut::new();
        }
        Ok(Some(match head.kind().ok_or_else(broken)? {
            PartKind::Text => Outgoing::Message(message(&data, false)),
            PartKind::Binary => Outgoing::Message(message(&data, true)),
            PartKind::Close if length >= 2 => {
                let code = data.get_u16();
                let is_valid = matches!(code, 1000 | 1011 | 3000..=4999) && std::str::from_utf8(&data).is_ok();
                Outgoing::Close(if is_valid { Close { code: Some(code), reason: data } } else { broken() })
            }
            PartKind::Leave if !std::mem::replace(&mut self.has_left, true) => Outgoing::Reconnect,
            PartKind::Leave | PartKind::Close | PartKind::Accept => return Err(broken()),
        }))
    }

    /// Adjusts the charge to the input; `false` if the budget has no room.
    fn settle(&mut self) -> bool {
        let held = self.input.capacity();
        if held < self.charged {
            self.charge.shrink((self.charged - held) as u64);
        } else if held > self.charged && !self.charge.grow((held - self.charged) as u64) {
            return false;
        }
        self.charged = held;
        true
    }
}

impl Events for Held {
    fn handle(&self, _: &Link, event: Event) -> HandlerFuture {
        let stream = self.stream.clone();
        Box::pin(async move {
            // An error means that the script has gone, which reading reports.
            let _ = match event {
                Event::Message(data, true) => write(stream.get_ref(), PartKind::Binary, &data).await,
                Event::Message(data, false) => write(stream.get_ref(), PartKind::Text, &data).await,
                Event::Close(code, reason) => {
                    write(stream.get_ref(), PartKind::Close, &[&code.to_be_bytes()[..], &reason].concat()).await
                }
            };
            200
        })
    }

    fn poll_outgoing(&mut self, cx: &mut Context<'_>) -> Poll<Outgoing> {
        let failed = || Close::of(Close::INTERNAL_ERROR, "the application failed");
        loop {
            match self.take_part() {
                Ok(Some(sent)) => {
                    let _ = self.settle();
                    return Poll::Ready(sent);
                }
                Ok(None) if self.settle() => {}
                Ok(None) => {
                    self.input = BytesMut::new();
                    return Poll::Ready(Outgoing::Close(Close::of(
                        Close::TRY_AGAIN_LATER,
                        "the server has no memory left",
                    )));
                }
                Err(close) => return Poll::Ready(Outgoing::Close(close)),
            }
            let Ok(mut ready) = ready!(self.stream.poll_read_ready(cx)) else {
                return Poll::Ready(Outgoing::Close(failed()));
            };
            let read = READS.with_borrow_mut(|space| {
                let read = ready.get_inner().read(space)?;
                self.input.extend_from_slice(&space[..read]);
                Ok::<_, io::Error>(read)
            });
            // After a short read the stream is empty; the next bytes and its end are other events.
            if !matches!(read, Ok(0 | READ..)) {
                ready.clear_ready();
            }
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The script has gone without a close.
                Ok(0) | Err(_) => return Poll::Ready(Outgoing::Close(failed())),
                Ok(_) => {}
            }
        }
    }

    fn teardown_timeout(&self) -> Option<Duration> {
        // Unblocks a script that waits for room.
        let _ = shutdown(self.stream.get_ref(), Shutdown::Read);
        Some(REST)
    }
}

// The replacement is unsafe: it requires that the descriptor stays open and the same, which owning the stream ensures.
#[allow(deprecated)]
fn watched(stream: UnixStream, interest: Interest) -> io::Result<AsyncFd<UnixStream>> {
    AsyncFd::with_interest(stream, interest)
}

/// Writes a part. Waits while the script takes nothing.
async fn write(mut stream: &UnixStream, kind: PartKind, data: &[u8]) -> io::Result<()> {
    let head = PartHead::new(kind, data.len()).to_bytes();
    let mut parts = [IoSlice::new(&head), IoSlice::new(data)];
    let mut rest = &mut parts[..];
    // Registered only while the stream is full.
    let mut room = None;
    while rest.iter().any(|part| !part.is_empty()) {
        match stream.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let full = match room.take() {
                    Some(full) => full,
                    None => watched(stream.try_clone()?, Interest::WRITABLE)?,
                };
                full.writable().await?.clear_ready();
                room = Some(full);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_request::open_stream;
    use howdah_budget::Budgets;
    use std::future::poll_fn;

    /// A connection that the script has accepted, and the script's end.
    fn held(memory: u64) -> (Held, UnixStream, Budgets) {
        let (slot, budgets) = (StreamSlot::default(), Budgets::new(memory, 0));
        let mut script = UnixStream::from(open_stream(&slot).unwrap());
        script.write_all(&PartHead::new(PartKind::Accept, 0).to_bytes()).unwrap();
        (Held::of(&slot, Charge::new(budgets.memory, None)).unwrap().unwrap(), script, budgets)
    }

    /// Sends these bytes as the script; returns the close code, or 0 for a message.
    async fn code(held: &mut Held, script: &mut UnixStream, bytes: &[u8]) -> u16 {
        script.write_all(bytes).unwrap();
        match poll_fn(|cx| held.poll_outgoing(cx)).await {
            Outgoing::Message(_) => 0,
            Outgoing::Close(close) => close.number(),
            Outgoing::Reconnect => 1,
        }
    }

    fn part(kind: u32, length: u32, data: &[u8]) -> Vec<u8> {
        [&PartHead { kind, length }.to_bytes()[..], data].concat()
    }

    #[tokio::test]
    async fn a_scripts_messages_are_read_whole_and_a_broken_layout_closes_the_connection() {
        for (bytes, expected) in [
            (part(2, 2, b"hi"), 0),
            (part(3, 0, b""), 0),
            (part(4, 4, b"\x0f\xa0ab"), 4000),
            (part(4, 2, b"\x03\xe8"), 1000),
            (part(4, 2, b"\x03\xee"), 1011),
            (part(4, 1, b"\x03"), 1011),
            (part(4, 3, b"\x03\xe8\xff"), 1011),
            (part(5, 0, b""), 1),
            (part(1, 0, b""), 1011),
            (part(0, 0, b""), 1011),
            (part(6, 0, b""), 1011),
            (part(2, (1 << 20) + 1, b""), 1011),
            (part(2, u32::MAX, b""), 1011),
        ] {
            let (mut held, mut script, _) = held(1 << 22);
            assert_eq!(code(&mut held, &mut script, &bytes).await, expected, "{bytes:?}");
        }
        let (mut held, mut script, budgets) = held(1 << 22);
        assert_eq!(
            code(&mut held, &mut script, &[part(5, 0, b""), part(2, 1, b"x"), part(5, 0, b"")].concat()).await,
            1
        );
        assert_eq!(code(&mut held, &mut script, b"").await, 0);
        assert_eq!(code(&mut held, &mut script, b"").await, 1011, "a script leaves once");
        script.write_all(&part(2, 2, b"h")).unwrap();
        drop(script);
        assert!(matches!(poll_fn(|cx| held.poll_outgoing(cx)).await, Outgoing::Close(close) if close.number() == 1011));
        drop(held);
        assert_eq!(budgets.memory.used(), 0);
    }

    #[tokio::test]
    async fn a_message_without_room_in_the_budget_closes_the_connection() {
        let (mut held, mut script, budgets) = held(1 << 18);
        assert_eq!(code(&mut held, &mut script, &part(2, 1 << 20, b"")).await, 1013);
        drop(held);
        assert_eq!(budgets.memory.used(), 0);
    }

    #[tokio::test]
    async fn a_script_that_does_not_accept_gets_events() {
        let slot = StreamSlot::default();
        let budgets = Budgets::new(1 << 20, 0);
        assert!(Held::of(&slot, Charge::new(budgets.memory, None)).unwrap().is_none());
        drop(open_stream(&slot).unwrap());
        assert!(Held::of(&slot, Charge::new(budgets.memory, None)).unwrap().is_none());
    }
}
