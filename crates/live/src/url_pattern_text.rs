//! A URL pattern in one string: its split into the components of a URL (the URL Pattern Standard, section 1.6).

use crate::url_pattern_tokens::{Kind, Token, tokens};

/// The components of a URL, in their order in a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Component {
    Protocol,
    Username,
    Password,
    Hostname,
    Port,
    Pathname,
    Search,
    Hash,
}

/// Texts of components; `None` for those that the pattern does not have.
pub(crate) type Texts = [Option<String>; 8];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Begin,
    Protocol,
    Authority,
    Username,
    Password,
    Hostname,
    Port,
    Pathname,
    Search,
    Hash,
    Done,
}

impl State {
    fn component(self) -> Option<Component> {
        Some(match self {
            Self::Protocol => Component::Protocol,
            Self::Username => Component::Username,
            Self::Password => Component::Password,
            Self::Hostname => Component::Hostname,
            Self::Port => Component::Port,
            Self::Pathname => Component::Pathname,
            Self::Search => Component::Search,
            Self::Hash => Component::Hash,
            Self::Begin | Self::Authority | Self::Done => return None,
        })
    }
}

/// Splits a pattern. `is_special`: `true` for the text of a protocol that can match `https` or another special scheme.
pub(crate) fn split(text: &str, is_special: &dyn Fn(&str) -> bool) -> Texts {
    let text: Vec<char> = text.chars().collect();
    let tokens = tokens(&text, true).unwrap_or_default();
    let mut parser =
        Parser { text, tokens, texts: Texts::default(), state: State::Begin, begin: 0, at: 0, step: 1, special: false };
    parser.run(is_special);
    let Parser { mut texts, .. } = parser;
    if texts[Component::Hostname as usize].is_some() {
        texts[Component::Port as usize].get_or_insert_with(String::new);
    }
    texts
}

struct Parser {
    text: Vec<char>,
    tokens: Vec<Token>,
    texts: Texts,
    state: State,
    /// The first token of the component.
    begin: usize,
    at: usize,
    /// Number of tokens to advance by.
    step: usize,
    /// The protocol can match a special scheme.
    special: bool,
}

impl Parser {
    fn run(&mut self, is_special: &dyn Fn(&str) -> bool) {
        let (mut groups, mut brackets) = (0usize, 0usize);
        while let Some(token) = self.tokens.get(self.at) {
            self.step = 1;
            match token.kind {
                Kind::End if self.state == State::Begin => {
                    self.rewind();
                    if self.is_plain("#") {
                        self.change(State::Hash, 1);
                    } else if self.is_search() {
                        self.change(State::Search, 1);
                    } else {
                        self.change(State::Pathname, 0);
                    }
                }
                Kind::End if self.state == State::Authority => self.rewind_to(State::Hostname),
                Kind::End => return self.change(State::Done, 0),
                Kind::Open => groups += 1,
                Kind::Close if groups > 0 => groups -= 1,
                _ if groups > 0 => {}
                _ if self.state == State::Hostname && self.is_plain("[") => brackets += 1,
                _ if self.state == State::Hostname && self.is_plain("]") => brackets = brackets.saturating_sub(1),
                _ => self.component(brackets == 0, is_special),
            }
            self.at += self.step;
        }
    }

    fn component(&mut self, outside: bool, is_special: &dyn Fn(&str) -> bool) {
        let (is_path, is_search, is_hash) = (self.is_plain("/"), self.is_search(), self.is_plain("#"));
        match self.state {
            State::Begin if self.is_plain(":") => self.rewind_to(State::Protocol),
            State::Protocol if self.is_plain(":") => {
                self.special = is_special(&self.component_text());
                let has_slashes = [1, 2].iter().all(|after| self.is_plain_at(self.at + after, "/"));
                match (has_slashes, self.special) {
                    (true, _) => self.change(State::Authority, 3),
                    (false, true) => self.change(State::Authority, 1),
                    (false, false) => self.change(State::Pathname, 1),
                }
            }
            State::Authority if self.is_plain("@") => self.rewind_to(State::Username),
            State::Authority if is_path || is_search || is_hash => self.rewind_to(State::Hostname),
            State::Username if self.is_plain(":") => self.change(State::Password, 1),
            State::Username | State::Password if self.is_plain("@") => self.change(State::Hostname, 1),
            State::Hostname if outside && self.is_plain(":") => self.change(State::Port, 1),
            State::Hostname | State::Port if is_path => self.change(State::Pathname, 0),
            State::Hostname | State::Port | State::Pathname if is_search => self.change(State::Search, 1),
            State::Hostname | State::Port | State::Pathname | State::Search if is_hash => self.change(State::Hash, 1),
            _ => {}
        }
    }

    fn is_plain(&self, text: &str) -> bool {
        self.is_plain_at(self.at, text)
    }

    fn is_plain_at(&self, at: usize, text: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is_plain(text))
    }

    /// `true` at a `?` that begins a search, and is not the modifier of a group.
    fn is_search(&self) -> bool {
        if self.is_plain("?") {
            return true;
        }
        let is_mark = self.tokens.get(self.at).is_some_and(|token| token.text == "?" && token.kind == Kind::Modifier);
        let before = self.at.checked_sub(1).map(|before| self.tokens[before].kind);
        is_mark && !matches!(before, Some(Kind::Name | Kind::Regexp | Kind::Close | Kind::Asterisk))
    }

    fn rewind(&mut self) {
        (self.at, self.step) = (self.begin, 0);
    }

    fn rewind_to(&mut self, state: State) {
        self.rewind();
        self.state = state;
    }

    fn component_text(&self) -> String {
        let position = |at: usize| self.tokens.get(at).map_or(self.text.len(), |token| token.at);
        self.text[position(self.begin)..position(self.at)].iter().collect()
    }

    /// Ends the component, and begins another after `skipped` tokens. Components between them are empty.
    fn change(&mut self, next: State, skipped: usize) {
        if let Some(component) = self.state.component() {
            self.texts[component as usize] = Some(self.component_text());
        }
        let before = self.state;
        if before != State::Begin && next != State::Done {
            let mut empty = |component: Component, text: &str| {
                self.texts[component as usize].get_or_insert_with(|| text.to_owned());
            };
            if before < State::Hostname && next >= State::Port {
                empty(Component::Hostname, "");
            }
            if before < State::Pathname && next >= State::Search {
                empty(Component::Pathname, if self.special { "/" } else { "" });
            }
            if before < State::Search && next == State::Hash {
                empty(Component::Search, "");
            }
        }
        self.state = next;
        self.at += skipped;
        (self.begin, self.step) = (self.at, 0);
    }
}
