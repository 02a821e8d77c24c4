//! Reads a request body completely before a worker (or, with `buffer`, an upstream server) gets the request, so that a
//! slow client never occupies a worker. The body is kept in memory up to a limit, then in an unnamed temporary file,
//! within the budgets. Trailers are read and dropped.

use crate::exchange::Exchange;
use crate::phase::limits;
use crate::phase::php::body_limit::Allowance;
use crate::refusal::Refusal;
use crate::site::Site;
use crate::static_files::is_out_of_descriptors;
use bytes::{Bytes, BytesMut};
use howdah_budget::{Budgets, Charge, Share};
use howdah_pool::RequestBody;
use howdah_protocol::{BodyError, Connection, RequestBody as Incoming};
use http::StatusCode;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Complete bodies below this size, in bytes, are not charged to the budget: they are part of a request's base cost.
const SMALL_BODY: usize = 1024;

/// Limit and storage for a body.
pub(in crate::phase) struct SpoolLimits<'a> {
    memory: usize,
    limit: Allowance,
    pause: Duration,
    min_rate: u64,
    temp_dir: &'a Path,
    budgets: Budgets,
    share: Option<Arc<Share>>,
}

impl<'a> SpoolLimits<'a> {
    pub(in crate::phase) fn new(site: &'a Site, connection: &Connection, limit: Allowance) -> Self {
        let http = &site.server.settings.http;
        Self {
            memory: site.settings.http.body_memory.as_usize(),
            limit,
            pause: http.client_timeout,
            min_rate: http.min_rate.bytes(),
            temp_dir: &site.server.temp_dir,
            budgets: site.server.budgets,
            share: connection.share.get().cloned(),
        }
    }

    /// Keeps the body in memory as long as the memory budget has room, for a request that the server handles itself.
    pub(in crate::phase) fn in_memory(self) -> Self {
        Self { memory: usize::try_from(self.limit.most).unwrap_or(usize::MAX), ..self }
    }

    /// `true` if the budget has room for a body of this length now. Nothing is reserved, or a client that only
    /// announces a large body would take the room from clients that send one.
    fn is_for(&self, length: u64) -> bool {
        let budget = if length <= self.memory as u64 { self.budgets.memory } else { self.budgets.spool };
        let room = budget.has_room(length);
        if !room {
            budget.note_refused();
        }
        room
    }
}

/// Reads the body of a request that the server handles itself into memory: at most `max` bytes, or fewer if the site or
/// a rule has a lower limit.
pub(in crate::phase) async fn read_own(exchange: &Exchange, body: &mut Incoming, max: u64) -> Result<Bytes, Refusal> {
    let most = exchange.max_body().unwrap_or(max).min(max);
    limits::check_body(Some(most), &exchange.head)?;
    let room = SpoolLimits::new(&exchange.site, &exchange.connection, Allowance { most, drops: false }).in_memory();
    match read(&room, body.take()).await.map_err(|error| error.into_refusal(&room, exchange))? {
        RequestBody::Memory(bytes) => Ok(bytes),
        RequestBody::Empty => Ok(Bytes::new()),
        RequestBody::File(..) | RequestBody::Stream(_) | RequestBody::Dropped(_) => Err(Refusal::over_budget()),
    }
}

/// The reason why a body could not be read.
#[derive(Debug)]
pub(in crate::phase) enum SpoolError {
    TooLarge,
    TooSlow,
    /// The client disconnected, or sent an invalid transfer coding.
    Broken(BodyError),
    /// The budget is exhausted.
    NoRoom,
    Storage(io::Error),
}

impl SpoolError {
    pub(in crate::phase) fn into_refusal(self, room: &SpoolLimits<'_>, exchange: &Exchange) -> Refusal {
        let id = exchange.id;
        match self {
            Self::TooLarge => limits::too_large(room.limit.most, None, &exchange.head),
            Self::TooSlow => Refusal::new(StatusCode::REQUEST_TIMEOUT),
            Self::Broken(error) => {
                tracing::debug!(target: "howdah::request", request = %id, %error, "request body ended early");
                Refusal::bad_request("a broken body")
            }
            Self::NoRoom => {
                tracing::warn!(target: "howdah::request", request = %id, "request refused: no room for its body in `http.memory` or `http.spool`");
                Refusal::over_budget()
            }
            Self::Storage(error) if is_out_of_descriptors(&error) => {
                tracing::error!(target: "howdah::request", request = %id, %error, "cannot spool the request body: 503");
                Refusal::over_budget()
            }
            Self::Storage(error) => {
                tracing::error!(
                    target: "howdah::request",
                    request = %id,
                    %error,
                    "cannot spool the request body; is there room in the directory of temporary files (TMPDIR)?"
                );
                Refusal::new(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }
}

impl From<io::Error> for SpoolError {
    fn from(error: io::Error) -> Self {
        Self::Storage(error)
    }
}

/// Reads the whole body.
pub(in crate::phase) async fn read(room: &SpoolLimits<'_>, mut body: Incoming) -> Result<RequestBody, SpoolError> {
    let announced = body.announced();
    let mut timeout = ReadTimeout::new(room.pause, room.min_rate);
    if room.limit.drops && announced.is_some_and(|length| length > room.limit.most) {
        return drop_rest(0, &mut body, &mut timeout).await;
    }
    // Refuses before the first read, so that no `100 Continue` is sent.
    if !room.is_for(announced.unwrap_or(1)) {
        return Err(SpoolError::NoRoom);
    }
    let mut store = Store { kept: Kept::Nothing, charge: Charge::new(room.budgets.memory, room.share.clone()) };
    let mut length = 0u64;
    while let Some(data) = timeout.next(&mut body).await? {
        length += data.len() as u64;
        if length > room.limit.most {
            if room.limit.drops {
                drop(store);
                return drop_rest(length, &mut body, &mut timeout).await;
            }
            return Err(SpoolError::TooLarge);
        }
        store.add(data, announced, room)?;
    }
    Ok(store.finish(length)?)
}

/// Reads to the end of the body and keeps only its length. `length` bytes were read before.
async fn drop_rest(mut length: u64, body: &mut Incoming, timeout: &mut ReadTimeout) -> Result<RequestBody, SpoolError> {
    while let Some(data) = timeout.next(body).await? {
        length += data.len() as u64;
    }
    Ok(RequestBody::Dropped(length))
}

/// The data read so far, and its charge.
struct Store {
    kept: Kept,
    /// Charge to the memory budget, or to the spool budget once there is a file.
    charge: Charge,
}

enum Kept {
    Nothing,
    /// A single chunk as received, so small bodies are never copied.
    One(Bytes),
    Many(BytesMut),
    File(File),
}

impl Store {
    fn add(&mut self, data: Bytes, announced: Option<u64>, room: &SpoolLimits<'_>) -> Result<(), SpoolError> {
        let have = match &self.kept {
            Kept::Nothing => 0,
            Kept::One(bytes) => bytes.len(),
            Kept::Many(bytes) => bytes.len(),
            Kept::File(_) => usize::MAX,
        };
        let expected =
            announced.and_then(|n| usize::try_from(n).ok()).unwrap_or(0).max(have.saturating_add(data.len()));
        if expected <= room.memory && self.charge.grow(data.len() as u64) {
            self.keep(data, expected);
            return Ok(());
        }
        if !matches!(self.kept, Kept::File(_)) {
            self.begin_file(room)?;
        }
        if !self.charge.grow(data.len() as u64) {
            return Err(SpoolError::NoRoom);
        }
        match &mut self.kept {
            Kept::File(file) => Ok(file.write_all(&data)?),
            _ => Err(SpoolError::NoRoom),
        }
    }

    fn keep(&mut self, data: Bytes, expected: usize) {
        self.kept = match std::mem::replace(&mut self.kept, Kept::Nothing) {
            Kept::Nothing => Kept::One(data),
            Kept::One(first) => {
                let mut all = BytesMut::with_capacity(expected);
                all.extend_from_slice(&first);
                all.extend_from_slice(&data);
                Kept::Many(all)
            }
            Kept::Many(mut all) => {
                all.extend_from_slice(&data);
                Kept::Many(all)
            }
            Kept::File(file) => Kept::File(file),
        };
    }

    /// Moves the data read so far to a file.
    fn begin_file(&mut self, room: &SpoolLimits<'_>) -> Result<(), SpoolError> {
        let mut charge = self.charge.beside(room.budgets.spool);
        if !charge.grow(self.charge.bytes()) {
            return Err(SpoolError::NoRoom);
        }
        let mut file = tempfile::tempfile_in(room.temp_dir)?;
        match std::mem::replace(&mut self.kept, Kept::Nothing) {
            Kept::Nothing | Kept::File(_) => {}
            Kept::One(bytes) => file.write_all(&bytes)?,
            Kept::Many(bytes) => file.write_all(&bytes)?,
        }
        self.kept = Kept::File(file);
        self.charge = charge;
        Ok(())
    }

    fn finish(self, length: u64) -> io::Result<RequestBody> {
        let bytes = match self.kept {
            Kept::Nothing => return Ok(RequestBody::Empty),
            Kept::One(bytes) => bytes,
            Kept::Many(bytes) => bytes.freeze(),
            Kept::File(mut file) => {
                file.rewind()?;
                return Ok(RequestBody::File(OwnedFd::from(file), length, self.charge));
            }
        };
        // A small body is covered by the base cost of a request.
        Ok(RequestBody::Memory(if bytes.len() < SMALL_BODY { bytes } else { self.charge.cover(bytes) }))
    }
}

/// Limits the wait for each chunk, and enforces a minimum rate against clients that send byte by byte. The timer is
/// armed only when no chunk is ready.
struct ReadTimeout {
    pause: Duration,
    timer: Option<Pin<Box<tokio::time::Sleep>>>,
    min_rate: u64,
    /// Start of the current measuring window; `came` counts the bytes received in it.
    window: Option<Instant>,
    came: u64,
}

impl ReadTimeout {
    fn new(pause: Duration, min_rate: u64) -> Self {
        Self { pause, timer: None, min_rate, window: None, came: 0 }
    }

    /// Called when no chunk is ready. Returns `true` if the client was below the minimum rate in the current window,
    /// which is at least one `pause` long.
    fn is_too_slow(&mut self, now: Instant) -> bool {
        let window = *self.window.get_or_insert(now);
        let took = now.saturating_duration_since(window);
        if took < self.pause {
            return false;
        }
        let (came, wanted) = (std::mem::take(&mut self.came), took.as_millis() * u128::from(self.min_rate) / 1000);
        self.window = Some(now);
        u128::from(came) < wanted
    }

    async fn next(&mut self, body: &mut Incoming) -> Result<Option<Bytes>, SpoolError> {
        let mut deadline = None;
        std::future::poll_fn(|cx| {
            if let Poll::Ready(part) = body.poll_part(cx) {
                if let Some(Ok(data)) = &part {
                    self.came += data.len() as u64;
                }
                return Poll::Ready(part.transpose().map_err(SpoolError::Broken));
            }
            let deadline = match deadline {
                Some(deadline) => deadline,
                None => {
                    let now = Instant::now();
                    if self.is_too_slow(now) {
                        return Poll::Ready(Err(SpoolError::TooSlow));
                    }
                    *deadline.insert(now + self.pause)
                }
            };
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
            if timer.deadline() != deadline {
                timer.as_mut().reset(deadline);
            }
            timer.as_mut().poll(cx).map(|()| Err(SpoolError::TooSlow))
        })
        .await
    }
}
