//! Laravel's `config/octane.php`. The file is PHP code, so only literal values are read: texts, numbers, and `env()`
//! with a default or a value in the project's `.env`.

use super::directive::Directive;
use super::page::Page;
use super::table::{Row, Scope, accept, apply, dropped, page};

const TABLE: &[Row] = &[
    page("server", "mode = \"snapshot\"; for worker mode see the package howdah/octane", |_, page| {
        accept!(page.keys.set("mode", "snapshot"))
    })
    .changed(),
    page("https", "nothing: addresses without https://", |https, _| https.word(0) == "false"),
    dropped("https", "write an address with https:// into listen, and tls.auto = true"),
    page("max_execution_time", "deadline", |time, page| {
        page.keys
            .write("deadline", if time.word(0) == "0" { "0".to_owned() } else { format!("\"{}s\"", time.word(0)) });
        time.word(0).parse::<u32>().is_ok()
    }),
    dropped("watch", "`howdah dev` loads changed code"),
    dropped(
        "listeners|warm|flush",
        "a snapshot is restored after each request; in worker mode, Octane's package resets the state",
    ),
    dropped("cache|tables|swoole", "only Swoole has these"),
    dropped("garbage", "max_memory replaces workers"),
];

/// Converts a configuration, with a comment for each key. `environment` is the text of the project's `.env`.
///
/// # Errors
/// The file does not return an array.
pub(super) fn converted(text: &str, environment: &str) -> Result<String, String> {
    let all = entries(text);
    if all.is_empty() {
        return Err("it returns no array that can be read".to_owned());
    }
    let mut page = Page::default();
    page.keys.set("root", "public");
    page.keys.set("app", "laravel");
    for (name, value, line) in all {
        let word = plain(&value, environment);
        let shown = Directive { name: name.clone(), words: vec![word.clone().unwrap_or_default()], block: None, line };
        let is_code = word.is_none() && !value.starts_with('[');
        if is_code {
            page.report.dropped(&shown, "it is code, which is not run: convert it by hand");
        } else {
            let became = apply(TABLE, &shown, &mut Scope::Page(&mut page));
            page.report.say(&shown, became);
        }
    }
    Ok(page.finish("Octane's configuration"))
}

/// Value of a text, a number or `env('NAME', DEFAULT)`.
fn plain(value: &str, environment: &str) -> Option<String> {
    if let Some(inside) = value.strip_prefix("env(").and_then(|rest| rest.strip_suffix(')')) {
        let (name, default) = inside.split_once(',').unwrap_or((inside, "''"));
        let name = plain(name.trim(), environment)?;
        let set = environment.lines().find_map(|line| line.trim().strip_prefix(&name)?.trim_start().strip_prefix('='));
        return match set {
            Some(value) => Some(value.trim().trim_matches(['"', '\'']).to_owned()),
            None => plain(default.trim(), environment),
        };
    }
    let quoted = ['\'', '"'].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    let is_word = value.parse::<f64>().is_ok() || matches!(value, "true" | "false");
    quoted.filter(|text| !text.contains(['\'', '"', '$'])).or_else(|| is_word.then_some(value)).map(str::to_owned)
}

/// Keys of the returned array, with the text of their values and their line numbers.
fn entries(text: &str) -> Vec<(String, String, usize)> {
    let (mut all, mut depth, mut line, mut key, mut current) = (Vec::new(), 0_usize, 1, None, String::new());
    let code = text.split_once("return").map_or("", |(before, code)| {
        line += before.matches('\n').count();
        code
    });
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        line += usize::from(c == '\n');
        match c {
            '/' if chars.peek() == Some(&'*') => {
                let mut before = ' ';
                for inner in chars.by_ref() {
                    line += usize::from(inner == '\n');
                    if before == '*' && inner == '/' {
                        break;
                    }
                    before = inner;
                }
            }
            '/' if chars.peek() == Some(&'/') => while chars.next_if(|c| *c != '\n').is_some() {},
            '\'' | '"' => {
                current.push(c);
                for inner in chars.by_ref() {
                    line += usize::from(inner == '\n');
                    current.push(inner);
                    if inner == c {
                        break;
                    }
                }
            }
            '[' if depth == 0 => depth = 1,
            '[' | '(' => {
                depth += 1;
                current.push(c);
            }
            ']' | ')' => {
                depth = depth.saturating_sub(1);
                if depth > 0 {
                    current.push(c);
                }
            }
            '>' if depth == 1 && current.ends_with('=') => {
                current.pop();
                key = Some((current.trim().trim_matches(['\'', '"']).to_owned(), line));
                current.clear();
            }
            ',' if depth == 1 => {
                if let Some((name, line)) = key.take() {
                    all.push((name, current.trim().to_owned(), line));
                }
                current.clear();
            }
            c => current.push(c),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_are_read_and_code_is_reported() {
        let text = "<?php\n\nuse A\\B;\n\nreturn [\n    /* a 'comment', */\n    'server' => env('OCTANE_SERVER', 'roadrunner'),\n\
                    \x20   'https' => env('OCTANE_HTTPS', false),\n    'listeners' => [\n        B::class => [X::class, 'a'],\n    ],\n\
                    \x20   // one, two\n    'garbage' => 50,\n    'max_execution_time' => env('OCTANE_TIME', 30),\n\
                    \x20   'odd' => max(1, 2),\n];\n";
        let page = converted(text, "APP=1\nOCTANE_TIME=\"45\"\n").unwrap();
        for expected in [
            "root = \"public\"\napp = \"laravel\"\nmode = \"snapshot\"\ndeadline = \"45s\"\n",
            "# 7: server roadrunner: changed: mode",
            "# 8: https false: taken: nothing",
            "# 9: listeners : dropped: a snapshot",
            "# 13: garbage 50: dropped: max_memory",
            "# 15: odd : dropped: it is code",
        ] {
            assert!(page.contains(expected), "{expected}\n{page}");
        }
        assert!(converted("<?php\n", "").is_err());
    }
}
