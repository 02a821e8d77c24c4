//! Lines about each test, and the report at the end of a run, whose last lines are libtest's.

use crate::test::Outcome;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Tests in the list of the slowest ones.
const SLOWEST: usize = 20;

/// Lines of a failed test's output that are printed; the whole output is in a file.
const OUTPUT_LINES: usize = 25;

#[derive(Debug)]
pub(crate) struct Report {
    expected: usize,
    outcomes: Vec<Outcome>,
    /// Names of tests that failed first and passed when they were run again.
    flaky: Vec<String>,
}

impl Report {
    pub(crate) fn new(expected: usize) -> Self {
        Self { expected, outcomes: Vec::with_capacity(expected), flaky: Vec::new() }
    }

    /// Prints the test's line, and the beginning of a failure, and keeps the outcome.
    pub(crate) fn add(&mut self, outcome: Outcome) {
        let word = if outcome.passed { "ok" } else { "FAILED" };
        println!("test {} ... {word} ({:.2} s)", outcome.name, outcome.wall.as_secs_f64());
        if !outcome.passed {
            println!("{}", lines(&outcome.output, OUTPUT_LINES));
        }
        self.outcomes.push(outcome);
    }

    /// The outcome of running a failed test again.
    pub(crate) fn again(&mut self, name: &str, passed: bool) {
        println!("test {name} ... {} when run again", if passed { "ok" } else { "FAILED" });
        if passed {
            self.flaky.push(name.to_owned());
        }
    }

    /// The tests that have failed and are not flaky.
    pub(crate) fn failed(&self) -> Vec<Outcome> {
        self.outcomes.iter().filter(|it| !it.passed && !self.flaky.contains(&it.name)).cloned().collect()
    }

    /// Prints the end of the run, and leaves outputs of failed tests in `directory` and a list of flaky ones next to it.
    pub(crate) fn print(&self, elapsed: Duration, directory: &Path) -> io::Result<()> {
        if self.expected > SLOWEST {
            self.print_times();
        }
        let failed = self.failed();
        if !failed.is_empty() {
            println!("\nfailures:\n");
            for outcome in &failed {
                println!("---- {} stdout ----\n{}", outcome.name, outcome.output);
                fs::write(directory.join(format!("{}.failed", outcome.name.replace("::", "."))), &outcome.output)?;
            }
            println!("\nfailures:");
            failed.iter().for_each(|outcome| println!("    {}", outcome.name));
        }
        if !self.flaky.is_empty() {
            let mut file = File::options().create(true).append(true).open(directory.with_file_name("flaky.txt"))?;
            println!("\nflaky: {} (failed once, passed when run again alone)", self.flaky.len());
            for outcome in self.outcomes.iter().filter(|outcome| self.flaky.contains(&outcome.name)) {
                println!("    {}\n{}", outcome.name, lines(&outcome.output, OUTPUT_LINES));
                writeln!(file, "{}\n{}\n", outcome.name, outcome.output)?;
            }
        }
        let passed = self.outcomes.len() - failed.len();
        let word = if failed.is_empty() { "ok" } else { "FAILED" };
        println!(
            "\ntest result: {word}. {passed} passed; {} failed; 0 ignored; 0 measured; 0 filtered out; finished in {:.2}s\n",
            failed.len(),
            elapsed.as_secs_f64()
        );
        Ok(())
    }

    fn print_times(&self) {
        let mut slowest: Vec<&Outcome> = self.outcomes.iter().collect();
        slowest.sort_by_key(|outcome| std::cmp::Reverse(outcome.wall));
        println!("\nslowest tests (seconds, processor time):");
        for outcome in slowest.iter().take(SLOWEST) {
            let (wall, processor) = (outcome.wall.as_secs_f64(), outcome.processor.as_secs_f64());
            println!("    {wall:8.2} {processor:8.2}  {}", outcome.name);
        }
        println!("\nareas (tests, seconds, processor time):");
        for (area, (count, wall, processor)) in self.areas() {
            println!("    {count:5} {:8.1} {:8.1}  {area}", wall.as_secs_f64(), processor.as_secs_f64());
        }
    }

    /// Sums by area: the folder and the file of a test.
    fn areas(&self) -> BTreeMap<String, (usize, Duration, Duration)> {
        let mut areas: BTreeMap<String, (usize, Duration, Duration)> = BTreeMap::new();
        for outcome in &self.outcomes {
            let parts: Vec<&str> = outcome.name.split("::").collect();
            let area = parts.get(..2.min(parts.len().saturating_sub(1))).unwrap_or_default().join("::");
            for area in [area, "all".to_owned()] {
                let sum = areas.entry(area).or_default();
                *sum = (sum.0 + 1, sum.1 + outcome.wall, sum.2 + outcome.processor);
            }
        }
        areas
    }

    /// Writes the times of all tests, for the order of the next run: `NAME MILLISECONDS PROCESSOR_MILLISECONDS`.
    pub(crate) fn write_times(&self, path: &Path, before: BTreeMap<String, Duration>) -> io::Result<()> {
        let mut lines: BTreeMap<String, String> =
            before.into_iter().map(|(name, time)| (name, format!("{} 0", time.as_millis()))).collect();
        for outcome in &self.outcomes {
            let times = format!("{} {}", outcome.wall.as_millis(), outcome.processor.as_millis());
            lines.insert(outcome.name.clone(), times);
        }
        let text: String = lines.iter().map(|(name, times)| format!("{name} {times}\n")).collect();
        fs::write(path, text)
    }
}

/// The times of the last run, if there was one.
pub(crate) fn read_times(path: &Path) -> BTreeMap<String, Duration> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let time = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), Duration::from_millis(words.next()?.parse().ok()?)))
    };
    text.lines().filter_map(time).collect()
}

/// The lines of a test's output that explain its failure: those from the first panic on, or the last ones.
fn lines(output: &str, most: usize) -> String {
    let all: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let first = all.iter().position(|line| line.contains("panicked at") || line.contains("exceeded its time limit"));
    let from = first.unwrap_or(all.len().saturating_sub(most));
    all.iter().skip(from).take(most).map(|line| format!("        {line}\n")).collect()
}
