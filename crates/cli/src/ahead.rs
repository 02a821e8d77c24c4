//! The pool that goes ahead of the default one, and which requests it is for.

use howdah_pool::{Pool, Request};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A pool that has booted the application (`Settings::recipe`) and goes ahead of the default one for one script.
#[derive(Debug)]
pub(crate) struct Ahead {
    pub(crate) position: usize,
    pub(crate) pool: Arc<Pool>,
    script: Vec<u8>,
    /// The boot has seen no visitor, and is for those that are nobody in particular.
    for_strangers: bool,
}

/// Recipes whose boot goes on behind the point at which the application has looked who asks.
const FOR_STRANGERS: &[&str] = &["wordpress"];
/// Cookies of visitors whom WordPress knows begin so: logged in, recovery mode.
const KNOWN_COOKIE: &[u8] = b"wordpress_";
/// In addresses by which WordPress shows a page as it might become.
const PREVIEW: &[u8] = b"customize_";

impl Ahead {
    pub(crate) fn new(position: usize, pool: Arc<Pool>, recipe: &str, script: &Path) -> Self {
        let script = script.as_os_str().as_bytes().to_vec();
        Self { position, pool, script, for_strangers: FOR_STRANGERS.contains(&recipe) }
    }

    /// Whether it runs this request.
    pub(crate) fn is_for(&self, request: &Request) -> bool {
        let head = &request.head;
        let script = head.script();
        (*self.script == *script || is_same_path(&self.script, script))
            && (!self.for_strangers || is_strangers(head.method(), head.uri(), head.variables()))
    }
}

/// Whether two spellings, such as with a doubled slash, are one path.
pub(crate) fn is_same_path(a: &[u8], b: &[u8]) -> bool {
    Path::new(OsStr::from_bytes(a)) == Path::new(OsStr::from_bytes(b))
}

/// Whether somebody reads whom the application does not know.
fn is_strangers<'a>(method: &[u8], uri: &[u8], mut variables: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> bool {
    let is_known = |(name, value): (&[u8], &[u8])| match name {
        b"HTTP_AUTHORIZATION" => true,
        b"HTTP_COOKIE" => has(value, KNOWN_COOKIE),
        _ => false,
    };
    matches!(method, b"GET" | b"HEAD") && !has(uri, PREVIEW) && !variables.any(is_known)
}

fn has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(method: &str, uri: &str, variable: (&str, &str)) -> bool {
        let variable = (variable.0.as_bytes(), variable.1.as_bytes());
        is_strangers(method.as_bytes(), uri.as_bytes(), std::iter::once(variable))
    }

    #[test]
    fn who_only_reads_and_is_not_known_is_a_stranger() {
        let cookie = ("HTTP_COOKIE", "a=b; comment_author_0=Bob");
        assert!(stranger("GET", "/?p=1", cookie));
        assert!(stranger("HEAD", "/", ("HTTP_ACCEPT", "wordpress_logged_in_0")));
        assert!(!stranger("POST", "/", cookie));
        assert!(!stranger("GET", "/?customize_changeset_uuid=0", cookie));
        assert!(!stranger("GET", "/", ("HTTP_COOKIE", "a=b; wordpress_logged_in_0=ada")));
        assert!(!stranger("GET", "/", ("HTTP_AUTHORIZATION", "Basic YTpi")));
    }
}
