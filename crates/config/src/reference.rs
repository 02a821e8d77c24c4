//! The reference of all settings and the JSON schema of `howdah.toml`, generated from the table of settings.

use std::fmt::Write as _;

use howdah_rules::keys::{KEYS, Part};
use serde_json::{Map, Value as Json, json};

use crate::choice::SandboxProfile;
use crate::kind::Kind;
use crate::row::Row;
use crate::settings::{PhpSettings, PoolSettings, Settings};
use crate::settings_proxy::ProxySettings;
use crate::settings_sandbox::SandboxSettings;
use crate::settings_site::{OWN_KEYS, SITE_SECTIONS, SiteKeys};
use crate::sites::own_row;
use crate::strict::{SECTIONS, all_rows};
use howdah_rules::tree::{Node, Tree};

/// Every generated file of this crate: its name in `docs/reference` and its content.
pub fn files() -> Vec<(&'static str, String)> {
    vec![
        ("settings.md", settings_page()),
        ("commands.md", commands_page()),
        ("howdah.toml", example_file()),
        ("howdah.schema.json", schema()),
        ("howdah-site.schema.json", site_schema()),
    ]
}

/// The settings that most installations use.
const COMMON_KEYS: [&str; 10] =
    ["root", "listen", "app", "mode", "workers", "deadline", "php.user", "http.max_body", "acme.names", "log.access"];

/// Writes a table of these settings, each with the first sentence of its text.
fn most_set(page: &mut String) {
    page.push_str(
        "Most installations set no more than some of these:\n\n| setting | meaning | example |\n|---|---|---|\n",
    );
    for row in COMMON_KEYS.iter().filter_map(|name| all_rows().find(|row| row.name() == *name)) {
        let text = row.text();
        let first = text.split_once(". ").map_or(text.trim_end_matches('.'), |(first, _)| first);
        let first = first.split("\n\n").next().unwrap_or_default().trim_end_matches('.').replace('|', "\\|");
        let _ = writeln!(page, "| `{}` | {first} | `{}` |", row.name(), row.example);
    }
    page.push('\n');
}

/// `docs/reference/settings.md`.
pub fn settings_page() -> String {
    let mut page = String::from(
        "# Settings\n\n<!-- Generated from the tables in crates/config/src/settings*.rs; run `make generate` to update \
         it. -->\n\n",
    );
    page.push_str(
        "`howdah serve` takes each setting from, in this order: its flag, its environment variable, `howdah.toml` \
         (`--config FILE`, else the one in the current directory), its default. `howdah check` prints every setting with \
         its origin.\n\n\
         Durations are written `\"500ms\"`, `\"30s\"`, `\"2m\"`, `\"1h\"` or as a number of seconds; sizes `\"64K\"`, `\"8M\"`, \
         `\"1G\"` or as a number of bytes. Relative paths start from the directory of `howdah.toml`, those of flags and \
         environment variables from the current directory. Unknown keys are errors.\n\n",
    );
    most_set(&mut page);
    page.push_str("## Top level\n\nThe server as a whole.\n\n");
    rows(&mut page, Settings::ROWS);
    page.push_str(
        "## Pools\n\nAt the top level these are the settings of the pool `default`. A section `[pool.NAME]` adds \
         another pool: it accepts the same settings and those of `[php]`, and takes the others from the top level and \
         from `[php]` (`ini`, `admin_ini` and `env` are merged). `[pool.NAME.sandbox]` overrides `[sandbox]` for one \
         pool.\n\n",
    );
    rows(&mut page, PoolSettings::ROWS);
    page.push_str(
        "## `[[rule]]`\n\nConditions on requests, and actions for those that meet them. Rules apply in the order written, each if \
         all its conditions hold; a later rule overrides an earlier one, and sees the path after a rewrite. The guide \
         (`docs/guide/rules.md`) explains them. A site with `[[site.rule]]` does not have those of \
         the top level.\n\n```toml\n[[rule]]\npath = \"/uploads/*\"\nphp = \
         false\n\n[[rule]]\npath = \"/api/*\"\npool = \"api\"\n```\n\n",
    );
    for (part, title) in [(Part::Condition, "Conditions"), (Part::Action, "Actions"), (Part::Rule, "The rule itself")] {
        let _ = writeln!(page, "**{title}**\n");
        for key in KEYS.iter().filter(|key| key.part == part) {
            let _ = writeln!(page, "- `{}`: {} `{} = {}`", key.name, key.doc, key.name, key.example);
        }
        page.push('\n');
    }
    page.push_str(
        "## `[proxy.NAME]`\n\nServers to which a `[[rule]]` passes requests, by this name; see the guide \
         [docs/guide/proxy.md](../guide/proxy.md). With an address instead of a name, a rule uses the defaults of all \
         these settings.\n\n```toml\n[proxy.app]\nto = [\"http://10.0.0.1:3000\", \"http://10.0.0.2:3000\"]\n\n\
         [[rule]]\npath = \"/app/*\"\nproxy = \"app\"\n```\n\n",
    );
    rows(&mut page, ProxySettings::ROWS);
    page.push_str(
        "## `[[site]]`\n\nA site, served under certain hosts. Besides these keys it may have `root`, `index`, `front_controller`, \
         `server_name`, `app`, `htaccess` and `root_links`, its own `[[site.rule]]`, and these sections: `[site.static]`; `[site.compression]`; \
         `[site.http]` with `max_body`, `server_header` and `request_id_header`; `[site.log]` with `access` \
         and `format`; `[site.tls]` with `certificates` and `auto`; `[site.mercure]`; `[site.pusher]`; `[site.pool]`, with \
         all keys of a `[pool.NAME]`. Everything else is inherited from the top level. In a separate file (`sites`) the \
         header and `site.` are left out.\n\n```toml\n[[site]]\nhosts = \
         [\"shop.example\", \"www.shop.example\"]\nroot = \"/srv/shop/public\"\n\n[site.pool]\nuser = \"shop\"\n```\n\n",
    );
    rows(&mut page, SiteKeys::ROWS);
    for (name, list) in SECTIONS {
        let _ = writeln!(page, "## `[{name}]`\n");
        rows(&mut page, list);
    }
    wrapped(page.trim_end())
}

/// Columns of a generated page.
const WIDTH: usize = 120;

/// Wraps Markdown prose to `WIDTH`. Continuation lines are indented like the list item they belong to. Code is never
/// broken.
pub fn wrapped(page: &str) -> String {
    let mut text = String::with_capacity(page.len() + page.len() / 50);
    let mut fenced = false;
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        if fenced || line.starts_with('|') || line.chars().count() <= WIDTH {
            let _ = writeln!(text, "{line}");
            continue;
        }
        let indent = if line.starts_with("- ") { "  " } else { "" };
        let mut column = 0;
        for word in words(line) {
            let length = word.chars().count();
            if column > indent.len() && column + 1 + length > WIDTH {
                let _ = write!(text, "\n{indent}{word}");
                column = indent.len() + length;
            } else {
                let space = if column == 0 { "" } else { " " };
                let _ = write!(text, "{space}{word}");
                column += space.len() + length;
            }
        }
        text.push('\n');
    }
    text
}

/// The parts of a line between which it may be broken: not within code.
fn words(line: &str) -> Vec<&str> {
    let (mut words, mut from, mut code) = (Vec::new(), 0, false);
    for (at, char) in line.char_indices() {
        code ^= char == '`';
        if char == ' ' && !code {
            words.push(&line[from..at]);
            from = at + 1;
        }
    }
    words.push(&line[from..]);
    words
}

/// A key in the syntax of the file.
fn written(key: &str) -> String {
    if key.contains('.') { format!("\"{key}\"") } else { key.to_owned() }
}

fn rows(page: &mut String, rows: &[Row]) {
    for row in rows {
        let _ = writeln!(page, "### `{}`\n\n{}\n", row.key, row.text());
        if row.is_of_list() {
            let _ = writeln!(page, "- Example: `{} = {}`\n", row.key, row.example);
            continue;
        }
        let default = if row.computed { row.default.to_owned() } else { format!("`{}`", row.default) };
        let _ = writeln!(page, "- Default: {default}");
        if let Some((least, most)) = row.range {
            let _ = writeln!(page, "- From {least} to {most}");
        }
        if let Kind::Choice(words) = row.kind {
            let words = words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>();
            let _ = writeln!(page, "- One of: {}", words.join(", "));
        }
        let _ = writeln!(page, "- Example: `{} = {}`", written(row.key), row.example);
        let flag = row.flag.map(|flag| format!("`--{flag}`")).filter(|flag| flag != "`--define`");
        let flag = flag.or_else(|| row.flag.map(|_| "`-d KEY=VALUE`, `--define KEY=VALUE`".to_owned()));
        let flag = flag.or_else(|| (row.key == "root").then(|| "the argument `ROOT`".to_owned()));
        let variable = row.variable().map(|variable| format!("`{variable}`"));
        let ways: Vec<String> = flag.into_iter().chain(variable).collect();
        if !ways.is_empty() {
            let _ = writeln!(page, "- Also: {}", ways.join(", "));
        }
        page.push('\n');
    }
}

/// `docs/reference/commands.md`.
pub fn commands_page() -> String {
    let mut page = String::from(
        "# Commands\n\n<!-- Generated from crates/config/src/cli.rs and the table of settings; run `make generate` to \
         update it. -->\n",
    );
    for (name, help) in crate::cli::help_texts() {
        if name == "check" {
            page.push_str(
                "\n## `howdah check`\n\nAccepts the flags of `howdah serve`; prints the resulting settings, each with \
                 its origin, as an equivalent `howdah.toml`. If something is wrong, it prints every error and exits \
                 with status 1.\n",
            );
            continue;
        }
        let lines = help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        let _ = write!(page, "\n## `howdah {name}`\n\n```text\n{}\n```\n", lines.trim());
    }
    wrapped(&page)
}

/// `docs/reference/howdah.toml`: every setting as a comment, with its default or, where that is computed, an example.
pub fn example_file() -> String {
    let mut page = String::from(
        "# Every setting of howdah.toml, commented out. Each line has the default, except where it is marked as an example.\n\
         # Generated from the table of settings; run `make generate` to update it.\n",
    );
    page.push_str("\n# ---- The server as a whole\n");
    comments(&mut page, Settings::ROWS);
    page.push_str("\n# ---- The default pool of workers\n");
    comments(&mut page, PoolSettings::ROWS);
    for (name, list) in SECTIONS {
        let _ = writeln!(page, "\n[{name}]");
        comments(&mut page, list);
    }
    page.push_str(
        "\n# ---- Another pool; takes all settings of the default pool and of [php], and inherits from there\n#[pool.api]\n\
         #workers = 2\n#deadline = \"10s\"\n#ini = { memory_limit = \"64M\" }\n\n# ---- Requests that run in it\n\
         #[[rule]]\n#path = \"/api/*\"\n#pool = \"api\"\n\n# ---- Sites for several hosts, here or in separate files (see `sites`):\n\
         # [[site]]\n# hosts = [\"shop.example\", \"*.shop.example\"]\n# root = \"/srv/shop/public\"\n# [site.pool]\n# user = \"shop\"\n",
    );
    page
}

fn comments(page: &mut String, rows: &[Row]) {
    for row in rows {
        page.push('\n');
        for paragraph in row.text().split("\n\n") {
            wrap(page, paragraph);
        }
        if row.computed {
            wrap(page, &format!("Default: {}. Example:", row.default));
        }
        let value = if row.computed { row.example } else { row.default };
        let _ = writeln!(page, "#{} = {value}", row.key);
    }
}

/// Appends a paragraph as comments of at most a hundred characters.
fn wrap(page: &mut String, paragraph: &str) {
    let mut line = String::from("#");
    for word in paragraph.split(' ') {
        if line.len() + 1 + word.len() > 100 {
            let _ = writeln!(page, "{line}");
            line.truncate(1);
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(page, "{line}");
}

const SITES: &str = "Sites, each served under certain hosts.";

/// `docs/reference/howdah.schema.json`.
pub fn schema() -> String {
    let mut top = properties(&[Settings::ROWS, PoolSettings::ROWS]);
    for (name, rows) in SECTIONS {
        top.insert((*name).to_owned(), object(properties(&[rows])));
    }
    top.insert("sandbox".to_owned(), sandbox());
    // Either a section, or only its version.
    top.insert("php".to_owned(), json!({ "anyOf": [object(properties(&[PhpSettings::ROWS])), php_version()] }));
    top.insert("pool".to_owned(), pools());
    let mut proxy = object(properties(&[ProxySettings::ROWS]));
    proxy["required"] = json!(["to"]);
    let names = json!({ "pattern": "^[A-Za-z0-9_-]+$" });
    top.insert(
        "proxy".to_owned(),
        json!({ "type": "object", "propertyNames": names, "additionalProperties": proxy, "description": "Servers that requests are forwarded to, by name." }),
    );
    top.insert(
        "rule".to_owned(),
        json!({ "type": "array", "items": rule(), "description": "Conditions on requests, and actions for those that meet them all." }),
    );
    top.insert("site".to_owned(), json!({ "type": "array", "items": site(), "description": SITES }));
    titled(object(top), "howdah.toml")
}

/// `docs/reference/howdah-site.schema.json`: a file that `sites` names is one site, or has several in `[[site]]` sections.
pub fn site_schema() -> String {
    let sites = json!({ "type": "array", "items": site(), "description": SITES });
    let mut several = object(Map::from_iter([("site".to_owned(), sites), ("pool".to_owned(), pools())]));
    several["required"] = json!(["site"]);
    titled(json!({ "anyOf": [site(), several] }), "a site of howdah")
}

fn titled(mut schema: Json, title: &str) -> String {
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// Schema: a section, or only its profile.
fn sandbox() -> Json {
    json!({ "anyOf": [object(properties(&[SandboxSettings::ROWS])), { "enum": SandboxProfile::WORDS }] })
}

fn php_version() -> Json {
    json!({ "type": "string", "description": "Short form of `binary`." })
}

/// A `[pool.NAME]`.
fn pool() -> Json {
    let mut own = properties(&[PoolSettings::ROWS, PhpSettings::ROWS]);
    own.insert("php".to_owned(), php_version());
    own.insert("sandbox".to_owned(), sandbox());
    object(own)
}

fn pools() -> Json {
    let names = json!({ "pattern": "^[A-Za-z0-9_-]+$", "not": { "const": "default" } });
    json!({ "type": "object", "propertyNames": names, "additionalProperties": pool(), "description": "Further pools, by name." })
}

/// Schema: a `[[rule]]`. Only the server checks its values.
fn rule() -> Json {
    let keys = KEYS
        .iter()
        .map(|key| (key.name.to_owned(), json!({ "description": key.doc, "examples": [literal(key.example)] })));
    object(keys.collect())
}

/// A `[[site]]`.
fn site() -> Json {
    let mut keys = properties(&[SiteKeys::ROWS]);
    keys.extend(OWN_KEYS.iter().filter_map(|key| own_row(key)).map(|row| (row.key.to_owned(), property(row))));
    for (name, rows, allowed) in SITE_SECTIONS {
        let rows = rows.iter().filter(|row| allowed.has(row.key));
        keys.insert((*name).to_owned(), object(rows.map(|row| (row.key.to_owned(), property(row))).collect()));
    }
    let name = json!({ "type": "string" });
    keys.insert("pool".to_owned(), json!({ "anyOf": [name, pool()] }));
    keys.insert("rule".to_owned(), json!({ "type": "array", "items": rule() }));
    let mut site = object(keys);
    site["required"] = json!(["hosts"]);
    site
}

fn object(properties: Map<String, Json>) -> Json {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn properties(lists: &[&[Row]]) -> Map<String, Json> {
    lists.iter().flat_map(|rows| rows.iter()).map(|row| (row.key.to_owned(), property(row))).collect()
}

fn property(row: &Row) -> Json {
    let mut property = kind(row.kind);
    property["description"] = json!(row.text());
    if !row.is_of_list() && !row.computed {
        property["default"] = literal(row.default);
    }
    property["examples"] = json!([literal(row.example)]);
    if let (Kind::Number, Some((least, most))) = (row.kind, row.range) {
        property["minimum"] = json!(least);
        property["maximum"] = json!(most);
    }
    property
}

fn kind(kind: Kind) -> Json {
    match kind {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Number => json!({ "type": "integer", "minimum": 0 }),
        Kind::Ratio => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Kind::Signed => json!({ "type": "integer" }),
        Kind::Mode => json!({ "type": "string", "pattern": "^[0-7]{0,4}$" }),
        Kind::Duration => {
            json!({ "type": ["string", "number"], "pattern": "^[0-9.]+ *(us|ms|s|m|h|d|w|y)?$", "minimum": 0 })
        }
        Kind::Size => {
            json!({ "type": ["string", "integer"], "pattern": "^[0-9]+ *([KMGTkmgt]([iI]?[bB])?|[bB])?$", "minimum": 0 })
        }
        Kind::Text
        | Kind::Path
        | Kind::PhpProgram
        | Kind::LogTarget(_)
        | Kind::Address
        | Kind::Network
        | Kind::Host => {
            json!({ "type": "string" })
        }
        Kind::Links => {
            let item = json!({ "type": "string" });
            json!({ "anyOf": [{ "type": "array", "items": item.clone() }, item] })
        }
        Kind::Upstream => json!({ "type": "string", "pattern": "^(https?://|unix:/)" }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Workers => json!({ "type": ["string", "integer"], "pattern": "^[0-9]+ *(- *[0-9]+)?$", "minimum": 0 }),
        Kind::NamePattern => json!({ "type": "string", "pattern": "^!?[^/]+$" }),
        Kind::List(of) => {
            let item = self::kind(*of);
            json!({ "anyOf": [{ "type": "array", "items": item.clone() }, item] })
        }
        Kind::Certificate => {
            let path = json!({ "type": "string" });
            let files = json!({ "cert": path, "key": path });
            json!({ "type": "object", "properties": files, "required": ["cert"], "additionalProperties": false })
        }
        Kind::Map => json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } }),
    }
}

/// Converts a literal of the table to JSON.
fn literal(text: &str) -> Json {
    Node::from_literal(text).map_or(Json::Null, |node| json_of(&node))
}

fn json_of(node: &Node) -> Json {
    match &node.tree {
        Tree::Text(text) => json!(text),
        Tree::Integer(number) => json!(number),
        Tree::Float(number) => json!(number),
        Tree::Bool(flag) => json!(flag),
        Tree::Date => Json::Null,
        Tree::List(items) => items.iter().map(json_of).collect(),
        Tree::Table(entries) => entries.iter().map(|entry| (entry.key.clone(), json_of(&entry.node))).collect(),
    }
}
