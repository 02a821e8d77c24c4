//! Updates as bytes, for the hubs of other servers.

use crate::update::{Forms, Update};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Version of the format: the first byte.
const VERSION: u8 = 1;
/// Bits of the second byte.
const PRIVATE: u8 = 1;
const BINARY: u8 = 2;
const IS_KEPT: u8 = 4;
const HAS_KIND: u8 = 8;
const HAS_RETRY: u8 = 16;
const HAS_EXCEPT: u8 = 32;
const CACHED: u8 = 64;
const HAS_CLOSE: u8 = 128;
/// Maximum number of topics, so that a short message cannot make the receiver allocate much memory.
const MAX_TOPICS: usize = 1000;

impl Update {
    /// Encodes the update for other servers, which keep it in their histories if `is_kept`.
    pub(crate) fn to_bytes(&self, is_kept: bool) -> Bytes {
        let mut bytes = BytesMut::with_capacity(self.size());
        bytes.put_u8(VERSION);
        let flags = [
            (self.private, PRIVATE),
            (self.binary, BINARY),
            (is_kept, IS_KEPT),
            (self.kind.is_some(), HAS_KIND),
            (self.retry.is_some(), HAS_RETRY),
            (self.except.is_some(), HAS_EXCEPT),
            (self.cached, CACHED),
            (self.close.is_some(), HAS_CLOSE),
        ];
        bytes.put_u8(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum());
        put(&mut bytes, &self.id);
        bytes.put_u16(u16::try_from(self.topics.len()).unwrap_or(u16::MAX));
        self.topics.iter().for_each(|topic| put(&mut bytes, topic));
        self.kind.iter().for_each(|kind| put(&mut bytes, kind));
        self.retry.iter().for_each(|retry| bytes.put_u64(*retry));
        self.except.iter().for_each(|except| put(&mut bytes, except));
        self.close.iter().for_each(|code| bytes.put_u16(*code));
        bytes.put_slice(&self.data);
        bytes.freeze()
    }

    /// Decodes an update; the second value is `true` if it is kept in the history. `None` if the bytes are not valid in
    /// this version.
    pub(crate) fn from_bytes(mut bytes: Bytes) -> Option<(Self, bool)> {
        if bytes.try_get_u8().ok()? != VERSION {
            return None;
        }
        let flags = bytes.try_get_u8().ok()?;
        let has = |flag| flags & flag != 0;
        let id = text(&mut bytes)?.into();
        let count = usize::from(bytes.try_get_u16().ok()?);
        if !(1..=MAX_TOPICS).contains(&count) {
            return None;
        }
        let topics = (0..count).map(|_| Some(text(&mut bytes)?.into())).collect::<Option<_>>()?;
        let kind = if has(HAS_KIND) { Some(text(&mut bytes)?.into()) } else { None };
        let retry = if has(HAS_RETRY) { Some(bytes.try_get_u64().ok()?) } else { None };
        let except = if has(HAS_EXCEPT) { Some(text(&mut bytes)?.into()) } else { None };
        let close = if has(HAS_CLOSE) { bytes.try_get_u16().ok()? } else { 0 };
        // Other codes are not an application's.
        let close = (4000..5000).contains(&close).then_some(close);
        let (private, binary, cached) = (has(PRIVATE), has(BINARY), has(CACHED));
        // Clients get text unchecked, so it must be valid UTF-8.
        if !binary && std::str::from_utf8(&bytes).is_err() {
            return None;
        }
        let data = bytes;
        let forms = Forms::default();
        let update = Self { id, topics, private, data, binary, kind, retry, except, cached, close, forms };
        Some((update, has(IS_KEPT)))
    }
}

pub(crate) fn put(bytes: &mut BytesMut, text: &str) {
    bytes.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
    bytes.put_slice(text.as_bytes());
}

pub(crate) fn text(bytes: &mut Bytes) -> Option<String> {
    let length = usize::try_from(bytes.try_get_u32().ok()?).ok()?;
    if length > bytes.len() {
        return None;
    }
    String::from_utf8(bytes.split_to(length).to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_is_the_same_on_another_server() {
        let update = || Update {
            id: "1".into(),
            topics: ["a".into(), "\u{e9}".into()].into(),
            private: true,
            data: Bytes::from_static(b"x\ny"),
            kind: Some("new".into()),
            retry: Some(5),
            except: Some("7.8".into()),
            cached: true,
            close: Some(4009),
            ..Update::default()
        };
        let fields = |update: &Update| {
            let Update { id, topics, private, data, binary, kind, retry, except, cached, close, .. } = update;
            format!("{id:?} {topics:?} {private} {data:?} {binary} {kind:?} {retry:?} {except:?} {cached} {close:?}")
        };
        let plain = Update { data: Bytes::from_static(b"\xff"), binary: true, kind: None, ..update() };
        for (update, is_kept) in
            [(update(), true), (Update { retry: None, except: None, cached: false, close: None, ..plain }, false)]
        {
            let bytes = update.to_bytes(is_kept);
            let (read, read_kept) = Update::from_bytes(bytes.clone()).unwrap();
            assert_eq!((fields(&read), read_kept), (fields(&update), is_kept));
            // Cut anywhere before its data, it is invalid.
            for end in 0..bytes.len() - update.data.len() {
                assert!(Update::from_bytes(bytes.slice(..end)).is_none(), "{end}");
            }
        }
    }

    #[test]
    fn other_bytes_are_no_update() {
        for wrong in [
            &b""[..],
            b"\x02\0",
            b"\x01\0\xff\xff\xff\xff",
            b"\x01\0\0\0\0\x01x\xff\xff",
            b"\x01\0\0\0\0\x01\xff\0\x01\0\0\0\0",
            b"\x01\0\0\0\0\x01x\0\0",
            b"\x01\0\0\0\0\x01x\0\x01\0\0\0\x01t\xff",
        ] {
            assert!(Update::from_bytes(Bytes::copy_from_slice(wrong)).is_none(), "{wrong:?}");
        }
        assert!(Update::from_bytes(Bytes::from_static(b"\x01\0\0\0\0\x01x\0\x01\0\0\0\x01tdata")).is_some());
    }
}
