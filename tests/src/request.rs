//! A request as written in a test, and its exact bytes.

#[derive(Debug, Clone)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    None,
    Whole(Vec<u8>),
    Chunks(Vec<Vec<u8>>),
}

impl Request {
    /// Begins a request without a body. A `Host` header is added unless one is set.
    pub fn new(method: &str, target: &str) -> Self {
        Self { method: method.to_owned(), target: target.to_owned(), headers: Vec::new(), body: Body::None }
    }

    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    /// A POST request with a body of the given type.
    pub fn post(target: &str, content_type: &str, body: impl AsRef<[u8]>) -> Self {
        Self::new("POST", target).header("Content-Type", content_type).body(body)
    }

    /// A POST request with the encoding of an HTML form.
    pub fn form(target: &str, body: &str) -> Self {
        Self::post(target, "application/x-www-form-urlencoded", body)
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body, sent with `Content-Length`.
    #[must_use]
    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = Body::Whole(body.as_ref().to_vec());
        self
    }

    /// Sets the body, sent in these chunks.
    #[must_use]
    pub fn chunks(mut self, chunks: &[&[u8]]) -> Self {
        self.body = Body::Chunks(chunks.iter().map(|c| c.to_vec()).collect());
        self
    }

    /// Asks the server to close the connection after the response.
    #[must_use]
    pub fn close(self) -> Self {
        self.header("Connection", "close")
    }

    pub fn method(&self) -> &str {
        &self.method
    }

    /// The bytes as sent over the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str("Host: localhost\r\n");
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut bytes = match &self.body {
            Body::None => head.into_bytes(),
            Body::Whole(body) => format!("{head}Content-Length: {}\r\n", body.len()).into_bytes(),
            Body::Chunks(_) => format!("{head}Transfer-Encoding: chunked\r\n").into_bytes(),
        };
        bytes.extend(b"\r\n");
        match &self.body {
            Body::None => {}
            Body::Whole(body) => bytes.extend(body),
            Body::Chunks(chunks) => {
                for chunk in chunks {
                    bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                    bytes.extend(chunk);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(b"0\r\n\r\n");
            }
        }
        bytes
    }
}

/// One part of a `multipart/form-data` body.
#[derive(Debug, Clone)]
pub struct Part<'a> {
    pub name: &'a str,
    /// The file's name and type, if the part is a file.
    pub file: Option<(&'a str, &'a str)>,
    pub content: &'a [u8],
}

pub fn multipart(target: &str, parts: &[Part<'_>]) -> Request {
    let boundary = "----howdah-test-boundary-7d1f";
    let mut body = Vec::new();
    for part in parts {
        body.extend(format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", part.name).into_bytes());
        if let Some((file_name, content_type)) = part.file {
            body.extend(format!("; filename=\"{file_name}\"\r\nContent-Type: {content_type}").into_bytes());
        }
        body.extend(b"\r\n\r\n");
        body.extend(part.content);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{boundary}--\r\n").into_bytes());
    Request::post(target, &format!("multipart/form-data; boundary={boundary}"), body)
}
