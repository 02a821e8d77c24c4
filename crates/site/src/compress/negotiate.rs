//! Content negotiation: the coding to respond with, from `Accept-Encoding` (RFC 9110 §12.5.3).
//!
//! The highest weight wins, and the server's order breaks ties. Malformed elements are skipped. The header is parsed
//! for each request, without allocation. A cache of the last header would take about as long (see the table in the
//! parent module), so there is none.

use howdah_config::Algorithm;

/// Picks the coding for a response; `None` means unencoded.
///
/// `lines` are the values of all `Accept-Encoding` fields; `order` lists the codings that the server offers, best
/// first. A client that refuses every possible coding (only `identity;q=0`) gets the body unencoded too: the RFC allows
/// that, and a 406 would not help.
pub fn choose<'a>(lines: impl IntoIterator<Item = &'a [u8]>, order: &[Algorithm]) -> Option<Algorithm> {
    let mut weights = Weights::default();
    for line in lines {
        line.split(|byte| *byte == b',').for_each(|element| weights.read(element));
    }
    weights.pick(order)
}

/// The client's weights of the supported codings, in thousandths.
#[derive(Default)]
struct Weights {
    zstd: Option<u16>,
    brotli: Option<u16>,
    gzip: Option<u16>,
    identity: Option<u16>,
    any: Option<u16>,
}

impl Weights {
    fn of(&mut self, coding: &[u8]) -> Option<&mut Option<u16>> {
        Some(match coding {
            b"*" => &mut self.any,
            name if name.eq_ignore_ascii_case(b"gzip") => &mut self.gzip,
            name if name.eq_ignore_ascii_case(b"br") => &mut self.brotli,
            name if name.eq_ignore_ascii_case(b"zstd") => &mut self.zstd,
            name if name.eq_ignore_ascii_case(b"identity") => &mut self.identity,
            // An old name that recipients must treat as gzip (RFC 9110 §8.4.1.3).
            name if name.eq_ignore_ascii_case(b"x-gzip") => &mut self.gzip,
            _ => return None,
        })
    }

    fn read(&mut self, element: &[u8]) {
        let mut parts = element.split(|byte| *byte == b';');
        let coding = parts.next().unwrap_or_default().trim_ascii();
        let Some(known) = self.of(coding) else { return };
        let mut weight = 1000;
        for parameter in parts {
            let end = parameter.iter().position(|byte| *byte == b'=').unwrap_or(parameter.len());
            let (name, value) = parameter.split_at(end);
            if name.trim_ascii().eq_ignore_ascii_case(b"q") {
                let Some(value) = value.strip_prefix(b"=").and_then(quality) else { return };
                weight = value;
            }
        }
        // Listed twice: use the lower weight, so that a refusal always wins.
        *known = Some(known.map_or(weight, |before| before.min(weight)));
    }

    fn pick(&self, order: &[Algorithm]) -> Option<Algorithm> {
        let mut best = None;
        let mut best_weight = 0;
        for &algorithm in order {
            let said = match algorithm {
                Algorithm::Zstd => self.zstd,
                Algorithm::Brotli => self.brotli,
                Algorithm::Gzip => self.gzip,
            };
            let weight = said.or(self.any).unwrap_or(0);
            if weight > best_weight {
                best = Some(algorithm);
                best_weight = weight;
            }
        }
        // Unencoded wins only if the client gives it a higher weight.
        if self.identity.or(self.any).unwrap_or(0) > best_weight { None } else { best }
    }
}

/// Parses a weight (`0`, `1`, `0.125`) to thousandths. Further digits are ignored; a value above 1 is invalid.
fn quality(value: &[u8]) -> Option<u16> {
    let (whole, fraction) = match value.trim_ascii() {
        [whole @ (b'0' | b'1')] => (whole, &[][..]),
        [whole @ (b'0' | b'1'), b'.', fraction @ ..] => (whole, fraction),
        _ => return None,
    };
    let mut thousandths = u16::from(*whole == b'1') * 1000;
    let mut place = 100;
    for digit in fraction {
        if !digit.is_ascii_digit() {
            return None;
        }
        thousandths += u16::from(digit - b'0') * place;
        place /= 10;
    }
    (thousandths <= 1000).then_some(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_config::Algorithm::{Brotli, Gzip, Zstd};

    #[test]
    fn table() {
        let all: &[Algorithm] = &[Zstd, Brotli, Gzip];
        let cases: &[(&[&str], &[Algorithm], Option<Algorithm>)] = &[
            (&[], all, None),
            (&[""], all, None),
            (&["gzip"], all, Some(Gzip)),
            (&["GZip"], all, Some(Gzip)),
            (&["x-gzip"], all, Some(Gzip)),
            (&["deflate"], all, None),
            (&["gzip, deflate, br, zstd"], all, Some(Zstd)),
            (&["gzip, deflate, br"], all, Some(Brotli)),
            (&["gzip", "br"], all, Some(Brotli)),
            (&["gzip, deflate, br, zstd"], &[Gzip, Zstd], Some(Gzip)),
            (&["gzip, deflate, br, zstd"], &[], None),
            (&["zstd"], &[Gzip], None),
            (&["gzip;q=1.0, zstd;q=0.5"], all, Some(Gzip)),
            (&["gzip;q=0.8,br;q=0.801"], all, Some(Brotli)),
            (&["gzip ; q = 0.2 , br ; Q=0.1"], all, Some(Gzip)),
            (&["\tgzip\t;\tq=0.2"], all, Some(Gzip)),
            (&["gzip;q=0"], all, None),
            (&["gzip;q=0.000"], all, None),
            (&["gzip;q=0.001"], all, Some(Gzip)),
            (&["*"], all, Some(Zstd)),
            (&["*;q=0"], all, None),
            (&["*, zstd;q=0"], all, Some(Brotli)),
            (&["*;q=0.5, gzip"], all, Some(Gzip)),
            (&["gzip;q=0, *"], &[Gzip], None),
            (&["identity"], all, None),
            (&["identity, gzip"], all, Some(Gzip)),
            (&["identity, gzip;q=0.9"], all, None),
            (&["identity;q=0.5, gzip;q=0.9"], all, Some(Gzip)),
            (&["identity;q=0"], all, None),
            (&["identity;q=0, gzip;q=0.1"], all, Some(Gzip)),
            (&["identity;q=0, *;q=0"], all, None),
            (&["br;q=1.000"], all, Some(Brotli)),
            // Broken elements are skipped, the others count.
            (&["br;q=1.001"], all, None),
            (&["br;q=2, gzip"], all, Some(Gzip)),
            (&["br;q=, gzip"], all, Some(Gzip)),
            (&["br;q, gzip"], all, Some(Gzip)),
            (&["br;q=-1, gzip"], all, Some(Gzip)),
            (&["br;q=0.5x, gzip;q=0.1"], all, Some(Gzip)),
            (&["br;q=high, gzip"], all, Some(Gzip)),
            (&[",,;,;q=1,=,gzip,,"], all, Some(Gzip)),
            (&[";;;q=0;gzip"], all, None),
            (&["gz ip"], all, None),
            (&["gzip;level=9;q=0.5"], all, Some(Gzip)),
            (&["gzip;quiet=0"], all, Some(Gzip)),
            (&["gzip;q=0.33333333333333333333"], all, Some(Gzip)),
            (&["gzip;q=0, gzip"], all, None),
            (&["gzip, gzip;q=0"], all, None),
            (&["gzip\u{e9}, \u{fffd};q=1"], all, None),
        ];
        for (lines, order, expected) in cases {
            let got = choose(lines.iter().map(|line| line.as_bytes()), order);
            assert_eq!(got, *expected, "{lines:?} with {order:?}");
        }
    }

    #[test]
    fn any_bytes_are_tolerated() {
        let mut state = 1_u32;
        for _ in 0..20_000 {
            let line: Vec<u8> = (0..24)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    b"gzipbrstd*;,=q01.5 \t\xff\0"[(state >> 24) as usize % 22]
                })
                .collect();
            let _ = choose([&line[..]], &[Zstd, Brotli, Gzip]);
        }
    }
}
