//! The memory of one lane: a sealed memfd, its mapping, the control page at its start and the page of connection pools
//! after it.
//!
//! The server creates the segment, seals its size (a worker that shrank it would kill the server with SIGBUS) and
//! passes the descriptor to one worker. Each mapping lives until its owner drops it.
//!
//! Processes that the worker forks do not inherit its mapping unless they continue as the worker (`pass_to_forks`): a
//! script's child must not be able to respond in the worker's name. Such a process has a hole at that address (`Hole`),
//! which it may fill with separate memory.

use crate::pool_page::{POOL_PAGE_LEN, PoolPage};
use crate::wire::WIRE_VERSION;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// "HOWDLANE": identifies a segment.
const MAGIC: u64 = 0x454e_414c_4457_4f48;
/// Size of the control page in bytes.
const CONTROL_LEN: usize = 4096;
/// Offset of the first ring.
const RINGS_AT: usize = CONTROL_LEN + POOL_PAGE_LEN;

/// Keeps words that different sides write in different cache lines (two lines, as CPUs fetch pairs).
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Line<T>(pub(crate) T);

/// The control page. Each cursor counts bytes since the lane's start; only one side writes it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Control {
    magic: AtomicU64,
    version: AtomicU32,
    request_cap: AtomicU32,
    response_cap: AtomicU32,
    /// Written by the server: end of the published part of the request ring.
    pub(crate) request_head: Line<AtomicU64>,
    /// Written by the worker: end of the part of the request ring that it no longer needs.
    pub(crate) request_tail: Line<AtomicU64>,
    /// Written by the worker: end of the published part of the response ring.
    pub(crate) response_head: Line<AtomicU64>,
    /// Written by the server: end of the part of the response ring that it no longer needs.
    pub(crate) response_tail: Line<AtomicU64>,
    /// Futex: 0 = the worker is awake, else one of `wake::WORKER_*`.
    pub(crate) worker_word: Line<AtomicU32>,
    /// 1 = the server waits on its eventfd for this lane.
    pub(crate) server_word: Line<AtomicU32>,
    /// Written by the server: the number of the last request whose client has gone.
    pub(crate) aborted: Line<AtomicU64>,
    /// 1 = the server has a message that did not fit into the request ring. Set by the server, cleared by a multiplexed
    /// worker, or by the server if there is room after all.
    pub(crate) room_wanted: Line<AtomicU32>,
    /// Written by a multiplexed worker: number of the request whose code is running, or 0.
    pub(crate) selected: Line<AtomicU64>,
    /// Written by the worker in a signal handler: number of the last request whose script exceeded its time limit.
    pub(crate) timed_out: Line<AtomicU64>,
}

const _: () = assert!(size_of::<Control>() <= CONTROL_LEN);

/// Ring sizes of a lane in bytes, each a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneSizes {
    /// Request ring.
    pub request: u32,
    /// Response ring.
    pub response: u32,
}

impl LaneSizes {
    /// The server's sizes. Only pages that are written take memory, and rings restart at their beginning whenever they
    /// are empty, so short requests touch only a few pages. The response ring has room for several responses of 50 KB,
    /// which may stay there until they are sent.
    pub const DEFAULT: Self = Self { request: 256 * 1024, response: 512 * 1024 };
    /// The smallest sizes that work, for tests that exercise every boundary.
    pub const TINY: Self = Self { request: 16 * 1024, response: 4096 };

    /// `DEFAULT`, or `TINY` when the environment has `HOWDAH_TINY_RINGS=1` (for tests).
    pub fn from_env() -> Self {
        if std::env::var_os("HOWDAH_TINY_RINGS").is_some_and(|v| v == "1") { Self::TINY } else { Self::DEFAULT }
    }

    fn total(self) -> usize {
        RINGS_AT + self.request as usize + self.response as usize
    }

    fn valid(self) -> bool {
        [self.request, self.response].iter().all(|s| s.is_power_of_two() && (4096..=1 << 28).contains(s))
    }
}

/// A mapped segment.
#[derive(Debug)]
pub(crate) struct Segment {
    base: NonNull<u8>,
    sizes: LaneSizes,
}

// SAFETY: the mapping is plain memory valid in the whole process; all shared access goes through atomics or through
// copies whose bounds were checked, and the ends that use a segment are themselves used by one thread at a time.
unsafe impl Send for Segment {}
// SAFETY: as above; `Segment` itself hands out only atomics and raw pointers.
unsafe impl Sync for Segment {}

impl Segment {
    /// Creates a segment and returns it with its descriptor.
    pub(crate) fn create(sizes: LaneSizes) -> io::Result<(Self, OwnedFd)> {
        if !sizes.valid() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "ring sizes must be powers of two from 4 KiB"));
        }
        let fd = rustix::fs::memfd_create("howdah-lane", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&fd, sizes.total() as u64)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let segment = Self::map(&fd, sizes)?;
        let control = segment.control();
        control.request_cap.store(sizes.request, Ordering::Relaxed);
        control.response_cap.store(sizes.response, Ordering::Relaxed);
        control.version.store(WIRE_VERSION, Ordering::Relaxed);
        // Release: a process that sees the magic sees the sizes.
        control.magic.store(MAGIC, Ordering::Release);
        Ok((segment, fd))
    }

    /// Maps a segment that the server created. Called in the worker, which trusts the server.
    pub(crate) fn attach(fd: impl AsFd) -> io::Result<Self> {
        let len = rustix::fs::fstat(&fd)?.st_size as usize;
        let probe = Self::map(&fd, LaneSizes { request: 0, response: 0 })?;
        let control = probe.control();
        let magic = control.magic.load(Ordering::Acquire);
        let version = control.version.load(Ordering::Relaxed);
        if magic != MAGIC || version != WIRE_VERSION {
            return Err(io::Error::other(format!(
                "howdah and howdah-php do not match: lane version {version}, this howdah-php speaks {WIRE_VERSION}; install both from one build"
            )));
        }
        let sizes = LaneSizes {
            request: control.request_cap.load(Ordering::Relaxed),
            response: control.response_cap.load(Ordering::Relaxed),
        };
        if !sizes.valid() || sizes.total() != len {
            return Err(io::Error::other("lane sizes do not match its memory"));
        }
        let segment = Self::map(&fd, sizes)?;
        segment.pass_to_forks(false)?;
        Ok(segment)
    }

    /// Decides whether forks of this process inherit the mapping.
    pub(crate) fn pass_to_forks(&self, pass: bool) -> io::Result<()> {
        let advice = if pass { Advice::LinuxDoFork } else { Advice::LinuxDontFork };
        // SAFETY: the range is the mapping that `self` owns; the advice changes nothing in this process.
        Ok(unsafe { rustix::mm::madvise(self.base.as_ptr().cast(), self.sizes.total(), advice) }?)
    }

    /// Returns copies of byte ranges of the mapping, each with its offset.
    pub(crate) fn copy(&self, places: impl IntoIterator<Item = Range<usize>>) -> Vec<(usize, Vec<u8>)> {
        let copied = places.into_iter().map(|place| {
            assert!(place.start <= place.end && place.end <= self.sizes.total(), "outside the segment");
            let mut bytes = Vec::with_capacity(place.len());
            // SAFETY: the source is inside the mapping (assertion), the target has room for as many bytes, all of which
            // are initialised by the copy.
            unsafe {
                std::ptr::copy_nonoverlapping(self.base.as_ptr().add(place.start), bytes.as_mut_ptr(), place.len());
                bytes.set_len(place.len());
            }
            (place.start, bytes)
        });
        copied.collect()
    }

    /// Offset of the rings; the pages of control words come before it.
    pub(crate) fn rings_at() -> usize {
        RINGS_AT
    }

    /// For a process that was forked from the worker, in which this mapping does not exist.
    pub(crate) fn into_hole(self) -> Hole {
        let hole = Hole { base: self.base, len: self.sizes.total() };
        // Dropping it would unmap memory that belongs to other code of this process.
        std::mem::forget(self);
        hole
    }

    fn map(fd: impl AsFd, sizes: LaneSizes) -> io::Result<Self> {
        // SAFETY: a new shared mapping at an address that the kernel chooses; nothing else in this process refers to
        // it, and the size seal keeps every page of it backed.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                sizes.total(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                fd,
                0,
            )
        }?;
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mmap returned null"))?;
        Ok(Self { base, sizes })
    }

    pub(crate) fn control(&self) -> &Control {
        // SAFETY: the mapping starts with a `Control` (zeroed by the kernel, all fields atomics, page-aligned) and
        // lives as long as `self`.
        unsafe { self.base.cast::<Control>().as_ref() }
    }

    pub(crate) fn pools(&self) -> &PoolPage {
        // SAFETY: the page follows the control page, inside the mapping (zeroed by the kernel, all fields atomics,
        // page-aligned), which lives as long as `self`.
        unsafe { self.base.add(CONTROL_LEN).cast::<PoolPage>().as_ref() }
    }

    pub(crate) fn request_ring(&self) -> crate::ring::Ring {
        // SAFETY: the ring lies inside the mapping, after the control page and the pool page.
        let data = unsafe { self.base.add(RINGS_AT) };
        crate::ring::Ring::new(data, self.sizes.request)
    }

    pub(crate) fn response_ring(&self) -> crate::ring::Ring {
        // SAFETY: as above, after the request ring.
        let data = unsafe { self.base.add(RINGS_AT + self.sizes.request as usize) };
        crate::ring::Ring::new(data, self.sizes.response)
    }
}

/// The address range of a segment in a process that was forked from its worker.
#[derive(Debug)]
pub struct Hole {
    base: NonNull<u8>,
    len: usize,
}

impl Hole {
    /// Maps private memory into the hole. It holds these bytes and is zero elsewhere, so that pointers into the request
    /// that ran at the fork stay valid.
    ///
    /// # Errors
    /// The system's error; also if something is mapped there already.
    pub fn fill(self, content: &[(usize, Vec<u8>)]) -> io::Result<()> {
        // SAFETY: nothing is mapped there, or the call fails.
        let base = unsafe {
            rustix::mm::mmap_anonymous(
                self.base.as_ptr().cast(),
                self.len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE,
            )
        }?;
        for (at, bytes) in content {
            assert!(*at <= self.len && bytes.len() <= self.len - at, "outside the segment");
            // SAFETY: the target is inside the mapping just made (assertion), to which there are no references yet.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), base.cast::<u8>().add(*at), bytes.len()) };
        }
        Ok(())
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with exactly this length, and no reference into it outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.sizes.total()) };
    }
}
