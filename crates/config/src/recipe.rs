//! A recipe boots a site's application once for many requests, in a separate pool. The site's own pool stays in classic
//! mode as the fallback whenever the booted pool does not serve. Without `[[site]]`, the top level is the only site.

use crate::app_choice::AppChoice;
use crate::choice::{Mode, RootLinks};
use crate::code_files::code_patterns;
use crate::host::HostPattern;
use crate::origin::Origin;
use crate::quantity::{SpareWorkers, WorkerRange};
use crate::recipe_pool::RecipePool;
use crate::settings::{PoolSettings, Settings};
use crate::settings_site::SiteSettings;
use crate::source::Source;
use howdah_detect::{Application, Recipe, Watched};
use std::path::Path;

/// Workers of the site's pool at start: enough until the application has booted.
const FIRST_WORKERS: usize = 2;
/// Warm-up path of a pool that has not learned any yet.
const FIRST_PATH: &str = "/";
/// One in this many responses is compared with classic mode's if the recipe was not requested explicitly.
const COMPARED: u32 = 1000;
/// Adds a pool for each site whose application has a recipe, if `mode` asks for it or the application was found.
pub(crate) fn add(settings: &mut Settings, found: Option<&Application>, source: &mut Source<'_>) {
    let sites = settings.all_sites();
    let booted: Vec<_> = sites.iter().map(|site| boot(settings, site, found, source)).collect();
    // Sites may share a pool, so it is changed only after all of them have their copies.
    for (at, (site, booted)) in sites.iter().zip(&booted).enumerate() {
        let Some((booted, pool)) = booted else { continue };
        settings.pools.push(pool.clone());
        match settings.sites.get_mut(at) {
            Some(site) => site.booted = Some(booted.clone()),
            None => settings.booted = Some(booted.clone()),
        }
        if let Some(pool) = settings.pools.iter_mut().find(|pool| pool.name == site.pool) {
            stand_back(pool);
        }
    }
    for pool in &mut settings.pools {
        let mut users = sites.iter().zip(&booted).filter(|(site, _)| site.uses(&pool.name)).peekable();
        if users.peek().is_some() && users.all(|(site, booted)| site.pool == pool.name && booted.is_some()) {
            // Its workers run only the requests that the booted pools do not take.
            pool.start_workers = FIRST_WORKERS.min(pool.workers.max as usize);
            pool.workers = WorkerRange { min: 0, max: pool.workers.max };
            pool.spare_workers = SpareWorkers::default();
        }
    }
}

/// The boot of a site's recipe, and its pool.
fn boot(
    settings: &Settings,
    site: &SiteSettings,
    found: Option<&Application>,
    source: &mut Source<'_>,
) -> Option<(RecipePool, PoolSettings)> {
    let fallback = settings.pool(&site.pool)?;
    let has_script = fallback.script.is_some() || fallback.boot.is_some();
    let is_asked_for = is_set(fallback, "mode", source);
    let (mode, recipe) = match fallback.mode {
        _ if site.app == AppChoice::None || has_script => return None,
        mode @ (Mode::Snapshot | Mode::Worker) => (mode, named(site, found)?),
        Mode::Classic if !is_asked_for => (Mode::Snapshot, found.and_then(Application::recipe)?),
        _ => return None,
    };
    let name = |recipe: &Recipe| match settings.sites.is_empty() {
        true => recipe.name.to_owned(),
        false => format!("{}.{}", site.name, recipe.name),
    };
    if let Some(why) = obstacle(settings, site, (recipe, &name(recipe)), mode, source) {
        if is_asked_for {
            site.object("app", why, source);
        }
        return None;
    }
    let pool = pool(site, fallback, recipe, mode, is_asked_for, source);
    let pool = PoolSettings { name: name(recipe), ..pool };
    let host = match &site.hosts[..] {
        _ if !recipe.for_one_host => None,
        [HostPattern::Exact(host)] => Some(host.clone()),
        // Requests for other hosts run in classic mode.
        _ => howdah_detect::only_host(&site.root),
    };
    let host = host.filter(|host| site.server_name.as_ref().is_none_or(|name| name == host));
    let believes_proxies = recipe.for_one_host && howdah_detect::believes_proxies(&site.root);
    Some((RecipePool { recipe, pool: pool.name.clone(), host, believes_proxies }, pool))
}

/// The pool that boots: a copy of the site's pool, with the changes that the boot needs.
fn pool(
    site: &SiteSettings,
    fallback: &PoolSettings,
    recipe: &Recipe,
    mode: Mode,
    is_asked_for: bool,
    source: &Source<'_>,
) -> PoolSettings {
    let front = site.root.join(recipe.script);
    let is_open = |key: &str| !is_set(fallback, key, source);
    let mut pool = PoolSettings {
        mode,
        recipe: Some(recipe.name.to_owned()),
        compare_with: Some(fallback.name.clone()),
        ..fallback.clone()
    };
    if is_open("watch") {
        pool.watch = watched(recipe, &site.root, &front);
    }
    if mode == Mode::Snapshot && is_open("warmup") {
        pool.warmup = vec![FIRST_PATH.to_owned()];
    }
    if !is_asked_for && is_open("compare_one_in") {
        pool.compare_one_in = COMPARED;
    }
    if is_open("warmup_auto") {
        pool.warmup_auto = mode == Mode::Snapshot && recipe.learns;
    }
    pool.script = Some(front);
    pool
}

/// Removes the settings from a pool that have no use in classic mode.
fn stand_back(pool: &mut PoolSettings) {
    pool.mode = Mode::Classic;
    pool.compare_one_in = 0;
    pool.compare_with = None;
    pool.warmup.clear();
    pool.warmup_auto = false;
    pool.watch.clear();
}

/// `true` if this setting of a pool is set explicitly.
pub(crate) fn is_set(pool: &PoolSettings, key: &str, source: &Source<'_>) -> bool {
    source.origins.of(&pool.name_of(key)) != Origin::Default
}

/// Patterns of the files whose change makes the booted application outdated; classic mode would load them again.
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

/// The recipe of a site's application.
fn named(site: &SiteSettings, found: Option<&Application>) -> Option<&'static Recipe> {
    match site.app.name() {
        Some(name) => Recipe::named(name),
        None => found?.kind.recipe,
    }
}

/// Reason why the recipe cannot boot this site's application.
fn obstacle(
    settings: &Settings,
    site: &SiteSettings,
    (recipe, pool): (&Recipe, &str),
    mode: Mode,
    source: &Source<'_>,
) -> Option<String> {
    let Recipe { name, script, .. } = recipe;
    let front = site.front_controller.as_deref().filter(|_| site.says("front_controller", source));
    if mode == Mode::Worker && !recipe.in_worker_mode {
        Some(format!("the recipe {name} needs mode snapshot, but `mode` is worker"))
    } else if site.root_links == RootLinks::Request {
        Some("a recipe needs a root that changes only on reload: root_links = \"reload\"".to_owned())
    } else if front.is_some_and(|front| front.trim_start_matches('/') != *script) {
        Some(format!("the recipe boots {script}, but `front_controller` is another script"))
    } else {
        settings.pool(pool).is_some().then(|| format!("a pool of that name exists already: {pool}"))
    }
}
