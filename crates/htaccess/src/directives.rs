//! Interprets lines: sections, and the table of directives.

use crate::access::{Compat, Require};
use crate::config::{Config, File, Merging, NameTest, Section, Select};
use crate::environment::{Change, SetIf};
use crate::expression::Expression;
use crate::known;
use crate::limits;
use crate::pattern::{Pattern, PatternBudget};
use crate::redirects::{ErrorDocument, Redirect};
use crate::response_headers::{HeaderLine, Validity};
use crate::rewrite::{Condition, Options, Rewrite, Rule};
use crate::text::{Kind, Line, SyntaxError, lines, raw, words};
use std::sync::Arc;

/// A parsed file, with warnings for the log.
#[derive(Debug)]
pub(crate) struct Read {
    pub file: File,
    pub notes: Vec<Note>,
}

/// A problem that does not prevent a file from being used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The line, counted from 1.
    pub line: usize,
    /// The message.
    pub text: String,
}

/// Parses a file in `directory` (with a trailing slash).
pub(crate) fn read(text: &[u8], directory: &[u8]) -> Result<Read, SyntaxError> {
    let lines = lines(text)?;
    let mut reader = Reader { directory, room: PatternBudget::default(), notes: Vec::new() };
    let mut at = 0;
    let body = reader.body(&lines, &mut at, None, 0)?;
    Ok(Read { file: File { config: body.config, sections: body.sections }, notes: reader.notes })
}

struct Reader<'a> {
    directory: &'a [u8],
    room: PatternBudget,
    notes: Vec<Note>,
}

/// Directives collected between two tags.
#[derive(Default)]
struct Body {
    config: Config,
    sections: Vec<Arc<Section>>,
    rewrite: Option<Rewrite>,
    rules: Vec<Rule>,
    conditions: Vec<Condition>,
    requires: Vec<Require>,
    compat: Option<Compat>,
    /// The expressions of the preceding `<If>` chain, for `<ElseIf>` and `<Else>`.
    chain: Vec<Arc<Expression>>,
}

impl Body {
    fn rewrite(&mut self, directory: &[u8]) -> &mut Rewrite {
        self.rewrite.get_or_insert_with(|| Rewrite { directory: directory.to_vec(), ..Rewrite::default() })
    }

    fn finish(&mut self) -> Result<(), &'static str> {
        if let Some(mut rewrite) = self.rewrite.take() {
            rewrite.rules = Arc::new(std::mem::take(&mut self.rules));
            self.config.rewrite = Some(Arc::new(rewrite));
        }
        if self.requires.iter().any(|require| matches!(require, Require::Not(_))) {
            return Err("Require not has no effect where one of several lines is enough: put it into <RequireAll>");
        }
        if !self.requires.is_empty() {
            let require = Arc::new(Require::Any(std::mem::take(&mut self.requires)));
            self.add_to_limits(&require);
            self.config.require = Some(require);
        }
        self.config.compat = self.compat.take().map(Arc::new);
        Ok(())
    }

    /// Adds a `Require` line to the `<Limit>` and `<LimitExcept>` sections as well: all lines are in one list, of which
    /// one must be fulfilled (mod_authz_core.c, add_authz_provider).
    fn add_to_limits(&mut self, require: &Arc<Require>) {
        let limits = self.sections.iter_mut().filter_map(Arc::get_mut);
        for limit in limits.filter(|section| matches!(section.select, Select::Methods(..))) {
            if let Some(theirs) = limit.config.require.take() {
                let both = vec![Require::Shared(require.clone()), Require::Shared(theirs)];
                limit.config.require = Some(Arc::new(Require::Any(both)));
            }
        }
    }
}

impl Reader<'_> {
    /// Parses directives up to the end tag of `until`, or to the end of the file.
    fn body(
        &mut self,
        lines: &[Line],
        at: &mut usize,
        until: Option<&Line>,
        depth: usize,
    ) -> Result<Body, SyntaxError> {
        let mut body = Body::default();
        self.fill(&mut body, lines, at, until, depth)?;
        let at = until.map_or(1, |open| open.number);
        body.finish().map_err(|what| SyntaxError::new(at, what))?;
        Ok(body)
    }

    fn fill(
        &mut self,
        body: &mut Body,
        lines: &[Line],
        at: &mut usize,
        until: Option<&Line>,
        depth: usize,
    ) -> Result<(), SyntaxError> {
        while let Some(line) = lines.get(*at) {
            *at += 1;
            match line.kind {
                Kind::Directive => self.directive(body, line)?,
                Kind::Open => self.section(body, lines, at, line, depth + 1)?,
                Kind::Close => {
                    return match until {
                        Some(open) if open.name.eq_ignore_ascii_case(&line.name) => Ok(()),
                        _ => Err(SyntaxError::new(line.number, format!("</{}> closes nothing", line.name))),
                    };
                }
            }
        }
        match until {
            // Apache accepts an unclosed section if its condition depends only on the server.
            Some(open) if condition(&open.name.to_ascii_lowercase(), &open.rest).is_none() => {
                Err(SyntaxError::new(open.number, format!("<{}> is not closed", open.name)))
            }
            _ => Ok(()),
        }
    }

    fn section(
        &mut self,
        body: &mut Body,
        lines: &[Line],
        at: &mut usize,
        line: &Line,
        depth: usize,
    ) -> Result<(), SyntaxError> {
        let wrong = |what: String| SyntaxError::new(line.number, what);
        if depth > limits::DEPTH {
            return Err(wrong(format!("sections nested deeper than {}", limits::DEPTH)));
        }
        let name = line.name.to_ascii_lowercase();
        if let Some(holds) = condition(&name, &line.rest) {
            if line.rest.is_empty() {
                return Err(wrong(format!("<{}> has no condition", line.name)));
            }
            return if holds { self.fill(body, lines, at, Some(line), depth) } else { skip(lines, at, line) };
        }
        if let "requireall" | "requireany" | "requirenone" = name.as_str() {
            let inner = self.requirements(lines, at, line, depth)?;
            body.requires.push(match name.as_str() {
                "requireall" => Require::All(inner),
                "requireany" => Require::Any(inner),
                _ => Require::None(inner),
            });
            if name != "requireall" && body.requires.last().is_some_and(Require::has_bare_not) {
                return Err(wrong(format!("Require not has no effect in <{}>", line.name)));
            }
            if let Some(Err(why)) = body.requires.last().map(Require::check) {
                return Err(wrong(format!("<{}>: {why}", line.name)));
            }
            return Ok(());
        }
        let select = self.select(body, &name, &line.rest).map_err(wrong)?;
        let Some(select) = select else {
            let known = known::is_server_only_section(&name);
            let what = if known { "is not for .htaccess files" } else { "is not known" };
            return Err(wrong(format!("<{}> {what}", line.name)));
        };
        let inner = self.body(lines, at, Some(line), depth)?;
        body.sections.push(Arc::new(Section { select, config: inner.config, sections: inner.sections }));
        Ok(())
    }

    /// The requests that a section applies to; `None` for an unknown section.
    fn select(&mut self, body: &mut Body, name: &str, rest: &str) -> Result<Option<Select>, String> {
        let words = words(rest);
        Ok(Some(match (name, words.as_slice()) {
            ("files", [tilde, pattern]) if tilde == "~" => {
                Select::Files(NameTest::Pattern(Pattern::new(pattern, false, &mut self.room)?))
            }
            ("files", [name]) => Select::Files(NameTest::Wild(raw(name).into_owned())),
            ("filesmatch", [pattern]) => {
                Select::Files(NameTest::Pattern(Pattern::new(pattern, false, &mut self.room)?))
            }
            ("limit" | "limitexcept", all) if all.iter().any(|name| !known::is_method(name)) => {
                return Err(format!("`{rest}` names a method that is not known"));
            }
            ("limit", [_, ..]) => Select::Methods(words, true),
            ("limitexcept", [_, ..]) => Select::Methods(words, false),
            ("if" | "elseif", [_, ..]) => {
                let text = rest.trim();
                let text = if text.starts_with('"') && words.len() == 1 { &words[0] } else { text };
                let this = Arc::new(Expression::new(text, &mut self.room)?);
                if name == "if" {
                    body.chain.clear();
                } else if body.chain.is_empty() {
                    return Err("<ElseIf> without <If>".to_owned());
                }
                let before = body.chain.clone();
                body.chain.push(this.clone());
                Select::If { before, this: Some(this) }
            }
            ("else", []) if !body.chain.is_empty() => {
                Select::If { before: std::mem::take(&mut body.chain), this: None }
            }
            ("files" | "filesmatch" | "limit" | "limitexcept" | "if" | "elseif" | "else", _) => {
                return Err(format!("<{name}> does not accept `{rest}`"));
            }
            _ => return Ok(None),
        }))
    }

    /// Parses the lines within `<RequireAll>` and similar containers.
    fn requirements(
        &mut self,
        lines: &[Line],
        at: &mut usize,
        open: &Line,
        depth: usize,
    ) -> Result<Vec<Require>, SyntaxError> {
        let mut inner = Body::default();
        self.fill(&mut inner, lines, at, Some(open), depth)?;
        Ok(inner.requires)
    }

    fn directive(&mut self, body: &mut Body, line: &Line) -> Result<(), SyntaxError> {
        let name = line.name.to_ascii_lowercase();
        let wrong = |what: String| SyntaxError::new(line.number, format!("{}: {what}", line.name));
        let known = self.rewriting(body, &name, line).map_err(wrong)?
            || self.access(body, &name, &line.rest).map_err(wrong)?
            || self.others(body, &name, line).map_err(wrong)?;
        if known {
            return Ok(());
        }
        if known::is_server_only(&name) {
            return Err(wrong("is not for .htaccess files".to_owned()));
        }
        let Some(why) = known::without_effect(&name) else {
            return Err(SyntaxError::new(line.number, format!("unknown directive {}", line.name)));
        };
        self.note(line, format!("{} has no effect: {why}", line.name));
        Ok(())
    }

    fn note(&mut self, line: &Line, text: String) {
        self.notes.push(Note { line: line.number, text });
    }

    fn rewriting(&mut self, body: &mut Body, name: &str, line: &Line) -> Result<bool, String> {
        let text = line.rest.as_str();
        let words = || words(text);
        match name {
            "rewriteengine" => body.rewrite(self.directory).engine = Some(on_off(text)?),
            "rewritebase" => {
                let all = words();
                let [base] = all.as_slice() else { return Err("takes one path".to_owned()) };
                if !base.starts_with('/') {
                    return Err("takes a path that begins with a slash".to_owned());
                }
                body.rewrite(self.directory).base = Some(raw(base).into_owned());
            }
            "rewriteoptions" => {
                let mut options = Options::default();
                for word in words() {
                    options.add(&word)?;
                }
                body.rewrite(self.directory).options = Some(options);
            }
            "rewritecond" => {
                body.rewrite(self.directory);
                body.conditions.push(Condition::new(text, &mut self.room)?);
            }
            "rewriterule" => {
                body.rewrite(self.directory);
                let conditions = std::mem::take(&mut body.conditions);
                body.rules.push(Rule::new(text, conditions, &mut self.room)?);
            }
            "redirect" | "redirectmatch" | "redirectpermanent" | "redirecttemp" => {
                body.config.redirects.push(Arc::new(Redirect::new(name, text, &mut self.room)?));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn access(&mut self, body: &mut Body, name: &str, text: &str) -> Result<bool, String> {
        let first = || words(text).into_iter().next().ok_or_else(|| "an argument is missing".to_owned());
        let config = &mut body.config;
        match name {
            "require" => body.requires.push(Require::new(text, &mut self.room)?),
            "order" | "allow" | "deny" => body.compat.get_or_insert_default().add(name, text)?,
            "satisfy" => {
                config.satisfy_any = Some(match text.to_ascii_lowercase().as_str() {
                    "any" => true,
                    "all" => false,
                    _ => return Err("takes all or any".to_owned()),
                });
            }
            "authmerging" => {
                config.merging = match text.to_ascii_lowercase().as_str() {
                    "off" => Merging::Off,
                    "and" => Merging::And,
                    "or" => Merging::Or,
                    _ => return Err("takes `off`, `and` or `or`".to_owned()),
                };
            }
            "authtype" => config.auth.kind = Some(first()?.to_ascii_lowercase()),
            "authname" => config.auth.realm = Some(first()?),
            "authuserfile" => {
                config.auth.file = Some(first()?);
            }
            "sslrequiressl" => config.ssl_required = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn others(&mut self, body: &mut Body, name: &str, line: &Line) -> Result<bool, String> {
        let text = line.rest.as_str();
        let all = words(text);
        let first = || all.first().cloned().ok_or_else(|| "an argument is missing".to_owned());
        let config = &mut body.config;
        if config.media.add(name, &all)? {
            return Ok(true);
        }
        match name {
            "header" | "requestheader" => {
                let of_response = name == "header";
                if let Some(read) = HeaderLine::new(text, of_response, &mut self.room)? {
                    let list = if of_response { &mut config.headers } else { &mut config.request_headers };
                    list.push(Arc::new(read));
                }
            }
            "expiresactive" => config.expires.active = Some(on_off(text)?),
            "expiresdefault" => match all.as_slice() {
                [period] => config.expires.usual = Some(Validity::new(period)?),
                _ => return Err("takes a period, in quotes if it has blanks".to_owned()),
            },
            "expiresbytype" => match all.as_slice() {
                [kind, period] => config.expires.by_type.push((kind.clone(), Validity::new(period)?)),
                _ => return Err("takes a media type and a period, in quotes if it has blanks".to_owned()),
            },
            "directoryindex" => {
                let disabled = all.len() == 1 && all[0].eq_ignore_ascii_case("disabled");
                let list = config.index.get_or_insert_default();
                if disabled {
                    *list = Arc::default();
                } else {
                    Arc::make_mut(list).extend(all);
                }
            }
            "directoryslash" => config.slash = Some(on_off(text)?),
            "fallbackresource" => config.fallback = Some(Some(first()?).filter(|to| to != "disabled")),
            "errordocument" => {
                let (status, document) = ErrorDocument::new(text)?;
                config.errors.insert(status, document);
            }
            "setenvif" | "setenvifnocase" | "browsermatch" | "browsermatchnocase" | "setenvifexpr" => {
                config.set_if.push(Arc::new(SetIf::new(name, text, &mut self.room)?));
            }
            "setenv" | "unsetenv" | "passenv" => config.changes.extend(Change::list(name, text)?),
            "php_value" | "php_flag" => {
                let [key, value] = all.as_slice() else {
                    return Err("takes a setting's name and its value".to_owned());
                };
                config.php.insert(key.clone(), php_value(name, value));
            }
            "indexignore" if !all.is_empty() => config.unlisted.add(&all),
            "indexignorereset" => {
                if on_off(text)? {
                    config.unlisted.reset();
                }
            }
            "options" => self.options(body, &all, line)?,
            "fileetag" => {
                let known = ["none", "all", "inode", "mtime", "size", "digest"];
                let plain = |word: &String| word.trim_start_matches(['+', '-']).to_ascii_lowercase();
                if all.is_empty() || all.iter().any(|word| !known.contains(&plain(word).as_str())) {
                    return Err(format!("takes none, all, inode, mtime, size or digest, not `{text}`"));
                }
                config.etag = Some(!all[0].eq_ignore_ascii_case("none"));
            }
            "limitrequestbody" => {
                config.body_limit = Some(text.parse().map_err(|_| "takes a number of bytes".to_owned())?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn options(&mut self, body: &mut Body, all: &[String], line: &Line) -> Result<(), String> {
        let relative = all.iter().filter(|word| word.starts_with(['+', '-'])).count();
        if relative != 0 && relative != all.len() {
            return Err("either all options begin with + or -, or none".to_owned());
        }
        if relative == 0 {
            body.config.listing = Some(false);
        }
        for word in all {
            let (on, name) = match word.strip_prefix('-') {
                Some(name) => (false, name),
                None => (true, word.strip_prefix('+').unwrap_or(word)),
            };
            match name.to_ascii_lowercase().as_str() {
                "indexes" | "all" => body.config.listing = Some(on),
                "multiviews" | "includes" | "includesnoexec" | "execcgi" if on => {
                    self.note(line, format!("Options {word} has no effect"));
                }
                "none"
                | "multiviews"
                | "includes"
                | "includesnoexec"
                | "execcgi"
                | "followsymlinks"
                | "symlinksifownermatch" => {}
                _ => return Err(format!("unknown option {word}")),
            }
        }
        Ok(())
    }
}

fn on_off(text: &str) -> Result<bool, String> {
    match text.trim().trim_matches('"').to_ascii_lowercase().as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("takes on or off, not `{text}`")),
    }
}

/// Converts a value like mod_php: a flag is on or off, and the value `none` is empty.
fn php_value(name: &str, value: &str) -> String {
    if name == "php_flag" {
        let on = ["on", "1"].iter().any(|word| value.eq_ignore_ascii_case(word));
        return if on { "1" } else { "0" }.to_owned();
    }
    if value == "none" { String::new() } else { value.to_owned() }
}

/// Evaluates the condition of a section that depends only on the server; `None` for other sections.
fn condition(name: &str, rest: &str) -> Option<bool> {
    let rest = rest.trim();
    let (wanted, inner) = rest.strip_prefix('!').map_or((true, rest), |inner| (false, inner));
    let inner = inner.trim().trim_matches('"');
    match name {
        "ifmodule" => Some(known::has_module(inner) == wanted),
        "ifdefine" => Some(!wanted),
        "iffile" => Some(!wanted),
        "ifdirective" => Some(!wanted),
        "ifversion" => Some(version_holds(rest)),
        _ => None,
    }
}

/// Evaluates `<IfVersion >= 2.4>` as Apache 2.4 would.
fn version_holds(text: &str) -> bool {
    const OURS: [u32; 3] = [2, 4, 62];
    let (negated, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
    let digits = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
    let (operator, version) = text.split_at(digits);
    let parts: Vec<u32> = version.trim().split('.').take(3).map(|part| part.parse().unwrap_or(0)).collect();
    let ordering = OURS[..parts.len().min(3)].cmp(&parts[..]);
    let full = OURS[..].cmp(&parts[..]);
    let holds = match operator.trim() {
        "" | "=" | "==" => ordering.is_eq(),
        ">" => full.is_gt() && ordering.is_ge(),
        ">=" => ordering.is_ge(),
        "<" => ordering.is_lt(),
        "<=" => ordering.is_le(),
        _ => false,
    };
    holds != negated
}

/// Skips a section and its nested sections.
fn skip(lines: &[Line], at: &mut usize, open: &Line) -> Result<(), SyntaxError> {
    let mut depth = 1;
    while let Some(line) = lines.get(*at) {
        *at += 1;
        match line.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth -= 1,
            Kind::Directive => {}
        }
        if depth == 0 {
            return Ok(());
        }
    }
    Err(SyntaxError::new(open.number, format!("<{}> is not closed", open.name)))
}

#[cfg(test)]
#[path = "directives_tests.rs"]
mod tests;
