//! Parses PHP's error messages. The message of an uncaught exception contains class, message, place and stack, also of
//! previous exceptions; for other errors the stack is passed separately.

use crate::names;
use crate::report::{Cause, Frame, Place, Report, Request};

/// PHP's error message.
#[derive(Debug, Clone, Copy)]
pub struct PhpError<'a> {
    /// The kind of error in PHP's words: `Fatal error`.
    pub kind: &'a str,
    pub message: &'a str,
    pub file: &'a str,
    pub line: u32,
    /// The stack, one line per frame: `#0 FILE:LINE FUNCTION` or `#0 [internal] FUNCTION`.
    pub stack: &'a str,
}

/// Converts the message to a report.
pub fn report(said: &PhpError<'_>, request: Request, server: String) -> Report {
    let place = (!said.file.is_empty()).then(|| Place { file: said.file.to_owned(), line: said.line });
    let mut causes = uncaught(said.message).unwrap_or_else(|| {
        vec![Cause {
            kind: said.kind.to_owned(),
            message: said.message.to_owned(),
            place,
            frames: said.stack.lines().filter_map(frame_of_stack).collect(),
        }]
    });
    // PHP prints the original exception first.
    let cause = causes.pop().unwrap_or_default();
    causes.reverse();
    Report { cause, earlier: causes, hint: None, request, server }
}

/// The request, from PHP's server variables.
pub fn request<'a>(method: &str, target: &str, variables: impl Iterator<Item = (&'a str, &'a str)>) -> Request {
    let there = variables.filter(|(_, value)| !value.is_empty());
    let headers = there.filter_map(|(name, value)| Some((names::header_of_variable(name)?, value.to_owned())));
    Request { method: method.to_owned(), target: target.to_owned(), headers: headers.collect() }
}

/// `Uncaught CLASS: MESSAGE in FILE:LINE\nStack trace:\n#0 …\n\nNext CLASS: …\n  thrown`
fn uncaught(text: &str) -> Option<Vec<Cause>> {
    let text = text.strip_prefix("Uncaught ")?;
    let text = text.strip_suffix("\n  thrown").unwrap_or(text);
    let mut causes = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (head, after) = rest.split_once("\nStack trace:\n")?;
        let (trace, next) = match after.split_once("\n\nNext ") {
            Some((trace, next)) => (trace, next),
            None => (after, ""),
        };
        causes.push(exception(head, trace));
        rest = next;
    }
    (!causes.is_empty()).then_some(causes)
}

fn exception(head: &str, trace: &str) -> Cause {
    let (what, place) = match head.rsplit_once(" in ") {
        Some((what, place)) => (what, place_of(place, ':', "")),
        None => (head, None),
    };
    let is_class = |name: &&str| !name.contains(' ');
    let (kind, message) = match what.split_once(": ").filter(|(name, _)| is_class(name)) {
        Some((kind, message)) => (kind, message),
        // A message may be empty.
        None if !what.contains(' ') => (what, ""),
        None => ("Uncaught exception", what),
    };
    let frames = trace.lines().filter_map(frame_of_trace).collect();
    Cause { kind: kind.to_owned(), message: message.to_owned(), place, frames }
}

/// Parses `FILE` and `LINE`, with the text between and after them.
fn place_of(text: &str, between: char, after: &str) -> Option<Place> {
    let (file, line) = text.strip_suffix(after)?.rsplit_once(between)?;
    Some(Place { file: file.to_owned(), line: line.parse().ok()? })
}

/// `#0 FILE(LINE): WHAT`, `#0 [internal function]: WHAT` or `#0 {main}`
fn frame_of_trace(line: &str) -> Option<Frame> {
    let (_, rest) = line.strip_prefix('#')?.split_once(' ')?;
    let place_and_what = rest.split_once("): ").and_then(|(place, what)| Some((place_of(place, '(', "")?, what)));
    Some(match place_and_what {
        Some((place, what)) => Frame { what: what.to_owned(), place: Some(place) },
        None => Frame { what: rest.strip_prefix("[internal function]: ").unwrap_or(rest).to_owned(), place: None },
    })
}

/// `#0 FILE:LINE WHAT` or `#0 [internal] WHAT`
fn frame_of_stack(line: &str) -> Option<Frame> {
    let (_, rest) = line.strip_prefix('#')?.split_once(' ')?;
    if let Some(what) = rest.strip_prefix("[internal] ") {
        return Some(Frame { what: what.to_owned(), place: None });
    }
    let (place, what) = rest.rsplit_once(' ')?;
    // PHP has no line for a script that was started but not run.
    Some(Frame { what: what.to_owned(), place: place_of(place, ':', "").filter(|place| place.line > 0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: &str) -> PhpError<'_> {
        PhpError {
            kind: "Fatal error",
            message,
            file: "/a/b.php",
            line: 3,
            stack: "#0 [internal] strlen()\n#1 /a/b c.php:7 A->f()\n#2 /a/i.php:2 {main}\n",
        }
    }

    #[test]
    fn an_exception_has_its_location_and_stack() {
        let text = "Uncaught App\\Bad: no: way in time in /a/b.php:3\nStack trace:\n#0 /a/c.php(9): f('x', Array)\n\
                    #1 [internal function]: {closure}()\n#2 {main}\n  thrown";
        let report = report(&said(text), Request::default(), String::new());
        let Cause { kind, message, place, frames } = report.cause;
        assert_eq!((&*kind, &*message), ("App\\Bad", "no: way in time"));
        assert_eq!(place, Some(Place { file: "/a/b.php".to_owned(), line: 3 }));
        let frames: Vec<_> = frames.iter().map(|f| (&*f.what, f.place.as_ref().map(|p| (&*p.file, p.line)))).collect();
        assert_eq!(frames, [("f('x', Array)", Some(("/a/c.php", 9))), ("{closure}()", None), ("{main}", None)]);
        assert!(report.earlier.is_empty());
    }

    #[test]
    fn previous_exceptions_come_after_their_successor() {
        let text = "Uncaught A: first in /a.php:1\nStack trace:\n#0 {main}\n\nNext B: second in /b.php:2\nStack trace:\n#0 {main}\n  thrown";
        let report = report(&said(text), Request::default(), String::new());
        assert_eq!((&*report.cause.kind, &*report.cause.message), ("B", "second"));
        assert_eq!(report.earlier.iter().map(|c| &*c.kind).collect::<Vec<_>>(), ["A"]);
    }

    #[test]
    fn other_errors_have_the_recorded_stack() {
        let report = report(&said("Allowed memory size exhausted"), Request::default(), String::new());
        assert_eq!((&*report.cause.kind, report.cause.frames.len()), ("Fatal error", 3));
        assert_eq!(report.cause.frames[1].place, Some(Place { file: "/a/b c.php".to_owned(), line: 7 }));
    }

    #[test]
    fn unusual_texts_are_not_exceptions() {
        for text in ["Uncaught ", "Uncaught A: b", "Uncaught A: b in /c:d\nStack trace:\n#0"] {
            let report = report(&said(text), Request::default(), String::new());
            assert!(!report.cause.kind.is_empty(), "{text}");
        }
    }
}
