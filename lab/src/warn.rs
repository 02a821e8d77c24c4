//! Warnings about unfair comparisons and doubtful measurements. They are computed from the raw data, so old results get
//! new warnings.

use std::collections::BTreeSet;

use crate::figures::time;
use crate::record::{Outcome, ResultSet, RunKind, Sample};
use crate::view::{self, CaseView};

/// One reason to doubt.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// The measurement was stopped.
    Interrupted,
    /// Runs failed.
    Failed {
        system: String,
        case: String,
        /// Number of failed runs.
        runs: usize,
        /// The last message.
        message: String,
    },
    /// Requests failed in runs that count.
    Errors {
        system: String,
        case: String,
        /// Number of failed requests.
        count: u64,
    },
    /// Some responses were compressed and others were not.
    CompressionDiffers {
        cases: Vec<String>,
        /// Systems that compressed.
        compressed: Vec<String>,
        /// Systems that did not.
        plain: Vec<String>,
    },
    /// One system compressed some responses to the same request and not others.
    EncodingVaries {
        system: String,
        case: String,
        /// Encodings, and the number of checked responses with each.
        seen: Vec<(String, u64)>,
    },
    /// The runs of some systems scatter: system, case, and the distance between the extremes as a share of the median.
    Spread(Vec<(String, String, f64)>),
    /// Too few rounds to distinguish a difference from chance.
    FewRounds(u32),
    /// Runs too short for the kernel's clock ticks.
    ShortRuns(f64),
    /// Other processes used the processors.
    Noise {
        /// Largest share of all processors that was used by processes the lab has not started.
        share: f64,
        /// The run.
        place: String,
    },
    /// The hypervisor took time away.
    Stolen(f64),
    /// The generator runs on the processors that it measures.
    SharedProcessors(u32),
    GeneratorLimit {
        system: String,
        case: String,
        /// Share of the idle floor that was reached.
        share: f64,
    },
    /// The constant rate was not reached, so its latency is that of an overloaded system.
    RateNotReached { system: String, case: String, offered: f64, reached: f64 },
    /// The generator of a mixed load was late itself: system, case, and the 99th percentile of its delay in
    /// microseconds.
    GeneratorLate(Vec<(String, String, f64)>),
    /// Different versions of PHP.
    PhpDiffers(Vec<String>),
    /// OPcache or JIT differ.
    OpcacheDiffers(Vec<String>),
    /// A frequency governor that changes the clock.
    Governor(String),
    /// Prefork processes per connection against a fixed number of workers: case, processes, workers of the others.
    Prefork(Vec<(String, f64, u32)>),
}

impl Warning {
    /// Returns the sentence for reports.
    pub fn text(&self) -> String {
        match self {
            Self::Interrupted => {
                "The measurement was stopped before its end; what is shown was complete until then.".into()
            }
            Self::Failed { system, case, runs, message } => {
                format!("{system} on {case}: {runs} runs failed. {message}")
            }
            Self::Errors { system, case, count } => {
                format!("{system} on {case}: {count} requests failed; they do not count as served.")
            }
            Self::CompressionDiffers { cases, compressed, plain } => format!(
                "{}: compressed by {}, not compressed by {}. Their throughput compares compression as much as runtimes.",
                cases.join(", "),
                compressed.join(", "),
                plain.join(", ")
            ),
            Self::EncodingVaries { system, case, seen } => {
                let seen: Vec<String> = seen.iter().map(|(encoding, count)| format!("{count} {encoding}")).collect();
                format!(
                    "{system} on {case} did not always encode the response in the same way: {} of those checked.",
                    seen.join(", ")
                )
            }
            Self::Spread(items) => {
                let items: Vec<String> = items
                    .iter()
                    .map(|(system, case, spread)| format!("{system} on {case} {:.0} %", spread * 100.0))
                    .collect();
                format!("The runs of one system scatter by more than 15 % of their median: {}.", items.join(", "))
            }
            Self::FewRounds(rounds) => {
                format!("{rounds} round(s): with fewer than 4, no difference can be distinguished from chance.")
            }
            Self::ShortRuns(seconds) => {
                format!(
                    "Runs of {seconds} s are short: the kernel counts the machine's processor time, and that of ended threads, in \
                     hundredths of a second."
                )
            }
            Self::Noise { share, place } => format!(
                "Other processes used up to {:.0} % of the processors ({place}); the machine was not quiet.",
                share * 100.0
            ),
            Self::Stolen(share) => {
                format!("The hypervisor gave up to {:.1} % of the processor time to others.", share * 100.0)
            }
            Self::SharedProcessors(cores) => format!(
                "The load generator and the services ran on the same {cores} processors as the systems. Their cost is part of \
                 every throughput; processor time per request is not affected by it."
            ),
            Self::GeneratorLimit { system, case, share } => format!(
                "{system} on {case} reached {:.0} % of what the generator can do at all; the real distance to others is larger.",
                share * 100.0
            ),
            Self::RateNotReached { system, case, offered, reached } => format!(
                "{system} on {case}: {reached:.0} of {offered:.0} offered requests per second were served; its latency at a \
                 constant rate is that of a queue that grows."
            ),
            Self::GeneratorLate(items) => {
                let items: Vec<String> =
                    items.iter().map(|(system, case, us)| format!("{} on {case} with {system}", time(*us))).collect();
                format!(
                    "The generator itself sent 1 % of the requests of an open loop later than 1 ms after they were due, though a connection \
                     was free, so latencies there are too long: {}.",
                    items.join(", ")
                )
            }
            Self::PhpDiffers(versions) => format!("Different builds of PHP: {}.", versions.join("; ")),
            Self::OpcacheDiffers(states) => format!("OPcache or JIT differ: {}.", states.join("; ")),
            Self::Governor(name) => format!("The frequency governor is {name:?}; the clock may change between runs."),
            Self::Prefork(items) => {
                let items: Vec<String> = items
                    .iter()
                    .map(|(case, processes, workers)| {
                        format!("{processes:.0} processes instead of {workers} on {case}")
                    })
                    .collect();
                format!(
                    "Apache's prefork needs a process for each kept-alive connection and had more processes than others had \
                     workers: {}.",
                    items.join(", ")
                )
            }
        }
    }
}

/// Returns every warning about a result set, the most important first.
pub fn all(results: &ResultSet) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if results.interrupted {
        warnings.push(Warning::Interrupted);
    }
    let views = view::cases(results);
    failures(results, &mut warnings);
    warnings.extend(compression(&views));
    warnings.extend(prefork(&views));
    warnings.extend(spread(&views));
    warnings.extend(generator_late(&views));
    for view in &views {
        of_case(view, &mut warnings);
    }
    of_php(results, &mut warnings);
    of_machine(results, &mut warnings);
    of_method(results, &mut warnings);
    warnings
}

fn failures(results: &ResultSet, warnings: &mut Vec<Warning>) {
    let mut seen = BTreeSet::new();
    for run in &results.runs {
        let Outcome::Failed { message, .. } = &run.outcome else { continue };
        if seen.insert((&run.system, &run.case)) {
            let same = |other: &&crate::record::Run| other.system == run.system && other.case == run.case;
            let failed = |other: &&crate::record::Run| matches!(other.outcome, Outcome::Failed { .. });
            warnings.push(Warning::Failed {
                system: run.system.clone(),
                case: run.case.clone(),
                runs: results.runs.iter().filter(same).filter(failed).count(),
                message: message.clone(),
            });
        }
    }
}

/// Returns the cases in which some systems compress; cases with the same systems are grouped.
fn compression(views: &[CaseView<'_>]) -> Vec<Warning> {
    let mut groups: Vec<(Vec<String>, Vec<String>, Vec<String>)> = Vec::new();
    for view in views {
        let names = |compressed: bool| -> Vec<String> {
            view.measured()
                .filter(|(_, m)| m.compressed() == compressed)
                .map(|(system, _)| system.title.clone())
                .collect()
        };
        let (compressed, plain) = (names(true), names(false));
        if compressed.is_empty() || plain.is_empty() {
            continue;
        }
        match groups.iter_mut().find(|(a, b, _)| *a == compressed && *b == plain) {
            Some((_, _, cases)) => cases.push(view.case.id.clone()),
            None => groups.push((compressed, plain, vec![view.case.id.clone()])),
        }
    }
    groups
        .into_iter()
        .map(|(compressed, plain, cases)| Warning::CompressionDiffers { cases, compressed, plain })
        .collect()
}

fn prefork(views: &[CaseView<'_>]) -> Option<Warning> {
    let mut items = Vec::new();
    for view in views {
        for (_, measured) in view.measured().filter(|(system, _)| system.id == "apache") {
            // The parent is one process more than those that serve.
            let processes = measured.median(|sample| f64::from(sample.memory.processes)) - 1.0;
            if processes > f64::from(view.case.workers) {
                items.push((view.case.id.clone(), processes, view.case.workers));
            }
        }
    }
    (!items.is_empty()).then_some(Warning::Prefork(items))
}

fn spread(views: &[CaseView<'_>]) -> Option<Warning> {
    let mut items = Vec::new();
    for view in views {
        for (system, measured) in view.measured() {
            if measured.rate.count > 1 && measured.rate.spread() > 0.15 {
                items.push((system.title.clone(), view.case.id.clone(), measured.rate.spread()));
            }
        }
    }
    (!items.is_empty()).then_some(Warning::Spread(items))
}

fn generator_late(views: &[CaseView<'_>]) -> Option<Warning> {
    let mut items = Vec::new();
    for view in views {
        for (system, measured) in view.measured() {
            let at_99 = |sample: &Sample| sample.lateness.as_ref()?.at(99.0);
            let us = measured.median(|sample| at_99(sample).unwrap_or(f64::NAN));
            if us > 1000.0 {
                items.push((system.title.clone(), view.case.id.clone(), us));
            }
        }
    }
    (!items.is_empty()).then_some(Warning::GeneratorLate(items))
}

fn of_case(view: &CaseView<'_>, warnings: &mut Vec<Warning>) {
    let case = &view.case.id;
    for (system, measured) in view.measured() {
        let (system, case) = (system.title.clone(), case.clone());
        let encodings = measured.encodings();
        if encodings.len() > 1 {
            let seen = encodings.into_iter().map(|(encoding, count)| (encoding.to_owned(), count)).collect();
            warnings.push(Warning::EncodingVaries { system: system.clone(), case: case.clone(), seen });
        }
        if measured.errors() > 0 {
            warnings.push(Warning::Errors { system: system.clone(), case: case.clone(), count: measured.errors() });
        }
        if let Some(floor) = view.floor {
            let share = measured.rate.median / floor.requests_per_second;
            if share > 0.8 {
                warnings.push(Warning::GeneratorLimit { system: system.clone(), case: case.clone(), share });
            }
        }
        if let Some(sample) = measured.latency
            && let Some(offered) = sample.offered_rate
            && sample.rate() < 0.95 * offered
        {
            warnings.push(Warning::RateNotReached { system, case, offered, reached: sample.rate() });
        }
    }
}

fn of_php(results: &ResultSet, warnings: &mut Vec<Warning>) {
    let facts: Vec<_> =
        results.systems.iter().filter_map(|system| system.php.as_ref().map(|php| (&system.title, php))).collect();
    let builds: BTreeSet<_> = facts.iter().map(|(_, php)| (&php.version, php.zts)).collect();
    if builds.len() > 1 {
        warnings.push(Warning::PhpDiffers(
            facts
                .iter()
                .map(|(title, php)| format!("{title} {}{}", php.version, if php.zts { " ZTS" } else { "" }))
                .collect(),
        ));
    }
    let caches: BTreeSet<_> = facts.iter().map(|(_, php)| (php.opcache, php.jit)).collect();
    if caches.len() > 1 {
        let word = |on: bool| if on { "on" } else { "off" };
        warnings.push(Warning::OpcacheDiffers(
            facts
                .iter()
                .map(|(title, php)| format!("{title} OPcache {}, JIT {}", word(php.opcache), word(php.jit)))
                .collect(),
        ));
    }
}

fn of_machine(results: &ResultSet, warnings: &mut Vec<Warning>) {
    let mut worst: Option<(f64, String)> = None;
    let mut stolen: f64 = 0.0;
    for run in &results.runs {
        let Outcome::Measured(sample) = &run.outcome else { continue };
        let total = sample.cpu.machine_total.max(1e-9);
        let share = sample.cpu.unexplained() / total;
        if worst.as_ref().is_none_or(|(most, _)| share > *most) {
            worst = Some((share, format!("{}, {}, round {}", run.system, run.case, run.round)));
        }
        stolen = stolen.max(sample.cpu.stolen / total);
    }
    if let Some((share, place)) = worst
        && share > 0.05
    {
        warnings.push(Warning::Noise { share, place });
    }
    if stolen > 0.005 {
        warnings.push(Warning::Stolen(stolen));
    }
    if !results.runs.is_empty() {
        warnings.push(Warning::SharedProcessors(results.machine.cores));
    }
    let governor = results.machine.governor.as_str();
    if !governor.is_empty() && governor != "performance" {
        warnings.push(Warning::Governor(governor.to_owned()));
    }
}

fn of_method(results: &ResultSet, warnings: &mut Vec<Warning>) {
    let throughput = results.runs.iter().any(|run| run.kind == RunKind::Throughput);
    if throughput && results.settings.rounds < 4 {
        warnings.push(Warning::FewRounds(results.settings.rounds));
    }
    if throughput && results.settings.seconds < 3.0 {
        warnings.push(Warning::ShortRuns(results.settings.seconds));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PhpFacts;
    use crate::view::sample_results;

    fn change(results: &mut ResultSet, system: &str, change: impl Fn(&mut Sample)) {
        for run in results.runs.iter_mut().filter(|run| run.system == system) {
            if let Outcome::Measured(sample) = &mut run.outcome {
                change(sample);
            }
        }
    }

    fn has(results: &ResultSet, wanted: impl Fn(&Warning) -> bool) -> bool {
        all(results).iter().any(wanted)
    }

    #[test]
    fn a_clean_result_set_has_only_the_warnings_that_always_hold() {
        let mut results = sample_results::results();
        results.settings.seconds = 5.0;
        // The parts explain the sample's busy time.
        change(&mut results, "fast", |sample| sample.cpu.machine_busy = sample.cpu.system_seconds() + 0.4);
        change(&mut results, "slow", |sample| sample.cpu.machine_busy = sample.cpu.system_seconds() + 0.4);
        assert_eq!(all(&results), [Warning::SharedProcessors(2)]);
    }

    #[test]
    fn compression_of_some_is_unfair() {
        let mut results = sample_results::results();
        change(&mut results, "slow", |sample| sample.encodings = [("gzip".to_owned(), 14)].into());
        assert!(has(&results, |w| matches!(w, Warning::CompressionDiffers { compressed, plain, .. }
            if compressed == &["SLOW"] && plain == &["FAST"])));
    }

    #[test]
    fn a_system_that_compresses_now_and_then_is_named() {
        let mut results = sample_results::results();
        change(&mut results, "slow", |sample| {
            sample.encodings.insert("gzip".into(), 2);
        });
        let warnings = all(&results);
        let text: Vec<String> = warnings.iter().map(Warning::text).collect();
        assert!(
            text.iter().any(|text| text.contains("SLOW on hello") && text.contains("8 gzip, 56 identity")),
            "{text:?}"
        );
    }

    #[test]
    fn noise_spread_errors_and_limits_are_warned_of() {
        let mut results = sample_results::results();
        change(&mut results, "slow", |sample| {
            sample.cpu.machine_busy = 4.0;
            sample.cpu.by_role.clear();
            sample.errors.timeout = 2;
        });
        if let Outcome::Measured(sample) = &mut results.runs[0].outcome {
            sample.succeeded /= 2;
        }
        results.floors[0].requests_per_second = 32_000.0;
        change(&mut results, "fast", |sample| {
            let percentiles = vec![(99.0, 1500.0)];
            sample.lateness = Some(crate::record::Latency { percentiles, ..Default::default() });
        });
        let late = ("FAST".to_owned(), "hello".to_owned(), 1500.0);
        assert!(has(&results, |w| *w == Warning::GeneratorLate(vec![late.clone()])));
        assert!(has(&results, |w| matches!(w, Warning::Noise { share, .. } if *share > 0.5)));
        assert!(has(&results, |w| matches!(w, Warning::Errors { count: 8, .. })));
        assert!(has(&results, |w| matches!(w, Warning::Spread(items) if items.len() == 1 && items[0].0 == "FAST")));
        assert!(has(&results, |w| matches!(w, Warning::GeneratorLimit { system, .. } if system == "FAST")));
    }

    #[test]
    fn failed_runs_and_different_php_are_warned_of() {
        let mut results = sample_results::results();
        results.runs[1].outcome =
            Outcome::Failed { stage: "load".into(), message: "it broke".into(), log_tail: Vec::new() };
        let php = |version: &str, opcache| PhpFacts { version: version.into(), opcache, ..PhpFacts::default() };
        results.systems[0].php = Some(php("8.2.1", true));
        results.systems[1].php = Some(php("8.3.1", false));
        assert!(has(&results, |w| matches!(w, Warning::Failed { runs: 1, message, .. } if message == "it broke")));
        assert!(has(&results, |w| matches!(w, Warning::PhpDiffers(_))));
        assert!(has(&results, |w| matches!(w, Warning::OpcacheDiffers(_))));
    }

    #[test]
    fn few_and_short_runs_are_warned_of() {
        let mut results = sample_results::results();
        (results.settings.rounds, results.settings.seconds) = (1, 1.0);
        assert!(has(&results, |w| *w == Warning::FewRounds(1)));
        assert!(has(&results, |w| *w == Warning::ShortRuns(1.0)));
    }
}
