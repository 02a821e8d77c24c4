//! Tests if a text consists of literals and values, in time that is linear in the text: an automaton whose states are
//! the positions of a pattern (Glushkov), built from fragments.
//!
//! A byte costs at most one step for each edge, so the number of edges bounds the cost.

/// Maximum number of positions.
const MAX_POSITIONS: usize = 512;
/// Maximum number of edges between positions.
const MAX_EDGES: usize = 1024;

/// Characters that values may contain besides unreserved and encoded ones, and those of IRIs.
pub(crate) const RESERVED: u8 = 1;
pub(crate) const EQUALS: u8 = 2;
pub(crate) const COMMA: u8 = 4;
/// No limit of a value's characters.
const UNLIMITED: u16 = u16::MAX;

/// A position in a pattern, by the byte that it matches.
#[derive(Debug, Clone, Copy)]
enum Position {
    Literal(u8),
    /// A byte of a value's character that is not encoded; the value has at most `max` characters.
    Plain {
        set: u8,
        max: u16,
    },
    /// The beginning of an encoded byte.
    Percent,
    /// Its first digit.
    FirstDigit {
        max: u16,
    },
    SecondDigit,
}

/// A transition to a next position.
#[derive(Debug, Clone, Copy)]
struct Edge {
    to: u16,
    /// Both positions are of the same value, so its characters are counted on.
    is_same_value: bool,
}

/// A part of a pattern under construction: the positions that it may begin and end with.
#[derive(Debug, Default)]
pub(crate) struct Fragment {
    first: Vec<u16>,
    last: Vec<u16>,
    is_optional: bool,
}

/// A pattern under construction.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    positions: Vec<Position>,
    edges: Vec<Vec<Edge>>,
    count: usize,
}

impl Builder {
    fn position(&mut self, position: Position) -> u16 {
        // Beyond the maximum, `finish` fails.
        self.positions.push(position);
        self.edges.push(Vec::new());
        (self.positions.len() - 1).min(usize::from(u16::MAX)) as u16
    }

    fn connect(&mut self, from: u16, to: u16, is_same_value: bool) {
        self.count += 1;
        if self.count <= MAX_EDGES
            && let Some(edges) = self.edges.get_mut(usize::from(from))
        {
            edges.push(Edge { to, is_same_value });
        }
    }

    fn connect_all(&mut self, from: &[u16], to: &[u16]) {
        for from in from {
            for to in to {
                self.connect(*from, *to, false);
            }
        }
    }

    /// These bytes.
    pub(crate) fn literal(&mut self, text: &str) -> Fragment {
        let mut whole = Fragment { is_optional: true, ..Fragment::default() };
        for byte in text.bytes().take(MAX_POSITIONS + 1) {
            let at = self.position(Position::Literal(byte));
            let one = Fragment { first: vec![at], last: vec![at], is_optional: false };
            whole = self.sequence(whole, one);
        }
        whole
    }

    /// Any number of characters up to `max`.
    pub(crate) fn value(&mut self, set: u8, max: Option<u16>) -> Fragment {
        let max = max.unwrap_or(UNLIMITED);
        let plain = self.position(Position::Plain { set, max });
        let percent = self.position(Position::Percent);
        let digits = [self.position(Position::FirstDigit { max }), self.position(Position::SecondDigit)];
        for (from, to) in [
            (plain, plain),
            (plain, percent),
            (percent, digits[0]),
            (digits[0], digits[1]),
            (digits[1], plain),
            (digits[1], percent),
        ] {
            self.connect(from, to, true);
        }
        Fragment { first: vec![plain, percent], last: vec![plain, digits[1]], is_optional: true }
    }

    /// At least one character.
    pub(crate) fn key(&mut self) -> Fragment {
        Fragment { is_optional: false, ..self.value(0, None) }
    }

    /// One fragment after the other.
    pub(crate) fn sequence(&mut self, mut before: Fragment, after: Fragment) -> Fragment {
        self.connect_all(&before.last, &after.first);
        if before.is_optional {
            before.first.extend(&after.first);
        }
        let mut last = after.last;
        if after.is_optional {
            last.extend(&before.last);
        }
        Fragment { first: before.first, last, is_optional: before.is_optional && after.is_optional }
    }

    /// Any number of times, at least once unless the fragment is optional.
    pub(crate) fn repeated(&mut self, fragment: Fragment) -> Fragment {
        self.connect_all(&fragment.last, &fragment.first);
        fragment
    }

    /// A list that either ends as before, or continues with a separator and an item; or begins with this item. None of
    /// them is optional.
    pub(crate) fn further(
        &mut self,
        list: Fragment,
        separator: &Fragment,
        begin: &Fragment,
        item: Fragment,
    ) -> Fragment {
        self.connect_all(&list.last, &separator.first);
        self.connect_all(&separator.last, &item.first);
        self.connect_all(&begin.last, &item.first);
        let (mut first, mut last) = (list.first, list.last);
        first.extend(&begin.first);
        last.extend(item.last);
        Fragment { first, last, is_optional: false }
    }

    /// `true` if the pattern is too large already.
    pub(crate) fn is_too_large(&self) -> bool {
        self.positions.len() > MAX_POSITIONS || self.count > MAX_EDGES
    }

    /// The pattern; `None` if it is too large.
    pub(crate) fn finish(self, whole: Fragment) -> Option<Matcher> {
        if self.is_too_large() || whole.first.len() > MAX_EDGES {
            return None;
        }
        let Self { positions, edges, .. } = self;
        let mut is_last = vec![false; positions.len()];
        whole.last.iter().for_each(|at| is_last[usize::from(*at)] = true);
        let first = whole.first.iter().map(|to| Edge { to: *to, is_same_value: false }).collect();
        let edges = edges.into_iter().map(Vec::into_boxed_slice).collect();
        Some(Matcher {
            positions: positions.into(),
            edges,
            first,
            is_last: is_last.into(),
            is_optional: whole.is_optional,
        })
    }
}

impl Fragment {
    /// A fragment that matches only the empty text.
    pub(crate) fn empty() -> Self {
        Self { is_optional: true, ..Self::default() }
    }

    /// The same fragment, or nothing.
    pub(crate) fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }
}

/// A pattern.
#[derive(Debug)]
pub(crate) struct Matcher {
    positions: Box<[Position]>,
    edges: Box<[Box<[Edge]>]>,
    first: Box<[Edge]>,
    is_last: Box<[bool]>,
    is_optional: bool,
}

/// A position that is reached, and the number of characters of its value so far.
type Reached = (u16, u16);

/// Reached positions. Of several paths to one, the one with the fewest characters is kept: it can continue wherever
/// another can.
struct ReachedSet {
    all: [Reached; MAX_POSITIONS],
    length: usize,
    /// For each position its place in `all` plus one, or 0.
    places: [u16; MAX_POSITIONS],
}

impl ReachedSet {
    const fn new() -> Self {
        Self { all: [(0, 0); MAX_POSITIONS], length: 0, places: [0; MAX_POSITIONS] }
    }

    fn as_slice(&self) -> &[Reached] {
        &self.all[..self.length]
    }

    fn add(&mut self, at: u16, characters: u16) {
        let place = &mut self.places[usize::from(at)];
        if *place == 0 {
            self.all[self.length] = (at, characters);
            self.length += 1;
            *place = self.length as u16;
        } else {
            let known = &mut self.all[usize::from(*place) - 1].1;
            *known = characters.min(*known);
        }
    }

    fn clear(&mut self) {
        for (at, _) in &self.all[..self.length] {
            self.places[usize::from(*at)] = 0;
        }
        self.length = 0;
    }
}

impl Matcher {
    /// Number of edges.
    pub(crate) fn edges(&self) -> usize {
        self.first.len() + self.edges.iter().map(|edges| edges.len()).sum::<usize>()
    }

    /// `true` if all of the text, which is UTF-8, matches.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        let Some((first, rest)) = text.split_first() else { return self.is_optional };
        let (mut one, mut other) = (ReachedSet::new(), ReachedSet::new());
        let (mut reached, mut next) = (&mut one, &mut other);
        self.follow(&self.first, *first, 0, reached);
        for byte in rest {
            for (at, characters) in reached.as_slice() {
                self.follow(&self.edges[usize::from(*at)], *byte, *characters, next);
            }
            std::mem::swap(&mut reached, &mut next);
            next.clear();
            if reached.length == 0 {
                return false;
            }
        }
        reached.as_slice().iter().any(|(at, _)| self.is_last[usize::from(*at)])
    }

    fn follow(&self, edges: &[Edge], byte: u8, characters: u16, to: &mut ReachedSet) {
        #[cfg(test)]
        tests::STEPS.set(tests::STEPS.get() + edges.len());
        for edge in edges {
            let before = if edge.is_same_value { characters } else { 0 };
            let (matches, is_begin, max) = match self.positions[usize::from(edge.to)] {
                Position::Literal(own) => (own == byte, false, UNLIMITED),
                // Only the first byte of a character counts, encoded or not.
                Position::Plain { set, max } => (is_in(set, byte), !(0x80..0xc0).contains(&byte), max),
                Position::Percent => (byte == b'%', false, UNLIMITED),
                Position::FirstDigit { max } => {
                    (byte.is_ascii_hexdigit(), !matches!(byte, b'8' | b'9' | b'a' | b'b' | b'A' | b'B'), max)
                }
                Position::SecondDigit => (byte.is_ascii_hexdigit(), false, UNLIMITED),
            };
            if !matches || (max != UNLIMITED && is_begin && before >= max) {
                continue;
            }
            to.add(edge.to, before.saturating_add(u16::from(is_begin)));
        }
    }
}

fn is_in(set: u8, byte: u8) -> bool {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | 0x80.. => true,
        b'=' => set & (EQUALS | RESERVED) != 0,
        b',' => set & (COMMA | RESERVED) != 0,
        b':' | b'/' | b'?' | b'#' | b'[' | b']' | b'@' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+'
        | b';' => set & RESERVED != 0,
        _ => false,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    thread_local! {
        /// Steps of all matches of this thread.
        pub(crate) static STEPS: Cell<usize> = const { Cell::new(0) };
    }
}
