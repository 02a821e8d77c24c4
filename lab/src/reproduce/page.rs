//! The page of a reproduction: the article's figures, the results measured here, and the causes of differences.

use super::article::{Article, Figure};
use super::document::Document;
use super::entry::{Cell as Outcome, Figures};
use super::method::Form;
use super::verdict::{self, JudgedConclusion, Ratio};
use crate::record::SystemStatus;
use crate::report::blocks::{Block, Cell, Item, Page, Table};
use crate::report::ratios::{self, Row as RatioRow};
use crate::report::{bytes, frame, number, time};

/// Renders the whole page.
pub fn of(article: &Article, document: &Document) -> Page {
    let machine = &document.machine;
    let date = document.started.replace('T', " ").replace('Z', " UTC");
    let mut blocks = Vec::new();
    first(&mut blocks, article, document);
    conclusions(&mut blocks, document);
    ratio_blocks(&mut blocks, article, document);
    published(&mut blocks, article, document);
    local_results(&mut blocks, article, document);
    causes(&mut blocks, article, document);
    super::counting_page::add(&mut blocks, document);
    systems(&mut blocks, document);
    method(&mut blocks, article, document);
    Page {
        title: format!("{}: measured again", article.title),
        about: format!(
            "After {}, about {}. {date}, {} form, {} with {} processors, {}.",
            article.source,
            article.about,
            document.form.name(),
            machine.cpu,
            machine.cores,
            machine.os,
        ),
        blocks,
    }
}

fn first(blocks: &mut Vec<Block>, article: &Article, document: &Document) {
    let mut items = Vec::new();
    if document.interrupted {
        items.push("The measurement was stopped before its end: what is missing was not measured.".to_owned());
    }
    if document.form == Form::Tiny {
        items.push("This is the tiny form: a smoke test, not a measurement.".to_owned());
    }
    for (title, what, _) in document.missing() {
        items.push(format!(
            "{title} is not on this machine ({what}), so it has no figures. Systems describes how to get it."
        ));
    }
    items.extend(document.notes.iter().cloned());
    items.push(format!(
        "The article has {}, this machine {} processors: absolute figures are not comparable, only ratios to {} on the same machine.",
        article.machine,
        document.machine.cores,
        document.title(&article.base)
    ));
    blocks.push(Block::Note("Read this first".into(), items));
}

fn ratio_texts(ratios: &[Ratio]) -> String {
    ratios.iter().map(Ratio::text).collect::<Vec<_>>().join("; ")
}

fn conclusions(blocks: &mut Vec<Block>, document: &Document) {
    blocks.push(Block::Heading("The article's conclusions".into()));
    let row = |judged: &JudgedConclusion| {
        let published: Vec<String> = judged.published.iter().map(|(row, ratio)| format!("{row}: {ratio:.2}")).collect();
        let class = match judged.verdict {
            verdict::Verdict::Holds => "verdict holds",
            verdict::Verdict::InPart => "verdict in_part",
            verdict::Verdict::DoesNotHold => "verdict does_not_hold",
            verdict::Verdict::Undecided => "verdict cannot_be_told",
        };
        let here = judged.reason.clone().unwrap_or_else(|| ratio_texts(&judged.here));
        let counterpart = judged.counterpart.as_ref().map_or_else(String::new, |counterpart| {
            if counterpart.here.is_empty() {
                return format!("{}: no figure", document.title(&counterpart.system));
            }
            let title = document.title(&counterpart.system);
            format!("{title}, {}: {}", counterpart.verdict.description(), ratio_texts(&counterpart.here))
        });
        vec![
            Cell::words(judged.text.clone()).below(format!(
                "{}: {} over {}, {}",
                judged.figure,
                document.title(&judged.of),
                document.title(&judged.to),
                judged.limits
            )),
            Cell::words(if published.is_empty() { "as a ranking only".into() } else { published.join("; ") }),
            Cell::words(here),
            Cell { text: judged.verdict.description().into(), class, ..Cell::default() },
            Cell::words(counterpart),
        ]
    };
    blocks.push(Block::Table(Table {
        head: ["claim", "published", "here", "verdict", "with Howdah instead"].map(str::to_owned).to_vec(),
        rows: document.conclusions.iter().map(row).collect(),
    }));
}

/// Adds ratios of throughput to the base: published and measured on one axis.
fn ratio_blocks(blocks: &mut Vec<Block>, article: &Article, document: &Document) {
    blocks.push(Block::Heading("Ratios side by side".into()));
    blocks.push(Block::Text(format!(
        "Requests per second as a multiple of {}, each on its own machine. Empty circle: published. Full circle: here, with the least and \
         the most that single runs allow. Twice and half are equally far from 1.",
        document.title(&article.base)
    )));
    let mut table =
        Table { head: vec!["row".into(), "system".into(), "published".into(), "here".into()], ..Table::default() };
    let mut charts = Vec::new();
    for case in &document.cases {
        let mut rows = Vec::new();
        for system in document.systems.iter().filter(|system| system.id != article.base) {
            let row = article.row(&case.row);
            let published = row.and_then(|row| article.ratio(row, &system.id, &article.base, Figure::Rate));
            let cell = case.cells.get(&system.id);
            let base = case.cells.get(&article.base).and_then(Outcome::figures);
            let here = cell.and_then(Outcome::figures).zip(base);
            let here = here.and_then(|(of, to)| verdict::between(Figure::Rate, of, to));
            let reason = cell.and_then(Outcome::reason).unwrap_or("no figure to compare with");
            rows.push(RatioRow {
                label: system.title.clone(),
                colour: frame::colour(&system.id).unwrap_or(0),
                published,
                here: here.map(|(mid, low, high)| (low, mid, high)),
                absent: short(reason),
            });
            table.rows.push(vec![
                Cell::new(case.title.clone()),
                Cell::words(system.title.clone()),
                published.map_or(Cell::absent("–"), |ratio| Cell::new(format!("{ratio:.2}"))),
                match here {
                    Some((mid, low, high)) => Cell::new(format!("{mid:.2}")).below(format!("{low:.2} to {high:.2}")),
                    None => Cell::absent(short(reason)),
                },
            ]);
        }
        charts.push((case.title.clone(), rows));
    }
    let far = ratios::reach(charts.iter().flat_map(|(_, rows)| rows));
    for (title, rows) in charts {
        let chart = ratios::chart(&format!("ratios to {}: {title}", article.base), &rows, far);
        blocks.extend([Block::Smaller(title), Block::Chart(chart)]);
    }
    blocks.push(Block::Details("The same as a table".into(), vec![Block::Table(table)]));
}

/// Shortens a reason, for charts and cells.
fn short(reason: &str) -> String {
    let words = reason.split(['(', ':', ';']).next().unwrap_or(reason).trim();
    let words = if words.is_empty() { reason } else { words };
    if words.chars().count() > 60 {
        format!("{}…", words.chars().take(58).collect::<String>())
    } else {
        words.to_owned()
    }
}

fn published(blocks: &mut Vec<Block>, article: &Article, document: &Document) {
    blocks.push(Block::Heading("Published figures".into()));
    let systems: Vec<&String> =
        article.systems.iter().filter(|system| !system.added).map(|system| &system.id).collect();
    if article.rows.iter().all(|row| row.figures.is_empty()) {
        blocks.push(Block::Text(
            "The figures are in charts only; the text ranks the systems, and the conclusions above are that ranking."
                .into(),
        ));
        return;
    }
    let mut head = vec!["row".to_owned()];
    head.extend(systems.iter().map(|id| document.title(id).to_owned()));
    let rows = article.rows.iter().map(|row| {
        let mut cells = vec![Cell::new(row.title.clone()).below(format!("{} connections", row.connections))];
        for id in &systems {
            let Some(figures) = row.figures.get(*id) else {
                cells.push(Cell::absent("not given as a figure"));
                continue;
            };
            let sub = [("p50", figures.p50_ms), ("p99", figures.p99_ms)]
                .into_iter()
                .filter_map(|(name, ms)| Some(format!("{name} {}", time(ms? * 1000.0))))
                .collect::<Vec<_>>()
                .join(", ");
            cells.push(Cell::new(format!("{} /s", number(figures.rate))).below(sub));
        }
        cells
    });
    blocks.push(Block::Text(format!("On {} with {}.", article.machine, article.versions)));
    blocks.push(Block::Table(Table { head, rows: rows.collect() }));
}

/// Returns a table of all cases and systems with one kind of figure.
fn table_of(document: &Document, figure: impl Fn(&Figures) -> Cell) -> Block {
    let mut head = vec!["row".to_owned()];
    head.extend(document.systems.iter().map(|system| system.title.clone()));
    let rows = document.cases.iter().map(|case| {
        let mut cells = vec![Cell::new(case.title.clone()).below(case.load.clone())];
        for system in &document.systems {
            cells.push(match case.cells.get(&system.id) {
                Some(Outcome::Measured(figures)) => figure(figures),
                Some(Outcome::Failed(reason)) => {
                    Cell { text: format!("failed: {}", short(reason)), class: "bad", ..Cell::default() }
                }
                Some(Outcome::Absent(reason)) => Cell::absent(short(reason)),
                None => Cell::absent("not measured"),
            });
        }
        cells
    });
    Block::Table(Table { head, rows: rows.collect() })
}

fn local_results(blocks: &mut Vec<Block>, article: &Article, document: &Document) {
    blocks.push(Block::Heading("Figures of this machine".into()));
    let all = || document.cases.iter().flat_map(|case| case.cells.values()).filter_map(Outcome::figures);
    for setup in &article.setups {
        if article.setups.len() > 1 && document.cases.iter().any(|case| case.setup == setup.id.name()) {
            blocks.push(Block::Text(format!("{}: {}.", setup.title, setup.words)));
        }
    }
    blocks.push(Block::Smaller("Requests per second; p50, p95 and p99 as the generator counts them; errors".into()));
    blocks.push(table_of(document, |figures| {
        let latency: Vec<String> = [("p50", figures.p50_us), ("p95", figures.p95_us), ("p99", figures.p99_us)]
            .into_iter()
            .filter_map(|(name, us)| Some(format!("{name} {}", time(us?))))
            .collect();
        let errors = if figures.errors > 0 { format!(", {} errors", figures.errors) } else { String::new() };
        Cell::new(format!("{} /s", number(figures.rate.median))).below(latency.join(", ") + &errors)
    }));
    blocks
        .push(Block::Smaller("Processor time of the whole system for one request; below it the front and PHP".into()));
    blocks.push(table_of(document, |figures| {
        let split = if figures.front_us + figures.php_us > 0.05 {
            format!("front {} µs, PHP {} µs", number(figures.front_us), number(figures.php_us))
        } else {
            "in one process".to_owned()
        };
        Cell::new(format!("{} µs", number(figures.server_us.median))).below(split)
    }));
    blocks.push(Block::Smaller("What each system sends: the bytes on the wire, and how it is compressed".into()));
    blocks.push(table_of(document, |figures| {
        let how = if figures.encoding == "identity" { "not compressed".to_owned() } else { figures.encoding.clone() };
        Cell::new(bytes(figures.wire_bytes as f64)).below(how)
    }));
    blocks.push(Block::Smaller("Memory (PSS) after the run; below it the share of the machine that was busy".into()));
    blocks.push(table_of(document, |figures| {
        Cell::new(bytes(figures.pss_bytes)).below(format!("{:.0} % busy", figures.busy * 100.0))
    }));
    if all().any(|figures| figures.queries.is_some()) {
        blocks.push(Block::Smaller(
            "Load on the database: statements and new connections for one request; below it processor time of the services".into(),
        ));
        blocks.push(table_of(document, |figures| match (figures.queries, figures.connections) {
            (Some(queries), Some(connections)) => Cell::new(format!("{queries:.1} / {connections:.2}"))
                .below(format!("{} µs", number(figures.services_us))),
            _ => Cell::absent("no database"),
        }));
    }
}

fn causes(blocks: &mut Vec<Block>, article: &Article, document: &Document) {
    if document.cases.iter().all(|case| case.why.is_empty()) {
        return;
    }
    blocks.push(Block::Heading("Causes of differences".into()));
    blocks.push(Block::Text(format!(
        "Each system compared with {} by the measurements: compression, processor time per request, and idle time.",
        document.title(&article.base)
    )));
    for case in document.cases.iter().filter(|case| !case.why.is_empty()) {
        blocks.push(Block::Smaller(case.title.clone()));
        let items = case.why.iter().map(|why| Item { text: why.headline.clone(), below: why.causes.clone() });
        blocks.push(Block::List(items.collect()));
    }
}

fn systems(blocks: &mut Vec<Block>, document: &Document) {
    blocks.push(Block::Heading("Systems".into()));
    for system in &document.systems {
        let mut items = Vec::new();
        match &system.status {
            SystemStatus::Found { versions } => {
                let versions: Vec<String> = versions.iter().map(|(part, it)| format!("{part}: {it}")).collect();
                items.push(Item::new(versions.join("; ")));
                items.extend(system.php.iter().map(|php| Item::new(format!("PHP {php} inside it"))));
                items.extend(system.tuning.iter().map(Item::new));
            }
            SystemStatus::Missing { what, how } => {
                items.push(Item::new(format!("not on this machine: {what}. To get it: {how}")));
            }
        }
        blocks.push(Block::Details(system.title.clone(), vec![Block::List(items)]));
    }
}

fn method(blocks: &mut Vec<Block>, article: &Article, document: &Document) {
    blocks.push(Block::Heading("Method".into()));
    blocks.push(Block::Smaller("The article's".into()));
    blocks.push(Block::List(article.method.words.iter().map(Item::new).collect()));
    blocks.push(Block::Smaller("Differences of this run".into()));
    blocks.push(Block::List(document.differences.iter().map(Item::new).collect()));
    if !document.warnings.is_empty() {
        blocks.push(Block::Smaller("Warnings of the lab".into()));
        blocks.push(Block::List(document.warnings.iter().map(Item::new).collect()));
    }
    blocks.push(Block::Text(format!(
        "Command: {} (lab {}). Generator: {}.",
        document.command.join(" "),
        document.lab_version,
        document.generator
    )));
}
