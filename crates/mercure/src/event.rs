//! Updates as server-sent events (the HTML standard, section 9.2).

use bytes::Bytes;
use howdah_live::{Form, Update};
use std::fmt::Write as _;
use std::time::Duration;

/// A comment, which clients ignore. Keeps the connection alive and makes proxies forward the head.
pub const HEARTBEAT: Bytes = Bytes::from_static(b":\n");

/// An update as an event; `None` for binary data, which an event cannot hold.
pub fn of(update: &Update) -> Option<Bytes> {
    let text = std::str::from_utf8(&update.data).ok().filter(|_| !update.binary)?;
    Some(update.form(Form::Event, || encode(&update.id, text, update.kind.as_deref(), update.retry)).clone())
}

/// An event with this id, data, type and reconnection time in milliseconds. Each line of the data is a field. `id` and
/// `kind` are single lines.
pub fn encode(id: &str, data: &str, kind: Option<&str>, retry: Option<u64>) -> Bytes {
    let mut event = String::with_capacity(id.len() + data.len() + 64);
    if let Some(kind) = kind.filter(|kind| !kind.is_empty()) {
        event.extend(["event: ", kind, "\n"]);
    }
    if let Some(retry) = retry {
        // Writing to a string does not fail.
        let _ = writeln!(event, "retry: {retry}");
    }
    event.extend(["id: ", id, "\n"]);
    let mut rest = data;
    loop {
        let end = rest.find(['\r', '\n']);
        event.extend(["data: ", &rest[..end.unwrap_or(rest.len())], "\n"]);
        let Some(end) = end else { break };
        let length = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
        rest = &rest[end + length..];
    }
    event.push('\n');
    event.into()
}

/// Sets the time after which a client reconnects when its connection ends.
pub fn retry(after: Duration) -> Bytes {
    format!("retry: {}\n\n", after.as_millis()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_data_is_a_field_however_it_ends() {
        let text = |data: &str| String::from_utf8(encode("1", data, None, None).to_vec()).unwrap();
        assert_eq!(text("a"), "id: 1\ndata: a\n\n");
        assert_eq!(text(""), "id: 1\ndata: \n\n");
        assert_eq!(text("a\nb\r\nc\rd\n"), "id: 1\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n");
        assert_eq!(text("\n\nid: 2\n\n"), "id: 1\ndata: \ndata: \ndata: id: 2\ndata: \ndata: \n\n");
        assert_eq!(encode("1", "a", Some("new"), Some(500)), "event: new\nretry: 500\nid: 1\ndata: a\n\n");
        assert_eq!(encode("1", "a", Some(""), None), "id: 1\ndata: a\n\n");
        assert_eq!(retry(Duration::from_millis(1500)), "retry: 1500\n\n");
    }
}
