//! The table of a mixed load: each kind of request on each system, with its percentiles.

use std::fmt::Write as _;

use super::frame::escape;
use super::{number, time};
use crate::record::SystemRecord;
use crate::view::{CaseView, KindView};

/// Headings of the columns.
pub const HEADINGS: [&str; 13] = [
    "kind",
    "system",
    "good/s",
    "× the first",
    "p50",
    "p90",
    "p99",
    "max",
    "refused/s",
    "refused p50",
    "p90",
    "p99",
    "remarks",
];

/// Returns the rows as text: kind, system and figures.
pub fn rows(view: &CaseView<'_>) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for name in view.kinds() {
        let mut first = None;
        for (system, measured) in view.measured() {
            let Some(kind) = measured.kind(name) else { continue };
            let rate = kind.rate();
            let first = *first.get_or_insert(rate);
            rows.push(row(name, system, &kind, rate / first));
        }
    }
    rows
}

fn row(name: &str, system: &SystemRecord, kind: &KindView<'_>, ratio: f64) -> Vec<String> {
    let at = |percentile| time(kind.percentile_us(percentile));
    let refused = kind.refused_rate();
    let of_refused =
        |percentile| if refused > 0.0 { time(kind.refused_percentile_us(percentile)) } else { "–".into() };
    vec![
        name.to_owned(),
        system.title.clone(),
        number(kind.rate()),
        if ratio.is_finite() { format!("{ratio:.2}") } else { "–".into() },
        at(50.0),
        at(90.0),
        at(99.0),
        at(100.0),
        if refused > 0.0 { number(refused) } else { "–".into() },
        of_refused(50.0),
        of_refused(90.0),
        of_refused(99.0),
        remarks(kind),
    ]
}

fn remarks(kind: &KindView<'_>) -> String {
    let mut remarks = Vec::new();
    let unanswered = kind.unanswered_share();
    if unanswered > 0.0 {
        remarks.push(format!("{:.1} % without an answer", unanswered * 100.0));
    }
    let errors = kind.errors();
    if errors > 0 {
        remarks.push(format!("{errors} failed"));
    }
    if let Some((least, most)) = kind.per_connection() {
        remarks.push(format!("{} to {}/s per connection", number(least), number(most)));
    }
    remarks.join(", ")
}

/// Renders the table for a terminal; empty for cases with one kind of request.
pub fn text(view: &CaseView<'_>) -> String {
    let rows = rows(view);
    if rows.is_empty() {
        return String::new();
    }
    let table: Vec<Vec<String>> =
        std::iter::once(HEADINGS.iter().map(|heading| (*heading).to_owned()).collect()).chain(rows).collect();
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let mut text = format!("{}\n", view.case.title);
    for row in &table {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                let blanks = " ".repeat(width - cell.chars().count());
                if (2..HEADINGS.len() - 1).contains(&column) { blanks + cell } else { format!("{cell}{blanks}") }
            })
            .collect();
        text.push_str(&format!("  {}\n", cells.join("  ").trim_end()));
    }
    text
}

/// Renders the section in Markdown; empty for cases with one kind of request.
pub fn markdown(view: &CaseView<'_>) -> String {
    let rows = rows(view);
    if rows.is_empty() {
        return String::new();
    }
    let mut text = clients(view).iter().fold(String::new(), |text, clients| text + &format!("- {clients}\n"));
    let _ = writeln!(text, "\n| {} |", HEADINGS.join(" | "));
    let _ = writeln!(text, "|---|---|{}---|", "---:|".repeat(HEADINGS.len() - 3));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text.push('\n');
    text
}

/// Renders the section in HTML.
pub fn html(view: &CaseView<'_>) -> String {
    let rows = rows(view);
    if rows.is_empty() {
        return String::new();
    }
    let mut page = String::from("<ul class=\"soft\">");
    clients(view).iter().for_each(|clients| page.push_str(&format!("<li>{}</li>", escape(clients))));
    page.push_str("</ul><div class=\"card scroll\"><h3>By kind of request</h3><table><thead><tr>");
    HEADINGS.iter().for_each(|heading| page.push_str(&format!("<th>{heading}</th>")));
    page.push_str("</tr></thead><tbody>");
    for row in rows {
        page.push_str("<tr>");
        row.iter().for_each(|cell| page.push_str(&format!("<td>{}</td>", escape(cell))));
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table></div>");
    page
}

/// Describes the groups of clients, the rate if the run decided it, and the generator's cost.
fn clients(view: &CaseView<'_>) -> Vec<String> {
    let mut lines = view.case.clients.clone();
    let rates: Vec<String> = view
        .measured()
        .filter_map(|(system, measured)| Some((system, measured.offered()?)))
        .map(|(system, rate)| format!("{} on {}", number(rate), system.title))
        .collect();
    if !rates.is_empty() {
        lines.push(format!("offered: {} requests per second", rates.join(", ")));
    }
    let generator: Vec<String> = view
        .measured()
        .map(|(system, m)| {
            let us = m.median(|sample| sample.cpu.generator * 1e6 / (sample.requests as f64).max(1.0));
            format!("{us:.1} µs on {}", system.title)
        })
        .collect();
    lines.push(format!("the generator's processor time for each response: {}", generator.join(", ")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{self, sample_results};

    #[test]
    fn each_kind_is_listed_for_each_system_and_compared_with_the_first() {
        let results = sample_results::mixed();
        let views = view::cases(&results);
        let rows = rows(&views[0]);
        let heads: Vec<String> = rows.iter().map(|row| row[..4].join(" ")).collect();
        assert_eq!(
            heads,
            ["quick FAST 3 000 1.00", "quick SLOW 1 000 0.33", "long FAST 300 1.00", "long SLOW 100 0.33"]
        );
        assert_eq!(rows[0][4..8].join(" "), "600 µs 1.00 ms 1.09 ms 1.10 ms");
        assert_eq!(rows[0][8..12], ["–"; 4].map(str::to_owned));
        assert_eq!(rows[3][8], "50");
        assert!(
            rows[3][12].contains("10.0 % without an answer") && rows[3][12].contains("/s per connection"),
            "{rows:?}"
        );
    }

    #[test]
    fn only_mixed_loads_have_the_table() {
        let plain = sample_results::results();
        let views = view::cases(&plain);
        assert_eq!((markdown(&views[0]), html(&views[0])), (String::new(), String::new()));
        let mixed = sample_results::mixed();
        let views = view::cases(&mixed);
        assert_eq!(text(&view::cases(&plain)[0]), "");
        let lines = text(&views[0]);
        let widths: Vec<usize> = lines.lines().skip(1).map(|line| line.find("FAST").map_or(0, |at| at)).collect();
        assert_eq!(widths, [0, 9, 0, 9, 0], "{lines}");
        let text = markdown(&views[0]);
        assert!(text.contains("- many at once\n") && text.contains("| quick | FAST | 3 000 | 1.00 |"), "{text}");
        assert!(html(&views[0]).contains("<td>quick</td><td>FAST</td><td>3 000</td>"));
        let page = super::super::markdown::page(&mixed) + &super::super::html::page(&mixed);
        assert!(page.contains("| long | SLOW | 100 |") && page.contains("<td>long</td><td>SLOW</td>"), "{page}");
    }
}
