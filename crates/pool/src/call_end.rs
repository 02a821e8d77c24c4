//! The end of a call as a worker reports it.

use crate::lane::SnapshotWork;

/// `WireDone`, as far as it is used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CallEnd {
    pub(crate) php_ns: u64,
    pub(crate) peak_memory: u64,
    pub(crate) flags: u32,
    pub(crate) snapshot: SnapshotWork,
}

pub(crate) fn parse_done(payload: &[u8]) -> Option<CallEnd> {
    let word = |at: usize| Some(u64::from_ne_bytes(payload.get(at..at + 8)?.try_into().ok()?));
    let half = |at: usize| Some(u32::from_ne_bytes(payload.get(at..at + 4)?.try_into().ok()?));
    let snapshot = SnapshotWork { way: 0, searches: half(20)?, restored_pages: half(24)?, restore_ns: half(28)? };
    Some(CallEnd { php_ns: word(0)?, peak_memory: word(8)?, flags: half(16)?, snapshot })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_end_of_call_is_refused() {
        assert!(parse_done(&[0; 31]).is_none());
        assert_eq!(parse_done(&[0; 32]), Some(CallEnd::default()));
    }
}
