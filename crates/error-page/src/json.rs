//! The error page for programs.

use crate::report::{Cause, Place, Report};
use crate::{excerpt, secrets};
use serde_json::{Value, json};

pub(crate) fn page(report: &Report) -> String {
    let request = &report.request;
    let headers: serde_json::Map<String, Value> =
        request.headers.iter().map(|(name, value)| (name.clone(), secrets::header(name, value).into())).collect();
    let mut value = cause(&report.cause);
    value["earlier"] = report.earlier.iter().map(cause).collect();
    value["hint"] = json!(report.hint);
    value["request"] =
        json!({ "method": request.method, "target": secrets::target(&request.target), "headers": headers });
    let page = json!({ "error": value, "server": report.server });
    format!("{page:#}\n")
}

fn cause(cause: &Cause) -> Value {
    let frame = |frame: &crate::Frame| json!({ "what": frame.what, "place": frame.place.as_ref().map(place) });
    let source = |place: &Place| -> Value {
        excerpt::around(place).iter().map(|line| json!({ "line": line.number, "text": line.text })).collect()
    };
    json!({
        "kind": cause.kind,
        "message": cause.message,
        "place": cause.place.as_ref().map(place),
        "source": cause.place.as_ref().map(source),
        "stack": cause.frames.iter().map(frame).collect::<Vec<_>>(),
    })
}

fn place(place: &Place) -> Value {
    json!({ "file": place.file, "line": place.line })
}
