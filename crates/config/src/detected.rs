//! Applies the settings of the application detected in the directory, unless there is a `howdah.toml`. `howdah init`
//! writes the result to one.

use howdah_detect::Application;

use crate::app_choice::AppChoice;
use crate::origin::Origin;
use crate::settings::{DEFAULT_POOL, Settings};
use crate::source::{Scope, Source};

/// Detects the application in the given directory, or in the current one.
pub(crate) fn look(source: &mut Source<'_>) -> Option<Application> {
    if source.file.is_some() {
        return None;
    }
    let errors = source.errors.len();
    let settings = Settings::read(source, Scope::Top);
    // The errors are reported when the settings are read again.
    source.errors.truncate(errors);
    if settings.app != AppChoice::Auto {
        return None;
    }
    let dir =
        if source.origins.of("root") == Origin::Default { &source.environment.current_dir } else { &settings.root };
    howdah_detect::look(dir)
}

/// Applies the application's document root, and its rules unless the settings say what runs for a path.
pub(crate) fn take(found: &Application, settings: &mut Settings, source: &mut Source<'_>) {
    let title = || Origin::Found(found.title());
    if settings.root != found.root {
        settings.root.clone_from(&found.root);
        source.origins.set("root".to_owned(), title());
    }
    let is_said = |name: &str| source.origins.of(name) != Origin::Default;
    let has_script = settings.pools.iter().any(|pool| pool.name == DEFAULT_POOL && pool.script.is_some());
    let is_free = settings.app == AppChoice::Auto && !is_said("front_controller") && !settings.htaccess && !has_script;
    if let Some(app) = found.kind.app.filter(|_| is_free) {
        settings.app = AppChoice::Named(app.to_owned());
        source.origins.set("app".to_owned(), title());
    }
}
