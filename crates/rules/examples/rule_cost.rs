//! Cost of rules: `cargo run --release -p howdah-rules --example rule_cost`. Prints nanoseconds per request, by kind of
//! rule, with 200 of them.

use howdah_rules::pattern::{PathPattern, TextPattern};
use howdah_rules::regex::Regex;
use howdah_rules::rule::{Action, Conditions};
use howdah_rules::trace::NoTrace;
use howdah_rules::{NoFiles, Request, Rule, Rules};
use http::{HeaderMap, Method, StatusCode};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 300_000;

fn rule(at: usize, conditions: Conditions) -> Rule {
    Rule {
        name: format!("rule[{at}]").into(),
        line: 0,
        conditions,
        not: Conditions::default(),
        actions: vec![Action::Status(StatusCode::FORBIDDEN, None)],
        last: false,
    }
}

fn path(path: Option<PathPattern>) -> Conditions {
    Conditions { path: path.into_iter().collect(), ..Conditions::default() }
}

fn conditions(kind: &str, at: usize) -> Conditions {
    match kind {
        "exact" => path(PathPattern::new(&format!("/a/page-{at}.html")).ok()),
        "prefix" => path(PathPattern::new(&format!("/section-{at}/*")).ok()),
        "star" => path(PathPattern::new(&format!("/x-{at}/*.php")).ok()),
        "regex" => path(Regex::new(&format!("^/(?:news|blog)/{at}/([^/]+)$")).ok().map(PathPattern::Regex)),
        "regex from the end" => path(Regex::new(&format!(r"\.ext{at}$")).ok().map(PathPattern::Regex)),
        "look-around" => path(Regex::new(&format!("^/(?!x)y{at}/")).ok().map(PathPattern::Regex)),
        "host" => Conditions {
            host: TextPattern::new(&format!("site-{at}.example")).ok().into_iter().collect(),
            ..Conditions::default()
        },
        _ => match at % 4 {
            0 => conditions("exact", at),
            1 => conditions("prefix", at),
            2 => conditions("star", at),
            _ => conditions("regex", at),
        },
    }
}

fn main() {
    let headers = HeaderMap::new();
    let kinds = ["none", "mixed", "exact", "prefix", "star", "regex", "regex from the end", "host", "look-around"];
    for kind in kinds {
        let count = if kind == "none" { 0 } else { 200 };
        let rules = Rules::new((0..count).map(|at| rule(at, conditions(kind, at))).collect());
        let Ok(rules) = rules else { return };
        for path in [&b"/hello.php"[..], b"/assets/build/app-4f2c9a.css"] {
            let request = Request {
                method: &Method::GET,
                https: true,
                host: b"www.example.org",
                path,
                query: None,
                headers: &headers,
                client: Some([192, 0, 2, 1].into()),
            };
            let started = Instant::now();
            for _ in 0..ROUNDS {
                black_box(rules.evaluate(black_box(&request), &NoFiles, &mut NoTrace));
            }
            let each = started.elapsed().as_nanos() / u128::from(ROUNDS);
            #[expect(clippy::print_stdout, reason = "what the example is for")]
            {
                println!("{count:3} rules, {kind:18} {:30} {each:6} ns", String::from_utf8_lossy(path));
            }
        }
    }
}
