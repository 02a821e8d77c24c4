//! Changes of a response: its headers, its media type, and its error page.

use crate::config::Config;
use crate::limits;
use crate::media::FileType;
use crate::pattern::StepBudget;
use crate::redirects::ErrorDocument;
use crate::request_state::{Environment, RequestState};
use crate::rewrite::{Cookie, Effects};
use crate::system::{Facts, Kind, System, TooExpensive};
use crate::unlisted::Unlisted;
use http::{HeaderMap, HeaderValue, header};
use std::sync::Arc;
use std::time::SystemTime;

/// The parts of a decision that are applied to the response.
#[derive(Debug, Default)]
pub struct Response {
    config: Arc<Config>,
    environment: Environment,
    file_type: FileType,
    cookies: Vec<Cookie>,
    ended: bool,
    filename: Vec<u8>,
    path: Vec<u8>,
    query: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseSource {
    Script,
    /// A file was sent.
    File,
    /// The server itself: a refusal or a redirect.
    Server,
}

impl Response {
    pub(crate) fn new(
        config: Arc<Config>,
        state: &RequestState<'_>,
        effects: &Effects,
        kind: Option<Kind>,
        ended: bool,
    ) -> Self {
        let mut file_type = match kind {
            Some(Kind::File) => config.media.of(&state.filename),
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
            environment: state.environment.clone(),
            file_type,
            cookies: effects.cookies.clone(),
            ended,
            filename: state.filename.clone(),
            path: state.path.clone(),
            query: state.query.clone(),
        }
    }

    /// For a request that reached no directory: earlier rules have set cookies.
    pub(crate) fn of_cookies(cookies: Vec<Cookie>) -> Self {
        Self { cookies, ..Self::default() }
    }

    /// Properties of a file.
    pub fn file_type(&self) -> &FileType {
        &self.file_type
    }

    /// The path that responds, after all internal redirects.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The query for that path.
    pub fn query(&self) -> Option<&[u8]> {
        self.query.as_deref()
    }

    /// Variables that directives have set.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// State that an error page's request takes over: cookies, and `true` if a rule with `END` was met.
    pub(crate) fn kept(&self) -> (Vec<Cookie>, bool) {
        (self.cookies.clone(), self.ended)
    }

    /// Restores the `END` state of the outer request after a subrequest.
    pub(crate) fn set_ended(&mut self, ended: bool) {
        self.ended = ended;
    }

    /// The page that `ErrorDocument` sets for a status.
    pub fn error_document(&self, status: u16) -> Option<&ErrorDocument> {
        self.config.errors.get(&status).filter(|document| **document != ErrorDocument::Usual)
    }

    /// Applies all directives but `Header` to the headers of a response. Cookies come from `last`, the decision about
    /// the last path that was tried, so that they are kept whatever responds.
    pub fn prepare(&self, last: &Self, time: SystemTime, status: u16, maker: ResponseSource, headers: &mut HeaderMap) {
        if maker == ResponseSource::File {
            self.media_type(headers);
        }
        for cookie in &last.cookies {
            headers.append(header::SET_COOKIE, cookie.line.clone());
        }
        if status < 400 {
            // A redirect has one of the server's HTML pages.
            let media = (maker == ResponseSource::Server).then_some("text/html");
            self.config.expires.apply(headers, media, time);
        }
    }

    /// Names that directory listings omit.
    pub fn unlisted(&self) -> Unlisted {
        self.config.unlisted.clone()
    }

    /// `true` if there are `Header` lines.
    pub fn has_lines(&self) -> bool {
        !self.config.headers.is_empty()
    }

    /// Applies `Header` lines to the headers of a response.
    ///
    /// # Errors
    /// The cost exceeds the limit of this thread or of the request.
    pub fn apply(
        &self,
        facts: &Facts<'_>,
        system: &dyn System,
        status: u16,
        maker: ResponseSource,
        headers: &HeaderMap,
    ) -> Result<HeaderMap, TooExpensive> {
        let mut seen = headers.clone();
        if maker == ResponseSource::Server {
            // The media type of Apache's own pages, which conditions in common .htaccess files expect.
            seen.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=iso-8859-1"));
        }
        let mut state = RequestState {
            facts: *facts,
            system,
            path: self.path.clone(),
            filename: self.filename.clone(),
            path_info: Vec::new(),
            query: self.query.clone(),
            environment: self.environment.clone(),
            user: None,
            method: facts.method,
            subrequest: false,
            outer: None,
            has_sections: false,
            budget: StepBudget::of(system),
            response: Some((status, &seen)),
        };
        // `Header always` has a separate table, which is sent with all responses, and changes no other headers
        // (mod_headers.c, ap_headers_output_filter; see the condition in the documentation of `Header`).
        let (mut always, mut made) = (HeaderMap::new(), headers.clone());
        let lines = || self.config.headers.iter().take(limits::DIRECTIVES);
        for line in lines().filter(|line| line.always) {
            line.apply(&mut always, &mut state).map_err(|_| TooExpensive)?;
        }
        for line in lines().filter(|line| !line.always && maker != ResponseSource::Server) {
            line.apply(&mut made, &mut state).map_err(|_| TooExpensive)?;
        }
        for name in always.keys() {
            if lines().any(|line| line.always && line.replaces(name)) {
                made.remove(name);
            }
            for value in always.get_all(name) {
                made.append(name.clone(), value.clone());
            }
        }
        Ok(made)
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
