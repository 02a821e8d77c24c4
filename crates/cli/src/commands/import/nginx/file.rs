//! Parses nginx's configuration into directives: words, blocks, quotes, comments.

use crate::commands::import::directive::Directive;
use crate::commands::import::include;
use std::path::Path;

enum Token {
    Word(String),
    Open,
    Close,
    End,
}

/// Parses a file. Those that it includes are read from `directory`.
///
/// # Errors
/// The line with a mistake.
pub(super) fn parse(text: &str, directory: Option<&Path>) -> Result<Vec<Directive>, String> {
    let all = parse_one(text)?;
    directory.map_or(Ok(all.clone()), |directory| with_files(all, directory, 0))
}

/// Inserts the directives of included files, with the line of the `include`.
fn with_files(all: Vec<Directive>, directory: &Path, depth: usize) -> Result<Vec<Directive>, String> {
    let mut found = Vec::new();
    for mut one in all {
        let reads = one.name == "include" && !is_built_in(&one);
        let files = if reads { include::texts_of_server(one.word(0), directory) } else { Vec::new() };
        if depth == MAX_DEPTH && !files.is_empty() {
            return Err(format!("line {}: files include one another", one.line));
        }
        for (file, text) in &files {
            let inner = parse_one(text).map_err(|why| format!("{}: {why}", file.display()))?;
            let inner = inner.into_iter().map(|inner| inner.at_line(one.line)).collect();
            found.extend(with_files(inner, directory, depth + 1)?);
        }
        if files.is_empty() {
            one.block = one.block.take().map(|block| with_files(block, directory, depth)).transpose()?;
            found.push(one);
        }
    }
    Ok(found)
}

/// `true` for files whose content is built in.
pub(super) fn is_built_in(include: &Directive) -> bool {
    ["fastcgi_params", "fastcgi.conf", "mime.types", "proxy_params"].iter().any(|end| include.word(0).ends_with(end))
}

fn parse_one(text: &str) -> Result<Vec<Directive>, String> {
    let tokens = tokens(text)?;
    let mut at = 0;
    let all = block(&tokens, &mut at, 0)?;
    match tokens.get(at) {
        Some((_, line)) => Err(format!("line {line}: unexpected }}")),
        None => Ok(all),
    }
}

/// Maximum nesting depth of blocks.
const MAX_DEPTH: usize = 32;

fn block(tokens: &[(Token, usize)], at: &mut usize, depth: usize) -> Result<Vec<Directive>, String> {
    let mut all = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut first = 0;
    while let Some((token, line)) = tokens.get(*at) {
        if words.is_empty() {
            first = *line;
        }
        let mut directive = |words: &mut Vec<String>, block| {
            let name = words.remove(0);
            all.push(Directive { name, words: std::mem::take(words), block, line: first });
        };
        match token {
            Token::Close if words.is_empty() => return Ok(all),
            Token::Word(word) => words.push(word.clone()),
            Token::End if words.is_empty() => {}
            Token::End => directive(&mut words, None),
            Token::Open if words.is_empty() || depth == MAX_DEPTH => return Err(format!("line {line}: unexpected {{")),
            Token::Open => {
                *at += 1;
                let inner = block(tokens, at, depth + 1)?;
                if !matches!(tokens.get(*at), Some((Token::Close, _))) {
                    return Err(format!("line {line}: this block is not closed"));
                }
                directive(&mut words, Some(inner));
            }
            Token::Close => return Err(format!("line {line}: unexpected }}")),
        }
        *at += 1;
    }
    if words.is_empty() { Ok(all) } else { Err(format!("line {first}: {}: no semicolon follows", words.join(" "))) }
}

fn tokens(text: &str) -> Result<Vec<(Token, usize)>, String> {
    let mut all = Vec::new();
    let mut line = 1;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => line += 1,
            c if c.is_whitespace() => {}
            '#' => while chars.next_if(|c| *c != '\n').is_some() {},
            ';' => all.push((Token::End, line)),
            '{' => all.push((Token::Open, line)),
            '}' => all.push((Token::Close, line)),
            quote @ ('"' | '\'') => {
                let (mut word, start) = (String::new(), line);
                loop {
                    match chars.next() {
                        None => return Err(format!("line {start}: a quote is not closed")),
                        Some('\\') if chars.peek() == Some(&quote) => word.extend(chars.next()),
                        Some(c) if c == quote => break,
                        Some(c) => {
                            line += usize::from(c == '\n');
                            word.push(c);
                        }
                    }
                }
                all.push((Token::Word(word), start));
            }
            c => {
                let mut word = String::from(c);
                // `${name}` is part of a word, not a block.
                while let Some(next) = chars.peek().copied() {
                    let opens = next == '{' && word.ends_with('$');
                    let closes = next == '}' && word.rsplit_once("${").is_some_and(|(_, name)| !name.contains('}'));
                    if next.is_whitespace() || next == ';' || (matches!(next, '{' | '}') && !opens && !closes) {
                        break;
                    }
                    word.push(next);
                    chars.next();
                }
                all.push((Token::Word(word), line));
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_quotes_comments_and_blocks_are_read() {
        let text = "a b 'c d' \"e\\\"f\"; # no\nserver {\n  x ${y}z;\n  location ~ \"a{2}\" { }\n}\n";
        let all = parse(text, None).unwrap();
        assert_eq!(all[0].words, ["b", "c d", "e\"f"]);
        let inner = all[1].block.as_ref().unwrap();
        assert_eq!((all[1].line, inner[0].line, inner[0].word(0)), (2, 3, "${y}z"));
        assert_eq!((inner[1].word(1), inner[1].block.as_deref()), ("a{2}", Some(&[][..])));
        for wrong in ["a", "a {", "}", "a 'b", "{ }", "a b }"] {
            assert!(parse(wrong, None).is_err(), "{wrong}");
        }
    }
}
