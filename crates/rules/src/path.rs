//! Normalizes URL paths for rules and sites, in linear time.

/// Resolves `.` and `..`, and merges slashes. The result starts with one slash; a trailing slash is kept.
///
/// # Errors
/// The error, in words that follow "the request has".
pub fn normalise(path: &[u8]) -> Result<Vec<u8>, &'static str> {
    if path.first() != Some(&b'/') {
        return Err("a path that does not start with a slash");
    }
    let mut plain = Vec::with_capacity(path.len());
    let mut segments = path[1..].split(|&b| b == b'/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            b"" | b"." => {}
            b".." => match plain.iter().rposition(|&b| b == b'/') {
                Some(parent) => plain.truncate(parent),
                None => return Err("a path that leads above the root"),
            },
            name => {
                plain.push(b'/');
                plain.extend_from_slice(name);
                if last {
                    return Ok(plain);
                }
            }
        }
    }
    plain.push(b'/');
    Ok(plain)
}

/// Decodes percent-encoding once.
///
/// # Errors
/// The error in the path.
pub fn decode(raw: &[u8]) -> Result<Vec<u8>, &'static str> {
    let hex = |b: Option<&u8>| b.and_then(|&b| char::from(b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
    let mut plain = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        let byte = match raw[at] {
            b'%' => match (hex(raw.get(at + 1)), hex(raw.get(at + 2))) {
                (Some(high), Some(low)) => {
                    at += 2;
                    high << 4 | low
                }
                _ => return Err("an invalid percent-encoding in its path"),
            },
            byte => byte,
        };
        if byte == 0 {
            return Err("a NUL byte in its path");
        }
        plain.push(byte);
        at += 1;
    }
    Ok(plain)
}

/// `true` if a path is normalized and has no percent-encoding, so that it can be used unchanged.
pub fn is_plain(raw: &[u8]) -> bool {
    let Some(rest) = raw.strip_prefix(b"/") else { return false };
    if rest.iter().any(|&b| b == b'%' || b == 0) {
        return false;
    }
    let mut segments = rest.split(|&b| b == b'/').peekable();
    while let Some(segment) = segments.next() {
        // Only the last segment may be empty: the path then ends in a slash.
        if matches!(segment, b"." | b"..") || (segment.is_empty() && segments.peek().is_some()) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_path_is_its_own_normal_form() {
        for (path, plain) in [
            ("/", true),
            ("/a/b.php", true),
            ("/a/", true),
            ("/..a/.b/c..", true),
            ("", false),
            ("*", false),
            ("//", false),
            ("/a//b", false),
            ("/a/./b", false),
            ("/a/..", false),
            ("/%61", false),
            ("/a\0", false),
        ] {
            assert_eq!(is_plain(path.as_bytes()), plain, "{path}");
            if plain {
                assert_eq!(normalise(path.as_bytes()).as_deref(), Ok(path.as_bytes()));
            }
        }
    }
}
