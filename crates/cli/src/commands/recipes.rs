//! `howdah init --list`: lists the known applications.

use howdah_detect::CATALOG;
use std::fmt::Write;

/// Every known application: its name, its preset, and the candidates for its document root.
pub(crate) fn list() -> String {
    let cells = |cells: [&str; 5]| cells.map(str::to_owned);
    let mut rows = vec![cells(["NAME", "APPLICATION", "RULES (app)", "RECIPE", "DOCUMENT ROOT"])];
    for kind in CATALOG {
        let recipe = kind.recipe.map_or("-", |recipe| recipe.name);
        rows.push(cells([kind.name, kind.title, kind.app.unwrap_or("-"), recipe, &kind.roots.join(", ")]));
    }
    let mut out = aligned(&rows);
    let _ = write!(
        out,
        "\nA recipe boots the application once for many requests, in snapshot or worker mode; version {} of the recipes.\n\
         An application that it cannot boot stays in classic mode; the log has the reason.\n",
        env!("CARGO_PKG_VERSION")
    );
    out
}

/// Formats rows as aligned columns, each as wide as its longest cell.
fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let longest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(longest);
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}  ")).collect::<String>();
        format!("{}\n", cells.trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_the_list_are_separated_whatever_they_contain() {
        let rows = [["a".to_owned(), "b".to_owned()], ["WordPress (Bedrock)".to_owned(), "bedrock".to_owned()]];
        assert_eq!(aligned(&rows), "a                    b\nWordPress (Bedrock)  bedrock\n");
        let list = list();
        assert!(
            CATALOG.iter().all(|kind| list.lines().any(|line| line.contains(&format!(" {} ", kind.title)))),
            "{list}"
        );
    }
}
