//! The published comparisons as data: `articles/*.toml`. Their facts and figures, in the lab's words.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::weight::WeightTarget;
use crate::names::nearest;

/// The files, by name.
const FILES: [(&str, &str); 4] = [
    ("classic-vs-fpm", include_str!("../../articles/classic-vs-fpm.toml")),
    ("coroutine-vs-fpm", include_str!("../../articles/coroutine-vs-fpm.toml")),
    ("three-environments", include_str!("../../articles/three-environments.toml")),
    ("sylius-worker-vs-thread", include_str!("../../articles/sylius-worker-vs-thread.toml")),
];

/// One published comparison.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Article {
    pub name: String,
    pub title: String,
    pub source: String,
    /// The comparison in a sentence.
    pub about: String,
    pub machine: String,
    pub cores: u32,
    pub versions: String,
    /// The system that ratios are relative to.
    pub base: String,
    /// The system that the article compares with the base.
    pub challenger: String,
    /// Howdah's mode that replaces the challenger when conclusions are checked.
    pub counterpart: String,
    pub method: Method,
    /// Configurations in which all rows are measured; a single one without a name if the article has none.
    #[serde(default, rename = "setup")]
    pub setups: Vec<SetupEntry>,
    #[serde(rename = "system")]
    pub systems: Vec<SystemEntry>,
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
    #[serde(rename = "conclusion")]
    pub conclusions: Vec<Conclusion>,
    /// Cases of the tiny form.
    pub tiny: Tiny,
    /// `true` if the page also shows different ways of counting latency.
    #[serde(default)]
    pub counting: bool,
    /// Weight of the lab's own application, which replaces the article's if that is missing.
    pub heavy: Option<WeightTarget>,
}

/// Its method.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Method {
    pub generator: Generator,
    pub threads: u32,
    /// Length of a run, unless it has a number of requests.
    #[serde(default)]
    pub seconds: f64,
    /// Number of requests of a run, unless it has a length.
    pub requests: Option<u64>,
    pub warmup: f64,
    /// Number of warm-up requests, instead of a duration.
    pub warmup_requests: Option<u64>,
    pub rounds: u32,
    /// Seconds of a run of the short form, and of its warm-up.
    #[serde(default = "Method::short")]
    pub short: (f64, f64),
    /// Description of the method.
    pub words: Vec<String>,
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Method {
    fn short() -> (f64, f64) {
        (2.0, 1.0)
    }
}

/// A program that sends requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Generator {
    Ab,
    Vegeta,
    Wrk,
}

impl Generator {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ab => "ab",
            Self::Vegeta => "vegeta",
            Self::Wrk => "wrk",
        }
    }
}

/// A configuration of all systems.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetupEntry {
    /// `shipped` or `tuned`.
    pub id: SetupName,
    pub title: String,
    pub words: String,
    pub workers: Option<u32>,
    pub per_core: Option<u32>,
}

/// The configurations that adapters know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SetupName {
    Shipped,
    Tuned,
    /// As similar as possible.
    Lab,
}

impl SetupName {
    pub fn name(self) -> &'static str {
        match self {
            Self::Shipped => "shipped",
            Self::Tuned => "tuned",
            Self::Lab => "lab",
        }
    }
}

/// A system that takes part.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemEntry {
    /// The lab's system.
    pub id: String,
    /// Exact number of processes or threads, whatever the set-up says.
    pub processes: Option<u32>,
    /// `true` if it is not in the article.
    #[serde(default)]
    pub added: bool,
}

/// A line of the article's table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub id: String,
    pub title: String,
    /// The lab's case.
    pub case: String,
    pub connections: u32,
    /// Published figures by system. Empty if a chart's figures are not in the text.
    #[serde(default)]
    pub figures: BTreeMap<String, Figures>,
}

/// Published figures of one system.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    pub rate: f64,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

/// The compared quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Figure {
    /// Requests per second.
    Rate,
    /// Median latency.
    P50,
    /// 99th percentile of latency.
    P99,
}

impl Figure {
    pub fn description(self) -> &'static str {
        match self {
            Self::Rate => "requests per second",
            Self::P50 => "median latency",
            Self::P99 => "99th percentile",
        }
    }

    /// Returns the published figure.
    pub fn of(self, figures: &Figures) -> Option<f64> {
        match self {
            Self::Rate => Some(figures.rate),
            Self::P50 => figures.p50_ms,
            Self::P99 => figures.p99_ms,
        }
    }
}

/// A claim of the article that can be checked: a ratio between two systems.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conclusion {
    pub text: String,
    pub of: String,
    pub to: String,
    pub rows: Vec<String>,
    pub figure: Figure,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
}

impl Conclusion {
    /// Returns `true` if a ratio satisfies the claim.
    pub fn fits(&self, ratio: f64) -> bool {
        self.at_least.is_none_or(|least| ratio >= least) && self.at_most.is_none_or(|most| ratio <= most)
    }

    /// Returns `true` if a ratio in this range satisfies the claim.
    pub fn can_fit(&self, low: f64, high: f64) -> bool {
        self.at_least.is_none_or(|least| high >= least) && self.at_most.is_none_or(|most| low <= most)
    }

    /// Formats its limits.
    pub fn limits(&self) -> String {
        match (self.at_least, self.at_most) {
            (Some(least), Some(most)) => format!("between {least} and {most}"),
            (Some(least), None) => format!("at least {least}"),
            (None, Some(most)) => format!("at most {most}"),
            (None, None) => "any".into(),
        }
    }
}

/// The form of a reproduction that takes seconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiny {
    pub rows: Vec<String>,
    #[serde(default)]
    pub setups: Vec<String>,
    pub systems: Vec<String>,
}

impl Article {
    pub fn row(&self, id: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// Returns the published ratio of a row.
    pub fn ratio(&self, row: &Row, of: &str, to: &str, figure: Figure) -> Option<f64> {
        let of = figure.of(row.figures.get(of)?)?;
        let to = figure.of(row.figures.get(to)?)?;
        Some(of / to)
    }
}

pub fn names() -> Vec<&'static str> {
    FILES.iter().map(|(name, _)| *name).collect()
}

pub fn find(name: &str) -> Result<Article> {
    let Some((_, text)) = FILES.iter().find(|(known, _)| *known == name) else {
        match nearest(name, names()) {
            Some(known) => bail!("unknown article {name:?}, did you mean {known:?}?"),
            None => bail!("unknown article {name:?}; known are: {}", names().join(", ")),
        }
    };
    toml::from_str(text).with_context(|| format!("the file of {name} cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::catalogue;

    fn all() -> Vec<Article> {
        names().into_iter().map(|name| find(name).unwrap()).collect()
    }

    #[test]
    fn articles_name_only_systems_cases_and_rows_that_exist() {
        let systems = crate::systems::builtin_ids();
        let cases: Vec<String> =
            catalogue::all().into_iter().chain(catalogue::of_articles()).map(|case| case.id).collect();
        for article in all() {
            let name = &article.name;
            let own: Vec<&String> = article.systems.iter().map(|system| &system.id).collect();
            for id in &own {
                assert!(systems.contains(id), "{name}: {id}");
            }
            for id in
                [&article.base, &article.challenger, &article.counterpart].into_iter().chain(&article.tiny.systems)
            {
                assert!(own.contains(&id), "{name}: {id}");
            }
            for row in &article.rows {
                assert!(cases.contains(&row.case), "{name}: {}", row.case);
                assert!(row.figures.keys().all(|id| own.contains(&id)), "{name}: {:?}", row.figures);
            }
            let rows = article.conclusions.iter().flat_map(|conclusion| &conclusion.rows).chain(&article.tiny.rows);
            for id in rows {
                assert!(article.row(id).is_some(), "{name}: {id}");
            }
            for conclusion in &article.conclusions {
                assert!(own.contains(&&conclusion.of) && own.contains(&&conclusion.to), "{name}: {conclusion:?}");
            }
        }
    }

    #[test]
    fn the_conclusions_of_an_article_fit_its_own_figures() {
        for article in all() {
            for conclusion in &article.conclusions {
                for row in conclusion.rows.iter().filter_map(|id| article.row(id)) {
                    let ratio = article.ratio(row, &conclusion.of, &conclusion.to, conclusion.figure);
                    assert!(ratio.is_none_or(|ratio| conclusion.fits(ratio)), "{}: {ratio:?} {conclusion:?}", row.id);
                }
            }
        }
    }

    #[test]
    fn a_range_over_both_limits_can_fit() {
        let article = find("classic-vs-fpm").unwrap();
        let both = article.conclusions.iter().find(|it| it.at_least.is_some() && it.at_most.is_some()).unwrap();
        assert!(both.can_fit(0.4, 3.0) && !both.fits(0.4) && !both.fits(3.0));
        assert!(!both.can_fit(1.5, 3.0) && !both.can_fit(0.2, 0.5));
    }

    #[test]
    fn an_unknown_name_gets_the_nearest() {
        let error = find("classic-vs-fmp").unwrap_err().to_string();
        assert!(error.contains("did you mean \"classic-vs-fpm\"?"), "{error}");
    }
}
