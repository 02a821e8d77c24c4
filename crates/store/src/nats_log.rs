//! A log as a stream of NATS' JetStream.

use crate::backoff::{Backoff, STEP_TIMEOUT, within};
use crate::log_shared::{KEPT, LogShared};
use crate::nats::Nats;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{Context, stream};
use bytes::Bytes;
use futures_util::StreamExt as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of messages per request.
const READ: usize = 256;
/// Maximum time that a request waits for messages.
const WAIT: Duration = Duration::from_secs(1);
/// Maximum size of a stream in bytes.
const MAX_BYTES: i64 = 64 << 20;
/// Time after which NATS removes the consumer of a server that is gone.
const UNUSED: Duration = Duration::from_secs(30);

/// Returns the stream of a log; the first server creates it.
async fn stream(nats: &Nats, key: &str) -> io::Result<(Context, stream::Stream)> {
    let context = nats.context().await?;
    let config = stream::Config {
        name: stream_name(key),
        subjects: vec![stream_name(key)],
        max_messages: KEPT as i64,
        max_bytes: MAX_BYTES,
        ..stream::Config::default()
    };
    let stream = within(STEP_TIMEOUT, async { context.get_or_create_stream(config).await.map_err(io::Error::other) });
    let stream = stream.await?;
    Ok((context, stream))
}

/// The name of a stream, which is also its subject: it cannot contain dots, spaces or stars.
fn stream_name(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => name.push(char::from(byte)),
            other => name.push_str(&format!("_{other:02x}")),
        }
    }
    name
}

/// Writes appended entries, for ever.
pub(crate) async fn write(nats: Arc<Nats>, end: Arc<LogShared>) {
    let (mut context, mut backoff) = (None, Backoff::new());
    let name = stream_name(&end.key);
    loop {
        let (entries, last) = end.next(end.last_stored()).await;
        match append(&nats, &mut context, &end.key, &name, &entries).await {
            Ok(()) => {
                backoff.reset();
                end.stored(last);
            }
            Err(why) => {
                // The stream may have been deleted.
                context = None;
                end.cannot_write(&why);
                backoff.wait().await;
            }
        }
    }
}

/// Writes entries in order, all or up to an error. NATS drops those that it has already.
async fn append(
    nats: &Nats,
    context: &mut Option<Context>,
    key: &str,
    name: &str,
    entries: &[Bytes],
) -> io::Result<()> {
    let context = match context {
        Some(context) => context,
        None => context.insert(stream(nats, key).await?.0),
    };
    within(STEP_TIMEOUT, async {
        let mut confirmations = Vec::with_capacity(entries.len());
        for entry in entries {
            let id = entry.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>();
            let message = PublishMessage::build().payload(entry.clone()).message_id(id);
            confirmations.push(context.send_publish(name.to_owned(), message).await.map_err(io::Error::other)?);
        }
        for confirmation in confirmations {
            confirmation.await.map_err(io::Error::other)?;
        }
        Ok(())
    })
    .await
}

/// Reads the log from its beginning, for ever.
pub(crate) async fn read(nats: Arc<Nats>, end: Arc<LogShared>) {
    let (mut last, mut backoff) = (Position { number: 0, is_behind: true }, Backoff::new());
    loop {
        let why = read_on(&nats, &end, &mut last, &mut backoff).await;
        end.cannot_read(&why);
        backoff.wait().await;
    }
}

/// The last message that was read.
struct Position {
    number: u64,
    /// Not all entries kept by the log were read yet.
    is_behind: bool,
}

/// Reads after the message `last` until an error.
async fn read_on(nats: &Nats, end: &LogShared, last: &mut Position, backoff: &mut Backoff) -> io::Error {
    let (consumer, newest) = match consumer(nats, &end.key, last).await {
        Ok(consumer) => consumer,
        Err(why) => return why,
    };
    loop {
        if last.is_behind && last.number >= newest {
            last.is_behind = false;
            end.caught_up();
        }
        if let Err(why) = within(WAIT + STEP_TIMEOUT, read_batch(&consumer, end, last, newest)).await {
            return why;
        }
        backoff.reset();
        end.received(std::iter::empty());
    }
}

/// A consumer of the messages after the last one, and the number of the newest message.
async fn consumer(nats: &Nats, key: &str, last: &mut Position) -> io::Result<(PullConsumer, u64)> {
    let (_, stream) = stream(nats, key).await?;
    within(STEP_TIMEOUT, async {
        let newest = stream.get_info().await.map_err(io::Error::other)?.state.last_sequence;
        // The stream was recreated.
        if newest < last.number {
            last.number = 0;
        }
        let config = pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: last.number + 1 },
            ack_policy: AckPolicy::None,
            inactive_threshold: UNUSED,
            ..pull::Config::default()
        };
        Ok((stream.create_consumer(config).await.map_err(io::Error::other)?, newest))
    })
    .await
}

/// Delivers messages as they arrive, until some time has passed or many have arrived.
async fn read_batch(consumer: &PullConsumer, end: &LogShared, last: &mut Position, newest: u64) -> io::Result<()> {
    let batch = consumer.batch().max_messages(READ).expires(WAIT).messages().await;
    let mut batch = batch.map_err(io::Error::other)?;
    while let Some(message) = batch.next().await {
        let message = message.map_err(io::Error::other)?;
        last.number = message.info().map_err(io::Error::other)?.stream_sequence;
        end.received(std::iter::once(&message.payload));
        if last.is_behind && last.number >= newest {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_have_different_streams_whatever_their_names() {
        assert_eq!(stream_name("howdah:log:default"), "howdah_3alog_3adefault");
        assert_ne!(stream_name("a.b"), stream_name("a_b"));
        assert!(
            stream_name("*.example \u{e9}>").bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        );
    }
}
