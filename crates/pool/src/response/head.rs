//! The head of a response, as a worker sends it: collected from its frames, limited, and split into lines.

use bytes::Bytes;
use howdah_transport::wire::ROUTE_LINE;
use zerocopy::FromBytes;

/// Maximum size of a response's head over all its frames, in bytes.
const MAX_HEAD: usize = 1024 * 1024;
/// Maximum number of header lines. (Header maps fail beyond 24,576 names.)
const MAX_LINES: usize = 1000;

/// Names and values in the order in which PHP sent them.
pub(crate) type HeaderLines = Vec<(Bytes, Bytes)>;

/// Result of parsing a complete head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ResponseHead {
    /// Status and lines, and the route that the application has reported.
    Good(u16, HeaderLines, Option<Bytes>),
    /// Exceeds `MAX_HEAD` or `MAX_LINES`.
    TooLong,
    /// No honest worker writes this.
    Malformed,
}

/// A head whose frames are arriving.
#[derive(Debug, Default)]
pub(crate) struct HeadParts {
    bytes: Vec<u8>,
    too_long: bool,
}

impl HeadParts {
    /// Adds a frame's payload; returns the head after the last one.
    pub(crate) fn add(&mut self, payload: Vec<u8>, more: bool) -> Option<ResponseHead> {
        if self.too_long || self.bytes.len() + payload.len() > MAX_HEAD {
            self.too_long = true;
            self.bytes = Vec::new();
        } else if self.bytes.is_empty() {
            self.bytes = payload;
        } else {
            self.bytes.extend_from_slice(&payload);
        }
        if more {
            return None;
        }
        let bytes = Bytes::from(std::mem::take(&mut self.bytes));
        if std::mem::take(&mut self.too_long) {
            return Some(ResponseHead::TooLong);
        }
        Some(parse(&bytes).unwrap_or(ResponseHead::Malformed))
    }
}

/// Splits a head: `u16` status, then for each line `u32` length and `Name: value`. Lines without a colon are dropped. A
/// line that begins with `ROUTE_LINE`, which PHP allows in no header, holds the route.
fn parse(bytes: &Bytes) -> Option<ResponseHead> {
    let (status, mut lines) = u16::read_from_prefix(bytes).ok()?;
    let mut headers = Vec::with_capacity(8);
    let mut route = None;
    while !lines.is_empty() {
        let (len, rest) = u32::read_from_prefix(lines).ok()?;
        let (len, start) = (len as usize, bytes.len() - rest.len());
        let line = rest.get(..len)?;
        if line.first() == Some(&ROUTE_LINE) {
            route = Some(bytes.slice(start + 1..start + len));
        } else if let Some(colon) = line.iter().position(|&b| b == b':') {
            if headers.len() == MAX_LINES {
                return Some(ResponseHead::TooLong);
            }
            let value_skip = line[colon + 1..].iter().take_while(|&&b| b == b' ' || b == b'\t').count();
            headers.push((bytes.slice(start..start + colon), bytes.slice(start + colon + 1 + value_skip..start + len)));
        }
        lines = &rest[len..];
    }
    Some(ResponseHead::Good(status, headers, route))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: u16, lines: &[&[u8]]) -> Vec<u8> {
        let mut bytes = status.to_ne_bytes().to_vec();
        for line in lines {
            bytes.extend_from_slice(&(line.len() as u32).to_ne_bytes());
            bytes.extend_from_slice(line);
        }
        bytes
    }

    fn whole(bytes: Vec<u8>) -> ResponseHead {
        HeadParts::default().add(bytes, false).unwrap()
    }

    #[test]
    fn a_head_is_split_into_names_and_values() {
        let bytes = head(201, &[b"A: b", b"X-Y:z", b"no colon", b"\0a:b", b"E:"]);
        for cut in 0..bytes.len() {
            let mut parts = HeadParts::default();
            assert_eq!(parts.add(bytes[..cut].to_vec(), true), None);
            let Some(ResponseHead::Good(201, lines, route)) = parts.add(bytes[cut..].to_vec(), false) else {
                panic!("{cut}")
            };
            let lines: Vec<(&[u8], &[u8])> = lines.iter().map(|(n, v)| (n.as_ref(), v.as_ref())).collect();
            assert_eq!(route.as_deref(), Some(&b"a:b"[..]));
            assert_eq!(lines, [(&b"A"[..], &b"b"[..]), (b"X-Y", b"z"), (b"E", b"")]);
        }
    }

    #[test]
    fn a_head_with_a_false_length_is_refused() {
        let mut bytes = head(200, &[b"A: b"]);
        bytes[2] = 200;
        assert_eq!(whole(bytes.clone()), ResponseHead::Malformed);
        bytes[2..6].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(whole(bytes), ResponseHead::Malformed);
        assert_eq!(whole(b"\x01".to_vec()), ResponseHead::Malformed);
    }

    #[test]
    fn a_head_with_too_many_lines_or_bytes_reaches_no_handler() {
        assert!(matches!(whole(head(200, &vec![&b"A: b"[..]; MAX_LINES])), ResponseHead::Good(200, _, None)));
        assert_eq!(whole(head(200, &vec![&b"A: b"[..]; MAX_LINES + 1])), ResponseHead::TooLong);
        let mut parts = HeadParts::default();
        assert_eq!(parts.add(vec![b'x'; MAX_HEAD], true), None);
        assert_eq!(parts.add(vec![b'x'; 1], true), None);
        assert!(parts.bytes.capacity() == 0, "the bytes are freed");
        assert_eq!(parts.add(vec![b'x'; 1], false), Some(ResponseHead::TooLong));
        assert!(
            matches!(parts.add(head(200, &[]), false), Some(ResponseHead::Good(200, _, None))),
            "the next head is counted separately"
        );
    }
}
