//! Module mod_dir: the trailing slash of a directory, its index (`DirectoryIndex`), and the responder for missing paths
//! (`FallbackResource`).

use crate::config::Config;
use crate::decision::{Next, Step, Walk, redirect};
use crate::limits;
use crate::pattern::BudgetExceeded;
use crate::place::{ResolvedPath, sibling, split_query};
use crate::request_state::RequestState;
use crate::rewrite::{self, Effects};
use crate::system::Kind;
use crate::text::raw;
use howdah_rules::outcome::{Failure, Stop};
use http::StatusCode;
use std::sync::Arc;

impl Walk<'_> {
    /// The response for a directory, or for a path that does not exist.
    pub(super) fn directory(
        &mut self,
        config: &Arc<Config>,
        place: &ResolvedPath,
        state: &mut RequestState<'_>,
        effects: &mut Effects,
    ) -> Result<Next, BudgetExceeded> {
        let is_directory = place.kind == Some(Kind::Directory) && place.path_info.is_empty();
        if is_directory && !state.path.ends_with(b"/") {
            return match slash(config, place, state) {
                Some(slash) => Ok(self.stop(config, state, effects, place, slash)),
                None => self.finish(config, state, effects, place),
            };
        }
        let found = if is_directory {
            self.index(config, state)?
        } else if place.kind.is_none() && !config.media.has_handler(&state.filename) {
            self.fallback(config, state)?
        } else {
            SubrequestResult::Nothing
        };
        effects.cookies.clone_from(&self.cookies);
        match found {
            SubrequestResult::Taken(next) => Ok(next),
            SubrequestResult::Refused(stop) => Ok(self.stop(config, state, effects, place, stop)),
            SubrequestResult::Nothing => self.finish(config, state, effects, place),
        }
    }

    /// The first name of `DirectoryIndex` that exists, tried by a subrequest each (mod_dir.c, `fixup_dir`). If none
    /// exists, the last refusal counts.
    fn index(&mut self, config: &Config, state: &mut RequestState<'_>) -> Result<SubrequestResult, BudgetExceeded> {
        let usual = ["index.php".to_owned(), "index.html".to_owned()];
        let names = config.index.as_ref().map_or(&usual[..], |names| names.as_slice());
        let ruled = state.has_sections || has_rules(config) || config.fallback.is_some();
        let mut refused = SubrequestResult::Nothing;
        for name in names.iter().take(50) {
            state.budget.spend(10_000)?;
            let Some(path) = sibling(&state.path, &raw(name)) else { continue };
            if !ruled && !name.contains('/') && self.system.stat(&[self.facts.root, &path].concat()).is_none() {
                continue;
            }
            match self.subrequest(state, path, state.query.clone())? {
                SubrequestResult::Nothing => {}
                found @ (SubrequestResult::Taken(_) | SubrequestResult::Refused(Stop::Redirect(..))) => {
                    return Ok(found);
                }
                found => refused = found,
            }
        }
        Ok(refused)
    }

    /// The responder for a missing path, if `FallbackResource` names one (mod_dir.c, `fixup_dflt`).
    fn fallback(&mut self, config: &Config, state: &mut RequestState<'_>) -> Result<SubrequestResult, BudgetExceeded> {
        let Some(Some(fallback)) = &config.fallback else { return Ok(SubrequestResult::Nothing) };
        let fallback = raw(fallback);
        let (path, query) = split_query(&fallback);
        let Some(path) = sibling(&state.path, path) else { return Ok(SubrequestResult::Nothing) };
        if ResolvedPath::find(self.facts.root, &path, self.system).is_none_or(|found| found.kind.is_none()) {
            let failure = Failure { rule: ".htaccess".into(), reason: "the target of FallbackResource does not exist" };
            return Ok(SubrequestResult::Refused(Stop::Failed(failure)));
        }
        let query = query.or_else(|| state.query.clone());
        self.subrequest(state, path, query)
    }

    /// Runs a subrequest, which replaces the request if it finds a file.
    fn subrequest(
        &mut self,
        state: &mut RequestState<'_>,
        path: Vec<u8>,
        query: Option<Vec<u8>>,
    ) -> Result<SubrequestResult, BudgetExceeded> {
        if self.depth == limits::SUBREQUESTS {
            let reason = "more than 10 nested subrequests: FallbackResource or DirectoryIndex leads in a circle";
            return Ok(SubrequestResult::Refused(Stop::Failed(Failure { rule: ".htaccess".into(), reason })));
        }
        let mut outer = state.environment.clone();
        if let Some(before) = &state.outer {
            outer.append(before);
        }
        let (environment, previous) = (state.environment.clone(), self.previous.clone());
        let step = Step { path, query, environment, previous, status: self.status, outer: Some(outer) };
        let kept = (self.previous.clone(), self.status, self.access.clone(), self.headers.clone());
        // Rules that ended for the request are run for the subrequest, and vice versa (mod_rewrite.c, hook_fixup).
        let ended = std::mem::replace(&mut self.ended, false);
        self.budget = std::mem::take(&mut state.budget);
        self.depth += 1;
        let next = self.step(step);
        self.depth -= 1;
        state.budget = std::mem::take(&mut self.budget);
        self.ended = ended;
        let found = match next? {
            Next::Done(mut decision) => {
                // Cookies are added to the outer request immediately (mod_rewrite.c, add_cookie).
                self.cookies = decision.response.kept().0;
                decision.response.set_ended(ended);
                match decision.outcome.stop.take() {
                    None if decision.found == Some(Kind::File) => {
                        return Ok(SubrequestResult::Taken(Next::Done(decision)));
                    }
                    None => SubrequestResult::Nothing,
                    Some(Stop::Status(status, _)) if status == StatusCode::NOT_FOUND => SubrequestResult::Nothing,
                    Some(stop) => SubrequestResult::Refused(stop),
                }
            }
            again @ Next::Again { from_file: true, .. } => return Ok(SubrequestResult::Taken(again)),
            Next::Again { .. } => SubrequestResult::Nothing,
        };
        (self.previous, self.status, self.access, self.headers) = kept;
        Ok(found)
    }
}

pub(super) enum SubrequestResult {
    /// The subrequest replaces the request.
    Taken(Next),
    Refused(Stop),
    Nothing,
}

fn has_rules(config: &Config) -> bool {
    config.rewrite.as_ref().is_some_and(|rewrite| rewrite.engine == Some(true) && !rewrite.rules.is_empty())
}

/// The redirect for a directory requested without a trailing slash.
pub(super) fn slash(config: &Config, place: &ResolvedPath, state: &RequestState<'_>) -> Option<Stop> {
    let is_directory = place.kind == Some(Kind::Directory) && place.path_info.is_empty();
    if !is_directory || state.path.ends_with(b"/") || config.slash == Some(false) {
        return None;
    }
    Some(add_slash(state, &state.path))
}

fn add_slash(state: &RequestState<'_>, path: &[u8]) -> Stop {
    let mut location = rewrite::escape_path(path);
    location.push(b'/');
    if let Some(query) = &state.query {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    redirect(301, &rewrite::qualified(&state.facts, &location))
}
