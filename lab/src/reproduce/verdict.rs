//! Checks which of an article's conclusions hold for the results measured here.

use serde::{Deserialize, Serialize};

use super::article::{Article, Conclusion, Figure};
use super::entry::{CaseEntry, Figures};

/// Verdict on a conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Holds,
    InPart,
    DoesNotHold,
    /// One of its two systems has no figure.
    #[serde(rename = "cannot_be_told")]
    Undecided,
}

impl Verdict {
    pub fn description(self) -> &'static str {
        match self {
            Self::Holds => "holds here",
            Self::InPart => "holds in part",
            Self::DoesNotHold => "does not hold here",
            Self::Undecided => "undecided here",
        }
    }
}

/// A conclusion with the measured ratios.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JudgedConclusion {
    pub text: String,
    /// Systems that are compared, by id.
    pub of: String,
    pub to: String,
    pub figure: String,
    /// Limits of the ratio.
    pub limits: String,
    /// The ratios of the article's figures, by row.
    pub published: Vec<(String, f64)>,
    pub verdict: Verdict,
    /// Ratios here, by case.
    pub here: Vec<Ratio>,
    /// Reason why there is no verdict.
    pub reason: Option<String>,
    /// The verdict with Howdah instead of the article's challenger.
    pub counterpart: Option<Counterpart>,
}

/// Howdah instead of the challenger.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Counterpart {
    pub system: String,
    pub verdict: Verdict,
    pub here: Vec<Ratio>,
}

/// One system's figure divided by another's, from medians, and between the worst and the best of the runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ratio {
    pub case: String,
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    pub fits: bool,
    /// `true` if runs contradict each other.
    pub close: bool,
}

impl Ratio {
    pub fn text(&self) -> String {
        let close = if self.close { ", the runs do not agree" } else { "" };
        let ratio = figures(self.ratio);
        if (self.high - self.low).abs() < 0.005 {
            format!("{}: {ratio}{close}", self.case)
        } else {
            format!("{}: {ratio} ({} to {}{close})", self.case, figures(self.low), figures(self.high))
        }
    }
}

/// Formats a ratio; a small one must not become 0.
fn figures(ratio: f64) -> String {
    if ratio < 0.1 { format!("{ratio:.3}") } else { format!("{ratio:.2}") }
}

/// Returns the verdicts on all conclusions of the article.
pub fn all(article: &Article, cases: &[CaseEntry]) -> Vec<JudgedConclusion> {
    article.conclusions.iter().map(|conclusion| judge(article, conclusion, cases)).collect()
}

fn judge(article: &Article, conclusion: &Conclusion, cases: &[CaseEntry]) -> JudgedConclusion {
    let here = ratios(conclusion, cases, &conclusion.of, &conclusion.to);
    let published = conclusion.rows.iter().filter_map(|id| article.row(id)).filter_map(|row| {
        let ratio = article.ratio(row, &conclusion.of, &conclusion.to, conclusion.figure)?;
        Some((row.title.clone(), (ratio * 100.0).round() / 100.0))
    });
    let counterpart = (conclusion.of == article.challenger && article.counterpart != article.challenger).then(|| {
        let here = ratios(conclusion, cases, &article.counterpart, &conclusion.to);
        Counterpart { system: article.counterpart.clone(), verdict: verdict(&here), here }
    });
    JudgedConclusion {
        text: conclusion.text.clone(),
        of: conclusion.of.clone(),
        to: conclusion.to.clone(),
        figure: conclusion.figure.description().to_owned(),
        limits: conclusion.limits(),
        published: published.collect(),
        verdict: verdict(&here),
        reason: here.is_empty().then(|| reason(conclusion, cases)),
        here,
        counterpart,
    }
}

fn verdict(here: &[Ratio]) -> Verdict {
    let fitting = here.iter().filter(|ratio| ratio.fits).count();
    match fitting {
        _ if here.is_empty() => Verdict::Undecided,
        0 => Verdict::DoesNotHold,
        all if all == here.len() => Verdict::Holds,
        _ => Verdict::InPart,
    }
}

fn reason(conclusion: &Conclusion, cases: &[CaseEntry]) -> String {
    let mine = || cases.iter().filter(|case| conclusion.rows.contains(&case.row));
    for id in [&conclusion.of, &conclusion.to] {
        if let Some(reason) = mine().filter_map(|case| case.cells.get(id)?.reason()).next() {
            return format!("{id}: {reason}");
        }
    }
    "its cases are not part of this run".into()
}

fn ratios(conclusion: &Conclusion, cases: &[CaseEntry], of: &str, to: &str) -> Vec<Ratio> {
    let mine = cases.iter().filter(|case| conclusion.rows.contains(&case.row));
    let ratio = |case: &CaseEntry| {
        let (of, to) = (case.cells.get(of)?.figures()?, case.cells.get(to)?.figures()?);
        let (ratio, low, high) = between(conclusion.figure, of, to)?;
        let fits = conclusion.fits(ratio);
        let close = if fits { !(conclusion.fits(low) && conclusion.fits(high)) } else { conclusion.can_fit(low, high) };
        Some(Ratio { case: case.title.clone(), ratio, low, high, fits, close })
    };
    mine.filter_map(ratio).collect()
}

/// Returns the ratio of medians, and the minimum and maximum from single runs.
pub fn between(figure: Figure, of: &Figures, to: &Figures) -> Option<(f64, f64, f64)> {
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    let same = |of: f64, to: f64| (to > 0.0).then(|| (rounded(of / to), rounded(of / to), rounded(of / to)));
    match figure {
        Figure::Rate if to.rate.min > 0.0 => Some((
            rounded(of.rate.median / to.rate.median),
            rounded(of.rate.min / to.rate.max),
            rounded(of.rate.max / to.rate.min),
        )),
        Figure::Rate => None,
        Figure::P50 => same(of.p50_us?, to.p50_us?),
        Figure::P99 => same(of.p99_us?, to.p99_us?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(fits: bool) -> Ratio {
        Ratio { case: "x".into(), ratio: 1.0, low: 1.0, high: 1.0, fits, close: false }
    }

    #[test]
    fn a_small_ratio_is_not_rounded_to_zero() {
        let small = Ratio { ratio: 0.002, low: 0.002, high: 0.002, ..ratio(true) };
        assert_eq!([small.text(), ratio(true).text()], ["x: 0.002", "x: 1.00"]);
    }

    #[test]
    fn a_conclusion_without_figures_is_not_refuted() {
        assert_eq!(verdict(&[]), Verdict::Undecided);
        assert_eq!(verdict(&[ratio(true), ratio(true)]), Verdict::Holds);
        assert_eq!(verdict(&[ratio(true), ratio(false)]), Verdict::InPart);
        assert_eq!(verdict(&[ratio(false)]), Verdict::DoesNotHold);
    }
}
