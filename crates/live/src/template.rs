//! URI templates (RFC 6570, all four levels), matched in reverse: tests if a template can expand to a topic.
//!
//! A template becomes a regular expression, whose matching takes time linear in the topic. Topics and templates come from
//! clients, so both are bounded, and a template's literal beginning is compared first.

use regex_lite::{Regex, RegexBuilder, escape};

/// Maximum length of a template.
const MAX_LENGTH: usize = 1024;
/// Maximum number of expressions of a template, and of variables of an expression.
const MAX_PARTS: usize = 16;

/// Maximum memory of a compiled template.
pub(crate) const MAX_SIZE: usize = 32 * 1024;

/// Characters that expressions leave unencoded, encoded ones, and those of IRIs.
const UNRESERVED: &str = r"[A-Za-z0-9\-._~]|%[0-9A-Fa-f]{2}|[^\x00-\x7f]";
/// Characters that `{+x}` and `{#x}` leave unencoded, too.
const RESERVED: &str = r"[:/?#\[\]@!$&'()*+,;=]";

/// A URI template with at least one expression.
#[derive(Debug)]
pub struct Template {
    text: Box<str>,
    /// Length of the text before the first expression.
    literal: usize,
    expanded: Regex,
}

impl Template {
    /// Reads a template. `None` for a text without expressions, an invalid template, or one beyond the bounds.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let literal = text.find('{').filter(|_| text.len() <= MAX_LENGTH)?;
        let (mut pattern, mut rest) = (String::from("^"), text);
        let mut expressions = 0;
        while let Some((before, expression)) = rest.split_once('{') {
            let (expression, after) = expression.split_once('}')?;
            expressions += 1;
            push_literal(&mut pattern, before)?;
            push_expression(&mut pattern, expression)?;
            rest = after;
        }
        push_literal(&mut pattern, rest)?;
        pattern.push('$');
        if expressions > MAX_PARTS {
            return None;
        }
        let expanded = RegexBuilder::new(&pattern).size_limit(MAX_SIZE).build().ok()?;
        Some(Self { text: text.into(), literal, expanded })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// `true` if the template expands to this topic, or is this text.
    pub(crate) fn matches(&self, topic: &str) -> bool {
        let begins_so = topic.as_bytes().starts_with(&self.text.as_bytes()[..self.literal]);
        begins_so && (*self.text == *topic || self.expanded.is_match(topic))
    }
}

fn push_literal(pattern: &mut String, literal: &str) -> Option<()> {
    if literal.contains('}') {
        return None;
    }
    pattern.push_str(&escape(literal));
    Some(())
}

/// A variable of an expression.
struct Variable<'a> {
    name: &'a str,
    /// `{x*}`: a list or map is expanded item by item.
    exploded: bool,
    /// `{x:3}`: maximum number of characters.
    max_len: Option<u16>,
}

impl<'a> Variable<'a> {
    fn new(text: &'a str) -> Option<Self> {
        let (name, exploded) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
        let (name, max_len) = match name.split_once(':') {
            Some((name, max_len)) if !exploded => {
                (name, Some(max_len.parse().ok().filter(|max_len| (1..10_000).contains(max_len))?))
            }
            Some(_) => return None,
            None => (name, None),
        };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'%');
        let is_name = !name.is_empty() && name.bytes().all(fits);
        is_name.then_some(Self { name, exploded, max_len })
    }

    /// Pattern of the value. The limit of `{x:3}` counts characters before their encoding.
    fn value(&self, char_class: &str) -> String {
        match self.max_len {
            Some(max_len) => format!("(?:{char_class}){{0,{max_len}}}"),
            None => format!("(?:{char_class}|,)*"),
        }
    }

    /// Pattern of the name with the value, for the operators `;`, `?` and `&`. `bare`: an empty value has no equals
    /// sign.
    fn named(&self, separator: &str, bare: bool) -> String {
        let value = self.value(UNRESERVED);
        let value = if bare { format!("(?:={value})?") } else { format!("={value}") };
        if self.exploded {
            // The keys of a map, or the name once for each item of a list.
            let item = format!("(?:{UNRESERVED})+{value}");
            return format!("{item}(?:{separator}{item})*");
        }
        format!("{}{value}", escape(self.name))
    }
}

fn push_expression(pattern: &mut String, expression: &str) -> Option<()> {
    let operator = expression.chars().next().filter(|first| "+#./;?&".contains(*first));
    let variables: Option<Vec<Variable<'_>>> =
        expression[operator.map_or(0, char::len_utf8)..].split(',').map(Variable::new).collect();
    let variables = variables.filter(|variables| variables.len() <= MAX_PARTS)?;
    let reserved = format!("{UNRESERVED}|{RESERVED}");
    let exploded = variables.iter().any(|variable| variable.exploded);
    let found = match operator {
        None => list_pattern(&variables, &char_class(exploded), ","),
        Some('+') => list_pattern(&variables, &reserved, ","),
        Some('#') => format!("(?:#{})?", list_pattern(&variables, &reserved, ",")),
        Some('.') => format!(r"(?:\.{})?", list_pattern(&variables, &char_class(exploded), r"\.")),
        Some('/') => {
            let segment = format!("/(?:{}|,)*", char_class(exploded));
            let max_len = if exploded { String::new() } else { variables.len().to_string() };
            format!("(?:{segment}){{0,{max_len}}}")
        }
        Some(';') => variables.iter().map(|variable| format!("(?:;{})?", variable.named(";", true))).collect(),
        Some('&') => variables.iter().map(|variable| format!("(?:&{})?", variable.named("&", false))).collect(),
        _ => query(&variables),
    };
    pattern.push_str(&found);
    Some(())
}

/// Unreserved characters, and the equals signs of an exploded map.
fn char_class(exploded: bool) -> String {
    if exploded { format!("{UNRESERVED}|=") } else { UNRESERVED.to_owned() }
}

/// Pattern of several values. Variables may be undefined, so each may be missing, with its separator.
fn list_pattern(variables: &[Variable<'_>], char_class: &str, separator: &str) -> String {
    let mut values = variables.iter().map(|variable| variable.value(char_class));
    let first = values.next().unwrap_or_default();
    values.fold(first, |before, value| format!("{before}(?:{separator}{value})?"))
}

/// Pattern of a query: the first defined variable follows the question mark, each later one an ampersand.
fn query(variables: &[Variable<'_>]) -> String {
    let named: Vec<String> = variables.iter().map(|variable| variable.named("&", false)).collect();
    let from = |first: usize| {
        let others: String = named[first + 1..].iter().map(|other| format!("(?:&{other})?")).collect();
        format!("{}{others}", named[first])
    };
    let ways: Vec<String> = (0..named.len()).map(from).collect();
    format!(r"(?:\?(?:{}))?", ways.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_matches_what_it_expands_to() {
        // Expansions are those of RFC 6570, section 1.2 and 3.2.
        for (template, topic, matches) in [
            ("{var}", "value", true),
            ("{hello}", "Hello%20World%21", true),
            ("{hello}", "Hello World!", false),
            ("O{undef}X", "OX", true),
            ("{x,y}", "1024,768", true),
            ("map?{x,y}", "map?1024,768", true),
            ("{var:3}", "val", true),
            ("{var:3}", "value", false),
            ("{+path}/here", "/foo/bar/here", true),
            ("{path}/here", "/foo/bar/here", false),
            ("here?ref={+path}", "here?ref=/foo/bar", true),
            ("X{#hello}", "X#Hello%20World!", true),
            ("X{#hello}", "X", true),
            ("X{.var}", "X.value", true),
            ("X{.var}", "Xvalue", false),
            ("{/var,x}/here", "/value/1024/here", true),
            ("{/var}/here", "/value/1024/here", false),
            ("{/list*}", "/red/green/blue", true),
            ("{;x,y,empty}", ";x=1024;y=768;empty", true),
            ("{;x}", ";z=1024", false),
            ("{?x,y}", "?x=1024&y=768", true),
            ("{?x,y}", "?y=768", true),
            ("{?x,y}", "?x=1024y=768", false),
            ("{?x,y}", "?z=1", false),
            ("{?x}", "?x=1&z=1", false),
            ("?fixed=yes{&x}", "?fixed=yes&x=1024", true),
            ("{?keys*}", "?semi=%3B&dot=.&comma=%2C", true),
            ("{scheme}://{+host}/demo/books/{id}.jsonld", "https://a.example/demo/books/1.jsonld", true),
            ("https://example.com/books/{id}", "https://example.com/books/caf\u{e9}", true),
            ("https://example.com/books/{id}", "https://example.com/books/1?x", false),
            (
                "https://example.com/users/foo/{?topic}",
                "https://example.com/users/foo/?topic=https%3A%2F%2Fexample.com%2Fbooks%2F1",
                true,
            ),
            ("https://example.com/users/foo/{?topic}", "https://example.com/users/bar/?topic=x", false),
            ("/a.b/{id}", "/axb/1", false),
        ] {
            let found = Template::new(template).expect(template);
            assert_eq!(found.matches(topic), matches, "{template} and {topic}");
        }
    }

    #[test]
    fn what_is_no_template_is_none() {
        let long = format!("{{x}}{}", "a".repeat(MAX_LENGTH));
        let many = "{x}".repeat(MAX_PARTS + 1);
        let wide = format!("{{{}}}", vec!["x"; MAX_PARTS + 1].join(","));
        for text in [
            "", "plain", "{", "}", "{}", "{x", "x}", "{x}}", "{{x}}", "{x y}", "{!x}", "{x:0}", "{x:a}", &long, &many,
            &wide,
        ] {
            assert!(Template::new(text).is_none(), "{text}");
        }
    }
}
