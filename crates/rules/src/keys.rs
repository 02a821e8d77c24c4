//! The keys of a rule: the only list, used by the reader's errors and by the reference.

/// A key of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The key's name in a rule.
    pub name: &'static str,
    /// Part of the rule that the key belongs to.
    pub part: Part,
    /// Its meaning.
    pub doc: &'static str,
    /// An example value, in the syntax of a rule.
    pub example: &'static str,
}

/// Part of a rule that a key belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A condition, which must hold for the rule to apply.
    Condition,
    /// An action of the rule.
    Action,
    /// A property of the rule itself.
    Rule,
}

macro_rules! keys {
    ($($part:ident $name:literal $doc:literal $example:literal;)+) => {
        /// All keys, in the order of the reference.
        pub const KEYS: &[Key] = &[$(Key { name: $name, part: Part::$part, doc: $doc, example: $example }),+];
    };
}

keys! {
    Rule "name" "The rule's name in logs and in `howdah explain`, and in metrics if it has a `pool`, `proxy`, `websocket`, `workers` or `weight`. Default: its position, `rule[0]` being the first, and in metrics its first path." r#""no-uploads""#;
    Rule "last" "`true`: if this rule applies, later ones are not evaluated." "true";
    Condition "host" "The requested host, without its port: `*` stands for any text, `~` begins a regular expression." r#"["example.org", "*.example.org"]"#;
    Condition "path" "The path, decoded: `*` stands for any text, slashes included; `~` begins a regular expression, whose groups are `$1` or `${name}` in targets." r#"["/uploads/*", "*.bak"]"#;
    Condition "method" "Methods. `GET` stands for `HEAD` too." r#"["GET", "POST"]"#;
    Condition "header" "Headers, all of which must match: a text with `*`, a regular expression after `~`, `true` for any value, `false` for none." r#"{ User-Agent = "~(?i)bot", Cookie = false }"#;
    Condition "query" "Query parameters, all of which must match, written in the same way; or a pattern of the whole query as sent." r#"{ page = "*", debug = false }"#;
    Condition "client" "The client's address or network." r#"["10.0.0.0/8", "2001:db8::/32"]"#;
    Condition "https" "`true` for encrypted client connections, `false` for others." "false";
    Condition "exists" "The kind of the path's target: `file`, `directory`, or neither (`no`)." r#""no""#;
    Condition "not" "Conditions of which none may hold." r#"{ client = "127.0.0.1" }"#;
    Action "app" "The rules of a well-known application, below this rule's path; see the guide for their names." r#""phpmyadmin""#;
    Action "root" "The directory that paths start from." r#""/srv/other/public""#;
    Action "alias" "Directory that replaces this rule's path, which must be exact or end in `/*`." r#""/usr/share/phpmyadmin""#;
    Action "index" "File names tried in turn for a directory." r#"["index.php"]"#;
    Action "front_controller" "The path of the script that runs for paths without a file; `\"\"` for 404." r#""/shaarli/index.php""#;
    Action "try_files" "Paths tried in turn; one that ends in a slash must be a directory. The last is used in any case, and may be a status." r#"["$path", "$path/", "=404"]"#;
    Action "php" "`false`: scripts are refused; their source is never sent." "false";
    Action "pool" "The pool that runs scripts." r#""admin""#;
    Action "workers" "Maximum number of these requests that a pool runs at once. Further ones wait, so that a slow page leaves workers for others." "2";
    Action "weight" "Relative share of the workers' time while requests wait; other requests of the same client have 1." "4";
    Action "deadline" "Maximum time in PHP, overriding the pool's `deadline`; `0` for no limit." r#""2m""#;
    Action "queue_timeout" "Maximum wait for a worker, overriding the pool's `queue_timeout`; `0` for none: the request gets 503 unless a worker is free." r#""500ms""#;
    Action "websocket" "The path of the script that gets the events of WebSocket connections, which the server holds. `cors` lists further origins that may connect." r#""/chat.php""#;
    Action "env" "Variables for PHP, in `$_SERVER`." r#"{ APP_ENV = "prod" }"#;
    Action "request_headers" "Request headers for PHP and upstream servers; `\"\"` removes one." r#"{ X-Forwarded-Host = "" }"#;
    Action "max_body" "Maximum size of a request body; larger ones get 413." r#""512M""#;
    Action "headers" "Response headers: set to this value, or removed by `\"\"`. `+` before a name adds one of that name, `?` sets it if the response has none." r#"{ X-Frame-Options = "DENY", X-Powered-By = "", "?Referrer-Policy" = "same-origin" }"#;
    Action "cache_control" "`Cache-Control` of responses with a status below 400 that have none; or a table of media types and values." r#"{ "text/css" = "max-age=86400", "image/*" = "max-age=604800" }"#;
    Action "types" "The media types of responses to which this rule's `headers` apply, and its `cache_control` unless that is a table." r#"["text/html"]"#;
    Action "cors" "Origins whose scripts may read responses: `origins`, `methods`, `headers`, `expose`, `credentials`, `max_age`. The server answers preflight requests." r#"{ origins = ["https://app.example"], credentials = true }"#;
    Action "mime" "Media types of files by file name extension." r#"{ wasm = "application/wasm" }"#;
    Action "error_pages" "Paths of error pages, by status or `4xx`, `5xx`." r#"{ 404 = "/404.html", 5xx = "/sorry.html" }"#;
    Action "listing" "`true`: directories without an index file are listed." "true";
    Action "links" "Directories, relative to the root, into which symbolic links are followed regardless of their owner; `../vendor/**/public` means each `public` below `../vendor`. They apply to the whole site, whatever the rule's conditions." r#"["../storage/app/public"]"#;
    Action "access_log" "`false`: these requests are not in the access log." "false";
    Action "allow" "Clients that may send these requests; others get 403." r#"["10.0.0.0/8"]"#;
    Action "deny" "Clients whose requests are refused with 403; `true` for all." "true";
    Action "limit" "Maximum rate (`rate`, with `burst` in advance) and number of concurrent requests (`connections`) of each client; beyond that it gets 429." r#"{ rate = "5/s", burst = 10, connections = 4 }"#;
    Action "auth" "Requires a user name and password (Basic), from an htpasswd `file` or from `users`; `only` limits it to some of them. `false` ends the requirement." r#"{ realm = "Staff", file = "/etc/howdah/users" }"#;
    Action "maintenance" "Responds with 503 and the page `page`, with `retry_after`; only while the file `flag` exists, if one is named." r#"{ page = "/maintenance.html", flag = "/run/app.down" }"#;
    Action "rewrite" "Replaces the path for later rules and for the file or script. The request's query is appended, unless the target contains `$query`; `?` at the end drops it." r#""/index.php?title=$1""#;
    Action "redirect" "Redirects the client to another address, with 302 or `status`; the query is handled as by `rewrite`." r#""https://www.example.org$path""#;
    Action "status" "Ends the request with this status, or sets that of `redirect`." "404";
    Action "body" "The text of a response with `status`." r#""ok\n""#;
    Action "proxy" "Forwards requests to other servers: the name of a `[proxy.NAME]`, or an address." r#""http://127.0.0.1:3000""#;
}

/// Names in other servers, and the corresponding keys here.
const COUNTERPARTS: &[(&str, &str)] = &[
    ("location", "path"),
    ("match", "path"),
    ("regex", "path"),
    ("return", "status` or `redirect"),
    ("deny_all", "deny"),
    ("auth_basic", "auth"),
    ("add_header", "headers"),
    ("add_headers", "headers"),
    ("default_headers", "headers"),
    ("expires", "cache_control"),
    ("autoindex", "listing"),
    ("proxy_pass", "proxy"),
    ("client_max_body_size", "max_body"),
    ("error_page", "error_pages"),
    ("limit_req", "limit"),
];

/// Returns the key that corresponds to another server's name, else the most similar known name.
pub(crate) fn meant<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let counterpart = COUNTERPARTS.iter().find(|(other, _)| *other == name).map(|(_, own)| *own);
    counterpart.or_else(|| nearest(name, known))
}

/// `true` if `known` was probably meant.
pub fn is_misspelt(name: &str, known: &str) -> bool {
    strsim::damerau_levenshtein(name, known) <= 1 + name.len() / 4
}

/// `true` if one character is missing, wrong or superfluous, or two are exchanged.
pub fn is_slip(name: &str, known: &str) -> bool {
    strsim::damerau_levenshtein(name, known) == 1
}

/// The known name most similar to a misspelled one, if there is a similar one.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Bounds the time: a longer name is not a typo.
    let name = name.get(..64).unwrap_or(name);
    let rated = known.map(|known| {
        let slips = strsim::damerau_levenshtein(name, known);
        (if is_misspelt(name, known) { slips } else { usize::MAX }, strsim::jaro_winkler(name, known), known)
    });
    let best = rated.min_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)))?;
    (best.0 < usize::MAX || best.1 > 0.85).then_some(best.2)
}
