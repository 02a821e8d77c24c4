//! The steps for one response: negotiate, judge, look up in the cache, sample, encode, set the header fields.
//!
//! HEAD gets the same fields as GET, as far as they are known. If the body is available they are; a cached body even
//! provides the `Content-Length`. Otherwise `Vary` is set, and the fields that hold only for the unencoded body
//! (length, ranges, strong `ETag`) are omitted if GET might encode.

use super::cache::{Admission, Cache, CacheLookup, Found};
use super::encode::{ONE_GO, whole};
use super::policy::{self, TypeList, Verdict};
use super::stream::{Encoded, SingleChunk, StreamEncoder};
use super::{Coding, negotiate, sample};
use bytes::Bytes;
use howdah_config::{Algorithm, CompressionSettings};
use howdah_protocol::{FileIdentity, Whole as WholeBody};
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue, IF_NONE_MATCH};
use http::{Method, StatusCode};
use std::sync::Arc;

/// Compression as configured, with its cache. Shared by all threads.
#[derive(Debug)]
pub struct Compressor {
    /// Empty if compression is off.
    algorithms: &'static [Algorithm],
    types: TypeList,
    cache: Arc<Cache>,
}

/// In order of preference if the client gives several the same weight.
const ALGORITHMS: &[Algorithm] = &[Algorithm::Zstd, Algorithm::Brotli, Algorithm::Gzip];

/// The smallest body that is compressed, in bytes.
const MIN_SIZE: u64 = 1024;

/// The parts of a request that compression needs, read before the request is consumed.
#[derive(Debug, Clone, Default)]
pub struct CompressionRequest {
    head: bool,
    algorithm: Option<Algorithm>,
    /// Read for a 304 only.
    if_none_match: Option<HeaderValue>,
}

impl CompressionRequest {
    /// `true` if the client accepts a coding that the server supports. Always `false` for HEAD.
    pub fn encodes(&self) -> bool {
        self.algorithm.is_some() && !self.head
    }

    /// Continues as if the client accepted no coding.
    pub fn take_no_coding(&mut self) {
        self.algorithm = None;
    }
}

/// Encoding of a response, for logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    pub algorithm: Algorithm,
    /// The source of the encoded body.
    pub how: EncodingSource,
}

/// Source of an encoded body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodingSource {
    /// Compressed in one go.
    Fresh,
    /// Taken from the cache.
    Cached,
    /// Compressed while it is sent.
    Streamed,
}

impl Encoding {
    /// As the access log has it: `zstd`, `zstd/cache`, `zstd/stream`.
    pub fn label(self) -> &'static str {
        match (self.algorithm, self.how) {
            (Algorithm::Zstd, EncodingSource::Fresh) => "zstd",
            (Algorithm::Zstd, EncodingSource::Cached) => "zstd/cache",
            (Algorithm::Zstd, EncodingSource::Streamed) => "zstd/stream",
            (Algorithm::Brotli, EncodingSource::Fresh) => "br",
            (Algorithm::Brotli, EncodingSource::Cached) => "br/cache",
            (Algorithm::Brotli, EncodingSource::Streamed) => "br/stream",
            (Algorithm::Gzip, EncodingSource::Fresh) => "gzip",
            (Algorithm::Gzip, EncodingSource::Cached) => "gzip/cache",
            (Algorithm::Gzip, EncodingSource::Streamed) => "gzip/stream",
        }
    }
}

/// Result of encoding a complete body.
#[derive(Debug)]
pub struct EncodeResult {
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

/// Result of a cache lookup for a file, before it is read.
#[derive(Debug)]
pub enum FileLookup {
    /// The encoded bytes are cached. The header fields have been set.
    Encoded(Bytes, Encoding),
    /// The file is sent unencoded.
    Plain,
    /// Not cached, or must not be encoded. The result can be stored with the admission, if there is one.
    Nothing(Option<Admission>),
}

impl Compressor {
    /// Compression according to these settings.
    pub fn new(settings: &CompressionSettings) -> Self {
        Self::with_cache(settings, Arc::new(Cache::new(settings.cache.as_usize())))
    }

    /// A compressor with a shared cache.
    pub fn with_cache(settings: &CompressionSettings, cache: Arc<Cache>) -> Self {
        let algorithms = if settings.enabled { ALGORITHMS } else { &[] };
        Self { algorithms, types: TypeList::new(&settings.types), cache }
    }

    /// Reads from a request the parts that the other functions need for a response with this status.
    pub fn asked(&self, method: &Method, headers: &HeaderMap, status: StatusCode) -> CompressionRequest {
        if self.algorithms.is_empty() {
            return CompressionRequest::default();
        }
        let lines = headers.get_all(ACCEPT_ENCODING);
        CompressionRequest {
            head: method == Method::HEAD,
            algorithm: negotiate::choose(lines.iter().map(HeaderValue::as_bytes), self.algorithms),
            if_none_match: (status == StatusCode::NOT_MODIFIED).then(|| headers.get(IF_NONE_MATCH).cloned()).flatten(),
        }
    }

    /// `true` if a response with this head may be encoded for this request.
    pub fn may_encode(&self, asked: &CompressionRequest, status: StatusCode, headers: &HeaderMap) -> bool {
        asked.algorithm.is_some()
            && !asked.head
            && matches!(policy::judge(status, headers, &self.types), Verdict::Candidate { .. })
    }

    /// Looks up the cached result for a file. It is stored in the cache of encoded bodies with the file's identity in
    /// place of the original bytes, so files and bodies share one budget and eviction.
    pub fn known(
        &self,
        asked: &CompressionRequest,
        status: StatusCode,
        headers: &mut HeaderMap,
        file: &FileIdentity,
    ) -> FileLookup {
        let Some((coding, _)) = self.candidate(asked, status, headers) else { return FileLookup::Nothing(None) };
        let found = match self.cache.find(coding, file.as_slice()) {
            Found::Hit(encoded) => encoded,
            _ => match self.cache.look_closely(coding, file) {
                CacheLookup::Hit(encoded) => encoded,
                CacheLookup::Again(admission) => return FileLookup::Nothing(Some(admission)),
                CacheLookup::New => return FileLookup::Nothing(None),
            },
        };
        let Some(encoded) = found else { return FileLookup::Plain };
        policy::mark_encoded(headers, coding.algorithm);
        FileLookup::Encoded(encoded, Encoding { algorithm: coding.algorithm, how: EncodingSource::Cached })
    }

    /// Encodes a complete body if that is allowed and useful, and sets the header fields.
    ///
    /// If the length changes, `Content-Length` is removed, to be set from the new body. For HEAD, `body` may be the
    /// body of a GET or empty; the returned body is empty.
    pub fn complete(
        &self,
        asked: &CompressionRequest,
        status: StatusCode,
        headers: &mut HeaderMap,
        body: WholeBody,
    ) -> EncodeResult {
        let plain = |body| EncodeResult { body: Whole::Bytes(body), encoding: None };
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
        let done = |body, how| EncodeResult { body, encoding: Some(Encoding { algorithm: coding.algorithm, how }) };
        let mut hit = |encoded: Bytes| {
            policy::mark_encoded(headers, coding.algorithm);
            if asked.head {
                headers.insert(CONTENT_LENGTH, HeaderValue::from(encoded.len()));
            }
            done(Whole::Bytes(sent(encoded.into())), EncodingSource::Cached)
        };
        let found = match self.cache.find(coding, &body) {
            Found::Hit(None) => return plain(sent(body)),
            Found::Hit(Some(encoded)) => return hit(encoded),
            found => found,
        };
        // Encoders and the sample need bytes that the worker cannot change.
        let body = body.into_bytes();
        let pays = || sample::pays(&body);
        // Sample first if the cache has no candidate: a body that is not encoded needs no hash of all its bytes.
        if matches!(found, Found::Nothing) && !pays() {
            return plain(sent(body.into()));
        }
        let admission = match self.cache.look_closely(coding, &body) {
            CacheLookup::Hit(None) => return plain(sent(body.into())),
            CacheLookup::Hit(Some(encoded)) => return hit(encoded),
            CacheLookup::Again(admission) => Some(admission),
            CacheLookup::New => None,
        };
        if matches!(found, Found::Other) && !pays() {
            return plain(sent(body.into()));
        }
        if asked.head {
            policy::mark_encoded(headers, coding.algorithm);
            return done(Whole::Bytes(nothing()), EncodingSource::Fresh);
        }
        let encoded = if body.len() > ONE_GO {
            slices(coding, &body, admission)
                .map(|slices| done(Whole::Slices(Box::new(slices)), EncodingSource::Streamed))
        } else {
            one_go(coding, &body, admission).map(|encoded| done(Whole::Bytes(encoded.into()), EncodingSource::Fresh))
        };
        match encoded {
            Some(encoded) => {
                policy::mark_encoded(headers, coding.algorithm);
                encoded
            }
            None => plain(body.into()),
        }
    }

    /// Decides for a streamed body, and sets the header fields. Put the returned encoder into an [`Encoded`] with the
    /// body's source. `None` means that the body is sent unencoded (for HEAD: no body).
    ///
    /// `first` is a chunk that is available already. It is sampled if it is long enough; else only the head decides.
    pub fn stream(
        &self,
        asked: &CompressionRequest,
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
        // A short first chunk is not representative.
        if first.is_some_and(|first| first.len() >= FIRST_PART && !sample::pays(first)) {
            return None;
        }
        let encoder = StreamEncoder::new(coding, declared).ok()?;
        policy::mark_encoded(headers, coding.algorithm);
        Some((encoder, Encoding { algorithm: coding.algorithm, how: EncodingSource::Streamed }))
    }

    /// Returns the coding for a response that may be encoded, and its declared length. Sets `Vary`.
    fn candidate(
        &self,
        asked: &CompressionRequest,
        status: StatusCode,
        headers: &mut HeaderMap,
    ) -> Option<(Coding, Option<u64>)> {
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

/// Returns an algorithm with its level. Measured on a page of 50 KB: gzip 5 takes 2.7 times as long as gzip 1 for 9 %
/// fewer bytes; Brotli 4 takes 1.6 times as long as Brotli 2 for no gain.
const fn coding(algorithm: Algorithm) -> Coding {
    let level = match algorithm {
        Algorithm::Gzip => 1,
        Algorithm::Brotli => 2,
        Algorithm::Zstd => 3,
    };
    Coding { algorithm, level }
}

/// Minimum length in bytes of a first chunk that is sampled.
const FIRST_PART: usize = 1024;

fn one_go(coding: Coding, body: &Bytes, admission: Option<Admission>) -> Option<Bytes> {
    // Encode the cache's own copy: the bytes of a mapped file may change in the meantime.
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
    Some(Encoded::new(Box::new(SingleChunk::new(original)), encoder).admit(admission))
}

#[cfg(test)]
#[path = "compressor_tests.rs"]
mod tests;
