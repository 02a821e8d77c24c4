//! The page for the decision, and its summary for a terminal.

use super::demands;
use super::document::{Candidate, Choice, FILLED, Whole};
use crate::report::blocks::{Block, Cell, Item, Page, Table};
use crate::report::chart::{self, Bar, Part};
use crate::report::{bytes, frame, number, time};
use crate::reproduce::entry::Cell as Outcome;

pub fn of(choice: &Choice) -> Page {
    let machine = &choice.machine;
    let date = choice.started.replace('T', " ").replace('Z', " UTC");
    let mut blocks = Vec::new();
    if choice.interrupted {
        let stopped = "The measurement was stopped before its end: what is missing was not measured.";
        blocks.push(Block::Note("Read this first".into(), vec![stopped.into()]));
    }
    decision(&mut blocks, choice);
    table(&mut blocks, choice);
    paths(&mut blocks, choice);
    doctor(&mut blocks, choice);
    absent(&mut blocks, choice);
    method(&mut blocks, choice);
    Page {
        title: format!("How to serve {}", choice.application),
        about: format!(
            "{} paths on {} set-ups. {date}, {} with {} processors, {}.",
            choice.shares.len(),
            choice.options.iter().filter(|option| option.whole.is_some()).count(),
            machine.cpu,
            machine.cores,
            machine.os
        ),
        blocks,
    }
}

/// Returns the sentences that support the decision.
fn sentences(choice: &Choice) -> Vec<String> {
    let ranked = choice.ranked();
    let say = |(option, whole): &(&Candidate, Whole)| {
        format!(
            "{}: {} machine(s) like this one for {} requests per second, {} µs of processor time for each, {} of memory",
            option.system.title,
            number(f64::from(whole.machines)).trim_end_matches(".0"),
            number(choice.need),
            number(whole.server_us),
            bytes(whole.pss_bytes)
        )
    };
    let mut lines = Vec::new();
    if let Some(best) = ranked.iter().find(|(option, _)| demands::nothing(&option.system.id)) {
        lines.push(format!("Fewest machines without a change of code: {}.", say(best)));
    }
    if let Some(best) = ranked.iter().find(|(option, _)| !demands::nothing(&option.system.id)) {
        lines.push(format!("Fewest machines with changes of code: {}. It needs {}.", say(best), best.0.demands));
    }
    if let Some((option, whole)) = ranked.iter().min_by(|(_, a), (_, b)| a.pss_bytes.total_cmp(&b.pss_bytes)) {
        lines.push(format!("Least memory: {}, {}.", option.system.title, bytes(whole.pss_bytes)));
    }
    if lines.is_empty() {
        lines.push("No set-up has figures for every path; the results are below.".into());
    }
    lines
}

fn decision(blocks: &mut Vec<Block>, choice: &Choice) {
    blocks.push(Block::Heading("For the decision".into()));
    blocks.push(Block::List(sentences(choice).into_iter().map(Item::new).collect()));
    let bars: Vec<Bar> = choice
        .ranked()
        .iter()
        .map(|(option, whole)| Bar {
            label: option.system.title.clone(),
            colour: frame::colour(&option.system.id).unwrap_or(0),
            parts: vec![Part { length: whole.server_us, light: false }],
            text: format!("{} µs", number(whole.server_us)),
            ..Bar::default()
        })
        .collect();
    if !bars.is_empty() {
        blocks.push(Block::Smaller("Processor time for one request of the mix, in microseconds".into()));
        blocks.push(Block::Chart(chart::bars("processor time for one request", &bars)));
    }
}

fn table(blocks: &mut Vec<Block>, choice: &Choice) {
    blocks.push(Block::Heading("Comparison of all set-ups".into()));
    let rows = choice.ranked().into_iter().map(|(option, whole)| {
        let slowest = |of: fn(&super::document::AtLoad) -> Option<f64>| {
            option.latency.values().filter_map(of).reduce(f64::max).map_or_else(|| "–".to_owned(), time)
        };
        let errors: u64 = option.latency.values().map(|at| at.errors).sum();
        let errors = if errors > 0 { format!("{errors} errors") } else { String::new() };
        vec![
            Cell::words(option.system.title.clone()),
            Cell::new(format!("{} /s", number(whole.rate))),
            Cell::new(format!("{} µs", number(whole.server_us))),
            Cell::new(format!("{} / {}", slowest(|at| at.p50_us), slowest(|at| at.p99_us))).below(errors),
            Cell::new(bytes(whole.pss_bytes)),
            Cell::new(whole.machines.to_string()).below(if whole.waits { "waiting limits it" } else { "" }),
            Cell::words(option.demands.clone()),
        ]
    });
    blocks.push(Block::Table(Table {
        head: vec![
            "way".into(),
            "requests per second here".into(),
            "processor time for one".into(),
            "p50 / p99 at the load, slowest path".into(),
            "memory (PSS)".into(),
            format!("machines for {} /s", number(choice.need)),
            "what it needs".into(),
        ],
        rows: rows.collect(),
    }));
}

fn paths(blocks: &mut Vec<Block>, choice: &Choice) {
    blocks.push(Block::Heading("Path by path".into()));
    for (path, share) in &choice.shares {
        let rate = choice
            .rates
            .get(path)
            .map_or_else(String::new, |rate| format!(", latency at {rate:.0} requests per second"));
        blocks.push(Block::Smaller(format!("{path} (share {share}{rate})")));
        let rows = choice.options.iter().map(|option| {
            let mut cells = vec![Cell::words(option.system.title.clone())];
            match option.cells.get(path) {
                Some(Outcome::Measured(figures)) => {
                    let errors = if figures.errors > 0 { format!("{} errors", figures.errors) } else { String::new() };
                    let at = option.latency.get(path);
                    let latency = |us: Option<f64>| us.map_or_else(|| "–".to_owned(), time);
                    let how = if figures.encoding == "identity" { "" } else { &figures.encoding };
                    cells.extend([
                        Cell::new(format!("{} /s", number(figures.rate.median))).below(errors),
                        Cell::new(format!("{} µs", number(figures.server_us.median))),
                        Cell::new(latency(at.and_then(|at| at.p50_us))),
                        Cell::new(latency(at.and_then(|at| at.p99_us))),
                        Cell::new(bytes(figures.pss_bytes)),
                        Cell::new(bytes(figures.wire_bytes as f64)).below(how),
                    ]);
                }
                other => {
                    let reason = other.and_then(Outcome::reason).unwrap_or("not measured");
                    cells.push(Cell { text: reason.to_owned(), class: "words absent", ..Cell::default() });
                    cells.extend((0..5).map(|_| Cell::absent("–")));
                }
            }
            cells
        });
        let head = ["way", "requests per second", "processor time", "p50", "p99", "memory", "bytes on the wire"];
        blocks.push(Block::Table(Table { head: head.map(str::to_owned).to_vec(), rows: rows.collect() }));
    }
}

fn doctor(blocks: &mut Vec<Block>, choice: &Choice) {
    let Some(lines) = &choice.doctor else { return };
    blocks.push(Block::Heading("Which modes are safe".into()));
    blocks.push(Block::List(lines.iter().map(Item::new).collect()));
}

fn absent(blocks: &mut Vec<Block>, choice: &Choice) {
    let absent = choice.absent();
    if absent.is_empty() {
        return;
    }
    blocks.push(Block::Heading("Not in the comparison".into()));
    blocks.push(Block::List(
        absent.into_iter().map(|(title, why)| Item { text: title.to_owned(), below: vec![why] }).collect(),
    ));
}

fn method(blocks: &mut Vec<Block>, choice: &Choice) {
    blocks.push(Block::Heading("Method".into()));
    let mut items = vec![
        format!("Throughput: {}, closed loop, {}. Medians of the rounds; each run restarts its system.", choice.generator, choice.conditions),
        "Latency: the same rate for all, open loop, counted from the time a request was due. A system that cannot serve that rate on \
         this machine shows a queue that grows."
            .into(),
        format!(
            "Machines: requests per second times processor time for one, with {:.0} % of the processors used; where processors were idle \
             under load, also throughput, and the larger number. Databases and caches are not in it. Generator and databases shared this \
             machine: processor time does not depend on that, throughput does.",
            FILLED * 100.0
        ),
        "Each path is checked before and after each run: its status must be a success. The content is not checked: \
         with a script that boots once, compare responses, or run howdah doctor."
            .into(),
    ];
    items.extend(choice.warnings.iter().map(|warning| format!("Caution: {warning}")));
    items.push(format!("Command: {} (lab {}).", choice.command.join(" "), choice.lab_version));
    blocks.push(Block::List(items.into_iter().map(Item::new).collect()));
}

/// Formats the summary for a terminal.
pub fn lines(choice: &Choice) -> String {
    let mut text = String::from("\n");
    sentences(choice).iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    choice.absent().iter().for_each(|(title, why)| text.push_str(&format!("  not compared: {title}: {why}\n")));
    text
}
