//! The whole decision for one response: negotiate, judge, look into the cache, sample, encode, set the fields.
//!
//! HEAD: the fields are those that GET would get where they can be known. With the body at hand they are: a cached body
//! even gives the `Content-Length`. Without it, `Vary` is set, and what is only true of the unencoded body (length,
//! ranges, strong `ETag`) is left out where GET might encode.

use super::cache::{Admission, Cache, Found, Sighting, Stats};
use super::encode::{ONE_GO, whole};
use super::policy::{self, TypeList, Verdict};
use super::stream::{AtHand, Encoded, StreamEncoder};
use super::{Coding, negotiate, sample};
use bytes::Bytes;
use howdah_config::{Algorithm, CompressionSettings};
use howdah_protocol::{FileIdentity, Whole as WholeBody};
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue, IF_NONE_MATCH};
use http::{Method, StatusCode};
use std::sync::Arc;

/// Compression as the settings want it, with its cache. One for all threads.
#[derive(Debug)]
pub struct Compressor {
    /// Empty if compression is off.
    algorithms: &'static [Algorithm],
    types: TypeList,
    cache: Arc<Cache>,
}

/// In order of preference where the client takes several equally.
const ALGORITHMS: &[Algorithm] = &[Algorithm::Zstd, Algorithm::Brotli, Algorithm::Gzip];

/// The smallest body that is compressed, in bytes.
const MIN_SIZE: u64 = 1024;

/// The parts of a request that matter here; read before the request is consumed.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    head: bool,
    algorithm: Option<Algorithm>,
    /// Read for a 304 only.
    if_none_match: Option<HeaderValue>,
}

impl Asked {
    /// True if the client takes a coding that the server has.
    #[must_use]
    pub fn encodes(&self) -> bool {
        self.algorithm.is_some() && !self.head
    }

    /// As if the client took no coding.
    pub fn take_no_coding(&mut self) {
        self.algorithm = None;
    }
}

/// Encoding of a response, for logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The way.
    pub how: How,
}

/// The way to an encoded body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Compressed in one go.
    Fresh,
    /// Taken from the cache.
    Cached,
    /// Compressed while it is sent.
    Streamed,
}

impl Encoding {
    /// As the access log has it: `zstd`, `zstd/cache`, `zstd/stream`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match (self.algorithm, self.how) {
            (Algorithm::Zstd, How::Fresh) => "zstd",
            (Algorithm::Zstd, How::Cached) => "zstd/cache",
            (Algorithm::Zstd, How::Streamed) => "zstd/stream",
            (Algorithm::Brotli, How::Fresh) => "br",
            (Algorithm::Brotli, How::Cached) => "br/cache",
            (Algorithm::Brotli, How::Streamed) => "br/stream",
            (Algorithm::Gzip, How::Fresh) => "gzip",
            (Algorithm::Gzip, How::Cached) => "gzip/cache",
            (Algorithm::Gzip, How::Streamed) => "gzip/stream",
        }
    }
}

/// A body that went in complete, and what became of it.
#[derive(Debug)]
pub struct Done {
    /// The body to send.
    pub body: Whole,
    /// Its encoding; `None` if unencoded.
    pub encoding: Option<Encoding>,
}

/// The form of a complete body to send.
#[derive(Debug)]
pub enum Whole {
    /// These bytes.
    Bytes(WholeBody),
    /// Encoded in slices; the body was too large for one go.
    Slices(Box<Encoded>),
}

/// Facts about a file before it is read.
#[derive(Debug)]
pub enum Known {
    /// Its bytes encoded; the header fields are set to fit.
    Encoded(Bytes, Encoding),
    /// It goes out as it is.
    Plain,
    /// Nothing is known; the result can be stored there.
    Nothing(Option<Admission>),
}

impl Compressor {
    /// Compression according to these settings.
    #[must_use]
    pub fn new(settings: &CompressionSettings) -> Self {
        Self::with_cache(settings, Arc::new(Cache::new(settings.cache.as_usize())))
    }

    /// A compressor with a shared cache.
    #[must_use]
    pub fn with_cache(settings: &CompressionSettings, cache: Arc<Cache>) -> Self {
        let algorithms = if settings.enabled { ALGORITHMS } else { &[] };
        Self { algorithms, types: TypeList::new(&settings.types), cache }
    }

    /// Reads from a request what the other functions need to know for a response of this status.
    #[must_use]
    pub fn asked(&self, method: &Method, headers: &HeaderMap, status: StatusCode) -> Asked {
        if self.algorithms.is_empty() {
            return Asked::default();
        }
        let lines = headers.get_all(ACCEPT_ENCODING);
        Asked {
            head: method == Method::HEAD,
            algorithm: negotiate::choose(lines.iter().map(HeaderValue::as_bytes), self.algorithms),
            if_none_match: (status == StatusCode::NOT_MODIFIED).then(|| headers.get(IF_NONE_MATCH).cloned()).flatten(),
        }
    }

    /// True if a response with this head may be encoded for this request. Changes nothing.
    #[must_use]
    pub fn may_encode(&self, asked: &Asked, status: StatusCode, headers: &HeaderMap) -> bool {
        asked.algorithm.is_some()
            && !asked.head
            && matches!(policy::judge(status, headers, &self.types), Verdict::Candidate { .. })
    }

    /// The figures of the cache.
    #[must_use]
    pub fn cache_stats(&self) -> Stats {
        self.cache.stats()
    }

    /// Looks for what was noted of a file. It stands in the cache of encoded bodies under the file's identity, as if that
    /// were its bytes: one budget and one way out for both.
    #[must_use]
    pub fn known(&self, asked: &Asked, status: StatusCode, headers: &mut HeaderMap, file: &FileIdentity) -> Known {
        let Some((coding, _)) = self.candidate(asked, status, headers) else { return Known::Nothing(None) };
        let found = match self.cache.find(coding, file.as_slice()) {
            Found::Hit(encoded) => encoded,
            _ => match self.cache.look_closely(coding, file) {
                Sighting::Hit(encoded) => encoded,
                Sighting::Again(admission) => return Known::Nothing(Some(admission)),
                Sighting::New => return Known::Nothing(None),
            },
        };
        let Some(encoded) = found else { return Known::Plain };
        policy::mark_encoded(headers, coding.algorithm);
        Known::Encoded(encoded, Encoding { algorithm: coding.algorithm, how: How::Cached })
    }

    /// Encodes a body that is at hand completely, if that is allowed and useful, and sets the header fields to fit.
    ///
    /// Where the length changes, `Content-Length` is removed, to be set from the body's own. For HEAD, `body` may be what
    /// GET would have got or empty; an empty body comes back.
    #[must_use]
    pub fn complete(&self, asked: &Asked, status: StatusCode, headers: &mut HeaderMap, body: WholeBody) -> Done {
        let plain = |body| Done { body: Whole::Bytes(body), encoding: None };
        let nothing = || WholeBody::from(Bytes::new());
        let sent = |body: WholeBody| if asked.head { nothing() } else { body };
        let Some((coding, declared)) = self.candidate(asked, status, headers) else { return plain(sent(body)) };
        if asked.head && body.is_empty() {
            if declared.is_none_or(|length| length >= MIN_SIZE) {
                policy::forget_unencoded(headers);
            }
            return plain(body);
        }
        if (body.len() as u64) < MIN_SIZE {
            return plain(sent(body));
        }
        let done = |body, how| Done { body, encoding: Some(Encoding { algorithm: coding.algorithm, how }) };
        let mut hit = |encoded: Bytes| {
            policy::mark_encoded(headers, coding.algorithm);
            if asked.head {
                headers.insert(CONTENT_LENGTH, HeaderValue::from(encoded.len()));
            }
            done(Whole::Bytes(sent(encoded.into())), How::Cached)
        };
        let found = match self.cache.find(coding, &body) {
            Found::Hit(None) => return plain(sent(body)),
            Found::Hit(Some(encoded)) => return hit(encoded),
            found => found,
        };
        // Encoders and the sample get bytes that stay as they are.
        let body = body.into_bytes();
        let pays = || sample::pays(&body);
        // A body without a place is sampled first, as the hash of all bytes is of no use for one that is not encoded.
        if matches!(found, Found::Nothing) && !pays() {
            return plain(sent(body.into()));
        }
        let admission = match self.cache.look_closely(coding, &body) {
            Sighting::Hit(None) => return plain(sent(body.into())),
            Sighting::Hit(Some(encoded)) => return hit(encoded),
            Sighting::Again(admission) => Some(admission),
            Sighting::New => None,
        };
        if matches!(found, Found::Other) && !pays() {
            return plain(sent(body.into()));
        }
        if asked.head {
            policy::mark_encoded(headers, coding.algorithm);
            return done(Whole::Bytes(nothing()), How::Fresh);
        }
        let encoded = if body.len() > ONE_GO {
            slices(coding, &body, admission).map(|slices| done(Whole::Slices(Box::new(slices)), How::Streamed))
        } else {
            one_go(coding, &body, admission).map(|encoded| done(Whole::Bytes(encoded.into()), How::Fresh))
        };
        match encoded {
            Some(encoded) => {
                policy::mark_encoded(headers, coding.algorithm);
                encoded
            }
            None => plain(body.into()),
        }
    }

    /// Decides about a body that comes in parts, and sets the header fields to fit. The encoder that comes back goes
    /// into an [`Encoded`] with the body's source; `None` means to send the body as it is (for HEAD: none).
    ///
    /// `first` is the first part if it is there already. It is sampled; without it the media type alone decides.
    #[must_use]
    pub fn stream(
        &self,
        asked: &Asked,
        status: StatusCode,
        headers: &mut HeaderMap,
        first: Option<&[u8]>,
    ) -> Option<(StreamEncoder, Encoding)> {
        let (coding, declared) = self.candidate(asked, status, headers)?;
        if declared.is_some_and(|length| length < MIN_SIZE) {
            return None;
        }
        if asked.head {
            policy::forget_unencoded(headers);
            return None;
        }
        // A short first part says little about what follows.
        if first.is_some_and(|first| first.len() >= FIRST_PART && !sample::pays(first)) {
            return None;
        }
        let encoder = StreamEncoder::new(coding, declared).ok()?;
        policy::mark_encoded(headers, coding.algorithm);
        Some((encoder, Encoding { algorithm: coding.algorithm, how: How::Streamed }))
    }

    /// The coding for a response that may be encoded, and the length that it declares. Sets `Vary`.
    fn candidate(&self, asked: &Asked, status: StatusCode, headers: &mut HeaderMap) -> Option<(Coding, Option<u64>)> {
        if self.algorithms.is_empty() {
            return None;
        }
        match policy::judge(status, headers, &self.types) {
            Verdict::Leave => None,
            Verdict::NotModified => {
                policy::finish_not_modified(headers, asked.if_none_match.as_ref());
                None
            }
            Verdict::Part => {
                policy::add_vary(headers);
                None
            }
            Verdict::Candidate { declared } => {
                policy::add_vary(headers);
                asked.algorithm.map(|algorithm| (coding(algorithm), declared))
            }
        }
    }
}

/// The levels, measured on a page of 50 KB: gzip at 5 costs 2.7 times the time of 1 for 9 % fewer bytes, Brotli at 4 costs
/// 1.6 times the time of 2 for no gain.
const fn coding(algorithm: Algorithm) -> Coding {
    let level = match algorithm {
        Algorithm::Gzip => 1,
        Algorithm::Brotli => 2,
        Algorithm::Zstd => 3,
    };
    Coding { algorithm, level }
}

/// The shortest first part that is sampled.
const FIRST_PART: usize = 1024;

fn one_go(coding: Coding, body: &Bytes, admission: Option<Admission>) -> Option<Bytes> {
    // Cached forms are made from the cache's copy: the bytes of a mapped file may change meanwhile.
    let original = admission.as_ref().map_or(body, Admission::original);
    let encoded = whole(coding, original);
    if let Some(admission) = admission {
        match &encoded {
            Some(encoded) => admission.complete(encoded.clone()),
            None => admission.useless(),
        }
    }
    encoded
}

fn slices(coding: Coding, body: &Bytes, admission: Option<Admission>) -> Option<Encoded> {
    let original = admission.as_ref().map_or(body, Admission::original).clone();
    let encoder = StreamEncoder::new(coding, Some(original.len() as u64)).ok()?;
    Some(Encoded::new(Box::new(AtHand::new(original)), encoder).admit(admission))
}

#[cfg(test)]
#[path = "compressor_tests.rs"]
mod tests;
