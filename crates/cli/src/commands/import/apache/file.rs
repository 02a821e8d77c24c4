//! Parses Apache's configuration into directives, with the reader of lines and words for `.htaccess` files.

use crate::commands::import::directive::Directive;
use howdah_htaccess::{Line, LineKind, lines, rewrite_words, words};

/// Maximum nesting depth of sections.
const MAX_DEPTH: usize = 32;

/// Parses a file. Treats every module in `<IfModule>` as loaded, and replaces variables from `Define` and Debian's
/// defaults.
///
/// # Errors
/// The line with a mistake.
pub(super) fn parse(text: &str) -> Result<Vec<Directive>, String> {
    let lines = lines(text.as_bytes()).map_err(|mistake| mistake.to_string())?;
    let mut reader =
        Reader { lines: &lines, at: 0, variables: vec![("APACHE_LOG_DIR".into(), "/var/log/apache2".into())] };
    let mut all = Vec::new();
    reader.body(None, 0, &mut all)?;
    Ok(all)
}

struct Reader<'a> {
    lines: &'a [Line],
    at: usize,
    variables: Vec<(String, String)>,
}

impl Reader<'_> {
    fn body(&mut self, open: Option<&Line>, depth: usize, all: &mut Vec<Directive>) -> Result<(), String> {
        let lines = self.lines;
        while let Some(line) = lines.get(self.at) {
            self.at += 1;
            let wrong = |what: &str| Err(format!("line {}: {what}", line.number));
            match line.kind {
                LineKind::Close if open.is_some_and(|open| open.name.eq_ignore_ascii_case(&line.name)) => return Ok(()),
                LineKind::Close => return wrong(&format!("</{}> closes nothing", line.name)),
                LineKind::Open if depth == MAX_DEPTH => return wrong("too many sections within each other"),
                LineKind::Open => {
                    let mut inner = Vec::new();
                    self.body(Some(line), depth + 1, &mut inner)?;
                    if line.name.eq_ignore_ascii_case("IfModule") && !line.rest.starts_with('!') {
                        all.append(&mut inner);
                    } else {
                        all.push(Directive { block: Some(inner), ..self.directive(line) });
                    }
                }
                LineKind::Directive => {
                    let directive = self.directive(line);
                    if directive.name.eq_ignore_ascii_case("Define") {
                        self.variables.push((directive.word(0).to_owned(), directive.word(1).to_owned()));
                    }
                    all.push(directive);
                }
            }
        }
        open.map_or(Ok(()), |open| Err(format!("line {}: <{}> is not closed", open.number, open.name)))
    }

    fn directive(&self, line: &Line) -> Directive {
        let replaced = |text: String, (name, value): &(String, String)| text.replace(&format!("${{{name}}}"), value);
        let rest = self.variables.iter().fold(line.rest.clone(), replaced);
        let is_rewrite = line.name.to_ascii_lowercase().starts_with("rewrite");
        let words = if is_rewrite { rewrite_words(&rest) } else { words(&rest) };
        Directive { name: line.name.clone(), words, block: None, line: line.number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_modules_and_variables_are_read() {
        let text = "Define dir /srv/a\n<IfModule mod_x.c>\nAlias /a ${dir}/b\n</IfModule>\n<Directory \"/srv/c d\">\n\
                    RewriteRule ^a\\.b$ - [F]\n</Directory>\n<IfModule !mod_x.c>\nAlias /n /n\n</IfModule>\n";
        let all = parse(text).unwrap();
        assert_eq!(all[1].words, ["/a", "/srv/a/b"]);
        assert_eq!((all[2].word(0), all[2].line), ("/srv/c d", 5));
        assert_eq!(all[2].inner()[0].words, ["^a\\.b$", "-", "[F]"]);
        assert_eq!(all[3].shown(), "IfModule !mod_x.c");
        for wrong in ["<A>", "</A>", "<A>\n</B>", "<A"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
