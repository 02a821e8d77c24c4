//! Reads a request's body to its end before PHP is asked, so that a slow client never holds a worker: in memory up to a
//! budget, then in an unnamed temporary file. Trailers are read and dropped.

use crate::received::{ReceiveError, Received};
use crate::refusal::Refusal;
use crate::site::Site;
use bytes::{Bytes, BytesMut};
use howdah_pool::{RequestBody, RequestId};
use http::StatusCode;
use http_body::{Body, Frame};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How much may be read, and where it goes.
pub(super) struct Budget<'a> {
    memory: usize,
    most: u64,
    pause: Duration,
    temp_dir: &'a Path,
}

impl<'a> Budget<'a> {
    pub(super) fn new(site: &'a Site) -> Self {
        let http = &site.settings.http;
        Self {
            memory: http.body_memory.as_usize(),
            most: site.limits.max_body,
            pause: http.body_timeout,
            temp_dir: &site.temp_dir,
        }
    }
}

/// Why a body could not be read.
#[derive(Debug)]
pub(super) enum SpoolError {
    TooLarge,
    TooSlow,
    /// The client broke off, or broke the coding's rules.
    Broken(ReceiveError),
    Storage(io::Error),
}

impl SpoolError {
    pub(super) fn into_refusal(self, id: RequestId) -> Refusal {
        match self {
            Self::TooLarge => Refusal::new(StatusCode::PAYLOAD_TOO_LARGE),
            Self::TooSlow => Refusal::new(StatusCode::REQUEST_TIMEOUT),
            Self::Broken(error) => {
                tracing::debug!(target: "howdah::request", %id, %error, "the body ended early");
                Refusal::bad_request("a broken body")
            }
            Self::Storage(error) => {
                tracing::error!(target: "howdah::request", %id, %error, "cannot spool the body; is there room in `http.temp_dir`?");
                Refusal::new(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }
}

/// Reads the whole body.
pub(super) async fn read(budget: &Budget<'_>, body: Received) -> Result<RequestBody, SpoolError> {
    let announced = body.size_hint().exact();
    let mut body = pin!(body);
    let mut store = Store::Nothing;
    let mut length = 0u64;
    let mut patience = Patience::new(budget.pause);
    while let Some(frame) = patience.next(body.as_mut()).await? {
        // What is no data is trailers.
        let Ok(data) = frame.into_data() else { continue };
        length += data.len() as u64;
        if length > budget.most {
            return Err(SpoolError::TooLarge);
        }
        store = store.add(data, announced, budget).map_err(SpoolError::Storage)?;
    }
    store.finish(length).map_err(SpoolError::Storage)
}

/// What has been read.
enum Store {
    Nothing,
    /// One piece, as it came: small bodies are never copied.
    One(Bytes),
    Many(BytesMut),
    File(File),
}

impl Store {
    fn add(self, data: Bytes, announced: Option<u64>, budget: &Budget<'_>) -> io::Result<Self> {
        let have = match &self {
            Self::Nothing => 0,
            Self::One(bytes) => bytes.len(),
            Self::Many(bytes) => bytes.len(),
            Self::File(_) => usize::MAX,
        };
        let expected =
            announced.and_then(|n| usize::try_from(n).ok()).unwrap_or(0).max(have.saturating_add(data.len()));
        if expected > budget.memory {
            let mut file = match self {
                Self::File(file) => file,
                Self::Nothing => tempfile::tempfile_in(budget.temp_dir)?,
                Self::One(bytes) => started(budget, &bytes)?,
                Self::Many(bytes) => started(budget, &bytes)?,
            };
            file.write_all(&data)?;
            return Ok(Self::File(file));
        }
        Ok(match self {
            Self::Nothing => Self::One(data),
            Self::One(first) => {
                let mut all = BytesMut::with_capacity(expected);
                all.extend_from_slice(&first);
                all.extend_from_slice(&data);
                Self::Many(all)
            }
            Self::Many(mut all) => {
                all.extend_from_slice(&data);
                Self::Many(all)
            }
            Self::File(file) => Self::File(file),
        })
    }

    fn finish(self, length: u64) -> io::Result<RequestBody> {
        Ok(match self {
            Self::Nothing => RequestBody::Empty,
            Self::One(bytes) => RequestBody::Memory(bytes),
            Self::Many(bytes) => RequestBody::Memory(bytes.freeze()),
            Self::File(mut file) => {
                file.rewind()?;
                RequestBody::File(OwnedFd::from(file), length)
            }
        })
    }
}

fn started(budget: &Budget<'_>, bytes: &[u8]) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(budget.temp_dir)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// Waits for parts, each for a limited time. The timer is armed only when a part is really waited for.
struct Patience {
    pause: Duration,
    timer: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Patience {
    fn new(pause: Duration) -> Self {
        Self { pause, timer: None }
    }

    async fn next(&mut self, mut body: Pin<&mut Received>) -> Result<Option<Frame<Bytes>>, SpoolError> {
        let mut deadline = None;
        std::future::poll_fn(|cx| {
            if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
                return Poll::Ready(frame.transpose().map_err(SpoolError::Broken));
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.pause);
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
            if timer.deadline() != deadline {
                timer.as_mut().reset(deadline);
            }
            timer.as_mut().poll(cx).map(|()| Err(SpoolError::TooSlow))
        })
        .await
    }
}
