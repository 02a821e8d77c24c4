//! Reads PHP's state from workers' memory: a request's location, for the slow log, and samples for a profile. Runs in
//! the zygote, which knows all addresses but cannot trust the content: it may be half written or forged.

use crate::bridge;
use crate::php::{Frame, Line, read_function, read_lines, read_query, read_stack, read_text};
use howdah_transport::php_stack::{
    MAX_FRAMES, MAX_NAME, MAX_QUERY, MAX_STACKS, PhpStack, RequestStacks, StackFrame, text_of,
};
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

/// Maximum number of coroutines that are searched for those of a request.
const MAX_COROUTINES: usize = 4096;
/// Maximum size of a report in bytes: it is one message to the server.
const MAX_MESSAGE: usize = 40 * 1024;
/// Maximum number of cached function names.
const MAX_NAMES: usize = 4096;
/// Bytes per frame in a message in addition to its texts.
const FRAME_COST: usize = 48;

/// Functions whose first string argument is a query, and methods of prepared statements.
const QUERIES: &[&str] = &[
    "PDO->query",
    "PDO->exec",
    "PDO->prepare",
    "mysqli->query",
    "mysqli->real_query",
    "mysqli->prepare",
    "mysqli->multi_query",
    "mysqli->execute_query",
    "mysqli_query",
    "mysqli_real_query",
    "mysqli_prepare",
    "mysqli_multi_query",
    "mysqli_execute_query",
    "pg_query",
    "pg_query_params",
    "pg_prepare",
    "pg_send_query",
    "SQLite3->query",
    "SQLite3->exec",
    "SQLite3->querySingle",
];
const STATEMENTS: &[&str] = &["PDOStatement->execute", "PDOStatement->fetch", "PDOStatement->fetchAll"];

/// Names of functions, by process, address and mark. Cleared at each report of a profile, since addresses are reused.
#[derive(Default)]
pub(crate) struct Names(HashMap<(i32, u64, u64), Rc<(String, String)>>);

impl Names {
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    /// The frame to report.
    pub(crate) fn of(&mut self, pid: i32, memory: BorrowedFd<'_>, frame: &Frame) -> StackFrame {
        let key = (pid, frame.function, frame.mark);
        if !self.0.contains_key(&key) {
            if self.0.len() >= MAX_NAMES {
                self.forget();
            }
            let name = match read_function(memory, frame.function) {
                Some((name, file)) if name.is_empty() => ("{main}".to_owned(), file),
                Some(named) => named,
                None => ("?".to_owned(), String::new()),
            };
            let name = (text_of(&name.0, MAX_NAME), text_of(&name.1, MAX_NAME));
            self.0.insert(key, Rc::new(name));
        }
        let (function, file) = self.0.get(&key).map(|name| (**name).clone()).unwrap_or_default();
        StackFrame { function, file, line: frame.line }
    }
}

/// Stacks of the request with this number (0: code that runs before any request), in a worker that runs one at a time
/// (`serial`) or many.
pub(crate) fn of_request(pid: i32, memory: &OwnedFd, request: u64, serial: bool) -> Result<RequestStacks, String> {
    let memory = memory.as_fd();
    let runs = || !serial || bridge::running_in(memory) == Some(request);
    let gone = || "the request has ended".to_owned();
    if !runs() {
        return Err(gone());
    }
    let cpu_us = if serial { bridge::processor_time_in(pid, memory) } else { None };
    let mut lines = vec![Line::default(); if serial { 1 } else { MAX_COROUTINES }];
    let (n, _) = read_lines(memory, request == 0, &mut lines);
    lines.truncate(n);
    lines.retain(|line| serial || line.request == request);
    lines.truncate(MAX_STACKS);
    // The coroutine with which the request began comes first.
    lines.reverse();
    let (mut names, mut room) = (Names::default(), MAX_MESSAGE);
    let stacks = lines.iter().map(|line| read(pid, memory, line, &mut names, &mut room)).collect::<Vec<_>>();
    // Another request may have begun during the reading.
    if !runs() || stacks.iter().all(|stack| stack.frames.is_empty()) {
        return Err(gone());
    }
    Ok(RequestStacks { cpu_us, stacks })
}

fn read(pid: i32, memory: BorrowedFd<'_>, line: &Line, names: &mut Names, room: &mut usize) -> PhpStack {
    let mut frames = [Frame::default(); MAX_FRAMES];
    let n = read_stack(memory, line.frame, &mut frames);
    let mut stack = PhpStack { coroutine: line.coroutine, ..PhpStack::default() };
    if line.waits_for != 0 {
        stack.waits_for = Some(text_of(&read_text(memory, line.waits_for), MAX_NAME));
    }
    for frame in &frames[..n] {
        let named = names.of(pid, memory, frame);
        let cost = cost_of(&named);
        if cost > *room {
            break;
        }
        *room -= cost;
        stack.frames.push(named);
    }
    stack.query = query_of(memory, &frames[..n], &stack.frames).filter(|query| 2 * query.len() < *room);
    *room -= stack.query.as_ref().map_or(0, |query| 2 * query.len());
    stack
}

/// Size of a frame in a message: backslashes and quotes take two bytes.
pub(crate) fn cost_of(frame: &StackFrame) -> usize {
    FRAME_COST + 2 * (frame.function.len() + frame.file.len())
}

/// The query that the innermost function sends or waits for.
fn query_of(memory: BorrowedFd<'_>, frames: &[Frame], named: &[StackFrame]) -> Option<String> {
    let (frame, named) = (frames.first()?, named.first()?);
    let is =
        |names: &[&str]| named.file.is_empty() && names.iter().any(|name| name.eq_ignore_ascii_case(&named.function));
    let of_statement = is(STATEMENTS);
    let query = (of_statement || is(QUERIES)).then(|| read_query(memory, frame.frame, of_statement, MAX_QUERY / 2))?;
    query.map(|query| text_of(&query, MAX_QUERY))
}
