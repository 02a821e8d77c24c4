//! A 206 and a 304 repeat the fields of the complete response (RFC 9110 15.3.7, 15.4.5), so that caches and browsers
//! treat them alike.

use howdah_tests::{Request, Response, scenario};
use std::collections::BTreeMap;

/// Fields that a 206 and a 304 must have if the 200 has them.
const REPEATED: [&str; 11] = [
    "etag",
    "last-modified",
    "cache-control",
    "expires",
    "vary",
    "date",
    "content-location",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "x-of-rule",
    "strict-transport-security",
];

fn repeated(response: &Response) -> BTreeMap<&'static str, String> {
    let value = |name: &&'static str| Some((*name, response.header(name)?.to_owned()));
    let mut fields: BTreeMap<_, _> = REPEATED.iter().filter_map(value).collect();
    // It differs with the time.
    fields.entry("date").and_modify(String::clear);
    fields
}

scenario!(
    parts_and_confirmations_have_the_fields_of_the_whole,
    howdah_only = "nginx adds its fields by other rules",
    |s| {
        s
        .setting("compression.enabled", "true")
        .setting(
            "rule",
            "[{ cache_control = \"public\" }, { path = \"/ruled.txt\", headers = { X-Of-Rule = \"yes\", Strict-Transport-Security = \"max-age=1\" }, \
             cors = { origins = [\"https://a.example\"], expose = [\"X-Of-Rule\"] } }]"
        )
        .file("plain.bin", "0123456789".repeat(500))
        .file("plain.txt", "0123456789".repeat(500))
        .file("ruled.txt", "0123456789".repeat(500))
        .file("twin.js", "0123456789".repeat(500))
        .file("twin.js.gz", "not looked into")
    },
    |site| {
        let mut wrong = Vec::new();
        for path in ["/plain.bin", "/plain.txt", "/ruled.txt", "/twin.js"] {
            for coding in ["", "gzip", "identity"] {
                let request = |more: &[(&str, &str)]| {
                    let request = Request::get(path).header("Origin", "https://a.example");
                    let request = if coding.is_empty() { request } else { request.header("Accept-Encoding", coding) };
                    more.iter().fold(request, |request, (name, value)| request.header(name, value))
                };
                let whole = site.send(&request(&[])).expect(200);
                let (etag, fields) = (whole.header("etag").unwrap().to_owned(), repeated(&whole));
                let date = whole.header("last-modified").unwrap();
                for (status, more) in [
                    (206, &[("Range", "bytes=1-2")][..]),
                    (206, &[("Range", "bytes=1-2,5-7")]),
                    (206, &[("Range", "bytes=1-2"), ("If-Range", &etag)]),
                    (304, &[("If-None-Match", &etag)]),
                    (304, &[("If-Modified-Since", date)]),
                    (416, &[("Range", "bytes=900000-")]),
                ] {
                    // A weak validator does not guarantee that the parts have the same bytes.
                    if etag.starts_with("W/") && more.len() > 1 {
                        continue;
                    }
                    let part = site.send(&request(more)).expect(status);
                    let found = repeated(&part);
                    // A validator is weak only if the bytes are encoded.
                    let value = |name: &str, value: &str| match name {
                        "etag" => value.trim_start_matches("W/").to_owned(),
                        _ => value.to_owned(),
                    };
                    let has = |(name, expected): (&&str, &String)| {
                        found.get(*name).is_some_and(|found| value(name, found) == value(name, expected))
                    };
                    if status != 416 && !fields.iter().all(has) {
                        wrong.push(format!("{path} {coding:?} {more:?}: {found:?}, expected {fields:?}"));
                    }
                    let range = part.header("content-range").unwrap_or_default();
                    assert!(status != 416 || range.starts_with("bytes */"), "{path}: {range}");
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    },
);
