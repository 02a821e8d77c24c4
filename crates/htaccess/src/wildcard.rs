//! Wildcard patterns with `*`, `?` and `[…]`, as in the shell.

/// `true` if a name matches. With `segments`, `*` and `?` do not match a slash. Takes at most time proportional to the
/// product of both lengths.
pub(crate) fn matches(pattern: &[u8], name: &[u8], segments: bool) -> bool {
    let (mut p, mut n) = (0, 0);
    // Position after the last star, and where the text that it matched ends.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            None if n == name.len() => return true,
            Some(_) if n < name.len() => one(&pattern[p..], name[n], segments),
            _ => None,
        };
        match (step, &mut star) {
            (Some(length), _) => (p, n) = (p + length, n + 1),
            (None, Some((after, taken))) => {
                if *taken >= name.len() || (segments && name[*taken] == b'/') {
                    return false;
                }
                *taken += 1;
                (p, n) = (*after, *taken);
            }
            (None, None) => return false,
        }
    }
}

/// Length of the pattern element at the start, if it matches this byte.
fn one(pattern: &[u8], byte: u8, segments: bool) -> Option<usize> {
    match *pattern.first()? {
        b'?' => (!segments || byte != b'/').then_some(1),
        b'[' => match set(pattern, byte) {
            Some((length, within)) => within.then_some(length),
            None => (byte == b'[').then_some(1),
        },
        b'\\' if pattern.len() > 1 => (pattern[1] == byte).then_some(2),
        literal => (literal == byte).then_some(1),
    }
}

/// Parses a set of bytes: returns its length in the pattern, and `true` if the byte is in it. `None` if the set is not
/// closed.
fn set(pattern: &[u8], byte: u8) -> Option<(usize, bool)> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = if negated { 2 } else { 1 };
    let (mut at, mut within) = (first, false);
    loop {
        match *pattern.get(at)? {
            b']' if at > first => return Some((at + 1, within != negated)),
            low => {
                let high = match (pattern.get(at + 1), pattern.get(at + 2)) {
                    (Some(b'-'), Some(&high)) if high != b']' => Some(high),
                    _ => None,
                };
                within |= high.map_or(low == byte, |high| (low..=high).contains(&byte));
                at += if high.is_some() { 3 } else { 1 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_as_in_the_shell() {
        for (pattern, yes, no) in [
            ("*.php", "a.php", "a.phps"),
            ("wp-*.php", "wp-config.php", "wp.php"),
            ("?.txt", "a.txt", "ab.txt"),
            ("[a-c]*", "bx", "dx"),
            ("[!a]", "b", "a"),
            ("a[", "a[", "a"),
            ("*a*b*c", "xaxbxc", "xaxcxb"),
            ("\\*", "*", "a"),
            ("[]]", "]", "["),
        ] {
            assert!(matches(pattern.as_bytes(), yes.as_bytes(), false), "{pattern} {yes}");
            assert!(!matches(pattern.as_bytes(), no.as_bytes(), false), "{pattern} {no}");
        }
        assert!(!matches(b"a*c", b"a/c", true) && matches(b"a*c", b"a/c", false));
        assert!(!matches(&b"*a".repeat(50), &[b'a'; 49], false));
    }
}
