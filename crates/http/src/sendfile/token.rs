//! The registry of tokens: which address ranges stand for which files.
//!
//! Only the reservation of address space needs `unsafe`; it is confined to [`Reservation`].

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use bytes::Bytes;

/// All live tokens by first address.
static TOKENS: RwLock<BTreeMap<usize, Registered>> = RwLock::new(BTreeMap::new());

/// Bounds of all tokens that ever lived. A slice outside of them (every heap buffer, usually) needs no lock to be
/// recognised as plain. Relaxed is enough: whoever holds a slice of a token received it through some synchronisation
/// that orders it after the token's registration.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

struct Registered {
    len: usize,
    file: Arc<OwnedFd>,
}

/// Where the content of a slice really is.
pub(super) struct Located {
    /// The file it stands for.
    pub(super) file: Arc<OwnedFd>,
    /// Position in the file of the slice's first byte.
    pub(super) offset: u64,
}

/// Makes a token for the first `len` bytes of `file`.
///
/// The token, and with it the descriptor, lives until the last slice of the returned buffer is dropped.
///
/// # Errors
/// `len` is 0 or larger than the address space, or the kernel refuses the reservation (`RLIMIT_AS`); the caller then
/// reads the file instead.
pub(crate) fn reserve(file: Arc<OwnedFd>, len: u64) -> io::Result<Bytes> {
    let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let memory = Reservation::new(len)?;
    let start = memory.start();
    LOWEST.fetch_min(start, Ordering::Relaxed);
    HIGHEST.fetch_max(start + len, Ordering::Relaxed);
    TOKENS.write().unwrap_or_else(PoisonError::into_inner).insert(start, Registered { len, file });
    Ok(Bytes::from_owner(Token(memory)))
}

/// Whether `slice` lies in a token, that is: whether its bytes must not be read.
#[cfg(test)]
pub(crate) fn is_token(slice: &[u8]) -> bool {
    locate(slice).is_some()
}

/// Finds the file range that `slice` stands for.
#[inline]
pub(super) fn locate(slice: &[u8]) -> Option<Located> {
    let address = slice.as_ptr().addr();
    if slice.is_empty() || address < LOWEST.load(Ordering::Relaxed) || address >= HIGHEST.load(Ordering::Relaxed) {
        return None;
    }
    let tokens = TOKENS.read().unwrap_or_else(PoisonError::into_inner);
    let (start, registered) = tokens.range(..=address).next_back()?;
    let offset = address - start;
    // A slice cannot straddle a token's end: it comes from one allocation.
    (offset < registered.len).then(|| Located { file: Arc::clone(&registered.file), offset: offset as u64 })
}

/// The longest body that has a stand-in.
const STAND_IN: usize = 1 << 20;

/// Memory that stands for the one body that is laid beside a connection: see `conn::straight`. Every connection uses the same.
static STANDS_IN: OnceLock<Option<Reservation>> = OnceLock::new();

/// `len` bytes that stand for a body; `None` if it is too long, or if there is no address space.
pub(crate) fn stand_in(len: usize) -> Option<&'static [u8]> {
    STANDS_IN.get_or_init(|| Reservation::new(STAND_IN).ok()).as_ref()?.as_slice().get(..len)
}

/// The position in the stand-in of a slice of it.
pub(crate) fn stand_in_offset(slice: &[u8]) -> Option<usize> {
    let start = STANDS_IN.get()?.as_ref()?.start();
    slice.as_ptr().addr().checked_sub(start).filter(|offset| *offset < STAND_IN && !slice.is_empty())
}

/// The owner behind a token's [`Bytes`].
struct Token(Reservation);

impl AsRef<[u8]> for Token {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        // Out of the registry before the address range can be given to somebody else. The descriptor is closed after
        // the lock is released.
        let removed = TOKENS.write().unwrap_or_else(PoisonError::into_inner).remove(&self.0.start());
        drop(removed);
    }
}

use reservation::Reservation;

#[allow(unsafe_code)]
mod reservation {
    //! An address range without memory behind it.

    use std::io;
    use std::ptr;

    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    /// `len` readable bytes of address space, all zero, none of them backed by memory until read.
    pub(super) struct Reservation {
        /// Exposed address of the mapping; kept as a number so that the type is `Send` and `Sync` by itself.
        start: usize,
        len: usize,
    }

    impl Reservation {
        pub(super) fn new(len: usize) -> io::Result<Self> {
            // The longest slice that Rust allows; `mmap` itself refuses 0.
            if len > isize::MAX as usize {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            // SAFETY: a new anonymous mapping at an address of the kernel's choice (null hint, no MAP_FIXED) touches
            // no memory that anything else uses.
            let start = unsafe { mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ, flags)? };
            Ok(Self { start: start.expose_provenance(), len })
        }

        pub(super) fn start(&self) -> usize {
            self.start
        }

        pub(super) fn as_slice(&self) -> &[u8] {
            // SAFETY: `start` is the exposed address of a live mapping of `len` bytes, `len <= isize::MAX`. The mapping
            // is readable, anonymous and private, so it is initialised (zeros), and it is never writable, so nothing
            // changes it. It is unmapped only by `drop`, which the returned borrow excludes.
            unsafe { std::slice::from_raw_parts(ptr::with_exposed_provenance(self.start), self.len) }
        }
    }

    impl Drop for Reservation {
        fn drop(&mut self) {
            // SAFETY: exactly the range that `new` mapped, unmapped once; no borrow of it outlives `self`. An error
            // (only possible when splitting a merged range needs memory) leaks address space and nothing else.
            let _ = unsafe { munmap(ptr::with_exposed_provenance_mut(self.start), self.len) };
        }
    }
}
