//! The unidirectional streams of an HTTP/3 connection (RFC 9114 6.2). The client's are read and checked. The server's
//! control stream carries its settings and, at the end, a GOAWAY.

use super::code::{Code, Fault};
use super::frames::{self, Frames, Source, kind, put_frame, put_number};
use super::streams::{Incoming, write_all};
use crate::connection::Shared;
use bytes::{Bytes, BytesMut};
use quinn::SendStream;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The types of unidirectional streams.
const CONTROL: u64 = 0;
const PUSH: u64 = 1;
const ENCODER: u64 = 2;
const DECODER: u64 = 3;

/// Number of the setting that the server always sends (RFC 9114 7.2.4.1). Without those of RFC 9204 5, there is no
/// dynamic table.
const MAX_FIELD_SECTION_SIZE: u64 = 6;
/// Number of the setting that allows extended CONNECT (RFC 9220 5).
const ENABLE_CONNECT_PROTOCOL: u64 = 8;

/// Maximum payloads in bytes of a client's SETTINGS, and of frames that hold one number.
const MAX_SETTINGS_LEN: u64 = 4096;
const MAX_NUMBER_LEN: u64 = 64;

/// Maximum number of frames on a client's control stream: its settings, a GOAWAY, and occasional unknown frames.
const MAX_CONTROL_FRAMES: u32 = 10_000;

/// The streams that a client may have once.
#[derive(Debug, Default)]
pub(super) struct UniqueStreams {
    control: AtomicBool,
    encoder: AtomicBool,
    decoder: AtomicBool,
}

impl UniqueStreams {
    fn take(stream: &AtomicBool) -> Result<(), Fault> {
        match stream.swap(true, Relaxed) {
            true => Err(Fault::Connection(Code::STREAM_CREATION_ERROR, "a unique stream was opened twice")),
            false => Ok(()),
        }
    }
}

/// Reads a unidirectional stream to its end, or for as long as there is a connection.
pub(super) async fn listen(incoming: Incoming, once: &UniqueStreams) -> Result<(), Fault> {
    let mut frames = Frames::new(incoming);
    let Some(kind) = poll_fn(|cx| frames.poll_number(cx)).await.or_else(lenient)? else { return Ok(()) };
    let result = match kind {
        CONTROL => {
            UniqueStreams::take(&once.control)?;
            control(&mut frames).await
        }
        ENCODER => {
            UniqueStreams::take(&once.encoder)?;
            encoder(&mut frames).await
        }
        DECODER => {
            UniqueStreams::take(&once.decoder)?;
            // Acknowledges uses of the dynamic table, which responses do not use: ignored.
            while poll_fn(|cx| frames.poll_raw(cx)).await?.is_some() {}
            Ok(())
        }
        PUSH => return Err(Fault::Connection(Code::STREAM_CREATION_ERROR, "a client has opened a push stream")),
        _ => {
            frames.source().stop(Code::STREAM_CREATION_ERROR);
            return Ok(());
        }
    };
    match result {
        // None of these may end before the connection does (RFC 9114 6.2.1, RFC 9204 4.2).
        Ok(()) | Err(Fault::Stream(..)) => {
            Err(Fault::Connection(Code::CLOSED_CRITICAL_STREAM, "a critical stream was closed"))
        }
        error => error,
    }
}

/// A stream may end before its kind is known (RFC 9114 6.2).
fn lenient(fault: Fault) -> Result<Option<u64>, Fault> {
    match fault {
        Fault::Connection(Code::FRAME_ERROR, _) | Fault::Stream(..) => Ok(None),
        fault => Err(fault),
    }
}

/// Reads the client's control stream, which begins with its settings. The settings are checked and otherwise ignored.
async fn control<S: Source>(frames: &mut Frames<S>) -> Result<(), Fault> {
    match poll_fn(|cx| frames.poll_frame(cx)).await? {
        Some(kind::SETTINGS) => settings(&whole(frames, MAX_SETTINGS_LEN).await?)?,
        Some(_) => return Err(Fault::Connection(Code::MISSING_SETTINGS, "a control stream begins without settings")),
        None => return Ok(()),
    }
    for _ in 0..MAX_CONTROL_FRAMES {
        match poll_fn(|cx| frames.poll_frame(cx)).await? {
            // Ignored: the server does not push, and a client that sends no more requests needs no answer.
            Some(kind::GOAWAY | kind::MAX_PUSH_ID) => {
                number_of(&whole(frames, MAX_NUMBER_LEN).await?)?;
            }
            Some(kind::CANCEL_PUSH) => {
                return Err(Fault::Connection(Code::ID_ERROR, "a push was cancelled that was never promised"));
            }
            Some(kind) if kind::is_reserved(kind) => {
                return Err(Fault::Connection(
                    Code::FRAME_UNEXPECTED,
                    "the control stream has a frame that is not allowed there",
                ));
            }
            Some(_) => {}
            None => return Ok(()),
        }
    }
    Err(Fault::Connection(Code::EXCESSIVE_LOAD, "the control stream has too many frames"))
}

/// The whole payload of a frame.
async fn whole<S: Source>(frames: &mut Frames<S>, most: u64) -> Result<Bytes, Fault> {
    if frames.left() > most {
        return Err(Fault::Connection(Code::EXCESSIVE_LOAD, "a frame of the control stream is too long"));
    }
    let mut payload = BytesMut::new();
    while let Some(bytes) = poll_fn(|cx| frames.poll_payload(cx)).await? {
        payload.extend_from_slice(&bytes);
    }
    Ok(payload.freeze())
}

/// Checks the client's settings (RFC 9114 7.2.4). None of them affects what the server sends.
fn settings(payload: &Bytes) -> Result<(), Fault> {
    let wrong = Fault::Connection(Code::SETTINGS_ERROR, "the settings are invalid");
    let mut seen = Vec::new();
    let mut rest = payload.clone();
    while !rest.is_empty() {
        let (name, value) = (frames::number(&mut rest), frames::number(&mut rest));
        let (Some(name), Some(_)) = (name, value) else {
            return Err(Fault::Connection(Code::FRAME_ERROR, "the settings are truncated"));
        };
        // HTTP/2 settings and duplicates are forbidden.
        if matches!(name, 2..=5) || seen.contains(&name) {
            return Err(wrong);
        }
        seen.push(name);
        if seen.len() > 64 {
            return Err(Fault::Connection(Code::EXCESSIVE_LOAD, "there are too many settings"));
        }
    }
    Ok(())
}

/// The one number of a frame.
fn number_of(payload: &Bytes) -> Result<u64, Fault> {
    let mut rest = payload.clone();
    frames::number(&mut rest)
        .filter(|_| rest.is_empty())
        .ok_or(Fault::Connection(Code::FRAME_ERROR, "a frame's payload is not one number"))
}

/// Reads the QPACK encoder stream. Without a dynamic table, a client may only set its capacity to 0.
async fn encoder<S: Source>(frames: &mut Frames<S>) -> Result<(), Fault> {
    const SIZE_0: u8 = 0b0010_0000;
    while let Some(bytes) = poll_fn(|cx| frames.poll_raw(cx)).await? {
        if bytes.iter().any(|&byte| byte != SIZE_0) {
            return Err(Fault::Connection(Code::ENCODER_STREAM_ERROR, "the disabled dynamic table is used"));
        }
    }
    Ok(())
}

/// The server's control stream.
#[derive(Debug)]
pub(super) struct Control(SendStream);

impl Control {
    /// Opens it with the settings.
    pub(super) async fn open(connection: &quinn::Connection, shared: &Shared) -> Result<Self, Fault> {
        let mut stream = connection.open_uni().await.map_err(|_| Fault::Gone)?;
        let mut settings = BytesMut::new();
        put_number(&mut settings, MAX_FIELD_SECTION_SIZE);
        put_number(&mut settings, shared.header_list as u64);
        if shared.extended_connect {
            put_number(&mut settings, ENABLE_CONNECT_PROTOCOL);
            put_number(&mut settings, 1);
        }
        let mut out = BytesMut::new();
        put_number(&mut out, CONTROL);
        put_frame(&mut out, kind::SETTINGS, settings.len());
        out.extend_from_slice(&settings);
        write_all(&mut stream, out.freeze()).await?;
        Ok(Self(stream))
    }

    /// Sends GOAWAY: requests from stream `first` on are not processed (RFC 9114 5.2).
    pub(super) async fn go_away(&mut self, first: u64) -> Result<(), Fault> {
        let mut number = BytesMut::new();
        put_number(&mut number, first);
        let mut out = BytesMut::new();
        put_frame(&mut out, kind::GOAWAY, number.len());
        out.extend_from_slice(&number);
        write_all(&mut self.0, out.freeze()).await
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::tests::Pieces;
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn result(stream: &[u8], of: impl AsyncFnOnce(&mut Frames<Pieces>) -> Result<(), Fault>) -> Result<(), Code> {
        let mut frames = Frames::new(Pieces::new(stream, 3));
        match pin!(of(&mut frames)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(Fault::Connection(code, _))) => Err(code),
            Poll::Ready(result) => result.map_err(|fault| panic!("{fault}")),
            Poll::Pending => panic!("not ready"),
        }
    }

    #[test]
    fn a_control_stream_begins_with_settings_and_has_nothing_that_belongs_elsewhere() {
        let of = |stream: &[u8]| result(stream, async |frames| control(frames).await);
        assert_eq!(of(b"\x04\x00"), Ok(()));
        assert_eq!(of(b"\x04\x02\x06\x10\x21\x03abc\x07\x01\x04\x0d\x01\x00"), Ok(()));
        assert_eq!(of(b"\x21\x00\x04\x00"), Err(Code::MISSING_SETTINGS));
        assert_eq!(of(b"\x04\x00\x04\x00"), Err(Code::FRAME_UNEXPECTED));
        assert_eq!(of(b"\x04\x00\x00\x01a"), Err(Code::FRAME_UNEXPECTED));
        assert_eq!(of(b"\x04\x00\x06\x00"), Err(Code::FRAME_UNEXPECTED), "PING of HTTP/2");
        assert_eq!(of(b"\x04\x02\x02\x01"), Err(Code::SETTINGS_ERROR), "a setting of HTTP/2");
        assert_eq!(of(b"\x04\x04\x06\x10\x06\x10"), Err(Code::SETTINGS_ERROR));
        assert_eq!(of(b"\x04\x01\x06"), Err(Code::FRAME_ERROR));
        assert_eq!(of(b"\x04\x7f\xff"), Err(Code::EXCESSIVE_LOAD));
        assert_eq!(of(b"\x04\x00\x07\x02\x04\x04"), Err(Code::FRAME_ERROR));
        assert_eq!(of(b"\x04\x00\x03\x01\x00"), Err(Code::ID_ERROR));
        assert_eq!(of(&[&b"\x04\x00"[..], &b"\x21\x00".repeat(10_001)].concat()), Err(Code::EXCESSIVE_LOAD));
    }

    #[test]
    fn there_is_no_dynamic_table() {
        let of = |stream: &[u8]| result(stream, async |frames| encoder(frames).await);
        assert_eq!(of(b"\x20\x20"), Ok(()));
        assert_eq!(of(b"\x3f\xe1\x1f"), Err(Code::ENCODER_STREAM_ERROR));
    }
}
