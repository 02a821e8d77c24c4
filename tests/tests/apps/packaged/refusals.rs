//! Requests every file of a package from both servers, below the application's path and on a separate site. Whatever
//! Apache refuses, Howdah must refuse; whatever Apache serves, Howdah must serve identically, unless the preset is
//! intentionally stricter.

use super::Servers;
use super::apps::App;
use super::files::{self, Kind};
use howdah_tests::{Conn, Request, Response, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Default)]
pub(crate) struct Found {
    pub(crate) summary: String,
    pub(crate) differences: Vec<String>,
}

/// A connection that is reopened when the server has closed it.
struct Line {
    target: Target,
    conn: Option<Conn>,
}

impl Line {
    fn ask(&mut self, method: &str, host: &str, path: &str) -> Response {
        let request = Request::new(method, path).header("Host", host);
        let mut conn = self.conn.take().unwrap_or_else(|| Conn::open(&self.target));
        // A server closes a connection after a number of requests, possibly while this one is in flight.
        let response = conn.try_send(&request.bytes()).ok().and_then(|()| conn.try_response(method));
        let response = response.unwrap_or_else(|| {
            conn = Conn::open(&self.target);
            conn.exchange(&request)
        });
        if !response.header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close")) {
            self.conn = Some(conn);
        }
        response
    }
}

fn refused(status: u16) -> bool {
    matches!(status, 401 | 403 | 404 | 405)
}

fn escaped(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~,+@!$&'()*;=".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

/// Plants files that an attacker might upload, in directories where the configuration refuses scripts and in empty
/// directories.
fn plant(refusals: &[files::Refusal]) {
    for refusal in refusals.iter().filter(|r| r.kind != Kind::Some && r.directory.is_dir()) {
        // Do not write through links to directories that belong to other packages.
        let _ = std::fs::write(refusal.directory.join("howdah-test.txt"), "private");
        let _ = std::fs::write(refusal.directory.join("howdah-test.php"), "<?php echo 'PHP', ' RAN';");
    }
}

pub(crate) fn compare(world: &Servers, app: &App) -> Found {
    let root = Path::new(app.root);
    let refusals = files::refusals(Path::new(app.configuration), root);
    plant(&refusals);
    let mut lines = [world.site.target().clone(), world.apache.target()].map(|target| Line { target, conn: None });
    let mut found = Found::default();
    let (mut met, mut stricter, mut counts) = (BTreeSet::new(), BTreeMap::new(), [0_usize; 3]);
    let own_host = format!("{}.test", app.name);
    let extra = app.refused.iter().map(|path| (*path).to_owned());
    let below = files::below(root);
    let all: BTreeSet<String> = below.iter().cloned().chain(extra).collect();
    for file in all {
        let real = root.join(&file[1..]);
        let denied = refusals.iter().position(|r| r.kind != Kind::Some && real.starts_with(&r.directory));
        let script = file.ends_with(".php") || file.contains(".php/");
        if script && denied.is_none() && !app.refused.contains(&file.as_str()) {
            // The visit covers scripts; most of them are parts whose effect when run alone is undefined.
            continue;
        }
        let path = escaped(&file);
        let theirs = lines[1].ask("GET", "localhost", &format!("{}{path}", app.path));
        let [ours, own] = [("localhost", app.path), (own_host.as_str(), "")]
            .map(|(host, mount)| lines[0].ask("GET", host, &format!("{mount}{path}")));
        counts[0] += 1;
        let leaked =
            [&ours, &own].into_iter().any(|r| r.text().contains("PHP RAN") || r.text().contains("<?php echo 'PHP'"));
        if leaked {
            found.differences.push(format!("{file}: PHP ran, or its source was sent"));
        }
        let never = denied.is_some() || app.refused.contains(&file.as_str());
        if refused(theirs.status) || never {
            counts[1] += 1;
            for (response, mount) in [(&ours, app.path), (&own, "")] {
                // The front controller itself responds that there is no such page.
                if !refused(response.status)
                    && !(denied.is_some_and(|at| refusals[at].kind == Kind::Scripts) && !script)
                {
                    found
                        .differences
                        .push(format!("{mount}{file}: {} and {} (Apache)", response.status, theirs.status));
                }
            }
            let meets = |r: &files::Refusal| r.kind != Kind::Some && real.starts_with(&r.directory);
            if refused(ours.status) {
                met.extend(refusals.iter().enumerate().filter(|(_, r)| meets(r)).map(|(at, _)| at));
            }
            continue;
        }
        if refused(ours.status) || refused(own.status) {
            counts[2] += 1;
            let reason = app.stricter.iter().find(|(pattern, _)| {
                regex_lite::Regex::new(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}")).is_match(&file)
            });
            match reason {
                Some((pattern, _)) => *stricter.entry(*pattern).or_insert(0) += 1,
                None => found
                    .differences
                    .push(format!("{file}: {}, {} and {} (Apache)", ours.status, own.status, theirs.status)),
            }
            continue;
        }
        if ours.status != theirs.status
            || own.status != theirs.status
            || (ours.decoded() != theirs.decoded() && !script)
        {
            let what =
                format!("{file}: {}, {} and {} (Apache), or other content", ours.status, own.status, theirs.status);
            found.differences.push(what);
        }
    }
    for (at, refusal) in refusals.iter().enumerate().filter(|(_, r)| r.kind != Kind::Some) {
        let reachable = refusal.directory.starts_with(root) && refusal.directory.exists();
        if reachable && !met.contains(&at) {
            found.differences.push(format!("{}: no path meets it ({:?})", refusal.place, refusal.kind));
        }
    }
    let some = refusals.iter().filter(|r| r.kind == Kind::Some).count();
    if some > 0 && app.refused.len() < some {
        found.differences.push(format!("{some} refusals by pattern, {} paths for them", app.refused.len()));
    }
    for (pattern, _) in app.stricter.iter().filter(|(pattern, _)| !stricter.contains_key(pattern)) {
        let meant = regex_lite::Regex::new(pattern).unwrap();
        // The package may have files on one Debian release that it lacks on another.
        if below.iter().any(|file| meant.is_match(file)) {
            found.differences.push(format!("stricter {pattern:?}: Apache refuses it too"));
        } else {
            println!("{}: no file here matches {pattern:?}", app.name);
        }
    }
    for (method, path) in app.methods {
        let theirs = lines[1].ask(method, "localhost", &format!("{}{path}", app.path));
        let ours = lines[0].ask(method, "localhost", &format!("{}{path}", app.path));
        if refused(theirs.status) != refused(ours.status) {
            found.differences.push(format!("{method} {path}: {} and {} (Apache)", ours.status, theirs.status));
        }
    }
    found.summary = format!(
        "{} files, {} refused by both, {} by Howdah alone, {} refusing directives",
        counts[0],
        counts[1],
        counts[2],
        refusals.len()
    );
    found
}
