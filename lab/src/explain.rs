//! Explains why one system is faster than another on a case: the measured causes, in sentences.
//!
//! Each sentence states a measurement. Where the measurements are inconclusive, there is none.

use crate::jit;
use crate::record::{CaseRecord, Role, SystemRecord};
use crate::stats::Difference;
use crate::view::{CaseView, Measured};

/// Above this share of busy processors, processor time per request limits throughput.
const FULL: f64 = 0.90;
/// Below this share, something other than the processors limits throughput.
const IDLE: f64 = 0.75;

/// One comparison: the fastest system of a case with another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The compared systems, and their difference.
    pub headline: String,
    /// Measured causes.
    pub causes: Vec<String>,
}

/// Compares every system of a case with the fastest one.
pub fn case(view: &CaseView<'_>) -> Vec<Explanation> {
    let mut ranked: Vec<(&SystemRecord, &Measured<'_>)> = view.measured().collect();
    ranked.sort_by(|a, b| b.1.rate.median.total_cmp(&a.1.rate.median));
    let Some(((best_system, best), others)) = ranked.split_first() else { return Vec::new() };
    others
        .iter()
        .map(|(system, measured)| Explanation {
            headline: headline(best_system, best, system, measured),
            causes: causes(view.case, (best_system, best), (system, measured)),
        })
        .collect()
}

/// Compares two systems of a case, whichever is faster.
pub fn between(view: &CaseView<'_>, one: &str, other: &str) -> Option<Explanation> {
    let of = |id: &str| view.measured().find(|(system, _)| system.id == id);
    let (one, other) = (of(one)?, of(other)?);
    let (fast, slow) = if one.1.rate.median >= other.1.rate.median { (one, other) } else { (other, one) };
    Some(Explanation { headline: headline(fast.0, fast.1, slow.0, slow.1), causes: causes(view.case, fast, slow) })
}

/// Returns sentences about the case as a whole.
pub fn general(view: &CaseView<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let CaseRecord { connections, workers, wait_ms, .. } = view.case;
    if connections > workers {
        notes.push(format!(
            "{connections} connections meet {workers} workers: where a worker serves one request at a time, {} of \
             {connections} requests wait in a queue, so latency in the closed loop is mostly waiting.",
            connections - workers
        ));
    }
    if *wait_ms > 0.0 {
        notes.push(format!(
            "Each request waits {wait_ms} ms: {workers} workers that wait one request at a time cannot exceed {:.0} \
             requests per second, {connections} requests waiting at once cannot exceed {:.0}.",
            f64::from(*workers) * 1000.0 / wait_ms,
            f64::from(*connections) * 1000.0 / wait_ms
        ));
    }
    if let Some(alone) = view.loop_us {
        notes.push(format!(
            "The application's own handler, called in a plain loop on the command line, takes {alone:.0} µs of processor time; what \
             a system takes above that is what it adds to each request."
        ));
    }
    if let Some(floor) = view.floor {
        notes.push(format!(
            "Without PHP, against a stand-in that sends equally many bytes, the generator reaches {:.0} requests per second on \
             this machine; it needs {:.1} µs of processor time for each.",
            floor.requests_per_second, floor.generator_us
        ));
        for (system, measured) in view.measured() {
            let share = measured.rate.median / floor.requests_per_second;
            if share > 0.6 {
                notes.push(format!(
                    "{} reaches {:.0} % of that limit: its own cost is smaller than the differences in throughput show.",
                    system.title,
                    share * 100.0
                ));
            }
        }
    }
    notes
}

/// Returns the gain of each system by the JIT, for cases measured with and without it; the largest gain first.
pub fn gains_by_jit(view: &CaseView<'_>, all: &[CaseView<'_>]) -> Vec<String> {
    let Some(plain) = jit::plain(&view.case.id).and_then(|id| all.iter().find(|other| other.case.id == id)) else {
        return Vec::new();
    };
    let mut gains: Vec<(f64, String)> = view
        .measured()
        .filter_map(|(system, with)| {
            let (_, without) = plain.measured().find(|(other, _)| other.id == system.id)?;
            let gain = with.rate.median / without.rate.median;
            let clear = Difference::between(&with.rates(), &without.rates()).is_some_and(|found| found.is_clear());
            let chance = if clear { "" } else { " (the runs overlap or are too few: this may be chance)" };
            let text = format!(
                "{}: {gain:.2} times as many requests with the JIT as without{chance}; processor time per request {:.0} µs \
                 instead of {:.0} µs.",
                system.title, with.server_us.median, without.server_us.median
            );
            Some((gain, text))
        })
        .collect();
    gains.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut notes: Vec<String> = gains.into_iter().map(|(_, text)| text).collect();
    if let (Some(with), Some(without)) = (view.loop_us, plain.loop_us) {
        notes.push(format!(
            "The application's own handler in a plain loop takes {with:.0} µs with the JIT and {without:.0} µs without; the rest of what \
             a system takes is PHP's start, loading, building services, and the server itself."
        ));
    }
    notes
}

fn headline(best_system: &SystemRecord, best: &Measured<'_>, system: &SystemRecord, measured: &Measured<'_>) -> String {
    let ratio = best.rate.median / measured.rate.median;
    let clear = Difference::between(&best.rates(), &measured.rates());
    let certainty = match clear {
        Some(difference) if difference.is_clear() => String::new(),
        _ if best.rate.min > measured.rate.max => {
            format!(" (every run was faster, but {} too few to exclude chance)", rounds(best.rate.count))
        }
        _ => " (the runs overlap: this may be chance)".into(),
    };
    if ratio < 1.03 {
        return format!("{} and {} serve about as many requests{certainty}.", best_system.title, system.title);
    }
    format!("{} serves {ratio:.2} times as many requests as {}{certainty}.", best_system.title, system.title)
}

fn rounds(count: usize) -> String {
    if count == 1 { "one round is".into() } else { format!("{count} rounds are") }
}

fn causes(
    case: &CaseRecord,
    (fast_system, fast): (&SystemRecord, &Measured<'_>),
    (slow_system, slow): (&SystemRecord, &Measured<'_>),
) -> Vec<String> {
    let (fast_name, slow_name) = (&fast_system.title, &slow_system.title);
    let mut causes = Vec::new();
    if fast.encoding() != slow.encoding() {
        let describe = |name: &str, measured: &Measured<'_>| {
            let how = if measured.compressed() {
                format!("compresses ({})", measured.encoding())
            } else {
                "does not compress".into()
            };
            format!("{name} {how} and sends {} bytes", measured.wire_bytes())
        };
        causes.push(format!(
            "Compression differs: {}; {}. Part of the difference is compression, not the runtime.",
            describe(fast_name, fast),
            describe(slow_name, slow)
        ));
    }
    causes.push(format!("Processor time per request: {fast_name} {}, {slow_name} {}.", split(fast), split(slow)));
    causes.extend(limit(case, (fast_name, fast), (slow_name, slow)));
    if let (Some(a), Some(b)) = (fast.connections_per_request(), slow.connections_per_request())
        && (a - b).abs() > 0.2
    {
        causes.push(format!(
            "MariaDB connections per request: {fast_name} {a:.2}, {slow_name} {b:.2}. A new connection costs its handshake."
        ));
    }
    let switches = |measured: &Measured<'_>| measured.median(|sample| sample.switches_per_request());
    let (a, b) = (switches(fast), switches(slow));
    if (a - b).abs() > 0.7 && a.max(b) > 1.3 * a.min(b) {
        causes.push(format!("Context switches per request: {fast_name} {a:.1}, {slow_name} {b:.1}."));
    }
    causes
}

fn split(measured: &Measured<'_>) -> String {
    let parts: Vec<String> = [Role::Front, Role::Php]
        .iter()
        .map(|role| (*role, measured.role_us(*role)))
        .filter(|(_, us)| *us > 0.05)
        .map(|(role, us)| format!("{us:.0} {}", role.name()))
        .collect();
    let total = format!("{:.0} µs", measured.server_us.median);
    if parts.len() > 1 { format!("{total} ({})", parts.join(" + ")) } else { total }
}

/// Describes the limit of the throughput: full processors, or waiting.
fn limit(
    case: &CaseRecord,
    (fast_name, fast): (&str, &Measured<'_>),
    (slow_name, slow): (&str, &Measured<'_>),
) -> Option<String> {
    if fast.busy() > FULL && slow.busy() > FULL {
        return Some(format!(
            "The processors were full in both runs, so processor time decides. With the generator and the services, one \
             request took {:.0} µs on {fast_name} and {:.0} µs on {slow_name}, a ratio of {:.2}.",
            fast.everything_us(),
            slow.everything_us(),
            slow.everything_us() / fast.everything_us()
        ));
    }
    if slow.busy() < IDLE {
        let bound = if case.wait_ms > 0.0 {
            format!("its requests wait {} ms on purpose, with {} workers", case.wait_ms, case.workers)
        } else {
            "its requests wait for something: a free worker, a service, or a wake-up".into()
        };
        return Some(format!("{slow_name} left {:.0} % of the processors idle: {bound}.", (1.0 - slow.busy()) * 100.0));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ResultSet;
    use crate::view::{cases, sample_results};

    fn text(results: &ResultSet) -> String {
        let views = cases(results);
        let explanations = case(&views[0]);
        assert_eq!(explanations.len(), 1);
        format!(
            "{}\n{}\n{}",
            explanations[0].headline,
            explanations[0].causes.join("\n"),
            general(&views[0]).join("\n")
        )
    }

    fn each_sample(results: &mut ResultSet, system: &str, change: impl Fn(&mut crate::record::Sample)) {
        for run in results.runs.iter_mut().filter(|run| run.system == system) {
            if let crate::record::Outcome::Measured(sample) = &mut run.outcome {
                change(sample);
            }
        }
    }

    #[test]
    fn full_processors_make_processor_time_the_cause() {
        let text = text(&sample_results::results());
        assert!(text.contains("FAST serves 3.00 times as many requests as SLOW."), "{text}");
        assert!(text.contains("FAST 30 µs, SLOW 90 µs"), "{text}");
        assert!(text.contains("processors were full"), "{text}");
        assert!(text.contains("8 connections meet 4 workers"), "{text}");
        assert!(!text.contains("Compression"), "{text}");
    }

    #[test]
    fn compression_is_named_first() {
        let mut results = sample_results::results();
        each_sample(&mut results, "slow", |sample| {
            sample.encodings = [("gzip".to_owned(), 14)].into();
            sample.bytes = sample.requests * 99;
        });
        let views = cases(&results);
        assert!(case(&views[0])[0].causes[0].starts_with("Compression differs: FAST does not compress and sends 200"));
    }

    #[test]
    fn idle_processors_mean_waiting() {
        let mut results = sample_results::results();
        results.cases[0].wait_ms = 20.0;
        each_sample(&mut results, "slow", |sample| sample.cpu.machine_busy = 1.0);
        let text = text(&results);
        assert!(text.contains("SLOW left 75 % of the processors idle: its requests wait 20 ms on purpose"), "{text}");
        assert!(text.contains("cannot exceed 200"), "{text}");
    }

    #[test]
    fn the_jit_is_compared_with_the_same_case_without() {
        let mut results = sample_results::results();
        let mut with = results.cases[0].clone();
        (with.id, with.jit) = ("hello-jit".into(), true);
        results.cases.push(with);
        for round in 1..=4 {
            let fast = sample_results::sample(60_000.0 + f64::from(round), 15.0);
            results.runs.push(sample_results::run("fast", "hello-jit", round, fast));
            let slow = sample_results::sample(10_000.0 + f64::from(round), 90.0);
            results.runs.push(sample_results::run("slow", "hello-jit", round, slow));
        }
        let views = cases(&results);
        assert!(gains_by_jit(&views[0], &views).is_empty());
        let notes = gains_by_jit(&views[1], &views);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].starts_with("FAST: 2.00 times as many requests with the JIT as without; "), "{notes:?}");
        assert!(notes[1].contains("may be chance"), "{notes:?}");
        assert!(crate::report::markdown::page(&results).contains("JIT: tracing"));
    }

    #[test]
    fn overlapping_runs_are_called_chance() {
        let mut results = sample_results::results();
        results.runs.truncate(2);
        assert!(text(&results).contains("too few to exclude chance"));
    }
}
