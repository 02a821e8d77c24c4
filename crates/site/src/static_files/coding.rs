//! The content codings of precompressed twins and their choice by `Accept-Encoding` (RFC 9110, section 12.5.3).

use http::header::ACCEPT_ENCODING;
use http::{HeaderMap, HeaderValue};

/// A content coding of a precompressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Brotli,
    Zstd,
    Gzip,
}

impl Coding {
    pub(super) const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    /// Extension of the encoded file.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Coding::Brotli => ".br",
            Coding::Zstd => ".zst",
            Coding::Gzip => ".gz",
        }
    }

    /// The name in `Content-Encoding`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }

    pub(super) fn value(self) -> HeaderValue {
        HeaderValue::from_static(self.name())
    }

    fn is(self, name: &str) -> bool {
        name.eq_ignore_ascii_case(self.name()) || (self == Coding::Gzip && name.eq_ignore_ascii_case("x-gzip"))
    }
}

/// The weights, in thousandths, that a request gives to each coding.
#[derive(Debug, Default)]
pub(super) struct Weights {
    coded: [Option<u16>; 3],
    identity: Option<u16>,
    rest: Option<u16>,
}

impl Weights {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut weights = Self::default();
        let fields = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|field| field.to_str().ok());
        for member in fields.flat_map(|field| field.split(',')) {
            let mut parameters = member.split(';').map(str::trim);
            let name = parameters.next().unwrap_or_default();
            let weight = parameters.find_map(|parameter| parameter.strip_prefix(['q', 'Q'])).map_or(1000, |rest| {
                // An invalid weight counts as 0: sending the plain file is always correct.
                rest.trim_start().strip_prefix('=').and_then(|value| thousandths(value.trim())).unwrap_or(0)
            });
            if name == "*" {
                weights.rest = Some(weight);
            } else if name.eq_ignore_ascii_case("identity") {
                weights.identity = Some(weight);
            } else if let Some(at) = Coding::ALL.iter().position(|coding| coding.is(name)) {
                weights.coded[at] = Some(weight);
            }
        }
        weights
    }

    /// Weight of a coding; 0 if the client does not accept it or does not mention it.
    pub(super) fn coded(&self, coding: Coding) -> u16 {
        self.coded[coding as usize].or(self.rest).unwrap_or(0)
    }

    /// Weight of the plain file. It is acceptable unless excluded, and has the lowest weight if not mentioned.
    pub(super) fn identity(&self) -> u16 {
        self.identity.unwrap_or(if self.rest == Some(0) { 0 } else { 1 })
    }
}

/// Parses a weight such as `0`, `0.8` or `1.000`; `None` if it is invalid.
fn thousandths(value: &str) -> Option<u16> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: u16 = format!("{fraction:0<3}").parse().ok()?;
    match whole {
        "0" => Some(fraction),
        "1" if fraction == 0 => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(field: &str) -> [u16; 4] {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_str(field).unwrap());
        let weights = Weights::of(&headers);
        let [br, zstd, gzip] = Coding::ALL.map(|coding| weights.coded(coding));
        [br, zstd, gzip, weights.identity()]
    }

    #[test]
    fn table() {
        for (field, expected) in [
            ("", [0, 0, 0, 1]),
            ("gzip, deflate, br, zstd", [1000, 1000, 1000, 1]),
            ("gzip;q=0.5, br;q=0.25", [250, 0, 500, 1]),
            ("GZIP ; q=1.0", [0, 0, 1000, 1]),
            ("x-gzip", [0, 0, 1000, 1]),
            ("br;q=0, *", [0, 1000, 1000, 1]),
            ("*;q=0", [0, 0, 0, 0]),
            ("*;q=0, gzip", [0, 0, 1000, 0]),
            ("identity;q=0, gzip;q=0.001", [0, 0, 1, 0]),
            ("identity, gzip;q=0.5", [0, 0, 500, 1000]),
            ("gzip;q=2, br;q=0.1234, zstd;q=x", [0, 0, 0, 1]),
            ("gzip;q", [0, 0, 0, 1]),
        ] {
            assert_eq!(weights(field), expected, "{field}");
        }
    }
}
