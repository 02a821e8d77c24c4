//! The media type of a file by the extension of its name.

use std::ffi::OsStr;
use std::path::Path;

use http::HeaderValue;

/// Types as IANA has registered them, where the built-in list has an older or a private name.
const REGISTERED: &[(&str, &str)] = &[
    ("3gp", "video/3gpp"),
    ("apng", "image/apng"),
    ("atom", "application/atom+xml"),
    ("avif", "image/avif"),
    ("flac", "audio/flac"),
    ("geojson", "application/geo+json"),
    ("gz", "application/gzip"),
    ("heic", "image/heic"),
    ("ics", "text/calendar"),
    ("jsonld", "application/ld+json"),
    ("jxl", "image/jxl"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4a", "audio/mp4"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("mkv", "video/matroska"),
    ("oga", "audio/ogg"),
    ("ogv", "video/ogg"),
    ("opus", "audio/ogg"),
    ("otf", "font/otf"),
    ("rar", "application/vnd.rar"),
    ("rss", "application/rss+xml"),
    ("ts", "video/mp2t"),
    ("ttc", "font/collection"),
    ("ttf", "font/ttf"),
    ("vcf", "text/vcard"),
    ("webmanifest", "application/manifest+json"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
];

/// The media type of a file by its name.
pub(super) fn of(path: &Path) -> HeaderValue {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    let registered = REGISTERED.iter().find(|(registered, _)| *registered == extension).map(|(_, kind)| *kind);
    registered
        .or_else(|| mime_guess::from_ext(&extension).first_raw())
        .and_then(with_charset)
        .unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

/// Adds `charset=utf-8` to text types without a charset.
fn with_charset(kind: &str) -> Option<HeaderValue> {
    let essence = kind.split(';').next().unwrap_or_default().trim();
    let text = essence.starts_with("text/") || matches!(essence, "application/javascript" | "application/x-javascript");
    if text && !kind.to_ascii_lowercase().contains("charset=") {
        return HeaderValue::from_str(&format!("{kind}; charset=utf-8")).ok();
    }
    HeaderValue::from_str(kind).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        for (path, expected) in [
            ("a/b.html", "text/html; charset=utf-8"),
            ("a.JS", "text/javascript; charset=utf-8"),
            ("a.css", "text/css; charset=utf-8"),
            ("a.json", "application/json"),
            ("a.png", "image/png"),
            ("a.svg", "image/svg+xml"),
            ("a.woff2", "font/woff2"),
            ("a.wasm", "application/wasm"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("a.WOFF", "font/woff"),
            ("a.otf", "font/otf"),
            ("a.m4a", "audio/mp4"),
            ("a.ts", "video/mp2t"),
            ("a.m3u8", "application/vnd.apple.mpegurl"),
            ("a.vcf", "text/vcard; charset=utf-8"),
            ("a.webmanifest", "application/manifest+json"),
            ("a.txt", "text/plain; charset=utf-8"),
            ("a.unknownext", "application/octet-stream"),
            ("README", "application/octet-stream"),
        ] {
            assert_eq!(of(Path::new(path)).to_str().unwrap(), expected, "{path}");
        }
    }
}
