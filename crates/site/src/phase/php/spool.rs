//! Reads a request's body to its end before PHP (or a proxy's server, with `buffer`) is asked, so that a slow client never
//! holds a worker: in memory up to a limit, then in an unnamed temporary file, as far as the budgets go. Trailers are read
//! and dropped.

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

/// A body below this size is part of what every request costs.
const SMALL_BODY: usize = 1024;

/// Limit and storage for a body.
pub(in crate::phase) struct Room<'a> {
    memory: usize,
    limit: Allowance,
    pause: Duration,
    min_rate: u64,
    temp_dir: &'a Path,
    budgets: Budgets,
    share: Option<Arc<Share>>,
}

impl<'a> Room<'a> {
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

    /// Room for a body that the server reads itself: no file is begun while the budget has memory.
    pub(in crate::phase) fn in_memory(self) -> Self {
        Self { memory: usize::try_from(self.limit.most).unwrap_or(usize::MAX), ..self }
    }

    /// `true` if a body of this length could be kept now. Nothing is reserved: a client that announces much would take
    /// it from those that send it.
    fn is_for(&self, length: u64) -> bool {
        let budget = if length <= self.memory as u64 { self.budgets.memory } else { self.budgets.spool };
        let room = budget.has_room(length);
        if !room {
            budget.note_refused();
        }
        room
    }
}

/// Reads the body of a request that the server responds to itself into memory: `max` bytes at most, or fewer where the
/// site allows less.
pub(in crate::phase) async fn read_own(exchange: &Exchange, body: &mut Incoming, max: u64) -> Result<Bytes, Refusal> {
    let most = exchange.max_body().unwrap_or(max).min(max);
    limits::check_body(Some(most), &exchange.head)?;
    let room = Room::new(&exchange.site, &exchange.connection, Allowance { most, drops: false }).in_memory();
    match read(&room, body.take()).await.map_err(|error| error.into_refusal(&room, exchange))? {
        RequestBody::Memory(bytes) => Ok(bytes),
        RequestBody::Empty => Ok(Bytes::new()),
        RequestBody::File(..) | RequestBody::Dropped(_) => Err(Refusal::over_budget()),
    }
}

/// Why a body could not be read.
#[derive(Debug)]
pub(in crate::phase) enum SpoolError {
    TooLarge,
    TooSlow,
    /// The client broke off, or broke the coding's rules.
    Broken(BodyError),
    /// There is no budget for it.
    NoRoom,
    Storage(io::Error),
}

impl SpoolError {
    pub(in crate::phase) fn into_refusal(self, room: &Room<'_>, exchange: &Exchange) -> Refusal {
        let id = exchange.id;
        match self {
            Self::TooLarge => limits::too_large(room.limit.most, None, &exchange.head),
            Self::TooSlow => Refusal::new(StatusCode::REQUEST_TIMEOUT),
            Self::Broken(error) => {
                tracing::debug!(target: "howdah::request", %id, %error, "request body ended early");
                Refusal::bad_request("a broken body")
            }
            Self::NoRoom => {
                tracing::warn!(target: "howdah::request", %id, "request refused: no room for its body in `http.memory` or `http.spool`");
                Refusal::over_budget()
            }
            Self::Storage(error) if is_out_of_descriptors(&error) => {
                tracing::error!(target: "howdah::request", %id, %error, "cannot spool the request body: 503");
                Refusal::over_budget()
            }
            Self::Storage(error) => {
                tracing::error!(target: "howdah::request", %id, %error, "cannot spool the request body; is there room in the directory of temporary files (TMPDIR)?");
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
pub(in crate::phase) async fn read(room: &Room<'_>, mut body: Incoming) -> Result<RequestBody, SpoolError> {
    let announced = body.announced();
    let mut patience = Patience::new(room.pause, room.min_rate);
    if room.limit.drops && announced.is_some_and(|length| length > room.limit.most) {
        return drop_rest(0, &mut body, &mut patience).await;
    }
    // Not even a `100 Continue` then.
    if !room.is_for(announced.unwrap_or(1)) {
        return Err(SpoolError::NoRoom);
    }
    let mut store = Store { kept: Kept::Nothing, charge: Charge::new(room.budgets.memory, room.share.clone()) };
    let mut length = 0u64;
    while let Some(data) = patience.next(&mut body).await? {
        length += data.len() as u64;
        if length > room.limit.most {
            if room.limit.drops {
                drop(store);
                return drop_rest(length, &mut body, &mut patience).await;
            }
            return Err(SpoolError::TooLarge);
        }
        store.add(data, announced, room)?;
    }
    Ok(store.finish(length)?)
}

/// Reads on to the body's end and keeps its length alone, of which `length` bytes have come.
async fn drop_rest(mut length: u64, body: &mut Incoming, patience: &mut Patience) -> Result<RequestBody, SpoolError> {
    while let Some(data) = patience.next(body).await? {
        length += data.len() as u64;
    }
    Ok(RequestBody::Dropped(length))
}

/// The data read so far, and its charge.
struct Store {
    kept: Kept,
    /// To the budget of memory, or of files once there is one.
    charge: Charge,
}

enum Kept {
    Nothing,
    /// One piece, as it came: small bodies are never copied.
    One(Bytes),
    Many(BytesMut),
    File(File),
}

impl Store {
    fn add(&mut self, data: Bytes, announced: Option<u64>, room: &Room<'_>) -> Result<(), SpoolError> {
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

    /// Moves what there is to a file.
    fn begin_file(&mut self, room: &Room<'_>) -> Result<(), SpoolError> {
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
        // A body smaller than the base cost of a request waits without a separate charge.
        Ok(RequestBody::Memory(if bytes.len() < SMALL_BODY { bytes } else { self.charge.cover(bytes) }))
    }
}

/// Waits for parts, each for a limited time, and not for ever for one byte after the other. The timer is armed only when a
/// part is really waited for.
struct Patience {
    pause: Duration,
    timer: Option<Pin<Box<tokio::time::Sleep>>>,
    min_rate: u64,
    /// Since when it is counted what comes, and what has come.
    window: Option<Instant>,
    came: u64,
}

impl Patience {
    fn new(pause: Duration, min_rate: u64) -> Self {
        Self { pause, timer: None, min_rate, window: None, came: 0 }
    }

    /// A part has to be waited for. True: those before came too slowly, judged anew for each `pause`.
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
