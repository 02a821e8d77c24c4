//! What is to be done with a request: the order in which Apache asks its modules, from the path to what responds.

use crate::access::Verdict;
use crate::config::{Config, Section, Select};
use crate::limits;
use crate::pattern::{Effort, TooMuch};
use crate::redirects::{End, ErrorDocument};
use crate::response::Response;
use crate::rewrite::{self, Effects};
use crate::scene::{Environment, Scene};
use crate::store::Store;
use crate::world::{Entry, Facts, Kind, World};
use howdah_rules::auth::Auth;
use howdah_rules::outcome::{Access, Failure, Outcome, Stop};
use howdah_rules::rule::Ini;
use howdah_rules::users::Users;
use http::{HeaderMap, HeaderValue, StatusCode};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Internal redirects of a request, as under Apache.
const REDIRECTS: usize = 10;
/// What asks for passwords, kept because it remembers which were right.
const MOST_AUTHS: usize = 256;

/// The .htaccess files below one document root.
#[derive(Debug)]
pub struct Htaccess {
    store: Store,
    auths: Mutex<Vec<(AuthKey, Arc<Auth>)>>,
}

/// Realm, file and users.
type AuthKey = (String, String, Vec<String>);

/// What is to be done with a request.
#[derive(Debug)]
pub struct Decision {
    /// What the rules of a site could say as well.
    pub outcome: Outcome,
    /// What becomes of the response.
    pub response: Response,
    /// A directory that was asked for without a slash at its end, and gets none.
    pub found: Option<Kind>,
}

/// A path that is looked at; an internal redirect has another one.
struct Step {
    path: Vec<u8>,
    query: Option<Vec<u8>>,
    environment: Environment,
    internal: bool,
    subrequest: bool,
}

enum Next {
    Done(Box<Decision>),
    Again(Step),
}

impl Htaccess {
    /// Files of this name (`.htaccess`). With `strict` one with a directive that is not known is not followed.
    #[must_use]
    pub fn new(name: &str, strict: bool) -> Self {
        Self { store: Store::new(name, strict), auths: Mutex::default() }
    }

    /// What is to be done with a request.
    pub fn decide(&self, facts: &Facts<'_>, world: &dyn World, now: Instant) -> Decision {
        let step = Step {
            path: facts.path.to_vec(),
            query: facts.query.map(<[u8]>::to_vec),
            environment: Environment::default(),
            internal: false,
            subrequest: false,
        };
        self.walk(step, facts, world, now)
    }

    /// What is to be shown for an error of a request: the page is another path of the same request.
    pub fn decide_error(
        &self,
        facts: &Facts<'_>,
        world: &dyn World,
        now: Instant,
        page: &str,
        before: &Response,
        status: u16,
    ) -> Decision {
        let (path, query) = split_query(page.as_bytes());
        let mut environment = before.environment().redirected();
        environment.set("REDIRECT_STATUS", status.to_string().into_bytes());
        environment.set("REDIRECT_URL", facts.path.to_vec());
        if let Some(query) = facts.query {
            environment.set("REDIRECT_QUERY_STRING", query.to_vec());
        }
        let step = Step { path: normal(path), query, environment, internal: true, subrequest: false };
        self.walk(step, facts, world, now)
    }

    fn walk(&self, first: Step, facts: &Facts<'_>, world: &dyn World, now: Instant) -> Decision {
        let mut step = first;
        let mut walk = Walk {
            htaccess: self,
            facts,
            world,
            now,
            effort: Effort::default(),
            ended: false,
            access: Vec::new(),
            cookies: Vec::new(),
        };
        for _ in 0..=REDIRECTS {
            match walk.step(step) {
                Ok(Next::Done(decision)) => return *decision,
                Ok(Next::Again(next)) => step = next,
                Err(TooMuch) => return failed("a pattern takes too long, or there are too many rules"),
            }
        }
        failed("more than 10 internal redirects: the rules lead in a circle")
    }

    fn auth(&self, config: &Config, users: Vec<String>) -> Result<Arc<Auth>, &'static str> {
        let Some(file) = config.auth.file.clone().filter(|_| config.auth.kind.as_deref() == Some("basic")) else {
            return Err("a user is required, and AuthType Basic or AuthUserFile is missing");
        };
        let key = (config.auth.realm.clone().unwrap_or_default(), file, users);
        if let Some((_, auth)) = self.auths.lock().iter().find(|(known, _)| *known == key) {
            return Ok(auth.clone());
        }
        let (realm, file, users) = &key;
        let source = Users::file(Path::new(file)).map_err(|_| "AuthUserFile cannot be read")?;
        let only = users.iter().map(|user| user.as_str().into()).collect();
        let auth = Arc::new(Auth::new(realm, source, only).map_err(|_| "AuthName cannot be sent")?);
        let mut kept = self.auths.lock();
        if kept.len() >= MOST_AUTHS {
            kept.clear();
        }
        kept.push((key, auth.clone()));
        Ok(auth)
    }
}

fn failed(reason: &'static str) -> Decision {
    let failure = Failure { rule: ".htaccess".into(), reason };
    let outcome = Outcome { stop: Some(Stop::Failed(failure)), ..Outcome::default() };
    Decision { outcome, response: Response::default(), found: None }
}

/// One request on its way through the files.
struct Walk<'w> {
    htaccess: &'w Htaccess,
    facts: &'w Facts<'w>,
    world: &'w dyn World,
    now: Instant,
    effort: Effort,
    /// A rule with `END` was met.
    ended: bool,
    access: Vec<Access>,
    /// Cookies that rules have set; an internal redirect keeps them.
    cookies: Vec<Vec<u8>>,
}

impl Walk<'_> {
    fn step(&mut self, step: Step) -> Result<Next, TooMuch> {
        let place = Place::find(self.facts.root, &step.path, self.world);
        let Some(place) = place else { return Ok(Next::Done(Box::new(failed("too many directories")))) };
        let directories = place.directories(self.facts.root);
        let merged = self.htaccess.store.merged(&directories, self.world, self.now);
        if merged.broken {
            return Ok(Next::Done(Box::new(failed("a .htaccess file cannot be followed: see the log"))));
        }
        let mut scene = Scene {
            facts: *self.facts,
            world: self.world,
            path: step.path,
            filename: place.filename.clone(),
            path_info: place.path_info.clone(),
            query: step.query,
            environment: step.environment,
            user: None,
            internal: step.internal,
            subrequest: step.subrequest,
            effort: std::mem::take(&mut self.effort),
            response: None,
        };
        let config = with_sections(&merged.config, &merged.sections, &mut scene)?;
        let next = self.modules(&config, &place, &mut scene)?;
        self.effort = scene.effort;
        Ok(next)
    }

    /// The modules, in the order in which they are asked.
    fn modules(&mut self, config: &Arc<Config>, place: &Place, scene: &mut Scene<'_>) -> Result<Next, TooMuch> {
        // What a directory's index is found by is a request within the request, which sets nothing of its own.
        let sets = if scene.subrequest { &[][..] } else { &config.set_if };
        for set in sets {
            set.apply(scene)?;
        }
        let mut effects = Effects { cookies: std::mem::take(&mut self.cookies), ..Effects::default() };
        if let Some(refused) = self.enter(config, scene)? {
            return Ok(self.stop(config, scene, &effects, place, refused));
        }
        if let Some(rewrite) = config.rewrite.as_ref().filter(|_| !self.ended) {
            match rewrite::run(rewrite, scene, &mut effects)? {
                rewrite::Outcome::Same => {}
                rewrite::Outcome::Again { path, end } => {
                    self.ended |= end;
                    // Apache runs its other modules before it begins anew.
                    for change in &config.changes {
                        change.apply(scene);
                    }
                    // mod_dir among them, which only looks at what was asked for.
                    if let Some(slash) = slash(config, place, scene) {
                        return Ok(self.stop(config, scene, &effects, place, slash));
                    }
                    self.cookies = effects.cookies;
                    return Ok(Next::Again(again(scene, &path)));
                }
                rewrite::Outcome::Redirect { status, location } => {
                    let stop = redirect(status, &location);
                    return Ok(self.stop(config, scene, &effects, place, stop));
                }
                rewrite::Outcome::Status(status) => {
                    return Ok(self.stop(config, scene, &effects, place, status_stop(status)));
                }
            }
        }
        for change in &config.changes {
            change.apply(scene);
        }
        for line in &config.redirects {
            let stop = match line.apply(scene)? {
                None => continue,
                Some(End::Redirect { status, location }) => redirect(status, &location),
                Some(End::Status(status)) => status_stop(status),
            };
            return Ok(self.stop(config, scene, &effects, place, stop));
        }
        self.directory(config, place, scene, &effects)
    }

    /// Whether the client may come in: else with what the request ends.
    fn enter(&mut self, config: &Config, scene: &mut Scene<'_>) -> Result<Option<Stop>, TooMuch> {
        if config.ssl_required && !scene.facts.https {
            return Ok(Some(status_stop(403)));
        }
        let allowed = config.compat.as_ref().map(|compat| compat.allows(scene));
        let verdict = match &config.require {
            Some(require) => Some(require.verdict(scene)?),
            None => None,
        };
        let verdict = match (allowed, verdict, config.satisfy_any) {
            (Some(true), Some(_), Some(true)) => return Ok(None),
            (Some(false), Some(verdict), Some(true)) => verdict,
            (Some(false), ..) => Verdict::Denied,
            (_, verdict, _) => verdict.unwrap_or(Verdict::Granted),
        };
        Ok(match verdict {
            Verdict::Granted => None,
            Verdict::Denied => Some(status_stop(403)),
            Verdict::Needs(users) => match self.htaccess.auth(config, users) {
                Ok(auth) => {
                    let known = |access: &Access| matches!(access, Access::Auth(known) if Arc::ptr_eq(known, &auth));
                    if !self.access.iter().any(known) {
                        self.access.push(Access::Auth(auth));
                    }
                    None
                }
                Err(reason) => Some(Stop::Failed(Failure { rule: ".htaccess".into(), reason })),
            },
        })
    }

    /// mod_dir: the slash at a directory's end, its index, and what responds where nothing is.
    fn directory(
        &mut self,
        config: &Arc<Config>,
        place: &Place,
        scene: &mut Scene<'_>,
        effects: &Effects,
    ) -> Result<Next, TooMuch> {
        let is_directory = place.kind == Some(Kind::Directory) && place.path_info.is_empty();
        if is_directory && !scene.path.ends_with(b"/") {
            return Ok(match slash(config, place, scene) {
                Some(slash) => self.stop(config, scene, effects, place, slash),
                None => self.finish(config, scene, effects, place),
            });
        }
        if is_directory {
            let usual = ["index.php".to_owned(), "index.html".to_owned()];
            let names = config.index.as_ref().map_or(&usual[..], |names| names.as_slice());
            for name in names.iter().take(50) {
                scene.effort.spend(10_000)?;
                let path = if name.starts_with('/') {
                    normal(name.as_bytes())
                } else {
                    normal(&[scene.path.as_slice(), name.as_bytes()].concat())
                };
                let there = self.world.look(&[self.facts.root, &path].concat());
                if there.is_some_and(|entry| entry.kind == Kind::File) {
                    let query = scene.query.take();
                    let environment = std::mem::take(&mut scene.environment);
                    return Ok(Next::Again(Step {
                        path,
                        query,
                        environment,
                        internal: scene.internal,
                        subrequest: true,
                    }));
                }
            }
        }
        let nothing = place.kind.is_none() || is_directory;
        if let Some(Some(fallback)) = config.fallback.as_ref().filter(|_| nothing) {
            let (path, query) = split_query(fallback.as_bytes());
            let path = if path.starts_with(b"/") {
                normal(path)
            } else {
                let end = scene.path.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
                normal(&[&scene.path[..end], path].concat())
            };
            if path != scene.path {
                let query = query.or_else(|| scene.query.take());
                let environment = std::mem::take(&mut scene.environment);
                return Ok(Next::Again(Step { path, query, environment, internal: scene.internal, subrequest: true }));
            }
        }
        Ok(self.finish(config, scene, effects, place))
    }

    fn stop(
        &mut self,
        config: &Arc<Config>,
        scene: &mut Scene<'_>,
        effects: &Effects,
        place: &Place,
        stop: Stop,
    ) -> Next {
        let response = Response::new(config.clone(), scene, effects, place.kind);
        let outcome = Outcome { stop: Some(stop), access: std::mem::take(&mut self.access), ..Outcome::default() };
        Next::Done(Box::new(Decision { outcome, response, found: place.kind }))
    }

    /// Nothing is in the way: what the path names responds.
    fn finish(&mut self, config: &Arc<Config>, scene: &mut Scene<'_>, effects: &Effects, place: &Place) -> Next {
        let response = Response::new(config.clone(), scene, effects, place.kind);
        let mut outcome = Outcome { access: std::mem::take(&mut self.access), ..Outcome::default() };
        if scene.path != self.facts.path {
            outcome.path = Some(scene.path.clone());
        }
        if scene.query.as_deref() != self.facts.query {
            outcome.query = Some(scene.query.clone());
        }
        outcome.php = response.file_type().php;
        if config.php.get("engine").is_some_and(|engine| engine == "0") {
            outcome.php = Some(false);
        }
        let values: Vec<_> = config.php.iter().filter(|(name, _)| *name != "engine").collect();
        if !values.is_empty() {
            let values = values.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect();
            outcome.ini.push(Arc::new(Ini { values, admin: Vec::new() }));
        }
        for (name, value) in scene.environment.iter() {
            if let Ok(value) = std::str::from_utf8(value) {
                outcome.variables.push((name.into(), value.into()));
            }
        }
        outcome.request_headers = request_headers(config, scene);
        outcome.listing = config.listing;
        outcome.max_body = config.body_limit.filter(|limit| *limit > 0);
        outcome.front_controller = Some(None);
        Next::Done(Box::new(Decision { outcome, response, found: place.kind }))
    }
}

/// The redirect of a directory that was asked for without a slash at its end.
fn slash(config: &Config, place: &Place, scene: &Scene<'_>) -> Option<Stop> {
    let is_directory = place.kind == Some(Kind::Directory) && place.path_info.is_empty();
    if !is_directory || scene.path.ends_with(b"/") || config.slash == Some(false) {
        return None;
    }
    let mut location = rewrite::escape_path(&scene.path);
    location.push(b'/');
    if let Some(query) = &scene.query {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    Some(redirect(301, &rewrite::qualified(&scene.facts, &location)))
}

/// What `RequestHeader` lines make of the request's headers, as changes.
fn request_headers(config: &Config, scene: &mut Scene<'_>) -> Vec<(http::HeaderName, Option<HeaderValue>)> {
    if config.request_headers.is_empty() {
        return Vec::new();
    }
    let before = scene.facts.headers;
    let mut headers: HeaderMap = before.clone();
    for line in &config.request_headers {
        if line.apply(&mut headers, scene).is_err() {
            break;
        }
    }
    let mut changes = Vec::new();
    for name in before.keys().filter(|name| !headers.contains_key(*name)) {
        changes.push((name.clone(), None));
    }
    for name in headers.keys() {
        let values: Vec<_> = headers.get_all(name).iter().collect();
        if !before.get_all(name).iter().eq(values.iter().copied()) {
            let joined = values.iter().map(|value| value.as_bytes()).collect::<Vec<_>>().join(&b", "[..]);
            changes.push((name.clone(), HeaderValue::from_bytes(&joined).ok()));
        }
    }
    changes
}

/// An internal redirect to what rules have made: an address without scheme and host, so the first `?` ends the path.
fn again(scene: &mut Scene<'_>, made: &[u8]) -> Step {
    let (path, mut query) = split_query(made);
    if let Some(own) = scene.query.take() {
        query = Some(query.map_or_else(|| own.clone(), |before| [&before, &b"?"[..], &own].concat()));
    }
    let mut environment = scene.environment.redirected();
    environment.set("REDIRECT_STATUS", b"200".to_vec());
    environment.set("REDIRECT_URL", scene.path.clone());
    if let Some(query) = &query {
        environment.set("REDIRECT_QUERY_STRING", query.clone());
    }
    Step { path: normal(path), query, environment, internal: true, subrequest: false }
}

/// The configuration with the sections that are for this request.
fn with_sections(
    config: &Arc<Config>,
    sections: &[Arc<Section>],
    scene: &mut Scene<'_>,
) -> Result<Arc<Config>, TooMuch> {
    let mut made: Option<Config> = None;
    let mut waiting: Vec<Arc<Section>> = sections.iter().rev().cloned().collect();
    let mut late: Vec<Arc<Section>> = Vec::new();
    loop {
        let Some(section) = waiting.pop() else {
            if late.is_empty() {
                break;
            }
            waiting.extend(late.drain(..).rev());
            continue;
        };
        if !section.select.holds(scene)? {
            continue;
        }
        let made = made.get_or_insert_with(|| (**config).clone());
        match section.select {
            Select::Methods(..) => made.merge_methods(&section.config),
            Select::Files(_) | Select::If { .. } => made.merge(&section.config),
        }
        let is_late =
            |inner: &Section| matches!(inner.select, Select::If { .. }) && !matches!(section.select, Select::If { .. });
        late.extend(section.sections.iter().filter(|inner| is_late(inner)).cloned());
        waiting.extend(section.sections.iter().rev().filter(|inner| !is_late(inner)).cloned());
    }
    Ok(made.map_or_else(|| config.clone(), Arc::new))
}

fn status_stop(status: u16) -> Stop {
    Stop::Status(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), None)
}

fn redirect(status: u16, location: &[u8]) -> Stop {
    let clean: Vec<u8> = location.iter().copied().filter(|b| !b.is_ascii_control()).collect();
    match (StatusCode::from_u16(status), HeaderValue::from_bytes(&clean)) {
        (Ok(status), Ok(location)) => Stop::Redirect(status, location),
        _ => status_stop(500),
    }
}

fn split_query(path: &[u8]) -> (&[u8], Option<Vec<u8>>) {
    match path.iter().position(|&b| b == b'?') {
        Some(at) => (&path[..at], Some(path[at + 1..].to_vec())),
        None => (path, None),
    }
}

/// A path without `.`, `..` and empty names; it may not lead above the root.
fn normal(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    let mut last = &b""[..];
    for part in path.split(|&b| b == b'/') {
        last = part;
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    let mut made = Vec::with_capacity(path.len() + 1);
    for part in &parts {
        made.push(b'/');
        made.extend(part.iter().filter(|b| **b != 0));
    }
    if made.is_empty() || matches!(last, b"" | b"." | b"..") {
        made.push(b'/');
    }
    made.truncate(limits::EXPANDED);
    made
}

/// Where a path leads in the file system.
struct Place {
    filename: Vec<u8>,
    path_info: Vec<u8>,
    kind: Option<Kind>,
}

impl Place {
    /// Looks for the first name that is no directory; what follows it is the rest. `None` if there are too many names.
    fn find(root: &[u8], path: &[u8], world: &dyn World) -> Option<Self> {
        let kind = |entry: Option<Entry>| entry.map(|entry| entry.kind);
        let full = [root, path].concat();
        if path.iter().filter(|b| **b == b'/').count() > limits::DIRECTORIES {
            return None;
        }
        let whole = kind(world.look(&full));
        if whole.is_some() {
            return Some(Self { filename: full, path_info: Vec::new(), kind: whole });
        }
        let ends = (root.len() + 1..full.len()).filter(|&at| full[at] == b'/').chain([full.len()]);
        for end in ends {
            let kind = kind(world.look(&full[..end]));
            if kind != Some(Kind::Directory) {
                return Some(Self { filename: full[..end].to_vec(), path_info: full[end..].to_vec(), kind });
            }
        }
        Some(Self { filename: full, path_info: Vec::new(), kind: None })
    }

    /// The directories on the way, the root first, each with a slash at its end.
    fn directories(&self, root: &[u8]) -> Vec<Cow<'_, [u8]>> {
        let slashes = (root.len()..self.filename.len()).filter(|&at| self.filename[at] == b'/');
        let mut found: Vec<Cow<'_, [u8]>> = slashes.map(|at| self.filename[..=at].into()).collect();
        if self.kind == Some(Kind::Directory) && !self.filename.ends_with(b"/") {
            found.push([self.filename.as_slice(), b"/"].concat().into());
        }
        found
    }
}

impl Decision {
    /// The page that directives have for an error.
    #[must_use]
    pub fn error_document(&self, status: u16) -> Option<&ErrorDocument> {
        self.response.error_document(status)
    }
}
