//! `.htaccess` files composed at random from published files and from parts of rules, and requests for them.

use crate::difference::Order;
use howdah_tests::Request;

/// A directory's files, and requests for it. `@` stands for its path.
pub(super) struct Case {
    pub root: Vec<String>,
    pub sub: Vec<String>,
    pub dressed: Spelling,
    pub requests: Vec<TestRequest>,
}

/// Spelling of a file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    Plain,
    /// As written by Windows editors.
    Windows,
    /// Directive names in other case, spaces at ends of lines, continued lines.
    Loose,
}

/// A request whose target is relative to the directory.
#[derive(Debug, Clone)]
pub(super) struct TestRequest {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
}

/// The files of each directory in addition to `.htaccess`; all scripts are the same.
pub(super) const FILES: &[(&str, &str)] = &[
    ("index.php", ""),
    ("app.php", ""),
    ("error.php", ""),
    ("xmlrpc.php", ""),
    ("wp-config.php", ""),
    ("page.html", "<p>page</p>"),
    ("a.css", "a{}"),
    ("a.js", "a()"),
    ("a.txt", "text"),
    ("img.png", "png"),
    ("doc.pdf", "pdf"),
    ("font.woff2", "woff"),
    ("archive.sql", "create"),
    ("readme.md", "read"),
    ("sp ace.txt", "space"),
    ("x.foo", "foo"),
    ("noext", "noext"),
    ("composer.json", "{}"),
    (".env", "secret"),
    (".well-known/acme.txt", "acme"),
    ("sub/index.php", ""),
    ("sub/x.txt", "sub"),
    ("sub/deep/y.php", ""),
    ("empty/z.txt", "z"),
    ("static/index.html", "<p>static</p>"),
    ("cache/page.html", "<p>cached</p>"),
    ("cache/localhost/page.html", "<p>cached host</p>"),
];

fn pieces(text: &'static str) -> Vec<&'static str> {
    let parts =
        text.split("====").map(|part| part.split_once('\n').map_or("", |(_, body)| body.trim_end_matches('\n')));
    parts.filter(|part| !part.is_empty()).collect()
}

pub(super) struct Generator {
    order: Order,
    shipped: Vec<&'static str>,
    mistakes: Vec<&'static str>,
}

impl Generator {
    pub(super) fn new(order: Order) -> Self {
        Self { order, shipped: pieces(include_str!("shipped.txt")), mistakes: pieces(include_str!("mistakes.txt")) }
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.order.below(of.len())]
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.order.below(one_in) == 0
    }

    pub(super) fn case(&mut self) -> Case {
        let root = self.file();
        let sub = if self.chance(3) { self.file() } else { Vec::new() };
        let dressed = match self.order.below(12) {
            0 => Spelling::Windows,
            1 => Spelling::Loose,
            _ => Spelling::Plain,
        };
        let requests = (0..8).map(|_| self.request()).collect();
        Case { root, sub, dressed, requests }
    }

    /// Parts of a file, each consisting of complete lines.
    fn file(&mut self) -> Vec<String> {
        if self.chance(12) {
            let mistakes = self.mistakes.clone();
            return vec![self.one_of(&mistakes).to_owned()];
        }
        let mut made = Vec::new();
        for _ in 0..=self.order.below(3) {
            if self.chance(3) {
                made.push(self.rules());
            } else {
                let shipped = self.shipped.clone();
                made.push(self.one_of(&shipped).to_owned());
            }
        }
        made
    }

    fn rules(&mut self) -> String {
        let mut lines = vec!["RewriteEngine On".to_owned()];
        if self.chance(4) {
            lines.push("RewriteBase @/".to_owned());
        }
        for _ in 0..=self.order.below(3) {
            for _ in 0..[0, 0, 1, 2][self.order.below(4)] {
                let (text, wanted) = self.one_of(CONDITIONS);
                let flags = self.one_of(&["", "", "", " [NC]", " [OR]", " [NC,OR]", " [NV]"]);
                lines.push(format!("RewriteCond {text} {wanted}{flags}"));
            }
            let (pattern, made) = (self.one_of(PATTERNS), self.one_of(SUBSTITUTIONS));
            let flags: Vec<&str> = (0..self.order.below(4)).map(|_| self.one_of(FLAGS)).collect();
            let flags = if flags.is_empty() { String::new() } else { format!(" \"[{}]\"", flags.join(",")) };
            lines.push(format!("RewriteRule {pattern} {made}{flags}"));
        }
        lines.join("\n")
    }

    fn request(&mut self) -> TestRequest {
        let mut target = self.one_of(TARGETS).to_owned();
        if !target.contains('?') && self.chance(4) {
            target.push_str(self.one_of(QUERIES));
        }
        let method = self.one_of(&["GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "DELETE"]);
        let headers = (0..[0, 0, 0, 1, 2][self.order.below(5)]).map(|_| self.one_of(HEADERS));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        TestRequest { method: method.to_owned(), target, headers }
    }
}

impl TestRequest {
    pub(super) fn request(&self, directory: &str, host: &str) -> Request {
        let mut request = Request::new(&self.method, &format!("{directory}{}", self.target)).header("Host", host);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if self.method == "POST" { request.body("a=b") } else { request }
    }
}

impl Spelling {
    pub(super) fn text(self, pieces: &[String], directory: &str) -> Vec<u8> {
        let text = pieces.join("\n").replace('@', directory) + "\n";
        match self {
            Self::Plain => text.into_bytes(),
            Self::Windows => text.replace('\n', "\r\n").into_bytes(),
            Self::Loose => text.lines().enumerate().map(loose).collect::<Vec<_>>().join("\n").into_bytes(),
        }
    }
}

fn loose((number, line): (usize, &str)) -> String {
    let Some((name, rest)) = line.trim_start().split_once(' ').filter(|(name, _)| !name.starts_with(['<', '#'])) else {
        return format!("\t{line}  ");
    };
    match number % 4 {
        0 => format!("{}\t {rest} ", name.to_ascii_uppercase()),
        1 => format!("  {} {rest}\t", name.to_ascii_lowercase()),
        2 => format!("{name} \\\n  {rest}"),
        _ => line.to_owned(),
    }
}

const CONDITIONS: &[(&str, &str)] = &[
    ("%{REQUEST_FILENAME}", "!-f"),
    ("%{REQUEST_FILENAME}", "!-d"),
    ("%{REQUEST_FILENAME}", "-f"),
    ("%{REQUEST_FILENAME}", "-d"),
    ("%{REQUEST_FILENAME}", "-s"),
    ("%{REQUEST_FILENAME}.php", "-f"),
    ("%{DOCUMENT_ROOT}@/cache/$1", "-f"),
    ("%{DOCUMENT_ROOT}%{REQUEST_URI}", "!-f"),
    ("%{REQUEST_URI}", "^@/(old|list)/(.*)$"),
    ("%{REQUEST_URI}", "!^@/(sub|static)/"),
    ("%{REQUEST_URI}", "!\\.(css|js|png)$"),
    ("%{REQUEST_URI}", "\\.html$"),
    ("%{QUERY_STRING}", "^$"),
    ("%{QUERY_STRING}", "(?:^|&)x=([^&]*)"),
    ("%{QUERY_STRING}", "!page="),
    ("%{HTTP_HOST}", "^www\\."),
    ("%{HTTP_HOST}", "!^$"),
    ("%{HTTP_HOST}", "^([^:]+)"),
    ("%{HTTPS}", "!=on"),
    ("%{HTTPS}", "off"),
    ("%{SERVER_PORT}", "!^443$"),
    ("%{REQUEST_METHOD}", "POST"),
    ("%{REQUEST_METHOD}", "^(GET|HEAD)$"),
    ("%{REQUEST_METHOD}", "=GET"),
    ("%{REQUEST_METHOD}", ">GET"),
    ("%{THE_REQUEST}", "\\s/\\S*index\\.php"),
    ("%{THE_REQUEST}", "\\ /([^?\\ ]*)"),
    ("%{HTTP:X-Thing}", "."),
    ("%{HTTP_COOKIE}", "lang=(\\w+)"),
    ("%{HTTP_USER_AGENT}", "badbot"),
    ("%{HTTP_REFERER}", "!^$"),
    ("%{ENV:REDIRECT_STATUS}", "^$"),
    ("%{ENV:REDIRECT_STATUS}", "=\"\""),
    ("%{ENV:REDIRECT_STATUS}", "!^$"),
    ("%{ENV:E_ONE}", "=1"),
    ("%{REMOTE_ADDR}", "^127\\."),
    ("%{REMOTE_ADDR}", "!=127.0.0.1"),
    ("%{PATH_INFO}", "^/(.+)"),
    ("%{IS_SUBREQ}", "=false"),
    ("%{SCRIPT_FILENAME}", "!-l"),
    ("%{REQUEST_SCHEME}", "=http"),
    ("%{SERVER_NAME}", "=localhost"),
    ("$1", "!^(index\\.php|robots\\.txt)"),
    ("$1", "-ge5"),
    ("$0", "^(.+)/$"),
    ("%{REQUEST_URI}::$1", "^(.*?/)(.*)::\\2$"),
    ("expr", "\"%{REQUEST_METHOD} in {'GET','POST'}\""),
    ("expr", "\"%{QUERY_STRING} =~ /x=(\\d+)/\""),
    ("expr", "\"! -z %{HTTP_COOKIE}\""),
];

const PATTERNS: &[&str] = &[
    "^",
    ".",
    ".*",
    "^(.*)$",
    "^(.+)$",
    "(.*)",
    "^$",
    "^(.*)/$",
    "^(.+)/$",
    "^old/(.*)$",
    "^list/(.*)$",
    "^list/([^/]+)/?([^/]*)$",
    "^([^/]+)/([^/]+)/?$",
    "^/?index\\.php$",
    "^index\\.php/(.*)$",
    "!\\.(css|js|png)$",
    "\\.(css|txt)$",
    "^(.+)\\.html$",
    "^sub/",
    "^(sub|static)(/.*)?$",
    "^app\\.php(/.*)?$",
    "^(\\w+)$",
    "^no(.*)$",
    "^SUB/(.*)$",
    "\\.php",
    "^a\\.(\\w+)",
];

const SUBSTITUTIONS: &[&str] = &[
    "-",
    "-",
    "index.php",
    "@/index.php",
    "app.php",
    "index.php?q=$1",
    "index.php?q=$1&r=$2",
    "index.php?q=%1",
    "@/index.php?$1",
    "index.php/$1",
    "@/app.php/$1",
    "$1",
    "$1.php",
    "@/$1",
    "sub/$1",
    "new/$1",
    "sub/x.txt",
    "a.txt",
    "missing.html",
    "@",
    "@/",
    "@/sub",
    "/nowhere/$1",
    "index.php?",
    "@/new/?",
    "?q=$1",
    "https://example.org/$1",
    "https://example.org$1?a=b",
    "http://%{HTTP_HOST}@/new/$1",
    "http://%{HTTP_HOST}@/index.php?x=$1",
    "https://%{HTTP_HOST}%{REQUEST_URI}",
    "https://%{SERVER_NAME}%{REQUEST_URI}?%{QUERY_STRING}",
    "https://example.org/#$1",
    "%{REQUEST_URI}",
    "%{REQUEST_URI}x.html",
    "%{REQUEST_URI}?q=1",
    "%{DOCUMENT_ROOT}@/a.txt",
    "index.php?u=%{REQUEST_URI}",
    "index.php?e=%{ENV:E_ONE}",
    "\"index.php?q=a b\"",
    "index.php?q=%20",
    "index.php?q=\\%20$1",
    "a\\$1",
    "mailto:x@example.org",
];

const FLAGS: &[&str] = &[
    "L",
    "L",
    "L",
    "END",
    "R",
    "R=301",
    "R=302",
    "R=permanent",
    "R=307",
    "R=404",
    "R=403",
    "F",
    "G",
    "NC",
    "NE",
    "NS",
    "C",
    "S=1",
    "S=2",
    "PT",
    "QSA",
    "QSD",
    "QSL",
    "DPI",
    "B",
    "B= ?",
    "B=#? ",
    "BNP",
    "BCTLS",
    "BNE=/",
    "BNE=+-",
    "UnsafeAllow3F",
    "UnsafePrefixStat",
    "E=E_ONE:1",
    "E=E_GROUP:$1",
    "E=E_COND:%1",
    "E=E_URI:%{REQUEST_URI}",
    "E=!E_ONE",
    "E=E_BARE",
    "CO=one:$1:example.org",
    "CO=two:b:.example.org:0:/:secure:httponly",
    "CO=;three;a:b;example.org",
];

const TARGETS: &[&str] = &[
    "/",
    "/",
    "",
    "/index.php",
    "/index.php/more/path",
    "/app.php",
    "/app.php/x",
    "/page.html",
    "/a.css",
    "/a.js",
    "/a.txt",
    "/a.12.css",
    "/img.png",
    "/doc.pdf",
    "/font.woff2",
    "/archive.sql",
    "/readme.md",
    "/x.foo",
    "/noext",
    "/composer.json",
    "/sub",
    "/sub/",
    "/sub/x.txt",
    "/sub/missing",
    "/sub/deep/y.php",
    "/sub/deep/",
    "/SUB/x.txt",
    "/empty/",
    "/empty",
    "/static/",
    "/static",
    "/missing",
    "/missing/",
    "/missing.html",
    "/missing.css",
    "/missing.php",
    "/a/b/c",
    "/old",
    "/old/",
    "/old/x",
    "/old/x%20y",
    "/list/a",
    "/list/a%20b",
    "/list/a/b",
    "/list/a&b",
    "/list/a%26b",
    "/list/a%2Bb",
    "/list/a+b",
    "/list/%C3%A9",
    "/list/a%3Fb",
    "/list/a%23b",
    "/list/a%25b",
    "/list/a%2520b",
    "/list/100%25",
    "/list/a;b=c,d",
    "/list/%22q%22",
    "/gone/x",
    "/blog/one%20two",
    "/about.html",
    "/sp%20ace.txt",
    "/sp%20ace.txt/info",
    "/a.txt/info",
    "/page",
    "/app",
    "/wp-admin",
    "/wp-config.php",
    "/xmlrpc.php",
    "/inherited",
    "/remote/dav",
    "/deny",
    "/teapot",
    "/gone",
    "/set",
    "/raw/noext",
    "/css/x.css",
    "/secure/x",
    "/.well-known/acme.txt",
    "/.well-known/missing",
    "/build/x",
    "/index.php?status=404",
    "/app.php?status=403",
    "/app.php?cache",
    "/sub/../a.txt",
    "/./a.txt",
    "//a.txt",
    "/sub//x.txt",
    "/no.such/dir/file.txt",
];

const QUERIES: &[&str] = &[
    "?x=1",
    "?x=1&y=2",
    "?page=3",
    "?q=a%20b",
    "?q=a+b&r=%26",
    "?",
    "?v=12",
    "?x=base64_encode(1)",
    "?a=<script>",
    "?x=/etc/passwd",
    "?/y",
];

const HEADERS: &[(&str, &str)] = &[
    ("Cookie", "lang=de; wordpress_logged_in=1"),
    ("Cookie", "lang=en"),
    ("User-Agent", "BadBot/1.0"),
    ("User-Agent", "Mozilla/5.0"),
    ("Referer", "https://elsewhere.example/"),
    ("Referer", "http://www.example.org/x"),
    ("X-Thing", "thing"),
    ("Authorization", "Bearer token"),
    ("X-Forwarded-Proto", "https"),
    ("X-XSRF-Token", "abc"),
    ("Origin", "https://elsewhere.example"),
    ("If-Modified-Since", "Fri, 01 Jan 2021 00:00:00 GMT"),
    ("Range", "bytes=0-1"),
    ("Accept-Language", "de"),
];
