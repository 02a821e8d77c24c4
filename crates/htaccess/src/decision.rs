//! Decides about a request: runs Apache's modules in Apache's order, from the requested path to the responder.

mod directory;

use crate::access::Verdict;
use crate::config::{Config, Section, Select};
use crate::limits;
use crate::pattern::{BudgetExceeded, StepBudget};
use crate::place::{ResolvedPath, normal, split_query};
use crate::redirects::{End, ErrorDocument};
use crate::request_state::{Environment, RequestState};
use crate::response::Response;
use crate::rewrite::{self, Cookie, Effects};
use crate::store::Store;
use crate::system::{Facts, Kind, System, TooExpensive};
use crate::text::{as_latin1, raw};
use directory::slash;
use howdah_rules::auth::Auth;
use howdah_rules::outcome::{Access, Failure, Outcome, Stop};
use howdah_rules::path::decode;
use howdah_rules::rule::Ini;
use howdah_rules::users::Users;
use http::{HeaderMap, HeaderValue, StatusCode};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of internal redirects of a request, as in Apache.
const REDIRECTS: usize = 10;
/// Maximum number of cached `Auth` values, which are kept because they remember correct passwords.
const MAX_AUTHS: usize = 256;

/// The .htaccess files below one document root.
#[derive(Debug)]
pub struct Htaccess {
    store: Store,
    auths: Mutex<Vec<(AuthKey, Arc<Auth>)>>,
}

/// Key of a cached `Auth`: realm, file and users.
type AuthKey = (String, String, Vec<String>);

/// The decision about a request.
#[derive(Debug)]
pub struct Decision {
    /// The part that a site's rules could express as well.
    pub outcome: Outcome,
    /// Changes of the response.
    pub response: Response,
    /// Kind of the path's target; `None` if it does not exist or was not looked up.
    pub found: Option<Kind>,
    /// Rewrite rules ended the request. On an error's page, this result then replaces that error.
    pub by_rules: bool,
}

/// One pass for one path; an internal redirect begins another.
struct Step {
    pub path: Vec<u8>,
    pub query: Option<Vec<u8>>,
    pub environment: Environment,
    /// The path and query before the internal redirect.
    pub previous: Option<(Vec<u8>, Option<Vec<u8>>)>,
    /// 200, or the status of the error whose page this is.
    pub status: u16,
    /// Variables of the outer request, which this subrequest would replace.
    pub outer: Option<Environment>,
}

enum Next {
    Done(Box<Decision>),
    /// The request restarts with another path. `from_file`: the previous path named a file.
    Again {
        step: Step,
        from_file: bool,
    },
}

impl Htaccess {
    /// Applies to files with this name (usually `.htaccess`).
    pub fn new(name: &str) -> Self {
        Self { store: Store::new(name), auths: Mutex::default() }
    }

    /// Decides about a request.
    ///
    /// # Errors
    /// The decision would take too long on this thread, which serves other connections as well.
    pub fn decide(&self, facts: &Facts<'_>, system: &dyn System, now: Instant) -> Result<Decision, TooExpensive> {
        let step = Step {
            path: facts.path.to_vec(),
            query: facts.query.map(<[u8]>::to_vec),
            environment: Environment::default(),
            previous: None,
            status: 200,
            outer: None,
        };
        self.walk(step, facts, system, now, (Vec::new(), false))
    }

    /// Decides about the error page of a request, which is another path of the same request.
    ///
    /// # Errors
    /// As for `decide`.
    pub fn decide_error(
        &self,
        facts: &Facts<'_>,
        system: &dyn System,
        now: Instant,
        page: &str,
        before: &Response,
        status: u16,
    ) -> Result<Decision, TooExpensive> {
        let page = raw(page);
        let (path, query) = split_query(&page);
        let mut environment = before.environment().clone();
        environment.set("REQUEST_METHOD", facts.method.as_bytes().to_vec());
        let mut environment = environment.redirected();
        environment.set("REDIRECT_STATUS", status.to_string().into_bytes());
        let previous = Some((before.path().to_vec(), before.query().map(<[u8]>::to_vec)));
        let path = decode(path).unwrap_or_else(|_| path.to_vec());
        let step = Step { path: normal(&path), query, environment, previous, status, outer: None };
        self.walk(step, facts, system, now, before.kept())
    }

    fn walk(
        &self,
        first: Step,
        facts: &Facts<'_>,
        system: &dyn System,
        now: Instant,
        (cookies, ended): (Vec<Cookie>, bool),
    ) -> Result<Decision, TooExpensive> {
        let mut step = first;
        let mut walk = Walk {
            htaccess: self,
            facts,
            system,
            now,
            budget: StepBudget::of(system),
            ended,
            access: Vec::new(),
            cookies,
            headers: None,
            previous: None,
            status: 200,
            redirects: 0,
            depth: 0,
        };
        loop {
            match walk.step(step) {
                Ok(Next::Done(decision)) => return Ok(*decision),
                Ok(Next::Again { step: next, .. }) => step = next,
                Err(BudgetExceeded) if system.is_shared() => return Err(TooExpensive),
                Err(BudgetExceeded) => return Ok(failed("a pattern takes too long, or there are too many rules")),
            }
        }
    }

    fn auth(
        &self,
        config: &Config,
        users: Vec<String>,
        budget: &StepBudget,
    ) -> Result<Result<Arc<Auth>, &'static str>, BudgetExceeded> {
        let Some(file) = config.auth.file.clone().filter(|_| config.auth.kind.as_deref() == Some("basic")) else {
            return Ok(Err("a user is required, and AuthType Basic or AuthUserFile is missing"));
        };
        if !file.starts_with('/') {
            return Ok(Err("AuthUserFile is not an absolute path"));
        }
        let key = (config.auth.realm.clone().unwrap_or_default(), file, users);
        if let Some((_, auth)) = self.auths.lock().iter().find(|(known, _)| *known == key) {
            return Ok(Ok(auth.clone()));
        }
        budget.needs_own_thread()?;
        let (realm, file, users) = &key;
        let Ok(source) = Users::file(Path::new(file)) else { return Ok(Err("AuthUserFile cannot be read")) };
        let only = users.iter().map(|user| user.as_str().into()).collect();
        let Ok(auth) = Auth::new(&as_latin1(realm), source, only) else {
            return Ok(Err("AuthName has characters that a header cannot have"));
        };
        let auth = Arc::new(auth);
        let mut kept = self.auths.lock();
        if kept.len() >= MAX_AUTHS {
            kept.clear();
        }
        kept.push((key, auth.clone()));
        Ok(Ok(auth))
    }
}

fn failed(reason: &'static str) -> Decision {
    let failure = Failure { rule: ".htaccess".into(), reason };
    let outcome = Outcome { stop: Some(Stop::Failed(failure)), ..Outcome::default() };
    Decision { outcome, response: Response::default(), found: None, by_rules: false }
}

fn by_rules(next: Next) -> Next {
    match next {
        Next::Done(decision) => Next::Done(Box::new(Decision { by_rules: true, ..*decision })),
        again => again,
    }
}

/// State of one request while the files are evaluated.
struct Walk<'w> {
    htaccess: &'w Htaccess,
    pub facts: &'w Facts<'w>,
    pub system: &'w dyn System,
    now: Instant,
    budget: StepBudget,
    /// A rule with `END` was met.
    pub ended: bool,
    access: Vec<Access>,
    /// Cookies that rules have set; an internal redirect keeps them.
    cookies: Vec<Cookie>,
    /// The request's headers after `RequestHeader`; `None` if unchanged.
    headers: Option<Arc<HeaderMap>>,
    /// `previous` of the current step.
    pub previous: Option<(Vec<u8>, Option<Vec<u8>>)>,
    pub status: u16,
    /// Number of internal redirects so far.
    redirects: usize,
    /// Nesting depth of subrequests.
    pub depth: usize,
}

impl Walk<'_> {
    fn step(&mut self, step: Step) -> Result<Next, BudgetExceeded> {
        if self.facts.root.len() + step.path.len() > limits::FILENAME {
            // No file has such a name.
            let outcome = Outcome { stop: Some(status_stop(403)), ..Outcome::default() };
            let response = Response::of_cookies(std::mem::take(&mut self.cookies));
            return Ok(Next::Done(Box::new(Decision { outcome, response, found: None, by_rules: false })));
        }
        let place = ResolvedPath::find(self.facts.root, &step.path, self.system);
        let Some(place) = place else { return Ok(Next::Done(Box::new(failed("too many directories")))) };
        let directories = place.directories(self.facts.root);
        self.budget.spend(step.environment.bytes() + limits::LOOKUP_EFFORT * directories.len() as u64)?;
        let merged = self.htaccess.store.merged(&directories, self.system, self.now, &mut self.budget)?;
        if merged.broken {
            return Ok(Next::Done(Box::new(failed(
                "a .htaccess file cannot be applied: an earlier message names the line",
            ))));
        }
        (self.previous, self.status) = (step.previous, step.status);
        let headers = self.headers.clone();
        let subrequest = step.outer.is_some();
        let mut state = RequestState {
            facts: Facts { headers: headers.as_deref().unwrap_or(self.facts.headers), ..*self.facts },
            system: self.system,
            path: step.path,
            filename: place.filename.clone(),
            path_info: place.path_info.clone(),
            query: step.query,
            environment: step.environment,
            user: None,
            method: if step.status == 200 { self.facts.method } else { "GET" },
            subrequest,
            has_sections: !merged.sections.is_empty(),
            outer: step.outer,
            budget: std::mem::take(&mut self.budget),
            response: None,
        };
        let config = with_sections(&merged.config, &merged.sections, &mut state)?;
        let next = self.modules(&config, &place, &mut state)?;
        self.budget = state.budget;
        Ok(next)
    }

    /// Runs the modules in the order of Apache's hooks: `SetEnvIf`, access control, and then the "fixups" mod_rewrite,
    /// mod_env, mod_alias, mod_dir and mod_headers. All fixups run, even if rewrite rules lead elsewhere.
    fn modules(
        &mut self,
        config: &Arc<Config>,
        place: &ResolvedPath,
        state: &mut RequestState<'_>,
    ) -> Result<Next, BudgetExceeded> {
        // A directory's index is found by a subrequest, which sets no variables.
        let sets = if state.subrequest { &[][..] } else { &config.set_if };
        for set in sets {
            set.apply(state)?;
        }
        let mut effects = Effects { cookies: std::mem::take(&mut self.cookies), ..Effects::default() };
        if let Some(refused) = self.enter(config, state)? {
            return Ok(self.stop(config, state, &effects, place, refused));
        }
        let (mut elsewhere, mut handled) = (None, None);
        if let Some(rewrite) = config.rewrite.as_ref().filter(|_| !self.ended) {
            let (outcome, ended) = rewrite::run(rewrite, state, &mut effects)?;
            self.ended |= ended;
            let stop = match outcome {
                rewrite::Outcome::Same => None,
                // A handler replaces the redirect and finds no file (mod_rewrite.c, hook_mimetype). The other modules
                // run before it.
                rewrite::Outcome::Again(path) if effects.handler.is_some() => {
                    let status = match place.kind {
                        Some(Kind::File) => 500,
                        Some(Kind::Directory) => 403,
                        _ => 404,
                    };
                    (elsewhere, handled) = (Some(path), Some(status_stop(status)));
                    None
                }
                rewrite::Outcome::Again(path) => {
                    elsewhere = Some(path);
                    None
                }
                rewrite::Outcome::Redirect { status, location } => Some(redirect(status, &location)),
                rewrite::Outcome::Status(status) => Some(status_stop(status)),
            };
            if let Some(stop) = stop {
                return Ok(by_rules(self.stop(config, state, &effects, place, stop)));
            }
        }
        let mut changed = Environment::default();
        for change in &config.changes {
            state.budget.spend(limits::CHANGE)?;
            change.apply(&mut changed, state.system);
        }
        state.environment.append(&changed);
        for line in &config.redirects {
            let stop = match line.apply(state)? {
                None => continue,
                Some(End::Redirect { status, location }) => redirect(status, &location),
                Some(End::Status(status)) => status_stop(status),
            };
            return Ok(self.stop(config, state, &effects, place, stop));
        }
        let Some(path) = elsewhere else {
            self.cookies.clone_from(&effects.cookies);
            return self.directory(config, place, state, &mut effects);
        };
        // For a directory, mod_dir only checks the trailing slash.
        if let Some(slash) = slash(config, place, state) {
            return Ok(self.stop(config, state, &effects, place, slash));
        }
        if let Some(stop) = handled {
            return Ok(by_rules(self.stop(config, state, &effects, place, stop)));
        }
        if self.redirects == REDIRECTS {
            let reason = "more than 10 internal redirects: the rules lead in a circle";
            let failure = Stop::Failed(Failure { rule: ".htaccess".into(), reason });
            return Ok(self.stop(config, state, &effects, place, failure));
        }
        state.take_place();
        self.change_headers(config, state)?;
        let step = match self.again(state, &path) {
            Ok(step) => step,
            // The new request has not reached a directory yet, so no directives apply to this refusal.
            Err(status) => return Ok(self.stop(&Arc::default(), state, &effects, place, status_stop(status))),
        };
        self.redirects += 1;
        self.cookies = effects.cookies;
        Ok(Next::Again { step, from_file: place.kind == Some(Kind::File) })
    }

    /// Checks authentication and access; returns the end of the request if the client is refused.
    fn enter(&mut self, config: &Config, state: &mut RequestState<'_>) -> Result<Option<Stop>, BudgetExceeded> {
        if config.ssl_required && !state.facts.https {
            return Ok(Some(status_stop(403)));
        }
        let allowed = config.compat.as_ref().map(|compat| compat.allows(state));
        let verdict = match &config.require {
            Some(require) => Some(require.verdict(state)?),
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
            Verdict::Needs(users) => match self.htaccess.auth(config, users, &state.budget)? {
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

    fn stop(
        &mut self,
        config: &Arc<Config>,
        state: &mut RequestState<'_>,
        effects: &Effects,
        place: &ResolvedPath,
        stop: Stop,
    ) -> Next {
        let response = Response::new(config.clone(), state, effects, place.kind, self.ended);
        let outcome = Outcome { stop: Some(stop), access: std::mem::take(&mut self.access), ..Outcome::default() };
        Next::Done(Box::new(Decision { outcome, response, found: place.kind, by_rules: false }))
    }

    /// Begins the internal redirect to a rewritten address: without scheme and host, up to the first `#`. Its path, up
    /// to the first `?`, is decoded (http_request.c, ap_internal_redirect). Returns a status if decoding fails.
    fn again(&self, state: &mut RequestState<'_>, made: &[u8]) -> Result<Step, u16> {
        let before = state.query.clone();
        let own = state.query.take();
        let made = own.map_or_else(|| made.to_vec(), |own| [made, b"?", &own].concat());
        let (path, query) = split_query(made.split(|&b| b == b'#').next().unwrap_or_default());
        let path = normal(&redirect_path(path)?);
        let mut environment = state.environment.redirected();
        environment.set("REDIRECT_STATUS", self.status.to_string().into_bytes());
        let previous = Some((state.path.clone(), before));
        Ok(Step { path, query, environment, previous, status: self.status, outer: None })
    }

    /// Nothing has stopped the request: the target of the path responds.
    fn finish(
        &mut self,
        config: &Arc<Config>,
        state: &mut RequestState<'_>,
        effects: &Effects,
        place: &ResolvedPath,
    ) -> Result<Next, BudgetExceeded> {
        state.take_place();
        self.change_headers(config, state)?;
        let response = Response::new(config.clone(), state, effects, place.kind, self.ended);
        let mut outcome = Outcome { access: std::mem::take(&mut self.access), ..Outcome::default() };
        if state.path != self.facts.path {
            outcome.path = Some(state.path.clone());
        }
        if state.query.as_deref() != self.facts.query {
            outcome.query = Some(state.query.clone());
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
        if let Some((path, query)) = &self.previous {
            state.environment.set("REDIRECT_URL", path.clone());
            if let Some(query) = query {
                state.environment.set("REDIRECT_QUERY_STRING", query.clone());
            }
        }
        for (name, value) in state.environment.iter() {
            outcome.variables.push((name.into(), value.into()));
        }
        let headers = self.headers.as_deref().unwrap_or(state.facts.headers);
        outcome.request_headers = changes(self.facts.headers, headers);
        outcome.listing = config.listing;
        outcome.max_body = config.body_limit.filter(|limit| *limit > 0);
        outcome.front_controller = Some(None);
        Ok(Next::Done(Box::new(Decision { outcome, response, found: place.kind, by_rules: false })))
    }

    /// Applies `RequestHeader` lines. Runs after a directory's index was found.
    fn change_headers(&mut self, config: &Config, state: &mut RequestState<'_>) -> Result<(), BudgetExceeded> {
        if config.request_headers.is_empty() {
            return Ok(());
        }
        let mut headers = state.facts.headers.clone();
        for line in &config.request_headers {
            line.apply(&mut headers, state)?;
        }
        self.headers = Some(Arc::new(headers));
        Ok(())
    }
}

/// The differences between two header maps, as changes.
fn changes(before: &HeaderMap, headers: &HeaderMap) -> Vec<(http::HeaderName, Option<HeaderValue>)> {
    if std::ptr::eq(before, headers) {
        return Vec::new();
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

/// Merges the configuration with the sections that match this request.
fn with_sections(
    config: &Arc<Config>,
    sections: &[Arc<Section>],
    state: &mut RequestState<'_>,
) -> Result<Arc<Config>, BudgetExceeded> {
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
        if !section.select.holds(state)? {
            continue;
        }
        let made = made.get_or_insert_with(|| (**config).clone());
        state.budget.spend(section.config.weight() + made.weight() / 8)?;
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

/// The decoded path of an internal redirect, or the status of its refusal (request.c, `ap_process_request_internal`).
fn redirect_path(path: &[u8]) -> Result<Vec<u8>, u16> {
    if path.first() != Some(&b'/') {
        return Err(400);
    }
    if path.windows(3).any(|code| code.eq_ignore_ascii_case(b"%2f") || code == b"%00") {
        return Err(404);
    }
    decode(path).map_err(|_| 400)
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

impl Decision {
    /// The page that `ErrorDocument` sets for a status.
    pub fn error_document(&self, status: u16) -> Option<&ErrorDocument> {
        self.response.error_document(status)
    }
}
