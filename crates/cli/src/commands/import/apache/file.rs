//! Parses Apache's configuration into directives, with the reader of lines and words for `.htaccess` files.

use crate::commands::import::directive::Directive;
use crate::commands::import::include;
use howdah_htaccess::{Line, LineKind, lines, rewrite_words, words};
use std::path::Path;

/// Maximum nesting depth of sections.
const MAX_DEPTH: usize = 32;

/// Version of Apache whose configurations are read.
const VERSION: [u32; 3] = [2, 4, 99];

/// Parses a file, and those that it includes. Treats every module in `<IfModule>` as loaded, and replaces variables
/// from `Define` and Debian's defaults.
///
/// # Errors
/// The line with a mistake.
pub(super) fn parse(text: &str, directory: Option<&Path>) -> Result<Vec<Directive>, String> {
    let lines = lines(text.as_bytes()).map_err(|mistake| mistake.to_string())?;
    let variables = vec![("APACHE_LOG_DIR".into(), "/var/log/apache2".into())];
    let mut reader = Reader { lines: &lines, at: 0, variables, directory, files: 0 };
    let mut all = Vec::new();
    reader.body(None, 0, &mut all)?;
    Ok(all)
}

struct Reader<'a> {
    lines: &'a [Line],
    at: usize,
    variables: Vec<(String, String)>,
    /// Directory to which the names of included files are relative; `None`: they are not read.
    directory: Option<&'a Path>,
    /// Number of files that include the one being read.
    files: usize,
}

impl Reader<'_> {
    /// Reads the files that a line includes, as if their lines were there. Returns `false` if there are none.
    fn files(&mut self, include: &Directive, all: &mut Vec<Directive>) -> Result<bool, String> {
        let is_include = ["Include", "IncludeOptional"].iter().any(|name| include.name.eq_ignore_ascii_case(name))
            && !is_built_in(include);
        let Some(directory) = self.directory.filter(|_| is_include) else { return Ok(false) };
        // A directory stands for all files in it.
        let pattern =
            if include.word(0).ends_with('/') { format!("{}*", include.word(0)) } else { include.word(0).into() };
        let files = include::texts_of_server(&pattern, directory);
        if self.files == MAX_DEPTH && !files.is_empty() {
            return Err(format!("line {}: files include one another", include.line));
        }
        for (file, text) in &files {
            let in_file = |why: String| format!("{}: {why}", file.display());
            let lines = lines(text.as_bytes()).map_err(|mistake| in_file(mistake.to_string()))?;
            let variables = std::mem::take(&mut self.variables);
            let mut reader =
                Reader { lines: &lines, at: 0, variables, directory: self.directory, files: self.files + 1 };
            let mut inner = Vec::new();
            reader.body(None, 0, &mut inner).map_err(in_file)?;
            self.variables = reader.variables;
            all.extend(inner.into_iter().map(|one| one.at_line(include.line)));
        }
        Ok(!files.is_empty())
    }

    fn body(&mut self, open: Option<&Line>, depth: usize, all: &mut Vec<Directive>) -> Result<(), String> {
        let lines = self.lines;
        while let Some(line) = lines.get(self.at) {
            self.at += 1;
            let wrong = |what: &str| Err(format!("line {}: {what}", line.number));
            match line.kind {
                LineKind::Close if open.is_some_and(|open| open.name.eq_ignore_ascii_case(&line.name)) => return Ok(()),
                LineKind::Close => return wrong(&format!("</{}> closes nothing", line.name)),
                LineKind::Open if depth == MAX_DEPTH => return wrong("sections are nested too deeply"),
                LineKind::Open => {
                    let mut inner = Vec::new();
                    self.body(Some(line), depth + 1, &mut inner)?;
                    if self.holds(line) == Some(true) {
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
                    if !self.files(&directive, all)? {
                        all.push(directive);
                    }
                }
            }
        }
        open.map_or(Ok(()), |open| Err(format!("line {}: <{}> is not closed", open.number, open.name)))
    }

    /// `true` for a section whose lines always count. `None` if that is not known before requests.
    fn holds(&self, section: &Line) -> Option<bool> {
        let rest = section.rest.trim();
        let (is_negated, name) = rest.strip_prefix('!').map_or((false, rest), |name| (true, name));
        let holds = match section.name.to_ascii_lowercase().as_str() {
            "ifmodule" | "iffile" => true,
            "ifdefine" => self.variables.iter().any(|(own, _)| own == name),
            "ifversion" => return version_is(rest),
            _ => return None,
        };
        Some(holds != is_negated)
    }

    fn directive(&self, line: &Line) -> Directive {
        let replaced = |text: String, (name, value): &(String, String)| text.replace(&format!("${{{name}}}"), value);
        let rest = self.variables.iter().fold(line.rest.clone(), replaced);
        let is_rewrite = line.name.to_ascii_lowercase().starts_with("rewrite");
        let words = if is_rewrite { rewrite_words(&rest) } else { words(&rest) };
        Directive { name: line.name.clone(), words, block: None, line: line.number }
    }
}

/// `true` for files that load and set up modules.
pub(super) fn is_built_in(include: &Directive) -> bool {
    ["mods-enabled/", "conf.modules.d/"].iter().any(|part| include.word(0).contains(part))
}

/// Decides an `<IfVersion>`; `None` for a regular expression.
fn version_is(condition: &str) -> Option<bool> {
    let at = condition.find(|c: char| c.is_ascii_digit())?;
    let (operator, version) = (condition[..at].trim(), &condition[at..]);
    let wanted: Vec<u32> = version.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let order = VERSION.iter().copied().cmp(wanted.iter().copied().chain([0; 3]).take(VERSION.len()));
    Some(match operator {
        "" | "=" | "==" => VERSION.starts_with(&wanted),
        ">" => order.is_gt(),
        ">=" => order.is_ge(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        "!=" => !VERSION.starts_with(&wanted),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_modules_and_variables_are_read() {
        let text = "Define dir /srv/a\n<IfModule mod_x.c>\nAlias /a ${dir}/b\n</IfModule>\n<Directory \"/srv/c d\">\n\
                    RewriteRule ^a\\.b$ - [F]\n</Directory>\n<IfModule !mod_x.c>\nAlias /n /n\n</IfModule>\n";
        let all = parse(text, None).unwrap();
        assert_eq!(all[1].words, ["/a", "/srv/a/b"]);
        assert_eq!((all[2].word(0), all[2].line), ("/srv/c d", 5));
        assert_eq!(all[2].inner()[0].words, ["^a\\.b$", "-", "[F]"]);
        assert_eq!(all[3].shown(), "IfModule !mod_x.c");
        for wrong in ["<A>", "</A>", "<A>\n</B>", "<A"] {
            assert!(parse(wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn included_files_are_read_at_the_line_that_names_them() {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join("sites-available");
        for name in ["sites-available", "conf"] {
            std::fs::create_dir(top.path().join(name)).unwrap();
        }
        std::fs::write(top.path().join("conf/a.conf"), "Define x /srv\nAlias /a ${x}/a\n").unwrap();
        std::fs::write(top.path().join("conf/b.conf"), "Alias /b ${x}/b\n").unwrap();
        std::fs::write(dir.join("loop.conf"), "Include loop.conf\n").unwrap();
        let text = "# one\nInclude conf/\nIncludeOptional none/*.conf\nInclude none.conf\n";
        let all = parse(text, Some(&dir)).unwrap();
        let shown: Vec<(usize, String)> = all.iter().map(|one| (one.line, one.shown())).collect();
        let expected = [
            (2, "Define x /srv"),
            (2, "Alias /a /srv/a"),
            (2, "Alias /b /srv/b"),
            (3, "IncludeOptional none/*.conf"),
            (4, "Include none.conf"),
        ];
        assert_eq!(shown, expected.map(|(line, text)| (line, text.to_owned())));
        assert!(parse("Include loop.conf\n", Some(&dir)).is_err_and(|why| why.contains("one another")));
    }
}
