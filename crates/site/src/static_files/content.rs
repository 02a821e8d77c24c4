//! One representation of a file: its descriptor, the stamp that identifies its state, and the header values made from
//! it.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::os::fd::OwnedFd;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use howdah_protocol::{FileBody, FileIdentity};
use http::HeaderValue;
use rustix::fs::{FileType, Stat, fstat};
use rustix::io::{Errno, pread};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Miss;
use super::coding::Coding;
use super::range::Span;

/// Files up to this size in bytes are kept in memory: copying is cheaper than `sendfile`, and one write sends
/// everything.
pub(super) const MAX_CACHED_LEN: u64 = 16 << 10;
/// Once a file's last write is this long ago, the next write is certain to change its timestamps.
const MTIME_SETTLED: Duration = Duration::from_secs(2);
/// The last second that an HTTP date can express (end of the year 9999).
const LAST_DATE: i64 = 253_402_300_799;

/// Identity and state of a file, from `stat`. Equal stamps mean unchanged content, except for writes within one tick of
/// the kernel's timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    pub(super) size: u64,
    /// Nanoseconds since 1970.
    pub(super) modified: i128,
    /// The ctime in nanoseconds since 1970. A write advances it even if the modification time was set back.
    changed: i128,
}

impl Stamp {
    pub(super) fn of(stat: &Stat) -> Self {
        let nanoseconds = |seconds: i64, rest: u64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        #[allow(clippy::useless_conversion)] // The fields' types differ between architectures.
        Self {
            device: stat.st_dev.into(),
            inode: stat.st_ino.into(),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: nanoseconds(stat.st_mtime.into(), stat.st_mtime_nsec.into()),
            changed: nanoseconds(stat.st_ctime.into(), stat.st_ctime_nsec.into()),
        }
    }

    /// Device and inode.
    pub(super) fn file(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns a short, unforgeable name of the stamp: a hash with two random seeds of this process.
    fn identity(&self) -> FileIdentity {
        static SEEDS: LazyLock<[u64; 2]> = LazyLock::new(|| {
            let random = RandomState::new();
            [0, 1].map(|which| random.hash_one(which))
        });
        let mut bytes = [0; 56];
        bytes[..8].copy_from_slice(&self.device.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.inode.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.size.to_ne_bytes());
        bytes[24..40].copy_from_slice(&self.modified.to_ne_bytes());
        bytes[40..].copy_from_slice(&self.changed.to_ne_bytes());
        let mut identity = [0; 16];
        identity[..8].copy_from_slice(&xxh3_64_with_seed(&bytes, SEEDS[0]).to_ne_bytes());
        identity[8..].copy_from_slice(&xxh3_64_with_seed(&bytes, SEEDS[1]).to_ne_bytes());
        identity
    }

    /// `true` if the file was changed less than `age` ago, or has a time in the future.
    pub(super) fn is_younger_than(&self, age: Duration, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.changed > i128::try_from(now.saturating_sub(age).as_nanos()).unwrap_or(0)
    }
}

/// An open file and everything about it that a response needs.
#[derive(Debug)]
pub(super) struct Content {
    file: Arc<OwnedFd>,
    pub(super) stamp: Stamp,
    pub(super) coding: Option<Coding>,
    /// The entity tag as text, for comparisons.
    pub(super) tag: String,
    pub(super) etag: HeaderValue,
    /// Whole seconds since 1970.
    pub(super) modified: i64,
    last_modified: HeaderValue,
    pub(super) media_type: HeaderValue,
    pub(super) length: HeaderValue,
    /// The whole content, if the file is small.
    pub(super) small: Option<Bytes>,
}

impl Content {
    pub(super) fn load(file: OwnedFd, coding: Option<Coding>, media_type: HeaderValue) -> Result<Self, Miss> {
        let stat = fstat(&file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(Miss::Directory),
            _ => return Err(Miss::NotFound),
        }
        let stamp = Stamp::of(&stat);
        let suffix = coding.map_or_else(String::new, |coding| format!("-{}", coding.name()));
        let tag = format!("\"{:x}-{:x}{suffix}\"", stamp.modified, stamp.size);
        let modified = i64::try_from(stamp.modified.div_euclid(1_000_000_000)).unwrap_or(LAST_DATE).clamp(0, LAST_DATE);
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(modified.unsigned_abs());
        let mut content = Self {
            file: Arc::new(file),
            stamp,
            coding,
            etag: header(&tag)?,
            tag,
            modified,
            last_modified: header(&httpdate::fmt_http_date(date))?,
            media_type,
            length: HeaderValue::from(stamp.size),
            small: None,
        };
        if stamp.size <= MAX_CACHED_LEN {
            content.small = Some(content.read_all()?);
        }
        Ok(content)
    }

    /// `Last-Modified`, which is never later than the response (RFC 9110 8.8.2.1).
    pub(super) fn last_modified(&self, now: SystemTime) -> HeaderValue {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(self.modified.unsigned_abs());
        if modified <= now {
            return self.last_modified.clone();
        }
        header(&httpdate::fmt_http_date(now)).unwrap_or_else(|_| self.last_modified.clone())
    }

    /// `true` if the content is unchanged since it was loaded. Data in memory always is. A file may have been modified
    /// in place, and its announced length must be right.
    pub(super) fn is_intact(&self) -> bool {
        self.small.is_some() || fstat(&self.file).is_ok_and(|stat| Stamp::of(&stat) == self.stamp)
    }

    /// Identity of the content, if it is not in memory. `None` for a file that was modified just now: another write
    /// within the same clock tick would not change its timestamps.
    pub(super) fn identity(&self, now: SystemTime) -> Option<FileIdentity> {
        (self.small.is_none() && !self.stamp.is_younger_than(MTIME_SETTLED, now)).then(|| self.stamp.identity())
    }

    /// Appends a part of the content to a body.
    pub(super) fn push_to(&self, body: &mut FileBody, part: Span) {
        match &self.small {
            #[allow(clippy::cast_possible_truncation)] // A small file's.
            Some(bytes) => body.push(bytes.slice(part.start as usize..part.end as usize)),
            None => body.push_file(&self.file, part.start..part.end),
        }
    }

    /// Reads up to `longest` bytes from `start`. Returns fewer only at the end of the file.
    pub(super) fn read(&self, start: u64, longest: usize) -> Result<Bytes, Errno> {
        let mut buffer = Vec::with_capacity(longest);
        while buffer.len() < longest {
            let position = start + buffer.len() as u64;
            match pread(&self.file, rustix::buffer::spare_capacity(&mut buffer), position) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        buffer.truncate(longest);
        Ok(buffer.into())
    }

    fn read_all(&self) -> Result<Bytes, Miss> {
        #[allow(clippy::cast_possible_truncation)] // At most `MAX_CACHED_LEN`.
        let bytes = self.read(0, self.stamp.size as usize)?;
        // The file has shrunk since `stat`: another process is writing it.
        if bytes.len() as u64 == self.stamp.size { Ok(bytes) } else { Err(Miss::Changing) }
    }
}

fn header(text: &str) -> Result<HeaderValue, Miss> {
    HeaderValue::from_str(text).map_err(|_| Miss::NotFound)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_from_the_future_is_as_old_as_its_response() {
        let file = tempfile::tempfile().unwrap();
        let now = SystemTime::now();
        for (modified, expected) in
            [(now + Duration::from_secs(3600), now), (SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH)]
        {
            file.set_modified(modified).unwrap();
            let file = OwnedFd::from(file.try_clone().unwrap());
            let content = Content::load(file, None, HeaderValue::from_static("text/plain")).unwrap();
            assert_eq!(content.last_modified(now).to_str().unwrap(), httpdate::fmt_http_date(expected));
        }
    }
}
