//! The wire layout, defined once: requests in the request ring and frames in the response ring.
//!
//! Both ends run on one machine and are built from this file, so numbers are native-endian and structures are
//! `repr(C)`. The C side reads the same structures through `crates/php-host/shim/wire.h`, which is generated from this
//! file and compared in a test (`tests/headers.rs`). References are offsets, never pointers. The worker trusts what the
//! server wrote; the server checks every number that comes from the worker.

use std::ffi::CStr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes, try_transmute};

/// Incremented with every change of the layout. Both ends compare it when a lane is attached and refuse a different
/// version.
pub const WIRE_VERSION: u32 = 13;

/// A byte string inside the string area of a request. It is followed by a NUL byte, so C can use it in place.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, IntoBytes, FromBytes, Immutable, KnownLayout)]
pub struct StrRef {
    /// Offset from the start of the string area.
    pub off: u32,
    /// Length in bytes, without the NUL.
    pub len: u32,
}

/// One variable of a request, for `$_SERVER`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, IntoBytes, FromBytes, Immutable, KnownLayout)]
pub struct WireVar {
    /// `VarName` as a number, or 0 for a name that is spelled out in `name`.
    pub name_id: u32,
    /// The name, when `name_id` is 0.
    pub name: StrRef,
    /// The value.
    pub value: StrRef,
}

/// The response must have no body (HEAD).
pub const REQUEST_HEAD_ONLY: u32 = 1;
/// The request's body follows the strings in the frame.
pub const REQUEST_BODY_INLINE: u32 = 2;
/// The request's body comes as a file descriptor over the worker's control socket, once the worker has begun the
/// request and asks for the body (`NeedBody`).
pub const REQUEST_BODY_FD: u32 = 4;
/// The worker measures the processor time of this request (`WireDone::cpu_ns`).
pub const REQUEST_MEASURE: u32 = 8;
/// The worker sets its nice value before it runs this request: to its own value plus bits 8 to 12 of the flags.
pub const REQUEST_NICE: u32 = 16;
/// The request had a body of `body_len` bytes that was too large to keep. PHP gets its length and no bytes.
pub const REQUEST_BODY_DROPPED: u32 = 32;
/// With `REQUEST_BODY_FD`: the descriptor is not a body but the script's end of a `connection_stream`.
pub const REQUEST_BODY_STREAM: u32 = 64;
/// The access log reports the request's usage: the worker measures the processor time, also the part in the kernel
/// (`WireDone::system_ns`), and the response ends only when the request does.
pub const REQUEST_USAGE: u32 = 128;
/// Bit position of the amount in the flags of a request with `REQUEST_NICE`; five bits, 0 to 19.
pub const REQUEST_NICE_SHIFT: u32 = 8;

/// Fixed head of a request. In the ring it is followed by `n_vars` × `WireVar`, the strings and an inline body.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, IntoBytes, FromBytes, Immutable, KnownLayout)]
pub struct WireRequest {
    /// The request's number on its lane; set by the server when the request is put there.
    pub number: u64,
    /// The request's id in logs.
    pub id: u64,
    /// Time at which the request arrived, in microseconds since the Unix epoch.
    pub received_unix_us: u64,
    /// Length of the whole request body in bytes.
    pub body_len: u64,
    /// `REQUEST_*` bits.
    pub flags: u32,
    /// HTTP version × 1000: 1000, 1001, 2000, 3000.
    pub proto: u32,
    /// Number of `WireVar` that follow.
    pub n_vars: u32,
    /// Length of the string area in bytes.
    pub strings_len: u32,
    /// The request method.
    pub method: StrRef,
    /// The script's path in the file system.
    pub script: StrRef,
    /// The request target as the client sent it (`REQUEST_URI`).
    pub uri: StrRef,
    /// The query string, without `?`.
    pub query: StrRef,
    /// `Content-Type`, empty when absent.
    pub content_type: StrRef,
    /// `Cookie`, empty when absent.
    pub cookie: StrRef,
    /// `Authorization`, empty when absent.
    pub authorization: StrRef,
}

/// Kind of a frame in either ring.
#[repr(u16)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable)]
pub enum FrameKind {
    /// Filler up to the ring's end; skipped.
    Pad = 0,
    /// A request (server → worker).
    Request = 1,
    /// No more requests follow: the worker ends after those in the lane (server → worker).
    Stop = 2,
    /// The response to a request is no longer wanted; payload `u32`, one of `CANCEL_*` (server → worker, multiplexed
    /// workers only).
    Cancel = 3,
    /// Part of the response's head: `u16` status, then for each line a `u32` length and `Name: value`. A line that
    /// begins with `ROUTE_LINE` is the name of the application's route. All parts but the last have `FLAG_MORE`.
    Head = 16,
    /// Part of the response's body.
    Body = 17,
    /// The response is complete for the client; the worker may continue to work (`fastcgi_finish_request`).
    End = 18,
    /// The request has ended, so a serial worker is free for the next one; payload `WireDone`.
    Done = 19,
    /// A line for the log: one byte level (syslog 0–7), then the text.
    Log = 20,
    /// An informational response (1xx), laid out like `Head`.
    Interim = 21,
    /// The worker has booted and waits for its first request.
    Ready = 22,
    /// The worker returns its request unanswered, for a worker that booted later, and ends; payload `u64`: start of its
    /// boot, in microseconds since the epoch.
    GiveBack = 23,
    /// The worker has begun a request with `REQUEST_BODY_FD` and waits for the descriptor.
    NeedBody = 24,
    /// Part of a script's order for connections and channels, or of a question about them, laid out as in `live_order`.
    /// All parts but the last have `FLAG_MORE`. After a question the worker waits for the answer, sent as text in a
    /// descriptor.
    Live = 25,
    /// The worker waits for the status of its pool, sent as text in a descriptor.
    NeedStatus = 26,
}

impl FrameKind {
    /// The kind with this number, as read from the ring.
    pub fn from_u16(n: u16) -> Option<Self> {
        try_transmute!(n).ok()
    }
}

/// In `Cancel`: the client has gone.
pub const CANCEL_CLIENT_GONE: u32 = 1;
/// In `Cancel`: the request has exceeded its deadline.
pub const CANCEL_DEADLINE: u32 = 2;

/// In `Head`: first byte of a line that is not a header. PHP sends no header that begins with it.
pub const ROUTE_LINE: u8 = 0;
/// On `Head`, `Interim` and `Live`: another part follows.
pub const FLAG_MORE: u16 = 1;
/// On `Body`: PHP asked that everything up to here reach the client now.
pub const FLAG_FLUSH: u16 = 2;

/// Payload of `FrameKind::Done`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, IntoBytes, FromBytes, Immutable, KnownLayout)]
pub struct WireDone {
    /// Nanoseconds the worker spent on the request.
    pub php_ns: u64,
    /// Processor time of the request in nanoseconds, if requested (`REQUEST_MEASURE` or `REQUEST_USAGE`); else 0.
    pub cpu_ns: u64,
    /// Nanoseconds of it in the kernel, if requested (`REQUEST_USAGE`); else 0.
    pub system_ns: u64,
    /// Peak memory in bytes.
    pub peak_memory: u64,
    /// `DONE_*` bits.
    pub flags: u32,
    /// Snapshot mode: number of times that the worker has searched for written pages.
    pub searches: u32,
    /// Snapshot mode: number of pages that the worker's last restore put back.
    pub restored_pages: u32,
    /// Snapshot mode: duration of that restore in nanoseconds.
    pub restore_ns: u32,
}

impl WireDone {
    /// Method by which the worker's snapshot finds written pages: an index into `SNAPSHOT_WAYS`, as reported by the
    /// worker.
    pub const fn way(&self) -> u32 {
        self.flags >> DONE_WAY_SHIFT & 0xff
    }

    /// Number of sessions of connections opened at boot that were reset after this request.
    pub const fn resets(&self) -> u32 {
        self.flags >> DONE_RESETS_SHIFT & 0xff
    }

    /// `true` if the worker ends after this request.
    pub const fn retires(&self) -> bool {
        self.flags & DONE_RETIRE != 0
    }

    /// `true` if the worker ends because it cannot be restored after this request.
    pub const fn is_unfit(&self) -> bool {
        self.flags & DONE_UNFIT != 0
    }
}

/// In `Done`, bits 8 to 15 of the flags: method by which the worker's snapshot finds written pages; 0 without a
/// snapshot.
pub const DONE_WAY_SHIFT: u32 = 8;
/// Names of these methods, by number (`snapshot_way` in snapshot/engine/snapshot.h).
pub const SNAPSHOT_WAYS: [&str; 4] = ["none", "pagemap_scan", "pagemap", "fork"];

/// In `Done`: the worker ends after this request (its request limit, or its state cannot be trusted).
pub const DONE_RETIRE: u32 = 1;
/// In `Done`, with `DONE_RETIRE`: in snapshot mode the worker cannot be restored after this request.
pub const DONE_UNFIT: u32 = 2;
/// In `Done`, bits 16 to 23 of the flags: number of sessions of boot-time connections that were reset after this
/// request.
pub const DONE_RESETS_SHIFT: u32 = 16;

/// Maximum number of connection pools that a worker reports; further ones are left out.
pub const POOL_SLOTS: usize = 21;
/// Maximum length of a pool's name in bytes.
pub const POOL_NAME_LEN: usize = 56;

macro_rules! pool_numbers {
    ($($(#[$doc:meta])+ $name:ident $c:ident $text:literal,)*) => {
        /// Counters of a connection pool: indices into its numbers in `pool_page`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum PoolNumber { $($(#[$doc])+ $name),* }

        impl PoolNumber {
            /// Names by index: properties of PHP's `Connections` objects, keys of the array from `Pool::stats()`.
            pub const NAMES: &[&CStr] = &[$($text),*];
        }

        /// Names in C, by index.
        pub const POOL_NUMBER_NAMES: &[&str] = &[$(stringify!($c)),*];
        /// Number of counters.
        pub const POOL_NUMBERS: usize = POOL_NUMBER_NAMES.len();
    };
}

// Values named `..._seconds` are in nanoseconds in the page.
pool_numbers! {
    /// Maximum number of open connections.
    Limit POOL_LIMIT c"limit",
    /// Connections that are open or being opened.
    Open POOL_OPEN c"open",
    /// Open connections that are idle.
    Idle POOL_IDLE c"idle",
    /// Open connections that are in use.
    InUse POOL_IN_USE c"in_use",
    /// Coroutines that wait for a connection.
    Waiting POOL_WAITING c"waiting",
    /// The longest wait for a connection.
    WaitMax POOL_WAIT_MAX c"wait_max_seconds",
    /// Connections requested. This and all following numbers only grow.
    Acquired POOL_ACQUIRED c"acquired",
    /// Requests for a connection that had to wait.
    Waits POOL_WAITS c"waits",
    /// Total waiting time.
    Wait POOL_WAIT c"wait_seconds",
    /// Waits that timed out.
    Timeouts POOL_TIMEOUTS c"timeouts",
    /// Connections opened.
    Opened POOL_OPENED c"opened",
    /// Connections closed.
    Closed POOL_CLOSED c"closed",
    /// Connections that could not be opened.
    OpenFailures POOL_OPEN_FAILURES c"open_failures",
    /// Connections that failed a check or a reset.
    CheckFailures POOL_CHECK_FAILURES c"check_failures",
    /// Connections returned only when their coroutine ended.
    Forgotten POOL_FORGOTTEN c"forgotten",
    /// Connections returned with an open transaction.
    OpenTransactions POOL_OPEN_TRANSACTIONS c"open_transactions",
}

macro_rules! var_names {
    ($($name:ident)*) => {
        /// Variable names that travel as a number; the worker keeps an interned string for each.
        // `CUSTOM` does not reserve room for more names: it is the number of names that are sent as text.
        #[allow(clippy::manual_non_exhaustive)]
        #[allow(non_camel_case_types, missing_docs, clippy::upper_case_acronyms)]
        #[repr(u32)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum VarName { #[doc(hidden)] CUSTOM = 0, $($name),* }

        /// The names in the order of their numbers, starting with number 1.
        pub const VAR_NAMES: &[&str] = &[$(stringify!($name)),*];

        impl VarName {
            /// The numbered names, in the order of `VAR_NAMES`.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

var_names! {
    QUERY_STRING REQUEST_METHOD CONTENT_TYPE CONTENT_LENGTH SCRIPT_NAME REQUEST_URI DOCUMENT_URI DOCUMENT_ROOT
    SERVER_PROTOCOL REQUEST_SCHEME HTTPS GATEWAY_INTERFACE SERVER_SOFTWARE REMOTE_ADDR REMOTE_PORT REMOTE_USER
    SERVER_ADDR SERVER_PORT SERVER_NAME REDIRECT_STATUS SCRIPT_FILENAME PATH_INFO PATH_TRANSLATED ORIG_PATH_INFO
    AUTH_TYPE REMOTE_HOST REMOTE_IDENT REQUEST_ID UNIQUE_ID SSL_PROTOCOL SSL_CIPHER
    HTTP_HOST HTTP_USER_AGENT HTTP_ACCEPT HTTP_ACCEPT_ENCODING HTTP_ACCEPT_LANGUAGE HTTP_ACCEPT_CHARSET
    HTTP_CONNECTION HTTP_COOKIE HTTP_REFERER HTTP_ORIGIN HTTP_AUTHORIZATION HTTP_CACHE_CONTROL HTTP_PRAGMA
    HTTP_CONTENT_TYPE HTTP_CONTENT_LENGTH HTTP_UPGRADE_INSECURE_REQUESTS HTTP_IF_NONE_MATCH HTTP_IF_MODIFIED_SINCE
    HTTP_IF_MATCH HTTP_IF_UNMODIFIED_SINCE HTTP_IF_RANGE HTTP_RANGE HTTP_X_REQUESTED_WITH HTTP_X_FORWARDED_FOR
    HTTP_X_FORWARDED_PROTO HTTP_X_FORWARDED_HOST HTTP_X_FORWARDED_PORT HTTP_FORWARDED HTTP_X_REAL_IP HTTP_VIA
    HTTP_DNT HTTP_TE HTTP_UPGRADE HTTP_SEC_FETCH_DEST HTTP_SEC_FETCH_MODE HTTP_SEC_FETCH_SITE HTTP_SEC_FETCH_USER
    HTTP_SEC_CH_UA HTTP_SEC_CH_UA_MOBILE HTTP_SEC_CH_UA_PLATFORM HTTP_PRIORITY HTTP_EXPECT HTTP_TRANSFER_ENCODING
    HTTP_X_CSRF_TOKEN HTTP_X_REQUEST_ID HTTP_TRACEPARENT HTTP_LAST_EVENT_ID PHP_VALUE PHP_ADMIN_VALUE
}

/// A request in wire form: copied into a lane when a worker gets it, and kept for retries; afterwards as the worker's
/// last request.
#[derive(Debug, Clone, Default)]
pub struct EncodedRequest {
    pub(crate) head: WireRequest,
    pub(crate) vars: Vec<WireVar>,
    pub(crate) strings: Vec<u8>,
}

impl EncodedRequest {
    /// Size of the request in a ring without its body, in bytes.
    pub fn wire_len(&self) -> usize {
        size_of::<WireRequest>() + self.vars.len() * size_of::<WireVar>() + self.strings.len()
    }

    /// The request as in a lane, without its body. In 8-byte words, so that it is aligned as in the lane.
    pub fn to_words(&self) -> Box<[u64]> {
        let mut words = vec![0u64; self.wire_len().div_ceil(8)].into_boxed_slice();
        let mut rest = words.as_mut_bytes();
        for part in [self.head.as_bytes(), self.vars.as_bytes(), &self.strings] {
            let (place, after) = rest.split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = after;
        }
        words
    }

    /// The script's path in the file system.
    pub fn script(&self) -> &[u8] {
        self.text(self.head.script)
    }

    /// The request method.
    pub fn method(&self) -> &[u8] {
        self.text(self.head.method)
    }

    /// The request target as the client sent it.
    pub fn uri(&self) -> &[u8] {
        self.text(self.head.uri)
    }

    /// The bytes of a reference that this request's builder returned.
    pub fn text(&self, r: StrRef) -> &[u8] {
        self.strings.get(r.off as usize..(r.off + r.len) as usize).unwrap_or_default()
    }

    /// All variables in order, for tests and logs.
    pub fn variables(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.vars.iter().map(|var| {
            let name = match var.name_id.checked_sub(1).and_then(|i| VAR_NAMES.get(i as usize)) {
                Some(known) => known.as_bytes(),
                None => self.text(var.name),
            };
            (name, self.text(var.value))
        })
    }
}

/// Length of the string area, in bytes, that most requests do not exceed. A power of two: for other sizes above 1 KB
/// mimalloc takes a slow path.
const USUAL_STRINGS: usize = 1024;

/// Builds an `EncodedRequest`.
///
/// Each value is stored once: `var` returns its position, and the setters (`script`, `query`, …) take that position, so
/// that `SCRIPT_FILENAME` and the script to run share their bytes.
#[derive(Debug, Default)]
pub struct RequestBuilder {
    request: EncodedRequest,
}

impl RequestBuilder {
    /// Begins a request with its id in logs, protocol version × 1000 and time of arrival (microseconds since the
    /// epoch).
    pub fn new(id: u64, proto: u32, received_unix_us: u64) -> Self {
        let head = WireRequest { id, proto, received_unix_us, ..WireRequest::default() };
        Self {
            request: EncodedRequest { head, vars: Vec::with_capacity(40), strings: Vec::with_capacity(USUAL_STRINGS) },
        }
    }

    /// Adds bytes that are not a variable.
    #[inline]
    pub fn text(&mut self, value: &[u8]) -> StrRef {
        let strings = &mut self.request.strings;
        let (off, len) = (strings.len(), value.len());
        strings.reserve(len + 1);
        // SAFETY: there is room for the value and the byte after it, which are written before they count. Plain code
        // asks for room twice more; twenty texts are encoded for each request.
        unsafe {
            let end = strings.as_mut_ptr().add(off);
            end.copy_from_nonoverlapping(value.as_ptr(), len);
            end.add(len).write(0);
            strings.set_len(off + len + 1);
        }
        StrRef { off: off as u32, len: len as u32 }
    }

    fn text_parts(&mut self, parts: &[&[u8]]) -> StrRef {
        let off = self.request.strings.len() as u32;
        for part in parts {
            self.request.strings.extend_from_slice(part);
        }
        let len = self.request.strings.len() as u32 - off;
        self.request.strings.push(0);
        StrRef { off, len }
    }

    /// Adds a variable with a known name.
    pub fn var(&mut self, name: VarName, value: &[u8]) -> StrRef {
        let value = self.text(value);
        self.var_at(name, value);
        value
    }

    /// Adds a variable with a known name, whose value is already in the request.
    pub fn var_at(&mut self, name: VarName, value: StrRef) {
        self.request.vars.push(WireVar { name_id: name as u32, name: StrRef::default(), value });
    }

    /// Adds a variable with a known name, its value given in parts.
    pub fn var_parts(&mut self, name: VarName, parts: &[&[u8]]) -> StrRef {
        let value = self.text_parts(parts);
        self.var_at(name, value);
        value
    }

    /// Adds a variable with any name.
    pub fn custom_var(&mut self, name: &[u8], value: &[u8]) -> StrRef {
        let name = self.text(name);
        let value = self.text(value);
        self.request.vars.push(WireVar { name_id: 0, name, value });
        value
    }

    /// Sets the method; responses to HEAD get no body.
    pub fn method(&mut self, at: StrRef) -> &mut Self {
        self.request.head.method = at;
        if self.request.text(at) == b"HEAD" {
            self.request.head.flags |= REQUEST_HEAD_ONLY;
        }
        self
    }

    /// Sets `REQUEST_USAGE`.
    pub fn usage(&mut self) -> &mut Self {
        self.request.head.flags |= REQUEST_USAGE;
        self
    }

    /// Sets the script to run.
    pub fn script(&mut self, at: StrRef) -> &mut Self {
        self.request.head.script = at;
        self
    }

    /// Sets the request target.
    pub fn uri(&mut self, at: StrRef) -> &mut Self {
        self.request.head.uri = at;
        self
    }

    /// Sets the query string.
    pub fn query(&mut self, at: StrRef) -> &mut Self {
        self.request.head.query = at;
        self
    }

    /// Sets the body's media type.
    pub fn content_type(&mut self, at: StrRef) -> &mut Self {
        self.request.head.content_type = at;
        self
    }

    /// Sets the cookies.
    pub fn cookie(&mut self, at: StrRef) -> &mut Self {
        self.request.head.cookie = at;
        self
    }

    /// Sets the `Authorization` header from which PHP fills `PHP_AUTH_*`.
    pub fn authorization(&mut self, at: StrRef) -> &mut Self {
        self.request.head.authorization = at;
        self
    }

    /// Returns the finished request. The caller sets the body's length through `Request::body`.
    #[must_use]
    pub fn finish(mut self) -> EncodedRequest {
        self.request.head.n_vars = self.request.vars.len() as u32;
        self.request.head.strings_len = self.request.strings.len() as u32;
        self.request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_done_payload_of_another_length_is_refused() {
        let done = WireDone { php_ns: 1, flags: 2 << DONE_WAY_SHIFT | 3 << DONE_RESETS_SHIFT, ..WireDone::default() };
        let bytes = done.as_bytes();
        let read = WireDone::read_from_bytes(bytes).unwrap();
        assert_eq!((read.php_ns, read.way(), read.resets(), read.retires()), (1, 2, 3, false));
        assert!(WireDone::read_from_bytes(&bytes[1..]).is_err());
        assert!(WireDone::read_from_bytes(&[bytes, &[0]].concat()).is_err());
    }

    #[test]
    fn unknown_frame_kinds_are_refused() {
        let known = (0..=u16::MAX).filter_map(FrameKind::from_u16).map(|kind| kind as u16);
        assert_eq!(known.collect::<Vec<_>>(), [0, 1, 2, 3, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26]);
    }
}
