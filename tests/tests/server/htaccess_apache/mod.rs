//! The same `.htaccess` files under Apache and under Howdah, with the same files: clients must see the same from both.
//!
//! `cases` has published files and regressions. `generated` creates directories with random files;
//! `HOWDAH_HTACCESS_CASES` sets their number and `HOWDAH_DIFFERENCE_SEED` selects them. `known` lists intended
//! differences, with the reasons given in docs/reference/htaccess.md.

mod cases;
mod generated;
mod known;

use crate::difference::Order;
use generated::{Case, FILES, Generator, Spelling, TestRequest};
use howdah_tests::apache::Apache;
use howdah_tests::{Conn, Mode, Request, Response, Setup, Site, php, run};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Result of a request: one entry for each compared property.
type Outcome = BTreeMap<String, String>;

/// Response headers that are compared, in addition to `X-…`.
const COMPARED: [&str; 17] = [
    "location",
    "set-cookie",
    "cache-control",
    "content-type",
    "content-encoding",
    "content-disposition",
    "content-security-policy",
    "access-control-allow-origin",
    "access-control-allow-methods",
    "referrer-policy",
    "strict-transport-security",
    "pragma",
    "www-authenticate",
    "allow",
    "content-range",
    "etag",
    "expires",
];

/// Headers of which only the presence is compared.
const PRESENT: [&str; 3] = ["expires", "etag", "allow"];

fn outcome(response: &Response) -> Outcome {
    let mut made = Outcome::new();
    made.insert("status".to_owned(), response.status.to_string());
    for (name, value) in &response.headers {
        let name = name.to_ascii_lowercase();
        if !name.starts_with("x-") && !COMPARED.contains(&name.as_str()) {
            continue;
        }
        let value = if PRESENT.contains(&name.as_str()) { "there" } else { value };
        let joined = made.entry(name).or_default();
        if !joined.is_empty() {
            joined.push_str(" | ");
        }
        joined.push_str(value);
    }
    let text = response.text();
    let own =
        text.is_empty() || text.contains("<!DOCTYPE HTML PUBLIC") || text.starts_with(&response.status.to_string());
    if text.contains(">Index of /") || text.contains("<li><a href=\"../\">..</a></li>") {
        // The two listings look different; their names are the same.
        let names = text
            .split("href=\"")
            .skip(1)
            .filter_map(|part| part.split_once('"'))
            .map(|(name, _)| name.trim_start_matches("./"));
        let mut names: Vec<&str> = names.filter(|name| !name.starts_with(['?', '/', '.'])).collect();
        names.sort_unstable();
        made.insert("names".to_owned(), names.join(" "));
        made.remove("content-type");
    } else if text.contains("script=/") {
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            made.insert(format!("php:{name}"), value.to_owned());
        }
    } else if own {
        // The server's own page.
        made.remove("content-type");
    } else {
        made.insert("body".to_owned(), text.trim().to_owned());
    }
    made
}

/// Both servers, each with a connection that stays open.
struct ServerPair<'a> {
    site: &'a Site,
    apache: &'a Apache,
    ours: Conn,
    theirs: Conn,
    host: String,
}

/// `None` if the server closes the connection instead of responding: PHP in Apache crashes occasionally.
fn exchange(conn: &mut Conn, again: impl FnOnce() -> Conn, request: &Request) -> Option<Outcome> {
    conn.send(request.bytes());
    let response = conn.try_response(request.method());
    let closes =
        |response: &Response| response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    if response.as_ref().is_none_or(closes) {
        *conn = again();
    }
    response.as_ref().map(outcome)
}

impl<'a> ServerPair<'a> {
    fn new(site: &'a Site, apache: &'a Apache, host: &str) -> Self {
        let host = format!("{host}:{}", apache.port());
        Self { site, apache, ours: site.conn(), theirs: apache.conn(), host }
    }

    /// Differences as text, empty if there are none; and Apache's status.
    fn ask(&mut self, asked: &TestRequest, directory: &str) -> (String, String) {
        let request = asked.request(directory, &self.host);
        let Some(mut theirs) = exchange(&mut self.theirs, || self.apache.conn(), &request) else {
            return (String::new(), String::new());
        };
        let ours = exchange(&mut self.ours, || self.site.conn(), &request);
        let mut ours = ours.unwrap_or_else(|| panic!("no response to {request:?}"));
        let mut text = String::new();
        if known::settle(asked, &mut theirs, &mut ours).is_none() {
            let keys: std::collections::BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
            for key in keys.into_iter().filter(|key| theirs.get(*key) != ours.get(*key)) {
                let _ = writeln!(text, "   {key}: Apache {:?}, here {:?}", theirs.get(key), ours.get(key));
            }
        }
        (text, theirs["status"].clone())
    }
}

/// Puts the files of a case into a separate directory.
fn lay_out(root: &Path, directory: &str, case: &Case) {
    let top = root.join(&directory[1..]);
    for (name, _) in FILES {
        let path = top.join(name);
        let parent = path.parent().unwrap();
        if !parent.exists() {
            fs::create_dir_all(parent).unwrap();
        }
        fs::hard_link(root.join("files").join(name), path).unwrap();
    }
    fs::write(top.join(".htaccess"), case.dressed.text(&case.root, directory)).unwrap();
    if !case.sub.is_empty() {
        fs::write(top.join("sub/.htaccess"), case.dressed.text(&case.sub, directory)).unwrap();
    }
}

/// Reduces a case to the smallest part in which a request's outcomes still differ, by removing lines one by one.
fn reduced(
    both: &mut ServerPair<'_>,
    root: &Path,
    number: usize,
    (case, asked): (&Case, &TestRequest),
    status: &str,
) -> (Case, String) {
    let lines =
        |pieces: &[String]| pieces.iter().flat_map(|piece| piece.lines().map(str::to_owned)).collect::<Vec<_>>();
    let make = |root: &[String], sub: &[String], dressed| Case {
        root: root.to_vec(),
        sub: sub.to_vec(),
        dressed,
        requests: Vec::new(),
    };
    let mut best = make(&lines(&case.root), &lines(&case.sub), case.dressed);
    let (mut tried, mut said) = (0, String::new());
    let balanced = |lines: &[String]| {
        let tags = |begin: &str| lines.iter().filter(|line| line.trim_start().starts_with(begin)).count();
        tags("<") == 2 * tags("</")
    };
    let mut differs = |candidate: &Case| {
        if !balanced(&candidate.root) || !balanced(&candidate.sub) {
            return String::new();
        }
        let directory = format!("/r{number}-{tried}");
        tried += 1;
        lay_out(root, &directory, candidate);
        let (difference, answered) = both.ask(asked, &directory);
        // A section that is cut in two is a different fault.
        if (answered == "500") == (status == "500") { difference } else { String::new() }
    };
    let plain = make(&best.root, &best.sub, Spelling::Plain);
    if !differs(&plain).is_empty() {
        best = plain;
    }
    for of_sub in [true, false] {
        for width in [8, 4, 2, 1, 1] {
            let mut at = 0;
            while at < if of_sub { best.sub.len() } else { best.root.len() } {
                let (mut root, mut sub) = (best.root.clone(), best.sub.clone());
                let list = if of_sub { &mut sub } else { &mut root };
                list.drain(at..(at + width).min(list.len()));
                let candidate = make(&root, &sub, best.dressed);
                let difference = differs(&candidate);
                if difference.is_empty() {
                    at += 1;
                } else {
                    (best, said) = (candidate, difference);
                }
            }
        }
    }
    (best, said)
}

fn count() -> usize {
    let Ok(count) = std::env::var("HOWDAH_HTACCESS_CASES") else { return 60 };
    howdah_tests::time_limit(3600, "as many cases as were asked for");
    count.parse().unwrap()
}

fn setup(setup: Setup) -> Setup {
    let script = php!("dump.php");
    FILES.iter().fold(allow_complaints(setup).setting("htaccess", "true").workers(1), |setup, (name, content)| {
        let path = format!("files/{name}");
        if name.ends_with(".php") { setup.php(&path, script) } else { setup.file(&path, content) }
    })
}

/// Permits log lines about files and requests that Apache does not accept either.
fn allow_complaints(setup: Setup) -> Setup {
    let complaints = [
        "requests below its directory get 500",
        "a .htaccess file cannot be applied",
        "the rules lead in a circle",
        "the target of FallbackResource does not exist",
        "a pattern takes too long",
        "a user is required",
        "AuthUserFile",
        "a wrong user or password",
    ];
    complaints.iter().fold(setup, |setup, text| setup.allow_log(text))
}

#[test]
fn generated_files_are_answered_as_apache_answers_them() {
    run(Mode::Classic, setup, |site| {
        let Some(apache) = Apache::start(&[("localhost", &site.place().root)]) else {
            howdah_skip::skip!("apache", "apache2 or its PHP module is not installed: run `make setup-test`");
        };
        let root = site.place().root.clone();
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
        for (name, _) in FILES {
            fs::File::options().write(true).open(root.join("files").join(name)).unwrap().set_modified(then).unwrap();
        }
        let mut both = ServerPair::new(site, &apache, "localhost");
        let mut generator = Generator::new(Order::new());
        let most = std::env::var("HOWDAH_HTACCESS_MOST").ok().map_or(10, |n| n.parse().unwrap());
        let (mut wrong, mut requests) = (Vec::new(), 0);
        for number in 0..count() {
            let case = generator.case();
            let directory = format!("/c{number}");
            lay_out(&root, &directory, &case);
            for asked in &case.requests {
                requests += 1;
                let (difference, status) = both.ask(asked, &directory);
                if difference.is_empty() {
                    continue;
                }
                let (case, said) = reduced(&mut both, &root, requests, (&case, asked), &status);
                let difference = if said.is_empty() { difference } else { said };
                wrong.push(format!(
                    "{asked:?} {:?}\n{}\n--- sub\n{}\n{difference}",
                    case.dressed,
                    case.root.join("\n"),
                    case.sub.join("\n")
                ));
                break;
            }
            if wrong.len() >= most {
                break;
            }
        }
        println!("{requests} requests");
        assert!(wrong.is_empty(), "{}\n{} differ", wrong.join("\n======\n"), wrong.len());
    });
}
