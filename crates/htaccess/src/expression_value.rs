//! Evaluates expressions for a request.

use crate::compare::number;
use crate::expression::{Expression, Node, Word};
use crate::limits;
use crate::networks::Network;
use crate::pattern::{BudgetExceeded, Captures, Pattern};
use crate::request_state::RequestState;
use crate::system::Kind;
use crate::wildcard;

impl Expression {
    /// `true` if the expression holds.
    pub(crate) fn holds(&self, state: &mut RequestState<'_>) -> Result<bool, BudgetExceeded> {
        let mut groups = Captures::default();
        holds(&self.0, state, &mut groups)
    }
}

fn holds(node: &Node<Pattern>, state: &mut RequestState<'_>, groups: &mut Captures) -> Result<bool, BudgetExceeded> {
    state.budget.spend(64)?;
    Ok(match node {
        Node::Or(left, right) => holds(left, state, groups)? || holds(right, state, groups)?,
        Node::And(left, right) => holds(left, state, groups)? && holds(right, state, groups)?,
        Node::Not(inner) => !holds(inner, state, groups)?,
        Node::Constant(value) => *value,
        Node::Text(compare, left, right) => compare.holds(value(left, state, groups).cmp(&value(right, state, groups))),
        Node::Number(compare, left, right) => {
            compare.holds(number(&value(left, state, groups)).cmp(&number(&value(right, state, groups))))
        }
        Node::Matches(left, pattern) => {
            let left = value(left, state, groups);
            match pattern.find(&left, &mut state.budget)? {
                Some(found) => {
                    *groups = found;
                    true
                }
                None => false,
            }
        }
        Node::Wild(left, right, ignore_case) => {
            let (mut left, mut right) = (value(left, state, groups), value(right, state, groups));
            if *ignore_case {
                left.make_ascii_lowercase();
                right.make_ascii_lowercase();
            }
            state.budget.spend((left.len() * right.len()) as u64)?;
            wildcard::matches(&right, &left, false)
        }
        Node::Network(left, right) => {
            let (left, right) = (value(left, state, groups), value(right, state, groups));
            let address = std::str::from_utf8(&left).ok().and_then(|text| text.trim().parse().ok());
            let network = std::str::from_utf8(&right).ok().and_then(|text| Network::new(text.trim()).ok());
            address.zip(network).is_some_and(|(address, network)| network.contains(address))
        }
        Node::In(left, words) => {
            let left = value(left, state, groups);
            words.iter().any(|word| value(word, state, groups) == left)
        }
        Node::Unary(kind, word) => unary(*kind, &value(word, state, groups), state)?,
    })
}

fn unary(kind: u8, text: &[u8], state: &mut RequestState<'_>) -> Result<bool, BudgetExceeded> {
    Ok(match kind {
        b'n' => !text.is_empty(),
        b'z' => text.is_empty(),
        b'T' => {
            let off = [&b""[..], b"0", b"off", b"false", b"no"];
            !off.iter().any(|off| text.eq_ignore_ascii_case(off))
        }
        b'R' => {
            let network = std::str::from_utf8(text).ok().and_then(|text| Network::new(text.trim()).ok());
            network.zip(state.facts.remote).is_some_and(|(network, address)| network.contains(address))
        }
        b'U' | b'F' => !text.is_empty(),
        _ => file_test(state, kind, text)?,
    })
}

fn value(word: &Word, state: &RequestState<'_>, groups: &Captures) -> Vec<u8> {
    let mut made = match word {
        Word::Text(text) => text.clone(),
        Word::Variable(name) => state.variable(name),
        Word::Group(number) => groups.group(*number).to_vec(),
        Word::Joined(words) => words.iter().flat_map(|word| value(word, state, groups)).collect(),
        Word::Function(name, argument) => function(name, value(argument, state, groups), state),
    };
    made.truncate(limits::EXPANDED);
    made
}

fn function(name: &str, mut argument: Vec<u8>, state: &RequestState<'_>) -> Vec<u8> {
    let text = String::from_utf8_lossy(&argument);
    match name {
        "req" | "http" | "req_novary" => state.facts.header(&text),
        "resp" => state.variable(&format!("RESP:{text}")),
        "reqenv" | "env" | "note" => state.environment.get(&text).unwrap_or_default().to_vec(),
        "tolower" => {
            argument.make_ascii_lowercase();
            argument
        }
        "toupper" => {
            argument.make_ascii_uppercase();
            argument
        }
        // The server's environment contains secrets, so it is not readable.
        _ => Vec::new(),
    }
}

/// `true` if a path is below the document root. Paths often come from the request (`%{REQUEST_URI}`), and tests must
/// not reveal files outside the root. Symbolic links within the root are followed, as when files are served.
fn is_below(root: &[u8], path: &[u8]) -> bool {
    let rest = path.strip_prefix(root.strip_suffix(b"/").unwrap_or(root));
    rest.is_some_and(|rest| rest.first().is_none_or(|&b| b == b'/'))
        && path.split(|&b| b == b'/').all(|name| name != b"..")
}

/// Evaluates `-f` and similar tests.
pub(crate) fn file_test(state: &mut RequestState<'_>, kind: u8, path: &[u8]) -> Result<bool, BudgetExceeded> {
    // About the cost of a file system lookup.
    state.budget.spend(10_000)?;
    if path.contains(&0) || path.len() > 4096 || !is_below(state.facts.root, path) {
        return Ok(false);
    }
    if matches!(kind, b'l' | b'L' | b'h') {
        return Ok(state.system.is_link(path));
    }
    let Some(entry) = state.system.stat(path) else { return Ok(false) };
    Ok(match kind {
        b'f' => entry.kind == Kind::File,
        b'd' => entry.kind == Kind::Directory,
        b's' => entry.kind == Kind::File && entry.size > 0,
        b'x' => entry.executable,
        _ => true,
    })
}
