//! Turns an article and a form into a plan, and lists the differences from the published method.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::article::{Article, Generator, Row, SetupEntry, SetupName};
use crate::cases::{App, Case, Expect, Setup, catalogue};
use crate::plan::Plan;
use crate::record::{Machine, SystemStatus};
use crate::systems::{self, System, tailored::Tailored};

/// Extent and duration of a reproduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Everything, with the article's durations.
    Full,
    /// Everything, in minutes.
    Short,
    /// A part of it, in seconds: a smoke test.
    Tiny,
}

/// Durations of a form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lengths {
    pub seconds: f64,
    /// Number of requests, instead of a duration.
    pub requests: Option<u64>,
    pub warmup: f64,
    pub rounds: u32,
}

impl Form {
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Short => "short",
            Self::Tiny => "tiny",
        }
    }

    /// Returns the durations of this form of an article.
    pub fn lengths(self, article: &Article) -> Lengths {
        let method = &article.method;
        match self {
            // A warm-up of a few requests equals the lab's own checks before each run.
            Self::Full => Lengths {
                seconds: method.seconds.max(1.0),
                requests: method.requests,
                warmup: method.warmup,
                rounds: method.rounds,
            },
            Self::Short => Lengths {
                seconds: method.short.0,
                requests: method.requests,
                warmup: method.warmup.max(1.0).min(method.short.1),
                rounds: 2,
            },
            Self::Tiny => Lengths { seconds: 1.0, requests: method.requests.map(|_| 200), warmup: 0.0, rounds: 1 },
        }
    }
}

/// Returns the set-ups that are measured; one without words if the article has none.
pub fn setups(article: &Article, form: Form) -> Vec<&SetupEntry> {
    let wanted = |setup: &&SetupEntry| form != Form::Tiny || article.tiny.setups.iter().any(|id| id == setup.id.name());
    article.setups.iter().filter(wanted).collect()
}

/// Returns the rows that are measured.
pub fn rows(article: &Article, form: Form) -> Vec<&Row> {
    article.rows.iter().filter(|row| form != Form::Tiny || article.tiny.rows.contains(&row.id)).collect()
}

/// Returns the case of a row in a set-up.
pub fn case_id(row: &Row, setup: &SetupEntry) -> String {
    format!("{}.{}", row.id, setup.id.name())
}

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1))
}

/// Returns every row in every set-up.
pub fn cases(article: &Article, form: Form, path: Option<&str>) -> Result<Vec<Case>> {
    let all: Vec<Case> = catalogue::all().into_iter().chain(catalogue::of_articles()).collect();
    let mut cases = Vec::new();
    for setup in setups(article, form) {
        let workers = setup.workers.unwrap_or_else(|| cores() * setup.per_core.unwrap_or(1));
        for row in rows(article, form) {
            let base = all.iter().find(|case| case.id == row.case).with_context(|| format!("no case {}", row.case))?;
            // A second is too short for many clients that wait for each other.
            let most = if form == Form::Tiny { 10 } else { u32::MAX };
            let mut case = base.clone().load(row.connections.min(most), workers);
            case.id = case_id(row, setup);
            case.title =
                if article.setups.len() > 1 { format!("{}, {}", row.title, setup.title) } else { row.title.clone() };
            case.setup = match setup.id {
                SetupName::Lab => Setup::Lab,
                SetupName::Shipped => Setup::Shipped,
                SetupName::Tuned => Setup::Tuned,
            };
            if let Some(path) = path {
                case = Case { app: App::User, expect: Expect::Success, needs: Vec::new(), ..case }.path(path);
            }
            // ab does not request compression.
            if article.method.generator == Generator::Ab {
                case = case.identity();
            }
            cases.push(case);
        }
    }
    Ok(cases)
}

/// Returns the systems, including missing ones.
pub fn systems(article: &Article, form: Form) -> Result<Vec<(Box<dyn System>, SystemStatus)>> {
    let mut all = systems::builtin();
    let mut picked: Vec<(Box<dyn System>, SystemStatus)> = Vec::new();
    for entry in &article.systems {
        if form == Form::Tiny && !article.tiny.systems.contains(&entry.id) {
            continue;
        }
        let at = all.iter().position(|system| system.id() == entry.id).context("an article names an unknown system")?;
        let system = all.remove(at);
        let system = match entry.processes {
            Some(processes) => Box::new(Tailored { inner: system, processes }),
            None => system,
        };
        let status = system.find();
        picked.push((system, status));
    }
    if picked.iter().all(|(_, status)| matches!(status, SystemStatus::Missing { .. })) {
        bail!("none of the article's systems is on this machine; see `howdah-lab doctor`");
    }
    Ok(picked)
}

/// Returns the plan with the article's generator.
///
/// `app` is a directory of the user and a path in it, which replace the article's own cases.
pub fn plan(article: &Article, form: Form, app: Option<(&Path, &str)>) -> Result<Plan> {
    let lengths = form.lengths(article);
    Ok(Plan {
        suite: format!("reproduce-{}", article.name),
        systems: systems(article, form)?,
        cases: cases(article, form, app.map(|(_, path)| path))?,
        rounds: lengths.rounds,
        seconds: lengths.seconds,
        warmup: lengths.warmup,
        latency: false,
        skipped: Default::default(),
        app: app.map(|(dir, _)| dir.to_owned()),
    })
}

/// Describes the differences between this run and the published one, in sentences.
pub fn differences(article: &Article, form: Form, machine: &Machine, generator: &str) -> Vec<String> {
    let lengths = form.lengths(article);
    let mut list = Vec::new();
    if machine.cores != article.cores {
        list.push(format!(
            "{} processors instead of {}: absolute figures cannot be compared, and pools sized by processors differ",
            machine.cores, article.cores
        ));
    }
    list.push(format!(
        "generator, services and systems share one machine ({}); the article ran on {}",
        machine.cpu, article.machine
    ));
    list.push(format!("the versions are those of this machine, listed below; the article had {}", article.versions));
    if !generator.starts_with(article.method.generator.name()) {
        list.push(format!("{generator} sends the requests; the article used {}", article.method.generator.name()));
    }
    let method = &article.method;
    match (lengths.requests, method.requests) {
        (Some(ours), Some(theirs)) if ours != theirs => {
            list.push(format!("{ours} requests in each run instead of {theirs}"));
        }
        (None, None) if (lengths.seconds - method.seconds).abs() > 0.01 => {
            list.push(format!("runs of {} s instead of {} s", lengths.seconds, method.seconds));
        }
        _ => {}
    }
    if (lengths.warmup - method.warmup).abs() > 0.01 {
        list.push(format!("a warm-up of {} s instead of {} s", lengths.warmup, method.warmup));
    }
    if lengths.rounds != method.rounds {
        list.push(format!("{} round(s) instead of {}", lengths.rounds, method.rounds));
    }
    if lengths.rounds > 1 {
        list.push("figures are medians of the rounds, interleaved between the systems in changing order".into());
    }
    if form == Form::Tiny {
        list.push(
            "the tiny form: some rows and systems for a second each with ten connections: a smoke test, not a measurement"
                .into(),
        );
    }
    list.push(
        "each run restarts its system and checks ten responses before the load; after a warm-up it waits until the system is idle, because \
         PHP-FPM continues requests whose clients have left"
            .into(),
    );
    list.extend(method.notes.iter().cloned());
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::article;

    #[test]
    fn every_form_of_every_article_has_cases_and_systems() {
        for name in article::names() {
            let article = article::find(name).unwrap();
            for form in [Form::Full, Form::Short, Form::Tiny] {
                let cases = cases(&article, form, None).unwrap();
                assert_eq!(cases.len(), rows(&article, form).len() * setups(&article, form).len());
                assert!(!cases.is_empty() && cases.iter().all(|case| case.workers > 0), "{name}: {cases:?}");
            }
        }
    }

    #[test]
    fn differences_from_the_article_are_reported() {
        let article = article::find("classic-vs-fpm").unwrap();
        let machine = Machine { cores: 2, ..Machine::default() };
        let said = differences(&article, Form::Short, &machine, "wrk 4").join("\n");
        assert!(said.contains("2 processors instead of 8"), "{said}");
        assert!(said.contains("wrk 4 sends the requests; the article used vegeta"), "{said}");
        assert!(said.contains("runs of 2 s instead of 60 s"), "{said}");
    }
}
