//! The part of libtest's command line that this runner understands.

use std::ffi::OsString;

/// Selection of tests, and options for running them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    filters: Vec<String>,
    skips: Vec<String>,
    exact: bool,
    /// Output goes directly to the terminal, and tests run one after the other.
    pub(crate) nocapture: bool,
    /// Maximum number of tests at once; `None` leaves it to the load.
    pub(crate) threads: Option<usize>,
}

impl Arguments {
    /// `None` if this runner does not know an argument.
    pub(crate) fn parse(given: &[OsString]) -> Option<Self> {
        let mut arguments = Self::default();
        let mut given = given.iter();
        while let Some(argument) = given.next() {
            match argument.to_str()? {
                "--skip" => arguments.skips.push(given.next()?.to_str()?.to_owned()),
                "--test-threads" => arguments.threads = Some(given.next()?.to_str()?.parse().ok().filter(|n| *n > 0)?),
                "--exact" => arguments.exact = true,
                "--nocapture" | "--no-capture" => arguments.nocapture = true,
                "-q" | "--quiet" => {}
                option if option.starts_with('-') => return None,
                filter => arguments.filters.push(filter.to_owned()),
            }
        }
        Some(arguments)
    }

    /// True if the test with this name is to run.
    pub(crate) fn select(&self, name: &str) -> bool {
        let matches = |pattern: &String| if self.exact { name == pattern } else { name.contains(pattern.as_str()) };
        (self.filters.is_empty() || self.filters.iter().any(matches)) && !self.skips.iter().any(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use std::ffi::OsString;

    fn parse(words: &[&str]) -> Option<Arguments> {
        Arguments::parse(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn filters_select_and_skips_exclude() {
        let arguments = parse(&["--test-threads", "4", "server::", "--skip", "::reference"]).unwrap_or_default();
        assert_eq!(arguments.threads, Some(4));
        assert!(arguments.select("server::output::classic"));
        assert!(!arguments.select("server::output::reference") && !arguments.select("worker::loop"));
        let exact = parse(&["--exact", "a::b"]).unwrap_or_default();
        assert!(exact.select("a::b") && !exact.select("a::b::c"));
    }

    #[test]
    fn unknown_arguments_are_left_to_libtest() {
        assert_eq!(parse(&["--list"]), None);
        assert_eq!(parse(&["--test-threads", "0"]), None);
    }
}
