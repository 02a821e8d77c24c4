//! The application detected in the served directory: the lines about it in the log at start and in `howdah check`.

use howdah_config::{AppChoice, Loaded, Mode, Origin, SiteSettings};
use howdah_detect::{Application, Recipe};

/// Logs two lines: the detected application, and the mode in which it runs with its faster alternative.
pub(crate) fn log(loaded: &Loaded) {
    let (what, how) = if let Some(found) = &loaded.found {
        let has_rules = matches!(loaded.origins.of("app"), Origin::Found(_));
        (what(found, loaded.settings.app.name().filter(|_| has_rules)), how(loaded, found))
    } else if let Some(what) = plain(loaded) {
        let mode = mode(loaded);
        let faster = if mode == Mode::Classic { FASTER_PLAIN } else { "" };
        (what, format!("{mode} mode{faster}"))
    } else {
        return;
    };
    tracing::info!("{what}");
    tracing::info!("{how}; `howdah init` writes these settings to howdah.toml");
}

/// Comments of `howdah check` about applications in sites' roots that a recipe could boot.
pub(crate) fn of_sites(loaded: &Loaded) -> String {
    let settings = &loaded.settings;
    let line = |site: &SiteSettings| {
        let pool = settings.pool(&site.pool)?;
        let mode = if pool.name == "default" { "mode".to_owned() } else { format!("pool.{}.mode", pool.name) };
        let is_free = site.booted.is_none()
            && (site.app == AppChoice::Auto
                || (site.app != AppChoice::None && loaded.origins.of(&mode) == Origin::Default))
            && pool.script.is_none()
            && pool.boot.is_none();
        let found = howdah_detect::look(&site.root).filter(|_| is_free && pool.mode == Mode::Classic)?;
        let recipe = found.kind.recipe?.name;
        Some(format!(
            "# Site {}: found {} (by {}); app = \"{recipe}\" with mode = \"snapshot\" would boot it once for many requests\n",
            site.name,
            found.title(),
            found.evidence
        ))
    };
    // Without settings, the detected application is served.
    let sites = if loaded.file.is_some() { settings.all_sites() } else { Vec::new() };
    sites.iter().filter_map(line).collect()
}

const FASTER_PLAIN: &str = "; `howdah doctor` finds out whether a faster mode suits the code: docs/guide/modes.md";

/// Message for a directory without a known application; `None` if the settings decide or there is no index.php.
fn plain(loaded: &Loaded) -> Option<String> {
    let settings = &loaded.settings;
    let is_free = loaded.file.is_none() && settings.app == AppChoice::Auto;
    let has_script = settings.pools.iter().any(|pool| pool.script.is_some() || pool.boot.is_some());
    let front = settings.front_controller.as_deref().unwrap_or_default().trim_start_matches('/');
    let (root, is_front) = (&settings.root, !front.is_empty() && settings.root.join(front).is_file());
    let root = root.display();
    (is_free && !has_script && is_front).then(|| {
        format!("found plain PHP (by {front}): serving {root}, and {front} for every path that is not a file there")
    })
}

fn mode(loaded: &Loaded) -> Mode {
    loaded.settings.pools.first().map_or(Mode::Classic, |pool| pool.mode)
}

/// The mode in which the application runs, and a faster alternative.
fn how(loaded: &Loaded, found: &Application) -> String {
    if let Some(booted) = &loaded.settings.booted {
        let mode = loaded.settings.pool(&booted.pool).map_or(Mode::Snapshot, |pool| pool.mode);
        let recipe = booted.recipe.name;
        return format!("booted once, in {mode} mode by the recipe {recipe}; other requests run in classic mode");
    }
    let mode = mode(loaded);
    match (found.recipe(), found.kind.faster) {
        (Some(Recipe { name, gain, .. }), _) if mode == Mode::Classic => {
            format!("classic mode; faster: snapshot mode by the recipe {name}, {gain} times by processor time")
        }
        (None, faster) if mode == Mode::Classic && !faster.is_empty() => format!("classic mode; faster: {faster}"),
        _ => format!("{mode} mode"),
    }
}

fn what(found: &Application, app: Option<&str>) -> String {
    let (title, evidence, root) = (found.title(), found.evidence, found.root.display());
    let rules = app.map(|app| format!(" with the rules of app = \"{app}\"")).unwrap_or_default();
    format!("found {title} (by {evidence}): serving {root}{rules}")
}
