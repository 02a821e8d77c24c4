//! `howdah-lab reproduce NAME`: repeats a published comparison with its own method, on those of its systems that are
//! installed and on Howdah's modes. The page shows its table next to the results measured here, as ratios.
//!
//! [`article`] contains the published data, [`method`] selects what is measured, [`document`] holds the results,
//! [`page`] renders them.

pub mod article;
pub mod counting;
mod counting_page;
pub mod document;
pub mod entry;
pub mod method;
pub mod page;
pub mod verdict;
pub mod weight;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::clock;
use crate::interrupt::{Interrupt, Interrupted};
use crate::load::{Load, RealLoad, ab::Ab, vegeta::Vegeta};
use crate::outset;
use crate::plan::Plan;
use crate::record::{Outcome, ResultSet, SystemStatus};
use crate::report;
use crate::runner::Runner;
use crate::stage::Stage;
use article::{Article, Generator};
use counting::AtRate;
use document::Document;
use method::Form;

#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// The article: classic-vs-fpm, coroutine-vs-fpm, three-environments or sylius-worker-vs-thread
    pub name: String,
    /// All of it in minutes
    #[arg(long, conflicts_with = "tiny")]
    short: bool,
    /// A part of it in seconds, to see that everything works
    #[arg(long)]
    tiny: bool,
    /// A directory with an installed Sylius, for sylius-worker-vs-thread: measured instead of the lab's own shop
    #[arg(long, value_name = "DIR")]
    app: Option<PathBuf>,
    /// The path of a product in it
    #[arg(long, value_name = "/PATH", default_value = "/api/v2/shop/products", requires = "app")]
    path: String,
    /// Directory for the results; `lab/raw/<date>-<host class>/reproduce-NAME` when absent
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Context of the whole run.
struct Session<'a> {
    article: &'a Article,
    stage: &'a Stage,
    interrupt: &'a Interrupt,
    out: &'a Path,
}

impl Session<'_> {
    fn measure(&self, plan: &Plan, load: &dyn Load, results: &mut ResultSet) -> Result<()> {
        let save = |results: &ResultSet| report::json::write(self.out, results);
        let runner = Runner::new(self.stage, load, self.interrupt, &save);
        Runner { threads: self.article.method.threads, settles: true, ..runner }.run(plan, results)
    }

    /// Measures the same waiting script with every available way of counting.
    fn count(&self, mut plan: Plan, results: &mut ResultSet) -> Result<()> {
        let wanted = [&self.article.base, &self.article.counterpart];
        let found = |status: &SystemStatus| matches!(status, SystemStatus::Found { .. });
        let Some(at) = plan.systems.iter().position(|(it, status)| wanted.contains(&&it.id()) && found(status)) else {
            return Ok(());
        };
        let system = plan.systems.swap_remove(at);
        let own = RealLoad::find()?;
        let mut closed: Vec<(&str, &str, Box<dyn Load>)> = vec![(
            "wrk",
            "closed loop over connections that stay open, from sending to the whole response",
            Box::new(RealLoad::find()?),
        )];
        if let Some(ab) = Ab::find(None) {
            closed.push((
                "ab",
                "closed loop with a connection for each request, from connecting to the whole response",
                Box::new(ab),
            ));
        }
        if let Some(vegeta) = Vegeta::find() {
            closed.push((
                "vegeta",
                "without a rate: closed loop, from sending to the whole response",
                Box::new(vegeta),
            ));
        }
        let step = |results: &mut ResultSet, plan: &mut Plan, way: &str, title: &str, how: &str, load: &dyn Load| {
            let case = counting::case(way, title, how).context("no case waits")?;
            results.cases.push(case.record());
            plan.cases = vec![case];
            self.measure(plan, load, results)
        };
        let mut only = Plan { systems: vec![system], rounds: 1, cases: Vec::new(), ..plan };
        for (name, how, load) in &closed {
            step(results, &mut only, name, &format!("{name}, closed loop"), how, load.as_ref())?;
        }
        let Some(rate) = counting::reached(results) else { return Ok(()) };
        for share in counting::OFFERED {
            let (offered, percent) = (rate * share, share * 100.0);
            let title = format!("open loop at {percent:.0} % of that");
            let how = format!(
                "the lab's own generator, {offered:.0} requests due each second, counted from the moment each was due"
            );
            step(
                results,
                &mut only,
                &format!("open-{percent:.0}"),
                &title,
                &how,
                &AtRate { inner: &own, rate: offered },
            )?;
            if let Some(vegeta) = Vegeta::find() {
                let title = format!("vegeta, {percent:.0} % of that");
                let how = format!(
                    "{offered:.0} requests sent each second over as many connections as it takes, counted from sending"
                );
                let load = AtRate { inner: &vegeta, rate: offered };
                step(results, &mut only, &format!("vegeta-{percent:.0}"), &title, &how, &load)?;
            }
        }
        Ok(())
    }
}

/// Returns the article's generator, or wrk if it is missing.
fn generator(article: &Article, form: Form) -> Result<Box<dyn Load>> {
    let own: Option<Box<dyn Load>> = match article.method.generator {
        Generator::Ab => Ab::find(form.lengths(article).requests).map(|ab| Box::new(ab) as Box<dyn Load>),
        Generator::Vegeta => Vegeta::find().map(|vegeta| Box::new(vegeta) as Box<dyn Load>),
        Generator::Wrk => None,
    };
    own.map_or_else(|| Ok(Box::new(RealLoad::find()?) as Box<dyn Load>), Ok)
}

/// Sets the weight of the lab's own application, if it replaces the article's. Returns a description of it.
fn weighed(article: &Article, form: Form, plan: &Plan, stage: &Stage, interrupt: &Interrupt) -> Result<Option<String>> {
    match article.heavy {
        Some(_) if form == Form::Tiny && plan.app.is_none() => Ok(Some(weight::light())),
        Some(aim) if plan.app.is_none() => weight::find(aim, plan, stage, interrupt).map(Some),
        _ => Ok(None),
    }
}

/// Measures the article's cases and writes the pages.
pub fn main(args: &ReproduceArgs) -> Result<u8> {
    let article = article::find(&args.name)?;
    let form = match (args.short, args.tiny) {
        (_, true) => Form::Tiny,
        (true, _) => Form::Short,
        _ => Form::Full,
    };
    if let Some(app) = &args.app {
        if article.heavy.is_none() {
            bail!("--app is for sylius-worker-vs-thread; your own application is measured by `howdah-lab choose`");
        }
        weight::check_sylius(app)?;
    }
    let plan = method::plan(&article, form, args.app.as_deref().map(|app| (app, args.path.as_str())))?;
    let load = generator(&article, form)?;
    let interrupt = Interrupt::on_signals()?;
    let mut results = outset::results(&plan, load.name(), article.method.threads, 0.0);
    let out = outset::begin(&plan, &results, args.out.as_deref())?;
    let staged: Vec<_> =
        plan.cases.iter().cloned().chain(article.counting.then(|| counting::case("", "", "")).flatten()).collect();
    let mut notes: Vec<String> = args
        .app
        .iter()
        .map(|app| format!("The application is the one in {}, with requests for {}.", app.display(), args.path))
        .collect();
    let measured = Stage::prepare(&staged, args.app.as_deref(), &interrupt).and_then(|stage| {
        notes.extend(weighed(&article, form, &plan, &stage, &interrupt)?);
        let session = Session { article: &article, stage: &stage, interrupt: &interrupt, out: &out };
        session.measure(&plan, load.as_ref(), &mut results)?;
        if article.counting { session.count(plan, &mut results) } else { Ok(()) }
    });
    results.interrupted = interrupt.is_raised();
    results.finished = Some(clock::now());
    report::json::write(&out, &results)?;
    let document = Document::of(&article, form, &results, &notes);
    page::of(&article, &document).write(&out, &document)?;
    println!("{}", summary_lines(&document));
    eprintln!("\nresults in {}", out.display());
    if let Err(error) = measured {
        return Err(if results.interrupted { Interrupted.into() } else { error });
    }
    let failed = results.runs.iter().filter(|run| matches!(run.outcome, Outcome::Failed { .. })).count();
    if failed > 0 {
        eprintln!("{failed} runs failed; the page shows them");
    }
    Ok(u8::from(failed > 0))
}

/// Formats the verdicts on the conclusions for the terminal.
fn summary_lines(document: &Document) -> String {
    let lines = document.conclusions.iter().map(|judged| {
        let counterpart = judged.counterpart.as_ref().map_or_else(String::new, |counterpart| {
            format!("; {} instead: {}", document.title(&counterpart.system), counterpart.verdict.description())
        });
        format!("  {}: {}{counterpart}", judged.text, judged.verdict.description())
    });
    let lines: Vec<String> = lines.collect();
    let missing: Vec<String> = document.missing().iter().map(|(title, ..)| format!("  not here: {title}")).collect();
    format!("\n{}\n{}\n{}", document.article, lines.join("\n"), missing.join("\n")).trim_end().to_owned()
}
