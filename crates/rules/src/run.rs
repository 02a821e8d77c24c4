//! The evaluation of rules for one request: its state so far, and the effect of one rule.

use crate::conditions::{Key, Present, contains};
use crate::outcome::{Access, Attempt, Failure, Numbers, Outcome, Stop};
use crate::path::normalise;
use crate::regex::{Captures, TooManySteps};
use crate::request::{Files, Request};
use crate::rule::{Action, Kind, Place, QueryMode, Rule, Times, Try};
use crate::template::{Template, encode_query};
use http::{HeaderValue, StatusCode};
use std::borrow::Cow;

/// Maximum length of a path and query that rules produce, in bytes.
const MAX_TARGET_LEN: usize = 32 * 1024;

/// State of one request's evaluation.
pub(crate) struct Run<'a, F> {
    pub(crate) original: &'a Request<'a>,
    files: &'a F,
    pub(crate) path: Cow<'a, [u8]>,
    pub(crate) query: Option<Cow<'a, [u8]>>,
    pub(crate) rewritten: bool,
    /// The default directory of files.
    place: Option<&'a Place>,
    pub(crate) outcome: Option<Box<Outcome>>,
    /// The protecting rules that were applied.
    pub(crate) judged: Numbers,
}

/// Effect of a rule on the further evaluation.
#[derive(Default)]
pub(crate) struct RuleEffect {
    pub(crate) stop: bool,
    pub(crate) rewritten: bool,
}

/// A condition that does not hold.
pub(crate) struct UnmetCondition {
    pub(crate) key: Key,
    negated: bool,
}

impl UnmetCondition {
    pub(crate) fn wanted(&self, rule: &Rule) -> String {
        let conditions = if self.negated { &rule.not } else { &rule.conditions };
        let wanted = conditions.describe(self.key);
        if self.negated { format!("other than {wanted}") } else { wanted }
    }
}

impl<'a, F: Files> Run<'a, F> {
    pub(crate) fn new(request: &'a Request<'a>, files: &'a F, place: Option<&'a Place>) -> Self {
        Self {
            original: request,
            files,
            path: Cow::Borrowed(request.path),
            query: request.query.map(Cow::Borrowed),
            rewritten: false,
            place,
            outcome: None,
            judged: Numbers::default(),
        }
    }

    /// The request with all changes so far.
    fn request(&self) -> Request<'_> {
        Request { path: &self.path, query: self.query.as_deref(), ..*self.original }
    }

    pub(crate) fn outcome(&mut self) -> &mut Outcome {
        self.outcome.get_or_insert_default()
    }

    pub(crate) fn fail(&mut self, rule: &Rule, reason: &'static str) {
        self.outcome().stop = Some(Stop::Failed(Failure { rule: rule.name.clone(), reason }));
    }

    /// The first condition that does not hold.
    pub(crate) fn misses(
        &self,
        rule: &Rule,
        present: (Present, Present),
        path_fits: bool,
    ) -> Result<Option<UnmetCondition>, TooManySteps> {
        let request = self.request();
        let place = self.outcome.as_ref().and_then(|outcome| outcome.place.as_deref()).or(self.place);
        let exists = |wanted: &[Kind]| wanted.contains(&self.files.kind(place, &self.path));
        if let Some(key) = rule.conditions.misses(present.0, &request, path_fits, &exists)? {
            return Ok(Some(UnmetCondition { key, negated: false }));
        }
        let holds = rule.not.holds_one(present.1, &request, &exists)?;
        Ok(holds.map(|key| UnmetCondition { key, negated: true }))
    }

    /// The captures of the rule's first pattern that matches; group 0 alone if it has no path.
    pub(crate) fn captures(&self, rule: &Rule) -> Result<Captures, TooManySteps> {
        for path in &rule.conditions.path {
            if let Some(captures) = path.captures(&self.path)? {
                return Ok(captures);
            }
        }
        Ok(Captures::of([&*self.path].into_iter()))
    }

    pub(crate) fn apply(&mut self, rule: &Rule) -> RuleEffect {
        let mut done = RuleEffect::default();
        let captures = if rule.wants_captures() {
            let Ok(captures) = self.captures(rule) else {
                self.fail(rule, "its pattern took too many steps");
                return RuleEffect { stop: true, ..done };
            };
            captures
        } else {
            Captures::default()
        };
        for action in &rule.actions {
            match action {
                Action::Rewrite(template, mode) => {
                    if let Err(reason) = self.rewrite(template, *mode, &captures) {
                        self.fail(rule, reason);
                        return RuleEffect { stop: true, ..done };
                    }
                    done.rewritten = true;
                }
                Action::TryFiles(list) => match self.attempts(list, &captures) {
                    Ok(attempts) => self.outcome().try_files = Some(attempts),
                    Err(reason) => {
                        self.fail(rule, reason);
                        return RuleEffect { stop: true, ..done };
                    }
                },
                Action::Redirect(template, mode, status) => {
                    let stop = match self.location(template, *mode, &captures, &self.request()) {
                        Some(location) => Stop::Redirect(*status, location),
                        None => Stop::Failed(Failure { rule: rule.name.clone(), reason: "its redirect is too long" }),
                    };
                    self.outcome().stop = Some(stop);
                }
                action => self.set(action),
            }
            if self.outcome.as_ref().is_some_and(|outcome| outcome.stop.is_some()) {
                done.stop = true;
                break;
            }
        }
        done
    }

    /// Applies an action that needs no captures and does not change the path.
    pub(crate) fn set(&mut self, action: &Action) {
        let client = self.original.client;
        let forbidden = || Some(Stop::Status(StatusCode::FORBIDDEN, None));
        match action {
            Action::Allow(list) if !contains(list, client) => self.outcome().stop = forbidden(),
            Action::Deny(list) if contains(list, client) => self.outcome().stop = forbidden(),
            Action::Allow(_) | Action::Deny(_) => {}
            Action::Status(status, body) => self.outcome().stop = Some(Stop::Status(*status, body.clone())),
            Action::Proxy(proxy) => self.outcome().stop = Some(Stop::Proxy(proxy.clone())),
            Action::Maintenance(maintenance) => {
                if maintenance.flag.as_ref().is_none_or(|flag| self.files.is_there(flag)) {
                    self.outcome().stop = Some(Stop::Maintenance(maintenance.clone()));
                }
            }
            other => self.outcome().set(other),
        }
    }

    fn rewrite(&mut self, template: &Template, mode: QueryMode, captures: &Captures) -> Result<(), &'static str> {
        let (path, own) = template.expand_path(captures, &self.request());
        let path = normalise(&path).map_err(|_| "it rewrites to a path that leads above the root")?;
        let query = join(own, self.query.as_deref(), mode);
        if path.len() + query.as_ref().map_or(0, Vec::len) > MAX_TARGET_LEN {
            return Err("it rewrites to a path that is too long");
        }
        self.path = Cow::Owned(path);
        self.query = query.map(Cow::Owned);
        self.rewritten = true;
        Ok(())
    }

    fn attempts(&self, list: &[Try], captures: &Captures) -> Result<Vec<Attempt>, &'static str> {
        let attempts = list.iter().map(|attempt| match attempt {
            Try::Status(status) => Ok(Attempt::Status(*status)),
            Try::Path(template) => {
                let (path, query) = template.expand_path(captures, &self.request());
                let path = normalise(&path).map_err(|_| "it tries a path that leads above the root")?;
                let length = path.len() + query.as_ref().map_or(0, Vec::len);
                if length > MAX_TARGET_LEN {
                    Err("it tries a path that is too long")
                } else {
                    Ok(Attempt::Path(path, query))
                }
            }
        });
        attempts.collect()
    }

    /// The value of `Location`; variables are taken from `variables`, the query from the rules' result so far.
    pub(crate) fn location(
        &self,
        template: &Template,
        mode: QueryMode,
        captures: &Captures,
        variables: &Request<'_>,
    ) -> Option<HeaderValue> {
        let address = template.expand_address(captures, variables);
        let (address, fragment) = address.split_once('#').map_or((&*address, None), |(a, f)| (a, Some(f)));
        let (path, own) = address.split_once('?').map_or((address, None), |(a, q)| (a, Some(q.as_bytes().to_vec())));
        let query = self.query.as_deref().map(|query| encode_query(query).into_bytes());
        let mut location = path.to_owned();
        if let Some(query) = join(own, query.as_deref(), mode) {
            location.push('?');
            location.push_str(&String::from_utf8_lossy(&query));
        }
        if let Some(fragment) = fragment {
            location.push('#');
            location.push_str(fragment);
        }
        if location.len() > MAX_TARGET_LEN {
            return None;
        }
        HeaderValue::from_str(&location).ok()
    }
}

impl Outcome {
    fn set(&mut self, action: &Action) {
        match action {
            Action::Place(place) => self.place = Some(place.clone()),
            Action::Index(names) => self.index = Some(names.clone()),
            Action::FrontController(script) => self.front_controller = Some(script.clone()),
            Action::Php(on) => self.php = Some(*on),
            Action::Limit(limit) => self.access.push(Access::Limit(limit.clone())),
            Action::Auth(auth) => {
                // A later rule overrides an earlier one.
                self.access.retain(|access| !matches!(access, Access::Auth(_)));
                self.access.extend(auth.clone().map(Access::Auth));
            }
            Action::RequestHeader(name, value) => self.request_headers.push((name.clone(), value.clone())),
            Action::Variable(name, value) => self.variables.push((name.clone(), value.clone().into())),
            Action::Response(change) => self.response.push(change.clone()),
            Action::Cors(cors) => self.cors = Some(cors.clone()),
            Action::Mime(mime) => self.mime.push(mime.clone()),
            Action::ErrorPages(pages) => self.error_pages.push(pages.clone()),
            Action::Listing(on) => self.listing = Some(*on),
            Action::Pool(pool) => self.pool = Some(pool.clone()),
            Action::WebSocket(script) => self.websocket = Some(script.clone()),
            Action::Route(route) => {
                self.route = Some(route.clone());
                self.share = route.share.map(|share| share.number).or(self.share);
            }
            Action::Times(times) => {
                let known = self.times;
                self.times = Times { deadline: times.deadline.or(known.deadline), queue: times.queue.or(known.queue) };
            }
            Action::MaxBody(bytes) => self.max_body = Some(*bytes),
            Action::AccessLog(on) => self.access_log = Some(*on),
            // `Run` handles those that change the evaluation; links apply to the whole site.
            Action::Links(_) => {}
            Action::Allow(_) | Action::Deny(_) | Action::TryFiles(_) | Action::Rewrite(..) => {}
            Action::Redirect(..) | Action::Status(..) | Action::Maintenance(_) | Action::Proxy(_) => {}
        }
    }
}

/// Combines the query of a new path with the request's. An empty one drops the request's query.
fn join(own: Option<Vec<u8>>, request: Option<&[u8]>, mode: QueryMode) -> Option<Vec<u8>> {
    let request = request.filter(|query| !query.is_empty());
    match (own, request) {
        (Some(own), _) if own.is_empty() => None,
        (Some(mut own), Some(request)) if mode == QueryMode::Append => {
            own.push(b'&');
            own.extend_from_slice(request);
            Some(own)
        }
        (Some(own), _) => Some(own),
        (None, _) if mode == QueryMode::Drop => None,
        (None, request) => request.map(<[u8]>::to_vec),
    }
}
