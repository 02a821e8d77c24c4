//! RoadRunner's `.rr.yaml`. Its workers use another protocol, so the converted server needs a script for worker mode.

use super::directive::Directive;
use super::flat;
use super::page::Page;
use super::site::Rule;
use super::table::{Row, Scope, accept, apply, dropped, page};
use super::yaml;
use howdah_config::quoted;

const TABLE: &[Row] = &[
    page("version", "nothing", |_, _| true),
    page(
        "server.command",
        "mode, script: the script must use frankenphp_handle_request() or howdah/runtime",
        |command, page| {
            let line = command.words.join(" ");
            let script = line.split_whitespace().find(|word| word.ends_with(".php")).unwrap_or_default();
            page.keys.set("mode", "worker");
            page.keys.set("script", script);
            !script.is_empty()
        },
    )
    .changed(),
    page("server.env.*", "php.env", |env, page| {
        let name = env.name.rsplit('.').next().unwrap_or_default();
        page.section("php").set_in("env", name, env.word(0));
        true
    }),
    page("http.address", "listen", |addr, page| accept!(page.listen.push(addr.word(0).replace("tcp://", "")))),
    page("http.pool.num_workers", "workers", |number, page| {
        page.keys.write("workers", number.word(0));
        number.word(0).parse::<u16>().is_ok_and(|number| number > 0)
    }),
    page("http.pool.max_jobs", "max_requests", |number, page| {
        page.keys.write("max_requests", number.word(0));
        number.word(0).parse::<u64>().is_ok()
    }),
    page("http.pool.max_queue_size", "queue", |number, page| {
        page.keys.write("queue", number.word(0));
        number.word(0).parse::<u64>().is_ok_and(|number| number > 0)
    }),
    page("http.pool.allocate_timeout", "queue_timeout", |time, page| duration(time, page, "queue_timeout")),
    page("http.pool.supervisor.exec_ttl", "deadline", |time, page| duration(time, page, "deadline")),
    page("http.pool.supervisor.max_worker_memory", "max_memory", |size, page| {
        page.keys.set("max_memory", &format!("{}M", size.word(0)));
        size.word(0).parse::<u64>().is_ok()
    }),
    page("http.max_request_size", "http.max_body", |size, page| {
        page.section("http").set("max_body", &format!("{}M", size.word(0)));
        size.word(0).parse::<u64>().is_ok()
    }),
    page("http.static.dir", "root", |dir, page| accept!(page.keys.set("root", dir.word(0)))),
    dropped("server.user|server.group", "set php.user"),
    dropped("http.uploads.*", "upload_tmp_dir in php.ini, and static.never_send for names"),
    dropped("fcgi.address", "write \"fastcgi:ADDRESS\" into listen"),
    dropped("otel.*", "write [telemetry]"),
    page("http.static.forbid", "a rule: these files get 404, PHP is never sent", |extensions, page| {
        let others = extensions.words.iter().filter(|extension| *extension != ".php");
        let paths: Vec<String> = others.map(|extension| format!("*{extension}")).collect();
        if !paths.is_empty() {
            page.rules.push(no_files(Rule::for_paths(paths)));
        }
        true
    }),
    page("http.static.allow", "a rule: other files get 404", |extensions, page| {
        let mut rule = Rule::default();
        rule.except = extensions.words.iter().map(|extension| format!("*{extension}")).collect();
        page.rules.push(no_files(rule));
        true
    }),
    page("http.headers.response.*", "a rule with headers", |header, page| {
        let name = header.name.rsplit('.').next().unwrap_or_default().to_owned();
        page.rule.keys.set_in("headers", &name, header.word(0));
        true
    }),
    page("http.trusted_subnets", "http.trusted_proxies", |networks, page| {
        accept!(page.section("http").set_list("trusted_proxies", &networks.words))
    }),
    page("http.ssl.address", "listen", |addr, page| accept!(page.listen.push(format!("https://{}", addr.word(0))))),
    page("http.ssl.cert|http.ssl.key", "tls.certificates", |_, _| true),
    page("logs.level", "log.level", |level, page| {
        page.section("log").set("level", level.word(0));
        matches!(level.word(0), "debug" | "info" | "warn" | "error")
    }),
    page("logs.encoding", "log.format", |format, page| {
        page.section("log").set("format", "json");
        format.word(0) == "json"
    }),
    dropped("http.middleware|http.access_logs|logs.*", "it is built in, or set in [log]"),
    dropped("http.pool.debug", "`howdah dev` loads changed code"),
    dropped("reload.*", "`howdah dev`, or watch"),
    dropped("metrics.*|status.*", "the admin endpoint has metrics and status; http.probes responds to probes"),
    dropped("rpc.*|kv.*|jobs.*|grpc.*|temporal.*|tcp.*|centrifuge.*|amqp.*|service.*", "only HTTP is supported"),
];

/// Converts a configuration, with a comment for each key.
///
/// # Errors
/// Unsupported YAML, or no server in it.
pub(super) fn converted(text: &str) -> Result<String, String> {
    let all = flat::leaves(&yaml::parse(text)?, |name| line(text, name));
    let mut page = Page::default();
    if !all.iter().any(|leaf| leaf.name == "server.command") {
        return Err("there is no server.command in it".to_owned());
    }
    for leaf in &all {
        let became = apply(TABLE, leaf, &mut Scope::Page(&mut page));
        page.report.say(leaf, became);
    }
    let word = |name: &str| all.iter().find(|leaf| leaf.name == name).map(|leaf| leaf.word(0).to_owned());
    if let (Some(cert), Some(key)) = (word("http.ssl.cert"), word("http.ssl.key")) {
        let pair = format!("[{{ cert = {}, key = {} }}]", quoted(&cert), quoted(&key));
        page.section("tls").write("certificates", pair);
    }
    let middleware = all.iter().find(|leaf| leaf.name == "http.middleware");
    let is_static = middleware.is_some_and(|names| names.words.iter().any(|name| name == "static"));
    if !page.keys.has("root") {
        page.keys.write("root", "\"public\"   # RoadRunner sends no files without http.static");
        page.rules.push(no_files(Rule::default()));
    } else if !is_static {
        page.rules.push(no_files(Rule::default()));
    }
    Ok(page.finish("RoadRunner's configuration"))
}

/// A rule that sends no files. Scripts are requests for the worker.
fn no_files(mut rule: Rule) -> Rule {
    rule.except.push("*.php".to_owned());
    rule.when.set("exists", "file");
    rule.keys.write("status", "404");
    rule
}

/// Line number of a key: the last key of its path, found after its parents.
fn line(text: &str, name: &str) -> usize {
    let mut at = 0;
    for key in name.split('.').filter(|key| key.parse::<usize>().is_err()) {
        let found = text.lines().enumerate().skip(at).find(|(_, line)| {
            let line = line.trim_start().trim_start_matches("- ").trim_start_matches(['"', '\'']);
            line.strip_prefix(key)
                .is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
        });
        at = found.map_or(at, |(number, _)| number + 1);
    }
    at
}

fn duration(time: &Directive, page: &mut Page, key: &str) -> bool {
    page.keys.set(key, time.word(0));
    time.word(0).ends_with(['s', 'm', 'h']) && time.word(0).starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_becomes_a_pool_of_workers() {
        let text = [
            "version: \"3\"",
            "server:",
            "  command: \"php worker.php\"",
            "  env:",
            "    APP_ENV: prod",
            "http:",
            "  address: 0.0.0.0:8080",
            "  middleware: [\"static\", \"headers\"]",
            "  static:",
            "    dir: \"public\"",
            "    forbid: [\".php\", \".sql\"]",
            "    allow: [\".css\"]",
            "  headers:",
            "    response:",
            "      X-Powered-By: a",
            "  pool:",
            "    num_workers: 4",
            "    max_jobs: 500",
            "    supervisor:",
            "      exec_ttl: 60s",
            "      max_worker_memory: 128",
            "logs:",
            "  level: warn",
            "rpc:",
            "  listen: tcp://127.0.0.1:6001",
        ]
        .join("\n");
        let page = converted(&text).unwrap();
        for expected in [
            "listen = [\"0.0.0.0:8080\"]",
            "mode = \"worker\"\nscript = \"worker.php\"\n",
            "workers = 4\n",
            "max_requests = 500\n",
            "deadline = \"60s\"\n",
            "max_memory = \"128M\"\n",
            "root = \"public\"\n",
            "[php]\nenv.\"APP_ENV\" = \"prod\"\n",
            "[log]\nlevel = \"warn\"\n",
            "[[rule]]\nheaders.\"X-Powered-By\" = \"a\"\n",
            "# 3: server.command php worker.php: changed: mode, script",
            "path = \"*.sql\"\nexists = \"file\"\nnot = { path = \"*.php\" }\nstatus = 404\n",
            "[[rule]]\nexists = \"file\"\nnot = { path = [\"*.css\", \"*.php\"] }\nstatus = 404\n",
            "# 17: http.pool.num_workers 4: taken: workers",
            "# 25: rpc.listen tcp://127.0.0.1:6001: dropped: only HTTP is supported",
        ] {
            assert!(page.contains(expected), "{expected}\n{page}");
        }
        let page = converted("server:\n  command: php worker.php\nhttp:\n  address: :80\n").unwrap();
        assert!(page.contains("\n[[rule]]\nexists = \"file\"\nnot = { path = \"*.php\" }\nstatus = 404\n"), "{page}");
        assert!(converted("http:\n  address: :80\n").is_err());
    }
}
