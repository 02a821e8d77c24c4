//! Normalizes URL paths for rules and sites, in linear time.

use percent_encoding::percent_decode;

/// Resolves `.` and `..`, and merges slashes. The result starts with one slash. It ends with a slash if the path ends
/// with one, or with `.` or `..`.
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
    let plain: Vec<u8> = percent_decode(raw).collect();
    // The decoder leaves invalid sequences as they are; each valid one is two bytes longer than its byte.
    let sequences = raw.iter().filter(|&&b| b == b'%').count();
    if plain.len() + 2 * sequences != raw.len() {
        return Err("an invalid percent-encoding in its path");
    }
    if plain.contains(&0) {
        return Err("a NUL byte in its path");
    }
    Ok(plain)
}

/// `true` if a path is normalized and has neither `%` nor a NUL byte, so that it can be used unchanged.
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
