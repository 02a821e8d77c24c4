//! The error page for terminals.

use crate::report::{Cause, Report};
use crate::{excerpt, secrets};
use std::fmt::Write as _;

/// Writing to a String cannot fail.
pub(crate) fn page(report: &Report) -> String {
    let mut page = String::new();
    cause(&mut page, &report.cause);
    for earlier in &report.earlier {
        page.push_str("\ncaused by\n\n");
        cause(&mut page, earlier);
    }
    if let Some(hint) = &report.hint {
        let _ = writeln!(page, "\n{hint}");
    }
    let request = &report.request;
    let _ = writeln!(page, "\n{} {}", request.method, secrets::target(&request.target));
    for (name, value) in &request.headers {
        let _ = writeln!(page, "{name}: {}", secrets::header(name, value));
    }
    if !report.server.is_empty() {
        let _ = writeln!(page, "\n{}", report.server);
    }
    page
}

fn cause(page: &mut String, cause: &Cause) {
    let colon = if cause.message.is_empty() { "" } else { ": " };
    let _ = writeln!(page, "{}{colon}{}", cause.kind, cause.message);
    if let Some(place) = &cause.place {
        let _ = writeln!(page, "in {}:{}\n", place.file, place.line);
        for line in excerpt::around(place) {
            let _ = writeln!(page, "{} {:>5}  {}", if line.is_it { ">" } else { " " }, line.number, line.text);
        }
    }
    if !cause.frames.is_empty() {
        page.push('\n');
    }
    for (number, frame) in cause.frames.iter().enumerate() {
        let place = frame.place.as_ref().map(|place| format!("  {}:{}", place.file, place.line)).unwrap_or_default();
        let _ = writeln!(page, "#{number} {}{place}", frame.what);
    }
}
