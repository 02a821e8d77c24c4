//! `Redirect`, `RedirectMatch` and `ErrorDocument`.

use crate::limits;
use crate::pattern::{BudgetExceeded, Captures, Pattern, PatternBudget};
use crate::request_state::RequestState;
use crate::rewrite::{Template, escape_path, has_scheme, known_status, qualified};
use crate::substitute;
use crate::text::{raw, words};

/// One line of `Redirect` or `RedirectMatch`.
#[derive(Debug)]
pub(crate) struct Redirect {
    from: Source,
    to: String,
    status: u16,
}

#[derive(Debug)]
enum Source {
    Prefix(String),
    Pattern(Pattern),
    /// Every path below the directory.
    All,
}

/// Result of a redirect directive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Redirect { status: u16, location: Vec<u8> },
    Status(u16),
}

impl Redirect {
    /// Parses a line: `name` is the directive in lower case, `text` its arguments.
    pub(crate) fn new(name: &str, text: &str, room: &mut PatternBudget) -> Result<Self, String> {
        let all = words(text);
        let mut rest = all.as_slice();
        let mut status = match name {
            "redirectpermanent" => 301,
            _ => 302,
        };
        if matches!(name, "redirect" | "redirectmatch")
            && let Some(named) = rest.first().map(|first| status_of(first)).transpose()?.flatten()
        {
            status = named;
            rest = &rest[1..];
        }
        let redirects = (300..400).contains(&status);
        let named = rest.len() < all.len();
        let (from, to) = match rest {
            [from, to] if redirects => (Some(from), to.clone()),
            [to] if redirects && name == "redirect" => (None, to.clone()),
            [from] if !redirects => (Some(from), String::new()),
            [] if !redirects && named && name == "redirect" => (None, String::new()),
            _ => return Err("takes a path and an address to redirect to".to_owned()),
        };
        let from = match from {
            None => Source::All,
            Some(from) if name == "redirectmatch" => Source::Pattern(Pattern::new(from, false, room)?),
            Some(from) => Source::Prefix(from.clone()),
        };
        let is_address = to.starts_with('/') || has_scheme(to.as_bytes()).is_some();
        if redirects && !is_address && matches!(from, Source::Prefix(_)) {
            return Err(format!("`{to}` is neither a path nor an address"));
        }
        Ok(Self { from, to, status })
    }

    pub(crate) fn apply(&self, state: &mut RequestState<'_>) -> Result<Option<End>, BudgetExceeded> {
        state.budget.spend(limits::CHANGE / 8)?;
        let mut location = match &self.from {
            Source::Prefix(prefix) => {
                let Some(rest) = state.path.strip_prefix(&*raw(prefix)) else { return Ok(None) };
                if !rest.is_empty() && !rest.starts_with(b"/") && !prefix.ends_with('/') {
                    return Ok(None);
                }
                [&*raw(&self.to), &escape_path(rest)].concat()
            }
            Source::Pattern(pattern) => {
                let Some(found) = pattern.find(&state.path, &mut state.budget)? else { return Ok(None) };
                let made = substitute::groups(&self.to, &found);
                let end = made.iter().position(|b| matches!(b, b'?' | b'#')).unwrap_or(made.len());
                let (address, after) = made.split_at(end);
                let scheme = has_scheme(address).unwrap_or(0);
                [&address[..scheme], &escape_path(&address[scheme..]), after].concat()
            }
            Source::All => Template::new(&self.to).expand(state, &Captures::default(), &Captures::default()),
        };
        if !(300..400).contains(&self.status) {
            return Ok(Some(End::Status(self.status)));
        }
        if location.first() == Some(&b'/') {
            location = qualified(&state.facts, &location);
        } else if has_scheme(&location).is_none() {
            return Ok(Some(End::Status(500)));
        }
        if let Some(query) = &state.query
            && !location.contains(&b'?')
        {
            location.push(b'?');
            location.extend_from_slice(query);
        }
        Ok(Some(End::Redirect { status: self.status, location }))
    }
}

/// The status that a word names; `None` if the word is a path.
fn status_of(word: &str) -> Result<Option<u16>, String> {
    Ok(match word.to_ascii_lowercase().as_str() {
        "permanent" => Some(301),
        "temp" => Some(302),
        "seeother" => Some(303),
        "gone" => Some(410),
        number if number.starts_with(|c: char| c.is_ascii_digit()) => Some(known_status(number)?),
        _ => None,
    })
}

/// A page that replaces the server's error page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorDocument {
    /// A path of this site, optionally with a query.
    Path(String),
    /// An address to redirect the client to.
    Address(Vec<u8>),
    /// The page's text.
    Text(Vec<u8>),
    /// The server's default page.
    Usual,
}

impl ErrorDocument {
    /// Parses the text after the word `ErrorDocument`: the status, and the page.
    pub(crate) fn new(text: &str) -> Result<(u16, Self), String> {
        let words = words(text);
        let [status, document] = words.as_slice() else {
            return Err("takes a status and a page or text, in quotes if it has blanks".to_owned());
        };
        let (status, document) = (known_status(status)?, document.clone());
        let document = if document.eq_ignore_ascii_case("default") {
            Self::Usual
        } else if document.contains(' ') {
            Self::Text(raw(&document).into_owned())
        } else if document.starts_with('/') {
            Self::Path(document)
        } else if has_scheme(document.as_bytes()).is_some() {
            Self::Address(raw(&document).into_owned())
        } else {
            Self::Text(raw(&document).into_owned())
        };
        Ok((status, document))
    }
}
