//! One pass through the directives: the state of the request at this point, and its variables.

use crate::limits;
use crate::pattern::StepBudget;
use crate::system::{Facts, System};
use http::HeaderMap;
use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

/// State that directives see and change.
pub(crate) struct RequestState<'a> {
    pub facts: Facts<'a>,
    pub system: &'a dyn System,
    /// The path of this pass: the request's, or that of an internal redirect.
    pub path: Vec<u8>,
    /// The path in the file system: root and path, up to the first segment that is not a directory.
    pub filename: Vec<u8>,
    /// The rest of the path.
    pub path_info: Vec<u8>,
    pub query: Option<Vec<u8>>,
    pub environment: Environment,
    /// The authenticated user.
    pub user: Option<String>,
    /// The method that directives see: GET for an error page.
    pub method: &'a str,
    /// A subrequest: rules with `NS` or `R` are skipped, and `%{REQUEST_METHOD}` is GET.
    pub subrequest: bool,
    /// Variables of the outer request, which this subrequest would replace.
    pub outer: Option<Environment>,
    /// Some sections apply to certain files only.
    pub has_sections: bool,
    pub budget: StepBudget,
    /// The response's status and headers, once there is a response.
    pub response: Option<(u16, &'a HeaderMap)>,
}

/// Maximum number of `REDIRECT_` prefixes of a name: the maximum of internal redirects, one for the error page, and one
/// for `REDIRECT_STATUS`.
const MAX_REDIRECTED: usize = 12;

/// Variables set by directives. Apache's table may have a name twice: directives see the first value, scripts get the
/// last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, Value>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Value {
    first: Vec<u8>,
    /// The value for scripts, if it differs.
    last: Option<Vec<u8>>,
}

impl Environment {
    /// Sets a variable; ignored when the limit is reached.
    pub(crate) fn set(&mut self, name: &str, value: Vec<u8>) {
        self.put(name, Value { first: value, last: None });
    }

    fn put(&mut self, name: &str, value: Value) {
        let fits = self.0.len() < limits::VARIABLES && value.first.len() <= limits::EXPANDED;
        if !name.is_empty() && (fits || self.0.contains_key(name)) {
            self.0.insert(name.to_owned(), value);
        }
    }

    /// Appends variables after the existing ones.
    pub(crate) fn append(&mut self, others: &Self) {
        for (name, value) in &others.0 {
            match self.0.get_mut(name) {
                Some(known) => known.last = Some(value.last.as_ref().unwrap_or(&value.first).clone()),
                None => self.put(name, value.clone()),
            }
        }
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// A variable's value for directives.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(|value| value.first.as_slice())
    }

    /// Total length of all variables.
    pub(crate) fn bytes(&self) -> u64 {
        let last = |value: &Value| value.last.as_ref().map_or(0, Vec::len);
        self.0.iter().map(|(name, value)| (name.len() + value.first.len() + last(value)) as u64).sum()
    }

    /// All variables, with their values for scripts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.last.as_ref().unwrap_or(&value.first).as_slice()))
    }

    /// The variables after an internal redirect: each name gets the prefix `REDIRECT_`.
    pub(crate) fn redirected(&self) -> Self {
        let keep = |(name, value): (&String, &Value)| {
            let deep = name.matches("REDIRECT_").count() > MAX_REDIRECTED;
            (!deep).then(|| (format!("REDIRECT_{name}"), value.clone()))
        };
        Self(self.0.iter().filter_map(keep).collect())
    }
}

impl RequestState<'_> {
    /// Replaces the outer request with this subrequest: the outer request's variables are appended.
    pub(crate) fn take_place(&mut self) {
        if let Some(outer) = self.outer.take() {
            self.environment.append(&outer);
        }
    }

    /// A variable `%{name}`; empty if there is none.
    pub(crate) fn variable(&self, name: &str) -> Vec<u8> {
        if let Some((space, rest)) = name.split_once(':') {
            return match space.to_ascii_uppercase().as_str() {
                "HTTP" | "REQ" => self.facts.header(rest),
                "ENV" | "REQENV" | "NOTE" => self.environment.get(rest).unwrap_or_default().to_vec(),
                "RESP" => self.response_header(rest),
                "SSL" if rest.eq_ignore_ascii_case("HTTPS") => self.on_off(self.facts.https),
                "LA-U" | "LA-F" => self.variable(rest),
                _ => Vec::new(),
            };
        }
        self.named(&name.to_ascii_uppercase())
    }

    fn on_off(&self, on: bool) -> Vec<u8> {
        if on { b"on".to_vec() } else { b"off".to_vec() }
    }

    fn named(&self, name: &str) -> Vec<u8> {
        let facts = &self.facts;
        let text = |text: &str| text.as_bytes().to_vec();
        match name {
            "REQUEST_URI" => self.path.clone(),
            "REQUEST_FILENAME" | "SCRIPT_FILENAME" => self.filename.clone(),
            "QUERY_STRING" => self.query.clone().unwrap_or_default(),
            "PATH_INFO" => self.path_info.clone(),
            "DOCUMENT_ROOT" | "CONTEXT_DOCUMENT_ROOT" => facts.root.to_vec(),
            "REQUEST_METHOD" => text(if self.subrequest { "GET" } else { self.method }),
            "REQUEST_SCHEME" => text(facts.scheme()),
            "HTTPS" => self.on_off(facts.https),
            "THE_REQUEST" => [facts.method.as_bytes(), b" ", facts.target, b" ", facts.protocol.as_bytes()].concat(),
            "SERVER_PROTOCOL" => text(facts.protocol),
            "SERVER_NAME" => text(facts.server_name()),
            "SERVER_ADDR" => text(facts.server_addr),
            "SERVER_PORT" => text(facts.server_port),
            "SERVER_SOFTWARE" => text(facts.software),
            "REMOTE_ADDR" | "REMOTE_HOST" | "CONN_REMOTE_ADDR" => {
                facts.remote.map(|ip| ip.to_string().into_bytes()).unwrap_or_default()
            }
            "REMOTE_PORT" => text(facts.remote_port),
            "REMOTE_USER" => text(self.user.as_deref().unwrap_or_default()),
            "AUTH_TYPE" => text(if self.user.is_some() { "Basic" } else { "" }),
            "HTTP_HOST" => text(facts.host),
            "HTTP_ACCEPT" => facts.header("accept"),
            "HTTP_COOKIE" => facts.header("cookie"),
            "HTTP_FORWARDED" => facts.header("forwarded"),
            "HTTP_PROXY_CONNECTION" => facts.header("proxy-connection"),
            "HTTP_REFERER" => facts.header("referer"),
            "HTTP_USER_AGENT" => facts.header("user-agent"),
            "IS_SUBREQ" => text(if self.subrequest { "true" } else { "false" }),
            "CONTENT_TYPE" => self.response_header("content-type"),
            "REQUEST_STATUS" => self.response.map(|(status, _)| status.to_string().into_bytes()).unwrap_or_default(),
            _ => name.strip_prefix("TIME").and_then(|part| self.time(part)).unwrap_or_default(),
        }
    }

    fn response_header(&self, name: &str) -> Vec<u8> {
        let value = self.response.and_then(|(_, headers)| headers.get(name));
        value.map(|value| value.as_bytes().to_vec()).unwrap_or_default()
    }

    /// `TIME` and its parts, in UTC.
    fn time(&self, part: &str) -> Option<Vec<u8>> {
        let seconds = self.facts.time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let (days, rest) = ((seconds / 86_400) as i64, seconds % 86_400);
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
        let text = match part {
            "_YEAR" => format!("{year:04}"),
            "_MON" => format!("{month:02}"),
            "_DAY" => format!("{day:02}"),
            "_HOUR" => format!("{hour:02}"),
            "_MIN" => format!("{minute:02}"),
            "_SEC" => format!("{second:02}"),
            "_WDAY" => ((days + 4).rem_euclid(7)).to_string(),
            "" => format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}"),
            _ => return None,
        };
        Some(text.into_bytes())
    }
}

/// Year, month and day of a day since the epoch, in the Gregorian calendar. A year begins in March here, so that the
/// leap day is its last.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}
