//! A request body that was read completely before the upstream server is contacted (`buffer`), and is then sent to it.

use bytes::Bytes;
use howdah_budget::Charge;
use howdah_pool::RequestBody as Spooled;
use howdah_protocol::{BodyError, BodySource, RequestBody};
use std::fs::File;
use std::io::Read;
use std::task::{Context, Poll};

/// Size of a chunk in bytes.
const PART: usize = 64 * 1024;

/// Converts a spooled body to one that can be sent.
pub(super) fn body(spooled: Spooled) -> RequestBody {
    match spooled {
        // No body of a proxied request is dropped (`Allowance::of_proxy`).
        Spooled::Empty | Spooled::Stream(_) | Spooled::Dropped(_) => RequestBody::none(),
        Spooled::Memory(bytes) => {
            let length = bytes.len() as u64;
            RequestBody::new(Box::new(Memory(Some(bytes))), Some(length))
        }
        Spooled::File(file, length, charge) => {
            let file = InFile { file: file.into(), left: length, _charge: charge };
            RequestBody::new(Box::new(file), Some(length))
        }
    }
}

#[derive(Debug)]
struct Memory(Option<Bytes>);

impl BodySource for Memory {
    fn poll_part(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}

#[derive(Debug)]
struct InFile {
    file: File,
    left: u64,
    _charge: Charge,
}

impl BodySource for InFile {
    fn poll_part(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut part = vec![0; usize::try_from(self.left).unwrap_or(PART).min(PART)];
        Poll::Ready(Some(match self.file.read_exact(&mut part) {
            Ok(()) => {
                self.left -= part.len() as u64;
                Ok(part.into())
            }
            Err(error) => Err(error.into()),
        }))
    }
}
