//! Validation of hosts in targets, in `Host`, and in fields of proxies.

/// The valid bytes of a host name, as in DNS. RFC 3986 3.2.2 allows more (`,`, `%20`), but no client sends these for a
/// real host, and scripts and caches would split the name at them.
static IN_NAME: [bool; 256] = {
    let others = b"-._";
    let mut table = [false; 256];
    let mut at = 0;
    while at < table.len() {
        table[at] = (at as u8).is_ascii_alphanumeric();
        at += 1;
    }
    at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
};

/// `true` for a host with an optional port: letters, digits and `-._`, with at least one letter or digit, or the
/// characters of an IPv6 address in brackets.
pub(crate) fn is_host(text: &[u8]) -> bool {
    let (name, rest) = match text.first() {
        Some(b'[') => match text.iter().position(|&b| b == b']') {
            Some(end) if end > 2 && text[1..end].iter().all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.')) => {
                text.split_at(end + 1)
            }
            _ => return false,
        },
        _ => text.split_at(text.iter().position(|&b| b == b':').unwrap_or(text.len())),
    };
    let port_ok = match rest.split_first() {
        None => true,
        Some((b':', [])) => true,
        Some((b':', port)) => port.iter().all(u8::is_ascii_digit) && decimal(port).is_some_and(|port| port <= 65535),
        Some(_) => false,
    };
    let is_name = || name.iter().all(|&b| IN_NAME[usize::from(b)]) && name.iter().any(u8::is_ascii_alphanumeric);
    (name.first() == Some(&b'[') || is_name()) && port_ok
}

/// Parses a decimal number of at most nine digits.
fn decimal(digits: &[u8]) -> Option<u32> {
    (digits.len() <= 9).then(|| digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
}
