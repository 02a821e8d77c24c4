//! The pool that goes ahead of the default one, and which requests it is for.

use howdah_detect::{Recipe, Visitors};
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
    visitors: &'static Visitors,
}

impl Ahead {
    pub(crate) fn new(position: usize, pool: Arc<Pool>, recipe: &'static Recipe, script: &Path) -> Self {
        let script = script.as_os_str().as_bytes().to_vec();
        Self { position, pool, script, visitors: &recipe.visitors }
    }

    /// Whether it runs this request.
    pub(crate) fn is_for(&self, request: &Request) -> bool {
        let head = &request.head;
        let script = head.script();
        (*self.script == *script || is_same_path(&self.script, script))
            && self.visitors.include(head.method(), head.uri(), head.variables())
    }
}

/// Whether two spellings, such as with a doubled slash, are one path.
pub(crate) fn is_same_path(a: &[u8], b: &[u8]) -> bool {
    Path::new(OsStr::from_bytes(a)) == Path::new(OsStr::from_bytes(b))
}
