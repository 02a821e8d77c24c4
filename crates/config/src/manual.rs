//! Manual pages and shell completions, generated from the command line's definition and the table of settings.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use clap::Command;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;

use crate::cli::{PROGRAM, definition, flag_rows};
use crate::kind::Kind;
use crate::row::Row;
use crate::settings::{PoolSettings, Settings};
use crate::settings_proxy::ProxySettings;
use crate::settings_site::SiteKeys;
use crate::strict::SECTIONS;

/// Completions of the command line; empty for an unknown shell.
pub fn completions(shell: &str) -> Vec<u8> {
    let mut out = Vec::new();
    if let Ok(shell) = shell.parse::<Shell>() {
        clap_complete::generate(shell, &mut offered(), PROGRAM, &mut out);
    }
    out
}

/// The command line for completions: without hidden commands, and with the possible words of settings. The parser does
/// not check these words, because the check of the settings reports errors the same way for all sources.
fn offered() -> Command {
    let whole = definition();
    let apps = ["auto", "none"].into_iter().chain(howdah_rules::presets::NAMES.iter().copied()).collect();
    let words = flag_rows().filter_map(|(_, row)| match row.kind {
        Kind::Choice(words) => Some((row.flag?, words.to_vec())),
        _ => None,
    });
    let words: Vec<_> = words.chain([("app", apps)]).collect();
    let commands = whole.get_subcommands().filter(|command| !command.is_hide_set()).map(|command| {
        let has = |flag: &str| command.get_arguments().any(|arg| arg.get_id() == flag);
        let known: Vec<_> = words.iter().filter(|(flag, _)| has(flag)).collect();
        known.into_iter().fold(command.clone(), |command, (flag, words)| {
            command.mut_arg(*flag, |arg| arg.value_parser(PossibleValuesParser::new(words.clone())))
        })
    });
    Command::new(PROGRAM).version(env!("CARGO_PKG_VERSION")).subcommands(commands)
}

/// Writes every manual page into a directory: `howdah(1)`, one for each command, and `howdah.toml(5)`.
///
/// # Errors
/// The directory cannot be written to.
pub fn write_pages(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    clap_mangen::generate_to(definition(), directory)?;
    let main = directory.join(format!("{PROGRAM}.1"));
    std::fs::write(&main, std::fs::read_to_string(&main)? + &main_page_end())?;
    std::fs::write(directory.join("howdah.toml.5"), settings_page())
}

/// The sections of `howdah(1)` after its commands.
fn main_page_end() -> String {
    let mut page = String::new();
    section(&mut page, "EXIT STATUS");
    let statuses = [
        ("0", "Success; for `check`: the server would start."),
        ("1", "Failure; the message gives the reason. For `check`: the settings have errors."),
        ("2", "The command line is wrong; for commands other than `check` and `doctor` also: the settings are."),
    ];
    entries(&mut page, 'B', &statuses);
    section(&mut page, "FILES");
    let files = [
        ("./howdah.toml", "The settings, unless `--config` names another file."),
        (
            "/etc/howdah/howdah.toml",
            "The settings of the packaged service, which commands about a running server look for, too.",
        ),
        ("/etc/howdah/conf.d/*.toml", "Its sites."),
        ("/run/howdah/admin.sock", "The packaged server's admin socket."),
        ("/var/lib/howdah", "Certificates, keys, and learned paths of pools."),
        ("/var/log/howdah", "Logs."),
    ];
    entries(&mut page, 'I', &files);
    section(&mut page, "EXAMPLES");
    let commands = [
        ("howdah serve", "Serves the application in the current directory on 127.0.0.1:8080."),
        ("howdah check --config /etc/howdah/howdah.toml", "Shows the settings in effect and every mistake."),
        ("howdah reload", "Makes the running server read its settings and code again."),
    ];
    entries(&mut page, 'B', &commands);
    section(&mut page, "SEE ALSO");
    text(&mut page, "`howdah-serve`(1), `howdah.toml`(5)");
    page
}

/// Adds names in a font (`B` or `I`), each with its description.
fn entries(page: &mut String, font: char, list: &[(&str, &str)]) {
    for (name, meaning) in list {
        page.push_str(".TP\n");
        let _ = writeln!(page, "\\f{font}{}\\fR", escaped(name));
        text(page, meaning);
    }
}

/// `howdah.toml(5)`.
fn settings_page() -> String {
    let mut page = String::new();
    let _ = writeln!(page, ".TH howdah.toml 5 \"\" \"howdah {}\"", env!("CARGO_PKG_VERSION"));
    section(&mut page, "NAME");
    text(&mut page, "howdah.toml - settings of the howdah server");
    section(&mut page, "DESCRIPTION");
    text(
        &mut page,
        "`howdah serve` takes each setting from, in this order: its flag, its environment variable, `howdah.toml` (`--config FILE`, else \
         the one in the current directory), its default. `howdah check` prints every setting with its origin. Durations are \
         written \"500ms\", \"30s\", \"2m\", \"1h\" or as a number of seconds; sizes \"64K\", \"8M\", \"1G\" or as a number of bytes. Relative \
         paths start from the directory of the file. Unknown keys are errors.",
    );
    part(&mut page, "TOP LEVEL", "The server as a whole.", Settings::ROWS);
    let pools = "At the top level these are the settings of the pool default; a section [pool.NAME] adds another \
                 pool, which accepts those of [php] too.";
    part(&mut page, "POOLS", pools, PoolSettings::ROWS);
    for (name, rows) in SECTIONS {
        part(&mut page, &format!("[{name}]"), "", rows);
    }
    part(&mut page, "[proxy.NAME]", "Servers that rules forward requests to.", ProxySettings::ROWS);
    part(&mut page, "[[site]]", "A site, served under certain hosts.", SiteKeys::ROWS);
    section(&mut page, "[[rule]]");
    text(&mut page, "Conditions on requests, and actions for those that meet them all.");
    for key in howdah_rules::keys::KEYS {
        page.push_str(".TP\n");
        let _ = writeln!(page, "\\fB{}\\fR = {}", escaped(key.name), escaped(key.example));
        text(&mut page, key.doc);
    }
    section(&mut page, "SEE ALSO");
    text(&mut page, "`howdah`(1), `howdah-check`(1), `howdah-serve`(1)");
    page
}

fn section(page: &mut String, title: &str) {
    let _ = writeln!(page, ".SH \"{}\"", escaped(title));
}

fn part(page: &mut String, title: &str, about: &str, rows: &[Row]) {
    section(page, title);
    text(page, about);
    for row in rows {
        page.push_str(".TP\n");
        let _ = writeln!(page, "\\fB{}\\fR = {}", escaped(row.key), escaped(row.example));
        let paragraphs = row.text();
        for (at, paragraph) in paragraphs.split("\n\n").enumerate() {
            if at > 0 {
                page.push_str(".IP\n");
            }
            text(page, paragraph);
        }
        let flag = row.flag.map(|flag| format!(" Flag: `--{flag}`.")).unwrap_or_default();
        text(page, &format!("Default: {}.{flag}", row.default));
    }
}

/// Adds a paragraph; text between backticks is bold.
fn text(page: &mut String, paragraph: &str) {
    if paragraph.is_empty() {
        return;
    }
    let pieces = paragraph.split('`').enumerate();
    let pieces =
        pieces.map(|(at, piece)| if at % 2 == 1 { format!("\\fB{}\\fR", escaped(piece)) } else { escaped(piece) });
    let line: String = pieces.collect();
    // roff reads a line that begins with a dot or a quote as a request.
    let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
    let _ = writeln!(page, "{guard}{line}");
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\(rs").replace('-', "\\-").replace('\'', "\\(aq").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::SHELLS;

    #[test]
    fn every_command_has_its_page_and_every_setting_its_paragraph() {
        let dir = tempfile::tempdir().unwrap();
        write_pages(dir.path()).unwrap();
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        let serve = read("howdah-serve.1");
        for command in definition().get_subcommands().filter(|command| !command.is_hide_set()) {
            let page = read(&format!("howdah-{}.1", command.get_name()));
            assert!(page.contains(&escaped(&command.get_about().unwrap().to_string())), "{page}");
        }
        assert!(!dir.path().join("howdah-man.1").exists());
        for heading in ["EXIT STATUS", "FILES", "EXAMPLES", "SEE ALSO"] {
            assert!(read("howdah.1").contains(&format!(".SH \"{heading}\"")), "{heading}");
        }
        let toml = read("howdah.toml.5");
        let rows = SECTIONS.iter().flat_map(|(_, rows)| rows.iter());
        for row in rows.chain(Settings::ROWS).chain(PoolSettings::ROWS) {
            assert!(toml.contains(&format!("\n\\fB{}\\fR = ", escaped(row.key))), "{}", row.name());
            assert!(row.flag.is_none_or(|flag| serve.contains(&escaped(&format!("--{flag}")))), "{}", row.name());
        }
        let order =
            |line: &&str| line.starts_with('.') && ![".TH ", ".SH ", ".TP", ".IP"].iter().any(|o| line.starts_with(o));
        assert_eq!(toml.lines().find(order), None);
    }

    #[test]
    fn completions_know_every_command_and_flag() {
        for shell in SHELLS {
            let text = String::from_utf8(completions(shell)).unwrap();
            for word in ["serve", "check", "status", "completions", "allow-root", "set"] {
                assert!(text.contains(word), "{shell}: no {word}");
            }
            // Includes words of settings, and excludes hidden commands.
            for word in ["snapshot", "wordpress", "async"] {
                assert!(text.contains(word), "{shell}: no {word}");
            }
            assert!(!text.contains("sendmail"), "{shell}");
        }
        assert_eq!(completions("ksh"), b"");
    }
}
