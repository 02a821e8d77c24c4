//! Goals: the figures that one system must reach compared with another, checked against a result set.
//!
//! ```toml
//! [[goal]]
//! case = "hello"               # or several: ["hello", "html"] stands for a goal on each
//! system = "howdah-classic"
//! kind = "fast"                # of a mixed load; absent: all requests together
//! figure = "rate"              # rate, p50, p90, p99, refused_p99, server_us, added_us, pss or mysql_open; or several
//! against = "nginx-fpm"        # absent: the limit is an absolute figure
//! against_case = "hello"       # absent: the same case
//! at_least = 2.7               # or at_most; or at_most_more: the difference from the other one, in the figure's unit
//! ```

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::record::ResultSet;
use crate::report::number;
use crate::view::{self, CaseView, KindView, Measured};

/// The compared figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Requests per second.
    Rate,
    /// Processor time of the system per request, in microseconds.
    ServerUs,
    /// That time minus the time of the application's handler in a plain loop without a server.
    AddedUs,
    /// Memory, in MiB.
    Pss,
    /// Maximum number of simultaneous connections to MySQL.
    MysqlOpen,
    /// Median latency in milliseconds.
    P50,
    /// 90th percentile of latency in milliseconds.
    P90,
    /// 99th percentile of latency in milliseconds.
    P99,
    /// 99th percentile of the latency of refusals in milliseconds.
    RefusedP99,
}

impl Figure {
    fn of(self, view: &CaseView<'_>, measured: &Measured<'_>) -> Option<f64> {
        match self {
            Self::Rate => Some(measured.rate.median),
            Self::ServerUs => Some(measured.server_us.median),
            Self::AddedUs => view.loop_us.map(|alone| measured.server_us.median - alone),
            Self::Pss => Some(measured.pss_bytes() / f64::from(1u32 << 20)),
            Self::MysqlOpen => measured.mysql_most_open(),
            Self::P50 | Self::P90 | Self::P99 => {
                let ms = measured.median(|sample| sample.latency.at(self.percentile()).unwrap_or(f64::NAN)) / 1000.0;
                Some(ms).filter(|ms| ms.is_finite())
            }
            Self::RefusedP99 => None,
        }
    }

    /// Returns the figure of one kind of request; `None` for figures of the whole system.
    fn of_kind(self, kind: &KindView<'_>) -> Option<f64> {
        let value = match self {
            Self::Rate => kind.rate(),
            Self::P50 | Self::P90 | Self::P99 => kind.percentile_us(self.percentile()) / 1000.0,
            Self::RefusedP99 => kind.refused_percentile_us(99.0) / 1000.0,
            Self::ServerUs | Self::AddedUs | Self::Pss | Self::MysqlOpen => return None,
        };
        Some(value).filter(|value| value.is_finite())
    }

    fn percentile(self) -> f64 {
        match self {
            Self::P50 => 50.0,
            Self::P90 => 90.0,
            _ => 99.0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Rate => "requests per second",
            Self::ServerUs => "server µs per request",
            Self::AddedUs => "server µs per request above the application's own loop",
            Self::Pss => "MiB of memory (PSS)",
            Self::MysqlOpen => "connections to MySQL at once",
            Self::P50 => "p50 (ms)",
            Self::P90 => "p90 (ms)",
            Self::P99 => "p99 (ms)",
            Self::RefusedP99 => "p99 of refusals (ms)",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    pub case: String,
    /// The system that must reach the goal.
    pub system: String,
    /// The kind of request, for a mixed load.
    pub kind: Option<String>,
    /// The compared figure.
    pub figure: Figure,
    /// The other system; without one the limit is absolute.
    pub against: Option<String>,
    /// The other system's case, if it differs.
    pub against_case: Option<String>,
    /// Minimum ratio or value.
    pub at_least: Option<f64>,
    /// Maximum ratio or value.
    pub at_most: Option<f64>,
    /// Maximum difference from the other system.
    pub at_most_more: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    goal: Vec<Entry>,
}

/// A goal in a file: for one or several cases and figures.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    case: OneOrMany<String>,
    system: String,
    kind: Option<String>,
    figure: OneOrMany<Figure>,
    against: Option<String>,
    against_case: Option<String>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    at_most_more: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    fn all(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

impl Entry {
    fn goals(&self) -> impl Iterator<Item = Goal> {
        let pairs = self.case.all().iter().flat_map(|case| self.figure.all().iter().map(move |figure| (case, *figure)));
        pairs.map(|(case, figure)| Goal {
            case: case.clone(),
            system: self.system.clone(),
            kind: self.kind.clone(),
            figure,
            against: self.against.clone(),
            against_case: self.against_case.clone(),
            at_least: self.at_least,
            at_most: self.at_most,
            at_most_more: self.at_most_more,
        })
    }
}

/// A goal and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The goal in words.
    pub text: String,
    /// The ratio or value; absent if one of the two was not measured.
    pub reached: Option<f64>,
    /// `true` if the goal is met.
    pub met: bool,
}

/// Reads a file of goals.
pub fn read(path: &Path) -> Result<Vec<Goal>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> Result<Vec<Goal>> {
    let goals: Vec<Goal> = toml::from_str::<File>(text)?.goal.iter().flat_map(Entry::goals).collect();
    let limits = |goal: &Goal| [goal.at_least, goal.at_most, goal.at_most_more].iter().flatten().count();
    if let Some(goal) = goals.iter().find(|goal| limits(goal) != 1) {
        bail!("the goal of {} on {} needs one of at_least, at_most and at_most_more", goal.system, goal.case);
    }
    if let Some(goal) = goals.iter().find(|goal| goal.at_most_more.is_some() && goal.against.is_none()) {
        bail!("the goal of {} on {} has at_most_more, so it needs against", goal.system, goal.case);
    }
    Ok(goals)
}

/// Evaluates every goal. A goal whose systems were not measured is not met.
pub fn judge(goals: &[Goal], results: &ResultSet) -> Vec<Verdict> {
    let views = view::cases(results);
    goals.iter().map(|goal| verdict(goal, &views)).collect()
}

fn verdict(goal: &Goal, views: &[CaseView<'_>]) -> Verdict {
    let value = |case: &str, system: &str| {
        views.iter().find(|view| view.case.id == case).and_then(|view| {
            let (_, measured) = view.measured().find(|(record, _)| record.id == system)?;
            match &goal.kind {
                Some(kind) => goal.figure.of_kind(&measured.kind(kind)?),
                None => goal.figure.of(view, measured),
            }
        })
    };
    let own = value(&goal.case, &goal.system);
    let reached = match &goal.against {
        None => own,
        Some(other) => {
            let case = goal.against_case.as_ref().unwrap_or(&goal.case);
            let both = own.zip(value(case, other));
            both.map(|(own, other)| if goal.at_most_more.is_some() { own - other } else { own / other })
        }
    };
    let (word, limit) = match (goal.at_least, goal.at_most) {
        (Some(limit), _) => ("at least", limit),
        (None, limit) => ("at most", limit.or(goal.at_most_more).unwrap_or(f64::NAN)),
    };
    let met = reached.is_some_and(|reached| if word == "at least" { reached >= limit } else { reached <= limit });
    let beside = goal.against.as_ref().map_or_else(
        || format!("{word} {limit}"),
        |other| match &goal.against_case {
            Some(case) => format!("{word} {limit} × {other} on {case}"),
            None if goal.at_most_more.is_some() => format!("{word} {limit} more than {other}"),
            None => format!("{word} {limit} × {other}"),
        },
    );
    let kind = goal.kind.as_ref().map_or_else(String::new, |kind| format!(", {kind}"));
    Verdict { text: format!("{}, {}{kind}: {} {beside}", goal.case, goal.system, goal.figure.name()), reached, met }
}

pub fn lines(verdicts: &[Verdict]) -> String {
    let line = |verdict: &Verdict| {
        let reached = verdict
            .reached
            .map_or("not measured".into(), |value| if value < 100.0 { format!("{value:.2}") } else { number(value) });
        format!("  {}  {:>12}  {}\n", if verdict.met { "met   " } else { "MISSED" }, reached, verdict.text)
    };
    verdicts.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::sample_results;

    fn goals(text: &str) -> Vec<Verdict> {
        judge(&parse(text).unwrap(), &sample_results::results())
    }

    #[test]
    fn ratios_and_absolute_limits() {
        let verdicts = goals(
            "[[goal]]\ncase='hello'\nsystem='fast'\nfigure='rate'\nagainst='slow'\nat_least=2.9\n\
             [[goal]]\ncase='hello'\nsystem='fast'\nfigure='server_us'\nat_most=29\n\
             [[goal]]\ncase='hello'\nsystem='fast'\nfigure='pss'\nagainst='slow'\nat_most=1\n\
             [[goal]]\ncase='hello'\nsystem='fast'\nfigure='rate'\nagainst='gone'\nat_least=1\n\
             [[goal]]\ncase='hello'\nsystem='fast'\nfigure='added_us'\nat_most=9\n\
             [[goal]]\ncase='hello'\nsystem='slow'\nfigure='server_us'\nagainst='fast'\nat_most_more=2\n",
        );
        assert_eq!(
            verdicts.iter().map(|verdict| verdict.met).collect::<Vec<_>>(),
            [true, false, true, false, true, false]
        );
        assert!(verdicts[5].reached.is_some_and(|more| more > 2.0), "{verdicts:?}");
        assert_eq!(verdicts[4].reached, Some(9.0));
        assert_eq!(verdicts[3].reached, None);
        let text = lines(&verdicts);
        assert!(text.contains("met             3.00  hello, fast: requests per second at least 2.9 × slow"), "{text}");
        assert!(text.contains("MISSED  not measured"), "{text}");
    }

    #[test]
    fn goals_for_a_kind_of_request_and_for_several_at_once() {
        let text = "[[goal]]\ncase=['hello','hello']\nsystem='fast'\nkind='quick'\nfigure=['rate','p50','p99']\nagainst='slow'\nat_least=0.6\n\
             [[goal]]\ncase='hello'\nsystem='slow'\nkind='long'\nfigure='refused_p99'\nat_most=1.0\n\
             [[goal]]\ncase='hello'\nsystem='fast'\nkind='long'\nfigure='pss'\nat_most=1.0\n\
             [[goal]]\ncase='hello'\nsystem='fast'\nkind='none'\nfigure='rate'\nat_least=1.0\n";
        let verdicts = judge(&parse(text).unwrap(), &sample_results::mixed());
        let reached: Vec<Option<f64>> =
            verdicts.iter().map(|verdict| verdict.reached.map(|value| (value * 100.0).round() / 100.0)).collect();
        let three = [Some(3.0), Some(0.6), Some(0.73)];
        assert_eq!(reached, [three[0], three[1], three[2], three[0], three[1], three[2], Some(1.0), None, None]);
        assert!(verdicts[0].text.starts_with("hello, fast, quick: requests per second at least 0.6"), "{verdicts:?}");
    }

    #[test]
    fn goals_in_files_name_existing_cases_kinds_and_systems() {
        let cases = crate::cases::catalogue::all();
        let systems = crate::systems::builtin_ids();
        let mut files = 0;
        for entry in fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !(name.starts_with("goals") && name.ends_with(".toml")) {
                continue;
            }
            files += 1;
            for goal in read(&entry.path()).unwrap() {
                for id in std::iter::once(&goal.case).chain(&goal.against_case) {
                    let case = cases.iter().find(|case| &case.id == id);
                    assert!(case.is_some(), "{name}: {id}");
                    let kinds = case.and_then(|case| case.mix.as_ref()).map(crate::cases::mix::Mix::kinds);
                    let known = goal.kind.as_ref().is_none_or(|kind| kinds.is_some_and(|kinds| kinds.contains(kind)));
                    assert!(known, "{name}: {id} has no kind {:?}", goal.kind);
                }
                for id in std::iter::once(&goal.system).chain(&goal.against) {
                    assert!(systems.contains(id), "{name}: {id}");
                }
            }
        }
        assert_eq!(files, 7);
    }

    #[test]
    fn a_goal_needs_exactly_one_limit_and_known_keys() {
        assert!(parse("[[goal]]\ncase='a'\nsystem='b'\nfigure='rate'\n").is_err());
        assert!(parse("[[goal]]\ncase='a'\nsystem='b'\nfigure='rate'\nat_least=1\nat_most=2\n").is_err());
        assert!(parse("[[goal]]\ncase='a'\nsystem='b'\nfigure='rate'\natleast=1\n").is_err());
        assert!(parse("[[goal]]\ncase='a'\nsystem='b'\nfigure='rate'\nat_most_more=1\n").is_err());
    }
}
