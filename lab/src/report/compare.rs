//! Compares two result sets: the changes, and whether they are more than chance.

use std::fmt::Write as _;

use super::{bytes, number, time};
use crate::record::ResultSet;
use crate::stats::Difference;
use crate::view::{self, Measured};

/// Change of one system on one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub case: String,
    pub system: String,
    /// Requests per second, before and after.
    pub rate: (f64, f64),
    /// Processor time per request, before and after.
    pub server_us: (f64, f64),
    /// Memory, before and after.
    pub pss: (f64, f64),
    /// True if the change of throughput is more than chance.
    pub clear: bool,
}

/// Returns the changes of everything that both result sets measured.
pub fn changes(earlier: &ResultSet, later: &ResultSet) -> Vec<Change> {
    let (before, after) = (view::cases(earlier), view::cases(later));
    let mut changes = Vec::new();
    for view in &after {
        let Some(old_view) = before.iter().find(|old| old.case.id == view.case.id) else { continue };
        for (system, new) in view.measured() {
            let Some((_, old)) = old_view.measured().find(|(old, _)| old.id == system.id) else { continue };
            changes.push(change(&view.case.id, &system.title, old, new));
        }
    }
    changes
}

fn change(case: &str, system: &str, old: &Measured<'_>, new: &Measured<'_>) -> Change {
    Change {
        case: case.to_owned(),
        system: system.to_owned(),
        rate: (old.rate.median, new.rate.median),
        server_us: (old.server_us.median, new.server_us.median),
        pss: (old.pss_bytes(), new.pss_bytes()),
        clear: Difference::between(&new.rates(), &old.rates()).is_some_and(|difference| difference.is_clear()),
    }
}

/// Renders the comparison as Markdown.
pub fn markdown(earlier: &ResultSet, later: &ResultSet) -> String {
    let mut page = format!("# {} of {} against {}\n\n", later.suite, later.started, earlier.started);
    for difference in circumstances(earlier, later) {
        let _ = writeln!(page, "- {difference}");
    }
    page.push_str(
        "\n| case | system | req/s before | after | ratio | server µs before | after | PSS before | after | more than chance |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---|\n",
    );
    let changes = changes(earlier, later);
    for change in &changes {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {:.2} | {} | {} | {} | {} | {} |",
            change.case,
            change.system,
            number(change.rate.0),
            number(change.rate.1),
            change.rate.1 / change.rate.0,
            number(change.server_us.0),
            number(change.server_us.1),
            bytes(change.pss.0),
            bytes(change.pss.1),
            if change.clear { "yes" } else { "no" },
        );
    }
    page.push_str(&kinds(earlier, later));
    if changes.is_empty() {
        page.push_str("\nThe two result sets have no system and case in common.\n");
    }
    page
}

/// Renders the kinds of requests of mixed loads that both have measured.
fn kinds(earlier: &ResultSet, later: &ResultSet) -> String {
    let (before, after) = (view::cases(earlier), view::cases(later));
    let mut rows = String::new();
    for view in &after {
        let Some(old_view) = before.iter().find(|old| old.case.id == view.case.id) else { continue };
        for name in view.kinds() {
            for (system, new) in view.measured() {
                let old = old_view.measured().find(|(old, _)| old.id == system.id).and_then(|(_, old)| old.kind(name));
                let (Some(old), Some(new)) = (old, new.kind(name)) else { continue };
                let pair = |percentile| {
                    format!("{} → {}", time(old.percentile_us(percentile)), time(new.percentile_us(percentile)))
                };
                let _ = writeln!(
                    rows,
                    "| {} | {name} | {} | {} → {} | {} | {} | {} | {} → {} |",
                    view.case.id,
                    system.title,
                    number(old.rate()),
                    number(new.rate()),
                    pair(50.0),
                    pair(90.0),
                    pair(99.0),
                    number(old.refused_rate()),
                    number(new.refused_rate()),
                );
            }
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "\n| case | kind | system | good/s | p50 | p90 | p99 | refused/s |\n|---|---|---|---:|---:|---:|---:|---:|\n{rows}"
    )
}

/// Returns other differences, which weaken the comparison.
fn circumstances(earlier: &ResultSet, later: &ResultSet) -> Vec<String> {
    let mut differences = Vec::new();
    let mut differ = |what: &str, before: String, after: String| {
        if before != after {
            differences.push(format!("{what} differs: {before} before, {after} after."));
        }
    };
    differ("The processor", earlier.machine.cpu.clone(), later.machine.cpu.clone());
    differ("The number of processors", earlier.machine.cores.to_string(), later.machine.cores.to_string());
    differ("The kernel", earlier.machine.kernel.clone(), later.machine.kernel.clone());
    differ("The generator", earlier.settings.generator.clone(), later.settings.generator.clone());
    differ("The length of a run", format!("{} s", earlier.settings.seconds), format!("{} s", later.settings.seconds));
    for case in &later.cases {
        if let Some(old) = earlier.cases.iter().find(|old| old.id == case.id) {
            differ(&format!("The load of {}", case.id), old.load(), case.load());
        }
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Outcome;
    use crate::view::sample_results;

    #[test]
    fn kinds_of_mixed_loads_are_compared_each() {
        let (plain, mixed) = (sample_results::results(), sample_results::mixed());
        assert_eq!(kinds(&plain, &mixed), "");
        let page = markdown(&mixed, &mixed);
        let line = "| hello | quick | FAST | 3 000 → 3 000 | 600 µs → 600 µs | 1.00 ms → 1.00 ms | 1.09 ms → 1.09 ms | 0.0 → 0.0 |";
        assert!(page.contains(line), "{page}");
    }

    #[test]
    fn a_clear_change_and_no_change() {
        let earlier = sample_results::results();
        let mut later = sample_results::results();
        for run in later.runs.iter_mut().filter(|run| run.system == "fast") {
            if let Outcome::Measured(sample) = &mut run.outcome {
                sample.succeeded *= 2;
            }
        }
        later.machine.kernel = "9.9".into();
        let changes = changes(&earlier, &later);
        assert_eq!(changes.len(), 2);
        assert!(changes[0].clear && (changes[0].rate.1 / changes[0].rate.0 - 2.0).abs() < 0.01);
        assert!(!changes[1].clear);
        let page = markdown(&earlier, &later);
        assert!(page.contains("The kernel differs"), "{page}");
        assert!(page.contains("| 2.00 |"), "{page}");
    }
}
