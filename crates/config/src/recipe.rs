//! A recipe boots the application in the root once for many requests: in a pool of its own, ahead of the default pool, which
//! stays in classic mode and takes over whenever that one does not serve.

use crate::choice::{Mode, RootLinks};
use crate::code_files::code_patterns;
use crate::origin::Origin;
use crate::quantity::{SpareWorkers, WorkerRange};
use crate::settings::{DEFAULT_POOL, PoolSettings, Settings};
use crate::source::Source;
use howdah_detect::{Application, Recipe, Watched};
use std::path::Path;

/// Workers of the default pool at the start: enough until the application has booted.
const FIRST_WORKERS: usize = 2;
/// What a pool is warmed up with until it has learnt more.
const FIRST_PATH: &str = "/";
/// One of so many responses is compared with classic mode's where nobody has said that the application is to be booted.
const COMPARED: u32 = 1000;

/// Adds the pool that boots by a recipe, where one is said or the application that was found has one.
pub(crate) fn add(settings: &mut Settings, found: Option<&Application>, source: &mut Source<'_>) {
    let mode_is_said = source.origins.of("mode") != Origin::Default;
    let Some(default) = settings.pools.first() else { return };
    let mode = match default.mode {
        Mode::Classic if !mode_is_said => Mode::Snapshot,
        other => other,
    };
    let said = settings.recipe.as_deref();
    let recipe = match (said, found.and_then(Application::recipe)) {
        (Some("none"), _) | (None, None) => return,
        // An explicit mode counts more.
        (_, _) if mode == Mode::Classic => return,
        (Some(name), _) => match Recipe::named(name) {
            Some(recipe) => recipe,
            None => {
                let message = format!("there is no recipe {name}; there are {} and none", Recipe::names());
                return source.object("recipe", message);
            }
        },
        (None, Some(recipe)) => recipe,
    };
    let is_said = said.is_some();
    match obstacle(settings, default, recipe, mode, source) {
        Some(why) if is_said => return source.object("recipe", why),
        Some(_) => return,
        None => {}
    }
    let name = recipe.name.to_owned();
    let mut booted = PoolSettings { name: name.clone(), mode, recipe: Some(name.clone()), ..default.clone() };
    let front = settings.root.join(recipe.script);
    if source.origins.of("watch") == Origin::Default {
        booted.watch = watched(recipe, &settings.root, &front);
    }
    booted.script = Some(front);
    if mode == Mode::Snapshot && source.origins.of("warmup") == Origin::Default {
        booted.warmup = vec![FIRST_PATH.to_owned()];
    }
    booted.compare_with = Some(DEFAULT_POOL.to_owned());
    if !is_said && source.origins.of("compare_one_in") == Origin::Default {
        booted.compare_one_in = COMPARED;
    }
    if source.origins.of("warmup_auto") == Origin::Default {
        booted.warmup_auto = mode == Mode::Snapshot;
    }
    if let Some(default) = settings.pools.first_mut() {
        default.mode = Mode::Classic;
        default.compare_one_in = 0;
        default.compare_with = None;
        default.warmup.clear();
        default.warmup_auto = false;
        default.watch.clear();
        // They are for what the other pool does not run.
        default.start_workers = FIRST_WORKERS.min(default.workers.max as usize);
        default.workers = WorkerRange { min: 0, max: default.workers.max };
        default.spare_workers = SpareWorkers::default();
    }
    settings.pools.push(booted);
    settings.recipe = Some(name);
    if let Some(found) = found.filter(|_| !is_said) {
        source.origins.set("recipe".to_owned(), Origin::Found(found.title()));
    }
}

/// What makes the booted application an old one: classic mode, for which it stands in, loads what has changed.
fn watched(recipe: &Recipe, root: &Path, front: &Path) -> Vec<String> {
    if let Watched::InRoot(patterns) = recipe.watched {
        return patterns.iter().map(|pattern| root.join(pattern).display().to_string()).collect();
    }
    let Some(project) = root.parent() else { return Vec::new() };
    let mut patterns = code_patterns(project, Some(root));
    let further = [front.to_path_buf(), project.join("composer.lock"), project.join("vendor/composer/installed.php")];
    patterns.extend(further.iter().map(|path| path.display().to_string()));
    patterns
}

/// Why the recipe cannot boot this.
fn obstacle(
    settings: &Settings,
    default: &PoolSettings,
    recipe: &Recipe,
    mode: Mode,
    source: &Source<'_>,
) -> Option<String> {
    let Recipe { name, script, .. } = recipe;
    let taken = settings.pools.iter().any(|pool| pool.name == *name && pool.name != DEFAULT_POOL);
    let front =
        settings.front_controller.as_deref().filter(|_| source.origins.of("front_controller") != Origin::Default);
    if default.script.is_some() || default.boot.is_some() {
        Some("a recipe boots the front controller: leave out `script` and `boot`, or the recipe".to_owned())
    } else if !matches!(mode, Mode::Classic | Mode::Snapshot | Mode::Worker) {
        Some(format!("recipes are for the modes snapshot and worker, and `mode` is {mode}"))
    } else if mode == Mode::Worker && !recipe.in_worker_mode {
        Some(format!("the recipe {name} is for mode snapshot, and `mode` is worker"))
    } else if !settings.sites.is_empty() {
        Some("a recipe is for the server's own root, and there are sites".to_owned())
    } else if settings.root_links == RootLinks::Request {
        Some("a recipe needs to know where its application lies: root_links = \"reload\"".to_owned())
    } else if front.is_some_and(|front| front.trim_start_matches('/') != *script) {
        Some(format!("a recipe boots {script}, and `front_controller` is another script"))
    } else {
        taken.then(|| format!("there is a pool of that name: {name}"))
    }
}

impl Settings {
    /// The pool that boots by a recipe, and goes ahead of the default one.
    #[must_use]
    pub fn booted(&self) -> Option<&PoolSettings> {
        self.pools.iter().find(|pool| pool.recipe.is_some())
    }
}
