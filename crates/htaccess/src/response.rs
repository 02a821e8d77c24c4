//! What becomes of a response: its headers, its media type, and the page of an error.

use crate::config::Config;
use crate::limits;
use crate::media::FileType;
use crate::pattern::Effort;
use crate::redirects::ErrorDocument;
use crate::rewrite::Effects;
use crate::scene::{Environment, Scene};
use crate::world::{Facts, Kind, World};
use http::{HeaderMap, HeaderValue, header};
use std::sync::Arc;

/// What is kept of a request's directives until its response is there.
#[derive(Debug, Default)]
pub struct Response {
    config: Arc<Config>,
    environment: Environment,
    file_type: FileType,
    cookies: Vec<HeaderValue>,
    filename: Vec<u8>,
    path: Vec<u8>,
    query: Option<Vec<u8>>,
}

/// Who made a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// A script.
    Script,
    /// A file was sent.
    File,
    /// The server itself: a refusal or a redirect.
    Server,
}

impl Response {
    pub(crate) fn new(config: Arc<Config>, scene: &Scene<'_>, effects: &Effects, kind: Option<Kind>) -> Self {
        let mut file_type = match kind {
            Some(Kind::File) => config.media.of(&scene.filename),
            _ => FileType { default_charset: config.media.default_charset.clone(), ..FileType::default() },
        };
        let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).ok();
        if let Some(forced) = effects.media_type.as_ref().and_then(text) {
            let php = crate::media::means_php(&forced);
            if php { file_type.php = Some(true) } else { file_type.media_type = Some(forced) }
        }
        if let Some(handler) = effects.handler.as_ref().and_then(text) {
            file_type.php = Some(crate::media::means_php(&handler));
        }
        Self {
            config,
            environment: scene.environment.clone(),
            file_type,
            cookies: effects.cookies.iter().filter_map(|text| cookie(text)).collect(),
            filename: scene.filename.clone(),
            path: scene.path.clone(),
            query: scene.query.clone(),
        }
    }

    /// What a file is.
    #[must_use]
    pub fn file_type(&self) -> &FileType {
        &self.file_type
    }

    /// The path that responds, after all internal redirects.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// Variables that directives have set.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The page that directives have for an error.
    #[must_use]
    pub fn error_document(&self, status: u16) -> Option<&ErrorDocument> {
        self.config.errors.get(&status).filter(|document| **document != ErrorDocument::Usual)
    }

    /// Does what directives say to the headers of a response. False if that took too much.
    pub fn apply(
        &self,
        facts: &Facts<'_>,
        world: &dyn World,
        status: u16,
        maker: Maker,
        headers: &mut HeaderMap,
    ) -> bool {
        // What has no body has no type either.
        if maker == Maker::File && status != 304 {
            self.media_type(headers);
        }
        for cookie in &self.cookies {
            headers.append(header::SET_COOKIE, cookie.clone());
        }
        if maker != Maker::Server {
            self.config.expires.apply(headers, None, facts.time);
        } else if status < 400 {
            // A redirect has a page of the server's.
            self.config.expires.apply(headers, Some("text/html"), facts.time);
        }
        if self.config.headers.is_empty() {
            return true;
        }
        let seen = headers.clone();
        let mut scene = Scene {
            facts: *facts,
            world,
            path: self.path.clone(),
            filename: self.filename.clone(),
            path_info: Vec::new(),
            query: self.query.clone(),
            environment: self.environment.clone(),
            user: None,
            internal: false,
            subrequest: false,
            effort: Effort::default(),
            response: Some((status, &seen)),
        };
        let lines = self.config.headers.iter().filter(|line| maker != Maker::Server || line.always);
        for line in lines.take(limits::DIRECTIVES) {
            if line.apply(headers, &mut scene).is_err() {
                return false;
            }
        }
        true
    }

    fn media_type(&self, headers: &mut HeaderMap) {
        let kind = &self.file_type;
        let set = |headers: &mut HeaderMap, name, text: &str| {
            if let Ok(value) = HeaderValue::from_str(text) {
                headers.insert(name, value);
            }
        };
        if let Some(media) = &kind.media_type {
            set(headers, header::CONTENT_TYPE, media);
        }
        let there = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let there = there.to_owned();
        let plain = there.split(';').next().unwrap_or_default().trim().to_owned();
        let named = kind.media_type.as_ref().is_some_and(|media| media.contains("charset"));
        let is_text = plain == "text/html" || plain == "text/plain";
        let charset = match (&kind.charset, &kind.default_charset) {
            (Some(charset), _) => Some(Some(charset)),
            (None, Some(charset)) if is_text && !named => Some(charset.as_ref()),
            _ => None,
        };
        match charset {
            Some(Some(charset)) if !plain.is_empty() => {
                set(headers, header::CONTENT_TYPE, &format!("{plain}; charset={charset}"))
            }
            Some(None) => set(headers, header::CONTENT_TYPE, &plain),
            _ => {}
        }
        if let Some(encoding) = &kind.encoding {
            set(headers, header::CONTENT_ENCODING, encoding);
        }
        if self.config.etag == Some(false) {
            headers.remove(header::ETAG);
        }
    }
}

/// `name:value:domain[:minutes[:path[:secure[:httponly[:samesite]]]]]`; with a `;` first, that stands between them.
fn cookie(text: &[u8]) -> Option<HeaderValue> {
    let text = std::str::from_utf8(text).ok()?;
    let (text, between) = text.strip_prefix(';').map_or((text, ':'), |rest| (rest, ';'));
    let mut parts = text.split(between);
    let (name, value, domain) = (parts.next()?, parts.next()?, parts.next()?);
    let minutes: i64 = parts.next().unwrap_or("0").trim().parse().unwrap_or(0);
    let path = parts.next().filter(|path| !path.is_empty()).unwrap_or("/");
    let on = |word: Option<&str>, more: &str| {
        word.is_some_and(|word| word == "1" || word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case(more))
    };
    let (secure, http_only) = (on(parts.next(), "secure"), on(parts.next(), "httponly"));
    let same_site = parts.next().filter(|word| !matches!(*word, "" | "0" | "false"));
    let mut made = format!("{name}={value}; path={path}");
    if !domain.is_empty() {
        made.push_str(&format!("; domain={domain}"));
    }
    if minutes > 0 {
        let then =
            std::time::SystemTime::now() + std::time::Duration::from_secs(minutes.unsigned_abs().min(5_256_000) * 60);
        made.push_str(&format!("; expires={}", httpdate::fmt_http_date(then)));
    }
    for (wanted, word) in [(secure, "; secure"), (http_only, "; HttpOnly")] {
        made.push_str(if wanted { word } else { "" });
    }
    if let Some(same_site) = same_site {
        made.push_str(&format!("; SameSite={same_site}"));
    }
    HeaderValue::from_str(&made).ok()
}
