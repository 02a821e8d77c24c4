//! Compares a share of the responses of a pool that keeps state between requests with classic mode. Routes that differ,
//! are slower, or kill workers are demoted to classic mode (`howdah_pool::Demotions` decides).
//!
//! The client's response is only copied as it is sent. The comparison delays no request: it runs in the background, one
//! at a time, on idle workers, and is skipped if there are none for a while.

use howdah_doctor::compare::{Expected, Words};
use howdah_observe::PoolMetrics;
use howdah_pool::{BodyCopy, Demotions, Fault, Placement, Pool, Request, RequestId, Response, TimeLimits, Verdict};
use howdah_transport::wire::EncodedRequest;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Maximum size of a compared body, in bytes.
const MAX_BODY: usize = 256 << 10;
/// Maximum time in which a response must be sent to its client to be compared.
const SENT_WITHIN: Duration = Duration::from_secs(10);
/// Maximum wait for an idle worker, and the polling interval.
const IDLE_WITHIN: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum time for classic mode to respond.
const RESPONDS_WITHIN: Duration = Duration::from_secs(30);
/// Minimum time between the two classic responses, so that everything that shows seconds differs between them.
const MIN_GAP: Duration = Duration::from_millis(1100);
/// Number of additional classic responses if the first two do not explain a difference.
const FURTHER: usize = 3;
/// Tolerated extra time of a worker compared with classic mode: this, plus a tenth of classic mode's time.
const TOLERATED: Duration = Duration::from_micros(50);
/// Fields that browsers, and proxies on their behalf, send by default. Any other field may authorize a client, such as
/// an API key.
const IMPERSONAL_VARIABLES: &[&[u8]] = &[
    b"HTTP_ACCEPT",
    b"HTTP_ACCEPT_CHARSET",
    b"HTTP_ACCEPT_ENCODING",
    b"HTTP_ACCEPT_LANGUAGE",
    b"HTTP_CACHE_CONTROL",
    b"HTTP_CDN_LOOP",
    b"HTTP_CF_CONNECTING_IP",
    b"HTTP_CF_IPCOUNTRY",
    b"HTTP_CF_RAY",
    b"HTTP_CF_VISITOR",
    b"HTTP_CONNECTION",
    b"HTTP_DNT",
    b"HTTP_FORWARDED",
    b"HTTP_HOST",
    b"HTTP_IF_MODIFIED_SINCE",
    b"HTTP_IF_NONE_MATCH",
    b"HTTP_KEEP_ALIVE",
    b"HTTP_PRAGMA",
    b"HTTP_PRIORITY",
    b"HTTP_REFERER",
    b"HTTP_SAVE_DATA",
    b"HTTP_TE",
    b"HTTP_TRACEPARENT",
    b"HTTP_TRACESTATE",
    b"HTTP_UPGRADE_INSECURE_REQUESTS",
    b"HTTP_USER_AGENT",
    b"HTTP_VIA",
    b"HTTP_X_REAL_IP",
    b"HTTP_X_REQUEST_ID",
];
/// Prefixes of further variables that do not identify a client.
const IMPERSONAL_PREFIXES: &[&[u8]] = &[b"HTTP_SEC_", b"HTTP_X_FORWARDED_"];

/// The comparison of a pool with its classic pool.
#[derive(Debug)]
pub(crate) struct Comparison {
    booted: Arc<Pool>,
    classic: Arc<Pool>,
    demotions: Arc<Demotions>,
    metrics: Arc<PoolMetrics>,
    /// A request is compared if its random 32-bit lot is below this value.
    share: u64,
    lots: AtomicU64,
    /// Permits one comparison at a time.
    turn: Arc<Semaphore>,
    runtime: Handle,
}

/// Data to repeat a request whose response is compared.
struct RequestCopy {
    head: EncodedRequest,
    id: RequestId,
    _turn: OwnedSemaphorePermit,
}

struct FullResponse {
    status: u16,
    fields: Vec<(String, String)>,
    body: BodyCopy,
    /// Time that the request occupied its worker, if measured.
    busy: Duration,
}

impl FullResponse {
    fn words(&self) -> Words {
        Words::of(self.status, &self.fields, self.body.bytes(), None)
    }

    /// `true` if classic mode failed or limited the request: there is nothing to compare with.
    const fn is_failure(&self) -> bool {
        self.status >= 500 || self.status == 429
    }
}

/// Reasons for skipping a comparison, as labels of the metric.
const SKIPPED: &str = "skipped";
const INCONCLUSIVE: &str = "inconclusive";

impl Comparison {
    /// Called on the main thread's runtime, which runs the comparisons.
    pub(crate) fn new(booted: &Arc<Pool>, classic: &Arc<Pool>, metrics: Arc<PoolMetrics>, one_in: u32) -> Arc<Self> {
        let salt = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        Arc::new(Self {
            booted: booted.clone(),
            classic: classic.clone(),
            demotions: booted.demotes_to(classic),
            metrics,
            share: (1 << 32) / u64::from(one_in.max(1)),
            lots: AtomicU64::new(salt),
            turn: Arc::new(Semaphore::new(1)),
            runtime: Handle::current(),
        })
    }

    /// Runs a request, in classic mode if its route was demoted.
    ///
    /// # Errors
    /// As `Pool::run`.
    pub(crate) async fn run(self: &Arc<Self>, request: Box<Request>) -> Result<Response, Fault> {
        let is_wanted = match self.demotions.way_of(request.target()) {
            Placement::Classic => return self.classic.run(request).await,
            Placement::Cold => {
                let target = self.booted.learns_from(&request);
                let response = self.classic.run(request).await?;
                self.booted.learn(target, &response);
                return Ok(response);
            }
            Placement::Suspected => true,
            Placement::Own => self.draws(),
        };
        let wanted = if is_wanted { self.wanted(&request) } else { None };
        let mut response = self.booted.run(request).await?;
        if let Some(wanted) = wanted.filter(|_| is_comparable(response.status)) {
            self.compare_later(wanted, &mut response);
        }
        Ok(response)
    }

    fn draws(&self) -> bool {
        // An odd step reaches every value, and mixing prevents a rhythm that could coincide with one of the requests.
        let step = self.lots.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
        let mixed = (step ^ (step >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 32) < self.share
    }

    /// Returns the data to repeat a request; `None` if it must not be repeated, or another comparison is running.
    fn wanted(&self, request: &Request) -> Option<RequestCopy> {
        let is_private = || request.head.variables().any(|(name, _)| is_personal(name));
        let may_be_repeated = || howdah_pool::may_be_asked_again(request.target()) && !is_private();
        if !request.is_get || !request.body.is_empty() || !may_be_repeated() {
            return None;
        }
        let turn = self.turn.clone().try_acquire_owned().ok()?;
        Some(RequestCopy { head: request.head.clone(), id: request.id, _turn: turn })
    }

    fn compare_later(self: &Arc<Self>, wanted: RequestCopy, response: &mut Response) {
        let (status, fields) = (response.status, fields_of(response));
        let copy = response.body.copy(MAX_BODY);
        let this = self.clone();
        drop(self.runtime.spawn(async move {
            // Long and slow responses are not compared.
            let Ok(Ok(body)) = tokio::time::timeout(SENT_WITHIN, copy).await else { return };
            match this.compare(&wanted, FullResponse { status, fields, body, busy: Duration::ZERO }).await {
                Ok(verdict) => {
                    tracing::debug!(pool = this.booted.name(), request = %wanted.id, ?verdict, "compared");
                    this.demotions.note_comparison(wanted.head.uri(), verdict);
                }
                Err(why) => this.metrics.compared.inc(why),
            }
        }));
    }

    /// Compares a response with classic mode's; the error is the reason why no comparison was possible.
    async fn compare(&self, wanted: &RequestCopy, seen: FullResponse) -> Result<Verdict, &'static str> {
        let first = self.ask_classic(wanted).await?;
        tokio::time::sleep(MIN_GAP).await;
        let second = self.ask_classic(wanted).await?;
        if second.status != first.status {
            return Err(INCONCLUSIVE);
        }
        let (status, classic) = (seen.status, first.busy.min(second.busy));
        let (mut found, here, mut samples) = blocking(move || {
            let (here, samples) = (seen.words(), vec![first.words(), second.words()]);
            (Expected::of(samples.clone()).difference(&here), here, samples)
        })
        .await?;
        // Some pages choose from a few variants: only a response that matches none of classic mode's counts as
        // different.
        for _ in 0..FURTHER {
            if found.is_none() {
                break;
            }
            let sample = self.ask_classic(wanted).await?;
            (found, samples) = {
                let here = here.clone();
                blocking(move || {
                    samples.push(sample.words());
                    (Expected::of(samples.clone()).difference(&here), samples)
                })
                .await?
            };
        }
        if let Some(found) = found {
            return Ok(Verdict::Differs(found.to_string()));
        }
        let again = self.ask(&self.booted, wanted).await;
        // Values that classic mode renews for each request must not be the same for two visitors of this pool.
        let busy = again.as_ref().ok().map(|seen| seen.busy);
        if samples[0] != samples[1] && status < 400 {
            let again = again?;
            let shared = blocking(move || {
                let nobody = Expected::of(Vec::new());
                Expected::of(samples).shared(&here, &nobody, &again.words())
            });
            if let Some(shared) = shared.await? {
                return Ok(Verdict::Differs(shared.to_string()));
            }
        }
        // If the pool is too busy to be timed, its response is still known to be equal.
        let (Some(once), Ok(twice)) = (busy, self.ask(&self.booted, wanted).await) else { return Ok(Verdict::Same) };
        Ok(pace(once.min(twice.busy), classic))
    }

    async fn ask_classic(&self, wanted: &RequestCopy) -> Result<FullResponse, &'static str> {
        let seen = self.ask(&self.classic, wanted).await?;
        if seen.is_failure() { Err(INCONCLUSIVE) } else { Ok(seen) }
    }

    /// Repeats the request in a pool once a worker is idle.
    async fn ask(&self, pool: &Pool, wanted: &RequestCopy) -> Result<FullResponse, &'static str> {
        let until = Instant::now() + IDLE_WITHIN;
        while !pool.is_idle() {
            if Instant::now() >= until {
                return Err(SKIPPED);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let asked = async {
            let (tell, busy) = oneshot::channel();
            let request = Box::new(Request { busy: Some(tell), ..repeated(wanted) });
            let mut response = pool.run(request).await.map_err(|_| INCONCLUSIVE)?;
            let (status, fields) = (response.status, fields_of(&response));
            let copy = response.body.copy(MAX_BODY);
            while let Some(chunk) = poll_fn(|cx| response.body.poll_chunk(cx)).await {
                drop(chunk.map_err(|_| INCONCLUSIVE)?);
            }
            let body = copy.await.map_err(|_| INCONCLUSIVE)?;
            // The time arrives when the worker is done, which may be after the response; a worker that dies sends none.
            let busy = busy.await.map_err(|_| INCONCLUSIVE)?;
            Ok(FullResponse { status, fields, body, busy })
        };
        tokio::time::timeout(RESPONDS_WITHIN, asked).await.unwrap_or(Err(INCONCLUSIVE))
    }
}

/// `true` if a variable may identify the client, or authorize it.
fn is_personal(name: &[u8]) -> bool {
    let is_usual =
        || IMPERSONAL_VARIABLES.contains(&name) || IMPERSONAL_PREFIXES.iter().any(|start| name.starts_with(start));
    matches!(name, b"AUTH_TYPE" | b"REMOTE_USER") || (name.starts_with(b"HTTP_") && !is_usual())
}

/// `true` for responses that depend on the application. 500 is included, because classic mode may succeed.
const fn is_comparable(status: u16) -> bool {
    matches!(status, 200..400 | 500)
}

/// Builds the request again, without the data of its visitor.
fn repeated(wanted: &RequestCopy) -> Request {
    Request {
        limits: TimeLimits { deadline: Some(RESPONDS_WITHIN), queue: Some(IDLE_WITHIN) },
        ..Request::without_client(wanted.head.clone(), wanted.id)
    }
}

/// Judges the time of an equal response. Both are the shortest times measured.
fn pace(booted: Duration, classic: Duration) -> Verdict {
    if booted <= classic + classic / 10 + TOLERATED {
        return Verdict::Same;
    }
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    Verdict::Slower(format!("{:.2} ms, in classic mode {:.2} ms", ms(booted), ms(classic)))
}

fn fields_of(response: &Response) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let field = |(name, value): &(bytes::Bytes, bytes::Bytes)| (text(name).to_ascii_lowercase(), text(value));
    response.headers.iter().map(field).collect()
}

/// Runs the comparison of long texts on a blocking thread, so that no request waits for it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, &'static str> {
    tokio::task::spawn_blocking(work).await.map_err(|_| INCONCLUSIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_a_tenth_more_time_is_not_slower() {
        let ms = Duration::from_millis;
        for (booted, classic) in [(ms(1), ms(2)), (ms(2), ms(2)), (ms(11), ms(10)), (TOLERATED, Duration::ZERO)] {
            assert_eq!(pace(booted, classic), Verdict::Same, "{booted:?} {classic:?}");
        }
        assert_eq!(pace(ms(12), ms(10)), Verdict::Slower("12.00 ms, in classic mode 10.00 ms".to_owned()));
    }
}
