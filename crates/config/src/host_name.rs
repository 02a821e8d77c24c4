//! Host names of certificates.

use std::net::IpAddr;

/// Normalizes a host name or address for comparison: lower case, no final dot.
///
/// # Errors
/// The error, in words that follow the name.
pub fn normalize(name: &str) -> Result<String, &'static str> {
    if let Ok(address) = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Ok(address.to_canonical().to_string());
    }
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    if name.starts_with("*.") {
        return Err(
            "is a wildcard, whose certificate cannot be obtained automatically: name each host, or set a certificate's files",
        );
    }
    if name.is_empty() || name.len() > 253 {
        return Err("must have from 1 to 253 characters");
    }
    if !name.is_ascii() {
        return Err("must be ASCII: write international names as xn--…");
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if !name.split('.').all(is_label) {
        return Err("is not a host name");
    }
    if name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit())) {
        return Err("is neither a host name nor an address");
    }
    if !name.contains('.') && name != "localhost" {
        return Err("has no domain, so no authority certifies it: use a name below .internal or .localhost");
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_form() {
        assert_eq!(normalize("Example.ORG.").unwrap(), "example.org");
        assert_eq!(normalize("localhost").unwrap(), "localhost");
        assert_eq!(normalize("[::1]").unwrap(), "::1");
        assert_eq!(normalize("10.0.0.1").unwrap(), "10.0.0.1");
    }

    #[test]
    fn an_invalid_host_is_refused() {
        for bad in
            ["", ".", "..", "a/b.org", "a..b", "-a.org", "a_b.org", "*.example.org", "host", "1.2.3", "\u{fc}.org"]
        {
            assert!(normalize(bad).is_err(), "{bad}");
        }
        assert!(normalize(&format!("{}.org", "a".repeat(64))).is_err());
        assert!(normalize(&["abcdefg"; 40].join(".")).is_err());
    }
}
