//! Chooses the requests to copy, and keeps the old server's responses while they are passed on.

use super::head::{RequestHead, ResponseHead};
use super::tally::Tally;
use crate::client::{Request, Response};
use crate::pages::may_end_something;
use crate::traffic::Skip;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum length of a compared body, in bytes.
pub(super) const MAX_BODY: usize = 1 << 20;
/// Maximum memory for bodies of responses that are passed on, wait or are compared, in bytes.
const MAX_KEPT: usize = 32 << 20;
/// Maximum number of responses that wait for a comparison.
const MAX_WAITING: usize = 128;

/// Fields of a request that are not copied: Howdah does not know the old server's versions of a file, and compression is
/// not compared.
const NOT_COPIED: &[&str] =
    &["if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "accept-encoding", "content-length"];

/// Fields of a request by which an application knows its visitors.
const OF_VISITORS: &[&str] = &["cookie", "authorization"];

/// A response of the old server and the request to repeat.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) request: Request,
    pub(super) response: Response,
    /// Part of the memory budget that the body has; returned on drop.
    charge: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
pub(super) struct Sampler {
    /// In percent.
    share: u64,
    /// `true` if requests of known visitors are copied.
    sessions: bool,
    seen: AtomicU64,
    stopped: AtomicBool,
    memory: Arc<Semaphore>,
    queue: Sender<Sample>,
    tally: Arc<Tally>,
}

impl Sampler {
    pub(super) fn new(share: u64, sessions: bool, tally: Arc<Tally>) -> (Self, Receiver<Sample>) {
        let (queue, samples) = channel(MAX_WAITING);
        let memory = Arc::new(Semaphore::new(MAX_KEPT));
        (
            Self { share, sessions, seen: AtomicU64::new(0), stopped: AtomicBool::new(false), memory, queue, tally },
            samples,
        )
    }

    /// Decides whether a request is copied.
    pub(super) fn choose(self: &Arc<Self>, head: &RequestHead, client: IpAddr) -> Tap {
        let mut tap = Tap { sample: None, sampler: Arc::clone(self) };
        if head.method != "GET" || head.is_upgrade() || self.stopped.load(Ordering::Relaxed) || !self.is_due() {
            return tap;
        }
        self.tally.chosen();
        let path = head.target.as_str();
        let has = |names: &[&str]| names.iter().any(|name| head.fields.has(name));
        let is_plain = path.starts_with('/') && path.parse::<http::Uri>().is_ok() && head.has_no_body();
        let skipped = if !self.sessions && has(OF_VISITORS) {
            Some(Skip::Visitor)
        } else if may_end_something(path) {
            Some(Skip::Changing)
        } else if !is_plain || has(&["range"]) {
            Some(Skip::Special)
        } else {
            None
        };
        if let Some(why) = skipped {
            self.tally.skipped(why);
            return tap;
        }
        let headers = texts(head.forwarded_fields(client).iter().map(|(name, value)| (*name, value.as_slice())));
        let headers = headers.into_iter().filter(|(name, _)| !NOT_COPIED.contains(&name.as_str())).collect();
        let request = Request { method: "GET".to_owned(), path: path.to_owned(), headers, body: String::new() };
        tap.sample = Some(Sample { request, response: Response::default(), charge: None });
        tap
    }

    /// Copies no more requests.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// `true` for the share of calls, evenly distributed.
    fn is_due(&self) -> bool {
        let seen = self.seen.fetch_add(1, Ordering::Relaxed);
        (seen + 1) * self.share / 100 != seen * self.share / 100
    }
}

/// Fields by their names in lower case.
fn texts<'a>(fields: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<(String, String)> {
    fields.map(|(name, value)| (name.to_ascii_lowercase(), String::from_utf8_lossy(value).into_owned())).collect()
}

/// Keeps a response while it is passed on, if its request is to be copied. Never waits.
#[derive(Debug)]
pub(super) struct Tap {
    sample: Option<Sample>,
    sampler: Arc<Sampler>,
}

impl Tap {
    pub(super) fn begin(&mut self, head: &ResponseHead) {
        let Some(sample) = &mut self.sample else { return };
        let kind = head.fields.first("content-type").unwrap_or_default().to_ascii_lowercase();
        if head.status == 304 || kind.starts_with("text/event-stream") {
            return self.skip(Skip::Special);
        }
        let headers = texts(head.fields.end_to_end());
        sample.response = Response { status: head.status, headers, ..Response::default() };
    }

    /// Keeps a part of the body.
    pub(super) fn append(&mut self, data: &[u8]) {
        let Some(sample) = &mut self.sample else { return };
        let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
        if sample.response.body.len() + data.len() > MAX_BODY {
            self.skip(Skip::Large);
        } else if let Ok(more) = Arc::clone(&self.sampler.memory).try_acquire_many_owned(count) {
            match &mut sample.charge {
                Some(charge) => charge.merge(more),
                None => sample.charge = Some(more),
            }
            sample.response.body.extend_from_slice(data);
        } else {
            self.skip(Skip::Busy);
        }
    }

    /// The response has been passed on completely: puts it into the queue.
    pub(super) fn complete(&mut self) {
        let Some(sample) = self.sample.take() else { return };
        // A closed queue means that the run is at its end: `Tally::comparison` counts the rest.
        if let Err(TrySendError::Full(_)) = self.sampler.queue.try_send(sample) {
            self.sampler.tally.skipped(Skip::Busy);
        }
    }

    fn skip(&mut self, why: Skip) {
        if self.sample.take().is_some() {
            self.sampler.tally.skipped(why);
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.skip(Skip::Cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn sampler(share: u64, sessions: bool) -> (Arc<Sampler>, Receiver<Sample>, Arc<Tally>) {
        let tally = Arc::new(Tally::default());
        let (sampler, samples) = Sampler::new(share, sessions, Arc::clone(&tally));
        (Arc::new(sampler), samples, tally)
    }

    fn chosen(sampler: &Arc<Sampler>, head: &str) -> Option<Request> {
        let (head, _) = RequestHead::parse(head.as_bytes()).unwrap().unwrap();
        let mut tap = sampler.choose(&head, IpAddr::from(Ipv4Addr::LOCALHOST));
        tap.sample.take().map(|sample| sample.request)
    }

    #[test]
    fn a_share_is_spread_evenly_over_the_requests() {
        for (share, expected) in [(1, 10), (10, 100), (33, 330), (100, 1000)] {
            let (sampler, _samples, _) = sampler(share, false);
            let due: Vec<bool> = (0..1000).map(|_| sampler.is_due()).collect();
            assert_eq!(due.iter().filter(|due| **due).count(), expected);
            let most = due.chunks(100).map(|part| part.iter().filter(|due| **due).count() as u64).max();
            assert_eq!(most, Some(share));
        }
    }

    #[test]
    fn only_gets_without_visitors_and_side_effects_are_copied() {
        let (all, _samples, tally) = sampler(100, false);
        let found = chosen(
            &all,
            "GET /a?b=c HTTP/1.1\r\nHost: shop\r\nIf-None-Match: \"1\"\r\nConnection: x-own\r\nX-Own: 1\r\n\
             x-forwarded-for: 192.0.2.1\r\nAccept-Encoding: gzip\r\n\r\n",
        );
        let fields = |list: &[(&str, &str)]| list.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let expected: Vec<(String, String)> = fields(&[("host", "shop"), ("x-forwarded-for", "192.0.2.1, 127.0.0.1")]);
        let found = found.unwrap();
        assert_eq!((found.path.as_str(), found.headers), ("/a?b=c", expected));
        for (head, why) in [
            ("GET / HTTP/1.1\r\nCookie: s=1\r\n\r\n", Some(Skip::Visitor)),
            ("GET / HTTP/1.1\r\nauthorization: Basic YTpi\r\n\r\n", Some(Skip::Visitor)),
            ("GET /user/logout HTTP/1.1\r\n\r\n", Some(Skip::Changing)),
            ("GET / HTTP/1.1\r\nRange: bytes=0-1\r\n\r\n", Some(Skip::Special)),
            ("GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n", Some(Skip::Special)),
            ("GET http://shop/ HTTP/1.1\r\n\r\n", Some(Skip::Special)),
            ("POST / HTTP/1.1\r\n\r\n", None),
            ("HEAD / HTTP/1.1\r\n\r\n", None),
            ("GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", None),
        ] {
            let before = tally.traffic();
            assert!(chosen(&all, head).is_none(), "{head}");
            let mut expected = before;
            if let Some(why) = why {
                expected.chosen += 1;
                *expected.skipped.entry(why).or_default() += 1;
            }
            assert_eq!(tally.traffic(), expected, "{head}");
        }
        let (visitors, _samples, _) = sampler(100, true);
        let found = chosen(&visitors, "GET / HTTP/1.1\r\nCookie: s=1\r\n\r\n").unwrap();
        assert_eq!(found.headers[0], ("cookie".to_owned(), "s=1".to_owned()));
    }

    #[test]
    fn memory_and_queue_are_bounded_and_the_rest_is_counted() {
        let (all, mut samples, tally) = sampler(100, false);
        let (head, _) = RequestHead::parse(b"GET / HTTP/1.1\r\n\r\n").unwrap().unwrap();
        let (response, _) = ResponseHead::parse(b"HTTP/1.1 200 OK\r\n\r\n", "GET").unwrap().unwrap();
        let tap = || {
            let mut tap = all.choose(&head, IpAddr::from(Ipv4Addr::LOCALHOST));
            tap.begin(&response);
            tap
        };
        for _ in 0..MAX_WAITING + 3 {
            tap().complete();
        }
        let mut large = tap();
        (0..3).for_each(|_| large.append(&vec![0; MAX_BODY / 2]));
        let mut taps: Vec<Tap> = (0..MAX_KEPT / MAX_BODY + 2).map(|_| tap()).collect();
        taps.iter_mut().for_each(|tap| tap.append(&vec![0; MAX_BODY]));
        drop(taps);
        let skipped = tally.traffic().skipped;
        let cut = (MAX_KEPT / MAX_BODY) as u64;
        assert_eq!(skipped.into_iter().collect::<Vec<_>>(), [(Skip::Busy, 5), (Skip::Large, 1), (Skip::Cut, cut)]);
        let mut again = tap();
        again.append(&vec![0; MAX_BODY]);
        assert!(samples.try_recv().is_ok());
        again.complete();
        assert_eq!(all.memory.available_permits(), MAX_KEPT - MAX_BODY, "memory of dropped responses is free again");
    }
}
