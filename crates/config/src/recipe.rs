//! A recipe boots the application in the root once for many requests: in a pool of its own, ahead of the default pool, which
//! stays in classic mode and takes over whenever that one does not serve.

use crate::choice::{Mode, RootLinks};
use crate::code_files::code_patterns;
use crate::origin::Origin;
use crate::quantity::{SpareWorkers, WorkerRange};
use crate::settings::{DEFAULT_POOL, PoolSettings, Settings};
use crate::source::Source;
use howdah_detect::{Application, RECIPES};
use std::path::Path;

/// The script that recipes boot.
const FRONT: &str = "index.php";
/// Workers of the default pool at the start: enough until the application has booted.
const FIRST_WORKERS: usize = 2;
/// A recipe that takes its snapshot in the midst of the application's own boot, for which there is no other mode.
const WORDPRESS: &str = "wordpress";
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
    let said = settings.recipe.clone();
    let obstacle = obstacle(settings, default, mode, source);
    let name = match (said.as_deref(), found.and_then(Application::recipe)) {
        (Some("none"), _) | (None, None) => return,
        // An explicit mode counts more.
        (_, _) if mode == Mode::Classic => return,
        (Some(name), _) if !RECIPES.contains(&name) => {
            let message = format!("there is no recipe {name}; there are {} and none", RECIPES.join(", "));
            return source.object("recipe", message);
        }
        (Some(name), _) => match obstacle {
            Some(why) => return source.object("recipe", why),
            None => name.to_owned(),
        },
        (None, Some(_)) if obstacle.is_some() => return,
        (None, Some(name)) => name.to_owned(),
    };
    let mut booted = PoolSettings { name: name.clone(), mode, recipe: Some(name.clone()), ..default.clone() };
    let front = settings.root.join(FRONT);
    if source.origins.of("watch") == Origin::Default {
        let root = &settings.root;
        booted.watch = if name == WORDPRESS { watched_in_wordpress(root) } else { watched(root, &front) };
    }
    booted.script = Some(front);
    if mode == Mode::Snapshot && source.origins.of("warmup") == Origin::Default {
        booted.warmup = vec![FIRST_PATH.to_owned()];
    }
    booted.compare_with = Some(DEFAULT_POOL.to_owned());
    if said.is_none() && source.origins.of("compare_one_in") == Origin::Default {
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
    if let Some(found) = found.filter(|_| said.is_none()) {
        source.origins.set("recipe".to_owned(), Origin::Found(found.title()));
    }
}

/// What makes the booted application an old one: classic mode, for which it stands in, loads what has changed.
fn watched(root: &Path, front: &Path) -> Vec<String> {
    let Some(project) = root.parent() else { return Vec::new() };
    let mut patterns = code_patterns(project, Some(root));
    let further = [front.to_path_buf(), project.join("composer.lock"), project.join("vendor/composer/installed.php")];
    patterns.extend(further.iter().map(|path| path.display().to_string()));
    patterns
}

/// The same for WordPress, which lies in its document root and keeps what its users upload there. What each request looks at
/// by itself is not repeated.
fn watched_in_wordpress(root: &Path) -> Vec<String> {
    const CONTENT: &str = "wp-content/{plugins,mu-plugins,themes,languages}/**/*.{php,html,json,mo}";
    let patterns = ["wp-config.php", "wp-includes/version.php", CONTENT];
    patterns.iter().map(|pattern| root.join(pattern).display().to_string()).collect()
}

/// Why no recipe can boot this.
fn obstacle(settings: &Settings, default: &PoolSettings, mode: Mode, source: &Source<'_>) -> Option<String> {
    let taken = |name: &String| settings.pools.iter().any(|pool| pool.name == *name && pool.name != DEFAULT_POOL);
    let front =
        settings.front_controller.as_deref().filter(|_| source.origins.of("front_controller") != Origin::Default);
    if default.script.is_some() || default.boot.is_some() {
        Some("a recipe boots the front controller: leave out `script` and `boot`, or the recipe".to_owned())
    } else if !matches!(mode, Mode::Classic | Mode::Snapshot | Mode::Worker) {
        Some(format!("recipes are for the modes snapshot and worker, and `mode` is {mode}"))
    } else if settings.recipe.as_deref() == Some(WORDPRESS) && mode == Mode::Worker {
        Some("the recipe wordpress is for mode snapshot, and `mode` is worker".to_owned())
    } else if !settings.sites.is_empty() {
        Some("a recipe is for the server's own root, and there are sites".to_owned())
    } else if settings.root_links == RootLinks::Request {
        Some("a recipe needs to know where its application lies: root_links = \"reload\"".to_owned())
    } else if front.is_some_and(|front| front.trim_start_matches('/') != FRONT) {
        Some(format!("a recipe boots {FRONT}, and `front_controller` is another script"))
    } else {
        settings.recipe.as_ref().filter(|name| taken(name)).map(|name| format!("there is a pool of that name: {name}"))
    }
}

impl Settings {
    /// The pool that boots by a recipe, and goes ahead of the default one.
    #[must_use]
    pub fn booted(&self) -> Option<&PoolSettings> {
        self.pools.iter().find(|pool| pool.recipe.is_some())
    }
}
