//! NGINX Unit's configuration: listeners, routes, PHP applications. Routes become rules, and their hosts select the
//! sites.

use super::directive::Directive;
use super::flat;
use super::page::Page;
use super::site::{Rule, SCRIPTS, Site};
use super::table::{Row, Scope, accept, apply, dropped, site};
use howdah_config::quoted;
use serde_json::Value;

/// Keys of an application.
const APPLICATION: &[Row] = &[
    site("type", "PHP runs here", |kind, _| kind.word(0).starts_with("php")),
    site("root|targets.*.root", "root", |root, site| {
        accept!(site.keys.set("root", root.word(0).trim_end_matches('/')))
    }),
    site("index|targets.*.index", "index", |index, site| accept!(site.keys.set_list("index", &index.words))),
    site("script|targets.*.script", "front_controller", |script, site| {
        accept!(site.keys.set("front_controller", script.word(0).trim_start_matches('/')))
    }),
    site("processes", "pool.workers", |number, site| {
        site.section("pool").write("workers", number.word(0));
        number.word(0).parse::<u16>().is_ok_and(|number| number > 0)
    }),
    site("processes.max", "pool.workers", |number, site| {
        site.section("pool").set("workers", &format!("1-{}", number.word(0)));
        number.word(0).parse::<u16>().is_ok_and(|number| number > 0)
    }),
    site("processes.spare", "pool.spare_workers", |number, site| {
        site.section("pool").write("spare_workers", number.word(0));
        number.word(0).parse::<u16>().is_ok()
    }),
    dropped("processes.idle_timeout", "workers end after 10 idle seconds"),
    site("limits.timeout", "pool.deadline", |time, site| {
        site.section("pool").set("deadline", &format!("{}s", time.word(0)));
        time.word(0).parse::<u32>().is_ok()
    }),
    site("limits.requests", "pool.max_requests", |number, site| {
        site.section("pool").write("max_requests", number.word(0));
        number.word(0).parse::<u64>().is_ok()
    }),
    site("options.file", "pool.config", |file, site| accept!(site.section("pool").set("config", file.word(0)))),
    site("options.admin.*", "pool.admin_ini", |value, site| of_name(value, site, "admin_ini", "options.admin.")),
    site("options.user.*", "pool.ini", |value, site| of_name(value, site, "ini", "options.user.")),
    site("environment.*", "pool.env", |value, site| of_name(value, site, "env", "environment.")),
    site("user", "pool.user", |user, site| accept!(site.section("pool").set("user", user.word(0)))),
    dropped("group", "write it after the user: \"USER:GROUP\""),
    dropped("working_directory|isolation.*|stdout|stderr", "see [sandbox] and the guide of settings"),
];

fn of_name(value: &Directive, site: &mut Site, table: &str, prefix: &str) -> bool {
    site.section("pool").set_in(table, value.name.strip_prefix(prefix).unwrap_or_default(), value.word(0));
    true
}

/// Converts a configuration, with a comment for each part.
///
/// # Errors
/// The text is not JSON, or has no listener.
pub(super) fn converted(text: &str) -> Result<String, String> {
    let all: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let listeners = all.get("listeners").and_then(Value::as_object).filter(|listeners| !listeners.is_empty());
    let listeners = listeners.ok_or("there are no listeners in it")?;
    let mut import = Import { all: &all, text, page: Page::default(), used: Vec::new(), to_php: Vec::new() };
    let mut passes: Vec<&str> = Vec::new();
    for (addr, listener) in listeners {
        import.listener(addr, listener);
        let pass = listener.get("pass").and_then(Value::as_str).unwrap_or_default();
        if !passes.contains(&pass) {
            passes.push(pass);
        }
    }
    for (at, pass) in passes.iter().enumerate() {
        if at > 0 {
            import.say(pass, "dropped: sites are selected by host, not by address: add hosts to these routes");
        } else {
            import.pass(pass, &Rule::default(), "", 0);
        }
    }
    if let Some(size) = all.pointer("/settings/http/max_body_size").and_then(Value::as_u64) {
        import.page.section("http").write("max_body", size.to_string());
        import.say("max_body_size", "taken: http.max_body");
    }
    Ok(import.page.finish("a configuration of Unit"))
}

struct Import<'a> {
    all: &'a Value,
    text: &'a str,
    page: Page,
    /// Applications already written to a site, with the site's hosts.
    used: Vec<(String, String)>,
    /// Paths whose scripts run, of the steps so far. The first matching step decides.
    to_php: Vec<String>,
}

/// Maximum depth of routes that lead to other routes.
const MAX_DEPTH: usize = 16;

impl Import<'_> {
    fn say(&mut self, what: &str, became: &str) {
        let directive = self.directive(what);
        self.page.report.say(&directive, became);
    }

    fn directive(&self, what: &str) -> Directive {
        let line = line(self.text, what.split(' ').next().unwrap_or_default());
        Directive { name: what.to_owned(), words: Vec::new(), block: None, line }
    }

    fn listener(&mut self, addr: &str, listener: &Value) {
        let (host, port) = addr.rsplit_once(':').unwrap_or((addr, "80"));
        let host = if host == "*" { "" } else { host };
        let has_tls = listener.get("tls").is_some();
        self.page.listen.push(format!("{}{host}:{port}", if has_tls { "https://" } else { "" }));
        let tls =
            if has_tls { "; the certificate is in Unit's store: write its files into tls.certificates" } else { "" };
        self.say(&format!("{addr} listener"), &format!("taken: listen{tls}"));
    }

    /// Returns the site for these hosts, which are separated by commas.
    fn site(&mut self, hosts: &str) -> &mut Site {
        let list: Vec<String> = hosts.split(',').filter(|host| !host.is_empty()).map(str::to_owned).collect();
        let at = self.page.sites.iter().position(|site| site.hosts == list).unwrap_or(self.page.sites.len());
        if at == self.page.sites.len() {
            let mut site = Site { hosts: list, ..Site::default() };
            site.keys.write("front_controller", "\"\"");
            self.page.sites.push(site);
        }
        &mut self.page.sites[at]
    }

    /// Follows `applications/NAME/TARGET` or `routes/NAME`.
    fn pass(&mut self, pass: &str, base: &Rule, hosts: &str, depth: usize) {
        let mut parts = pass.split('/');
        match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
            ("applications", Some(name), target) => self.application(name, target, base, hosts),
            ("routes", name, _) if depth < MAX_DEPTH => {
                let routes = self.all.get("routes");
                let routes = name.map_or(routes, |name| routes.and_then(|routes| routes.get(name)));
                let steps = routes.and_then(Value::as_array).cloned().unwrap_or_default();
                steps.iter().for_each(|step| self.step(step, base, hosts, depth + 1));
            }
            _ => self.say(pass, "dropped: an upstream or a variable: write it as [proxy.NAME]"),
        }
    }

    fn step(&mut self, step: &Value, base: &Rule, hosts: &str, depth: usize) {
        let shown = step.get("match").map_or_else(|| "match".to_owned(), |conditions| format!("match {conditions}"));
        let mut rule = base.clone();
        let mut hosts = hosts.to_owned();
        if let Some(conditions) = step.get("match") {
            match add(conditions, &mut rule) {
                Ok(Some(own)) => hosts = own,
                Ok(None) => {}
                Err(why) => {
                    let why = format!("{why}: write it as a rule by hand");
                    let status = step.pointer("/action/return").and_then(Value::as_u64).unwrap_or_default();
                    if !(400..500).contains(&status) {
                        return self.say(&shown, &format!("dropped: {why}"));
                    }
                    // With the conditions that are known, it refuses more clients.
                    let block = self.directive(&shown);
                    self.page.report.closed(&block, &why);
                    return self.site(&hosts).rules.push(rule.closed(&block));
                }
            }
        }
        let action = step.get("action").cloned().unwrap_or_default();
        self.say(&shown, "taken: conditions of a rule, or hosts");
        self.action(&action, rule, &hosts, depth);
    }

    fn action(&mut self, action: &Value, mut rule: Rule, hosts: &str, depth: usize) {
        let of = |name: &str| action.get(name).map(flat::text);
        if let Some(pass) = of("pass") {
            return self.pass(&pass, &rule, hosts, depth);
        }
        if let Some(share) = action.get("share") {
            return self.share(action, share, rule, hosts, depth);
        }
        if let Some(status) = of("return") {
            match of("location") {
                Some(to) => {
                    rule.keys.set("redirect", &to.replace("$request_uri", "$path").replace("$uri", "$path"));
                    rule.keys.write("status", status);
                }
                None if status == "403" => rule.deny(),
                None => rule.keys.write("status", status),
            }
            self.say("return", "taken: redirect, status or deny");
        } else if let Some(to) = of("proxy") {
            rule.keys.set("proxy", &to);
            self.say("proxy", "taken: proxy");
        } else {
            return self.say(&format!("action {action}"), "dropped: there is no counterpart");
        }
        self.site(hosts).rules.push(rule);
    }

    /// Files, and the fallback for those that do not exist. Unit sends scripts as files, too.
    fn share(&mut self, action: &Value, share: &Value, mut rule: Rule, hosts: &str, depth: usize) {
        let is_whole = rule.paths.is_empty() && rule.except.is_empty() && rule.when.is_empty();
        let share = share.as_array().and_then(|all| all.first()).unwrap_or(share);
        let share = flat::text(share);
        let directory = share.split("$uri").next().unwrap_or_default().trim_end_matches('/').to_owned();
        let mut scripts = rule.conditions();
        let fallback = action.get("fallback");
        if is_whole {
            self.site(hosts).keys.set("root", &directory);
        } else {
            rule.keys.set("root", &directory);
            if fallback.is_none() {
                rule.keys.set("front_controller", "");
            }
            self.site(hosts).rules.push(rule.clone());
            rule.keys.remove("root");
        }
        self.say(&format!("share {share}"), "taken: root");
        if action.get("types").is_some() {
            self.say("types", "dropped: write a rule that refuses the other files");
        }
        if let Some(fallback) = fallback {
            if !is_whole || fallback.get("pass").is_none() {
                rule.when.set("exists", "no");
            }
            self.action(fallback, rule, hosts, depth);
        }
        if scripts.paths.is_empty() {
            scripts.paths.push(SCRIPTS.to_owned());
            let front = self.site(hosts).keys.text("front_controller").filter(|script| !script.is_empty());
            scripts.except.extend(front.iter().flat_map(|script| [format!("/{script}"), format!("/{script}/*")]));
        }
        scripts.except.extend(self.to_php.iter().cloned());
        scripts.refuse_scripts();
        self.site(hosts).rules.push(scripts);
    }

    fn application(&mut self, name: &str, target: Option<&str>, base: &Rule, hosts: &str) {
        let Some(application) = self.all.pointer(&format!("/applications/{name}")).cloned() else {
            return self.say(name, "dropped: there is no such application");
        };
        let is_whole = base.paths.is_empty() && base.except.is_empty() && base.when.is_empty();
        let script = target.map_or_else(
            || application.get("script"),
            |target| application.pointer(&format!("/targets/{target}/script")),
        );
        let script = script.map(flat::text);
        let taken = self.used.iter().find(|(_, own)| own == hosts).map(|(name, _)| name.clone());
        if taken.as_deref().is_some_and(|taken| taken != name) {
            return self
                .say(name, "dropped: a second application of these hosts needs [pool.NAME], and a rule with pool");
        }
        if taken.is_none() {
            self.used.push((name.to_owned(), hosts.to_owned()));
            let text = self.text;
            for leaf in flat::leaves(&application, |path| line(text, path.rsplit('.').next().unwrap_or_default())) {
                let mut scope = Scope::Site(self.site(hosts));
                // The script of a target is written with its route, not to the site.
                let became = if leaf.name.ends_with(".script") {
                    "taken: where a route leads to it".to_owned()
                } else {
                    apply(APPLICATION, &leaf, &mut scope)
                };
                self.page.report.say(&leaf, became);
            }
        }
        let Some(script) = script else {
            let all = || vec!["/*".to_owned()];
            return self.to_php.extend(if base.paths.is_empty() { all() } else { base.paths.clone() });
        };
        if is_whole {
            self.site(hosts).keys.set("front_controller", script.trim_start_matches('/'));
        } else {
            let mut rule = base.clone();
            rule.keys.write("rewrite", quoted(&format!("/{}", script.trim_start_matches('/'))));
            self.site(hosts).rules.push(rule);
        }
    }
}

/// Adds the conditions of a step to a rule: all that have a counterpart. Returns its hosts, which select the site.
fn add(conditions: &Value, rule: &mut Rule) -> Result<Option<String>, &'static str> {
    let mut hosts = None;
    let mut unknown = None;
    for (key, value) in conditions.as_object().into_iter().flatten() {
        let texts: Vec<String> = match value {
            Value::Array(items) if items.iter().all(Value::is_string) => items.iter().map(flat::text).collect(),
            Value::String(text) => vec![text.clone()],
            _ => {
                unknown = Some("its patterns have no counterpart");
                continue;
            }
        };
        match key.as_str() {
            "uri" => {
                for text in texts {
                    match text.strip_prefix('!') {
                        Some(text) => rule.except.push(text.to_owned()),
                        None => rule.paths.push(text),
                    }
                }
            }
            "host" if texts.iter().all(|host| !host.starts_with(['!', '~'])) => hosts = Some(texts.join(",")),
            "method" if texts.iter().all(|method| !method.contains(['!', '*'])) => rule.when.set_list("method", &texts),
            "source" if texts.iter().all(|client| !client.contains(['!', '-'])) => rule.when.set_list("client", &texts),
            "source" if texts.iter().all(|client| client.starts_with('!') && !client.contains('-')) => {
                let others: Vec<String> = texts.iter().map(|client| client[1..].to_owned()).collect();
                rule.unless.set_list("client", &others);
            }
            "scheme" => rule.when.write("https", if texts == ["https"] { "true" } else { "false" }),
            _ => unknown = Some("one of its conditions has no counterpart"),
        }
    }
    unknown.map_or(Ok(hosts), Err)
}

/// Line number of the first line with this key or text.
fn line(text: &str, name: &str) -> usize {
    let quoted = format!("\"{name}");
    text.lines().position(|line| line.contains(&quoted)).map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::import::loading::convertible;

    fn of(text: &str) -> String {
        convertible(text, |text| converted(text).unwrap())
    }

    #[test]
    fn routes_and_applications_become_a_site() {
        let page = of(r#"{
  "listeners": { "*:8080": { "pass": "routes/main" } },
  "routes": { "main": [
    { "match": { "uri": "/private/*" }, "action": { "return": 403 } },
    { "match": { "uri": "/old" }, "action": { "return": 301, "location": "/new" } },
    { "match": { "uri": ["*.php", "*.php/*"] }, "action": { "pass": "applications/blog/direct" } },
    { "match": { "cookies": [{ "a": "b" }], "uri": "/c/*" }, "action": { "return": 404 } },
    { "match": { "cookies": [{ "a": "b" }] }, "action": { "return": 301, "location": "/" } },
    { "match": { "source": ["!10.0.0.0/8", "!::1"], "uri": "/admin/*" }, "action": { "return": 403 } },
    { "match": { "uri": "/f/*" }, "action": { "share": "/srv$uri", "fallback": { "return": 410 } } },
    { "action": { "share": "/srv$uri", "fallback": { "pass": "applications/blog/index" } } }
  ] },
  "applications": { "blog": {
    "type": "php",
    "targets": { "direct": { "root": "/srv/" }, "index": { "root": "/srv/", "script": "index.php" } },
    "processes": { "max": 10, "spare": 2 },
    "limits": { "timeout": 10, "requests": 500 },
    "options": { "admin": { "memory_limit": "256M" } },
    "environment": { "A": "b" }
  } },
  "settings": { "http": { "max_body_size": 1048576 } }
}"#);
        for expected in [
            "listen = [\":8080\"]",
            "[http]\nmax_body = 1048576\n",
            "front_controller = \"index.php\"\nroot = \"/srv\"\n",
            "[pool.site0]\n",
            "workers = \"1-10\"\n",
            "spare_workers = 2\n",
            "deadline = \"10s\"\n",
            "max_requests = 500\n",
            "admin_ini.\"memory_limit\" = \"256M\"\n",
            "env.\"A\" = \"b\"\n",
            "path = \"/private/*\"\ndeny = true\n",
            "path = \"/old\"\nredirect = \"/new\"\nstatus = 301\n",
            ": dropped: its patterns have no counterpart",
            "because of conditions in lines 4: see",
            "path = \"/c/*\"\ndeny = true\n",
            "path = \"/admin/*\"\nnot = { client = [\"10.0.0.0/8\", \"::1\"] }\ndeny = true\n",
            "path = \"/f/*\"\nexists = \"no\"\nstatus = 410\n",
            "path = \"/f/*\"\nexists = \"file\"\nnot = { path = [\"*.php\", \"*.php/*\"] }\nphp = false\n",
        ] {
            assert!(page.contains(expected), "{expected}\n{page}");
        }
        assert!(converted("{}").is_err() && converted("{").is_err());
    }
}
