//! Parses `RewriteRule` and `RewriteCond`.

use crate::compare::{Compare, number};
use crate::expression::Expression;
use crate::pattern::{Pattern, PatternBudget};
use crate::rewrite::template::{Escaping, Template};
use crate::text::{raw, rewrite_words};
use http::StatusCode;
use std::sync::Arc;

/// A file's rewrite directives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rewrite {
    pub engine: Option<bool>,
    pub base: Option<Vec<u8>>,
    pub options: Option<Options>,
    pub rules: Arc<Vec<Rule>>,
    /// The directory that the rules apply to, with a trailing slash.
    pub directory: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Options {
    pub inherit: bool,
    pub inherit_before: bool,
    pub inherit_down: bool,
    pub inherit_down_before: bool,
    pub ignore_inherit: bool,
    pub merge_base: bool,
    pub allow_no_slash: bool,
}

/// A rule with its conditions.
#[derive(Debug, Clone)]
pub(crate) struct Rule(pub Arc<RuleParts>);

#[derive(Debug)]
pub(crate) struct RuleParts {
    pub pattern: Pattern,
    pub negated: bool,
    pub conditions: Vec<Condition>,
    /// `None` for `-`, which keeps the path.
    pub substitution: Option<Template>,
    pub flags: Flags,
}

#[derive(Debug, Default)]
pub(crate) struct Flags {
    pub last: bool,
    pub end: bool,
    pub chain: bool,
    pub no_case: bool,
    pub no_escape: bool,
    pub no_subrequest: bool,
    pub append_query: bool,
    pub discard_query: bool,
    pub query_last: bool,
    /// The query is dropped, and a `?` in the substitution's result does not begin a query.
    pub no_query: bool,
    pub discard_path_info: bool,
    pub proxy: bool,
    pub pass_through: bool,
    pub allow_3f: bool,
    pub keep_slashes: bool,
    pub next: Option<usize>,
    pub skip: usize,
    /// `R` with any status: not applied to subrequests.
    pub redirect: bool,
    /// The status of `R`, `F` and `G`.
    pub status: Option<u16>,
    pub escaping: Escaping,
    pub variables: Vec<Template>,
    pub cookies: Vec<Template>,
    pub media_type: Option<Template>,
    pub handler: Option<Template>,
}

impl Flags {
    /// The status with which the rule ends the request, ignoring its substitution.
    pub(crate) fn refusal(&self) -> Option<u16> {
        self.status.filter(|status| !(300..400).contains(status))
    }
}

#[derive(Debug)]
pub(crate) struct Condition {
    pub subject: Template,
    pub test: Test,
    pub negated: bool,
    pub or_next: bool,
    pub no_case: bool,
}

#[derive(Debug)]
pub(crate) enum Test {
    Pattern(Pattern),
    /// `-f` and similar tests.
    File(u8),
    /// `<text`, `>=text` and similar comparisons.
    Text(Compare, Vec<u8>),
    /// `-eq5` and similar comparisons.
    Number(Compare, i64),
    Expression(Expression),
    /// `-U` and `-F`, which hold for every text that is not empty.
    Always,
}

impl Options {
    pub(crate) fn add(&mut self, word: &str) -> Result<(), String> {
        match word.to_ascii_lowercase().as_str() {
            "inherit" => self.inherit = true,
            "inheritbefore" => self.inherit_before = true,
            "inheritdown" => self.inherit_down = true,
            "inheritdownbefore" => self.inherit_down_before = true,
            "ignoreinherit" => self.ignore_inherit = true,
            "mergebase" => self.merge_base = true,
            "allownoslash" => self.allow_no_slash = true,
            // These options concern only the server configuration.
            "allowanyuri" | "ignorecontextinfo" | "legacyprefixdocroot" | "longurloptimization" => {}
            other => {
                let bound = other.strip_prefix("maxredirects=").is_some();
                if !bound {
                    return Err(format!("RewriteOptions: unknown option {word}"));
                }
            }
        }
        Ok(())
    }
}

impl Condition {
    pub(crate) fn new(text: &str, room: &mut PatternBudget) -> Result<Self, String> {
        let words = rewrite_words(text);
        let (subject, wanted, flags) = match words.as_slice() {
            [subject, wanted] => (subject, wanted, ""),
            // Apache reads only three words, and therefore ignores a trailing comment.
            [subject, wanted, flags, ..] => (subject, wanted, flags.as_str()),
            _ => return Err("RewriteCond takes a text, a pattern and optional flags".to_owned()),
        };
        let (mut or_next, mut no_case) = (false, false);
        for flag in flag_list(flags)? {
            match flag.to_ascii_uppercase().as_str() {
                "OR" | "ORNEXT" => or_next = true,
                "NC" | "NOCASE" => no_case = true,
                "NV" | "NOVARY" | "" => {}
                _ => return Err(format!("RewriteCond: unknown flag {flag}")),
            }
        }
        let (negated, wanted) = wanted.strip_prefix('!').map_or((false, wanted.as_str()), |rest| (true, rest));
        let test = if subject.eq_ignore_ascii_case("expr") {
            Test::Expression(Expression::new(wanted, room)?)
        } else {
            test(wanted, no_case, room)?
        };
        Ok(Self { subject: Template::new(subject), test, negated, or_next, no_case })
    }
}

fn test(wanted: &str, no_case: bool, room: &mut PatternBudget) -> Result<Test, String> {
    if let Some(letters) = wanted.strip_prefix('-') {
        if letters.len() == 1 {
            match letters.as_bytes()[0] {
                kind @ (b'f' | b'd' | b's' | b'l' | b'L' | b'h' | b'x') => return Ok(Test::File(kind)),
                b'F' | b'U' => return Ok(Test::Always),
                _ => {}
            }
        } else if letters.is_char_boundary(2)
            && let Some(compare) = Compare::of_letters(&letters[..2].to_ascii_lowercase())
            && letters.len() > 2
        {
            return Ok(Test::Number(compare, number(&letters.as_bytes()[2..])));
        }
    }
    let compares = [
        ("<=", Compare::LessOrEqual),
        (">=", Compare::GreaterOrEqual),
        ("<", Compare::Less),
        (">", Compare::Greater),
        ("=", Compare::Equal),
    ];
    if let Some((rest, compare)) =
        compares.iter().find_map(|(sign, compare)| Some((wanted.strip_prefix(sign)?, compare)))
    {
        let text = if *compare == Compare::Equal && rest == "\"\"" { "" } else { rest };
        return Ok(Test::Text(*compare, raw(text).into_owned()));
    }
    Pattern::new(wanted, no_case, room).map(Test::Pattern)
}

/// Splits the flags within brackets.
fn flag_list(text: &str) -> Result<Vec<&str>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inner = inner.ok_or_else(|| format!("`{text}`: write flags in brackets"))?;
    Ok(inner.split(',').map(str::trim).collect())
}

impl Rule {
    pub(crate) fn new(text: &str, conditions: Vec<Condition>, room: &mut PatternBudget) -> Result<Self, String> {
        let words = rewrite_words(text);
        let (pattern, substitution, flags) = match words.as_slice() {
            [pattern, substitution] => (pattern, substitution, ""),
            [pattern, substitution, flags, ..] => (pattern, substitution, flags.as_str()),
            _ => return Err("RewriteRule takes a pattern, a substitution and optional flags".to_owned()),
        };
        let mut flags = Flags::new(flags)?;
        let (negated, pattern) = pattern.strip_prefix('!').map_or((false, pattern.as_str()), |rest| (true, rest));
        let pattern = Pattern::new(pattern, flags.no_case, room)?;
        let made = flags.settle_query(substitution);
        let changes = made != "-" && flags.refusal().is_none();
        let substitution = changes.then(|| Template::new(made));
        Ok(Self(Arc::new(RuleParts { pattern, negated, conditions, substitution, flags })))
    }
}

impl Flags {
    fn new(text: &str) -> Result<Self, String> {
        let mut flags = Self::default();
        for flag in flag_list(text)? {
            let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
            flags.set(&name.to_ascii_lowercase(), value).map_err(|error| format!("the flag {flag}: {error}"))?;
        }
        Ok(flags)
    }

    /// Interprets and removes a `?` at the end of a substitution.
    fn settle_query<'a>(&mut self, substitution: &'a str) -> &'a str {
        match substitution.strip_suffix('?') {
            Some(_) if self.append_query => self.query_last = true,
            Some(rest) => {
                self.no_query = true;
                return rest;
            }
            None => self.no_query = self.discard_query && !substitution.contains('?'),
        }
        substitution
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "l" | "last" => self.last = true,
            "end" => (self.last, self.end) = (true, true),
            "c" | "chain" => self.chain = true,
            "nc" | "nocase" => self.no_case = true,
            "ne" | "noescape" => self.no_escape = true,
            "ns" | "nosubreq" => self.no_subrequest = true,
            "qsa" | "qsappend" => self.append_query = true,
            "qsd" | "qsdiscard" => self.discard_query = true,
            "qsl" | "qslast" => self.query_last = true,
            "dpi" | "discardpath" => self.discard_path_info = true,
            "p" | "proxy" => self.proxy = true,
            "pt" | "passthrough" => self.pass_through = true,
            "unsafeallow3f" => self.allow_3f = true,
            "unc" => self.keep_slashes = true,
            // Concerns paths outside the root, which no rule can reach here.
            "unsafeprefixstat" | "" => {}
            "b" | "backrefescaping" => {
                self.escaping.on = true;
                self.escaping.only = value.to_owned();
            }
            "bctls" => (self.escaping.on, self.escaping.controls) = (true, true),
            "bne" if value.is_empty() => return Err("characters are missing".to_owned()),
            "bne" => self.escaping.never = value.to_owned(),
            "bnp" | "backrefernoplus" => self.escaping.no_plus = true,
            "f" | "forbidden" => self.status = Some(403),
            "g" | "gone" => self.status = Some(410),
            "n" | "next" => self.next = Some(if value.is_empty() { usize::MAX } else { count(value) }),
            "s" | "skip" => self.skip = count(value),
            "e" | "env" => self.variables.push(Template::new(value)),
            "co" | "cookie" => self.cookies.push(Template::new(value)),
            "t" | "type" => self.media_type = Some(Template::new(value)),
            "h" | "handler" => self.handler = Some(Template::new(value)),
            "r" | "redirect" => {
                self.redirect = true;
                if !value.is_empty() {
                    self.status = Some(redirect_status(value)?);
                }
            }
            // Apache checks only the first letter.
            name if name.starts_with('d') => {}
            _ => return Err("not known".to_owned()),
        }
        Ok(())
    }
}

fn count(text: &str) -> usize {
    usize::try_from(number(text.as_bytes())).unwrap_or(0)
}

fn redirect_status(text: &str) -> Result<u16, String> {
    match text.to_ascii_lowercase().as_str() {
        "permanent" => Ok(301),
        "seeother" => Ok(303),
        number if number.starts_with(|c: char| c.is_ascii_digit()) => known_status(number),
        _ => Ok(302),
    }
}

/// The number at the start of a text, if it is a valid response status.
pub(crate) fn known_status(text: &str) -> Result<u16, String> {
    let status = u16::try_from(number(text.as_bytes())).ok().and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.filter(|status| !status.is_informational() && status.canonical_reason().is_some());
    status.map(|status| status.as_u16()).ok_or_else(|| format!("{text} is not a status"))
}
