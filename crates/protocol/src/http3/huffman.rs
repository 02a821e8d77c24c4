//! The Huffman code of header strings (RFC 7541 appendix B), which QPACK shares with HPACK. Only decoding: the server
//! sends strings unencoded.
//!
//! The code is canonical: codes of equal length increase with their symbols, so the lengths alone define it.

/// Length in bits of each byte's code. The last entry is EOS, which must not occur in a string.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];

const MAX_CODE_BITS: usize = 30;
const END: u16 = 256;

/// Decoding tables, made from the lengths.
struct Code {
    /// By length: the first code, the number of codes, and the index of their first symbol in `symbols`.
    first: [u32; MAX_CODE_BITS + 1],
    count: [u16; MAX_CODE_BITS + 1],
    at: [u16; MAX_CODE_BITS + 1],
    /// All symbols, ordered by their codes.
    symbols: [u16; 257],
    /// For each byte: the symbol whose code the byte begins with, and the code's length; 0 if the code is longer than a
    /// byte.
    short: [(u8, u8); 256],
}

static CODE: Code = Code::new();

impl Code {
    const fn new() -> Self {
        let mut code = Self {
            first: [0; MAX_CODE_BITS + 1],
            count: [0; MAX_CODE_BITS + 1],
            at: [0; MAX_CODE_BITS + 1],
            symbols: [0; 257],
            short: [(0, 0); 256],
        };
        let (mut next, mut placed, mut length) = (0u32, 0usize, 1);
        while length <= MAX_CODE_BITS {
            next <<= 1;
            code.first[length] = next;
            code.at[length] = placed as u16;
            let mut symbol = 0;
            while symbol < LENGTHS.len() {
                if LENGTHS[symbol] as usize == length {
                    code.symbols[placed] = symbol as u16;
                    placed += 1;
                    code.count[length] += 1;
                    if length <= 8 {
                        let mut rest = 0;
                        while rest < 1 << (8 - length) {
                            code.short[(next << (8 - length)) as usize + rest] = (symbol as u8, length as u8);
                            rest += 1;
                        }
                    }
                    next += 1;
                }
                symbol += 1;
            }
            length += 1;
        }
        code
    }

    /// The symbol at the front of the `have` lowest of `bits`, and its length; `None` if these are not enough.
    fn symbol(&self, bits: u64, have: u32) -> Option<(u16, u32)> {
        if have >= 8 {
            let (symbol, length) = self.short[(bits >> (have - 8)) as usize & 0xff];
            if length != 0 {
                return Some((u16::from(symbol), u32::from(length)));
            }
        }
        (1..=have.min(MAX_CODE_BITS as u32)).find_map(|length| {
            let code = (bits >> (have - length)) as u32 & ((1u64 << length) - 1) as u32;
            let (first, count) = (self.first[length as usize], u32::from(self.count[length as usize]));
            let place = code.checked_sub(first).filter(|place| *place < count)?;
            Some((self.symbols[self.at[length as usize] as usize + place as usize], length))
        })
    }
}

/// Decodes a string; `None` if the encoding is invalid.
pub(super) fn decode(encoded: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(encoded.len() * 8 / 5);
    let (mut bits, mut have) = (0u64, 0u32);
    let mut rest = encoded.iter();
    loop {
        while have <= 56
            && let Some(&byte) = rest.next()
        {
            bits = bits << 8 | u64::from(byte);
            have += 8;
        }
        match CODE.symbol(bits, have) {
            Some((END, _)) => return None,
            Some((symbol, length)) => {
                text.push(symbol as u8);
                have -= length;
            }
            // The padding must be shorter than a byte and consist of the first bits of EOS, all ones (RFC 7541 5.2).
            None => {
                let padding = (1u64 << have) - 1;
                return (have < 8 && bits & padding == padding).then_some(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 7541 C.4.1, C.4.3, C.6.1
        assert_eq!(decode(b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff").unwrap(), b"www.example.com");
        assert_eq!(decode(b"\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf").unwrap(), b"custom-value");
        let date = b"\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff";
        assert_eq!(decode(date).unwrap(), b"Mon, 21 Oct 2013 20:13:21 GMT");
        assert_eq!(decode(b"").unwrap(), b"");
    }

    /// Writes symbols by the canonical rule alone.
    fn encode(symbols: &[u16]) -> Vec<u8> {
        let mut order: Vec<usize> = (0..LENGTHS.len()).collect();
        order.sort_by_key(|&symbol| (LENGTHS[symbol], symbol));
        let mut codes = [0u32; 257];
        let (mut code, mut length) = (0u32, 0);
        for symbol in order {
            code <<= LENGTHS[symbol] - length;
            length = LENGTHS[symbol];
            codes[symbol] = code;
            code = code.wrapping_add(1);
        }
        let mut bits: Vec<bool> = Vec::new();
        for &symbol in symbols {
            let (code, length) = (codes[usize::from(symbol)], LENGTHS[usize::from(symbol)]);
            bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
        }
        while !bits.len().is_multiple_of(8) {
            bits.push(true);
        }
        bits.chunks(8).map(|byte| byte.iter().fold(0, |value, &bit| value << 1 | u8::from(bit))).collect()
    }

    #[test]
    fn every_byte_and_every_pair_of_bytes_round_trips() {
        for a in 0..=255u8 {
            assert_eq!(decode(&encode(&[a.into()])).unwrap(), [a]);
            let all: Vec<u8> = (0..=255).flat_map(|b| [a, b]).collect();
            let symbols: Vec<u16> = all.iter().map(|&byte| byte.into()).collect();
            assert_eq!(decode(&encode(&symbols)).unwrap(), all);
        }
    }

    #[test]
    fn eos_within_a_string_and_wrong_padding_are_errors() {
        assert_eq!(decode(&encode(&[b'a'.into(), END])), None);
        assert_eq!(decode(b"\xff"), None, "a whole byte of padding");
        assert_eq!(decode(b"\xff\xff\xff\xff"), None);
        assert_eq!(decode(b"\x18"), None, "zeros after an `a`");
        assert_eq!(decode(b"\x1f").unwrap(), b"a");
    }
}
