//! The error page for browsers: a single file without scripts, light or dark by the browser's preference.

use crate::excerpt::{self, Line};
use crate::report::{Cause, Frame, Place, Report};
use crate::secrets;
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

/// Writing to a String cannot fail.
pub(crate) fn page(report: &Report) -> String {
    let title = escaped(&report.cause.kind);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n"
    );
    cause(&mut page, &report.cause, true);
    if let Some(hint) = &report.hint {
        let _ = writeln!(page, "<p class=\"hint\">{}</p>", escaped(hint));
    }
    for earlier in &report.earlier {
        page.push_str("<h2>Caused by</h2>\n");
        cause(&mut page, earlier, false);
    }
    request(&mut page, report);
    let _ = write!(
        page,
        "<footer>{}{}Shown by <code>howdah dev</code> only.</footer>\n</main>\n</body>\n</html>\n",
        escaped(&report.server),
        if report.server.is_empty() { "" } else { ". " }
    );
    page
}

fn cause(page: &mut String, cause: &Cause, is_first: bool) {
    let level = if is_first { "h1" } else { "h3" };
    let _ = writeln!(
        page,
        "<header>\n<p class=\"kind\">{}</p>\n<{level}>{}</{level}>",
        escaped(&cause.kind),
        escaped(if cause.message.is_empty() { "(no message)" } else { &cause.message })
    );
    if let Some(place) = &cause.place {
        let _ = writeln!(page, "<p class=\"place\">{}</p>", place_text(place));
    }
    page.push_str("</header>\n");
    if let Some(place) = &cause.place {
        source(page, &excerpt::around(place));
    }
    if !cause.frames.is_empty() {
        page.push_str("<h2>Stack</h2>\n<ol class=\"stack\" start=\"0\">\n");
        cause.frames.iter().for_each(|frame| step(page, frame));
        page.push_str("</ol>\n");
    }
}

/// A stack frame, whose source opens on click.
fn step(page: &mut String, frame: &Frame) {
    let what = escaped(&frame.what);
    let Some(place) = &frame.place else {
        let _ = writeln!(page, "<li><div class=\"step\"><code>{what}</code></div></li>");
        return;
    };
    let lines = excerpt::around(place);
    if lines.is_empty() {
        let _ = writeln!(
            page,
            "<li><div class=\"step\"><code>{what}</code> <span class=\"place\">{}</span></div></li>",
            place_text(place)
        );
        return;
    }
    let _ = writeln!(
        page,
        "<li><details><summary><code>{what}</code> <span class=\"place\">{}</span></summary>",
        place_text(place)
    );
    source(page, &lines);
    page.push_str("</details></li>\n");
}

fn source(page: &mut String, lines: &[Line]) {
    if lines.is_empty() {
        return;
    }
    page.push_str("<pre class=\"source\">");
    for line in lines {
        let class = if line.is_it { " class=\"it\"" } else { "" };
        let _ = write!(page, "<span{class}><i>{}</i>{}\n</span>", line.number, escaped(&line.text));
    }
    page.push_str("</pre>\n");
}

fn request(page: &mut String, report: &Report) {
    let request = &report.request;
    if request.method.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "<h2>Request</h2>\n<p class=\"target\"><b>{}</b> {}</p>\n<table>\n",
        escaped(&request.method),
        escaped(&secrets::target(&request.target))
    );
    for (name, value) in &request.headers {
        let value = secrets::header(name, value);
        let _ = writeln!(page, "<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(&value));
    }
    page.push_str("</table>\n");
}

fn place_text(place: &Place) -> String {
    let (dir, name) = place.file.rsplit_once('/').map_or(("", &*place.file), |(dir, name)| (dir, name));
    let slash = if dir.is_empty() && !place.file.starts_with('/') { "" } else { "/" };
    format!("{}{slash}<b>{}:{}</b>", escaped(dir), escaped(name), place.line)
}

/// Escapes text for any position in a page.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\0' => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Request;
    use crate::{Form, render};

    #[test]
    fn errors_are_escaped_and_secrets_hidden() {
        let evil = "<script>alert(1)</script>";
        let place = Some(Place { file: format!("/{evil}"), line: 1 });
        let report = Report {
            cause: Cause {
                kind: evil.to_owned(),
                message: evil.to_owned(),
                place: place.clone(),
                frames: vec![Frame { what: evil.to_owned(), place }],
            },
            earlier: Vec::new(),
            hint: Some(evil.to_owned()),
            request: Request {
                method: evil.to_owned(),
                target: format!("/?token=abc123&x={evil}"),
                headers: vec![(evil.to_owned(), evil.to_owned()), ("Cookie".to_owned(), "a=abc123".to_owned())],
            },
            server: evil.to_owned(),
        };
        for form in [Form::Html, Form::Json, Form::Text] {
            let page = render(&report, form).body;
            assert!(form != Form::Html || !page.contains("<script"), "{page}");
            assert!(!page.contains("abc123"), "{page}");
        }
    }
}
