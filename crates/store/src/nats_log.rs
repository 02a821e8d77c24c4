//! A log as a stream of NATS' JetStream.

use crate::backoff::{Backoff, STEP_TIMEOUT, within};
use crate::log_shared::{KEPT, LogShared};
use crate::nats::{Nats, encoded};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, push};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, Context, stream};
use async_nats::{Client, Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Time without a message after which NATS sends a heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Time without either after which NATS is away.
const SILENCE: Duration = Duration::from_secs(3);
/// Maximum size of a stream in bytes.
const MAX_BYTES: i64 = 64 << 20;
/// Time after which NATS removes the consumer of a server that is gone.
const UNUSED: Duration = Duration::from_secs(30);

/// Returns the stream of a log; the first server creates it.
async fn stream(nats: &Nats, key: &str) -> io::Result<(Context, stream::Stream)> {
    let context = nats.context().await?;
    let config = stream::Config {
        name: encoded(key),
        subjects: vec![encoded(key)],
        max_messages: KEPT as i64,
        max_bytes: MAX_BYTES,
        ..stream::Config::default()
    };
    let stream = within(STEP_TIMEOUT, async { context.get_or_create_stream(config).await.map_err(io::Error::other) });
    let stream = stream.await?;
    Ok((context, stream))
}

/// Writes appended entries, for ever.
pub(crate) async fn write(nats: Arc<Nats>, end: Arc<LogShared>) {
    let (mut context, mut backoff) = (None, Backoff::new());
    let name = encoded(&end.key);
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

/// Writes entries in order. After an error, any of them may have been stored. NATS drops those that it got within its
/// duplicate window.
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
///
/// NATS pushes messages and heartbeats. Pulling them in batches is not enough: NATS 2.9 does not say that a batch has
/// expired if a message arrives at that moment, which looks as if it were away.
pub(crate) async fn read(nats: Arc<Nats>, end: Arc<LogShared>) {
    let (mut last, mut backoff) = (Position { number: 0, is_behind: true }, Backoff::new());
    loop {
        if let Err(why) = read_on(&nats, &end, &mut last, &mut backoff).await {
            end.cannot_read(&why);
        }
        backoff.wait().await;
    }
}

/// The last message that was read.
struct Position {
    number: u64,
    /// Not all entries kept by the log were read yet.
    is_behind: bool,
}

/// Reads after the message `last` until an error, or until a message was lost on its way.
async fn read_on(nats: &Nats, end: &LogShared, last: &mut Position, backoff: &mut Backoff) -> io::Result<()> {
    let mut pushed = Pushed::start(nats, &end.key, last).await?;
    loop {
        if last.is_behind && last.number >= pushed.newest {
            last.is_behind = false;
            end.caught_up();
        }
        let message = within(SILENCE, pushed.next()).await?;
        match message {
            Next::Heartbeat => end.received(std::iter::empty()),
            Next::Entry(number, payload) => {
                last.number = number;
                end.received(std::iter::once(&payload));
            }
            Next::Gap => return Ok(()),
        }
        backoff.reset();
    }
}

/// A subscription to the messages of a stream, with heartbeats between them.
struct Pushed {
    client: Client,
    context: Context,
    messages: Subscriber,
    /// Number of the newest message of the stream as reading began.
    newest: u64,
    /// Number of messages received.
    received: u64,
}

enum Next {
    Heartbeat,
    /// A message, with its number in the stream.
    Entry(u64, Bytes),
    /// Messages are missing, such as after a reconnection.
    Gap,
}

impl Pushed {
    /// Asks for the messages after the last one.
    async fn start(nats: &Nats, key: &str, last: &mut Position) -> io::Result<Self> {
        let (context, stream) = stream(nats, key).await?;
        let client = nats.client().await?;
        within(STEP_TIMEOUT, async {
            let newest = stream.get_info().await.map_err(io::Error::other)?.state.last_sequence;
            // The stream was recreated.
            if newest < last.number {
                last.number = 0;
            }
            let inbox = client.new_inbox();
            let messages = client.subscribe(inbox.clone()).await.map_err(io::Error::other)?;
            let config = push::Config {
                deliver_subject: inbox,
                deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: last.number + 1 },
                ack_policy: AckPolicy::None,
                idle_heartbeat: HEARTBEAT,
                flow_control: true,
                inactive_threshold: UNUSED,
                ..push::Config::default()
            };
            stream.create_consumer(config).await.map_err(io::Error::other)?;
            Ok(Self { client, context, messages, newest, received: 0 })
        })
        .await
    }

    /// Waits for the next message or heartbeat. Both have the number of messages that NATS has sent.
    async fn next(&mut self) -> io::Result<Next> {
        let message = self.messages.next().await.ok_or_else(|| io::Error::other("the subscription has ended"))?;
        if message.status.is_some() {
            self.confirm(&message).await?;
            let sent = header(&message, "Nats-Last-Consumer").and_then(|number| number.parse().ok());
            return Ok(if sent.is_some_and(|sent: u64| sent > self.received) { Next::Gap } else { Next::Heartbeat });
        }
        let payload = message.payload.clone();
        let message = jetstream::Message { message, context: self.context.clone() };
        let info = message.info().map_err(io::Error::other)?;
        self.received += 1;
        Ok(if info.consumer_sequence == self.received { Next::Entry(info.stream_sequence, payload) } else { Next::Gap })
    }

    /// NATS may wait until it knows that earlier messages have arrived: it asks, and says in heartbeats that it waits.
    async fn confirm(&self, message: &Message) -> io::Result<()> {
        let waits = || header(message, "Nats-Consumer-Stalled").map(Into::into);
        let Some(subject) = message.reply.clone().or_else(waits) else { return Ok(()) };
        self.client.publish(subject, Bytes::new()).await.map_err(io::Error::other)
    }
}

fn header<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    message.headers.as_ref()?.get(name).map(|value| value.as_str())
}
