//! Pages for errors of scripts, for `howdah dev`: the shim's `sapi/error_page.c` notes the errors and sends the pages.
//!
//! A worker notes one error at a time: the last one, with the number of its request.

use crate::bridge;
use howdah_error_page::{Form, php};
use std::ffi::{c_char, c_uint};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An error that the application did not handle.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct ScriptError {
    /// PHP's name of it: "Fatal error".
    kind: *const c_char,
    kind_len: usize,
    message: *const c_char,
    message_len: usize,
    file: *const c_char,
    file_len: usize,
    line: c_uint,
    /// As written by `howdah_c_dump_stack()`.
    stack: *const c_char,
    stack_len: usize,
    /// Number of bytes in PHP's output buffers at the time of the error.
    held_output: u64,
}

#[derive(Debug, Default)]
struct RecordedError {
    /// Number of the request.
    number: u64,
    kind: String,
    message: String,
    file: String,
    line: u32,
    stack: String,
    held_output: u64,
    variables: Vec<(String, String)>,
    /// The page, while C is sending it.
    head: String,
    body: String,
}

static NOTED: Mutex<Option<RecordedError>> = Mutex::new(None);

/// The noted error. The main thread holds it for the duration of a bridge function.
fn noted() -> MutexGuard<'static, Option<RecordedError>> {
    NOTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// # Safety
/// `data` is valid for `length` bytes for the duration of the calling bridge function.
unsafe fn text(data: *const c_char, length: usize) -> String {
    // SAFETY: the caller's promise.
    String::from_utf8_lossy(unsafe { bridge::bytes(data, length) }).into_owned()
}

/// Notes an error that ends the current request's script.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_error_note(error: ScriptError) {
    // SAFETY: C's promise in bridge.h, for each text.
    let [kind, message, file, stack] = unsafe {
        [
            text(error.kind, error.kind_len),
            text(error.message, error.message_len),
            text(error.file, error.file_len),
            text(error.stack, error.stack_len),
        ]
    };
    let (line, held_output, number) = (error.line, error.held_output, bridge::running_request());
    *noted() =
        Some(RecordedError { number, kind, message, file, line, stack, held_output, ..RecordedError::default() });
}

/// `true` if an error of the current request was noted; sets `*held_output` to the number of bytes in PHP's output
/// buffers at that time.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_error_noted(held_output: *mut u64) -> bool {
    match noted().as_ref().filter(|noted| noted.number == bridge::running_request()) {
        Some(noted) => {
            // SAFETY: C passes a valid pointer, with no other user during the call.
            unsafe { held_output.write(noted.held_output) };
            true
        }
        None => false,
    }
}

/// Adds one of the request's variables, under its name in `$_SERVER`, to the noted error.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_error_variable(name: *const c_char, name_len: usize, value: *const c_char, value_len: usize) {
    // SAFETY: C's promise in bridge.h, for both texts.
    let variable = unsafe { (text(name, name_len), text(value, value_len)) };
    if let Some(noted) = noted().as_mut() {
        noted.variables.push(variable);
    }
}

/// Renders the page: its `Content-Type` line and its body. Both are valid until howdah_rs_error_forget(). `server`
/// names the software that ran the script.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_error_page(
    server: *const c_char,
    server_len: usize,
    head: *mut *const c_char,
    head_len: *mut usize,
    body: *mut *const c_char,
    body_len: *mut usize,
) {
    // SAFETY: C's promise in bridge.h.
    let server = unsafe { text(server, server_len) };
    let mut noted = noted();
    let noted = noted.get_or_insert_default();
    noted.make_page(server);
    // SAFETY: C passes valid pointers, with no other user during the call; the results stay unchanged until
    // `howdah_rs_error_forget`.
    unsafe {
        head.write(noted.head.as_ptr().cast());
        head_len.write(noted.head.len());
        body.write(noted.body.as_ptr().cast());
        body_len.write(noted.body.len());
    }
}

/// Forgets the page after it was sent, or if it is no longer wanted.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_error_forget() {
    *noted() = None;
}

impl RecordedError {
    fn variable(&self, name: &str) -> &str {
        self.variables.iter().rfind(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    fn make_page(&mut self, server: String) {
        let variables = self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let request = php::request(self.variable("REQUEST_METHOD"), self.variable("REQUEST_URI"), variables);
        let said = php::PhpError {
            kind: &self.kind,
            message: &self.message,
            file: &self.file,
            line: self.line,
            stack: &self.stack,
        };
        let form = Form::for_accept(self.variable("HTTP_ACCEPT"));
        let page = howdah_error_page::render(&php::report(&said, request, server), form);
        self.head = format!("Content-Type: {}", page.media_type);
        self.body = page.body;
    }
}
