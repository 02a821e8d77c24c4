//! Module mod_dir: the trailing slash of a directory, its index (`DirectoryIndex`), and the responder for missing paths
//! (`FallbackResource`).

use crate::config::Config;
use crate::decision::{Next, Step, Walk, redirect};
use crate::limits;
use crate::pattern::TooMuch;
use crate::place::{Place, beside, split_query};
use crate::rewrite::{self, Effects};
use crate::scene::Scene;
use crate::text::raw;
use crate::world::Kind;
use howdah_rules::outcome::{Failure, Stop};
use http::StatusCode;
use std::sync::Arc;

impl Walk<'_> {
    /// The response for a directory, or for a path that does not exist.
    pub(super) fn directory(
        &mut self,
        config: &Arc<Config>,
        place: &Place,
        scene: &mut Scene<'_>,
        effects: &mut Effects,
    ) -> Result<Next, TooMuch> {
        let is_directory = place.kind == Some(Kind::Directory) && place.path_info.is_empty();
        if is_directory && !scene.path.ends_with(b"/") {
            return match slash(config, place, scene) {
                Some(slash) => Ok(self.stop(config, scene, effects, place, slash)),
                None => self.finish(config, scene, effects, place),
            };
        }
        let found = if is_directory {
            self.index(config, scene)?
        } else if place.kind.is_none() && !config.media.has_handler(&scene.filename) {
            self.fallback(config, scene)?
        } else {
            Found::Nothing
        };
        effects.cookies.clone_from(&self.cookies);
        match found {
            Found::Taken(next) => Ok(next),
            Found::Refused(stop) => Ok(self.stop(config, scene, effects, place, stop)),
            Found::Nothing => self.finish(config, scene, effects, place),
        }
    }

    /// The first name of `DirectoryIndex` that exists, tried by a subrequest each (mod_dir.c, `fixup_dir`). If none
    /// exists, the last refusal counts.
    fn index(&mut self, config: &Config, scene: &mut Scene<'_>) -> Result<Found, TooMuch> {
        let usual = ["index.php".to_owned(), "index.html".to_owned()];
        let names = config.index.as_ref().map_or(&usual[..], |names| names.as_slice());
        let ruled = scene.has_sections || has_rules(config) || config.fallback.is_some();
        let mut refused = Found::Nothing;
        for name in names.iter().take(50) {
            scene.effort.spend(10_000)?;
            let Some(path) = beside(&scene.path, &raw(name)) else { continue };
            if !ruled && !name.contains('/') && self.world.look(&[self.facts.root, &path].concat()).is_none() {
                continue;
            }
            match self.within(scene, path, scene.query.clone())? {
                Found::Nothing => {}
                found @ (Found::Taken(_) | Found::Refused(Stop::Redirect(..))) => return Ok(found),
                found => refused = found,
            }
        }
        Ok(refused)
    }

    /// The responder for a missing path, if `FallbackResource` names one (mod_dir.c, `fixup_dflt`).
    fn fallback(&mut self, config: &Config, scene: &mut Scene<'_>) -> Result<Found, TooMuch> {
        let Some(Some(fallback)) = &config.fallback else { return Ok(Found::Nothing) };
        let fallback = raw(fallback);
        let (path, query) = split_query(&fallback);
        let Some(path) = beside(&scene.path, path) else { return Ok(Found::Nothing) };
        if Place::find(self.facts.root, &path, self.world).is_none_or(|found| found.kind.is_none()) {
            let failure = Failure { rule: ".htaccess".into(), reason: "FallbackResource leads to nothing" };
            return Ok(Found::Refused(Stop::Failed(failure)));
        }
        let query = query.or_else(|| scene.query.clone());
        self.within(scene, path, query)
    }

    /// Runs a subrequest, which replaces the request if it finds a file.
    fn within(&mut self, scene: &mut Scene<'_>, path: Vec<u8>, query: Option<Vec<u8>>) -> Result<Found, TooMuch> {
        if self.depth == limits::SUBREQUESTS {
            let reason =
                "more than 10 requests within each other: FallbackResource or DirectoryIndex leads in a circle";
            return Ok(Found::Refused(Stop::Failed(Failure { rule: ".htaccess".into(), reason })));
        }
        let mut outer = scene.environment.clone();
        if let Some(before) = &scene.outer {
            outer.append(before);
        }
        let (environment, previous) = (scene.environment.clone(), self.previous.clone());
        let step = Step { path, query, environment, previous, status: self.status, outer: Some(outer) };
        let kept = (self.previous.clone(), self.status, self.access.clone(), self.headers.clone());
        // Rules that ended for the request are run for the subrequest, and vice versa (mod_rewrite.c, hook_fixup).
        let ended = std::mem::replace(&mut self.ended, false);
        self.effort = std::mem::take(&mut scene.effort);
        self.depth += 1;
        let next = self.step(step);
        self.depth -= 1;
        scene.effort = std::mem::take(&mut self.effort);
        self.ended = ended;
        let found = match next? {
            Next::Done(mut decision) => {
                // Cookies are added to the outer request immediately (mod_rewrite.c, add_cookie).
                self.cookies = decision.response.kept().0;
                decision.response.set_ended(ended);
                match decision.outcome.stop.take() {
                    None if decision.found == Some(Kind::File) => return Ok(Found::Taken(Next::Done(decision))),
                    None => Found::Nothing,
                    Some(Stop::Status(status, _)) if status == StatusCode::NOT_FOUND => Found::Nothing,
                    Some(stop) => Found::Refused(stop),
                }
            }
            again @ Next::Again { from_file: true, .. } => return Ok(Found::Taken(again)),
            Next::Again { .. } => Found::Nothing,
        };
        (self.previous, self.status, self.access, self.headers) = kept;
        Ok(found)
    }
}

/// Result of a subrequest.
pub(super) enum Found {
    /// The subrequest replaces the request.
    Taken(Next),
    Refused(Stop),
    Nothing,
}

fn has_rules(config: &Config) -> bool {
    config.rewrite.as_ref().is_some_and(|rewrite| rewrite.engine == Some(true) && !rewrite.rules.is_empty())
}

/// The redirect for a directory requested without a trailing slash.
pub(super) fn slash(config: &Config, place: &Place, scene: &Scene<'_>) -> Option<Stop> {
    let is_directory = place.kind == Some(Kind::Directory) && place.path_info.is_empty();
    if !is_directory || scene.path.ends_with(b"/") || config.slash == Some(false) {
        return None;
    }
    Some(add_slash(scene, &scene.path))
}

fn add_slash(scene: &Scene<'_>, path: &[u8]) -> Stop {
    let mut location = rewrite::escape_path(path);
    location.push(b'/');
    if let Some(query) = &scene.query {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    redirect(301, &rewrite::qualified(&scene.facts, &location))
}
