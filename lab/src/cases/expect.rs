//! Checks responses. A fast wrong response is a failure.

use crate::record::Response;

/// The correct response.
#[derive(Debug, Clone, PartialEq)]
pub enum Expect {
    /// Exactly these bytes, with this media type.
    Exactly {
        /// Media type, without parameters.
        media_type: &'static str,
        body: Vec<u8>,
    },
    /// Lines of base64 that differ in every response.
    RandomLines {
        /// Number of lines.
        lines: usize,
        /// Length of each, without the line end.
        length: usize,
    },
    /// A body with a minimum size that contains these words.
    Containing {
        /// Media type, without parameters.
        media_type: &'static str,
        /// Words that must occur.
        words: Vec<String>,
        /// Minimum size in bytes.
        at_least: u64,
    },
    /// Any response with a 2xx status and a body: the application is not the lab's.
    Success,
}

impl Expect {
    /// Returns the reason why a response is wrong, if it is.
    pub fn check(&self, response: &Response, body: &[u8]) -> Result<(), String> {
        if !(200..300).contains(&response.status) {
            let excerpt: String = String::from_utf8_lossy(body).chars().take(300).collect();
            return Err(format!("status {} instead of 200; the body starts: {}", response.status, excerpt.trim()));
        }
        match self {
            Self::Exactly { media_type, body: right } => {
                check_type(response, media_type)?;
                if body != right.as_slice() {
                    let at = body.iter().zip(right).position(|(a, b)| a != b).unwrap_or(body.len().min(right.len()));
                    return Err(format!(
                        "the body has {} bytes instead of {} and first differs at byte {at}: {:?}",
                        body.len(),
                        right.len(),
                        String::from_utf8_lossy(&body[at..body.len().min(at + 60)]),
                    ));
                }
                Ok(())
            }
            Self::RandomLines { lines, length } => {
                check_type(response, "text/html")?;
                check_lines(body, *lines, *length)
            }
            Self::Containing { media_type, words, at_least } => {
                check_type(response, media_type)?;
                let text = String::from_utf8_lossy(body);
                if let Some(missing) = words.iter().find(|word| !text.contains(word.as_str())) {
                    return Err(format!("the body does not contain {missing:?}"));
                }
                if (body.len() as u64) < *at_least {
                    return Err(format!("the body has {} bytes, at least {at_least} were expected", body.len()));
                }
                Ok(())
            }
            Self::Success => {
                if body.is_empty() {
                    return Err("the body is empty".into());
                }
                Ok(())
            }
        }
    }
}

fn check_type(response: &Response, media_type: &str) -> Result<(), String> {
    let given = response.content_type.split(';').next().unwrap_or("").trim();
    if given.eq_ignore_ascii_case(media_type) {
        Ok(())
    } else {
        Err(format!("Content-Type is {given:?} instead of {media_type:?}"))
    }
}

fn check_lines(body: &[u8], lines: usize, length: usize) -> Result<(), String> {
    let found: Vec<&[u8]> = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    if found.len() != lines {
        return Err(format!("{} lines instead of {lines}", found.len()));
    }
    let base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if let Some(bad) = found.iter().find(|line| line.len() != length || !line.iter().all(base64)) {
        return Err(format!("a line of {} characters is not {length} characters of base64", bad.len()));
    }
    if found.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("two lines are equal, so they are not random".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, content_type: &str) -> Response {
        Response { status, content_type: content_type.into(), encoding: "identity".into(), ..Response::default() }
    }

    #[test]
    fn exact_responses() {
        let expect = Expect::Exactly { media_type: "text/html", body: b"hello".to_vec() };
        assert_eq!(expect.check(&response(200, "text/html; charset=UTF-8"), b"hello"), Ok(()));
        assert!(expect.check(&response(200, "text/html"), b"hellO").unwrap_err().contains("byte 4"));
        assert!(expect.check(&response(200, "text/html"), b"hell").unwrap_err().contains("4 bytes instead of 5"));
        assert!(expect.check(&response(200, "text/plain"), b"hello").unwrap_err().contains("Content-Type"));
        assert!(expect.check(&response(500, "text/html"), b"hello").unwrap_err().contains("status 500"));
    }

    #[test]
    fn random_lines() {
        let expect = Expect::RandomLines { lines: 2, length: 4 };
        assert_eq!(expect.check(&response(200, "text/html"), b"AbC=\nx+/9\n"), Ok(()));
        assert!(expect.check(&response(200, "text/html"), b"AbC=\nAbC=\n").unwrap_err().contains("equal"));
        assert!(expect.check(&response(200, "text/html"), b"AbC=\n").unwrap_err().contains("1 lines"));
        assert!(expect.check(&response(200, "text/html"), b"AbC=\nA!C=\n").is_err());
    }

    #[test]
    fn words_and_size() {
        let expect = Expect::Containing { media_type: "text/html", words: vec!["WordPress".into()], at_least: 12 };
        assert_eq!(expect.check(&response(200, "text/html"), b"so WordPress it is"), Ok(()));
        assert!(expect.check(&response(200, "text/html"), b"something else").unwrap_err().contains("WordPress"));
        assert!(expect.check(&response(200, "text/html"), b"WordPress").unwrap_err().contains("at least 12"));
    }

    #[test]
    fn a_user_app_must_at_least_answer() {
        assert_eq!(Expect::Success.check(&response(201, "x"), b"."), Ok(()));
        assert!(Expect::Success.check(&response(200, "x"), b"").is_err());
        assert!(Expect::Success.check(&response(302, "x"), b".").is_err());
    }
}
