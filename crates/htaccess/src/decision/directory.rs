//! mod_dir: the slash at a directory's end, its index (`DirectoryIndex`), and what responds where nothing is
//! (`FallbackResource`).

use crate::config::Config;
use crate::decision::{Next, Step, Walk, redirect, status_stop};
use crate::pattern::TooMuch;
use crate::place::{Place, beside, split_query};
use crate::rewrite::{self, Effects};
use crate::scene::Scene;
use crate::text::raw;
use crate::world::Kind;
use howdah_rules::outcome::{Failure, Stop};
use std::sync::Arc;

impl Walk<'_> {
    /// The response of a directory, or of a path that names nothing.
    pub(super) fn directory(
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
            let mut failure = None;
            let mut inner = Effects { cookies: effects.cookies.clone(), ..Effects::default() };
            for name in names.iter().take(50) {
                scene.effort.spend(10_000)?;
                let Some(path) = beside(&scene.path, &raw(name)) else { continue };
                // Apache tries each name by a separate request, so where nothing has it FallbackResource responds,
                // before the names behind it (mod_dir.c, fixup_dir and fixup_dflt).
                match self.world.look(&[self.facts.root, &path].concat()).map(|entry| entry.kind) {
                    Some(Kind::File) => {
                        let query = scene.query.take();
                        return Ok(Next::Again(self.within(scene, path, query)));
                    }
                    Some(Kind::Directory) if !path.ends_with(b"/") && config.slash != Some(false) => {
                        let slash = add_slash(scene, &path);
                        return Ok(self.stop(config, scene, effects, place, slash));
                    }
                    None => match self.rewritten(config, scene, &path, &mut inner)? {
                        rewrite::Outcome::Same => match self.fallback(config, scene, &path) {
                            Some(Ok(next)) => return Ok(Next::Again(next)),
                            Some(Err(stop)) => failure = Some(stop),
                            None => {}
                        },
                        rewrite::Outcome::Redirect { status, location } => {
                            return Ok(self.stop(config, scene, &inner, place, redirect(status, &location)));
                        }
                        rewrite::Outcome::Status(status) if status != 404 => failure = Some(status_stop(status)),
                        rewrite::Outcome::Status(_) | rewrite::Outcome::Again(_) => {}
                    },
                    _ => {}
                }
            }
            if let Some(failure) = failure {
                return Ok(self.stop(config, scene, effects, place, failure));
            }
        } else if place.kind.is_none() {
            let path = scene.path.clone();
            match self.fallback(config, scene, &path) {
                Some(Ok(next)) => return Ok(Next::Again(next)),
                Some(Err(stop)) => return Ok(self.stop(config, scene, effects, place, stop)),
                None => {}
            }
        }
        Ok(self.finish(config, scene, effects, place))
    }

    /// The responder for a missing path, if `FallbackResource` names one.
    fn fallback(&mut self, config: &Config, scene: &mut Scene<'_>, missing: &[u8]) -> Option<Result<Step, Stop>> {
        let fallback = config.fallback.as_ref()?.as_ref()?;
        let fallback = raw(fallback);
        let (path, query) = split_query(&fallback);
        let path = beside(missing, path)?;
        if Place::find(self.facts.root, &path, self.world).is_none_or(|found| found.kind.is_none()) {
            let failure = Failure { rule: ".htaccess".into(), reason: "FallbackResource leads to nothing" };
            return Some(Err(Stop::Failed(failure)));
        }
        let query = query.or_else(|| scene.query.take());
        Some(Ok(self.within(scene, path, query)))
    }

    /// Where rules lead a name that a directory's index could have.
    fn rewritten(
        &self,
        config: &Config,
        scene: &mut Scene<'_>,
        path: &[u8],
        effects: &mut Effects,
    ) -> Result<rewrite::Outcome, TooMuch> {
        let Some(rewrite) = config.rewrite.as_ref().filter(|_| !self.ended) else { return Ok(rewrite::Outcome::Same) };
        let own = (scene.path.clone(), scene.filename.clone(), scene.query.clone(), scene.subrequest);
        let environment = scene.environment.clone();
        (scene.path, scene.filename) = (path.to_vec(), [self.facts.root, path].concat());
        scene.subrequest = true;
        let outcome = rewrite::run(rewrite, scene, effects);
        (scene.path, scene.filename, scene.query, scene.subrequest) = own;
        scene.environment = environment;
        Ok(outcome?.0)
    }

    /// A request within the request that takes its place: a directory's index, or what responds where nothing is.
    fn within(&mut self, scene: &mut Scene<'_>, path: Vec<u8>, query: Option<Vec<u8>>) -> Step {
        let (environment, previous) = (std::mem::take(&mut scene.environment), self.previous.take());
        Step { path, query, environment, previous, status: self.status, subrequest: true }
    }
}

/// The redirect of a directory that was asked for without a slash at its end.
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
