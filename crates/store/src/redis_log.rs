//! A log as a Redis stream.

use crate::backoff::{Backoff, STEP_TIMEOUT, within};
use crate::log_shared::{KEPT, LogShared};
use crate::redis::{Link, Redis, Value, cmd};
use ::redis::Pipeline;
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time that a read waits for an entry.
const BLOCK_MILLISECONDS: u64 = 1000;
/// Maximum number of entries per read.
const READ: usize = 256;
/// Field that contains an entry.
const FIELD: &str = "e";

/// Writes appended entries, for ever.
pub(crate) async fn write(redis: Arc<Redis>, end: Arc<LogShared>) {
    let (mut link, mut backoff) = (None, Backoff::new());
    loop {
        let (entries, last) = end.next(end.last_stored()).await;
        match within(STEP_TIMEOUT, append(&redis, &mut link, &end.key, &entries)).await {
            Ok(()) => {
                backoff.reset();
                end.stored(last);
            }
            Err(why) => {
                link = None;
                end.cannot_write(&why);
                backoff.wait().await;
            }
        }
    }
}

/// Writes entries in order. After an error, any of them may have been written.
async fn append(redis: &Redis, link: &mut Option<Link>, key: &str, entries: &[Bytes]) -> io::Result<()> {
    let link = match link {
        Some(link) => link,
        None => link.insert(redis.open().await?),
    };
    let mut all = Pipeline::with_capacity(entries.len());
    for entry in entries {
        all.cmd("XADD").arg(key).arg("MAXLEN").arg("~").arg(KEPT).arg("*").arg(FIELD).arg(&**entry);
    }
    link.run_all(&all).await
}

/// Reads the log from its beginning, for ever.
pub(crate) async fn read(redis: Arc<Redis>, end: Arc<LogShared>) {
    let (mut last, mut backoff) = (Position { id: "0".to_owned(), is_behind: true }, Backoff::new());
    loop {
        let why = read_on(&redis, &end, &mut last, &mut backoff).await;
        end.cannot_read(&why);
        backoff.wait().await;
    }
}

/// The last entry that was read.
struct Position {
    id: String,
    /// Not all entries kept by the log were read yet.
    is_behind: bool,
}

/// Reads after the entry with the id `last` until an error.
async fn read_on(redis: &Redis, end: &LogShared, last: &mut Position, backoff: &mut Backoff) -> io::Error {
    let link = match within(STEP_TIMEOUT, redis.open()).await {
        Ok(link) => link,
        Err(why) => return why,
    };
    loop {
        let mut command = cmd("XREAD");
        command.arg("COUNT").arg(READ);
        if !last.is_behind {
            command.arg("BLOCK").arg(BLOCK_MILLISECONDS);
        }
        command.arg("STREAMS").arg(&end.key).arg(&last.id);
        let reply = within(Duration::from_millis(BLOCK_MILLISECONDS) + STEP_TIMEOUT, async {
            link.run(&command).await.map_err(io::Error::other)
        })
        .await;
        let entries = match reply.map(entries) {
            Ok(Some(entries)) => entries,
            Ok(None) => return io::Error::other("unexpected reply to XREAD"),
            Err(why) => return why,
        };
        backoff.reset();
        if let Some((id, _)) = entries.last() {
            last.id.clone_from(id);
        }
        end.received(entries.iter().map(|(_, entry)| entry));
        if last.is_behind && entries.len() < READ {
            last.is_behind = false;
            end.caught_up();
        }
    }
}

/// Ids and contents of entries in a reply to XREAD, which is nil if there are none.
fn entries(reply: Value) -> Option<Vec<(String, Bytes)>> {
    let Value::Array(streams) = reply else { return (reply == Value::Nil).then(Vec::new) };
    let mut found = Vec::new();
    for stream in streams {
        let Value::Array(stream) = stream else { return None };
        let Some(Value::Array(entries)) = stream.into_iter().nth(1) else { return None };
        for entry in entries {
            let Value::Array(entry) = entry else { return None };
            let [Value::BulkString(id), Value::Array(fields)] = <[Value; 2]>::try_from(entry).ok()? else {
                return None;
            };
            // An entry without a value is not ours: it counts as empty and is ignored.
            let content = match fields.into_iter().nth(1) {
                Some(Value::BulkString(content)) => content,
                _ => Vec::new(),
            };
            found.push((String::from_utf8(id).ok()?, content.into()));
        }
    }
    Some(found)
}
