//! Decides which targets the server may request again, for a warm-up or to compare two pools. A target with a token
//! belongs to a visitor, or is used up by a request; it would also appear in the log.
//!
//! Tokens cannot be distinguished from names with certainty. A path refused by mistake costs speed, while an accepted
//! token may harm its visitor. So doubtful words are refused: codes of a dozen characters in which letters and digits
//! alternate.

use percent_encoding::percent_decode_str;

const MAX_PATH_LEN: usize = 256;
const MAX_QUERY_LEN: usize = 64;
/// Maximum length of a name with digits or inner capitals.
const MAX_WORD_LEN: usize = 20;
/// Minimum length of a token.
const MIN_TOKEN_LEN: usize = 12;
/// Length from which a less dense code is a token too.
const LONG_TOKEN: usize = 32;
/// Path segments of one-time links, if another segment follows, which need not look like a token: a request may use up
/// the link.
const ONE_TIME: [&str; 16] = [
    "activate",
    "activation",
    "confirm",
    "confirmation",
    "invitation",
    "invite",
    "magic",
    "otp",
    "reset",
    "token",
    "tokens",
    "unsubscribe",
    "verification",
    "verify",
    "logout",
    "signout",
];
/// Words in the names of query parameters whose values are secret, however short.
const SECRET_NAMES: [&str; 16] = [
    "apikey",
    "auth",
    "hash",
    "jwt",
    "nonce",
    "otp",
    "pass",
    "passwd",
    "password",
    "phpsessid",
    "secret",
    "sid",
    "sig",
    "signature",
    "token",
    "wpnonce",
];

/// A target, and the group that it belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    pub(crate) text: &'a str,
    /// The path with all numbers treated as equal, and the names of the query's parameters.
    pub(crate) group: String,
}

/// The reason why a target is not requested again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Text,
    Path,
    Query,
    OneTime,
    Token,
    Parameter,
}

impl Refusal {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Text => "it has characters other than printable ASCII",
            Self::Path => "its path is longer than 256 bytes",
            Self::Query => "its query is longer than 64 bytes",
            Self::OneTime => "it looks like a link that works once",
            Self::Token => "a part of it looks like a token or an address",
            Self::Parameter => "the name of a parameter suggests a secret",
        }
    }
}

pub(crate) fn read(target: &[u8]) -> Result<Target<'_>, Refusal> {
    let text = std::str::from_utf8(target).map_err(|_| Refusal::Text)?;
    let (path, query) = split(text);
    if !text.bytes().all(|b| b.is_ascii_graphic()) || !path.starts_with('/') {
        return Err(Refusal::Text);
    }
    if path.len() > MAX_PATH_LEN {
        return Err(Refusal::Path);
    }
    if query.len() > MAX_QUERY_LEN {
        return Err(Refusal::Query);
    }
    let mut before = "";
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        if is_one_time(before) {
            return Err(Refusal::OneTime);
        }
        if looks_secret(segment) {
            return Err(Refusal::Token);
        }
        before = segment;
    }
    for parameter in query.split(['&', ';']) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if has_word(name, &SECRET_NAMES) {
            return Err(Refusal::Parameter);
        }
        if looks_secret(name) || looks_secret(value) {
            return Err(Refusal::Token);
        }
    }
    Ok(Target { text, group: group_of(path, query) })
}

/// Returns `true` if a target may be requested again without its visitor.
pub fn may_be_asked_again(target: &[u8]) -> bool {
    read(target).is_ok()
}

/// The target for the log, without possible secrets: suspicious segments and the query become `*`.
pub(crate) fn masked(target: &[u8]) -> String {
    let text = String::from_utf8_lossy(target);
    let (path, query) = split(&text);
    let mut masked = String::with_capacity(path.len().min(MAX_PATH_LEN));
    let mut hides = false;
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        hides = hides || looks_secret(segment) || !segment.bytes().all(|b| b.is_ascii_graphic());
        if masked.len() + segment.len() > MAX_PATH_LEN {
            masked.push_str("/…");
            break;
        }
        masked.push('/');
        masked.push_str(if hides { "*" } else { segment });
        hides = is_one_time(segment);
    }
    if query.is_empty() { masked } else { masked + "?*" }
}

fn split(text: &str) -> (&str, &str) {
    text.split_once('?').unwrap_or((text, ""))
}

fn group_of(path: &str, query: &str) -> String {
    let mut group = String::with_capacity(path.len() + query.len());
    for c in path.chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        if c != '0' || !group.ends_with('0') {
            group.push(c);
        }
    }
    for name in query.split('&').filter(|parameter| !parameter.is_empty()) {
        group.push('?');
        group.push_str(name.split('=').next().unwrap_or_default());
    }
    group
}

/// True for a segment such as `reset-password`, but not for a title that contains such a word.
fn is_one_time(segment: &str) -> bool {
    segment.split(['-', '_', '.']).count() <= 2 && has_word(segment, &ONE_TIME)
}

fn has_word(text: &str, words: &[&str]) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|part| words.iter().any(|word| part.eq_ignore_ascii_case(word)))
}

/// True if a path segment, or a query's name or value, may be a token or identify its owner.
fn looks_secret(text: &str) -> bool {
    let plain = without_escapes(text);
    let is_letter_or_digit = |c: &u8| c.is_ascii_alphanumeric();
    let code: Vec<u8> = plain.bytes().filter(is_letter_or_digit).collect();
    let words = || plain.split(|c: char| !c.is_ascii_alphanumeric());
    let is_uuid = text.len() == 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let is_address = plain.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    let is_padded = plain.ends_with('=') && code.len() >= MIN_TOKEN_LEN;
    // The first two parts of a JSON Web Token begin like this.
    let is_jwt = words().any(|word| word.starts_with("eyJ"));
    let is_dense = code.len() >= MIN_TOKEN_LEN && {
        let changes: usize = words().map(changes).sum();
        changes >= 4 && changes * if code.len() >= LONG_TOKEN { 8 } else { 4 } > code.len()
    };
    is_uuid || is_address || is_padded || is_jwt || is_dense || words().any(is_token)
}

/// True for a word that is too long or too mixed to be a name or a number.
fn is_token(word: &str) -> bool {
    let (digits, capitals) = (has_digit(word), has_inner_capital(word));
    let is_hex = digits && word.bytes().all(|b| b.is_ascii_hexdigit()) && !word.bytes().all(|b| b.is_ascii_digit());
    (word.len() >= MIN_TOKEN_LEN && (is_hex || (digits && capitals)))
        || (word.len() > MAX_WORD_LEN && (digits || capitals || word.bytes().all(|b| b.is_ascii_uppercase())))
        || word.len() > 2 * MAX_WORD_LEN
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_digit())
}

/// True for a word with a capital after its first character, and lower-case letters.
fn has_inner_capital(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_lowercase()) && word.bytes().skip(1).any(|b| b.is_ascii_uppercase())
}

/// Number of positions in a word at which a digit is next to a letter, or a capital follows a small letter.
fn changes(word: &str) -> usize {
    word.as_bytes()
        .windows(2)
        .filter(|pair| {
            pair[0].is_ascii_digit() != pair[1].is_ascii_digit()
                || (pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
        })
        .count()
}

/// Decodes escapes. Each byte that is not visible ASCII becomes a space: words in other scripts consist of many.
fn without_escapes(text: &str) -> String {
    percent_decode_str(text).map(|byte| if byte.is_ascii_graphic() { char::from(byte) } else { ' ' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_pages_products_and_dates_may_be_requested_again() {
        for target in [
            "/",
            "/api/v2/shop/products/000F_office_grey_jeans",
            "/api/v2/shop/products/111F_patched_jeans_with_fancy_badges",
            "/en_US/products/beige-strappy-summer-dress",
            "/en/blog/posts/a-long-title-of-2024",
            "/blog/2024/11/27/what-is-a-token",
            "/blog/how-to-reset-a-password/",
            "/archive/2024-11-27",
            "/feed/2024-11-27T10:15:00Z",
            "/feed/20241127T101500",
            "/sku/ABC-123-XL-4",
            "/sku/B08N5WRWNW",
            "/p/iphone-15-pro-max-256gb-2x-usb3",
            "/p/Staubsauger_Bosch_BGL3A132",
            "/wiki/Donaudampfschifffahrtsgesellschaft",
            "/wiki/Main_Page",
            "/@username",
            "/orders/123456789012",
            "/gallery/IMG_20240527_181507.jpg",
            "/caf%C3%A9-du-monde",
            "/%E6%97%A5%E6%9C%AC%E8%AA%9E%E3%81%AE%E8%A8%98%E4%BA%8B",
            "/search?q=red%20shoes&page=2",
            "/api/products/12?page=2&sort=name",
            "/list?state=open&order=createdAt",
            "/myAccountOverview",
            "/blog/GitHub-vs-GitLab-vs-BitBucket-for-TypeScript-developers",
            "/a.b/c_d",
            "/v1.2.3/docs",
            "/x/one+two,three~four:five",
        ] {
            assert_eq!(read(target.as_bytes()).map(|_| ()), Ok(()), "{target}");
        }
    }

    #[test]
    fn tokens_hashes_addresses_and_links_that_work_once_are_never_requested_again() {
        use Refusal::{OneTime, Parameter, Path, Query, Text, Token};
        let long = format!("/{}", "a-".repeat(200));
        let long_query = format!("/?{}", "a=b&".repeat(20));
        for (target, why) in [
            ("/reset/9f86d081884c7d659a2feaa0c55ad015", OneTime),
            ("/user/reset-password/abc", OneTime),
            ("/password/reset/q7", OneTime),
            ("/confirm/4f3c2b1a9e8d7c6b", OneTime),
            ("/unsubscribe/123", OneTime),
            ("/magic_link/jane", OneTime),
            ("/files/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Token),
            ("/d/da39a3ee5e6b4b0d3255bfef95601890afd80709", Token),
            ("/x/4f3c2b1a9e8d7c6b", Token),
            ("/x/123e4567-e89b-12d3-a456-426614174000", Token),
            ("/x/01ARZ3NDEKTSV4RRFFQ69G5FAV", Token),
            ("/x/dQw4w9WgXcQx", Token),
            ("/x/Zm9v_YmFy-Yj9k_LmNv-cQ8z_x7Zk-Ab3d", Token),
            ("/x/SGVsbG8gV29ybGQhIQ==", Token),
            ("/x/c2VjcmV0c2VjcmV0%3D", Token),
            ("/x/XK4F-9PL2-77QW-R3TZ", Token),
            ("/x/k3j4h5g6f7d8s9a0", Token),
            ("/x/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig", Token),
            ("/x/jane.doe@example.org", Token),
            ("/x/jane%40example.org", Token),
            ("/a?mail=jane@example.org", Token),
            ("/a?key=aB3dE5fG7hI9", Token),
            ("/a?state=eyJhbGciOiJIUzI1NiJ9", Token),
            ("/a?token=1", Parameter),
            ("/a?access_token=1", Parameter),
            ("/a?_wpnonce=1a2b", Parameter),
            ("/a?X-Amz-Signature=1", Parameter),
            ("/a?page=1&sid=5", Parameter),
            ("*", Text),
            ("/ü", Text),
            (&long, Path),
            (&long_query, Query),
        ] {
            assert_eq!(read(target.as_bytes()).map(|_| ()), Err(why), "{target}");
        }
    }

    /// Tokens as generated by common libraries: all of thousands are refused.
    #[test]
    fn random_tokens_of_every_usual_alphabet_are_refused() {
        let alphabets = [
            ("hex", "0123456789abcdef", 32),
            ("base64url", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", 43),
            ("alphanumeric", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 40),
            ("base32", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 32),
            ("base36", "abcdefghijklmnopqrstuvwxyz0123456789", 32),
        ];
        let mut seed = 42_u64;
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        for (name, alphabet, length) in alphabets {
            for _ in 0..2000 {
                let token: String =
                    (0..length).map(|_| char::from(alphabet.as_bytes()[next(alphabet.len())])).collect();
                assert!(!may_be_asked_again(format!("/x/{token}").as_bytes()), "{name}: {token}");
            }
        }
    }

    #[test]
    fn a_refused_target_is_shown_without_its_token() {
        for (target, shown) in [
            ("/reset/9f86d081884c7d659a2feaa0c55ad015", "/reset/*"),
            ("/user/reset-password/abc", "/user/reset-password/*"),
            ("/x/123e4567-e89b-12d3-a456-426614174000/edit?a=9f86d081", "/x/*/edit?*"),
            ("/caf\u{e9}", "/*"),
        ] {
            assert_eq!(masked(target.as_bytes()), shown);
        }
        assert!(masked(format!("/{}", "a/".repeat(5000)).as_bytes()).len() < 300);
    }
}
