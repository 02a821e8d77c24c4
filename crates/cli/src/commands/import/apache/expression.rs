//! Apache's expressions in `<If>`, `<ElseIf>` and `<Else>`, converted to the conditions of rules. A rule has one
//! condition of each kind, so an expression becomes several rules where one of several comparisons suffices.

use howdah_htaccess::expression::{self, Compare, Word};

/// Maximum number of rules for one expression.
const MAX_ALTERNATIVES: usize = 16;

/// An expression with regular expressions as rules have them.
pub(super) type Node = expression::Node<String>;

/// A comparison with a variable (`HTTP_HOST`, `HTTP:Name`) of the request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    /// Equal to one of these texts.
    Text(String, Vec<String>),
    Regex(String, String),
    /// The client's address is in this network.
    Network(String),
    /// `-f` and `-d` of the file that the request names.
    Exists(&'static str),
    /// Not empty.
    Given(String),
}

/// Conditions that hold together, each with `true` if it must not hold.
pub(super) type Conjunction = Vec<(Test, bool)>;

/// Parses an expression.
///
/// # Errors
/// The part that is wrong or has no counterpart.
pub(super) fn parse(text: &str) -> Result<Node, String> {
    Node::parse(text, |regex, flags| {
        let regex = regex.replace("\\/", "/");
        match flags {
            "" => Ok(regex),
            "i" => Ok(format!("(?i){regex}")),
            other => Err(format!("the flags `{other}` of a pattern have no counterpart")),
        }
    })
}

/// The conjunctions of which one must hold, or none if `is_negated`. An empty list: no request meets the expression.
///
/// # Errors
/// A comparison has no counterpart, or there are too many.
pub(super) fn alternatives(node: &Node, is_negated: bool) -> Result<Vec<Conjunction>, String> {
    let found = match (node, is_negated) {
        (Node::Not(inner), _) => alternatives(inner, !is_negated)?,
        (Node::Constant(value), _) if *value != is_negated => vec![Vec::new()],
        (Node::Constant(_), _) => Vec::new(),
        (Node::Or(left, right), false) | (Node::And(left, right), true) => {
            [alternatives(left, is_negated)?, alternatives(right, is_negated)?].concat()
        }
        (Node::And(left, right), false) | (Node::Or(left, right), true) => {
            let (left, right) = (alternatives(left, is_negated)?, alternatives(right, is_negated)?);
            let both = |a: &Conjunction| right.iter().map(|b| [&a[..], b].concat()).collect::<Vec<_>>();
            left.iter().flat_map(both).collect()
        }
        (comparison, _) => {
            let (test, must_hold) = test(comparison)?;
            vec![vec![(test, must_hold == is_negated)]]
        }
    };
    if found.len() > MAX_ALTERNATIVES { Err("it would need too many rules".to_owned()) } else { Ok(found) }
}

/// Returns a comparison's test, with `true` if it must hold.
fn test(comparison: &Node) -> Result<(Test, bool), String> {
    Ok(match comparison {
        Node::Unary(kind @ (b'f' | b'd'), word) => match variable(word)?.as_str() {
            "REQUEST_FILENAME" | "SCRIPT_FILENAME" => {
                (Test::Exists(if *kind == b'f' { "file" } else { "directory" }), true)
            }
            other => return Err(format!("-{} of {other} has no counterpart", char::from(*kind))),
        },
        Node::Unary(b'R', network) => (Test::Network(fixed(network)?), true),
        Node::Unary(kind @ (b'n' | b'z'), word) => (Test::Given(variable(word)?), *kind == b'n'),
        Node::Text(compare @ (Compare::Equal | Compare::NotEqual), left, right) => {
            (Test::Text(variable(left)?, vec![fixed(right)?]), *compare == Compare::Equal)
        }
        Node::In(left, words) => {
            (Test::Text(variable(left)?, words.iter().map(fixed).collect::<Result<_, _>>()?), true)
        }
        Node::Matches(left, regex) => (Test::Regex(variable(left)?, regex.clone()), true),
        Node::Network(left, network) if variable(left)? == "REMOTE_ADDR" => (Test::Network(fixed(network)?), true),
        _ => return Err("one of its comparisons has no counterpart".to_owned()),
    })
}

/// The name of a variable, perhaps in quotes, or of a header (`req('Name')`) as `HTTP:Name`.
fn variable(word: &Word) -> Result<String, String> {
    match word {
        Word::Variable(name) => return Ok(name.clone()),
        Word::Function(name, header) if matches!(&**name, "req" | "http" | "req_novary") => {
            return Ok(format!("HTTP:{}", fixed(header)?));
        }
        Word::Joined(parts) => {
            // A variable in quotes has empty texts around it.
            let is_filled = |part: &&Word| !matches!(part, Word::Text(text) if text.is_empty());
            if let [Word::Variable(name)] = parts.iter().filter(is_filled).collect::<Vec<_>>()[..] {
                return Ok(name.clone());
            }
        }
        _ => {}
    }
    Err("only a variable alone can be compared".to_owned())
}

/// A text without variables.
fn fixed(word: &Word) -> Result<String, String> {
    match word {
        Word::Text(text) => Ok(String::from_utf8_lossy(text).into_owned()),
        Word::Joined(parts) => parts.iter().map(fixed).collect(),
        _ => Err("a variable can be compared only with a fixed text".to_owned()),
    }
}
