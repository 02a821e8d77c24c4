//! URI templates (RFC 6570, all four levels), matched in reverse: tests if a template can expand to a topic.
//!
//! Topics and templates come from clients, and each distinct template is matched with each update, so the time of a
//! match is bounded (`template_matcher`), and a template's literal beginning is compared first.

use crate::template_matcher::{Builder, COMMA, EQUALS, Fragment, Matcher, RESERVED};

/// Maximum length of a template.
const MAX_LENGTH: usize = 1024;
/// Maximum number of expressions of a template, and of variables of an expression.
const MAX_PARTS: usize = 16;

/// Maximum memory of a compiled template.
pub(crate) const MAX_SIZE: usize = 16 * 1024;

/// A URI template with at least one expression.
#[derive(Debug)]
pub struct Template {
    text: Box<str>,
    /// Length of the text before the first expression.
    literal: usize,
    /// The rest.
    expanded: Matcher,
}

impl Template {
    /// Reads a template. `None` for a text without expressions, an invalid template, or one beyond the bounds.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let literal = text.find('{').filter(|_| text.len() <= MAX_LENGTH)?;
        if text[..literal].contains('}') {
            return None;
        }
        let (mut builder, mut rest) = (Builder::default(), &text[literal..]);
        let (mut whole, mut expressions) = (Fragment::empty(), 0);
        while let Some((before, expression)) = rest.split_once('{') {
            let (expression, after) = expression.split_once('}')?;
            expressions += 1;
            // Building a large one would take long.
            if expressions > MAX_PARTS || builder.is_too_large() {
                return None;
            }
            for part in [push_literal(&mut builder, before)?, push_expression(&mut builder, expression)?] {
                whole = builder.sequence(whole, part);
            }
            rest = after;
        }
        let end = push_literal(&mut builder, rest)?;
        let whole = builder.sequence(whole, end);
        Some(Self { text: text.into(), literal, expanded: builder.finish(whole)? })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Maximum number of steps for each byte of a topic.
    pub(crate) fn cost(&self) -> usize {
        self.expanded.edges()
    }

    /// `true` if the template expands to this topic, or is this text.
    pub(crate) fn matches(&self, topic: &str) -> bool {
        let rest = topic.as_bytes().strip_prefix(&self.text.as_bytes()[..self.literal]);
        rest.is_some_and(|rest| *self.text == *topic || self.expanded.is_match(rest))
    }
}

fn push_literal(builder: &mut Builder, literal: &str) -> Option<Fragment> {
    (!literal.contains('}')).then(|| builder.literal(literal))
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

    /// The value; one without a limit may be a list. The limit of `{x:3}` counts characters before their encoding.
    fn value(&self, builder: &mut Builder, set: u8) -> Fragment {
        let set = if self.max_len.is_some() { set } else { set | COMMA };
        builder.value(set, self.max_len)
    }

    /// The name with the value, for the operators `;`, `?` and `&`. `bare`: an empty value has no equals sign.
    fn named(&self, builder: &mut Builder, separator: &str, bare: bool) -> Fragment {
        if self.exploded {
            // The keys of a map, or the name once for each item of a list.
            let first = self.item(builder, bare);
            let (before, other) = (builder.literal(separator), self.item(builder, bare));
            let other = builder.sequence(before, other);
            let others = builder.repeated(other).optional();
            return builder.sequence(first, others);
        }
        let (name, value) = (builder.literal(self.name), self.assigned(builder, bare));
        builder.sequence(name, value)
    }

    fn item(&self, builder: &mut Builder, bare: bool) -> Fragment {
        let key = builder.key();
        let value = self.assigned(builder, bare);
        builder.sequence(key, value)
    }

    fn assigned(&self, builder: &mut Builder, bare: bool) -> Fragment {
        let (sign, value) = (builder.literal("="), self.value(builder, 0));
        let assigned = builder.sequence(sign, value);
        if bare { assigned.optional() } else { assigned }
    }
}

fn push_expression(builder: &mut Builder, expression: &str) -> Option<Fragment> {
    let operator = expression.chars().next().filter(|first| "+#./;?&".contains(*first));
    let variables: Option<Vec<Variable<'_>>> =
        expression[operator.map_or(0, char::len_utf8)..].split(',').map(Variable::new).collect();
    let variables = variables.filter(|variables| variables.len() <= MAX_PARTS)?;
    let is_exploded = variables.iter().any(|variable| variable.exploded);
    let set = if is_exploded { EQUALS } else { 0 };
    Some(match operator {
        None => list(builder, &variables, set, ","),
        Some('+') => list(builder, &variables, RESERVED, ","),
        Some('#') => prefixed(builder, "#", |builder| list(builder, &variables, RESERVED, ",")),
        Some('.') => prefixed(builder, ".", |builder| list(builder, &variables, set, ".")),
        Some('/') if is_exploded => {
            let segment = segment(builder, set);
            builder.repeated(segment).optional()
        }
        Some('/') => (0..variables.len()).fold(Fragment::empty(), |before, _| {
            let segment = segment(builder, set).optional();
            builder.sequence(before, segment)
        }),
        Some(sign @ (';' | '&')) => variables.iter().fold(Fragment::empty(), |before, variable| {
            let sign = if sign == ';' { ";" } else { "&" };
            let named = prefixed(builder, sign, |builder| variable.named(builder, sign, sign == ";"));
            builder.sequence(before, named)
        }),
        _ => query(builder, &variables),
    })
}

/// A prefix and what `inside` makes, or nothing.
fn prefixed(builder: &mut Builder, prefix: &str, inside: impl FnOnce(&mut Builder) -> Fragment) -> Fragment {
    let (before, inside) = (builder.literal(prefix), inside(builder));
    builder.sequence(before, inside).optional()
}

fn segment(builder: &mut Builder, set: u8) -> Fragment {
    let (slash, value) = (builder.literal("/"), builder.value(set | COMMA, None));
    builder.sequence(slash, value)
}

/// Several values. Variables may be undefined, so each may be missing, with its separator.
fn list(builder: &mut Builder, variables: &[Variable<'_>], set: u8, separator: &str) -> Fragment {
    let mut whole = Fragment::empty();
    for (number, variable) in variables.iter().enumerate() {
        let value = if number == 0 {
            variable.value(builder, set)
        } else {
            prefixed(builder, separator, |builder| variable.value(builder, set))
        };
        whole = builder.sequence(whole, value);
    }
    whole
}

/// A query: the first defined variable follows the question mark, each later one an ampersand.
fn query(builder: &mut Builder, variables: &[Variable<'_>]) -> Fragment {
    let mut whole: Option<Fragment> = None;
    for variable in variables {
        let (begin, named) = (builder.literal("?"), variable.named(builder, "&", false));
        whole = Some(match whole {
            None => builder.sequence(begin, named),
            Some(defined) => {
                let and = builder.literal("&");
                builder.further(defined, &and, &begin, named)
            }
        });
    }
    whole.unwrap_or_else(Fragment::empty).optional()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template_matcher::tests::STEPS;

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
            ("{x:2}", "%c3%a9\u{e9}", true),
            ("{x:2}", "%C3%A9%E6%97%A5", true),
            ("{x:2}", "%C3%A9%E6%97%A5a", false),
            ("{x:2}", "\u{65e5}\u{672c}\u{8a9e}", false),
            ("{x:2}{y:1}", "abc", true),
            ("{x:2}{y:1}", "abcd", false),
            ("{x}", "a%4", false),
            ("{x}", "%4G", false),
            ("%4{x}", "%41", true),
            ("{x}{y}", "", true),
            ("{/x}{/y}", "/a/b", true),
            ("{/x}{/y}", "/a/b/c", false),
            ("{;x*}", ";a=1;b", true),
            ("{;x*}", ";a=1;", false),
            ("{?x,y,z}", "?x=1&z=3", true),
            ("{?x,y,z}", "?z=3&x=1", false),
            ("{?x,y,z}", "?x=1&", false),
            ("{?x*,y}", "?a=1&b=2&y=3", true),
            ("{&x}{&y}", "&y=", true),
            ("{#x,y}", "#a/b,c?d", true),
        ] {
            let found = Template::new(template).expect(template);
            assert_eq!(found.matches(topic), matches, "{template} and {topic}");
        }
    }

    #[test]
    fn an_invalid_template_is_none() {
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

    #[test]
    fn a_match_takes_a_bounded_number_of_steps_for_each_byte() {
        let adjacent: String = (b'a'..=b'p').map(|name| format!("{{+{}}}", char::from(name))).collect();
        for (text, topic) in [
            (&*adjacent, "a,".repeat(200)),
            ("/{?a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p}", format!("/?a={}", "&b=%41".repeat(60))),
            ("{x}{y}{z}0", "a".repeat(400)),
            ("{x:40}{y:40}a{z:9999}", "%c3%a9\u{e9}a".repeat(40)),
            ("{/a*}{;b*}{&c*}{.d*}{#e*}", "/a=1;b=1&c=1.d#e".repeat(20)),
        ] {
            let template = Template::new(text).expect(text);
            STEPS.set(0);
            template.matches(&topic);
            assert!((2..=1100).contains(&template.cost()) && STEPS.get() <= template.cost() * topic.len(), "{text}");
        }
        let wide = format!("{{{}}}", ["x"; 16].join(",")).repeat(16);
        assert!(Template::new(&wide).is_none(), "its cost would be too large");
    }
}
