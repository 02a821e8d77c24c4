//! URL patterns (the URL Pattern Standard) as topic selectors. `url_pattern_text` splits a pattern into the components
//! of a URL, `url_pattern_tokens` parses each; here they are compiled and matched. `ignoreCase` and captured values are
//! left out: no selector needs them.

use crate::url_pattern_text::{Component, Texts, split};
use crate::url_pattern_tokens::{Modifier, NotAPattern, Part, Value, parts};
use regex::bytes::{Regex, RegexBuilder};
use std::borrow::Cow;
use std::cell::OnceCell;
use url::Url;

/// Maximum memory of a compiled component, in bytes.
const MAX_COMPONENT: usize = 16 << 10;
/// Memory of a pattern in bytes, for budgets. Few patterns have more than one component that is compiled.
pub(crate) const MAX_SIZE: usize = MAX_COMPONENT + size_of::<UrlPattern>();
/// Schemes of the URL Standard that have an authority, and their default ports.
const SPECIAL: [(&str, &str); 6] =
    [("https", "443"), ("http", "80"), ("wss", "443"), ("ws", "80"), ("ftp", "21"), ("file", "")];

/// A compiled URL pattern.
#[derive(Debug)]
pub struct UrlPattern {
    text: Box<str>,
    /// The URL that relative patterns and topics are relative to.
    base: Url,
    components: [Matcher; 8],
}

/// Condition for a component of a URL.
#[derive(Debug)]
enum Matcher {
    Anything,
    Text(Box<str>),
    Regex(Box<Regex>),
}

/// A topic as a URL, parsed once if it is absolute.
pub(crate) struct TopicUrl<'a> {
    text: &'a str,
    absolute: OnceCell<Option<Url>>,
}

impl<'a> TopicUrl<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, absolute: OnceCell::new() }
    }

    fn url(&self, base: &Url) -> Option<Cow<'_, Url>> {
        match self.absolute.get_or_init(|| Url::parse(self.text).ok()) {
            Some(url) => Some(Cow::Borrowed(url)),
            None => base.join(self.text).ok().map(Cow::Owned),
        }
    }
}

impl UrlPattern {
    /// Compiles a pattern; `None` if it is not one, or too complex. `base`: the hub's URL.
    pub(crate) fn new(text: &str, base: &str) -> Option<Self> {
        let base = Url::parse(base).ok()?;
        let components = compile(text, &base).ok()?;
        Some(Self { text: text.into(), base, components })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The URL that relative topics are relative to.
    pub(crate) fn base(&self) -> &str {
        self.base.as_str()
    }

    /// Maximum number of steps for each byte of a topic, about.
    pub(crate) fn cost(&self) -> usize {
        16 + self.text.len()
    }

    pub(crate) fn matches(&self, topic: &TopicUrl<'_>) -> bool {
        let Some(url) = topic.url(&self.base) else { return false };
        // The path first, which differs most.
        self.of(Component::Pathname, url.path())
            && self.of(Component::Hostname, url.host_str().unwrap_or_default())
            && self.of(Component::Protocol, url.scheme())
            && self.of(Component::Port, &port(&url))
            && self.of(Component::Search, url.query().unwrap_or_default())
            && self.of(Component::Hash, url.fragment().unwrap_or_default())
            && self.of(Component::Username, url.username())
            && self.of(Component::Password, url.password().unwrap_or_default())
    }

    fn of(&self, component: Component, text: &str) -> bool {
        self.components[component as usize].matches(text)
    }
}

/// The path of a topic as a URL, without dot segments and needless encoding; `None` if it is no URL. `base`: the hub's
/// URL.
pub fn path_of(topic: &str, base: &str) -> Option<String> {
    let url = TopicUrl::new(topic).url(&Url::parse(base).ok()?)?.into_owned();
    let (mut path, mut rest) = (String::new(), url.path());
    while let Some((before, after)) = rest.split_once('%') {
        path.push_str(before);
        let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(byte)) {
            Some(byte) => (path, rest) = (path + &char::from(byte).to_string(), &after[2..]),
            None => (path, rest) = (path + "%", after),
        }
    }
    Some(path + rest)
}

fn port(url: &Url) -> String {
    url.port().map(|port| port.to_string()).unwrap_or_default()
}

impl Matcher {
    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Anything => true,
            Self::Text(own) => **own == *text,
            Self::Regex(regex) => regex.is_match(text.as_bytes()),
        }
    }

    /// `delimiter`: a segment ends before it.
    fn new(parts: &[Part], delimiter: Option<char>) -> Result<Self, NotAPattern> {
        if let [Part { prefix, value: Value::Anything, suffix, .. }] = parts
            && prefix.is_empty()
            && suffix.is_empty()
        {
            return Ok(Self::Anything);
        }
        if parts.iter().all(|part| part.value == Value::Nothing && part.modifier == Modifier::One) {
            return Ok(Self::Text(parts.iter().map(|part| &*part.prefix).collect()));
        }
        let mut expression = String::from("^");
        for part in parts {
            expression.push_str(&regex_of(part, delimiter));
        }
        expression.push('$');
        let mut builder = RegexBuilder::new(&expression);
        // URLs are ASCII.
        let regex = builder.unicode(false).size_limit(MAX_COMPONENT).dfa_size_limit(MAX_COMPONENT).build();
        regex.map(|regex| Self::Regex(Box::new(regex))).map_err(|_| NotAPattern)
    }
}

fn regex_of(part: &Part, delimiter: Option<char>) -> String {
    let (prefix, suffix) = (regex::escape(&part.prefix), regex::escape(&part.suffix));
    let value = match &part.value {
        Value::Nothing => String::new(),
        Value::Segment => match delimiter {
            Some(delimiter) => format!("[^{}]+?", regex::escape(&delimiter.to_string())),
            None => "(?s:.)+?".to_owned(),
        },
        Value::Anything => ".*".to_owned(),
        Value::Regexp(regexp) => regexp.clone(),
    };
    let once = format!("{prefix}(?:{value}){suffix}");
    match part.modifier {
        Modifier::One => once,
        Modifier::Optional => format!("(?:{once})?"),
        Modifier::ZeroOrMore => format!("(?:{once})*"),
        Modifier::OneOrMore => format!("(?:{once})+"),
    }
}

fn compile(text: &str, base: &Url) -> Result<[Matcher; 8], NotAPattern> {
    let special =
        |protocol: &str| component(Component::Protocol, protocol, true).is_ok_and(|matcher| is_special(&matcher));
    let mut texts = split(text, &special);
    if texts[Component::Protocol as usize].is_none() {
        complete(&mut texts, base);
    }
    let protocol = texts[Component::Protocol as usize].take().unwrap_or_else(|| "*".to_owned());
    let default_port = SPECIAL.iter().find(|(scheme, _)| *scheme == protocol).map(|(_, port)| (*port).to_owned());
    let port = &mut texts[Component::Port as usize];
    if port.is_some() && *port == default_port {
        *port = Some(String::new());
    }
    let matcher = component(Component::Protocol, &protocol, true)?;
    let has_special = is_special(&matcher);
    let of = |name: Component| component(name, texts[name as usize].as_deref().unwrap_or("*"), has_special);
    Ok([
        matcher,
        of(Component::Username)?,
        of(Component::Password)?,
        of(Component::Hostname)?,
        of(Component::Port)?,
        of(Component::Pathname)?,
        of(Component::Search)?,
        of(Component::Hash)?,
    ])
}

fn is_special(protocol: &Matcher) -> bool {
    SPECIAL.iter().any(|(scheme, _)| protocol.matches(scheme))
}

/// Adds what a relative pattern takes from its base.
fn complete(texts: &mut Texts, base: &Url) {
    let own = [
        (Component::Protocol, base.scheme().to_owned()),
        (Component::Hostname, base.host_str().unwrap_or_default().to_owned()),
        (Component::Port, port(base)),
        (Component::Pathname, base.path().to_owned()),
        (Component::Search, base.query().unwrap_or_default().to_owned()),
        (Component::Hash, base.fragment().unwrap_or_default().to_owned()),
    ];
    // A component is taken only if the pattern begins after it.
    let begin = own.iter().position(|(name, _)| texts[*name as usize].is_some()).unwrap_or(own.len());
    for (name, text) in &own[..begin] {
        texts[*name as usize] = Some(escape(text));
    }
    if let Some(path) = texts[Component::Pathname as usize].as_mut().filter(|_| begin == 3) {
        let is_absolute = path.starts_with('/') || path.starts_with("\\/") || path.starts_with("{/");
        let folder = base.path().rfind('/').map(|slash| escape(&base.path()[..=slash]));
        if let Some(folder) = folder.filter(|_| !is_absolute) {
            path.insert_str(0, &folder);
        }
    }
}

/// A text as a pattern that matches it.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if "+*?:{}()\\".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn component(name: Component, text: &str, has_special: bool) -> Result<Matcher, NotAPattern> {
    let is_path = name == Component::Pathname && has_special;
    let (prefix, delimiter) = match name {
        Component::Hostname => (None, Some('.')),
        Component::Pathname if is_path => (Some('/'), Some('/')),
        _ => (None, None),
    };
    let encode = |text: &str| encoded(name, text, is_path);
    Matcher::new(&parts(text, prefix, &encode)?, delimiter)
}

/// Literal text as it is in parsed URLs.
fn encoded(name: Component, text: &str, is_path: bool) -> Result<String, NotAPattern> {
    let example = if is_path || name != Component::Pathname { "https://example/" } else { "x:" };
    let mut url = Url::parse(example).map_err(|_| NotAPattern)?;
    match name {
        Component::Protocol => {
            let text = text.to_ascii_lowercase();
            let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
            if text.bytes().all(is_scheme) { Ok(text) } else { Err(NotAPattern) }
        }
        Component::Username => url.set_username(text).map(|()| url.username().to_owned()).map_err(|()| NotAPattern),
        Component::Password => {
            url.set_password(Some(text)).map_err(|()| NotAPattern)?;
            Ok(url.password().unwrap_or_default().to_owned())
        }
        Component::Hostname if text.contains(['[', ']', ':']) => Ok(text.to_ascii_lowercase()),
        Component::Hostname => {
            url.set_host(Some(text)).map_err(|_| NotAPattern)?;
            Ok(url.host_str().unwrap_or_default().to_owned())
        }
        Component::Port => {
            let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
            if digits.is_empty() { Err(NotAPattern) } else { Ok(digits) }
        }
        Component::Pathname if is_path => {
            // Text that continues a path must not become absolute.
            let added = if text.starts_with('/') { 0 } else { 2 };
            url.set_path(&format!("{}{text}", &"/-"[..added]));
            Ok(url.path()[added..].to_owned())
        }
        Component::Pathname => {
            url.set_path(text);
            Ok(url.path().to_owned())
        }
        Component::Search => {
            url.set_query(Some(text));
            Ok(url.query().unwrap_or_default().to_owned())
        }
        Component::Hash => {
            url.set_fragment(Some(text));
            Ok(url.fragment().unwrap_or_default().to_owned())
        }
    }
}

#[cfg(test)]
#[path = "url_pattern_tests.rs"]
mod tests;
