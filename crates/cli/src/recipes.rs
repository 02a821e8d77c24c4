//! What is said of the applications that are known: all of them (`howdah recipes`), and the one that was found (at start).

use howdah_config::{Loaded, Mode, Origin, SiteSettings};
use howdah_detect::{Application, CATALOG, Recipe};
use std::fmt::Write;

/// Every known application: its name, its rules, and where its document root is looked for.
pub(crate) fn list() -> String {
    let cells = |cells: [&str; 5]| cells.map(str::to_owned);
    let mut rows = vec![cells(["NAME", "APPLICATION", "RULES (app)", "RECIPE", "DOCUMENT ROOT"])];
    for kind in CATALOG {
        let mark = |recipe: &Recipe| format!("{}{}", recipe.name, if recipe.on_request { "*" } else { "" });
        let recipe = kind.recipe.map_or("-".to_owned(), mark);
        rows.push(cells([kind.name, kind.title, kind.app.unwrap_or("-"), &recipe, &kind.roots.join(", ")]));
    }
    let mut out = aligned(&rows);
    let _ = write!(
        out,
        "\nA recipe boots the application once for many requests, in snapshot or worker mode; version {} of the recipes.\n\
         *: only if it is asked for (--recipe), since not every plugin suits it.\n",
        env!("CARGO_PKG_VERSION")
    );
    out
}

/// Lines whose cells stand below each other, each column as wide as its longest cell.
fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let longest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(longest);
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}  ")).collect::<String>();
        format!("{}\n", cells.trim_end())
    };
    rows.iter().map(line).collect()
}

/// Says in two lines what was found in the directory and what is done with it, and what could be.
pub(crate) fn tell(loaded: &Loaded) {
    let (what, how) = if let Some(found) = &loaded.found {
        let has_rules = matches!(loaded.origins.of("app"), Origin::Found(_));
        (what(found, loaded.settings.app.as_deref().filter(|_| has_rules)), how(loaded, found))
    } else if let Some(what) = plain(loaded) {
        let mode = mode(loaded);
        let faster = if mode == Mode::Classic { FASTER_PLAIN } else { "" };
        (what, format!("{mode} mode{faster}"))
    } else {
        return;
    };
    tracing::info!("{what}");
    tracing::info!("{how}; `howdah init` writes this down as howdah.toml");
}

/// What `howdah check` says, as comments, of applications in the roots of sites that a recipe would boot.
pub(crate) fn of_sites(loaded: &Loaded) -> String {
    let settings = &loaded.settings;
    let line = |site: &SiteSettings| {
        let pool = settings.pool(&site.pool)?;
        let is_free = site.recipe.is_none() && site.booted.is_none() && pool.script.is_none() && pool.boot.is_none();
        let found = howdah_detect::look(&site.root).filter(|_| is_free && pool.mode == Mode::Classic)?;
        let recipe = found.kind.recipe?.name;
        Some(format!(
            "# Site {}: found {} (by {}); recipe = \"{recipe}\" would boot it once for many requests\n",
            site.name,
            found.title(),
            found.evidence
        ))
    };
    // What is found where nobody has written settings is taken.
    let sites = if loaded.file.is_some() { settings.all_sites() } else { Vec::new() };
    sites.iter().filter_map(line).collect()
}

const FASTER_PLAIN: &str = "; faster where the code suits it, which `howdah doctor` finds out: docs/guide/choosing.md";

/// What is served where no known application was found. None: somebody has said what is, or it is not PHP by an index.php.
fn plain(loaded: &Loaded) -> Option<String> {
    let settings = &loaded.settings;
    let is_free = loaded.file.is_none() && settings.detect && settings.app.is_none();
    let has_script = settings.pools.iter().any(|pool| pool.script.is_some() || pool.boot.is_some());
    let front = settings.front_controller.as_deref().unwrap_or_default().trim_start_matches('/');
    let (root, is_front) = (&settings.root, !front.is_empty() && settings.root.join(front).is_file());
    let root = root.display();
    (is_free && !has_script && is_front).then(|| {
        format!("found plain PHP (by {front}): serving {root}, and {front} for every path that is no file there")
    })
}

fn mode(loaded: &Loaded) -> Mode {
    loaded.settings.pools.first().map_or(Mode::Classic, |pool| pool.mode)
}

/// What runs it, and what would be faster.
fn how(loaded: &Loaded, found: &Application) -> String {
    if let Some(booted) = &loaded.settings.booted {
        let mode = loaded.settings.pool(&booted.pool).map_or(Mode::Snapshot, |pool| pool.mode);
        let recipe = booted.recipe.name;
        return format!(
            "booted once, in {mode} mode by the recipe {recipe}; classic mode serves wherever that does not"
        );
    }
    let mode = mode(loaded);
    match (found.recipe(), found.kind.faster) {
        (Some(recipe), _) if mode == Mode::Classic => {
            format!("classic mode; faster: snapshot mode by the recipe {}", recipe.name)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_the_list_stand_apart_whatever_is_in_them() {
        let rows = [["a".to_owned(), "b".to_owned()], ["WordPress (Bedrock)".to_owned(), "bedrock".to_owned()]];
        assert_eq!(aligned(&rows), "a                    b\nWordPress (Bedrock)  bedrock\n");
        let list = list();
        assert!(
            CATALOG.iter().all(|kind| list.lines().any(|line| line.contains(&format!(" {} ", kind.title)))),
            "{list}"
        );
    }
}
