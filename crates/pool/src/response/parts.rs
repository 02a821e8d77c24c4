//! Waiting parts of a response's body: first those in memory, then those in an unnamed temporary file, then those for
//! which neither budget had room. Parts of the first two kinds are charged (`howdah_budget`), except a body in the
//! worker's ring: short ones and whole bodies until the front takes them, others until they have been sent.

use bytes::{Bytes, BytesMut};
use howdah_budget::{Budget, Budgets, Charge};
use howdah_transport::HeldPayload;
use rustix::fs::{FallocateFlags, fallocate};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Number of bytes read back from the temporary file at a time.
const READ_BACK: usize = 128 * 1024;
/// Size of the parts in which uncharged bytes are passed on, while there is no budget.
const SCARCE: usize = 4 * 1024;
/// Cost of a part beyond its bytes.
const PART_COST: u64 = 100;
/// A part shorter than this is appended to the one before if that is short or has grown so, up to `MAX_JOINED` bytes:
/// scripts that flush each byte are common.
const JOIN_BELOW: usize = 1024;
const MAX_JOINED: usize = 16 * 1024;
/// A part of at least this size keeps its charge until its last byte has been sent. A connection holds only a few
/// shorter ones.
const KEEPS_CHARGE: usize = 4 * 1024;
/// The disk space of data that was read back is released in steps of this size.
const PUNCH: u64 = 4 << 20;

/// A part of the response's body.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// The bytes; may be empty when only `flush` matters.
    pub data: Bytes,
    /// PHP asked to send everything up to here to the client now (`flush()`, server-sent events).
    pub flush: bool,
}

/// A complete body.
#[derive(Debug)]
pub enum WholeBody {
    /// In the server's own memory.
    Memory(Bytes),
    /// In the worker's ring: must be sent, compared or copied within this turn of the task. It takes up the worker's
    /// ring space, and the worker may write to it at any time.
    InRing(HeldPayload),
}

/// Limits on a response's data in memory and in files.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Bytes in memory before the rest goes to a file.
    pub(crate) memory: usize,
    /// Directory of the temporary file.
    pub(crate) temp_dir: PathBuf,
    /// Budgets of all responses.
    pub(crate) budgets: Budgets,
}

#[derive(Debug)]
enum Data {
    Whole(Bytes),
    /// Short parts may be appended.
    Growing(BytesMut),
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Growing(bytes) => bytes.len(),
        }
    }
}

#[derive(Debug)]
struct Part {
    data: Data,
    flush: bool,
    /// Its share of the charge.
    cost: u64,
}

#[derive(Debug)]
pub(crate) struct InMemory {
    /// The first part, while it is in the worker's ring. No other part follows it.
    in_ring: Option<HeldPayload>,
    /// Most responses have one part.
    first: Option<Part>,
    rest: VecDeque<Part>,
    bytes: usize,
    charge: Charge,
}

impl InMemory {
    pub(crate) fn new(charge: Charge) -> Self {
        Self { in_ring: None, first: None, rest: VecDeque::new(), bytes: 0, charge }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.in_ring.is_none() && self.first.is_none() && self.rest.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    pub(crate) fn budget(&self) -> &'static Budget {
        self.charge.budget()
    }

    /// A charge to another budget, for the same client.
    pub(crate) fn charge_beside(&self, budget: &'static Budget) -> Charge {
        self.charge.beside(budget)
    }

    /// Keeps a body in the ring; only while there are no other parts.
    pub(crate) fn hold(&mut self, held: HeldPayload) {
        self.bytes += held.len();
        self.in_ring = Some(held);
    }

    /// Takes the part out of the ring as a copy.
    pub(crate) fn take_from_ring(&mut self) -> Option<Bytes> {
        let held = self.in_ring.take()?;
        self.bytes -= held.len();
        Some(Bytes::from(held.copy_from(0)))
    }

    /// Appends a part. Returns it if there is no budget for it.
    pub(crate) fn add(&mut self, data: Bytes, flush: bool) -> Result<(), Bytes> {
        let len = data.len();
        if len < JOIN_BELOW && self.join(&data, flush)? {
            self.bytes += len;
            return Ok(());
        }
        let cost = len as u64 + PART_COST;
        if !self.charge.grow(cost) {
            return Err(data);
        }
        self.bytes += len;
        self.put(Part { data: Data::Whole(data), flush, cost });
        Ok(())
    }

    /// Appends a short part to the one before. False: there is none, or it is long enough.
    fn join(&mut self, data: &Bytes, flush: bool) -> Result<bool, Bytes> {
        let Some(last) = self.rest.back_mut().or(self.first.as_mut()) else { return Ok(false) };
        let len = last.data.len() + data.len();
        if len > MAX_JOINED {
            return Ok(false);
        }
        let mut grown = match &mut last.data {
            Data::Growing(bytes) if len <= bytes.capacity() => {
                bytes.extend_from_slice(data);
                last.flush |= flush;
                return Ok(true);
            }
            Data::Growing(_) => BytesMut::new(),
            Data::Whole(bytes) if bytes.len() < JOIN_BELOW => BytesMut::new(),
            Data::Whole(_) => return Ok(false),
        };
        let capacity = len.next_power_of_two().max(256);
        let cost = capacity as u64 + PART_COST;
        if !self.charge.grow(cost.saturating_sub(last.cost)) {
            return Err(data.clone());
        }
        grown.reserve(capacity);
        match &last.data {
            Data::Whole(bytes) => grown.extend_from_slice(bytes),
            Data::Growing(bytes) => grown.extend_from_slice(bytes),
        }
        grown.extend_from_slice(data);
        (last.data, last.cost, last.flush) = (Data::Growing(grown), cost.max(last.cost), last.flush | flush);
        Ok(true)
    }

    /// Marks the data so far for a flush.
    pub(crate) fn flush(&mut self) {
        match self.rest.back_mut().or(self.first.as_mut()) {
            Some(last) => last.flush = true,
            None => self.put(Part { data: Data::Whole(Bytes::new()), flush: true, cost: 0 }),
        }
    }

    fn put(&mut self, part: Part) {
        if self.first.is_none() && self.rest.is_empty() {
            self.first = Some(part);
        } else {
            self.rest.push_back(part);
        }
    }

    /// Takes the first part. No part may be in the ring.
    pub(crate) fn take(&mut self) -> Option<Chunk> {
        let part = self.first.take().or_else(|| self.rest.pop_front())?;
        let data = match part.data {
            Data::Whole(bytes) => bytes,
            Data::Growing(bytes) => bytes.freeze(),
        };
        self.bytes -= data.len();
        let data = self.pass_on(data, part.cost);
        Some(Chunk { data, flush: part.flush })
    }

    /// Passes bytes on with their charge, or if they are few, without it.
    fn pass_on(&mut self, data: Bytes, cost: u64) -> Bytes {
        if data.len() >= KEEPS_CHARGE {
            return self.charge.split(cost).cover(data);
        }
        self.charge.shrink(cost);
        data
    }

    /// Takes everything as one piece.
    pub(crate) fn take_all(&mut self) -> WholeBody {
        let all = std::mem::take(&mut self.bytes);
        if let Some(held) = self.in_ring.take() {
            return WholeBody::InRing(held);
        }
        let first = match self.first.take().or_else(|| self.rest.pop_front()).map(|part| part.data) {
            Some(Data::Whole(bytes)) => bytes,
            Some(Data::Growing(bytes)) => bytes.freeze(),
            None => Bytes::new(),
        };
        let mut whole = first;
        if !self.rest.is_empty() {
            let mut joined = BytesMut::with_capacity(all);
            joined.extend_from_slice(&whole);
            for part in self.rest.drain(..) {
                match part.data {
                    Data::Whole(bytes) => joined.extend_from_slice(&bytes),
                    Data::Growing(bytes) => joined.extend_from_slice(&bytes),
                }
            }
            whole = joined.freeze();
        }
        // The sender charges it again, together with its compressed form.
        self.charge.clear();
        WholeBody::Memory(whole)
    }

    pub(crate) fn clear(&mut self) {
        self.in_ring = None;
        self.first = None;
        self.rest = VecDeque::new();
        self.bytes = 0;
        self.charge.clear();
    }
}

/// The parts in a temporary file.
#[derive(Debug)]
pub(crate) struct Spill {
    file: File,
    written: u64,
    read: u64,
    /// The file's disk space up to here has been released.
    punched: u64,
    charge: Charge,
}

impl Spill {
    pub(crate) fn new(dir: &Path, charge: Charge) -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile_in(dir)?, written: 0, read: 0, punched: 0, charge })
    }

    /// Bytes that have not been read back.
    pub(crate) fn left(&self) -> u64 {
        self.written - self.read
    }

    /// Adds a part. False: there is no budget for it.
    pub(crate) fn add(&mut self, data: &[u8]) -> io::Result<bool> {
        if !self.charge.grow(data.len() as u64) {
            return Ok(false);
        }
        if let Err(error) = self.file.write_all_at(data, self.written) {
            // The next part overwrites this one's bytes in the file.
            self.charge.shrink(data.len() as u64);
            return Err(error);
        }
        self.written += data.len() as u64;
        Ok(true)
    }

    /// Reads the next part back. Without memory budget it is short and not charged.
    pub(crate) fn read(&mut self, mut charge: Charge) -> io::Result<Bytes> {
        let len = self.left().min(READ_BACK as u64);
        let len = if charge.grow(len + PART_COST) { len } else { len.min(SCARCE as u64) };
        let mut buffer = BytesMut::zeroed(len as usize);
        self.file.read_exact_at(&mut buffer, self.read)?;
        self.read += len;
        if self.read - self.punched >= PUNCH && self.left() > 0 {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // If the file system cannot do this, the file keeps its space, and its charge, until it is read to its end.
            if fallocate(&self.file, flags, self.punched, self.read - self.punched).is_ok() {
                self.charge.shrink(self.read - self.punched);
            }
            self.punched = self.read;
        }
        Ok(charge.cover(buffer.freeze()))
    }
}

/// Data for which neither budget had room. At most what a lane's reader takes before it waits.
#[derive(Debug, Default)]
pub(crate) struct UnchargedData(VecDeque<Chunk>);

impl UnchargedData {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, data: Bytes, flush: bool) {
        self.0.push_back(Chunk { data, flush });
    }

    /// Takes the first part; the caller returns it (`put_back`) if there is still no budget.
    pub(crate) fn first(&mut self) -> Option<Chunk> {
        self.0.pop_front()
    }

    pub(crate) fn put_back(&mut self, chunk: Chunk) {
        self.0.push_front(chunk);
    }

    pub(crate) fn last(&mut self) -> Option<&mut Chunk> {
        self.0.back_mut()
    }

    /// Takes a small part: a client that reads can make progress, and one that does not holds little more.
    pub(crate) fn take(&mut self) -> Option<Chunk> {
        let mut first = self.0.pop_front()?;
        if first.data.len() <= SCARCE {
            return Some(first);
        }
        // A copy, as a slice would keep the whole buffer alive.
        let data = Bytes::copy_from_slice(&first.data.split_to(SCARCE));
        self.0.push_front(first);
        Some(Chunk { data, flush: false })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|chunk| chunk.data.len() as u64).sum()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
