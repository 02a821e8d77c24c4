//! Parses a Caddyfile into directives: one per line; `{` at the end of a line opens a block; snippets are inserted
//! where they are imported.

use crate::commands::import::directive::Directive;
use crate::commands::import::include;
use std::path::Path;

/// Maximum nesting depth of blocks, and of snippets.
const MAX_DEPTH: usize = 32;

/// Parses a file. Global options are named `{`; sites are named `site` and have their addresses as words. Files that it
/// imports are read from `directory`.
///
/// # Errors
/// The line with a mistake.
pub(super) fn parse(text: &str, directory: Option<&Path>) -> Result<Vec<Directive>, String> {
    let mut lines = lines(text)?;
    if let Some(directory) = directory {
        lines = with_files(lines, directory, 0)?;
    }
    let mut reader = Reader { lines: &lines, at: 0 };
    let all = reader.body(0)?;
    if let Some((_, line)) = lines.get(reader.at) {
        return Err(format!("line {line}: unexpected }}"));
    }
    // A file with a single site may omit the braces: its first line then has the addresses.
    let has_site = all.iter().any(|one| one.block.is_some() && one.name != "{" && !one.name.starts_with('('));
    let at = all.iter().position(|one| one.name != "{" && !one.name.starts_with('('));
    let is_bare = at.is_some_and(|at| all[at].block.is_none() && all[at].name.contains(['.', ':', '/']));
    let snippets: Vec<Directive> = all.iter().filter(|one| one.name.starts_with('(')).cloned().collect();
    let mut found: Vec<Directive> = Vec::new();
    for mut one in all {
        if one.name == "{" || one.name.starts_with('(') {
            found.extend((one.name == "{").then_some(one));
        } else if is_bare && found.iter().all(|own| own.name == "{") {
            found.push(site(one, Some(Vec::new())));
        } else if let Some(bare) = found.last_mut().filter(|own| is_bare && own.name == "site") {
            bare.block.get_or_insert_default().push(one);
        } else if !has_site || one.block.is_none() {
            return Err(format!("line {}: {} is outside of a site", one.line, one.shown()));
        } else {
            let block = one.block.take();
            found.push(site(one, block));
        }
    }
    for one in &mut found {
        one.block = Some(imported(one.block.take().unwrap_or_default(), &snippets, 0)?);
    }
    Ok(found)
}

/// Inserts the lines of imported files, with the line number of the `import`. Snippets of the same name come first.
fn with_files(lines: Vec<Line>, directory: &Path, depth: usize) -> Result<Vec<Line>, String> {
    let snippets: Vec<String> = lines.iter().filter_map(|(words, _)| words.first()).cloned().collect();
    let mut found = Vec::new();
    for (words, number) in lines {
        let name = words.get(1).filter(|name| words[0] == "import" && !snippets.contains(&format!("({name})")));
        let Some(name) = name else {
            found.push((words, number));
            continue;
        };
        let files = include::texts(name, directory);
        if depth == MAX_DEPTH {
            return Err(format!("line {number}: files import one another"));
        }
        // Without a file, a pattern imports nothing.
        found.extend((files.is_empty() && !name.contains('*')).then(|| (words.clone(), number)));
        for (file, text) in files {
            let inner = self::lines(&text).map_err(|why| format!("{}: {why}", file.display()))?;
            let arguments = &words[2..];
            // Without arguments, those of the file's snippets stay.
            let filled = |words| if arguments.is_empty() { words } else { with_arguments(words, arguments) };
            let inner = inner.into_iter().map(|(words, _)| (filled(words), number)).collect();
            found.extend(with_files(inner, file.parent().unwrap_or(directory), depth + 1)?);
        }
    }
    Ok(found)
}

fn site(line: Directive, block: Option<Vec<Directive>>) -> Directive {
    let addresses = std::iter::once(&line.name).chain(&line.words).flat_map(|word| word.split(','));
    let words = addresses.filter(|word| !word.is_empty()).map(str::to_owned).collect();
    Directive { name: "site".to_owned(), words, block, line: line.line }
}

/// Inserts imported snippets; `{args[0]}` and so on are replaced with the words of `import`.
fn imported(all: Vec<Directive>, snippets: &[Directive], depth: usize) -> Result<Vec<Directive>, String> {
    let mut found = Vec::new();
    for mut one in all {
        let snippet = snippets.iter().find(|own| one.name == "import" && own.name == format!("({})", one.word(0)));
        if let Some(snippet) = snippet {
            if depth == MAX_DEPTH {
                return Err(format!("line {}: snippets import one another", one.line));
            }
            let block = one.inner();
            let inner = snippet.inner().iter().flat_map(|inner| replaced(inner, &one.words[1..], block)).collect();
            found.extend(imported(inner, snippets, depth + 1)?);
            continue;
        }
        if let Some(block) = one.block.take() {
            one.block = Some(imported(block, snippets, depth)?);
        }
        found.push(one);
    }
    Ok(found)
}

/// Fills in the words of `import`, and its block where the snippet has `{block}`.
fn replaced(directive: &Directive, arguments: &[String], block: &[Directive]) -> Vec<Directive> {
    if directive.name == "{block}" {
        return block.to_vec();
    }
    let inside = |inner: &Vec<Directive>| inner.iter().flat_map(|one| replaced(one, arguments, block)).collect();
    let mut words = with_arguments(vec![directive.name.clone()], arguments);
    let name = if words.is_empty() { String::new() } else { words.remove(0) };
    words.extend(with_arguments(directive.words.clone(), arguments));
    vec![Directive { name, words, block: directive.block.as_ref().map(inside), line: directive.line }]
}

/// Fills in `{args[0]}`, and all words for `{args[:]}`.
fn with_arguments(words: Vec<String>, arguments: &[String]) -> Vec<String> {
    let one = |word: String| {
        arguments.iter().enumerate().fold(word, |word, (at, argument)| {
            word.replace(&format!("{{args[{at}]}}"), argument).replace(&format!("{{args.{at}}}"), argument)
        })
    };
    let all = |word: String| if word == "{args[:]}" { arguments.to_vec() } else { vec![one(word)] };
    words.into_iter().flat_map(all).collect()
}

type Line = (Vec<String>, usize);

struct Reader<'a> {
    lines: &'a [Line],
    at: usize,
}

impl Reader<'_> {
    fn body(&mut self, depth: usize) -> Result<Vec<Directive>, String> {
        let mut all = Vec::new();
        while let Some((words, line)) = self.lines.get(self.at) {
            if words == &["}"] {
                return Ok(all);
            }
            self.at += 1;
            let (name, rest) = words.split_first().map_or(("", &[][..]), |(name, rest)| (name.as_str(), rest));
            let opens = words.last().is_some_and(|word| word == "{");
            let words = if opens { rest.split_last().map_or(&[][..], |(_, words)| words) } else { rest };
            let block = match opens {
                true if depth == MAX_DEPTH => return Err(format!("line {line}: blocks are nested too deeply")),
                true => {
                    let inner = self.body(depth + 1)?;
                    if self.at >= self.lines.len() {
                        return Err(format!("line {line}: this block is not closed"));
                    }
                    self.at += 1;
                    Some(inner)
                }
                false => None,
            };
            all.push(Directive { name: name.to_owned(), words: words.to_vec(), block, line: *line });
        }
        Ok(all)
    }
}

/// Splits the text into lines of words, with line numbers. A comma or backslash at the end continues a line.
fn lines(text: &str) -> Result<Vec<Line>, String> {
    let mut all: Vec<Line> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let (mut line, mut first) = (1, 1);
    let mut chars = text.chars().peekable();
    loop {
        let next = chars.next();
        match next {
            None | Some('\n') => {
                let goes_on = words.last().is_some_and(|word| word.ends_with(',') || word == "\\");
                if goes_on && next.is_some() {
                    words.retain(|word| word != "\\");
                } else if !words.is_empty() {
                    all.push((std::mem::take(&mut words), first));
                }
                if next.is_none() {
                    return Ok(all);
                }
                line += 1;
            }
            Some(c) if c.is_whitespace() => {}
            Some('#') => while chars.next_if(|c| *c != '\n').is_some() {},
            Some(c) => {
                if words.is_empty() {
                    first = line;
                }
                let mut word = String::new();
                if matches!(c, '"' | '`') {
                    let start = line;
                    loop {
                        match chars.next() {
                            None => return Err(format!("line {start}: a quote is not closed")),
                            Some('\\') if c == '"' && chars.peek() == Some(&'"') => word.extend(chars.next()),
                            Some(end) if end == c => break,
                            Some(inner) => {
                                line += usize::from(inner == '\n');
                                word.push(inner);
                            }
                        }
                    }
                } else {
                    word.push(c);
                    while let Some(inner) = chars.next_if(|c| !c.is_whitespace()) {
                        word.push(inner);
                    }
                }
                words.push(environment(&word));
            }
        }
    }
}

/// Replaces `{$NAME:default}` with its default: the variables of Caddy's process are unknown here.
fn environment(word: &str) -> String {
    let Some((before, rest)) = word.split_once("{$") else { return word.to_owned() };
    let Some((name, after)) = rest.split_once('}') else { return word.to_owned() };
    let value = name.split_once(':').map_or("", |(_, default)| default);
    format!("{before}{value}{}", environment(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_blocks_snippets_and_quotes_are_read() {
        let text = "{\n\temail a@b.example\n}\n(common) {\n\tencode gzip\n\theader X {args[0]}\n}\n\
                    a.example,\nb.example { # two\n\timport common \"one two\"\n\troot * {$ROOT:/srv}/a\n\
                    \tphp_server {\n\t\tindex x.php\n\t}\n}\n";
        let all = parse(text, None).unwrap();
        assert_eq!((all[0].name.as_str(), all[0].inner()[0].word(0)), ("{", "a@b.example"));
        assert_eq!(all[1].words, ["a.example", "b.example"]);
        let inner = all[1].inner();
        assert_eq!((inner[1].word(1), inner[2].word(1)), ("one two", "/srv/a"));
        assert_eq!((inner[3].line, inner[3].inner()[0].word(0)), (12, "x.php"));
        let bare = parse(":8080\nroot * /srv\nfile_server\n", None).unwrap();
        assert_eq!((bare[0].words.as_slice(), bare[0].inner().len()), (&[":8080".to_owned()][..], 2));
        for wrong in
            ["a {", "}", "a.example {\n\tx \"y\n}", "x y\nz {\n}\n", "(a) {\n\timport a\n}\n:80 {\n\timport a\n}\n"]
        {
            assert!(parse(wrong, None).is_err(), "{wrong}");
        }
    }
}
