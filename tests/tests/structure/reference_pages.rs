//! Hand-written pages of `docs/reference` name what the code has, and nothing else: functions and classes of the PHP
//! stubs, fields of `howdah status --json`, variables of TLS, directives of other servers that are converted.

use super::read;
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// Fails with the names that only one of the two has.
fn assert_same(page: &str, documented: &BTreeSet<String>, real: &BTreeSet<String>) {
    let lacking: Vec<_> = real.difference(documented).collect();
    let invented: Vec<_> = documented.difference(real).collect();
    assert!(lacking.is_empty() && invented.is_empty(), "{page} lacks {lacking:#?}; the code has no {invented:#?}");
}

/// Sections of a page, each with its heading, without the `#`.
fn sections(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let after_heading = page.split("\n#").skip(1);
    after_heading.filter_map(|section| Some(section.trim_start_matches('#').trim_start().split_once('\n')?))
}

/// First cells of the rows of all tables in a text, without the heads of the tables.
fn first_cells(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let is_row = |at: usize| lines[at].starts_with("| ") && !lines.get(at + 1).is_some_and(|n| n.starts_with("|--"));
    let rows = (0..lines.len()).filter(|at| is_row(*at));
    rows.filter_map(|at| lines[at][2..].split(" | ").next()).collect()
}

/// Code in backticks, with the table's escapes removed.
fn code(cell: &str) -> impl Iterator<Item = String> {
    cell.split('`').skip(1).step_by(2).map(|code| code.replace("\\|", "|"))
}

/// Signatures of the stubs: `Howdah\mode(): string`, `Howdah\WebSocket::event(): ?WebSocketEvent`.
fn stubs() -> BTreeSet<String> {
    let declared = Regex::new(
        r"^\s*(?:(namespace) ?([\w\\]*) \{|(?:final )?(class) (\w+)|(?:[a-z]+ )*(function) (.+) \{\}|public (\w+ \$\w+))",
    );
    let (declared, stub) = (declared.unwrap(), read("php/stubs/howdah.stub.php"));
    let (mut namespace, mut class, mut found) = (String::new(), String::new(), BTreeSet::new());
    for line in stub.lines() {
        let Some(parts) = declared.captures(line) else { continue };
        let part = |number: usize| parts.get(number).map_or("", |part| part.as_str());
        if part(1) == "namespace" {
            namespace = if part(2).is_empty() { String::new() } else { format!("{}\\", part(2)) };
            class.clear();
        } else if part(3) == "class" {
            class = format!("{}::", part(4));
        } else if !line.trim_start().starts_with("private") {
            found.insert(format!("{namespace}{class}{}{}", part(6), part(7)));
        }
    }
    found
}

/// Sections whose tables are about functions of PHP.
const PHPS_FUNCTIONS: &[&str] = &["Ends of requests and scripts", "Calls in async mode"];

#[test]
fn functions_and_classes_of_the_stubs_are_on_their_page() {
    let page = read("docs/reference/php.md");
    let mut documented = BTreeSet::new();
    for (heading, section) in sections(&page) {
        if PHPS_FUNCTIONS.contains(&heading) {
            continue;
        }
        let class = code(heading).next().map_or(String::new(), |class| format!("{class}::"));
        let signatures = first_cells(section).into_iter().flat_map(code);
        let signatures = signatures.filter(|code| code.contains("(") || (!class.is_empty() && code.contains('$')));
        documented.extend(signatures.map(|code| format!("{class}{code}")));
    }
    let real = stubs();
    assert!(real.len() > 60, "{real:#?}");
    assert_same("docs/reference/php.md", &documented, &real);
}

/// Files with the structures of `GET /status`. The first structure is the whole.
const STATUS: &[&str] = &[
    "crates/cli/src/server/admin/mod.rs",
    "crates/pool/src/status.rs",
    "crates/pool/src/learning/demotions.rs",
    "crates/pool/src/queue/cold_starts.rs",
    "crates/site/src/mercure.rs",
    "crates/observe/src/connection_pool.rs",
    "crates/tls/src/acme/report.rs",
];

/// Fields of the structures that become JSON, each with its type.
fn structures() -> BTreeMap<String, Vec<(String, String)>> {
    let structure = Regex::new(r"(?s)Serialize[^\n]*\n(?:pub )?struct (\w+) \{\n(.*?)\n\}").unwrap();
    let field = Regex::new(r"(?m)(#\[serde\(skip\)\]\n)?^    (?:pub )?(\w+): (.+),$").unwrap();
    let mut found = BTreeMap::new();
    for path in STATUS {
        for of_one in structure.captures_iter(&read(path)) {
            let fields = field.captures_iter(&of_one[2]).filter(|field| field.get(1).is_none());
            let fields = fields.map(|field| (field[2].to_owned(), field[3].to_owned())).collect();
            found.insert(of_one[1].to_owned(), fields);
        }
    }
    found
}

/// Adds the paths of a structure's fields, such as `pools[].workers[].pid`.
fn add_paths(name: &str, before: &str, all: &BTreeMap<String, Vec<(String, String)>>, found: &mut BTreeSet<String>) {
    for (field, kind) in &all[name] {
        let inner = kind.trim_start_matches("Option<").trim_start_matches("Vec<").trim_end_matches('>');
        let list = if kind.contains("Vec<") { "[]" } else { "" };
        // The page explains durations once.
        match all.contains_key(inner) && inner != "Durations" {
            true => add_paths(inner, &format!("{before}{field}{list}."), all, found),
            false => drop(found.insert(format!("{before}{field}"))),
        }
    }
}

#[test]
fn fields_of_the_status_are_on_their_page() {
    let mut real = BTreeSet::new();
    add_paths("Status", "", &structures(), &mut real);
    // A worker's pools have the fields of the pool's.
    real.retain(|path| !path.starts_with("pools[].workers[].connection_pools[]."));
    real.insert("pools[].workers[].connection_pools".to_owned());
    assert!(real.len() > 100, "{real:#?}");
    let page = read("docs/reference/status.md");
    let mut documented = BTreeSet::new();
    for (heading, section) in sections(&page) {
        let Some((_, of)) = heading.split_once("JSON: ") else { continue };
        let before = code(of).next().map_or(String::new(), |path| format!("{path}."));
        documented.extend(first_cells(section).into_iter().flat_map(code).map(|field| format!("{before}{field}")));
    }
    assert_same("docs/reference/status.md", &documented, &real);
}

#[test]
fn variables_of_tls_are_on_their_page() {
    let name = Regex::new(r#"["`](SSL_\w+)["`]"#).unwrap();
    let names = |path| name.captures_iter(&read(path)).map(|found| found[1].to_owned()).collect::<BTreeSet<_>>();
    let real = names("crates/site/src/phase/php/variables.rs");
    assert!(real.len() > 10, "{real:?}");
    assert_same("docs/reference/php.md", &names("docs/reference/php.md"), &real);
}

/// Names in the literals of some sources, those of a table separated by `|`. `x.*` stands for all that begin with `x.`.
fn literals(sources: &[String]) -> BTreeSet<String> {
    let literal = Regex::new(r#""((?:[^"\\]|\\.)*)""#).unwrap();
    let mut found = BTreeSet::new();
    for source in sources {
        let names = literal
            .captures_iter(source)
            .flat_map(|literal| literal[1].split('|').map(str::to_owned).collect::<Vec<_>>());
        found.extend(names);
    }
    found
}

fn is_known(name: &str, known: &BTreeSet<String>) -> bool {
    let stands_for = |own: &String| own.len() > 2 && own.strip_suffix('*').is_some_and(|start| name.starts_with(start));
    known.contains(name) || known.iter().any(|own| stands_for(own) || own.starts_with(&format!("{name}.")))
}

/// Directives in the first cells of a section. A cell that begins with `…` has options of the directive above.
fn directives(section: &str) -> BTreeSet<String> {
    let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c));
    let mut found = BTreeSet::new();
    for cell in first_cells(section).into_iter().filter(|cell| !cell.starts_with('…')) {
        let words = code(cell).map(|code| code.split([' ', ';', ':', '=', '[']).next().unwrap_or("").to_owned());
        found.extend(words.filter(|word| is_name(&word.as_str()) && word != "frankenphp"));
    }
    found
}

#[test]
fn directives_of_other_servers_are_known_to_their_importers() {
    let import = "crates/cli/src/commands/import/";
    let under = |folder: &str| {
        let is_source = |path: &String| path.starts_with(&format!("{import}{folder}")) && !path.ends_with("tests.rs");
        super::files().iter().filter(|path| is_source(path)).map(|path| read(path)).collect::<Vec<_>>()
    };
    let (nginx, caddy) = (under("nginx/"), under("caddy/"));
    let fpm = ["crates/cli/src/commands/fpm/directives.rs", "crates/config/src/fpm.rs"].map(read).to_vec();
    let page = read("docs/reference/other-servers.md");
    let mut count = 0;
    for (heading, section) in sections(&page) {
        let sources = match heading {
            "nginx" | "Rules of nginx" | "Proxies of nginx" => &nginx,
            "PHP-FPM" => &fpm,
            "Caddy" | "`reverse_proxy`" | "Global options" | "FrankenPHP" => &caddy,
            "RoadRunner" => &under("roadrunner.rs"),
            _ => panic!("which importer reads {heading}?"),
        };
        let known = literals(sources);
        let unknown: Vec<String> = directives(section).into_iter().filter(|name| !is_known(name, &known)).collect();
        assert!(unknown.is_empty(), "{heading}: the importer has no row for {unknown:?}");
        count += directives(section).len();
    }
    assert!(count > 150, "{count}");
}

#[test]
fn directives_of_htaccess_files_are_on_their_page() {
    let page = read("docs/reference/htaccess.md").to_ascii_lowercase();
    let first_word = |code: String| code.split(' ').next().unwrap_or_default().to_owned();
    let documented: BTreeSet<String> = code(&page).map(first_word).collect();
    let arms = Regex::new(r#"(?m)^            ("[a-z_]+"(?: \| "[a-z_]+")*) (?:=>|if)"#).unwrap();
    let directives = read("crates/htaccess/src/directives.rs");
    let arms: Vec<String> = arms.captures_iter(&directives).map(|arm| arm[1].to_owned()).collect();
    let mut real = literals(&arms);
    real.retain(|name| !name.is_empty());
    assert!(real.len() > 35, "{real:?}");
    let lacking: Vec<_> = real.difference(&documented).collect();
    assert!(lacking.is_empty(), "docs/reference/htaccess.md lacks {lacking:?}");
}

/// Functions of ours and members of types that a text names in backticks: `howdah_rs_flush()`, `Pool::reload`.
fn names_of_code(text: &str) -> BTreeSet<String> {
    let function =
        Regex::new(r"^(?:howdah_(?:rs|c)|shim|snapshot|async|websocket|coroutine|tap)_\w+(?:\(\))?$").unwrap();
    let member = Regex::new(r"^[A-Z]\w+::\w+(?:\(\))?$").unwrap();
    let is_name = |code: &String| function.is_match(code) || member.is_match(code);
    code(text).filter(is_name).map(|code| code.trim_end_matches("()").to_owned()).collect()
}

#[test]
fn code_that_the_documents_on_internals_name_exists() {
    let is_code = |path: &&String| ["rs", "c", "h", "php"].iter().any(|end| path.ends_with(&format!(".{end}")));
    let files = super::files();
    let sources: String =
        files.iter().filter(is_code).filter(|path| !path.contains("php-src")).map(|path| read(path)).collect();
    let word = Regex::new(r"\w+").unwrap();
    let words: BTreeSet<&str> = word.find_iter(&sources).map(|word| word.as_str()).collect();
    let mut count = 0;
    for page in files.iter().filter(|path| path.starts_with("docs/internals/") || *path == "ARCHITECTURE.md") {
        for name in names_of_code(&read(page)) {
            assert!(name.split("::").all(|part| words.contains(part)), "{page} names {name}, which does not exist");
            count += 1;
        }
    }
    assert!(count > 15, "{count}");
}
