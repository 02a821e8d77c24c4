//! Decompresses responses before they are compared: compression is the web server's choice.

use crate::client::Response;
use std::io::Read;

/// Decompresses a body to at most `most` bytes, and removes the fields about compression. Returns `false` for an
/// unknown coding, a damaged body or a longer one.
pub(super) fn decode(response: &mut Response, most: usize) -> bool {
    let coding = response.header("content-encoding").unwrap_or("identity").to_ascii_lowercase();
    let body = std::mem::take(&mut response.body);
    let body = match coding.as_str() {
        "identity" | "" => Some(body),
        _ if body.is_empty() => Some(body),
        "gzip" | "x-gzip" => whole(flate2::read::MultiGzDecoder::new(&*body), most),
        "deflate" => whole(flate2::read::ZlibDecoder::new(&*body), most),
        "br" => whole(brotli::Decompressor::new(&*body, 1 << 12), most),
        "zstd" => zstd::Decoder::new(&*body).ok().and_then(|decoder| whole(decoder, most)),
        _ => None,
    };
    response.headers.retain(|(name, _)| name != "content-encoding");
    for (_, value) in response.headers.iter_mut().filter(|(name, _)| name == "vary") {
        let rest = value.split(',').map(str::trim).filter(|field| !field.eq_ignore_ascii_case("accept-encoding"));
        *value = rest.collect::<Vec<_>>().join(", ");
    }
    response.headers.retain(|(name, value)| name != "vary" || !value.is_empty());
    match body {
        Some(body) => response.body = body,
        None => return false,
    }
    true
}

fn whole(reader: impl Read, most: usize) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    reader.take(most as u64 + 1).read_to_end(&mut body).ok()?;
    (body.len() <= most).then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn compressed(coding: &str, body: Vec<u8>) -> Response {
        let headers = [("content-encoding", coding), ("vary", "Cookie, Accept-Encoding"), ("vary", "accept-encoding")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Response { status: 200, headers, body, ..Response::default() }
    }

    #[test]
    fn each_content_coding_is_decoded_and_its_fields_removed() {
        let text = b"the same text, ".repeat(50);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&text).unwrap();
        let mut brotli = Vec::new();
        brotli::CompressorWriter::new(&mut brotli, 4096, 5, 20).write_all(&text).unwrap();
        let bodies = [
            ("GZIP", gzip.finish().unwrap()),
            ("br", brotli),
            ("zstd", zstd::encode_all(&*text, 3).unwrap()),
            ("identity", text.clone()),
        ];
        for (coding, body) in bodies {
            let mut response = compressed(coding, body.clone());
            assert!(decode(&mut response, text.len()), "{coding}");
            assert_eq!((&response.body, &response.headers[..]), (&text, &[("vary".into(), "Cookie".into())][..]));
            if coding != "identity" {
                assert!(!decode(&mut compressed(coding, body.clone()), text.len() - 1), "{coding}: too long");
                assert!(!decode(&mut compressed(coding, b"no such".to_vec()), 100), "{coding}: damaged");
            }
        }
        assert!(!decode(&mut compressed("lzma", text), 10_000));
    }
}
