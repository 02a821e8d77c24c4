//! The part of the async library that is written in PHP (the package `php/async`). The shim compiles it before the
//! worker script: `Howdah\go()`, `Howdah\Channel`, `Howdah\Pool` and others, built on the C class `Howdah\Coroutine`.
//!
//! It is embedded, so the program and its library always match, it needs no installation, and neither `open_basedir`
//! nor a sandbox has to allow it. OPcache still sees files with a path and a time, and caches them like any others.

use crate::{child, php};
use rustix::process::{Pid, WaitOptions, getpid, waitpid};
use std::ffi::{CStr, c_char};

/// One file: the path under which PHP knows it, and its text.
struct Source {
    path: &'static CStr,
    text: &'static str,
}

macro_rules! sources {
    ($($file:literal),* $(,)?) => {
        &[$(Source {
            path: path(concat!("/howdah:async/", $file, "\0")),
            text: include_str!(concat!("../../../php/async/src/", $file)),
        }),*]
    };
}

const fn path(text: &str) -> &CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(path) => path,
        Err(_) => panic!("a zero byte in a path"),
    }
}

/// In the order of compilation: classes and interfaces come before those that extend or implement them.
static SOURCES: &[Source] = sources![
    "exceptions.php",
    "Waiter.php",
    "WaitQueue.php",
    "Guard.php",
    "Report.php",
    "Deferred.php",
    "Members.php",
    "Awaitable.php",
    "TaskBody.php",
    "Task.php",
    "Gathering.php",
    "functions.php",
    "Semaphore.php",
    "Mutex.php",
    "Channel.php",
    "WaitGroup.php",
    "Scope.php",
    "Context.php",
    "Timer.php",
    "PoolDriver.php",
    "CallableDriver.php",
    "PooledPdo.php",
    "PdoDriver.php",
    "MysqliDriver.php",
    "RedisDriver.php",
    "Pool.php",
];

/// Modification time of the file for OPcache. It depends only on the text, so that a cache on disk never serves an
/// older library, and it lies in the past, as OPcache requires.
pub(crate) fn time(text: &str) -> u64 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    1 + (hash >> 34)
}

/// Has the library compiled into OPcache's shared memory before the first worker starts. Otherwise all workers would
/// compile it at once, and each would keep its own copy. A child does this, because compiling takes a PHP request, and
/// workers must not inherit what extensions do at its start. If it fails, the workers compile the library.
#[expect(clippy::disallowed_methods, reason = "the zygote has one thread")]
pub(crate) fn compile_once() {
    if php::setting("opcache.enable").as_deref() != Some("1") {
        return;
    }
    let parent = getpid();
    // SAFETY: this process has one thread, so the child is a complete copy and may go on running ordinary code.
    match unsafe { libc::fork() } {
        0 => {
            child::die_with(parent);
            php::after_fork();
            php::compile_library();
            child::exit(0)
        }
        pid => {
            let _ = Pid::from_raw(pid).filter(|_| pid > 0).map(|pid| waitpid(Some(pid), WaitOptions::empty()));
        }
    }
}

/// Returns the file with this index of the PHP part of the async library, in the order in which the files must be
/// run: the path under which PHP knows it, zero-terminated; its text, which is not; and a modification time for
/// OPcache. All live as long as the process. Returns false after the last file.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_library(
    index: usize,
    path: *mut *const c_char,
    text: *mut *const c_char,
    text_len: *mut usize,
    changed: *mut u64,
) -> bool {
    let Some(source) = SOURCES.get(index) else { return false };
    // SAFETY: the shim passes four valid pointers to write to (bridge.h).
    unsafe {
        path.write(source.path.as_ptr());
        text.write(source.text.as_ptr().cast());
        text_len.write(source.text.len());
        changed.write(time(source.text));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{SOURCES, time};

    #[test]
    fn every_file_of_the_library_is_compiled() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../php/async/src");
        let mut files: Vec<String> = std::fs::read_dir(dir)
            .expect("library")
            .map(|entry| format!("/howdah:async/{}", entry.expect("entry").file_name().to_string_lossy()))
            .collect();
        let mut named: Vec<_> = SOURCES.iter().map(|source| source.path.to_string_lossy().into_owned()).collect();
        files.sort();
        named.sort();
        assert_eq!(files, named);
    }

    #[test]
    fn times_depend_on_the_text_and_are_in_the_past() {
        assert_ne!(time("<?php"), time("<?php "));
        assert!(SOURCES.iter().all(|source| (1..=1 << 30).contains(&time(source.text))));
    }
}
