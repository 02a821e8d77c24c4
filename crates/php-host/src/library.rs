//! The part of the async library that is written in PHP (`library/`), for the shim, which compiles it when an async
//! worker boots, before the worker script: `Howdah\go()`, `Howdah\Channel`, `Howdah\Pool` and the others, on top of the
//! C class `Howdah\Coroutine`.

use std::ffi::c_char;

/// One file: the name that backtraces show, and its text.
struct Source {
    name: &'static str,
    text: &'static str,
}

macro_rules! sources {
    ($($file:literal),* $(,)?) => {
        &[$(Source {
            name: concat!("howdah:", $file),
            text: without_tag(include_str!(concat!("../library/", $file))),
        }),*]
    };
}

/// In the order of compilation: what a class extends or implements comes before it.
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
    "ConnectionState.php",
    "PoolDriver.php",
    "CallableDriver.php",
    "PooledPdo.php",
    "PdoDriver.php",
    "MysqliDriver.php",
    "RedisDriver.php",
    "PooledConnection.php",
    "PoolNumbers.php",
    "Pool.php",
];

/// The text behind the opening tag, which `zend_compile_string` does not want. The tag's line stays, empty, so that
/// line numbers are the file's.
const fn without_tag(text: &'static str) -> &'static str {
    const TAG: &str = "<?php";
    let (tag, rest) = text.split_at(TAG.len());
    let (mut at, expected, found) = (0, TAG.as_bytes(), tag.as_bytes());
    while at < expected.len() {
        assert!(expected[at] == found[at], "a file of the library does not begin with <?php");
        at += 1;
    }
    rest
}

/// The file of the PHP part of the async library with this index, in the order in which they are to be compiled: the name
/// for backtraces and the text as zend_compile_string() wants it, without an opening tag. Neither is zero-terminated; both
/// live as long as the process. Returns false behind the last one.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_library(
    index: usize,
    name: *mut *const c_char,
    name_len: *mut usize,
    text: *mut *const c_char,
    text_len: *mut usize,
) -> bool {
    let Some(source) = SOURCES.get(index) else { return false };
    // SAFETY: the shim passes four valid places to write to (bridge.h).
    unsafe {
        name.write(source.name.as_ptr().cast());
        name_len.write(source.name.len());
        text.write(source.text.as_ptr().cast());
        text_len.write(source.text.len());
    }
    true
}

#[cfg(test)]
#[path = "library_stubs.rs"]
mod stubs;

#[cfg(test)]
mod tests {
    use super::SOURCES;

    #[test]
    fn every_file_of_the_library_is_compiled_and_keeps_its_line_numbers() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/library");
        let mut files: Vec<String> = std::fs::read_dir(dir)
            .expect("library")
            .map(|entry| format!("howdah:{}", entry.expect("entry").file_name().to_string_lossy()))
            .collect();
        let mut named: Vec<String> = SOURCES.iter().map(|source| source.name.to_owned()).collect();
        files.sort();
        named.sort();
        assert_eq!(files, named);
        assert!(SOURCES.iter().all(|source| source.text.starts_with("\n\n/*")));
    }
}
