//! Two sites with the same application, visited in lockstep: each request goes to both, and the responses must be
//! equal.

use crate::browser::Browser;
use crate::normal::{self, Rules};
use howdah_tests::fronts::Front;
use howdah_tests::{Backend, Mode, Request, Response, Setup, Site, Target};
use std::fmt::Write;
use std::path::Path;

/// One of the two sites and its visitor.
pub(crate) struct Side {
    pub(crate) site: Site,
    pub(crate) browser: Browser,
    /// The web server that the browser visits, in place of the site's own.
    front: Option<Front>,
    pub(crate) last: Response,
}

impl Side {
    /// The last response's body as text.
    pub(crate) fn page(&self) -> String {
        self.last.text()
    }

    /// The port that the browser visits.
    fn port(&self) -> u16 {
        self.front.as_ref().map_or(self.site.port(), Front::port)
    }
}

/// Howdah and the reference.
pub(crate) struct Pair {
    /// Howdah first.
    pub(crate) sides: [Side; 2],
    rules: Rules,
    differences: Vec<String>,
    steps: usize,
}

fn side(backend: Backend, setup: &Setup) -> Side {
    let site = Site::start(backend, setup);
    let browser = Browser::new(site.target().clone());
    Side { site, browser, front: None, last: Response::default() }
}

impl Pair {
    /// Starts both, Howdah in this mode, without an application.
    pub(crate) fn start(mode: Mode, setup: &Setup, rules: Rules) -> Self {
        howdah_tests::time_limit(600, "a visitor clicks through an application, and each page is compared");
        let sides = [side(mode.into(), setup), side(Backend::Reference, setup)];
        Self { sides, rules, differences: Vec::new(), steps: 0 }
    }

    /// Puts a web server in front of the FastCGI sockets of both, and a new visitor in front of that.
    pub(crate) fn behind(&mut self, start: fn(&Path, &Path) -> Front) {
        for side in &mut self.sides {
            side.front = None;
            let front = start(&side.site.place().root, &side.site.fastcgi());
            side.browser = Browser::new(Target::Tcp(([127, 0, 0, 1], front.port()).into()));
            side.front = Some(front);
        }
    }

    /// A text without parts that differ by design.
    fn alike(&self, side: &Side, text: &str) -> String {
        self.rules.replace(&side.site.place().top.display().to_string(), side.port(), text)
    }

    /// Makes Howdah boot its pools anew, as after a deployment.
    pub(crate) fn reload(&mut self) {
        let output = self.sides[0].site.howdah().command(&["reload"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// A page of Howdah for a new visitor, without parts that differ by design.
    pub(crate) fn fresh_page(&self, path: &str) -> String {
        let site = &self.sides[0].site;
        let answer = site.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        self.rules.apply(site, &answer.text())
    }

    /// Gets a path as a new visitor and compares the responses; from Howdah many times at once, so that each of its
    /// workers is used.
    pub(crate) fn everywhere(&mut self, name: &str, path: &str) {
        self.steps += 1;
        let [ours, theirs] = &self.sides;
        let truth = theirs.site.get(path);
        // The first request runs alone: after a change applications do some work only once.
        let mut answers = vec![ours.site.get(path)];
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..12).map(|_| scope.spawn(|| ours.site.get(path))).collect();
            answers.extend(asked.into_iter().map(|thread| thread.join().unwrap()));
        });
        let found = answers.iter().find_map(|mine| {
            let status = format!("status {} and {} (the reference)", mine.status, truth.status);
            if mine.status == truth.status { self.body_difference(mine, &truth) } else { Some(status) }
        });
        self.differences.extend(found.map(|what| format!("{name}: {what}")));
    }

    /// Checks that the last responses of both contain a text, or do not.
    pub(crate) fn shows(&mut self, text: &str, wanted: bool) {
        let both = self.sides.iter().all(|side| side.page().contains(text) == wanted);
        self.differences.extend((!both).then(|| format!("{text:?} is {}there", if wanted { "not " } else { "" })));
    }

    /// Performs the same action on both.
    pub(crate) fn each(&mut self, mut act: impl FnMut(&mut Side)) {
        for side in &mut self.sides {
            act(side);
        }
    }

    /// Sends a request, which may depend on the site's earlier responses, and compares the responses. Both must have
    /// this status.
    pub(crate) fn step(&mut self, name: &str, status: u16, request: impl Fn(&Side) -> Request) {
        self.steps += 1;
        for side in &mut self.sides {
            let request = request(side);
            side.last = side.browser.send(&request);
        }
        let [ours, theirs] = &self.sides;
        let mut found = Vec::new();
        let statuses = [ours.last.status, theirs.last.status];
        if statuses != [status, status] {
            found.push(format!("status {} and {} (the reference) instead of {status}", statuses[0], statuses[1]));
        }
        let head = |side: &Side| normal::headers(&side.last).iter().map(|l| self.alike(side, l)).collect::<Vec<_>>();
        let (mine, truth) = (head(ours), head(theirs));
        found.extend(truth.iter().filter(|l| !mine.contains(l)).map(|l| format!("header missing: {l}")));
        found.extend(mine.iter().filter(|l| !truth.contains(l)).map(|l| format!("header added: {l}")));
        found.extend(self.body_difference(&ours.last, &theirs.last));
        self.differences.extend(found.into_iter().map(|what| format!("{name}: {what}")));
    }

    /// Gets a path whose responses differ for a known reason; their statuses are still compared.
    pub(crate) fn get_differing(&mut self, name: &str, why: &str, status: u16, target: &str) {
        let before = self.differences.len();
        self.get(name, status, target);
        let found = self.differences.split_off(before);
        assert!(!found.is_empty(), "{name}: the responses are equal now, so compare fully (the reason was: {why})");
        self.differences.extend(found.into_iter().filter(|what| what.contains(": status ")));
    }

    pub(crate) fn get(&mut self, name: &str, status: u16, target: &str) {
        self.step(name, status, |_| Request::get(target));
    }

    fn body_difference(&self, mine: &Response, truth: &Response) -> Option<String> {
        let [ours, theirs] = &self.sides;
        let (mine, truth) = (mine.decoded(), truth.decoded());
        if mine == truth {
            return None;
        }
        let texts = (String::from_utf8(mine.clone()), String::from_utf8(truth.clone()));
        let (Ok(mine), Ok(truth)) = texts else {
            return Some(format!("binary bodies of {} and {} bytes differ", mine.len(), truth.len()));
        };
        let (mine, truth) = (self.alike(ours, &mine), self.alike(theirs, &truth));
        if mine == truth {
            return None;
        }
        let mut text = "bodies differ".to_owned();
        let lines = mine.lines().zip(truth.lines()).filter(|(a, b)| a != b);
        for (a, b) in lines.take(3) {
            let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count().saturating_sub(40);
            let clip = |line: &str| line.chars().skip(same).take(160).collect::<String>();
            let _ = write!(text, "\n    howdah    …{}\n    reference …{}", clip(a), clip(b));
        }
        let _ = write!(text, "\n    ({} and {} lines)", mine.lines().count(), truth.lines().count());
        Some(text)
    }

    /// Gets all resources of the last page that a browser would load from the same site, at most `limit` files.
    pub(crate) fn load_assets(&mut self, name: &str, limit: usize) {
        let pattern = regex_lite::Regex::new(r#"(?:src|href)=["'](?:http://localhost)?(/[^"'#]+)["']"#).unwrap();
        let tag = regex_lite::Regex::new(r"(?s)<(?:script|link|img)\b[^>]*>").unwrap();
        let assets = |page: &str| {
            let mut found: Vec<String> = Vec::new();
            for tag in tag.find_iter(page) {
                if let Some(path) = pattern.captures(tag.as_str()).and_then(|c| c.get(1)) {
                    let path = path.as_str().replace("&amp;", "&").replace("&#038;", "&");
                    if !found.contains(&path) {
                        found.push(path);
                    }
                }
            }
            found
        };
        let [ours, theirs] = [assets(&self.sides[0].page()), assets(&self.sides[1].page())];
        assert!(!theirs.is_empty(), "{name}: the page loads nothing");
        // Targets may contain generated ids; the pages were compared already, so they are in the same order.
        for (mine, truth) in ours.into_iter().zip(theirs).take(limit) {
            let reference = self.sides[1].site.port();
            self.step(&format!("{name}: {truth}"), 200, |side| {
                Request::get(if side.site.port() == reference { &truth } else { &mine })
            });
        }
    }

    /// Fails if any response differed. For servers whose settings have changed, so that their processes differ from
    /// those at the start.
    pub(crate) fn judge(self) {
        println!("{} steps compared", self.steps);
        assert!(self.differences.is_empty(), "responses differ:\n- {}", self.differences.join("\n- "));
        let [ours, theirs] = self.sides;
        drop((ours.browser, theirs.browser, ours.front, theirs.front));
        theirs.site.finish();
        ours.site.abandon();
    }

    /// Stops both, checks what Howdah leaves behind, and fails if any response differed.
    pub(crate) fn finish(self) {
        let Self { sides: [ours, theirs], differences, steps, .. } = self;
        println!("{steps} steps compared");
        if !differences.is_empty() {
            println!("{} differences:\n- {}", differences.len(), differences.join("\n- "));
        }
        drop((ours.browser, theirs.browser, ours.front, theirs.front));
        theirs.site.finish();
        ours.site.finish();
        assert!(differences.is_empty(), "{} responses differ", differences.len());
    }
}
