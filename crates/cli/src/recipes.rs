//! What is said of the applications that are known: all of them (`howdah recipes`), and the one that was found (at start).

use howdah_config::{Loaded, Origin};
use howdah_detect::{Application, CATALOG};
use std::fmt::Write;

/// Every known application: its name, its rules, and where its document root is looked for.
pub(crate) fn list() -> String {
    let mut out = format!("{:<14}{:<14}{:<16}{}\n", "NAME", "APPLICATION", "RULES (app)", "DOCUMENT ROOT");
    for kind in CATALOG {
        let rules = kind.app.unwrap_or("-");
        let _ = writeln!(out, "{:<14}{:<14}{rules:<16}{}", kind.name, kind.title, kind.roots.join(", "));
    }
    out
}

/// Says in two lines what was found in the directory and what is done with it, and what could be.
pub(crate) fn tell(loaded: &Loaded) {
    let Some(found) = &loaded.found else { return };
    let has_rules = matches!(loaded.origins.of("app"), Origin::Found(_));
    tracing::info!("{}", what(found, loaded.settings.app.as_deref().filter(|_| has_rules)));
    match found.kind.faster {
        "" => tracing::info!("`howdah init` writes this down as howdah.toml"),
        faster => tracing::info!("`howdah init` writes this down as howdah.toml; faster: {faster}"),
    }
}

fn what(found: &Application, app: Option<&str>) -> String {
    let (title, evidence, root) = (found.title(), found.evidence, found.root.display());
    let rules = app.map(|app| format!(" with the rules of app = \"{app}\"")).unwrap_or_default();
    format!("found {title} (by {evidence}): serving {root}{rules}")
}
