//! Small files of a pool in the state directory, with knowledge that it would otherwise have to gain again after a
//! restart. Files are replaced atomically. If the directory cannot be written, only that knowledge is lost.

use crate::config::PoolConfig;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// Maximum size of the file in bytes; a larger file is not the server's.
const MAX_FILE_LEN: u64 = 16 << 10;

/// Path of a pool's file. Depends on the script and root too: with others it is another application.
pub(crate) fn of_pool(state: &Path, config: &PoolConfig) -> PathBuf {
    let boots = format!("{}\0{}\0{:?}", config.name(), config.boot.root, config.worker().script);
    state.join("warm-up").join(format!("{:016x}", xxh3_64(boots.as_bytes())))
}

/// Reads the text; `None` if there is no valid file.
pub(crate) fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_FILE_LEN + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= MAX_FILE_LEN).then_some(text)
}

/// Replaces the file's text; a failure is only logged.
pub(crate) fn write(path: &Path, text: &str) {
    if let Err(error) = try_to_write(path, text) {
        tracing::debug!("cannot write {}: {error}", path.display());
    }
}

fn try_to_write(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    // Two servers may write at once.
    let new = path.with_extension(std::process::id().to_string());
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}

pub(crate) fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}
