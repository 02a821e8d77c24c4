//! The single list of servers that a scenario runs on: Howdah in each of its modes, and the reference.
//!
//! A scenario is written once. `scenario!` is for behaviour of the server that does not depend on the mode;
//! `script_scenario!` is for the input and output of scripts, and runs in every mode from the same scripts. Excluding a
//! mode requires a written reason. To add a mode, add a variant of `Mode` here, its settings and files, and a line in
//! `scenario_in!`.

/// A mode of Howdah. The harness knows the mode in which a scenario runs (`Site::mode`): only the harness writes the
/// setting `mode` of the default pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A fresh script for each request.
    Classic,
    /// A script that stays booted and loops over requests.
    Worker,
    /// An application that boots once and is restored to that state after each request.
    Snapshot,
    /// Up to a hundred requests at once in each process.
    Async,
}

/// The server that a scenario runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Howdah(Mode),
    /// nginx and PHP-FPM as Debian configures them: the environment that scripts expect, so the reference for
    /// expectations.
    Reference,
}

impl From<Mode> for Backend {
    fn from(mode: Mode) -> Self {
        Self::Howdah(mode)
    }
}

/// Determines how requests reach a scenario's scripts (`Setup::php`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scripts {
    /// Scripts written for classic mode. Other modes run them too: snapshot mode after a boot file of the harness,
    /// worker and async mode as closures that are compiled once and called in one loop.
    Wrapped,
    /// The scenario provides the file that its mode boots, and its scripts stay unchanged.
    AsTheyAre,
}

/// Runs a scenario's scripts. It names no superglobal itself, so that each is created only if a script needs it.
const WORKER: &str = include_str!("php/worker.php");

/// Gives the snapshot some content, which must not be visible in any scenario.
const BOOT: &str = include_str!("php/boot.php");

impl Mode {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Worker => "worker",
            Self::Snapshot => "snapshot",
            Self::Async => "async",
        }
    }

    /// True if this run of the tests includes the mode: `HOWDAH_TEST_MODES=classic,worker` excludes the others.
    pub(crate) fn is_selected(self) -> bool {
        std::env::var("HOWDAH_TEST_MODES").map_or(true, |names| names.split(',').any(|name| name == self.name()))
    }

    /// True if the harness wraps scripts in closures.
    fn loops(self) -> bool {
        matches!(self, Self::Worker | Self::Async)
    }
}

impl Backend {
    #[must_use]
    pub fn mode(self) -> Option<Mode> {
        match self {
            Self::Howdah(mode) => Some(mode),
            Self::Reference => None,
        }
    }
}

impl Scripts {
    /// Lines of `howdah.toml` that select the mode and the file that it boots.
    pub(crate) fn settings(self, mode: Mode) -> Vec<String> {
        let boots = match (self, mode) {
            (Self::Wrapped, Mode::Worker | Mode::Async) => Some("script = \"worker.php\""),
            (Self::Wrapped, Mode::Snapshot) => Some("boot = \"boot.php\""),
            (Self::Wrapped, Mode::Classic) | (Self::AsTheyAre, _) => None,
        };
        let mode = (mode != Mode::Classic).then(|| format!("mode = \"{}\"", mode.name()));
        mode.into_iter().chain(boots.map(str::to_owned)).collect()
    }

    /// Files of the harness that the mode needs, by path from the document root.
    pub(crate) fn files(self, backend: Backend) -> &'static [(&'static str, &'static str)] {
        match (self, backend.mode()) {
            (Self::Wrapped, Some(Mode::Worker | Mode::Async)) => &[("../run/worker.php", WORKER)],
            (Self::Wrapped, Some(Mode::Snapshot)) => &[("../run/boot.php", BOOT)],
            _ => &[],
        }
    }

    /// A scenario's script as this mode runs it; its first line is the second line of the file in every mode.
    pub(crate) fn script(self, backend: Backend, code: &str) -> String {
        if self == Self::Wrapped && backend.mode().is_some_and(Mode::loops) {
            format!("<?php return function () {{\n{code}\n}};\n")
        } else {
            format!("<?php\n{code}\n")
        }
    }
}

/// One test of a scenario: in this mode, or none if the mode is excluded.
#[macro_export]
#[doc(hidden)]
macro_rules! scenario_in {
    (no $mode:ident, $setup:expr, $body:expr) => {};
    (yes classic, $setup:expr, $body:expr) => {
        #[test]
        fn classic() {
            $crate::run($crate::Mode::Classic, $setup, $body);
        }
    };
    (yes worker, $setup:expr, $body:expr) => {
        #[test]
        fn worker() {
            $crate::run($crate::Mode::Worker, $setup, $body);
        }
    };
    (yes snapshot, $setup:expr, $body:expr) => {
        #[test]
        fn snapshot() {
            $crate::run($crate::Mode::Snapshot, $setup, $body);
        }
    };
    (yes async_mode, $setup:expr, $body:expr) => {
        #[test]
        fn async_mode() {
            $crate::run($crate::Mode::Async, $setup, $body);
        }
    };
    (yes reference, $setup:expr, $body:expr) => {
        #[test]
        fn reference() {
            $crate::run($crate::Backend::Reference, $setup, $body);
        }
    };
}

/// Declares a scenario about the server that does not depend on the mode: `scenario!(name, setup, body)` runs in
/// classic mode and on the reference. `scenario!(name, howdah_only = "reason", setup, body)` excludes the reference,
/// for behaviour that nginx and PHP-FPM do not have or configure elsewhere.
#[macro_export]
macro_rules! scenario {
    ($name:ident, howdah_only = $why:literal, $setup:expr, $body:expr $(,)?) => {
        $crate::script_scenario!(@ yes no no no no, $name, $setup, $body);
    };
    ($name:ident, $setup:expr, $body:expr $(,)?) => {
        $crate::script_scenario!(@ yes no no no yes, $name, $setup, $body);
    };
}

/// Declares a scenario about the input and output of scripts: it runs in every mode and on the reference, from the same
/// scripts. `howdah_only = "reason"`, `not_worker = "reason"`, `not_snapshot = "reason"` and `not_async = "reason"`
/// after the name exclude one; scenarios unsuitable for worker mode are unsuitable for async mode too, which runs the
/// same scripts.
#[macro_export]
macro_rules! script_scenario {
    (@ $c:ident $w:ident $s:ident $a:ident $r:ident, $name:ident, howdah_only = $why:literal, $($rest:tt)*) => {
        $crate::script_scenario!(@ $c $w $s $a no, $name, $($rest)*);
    };
    (@ $c:ident $w:ident $s:ident $a:ident $r:ident, $name:ident, not_worker = $why:literal, $($rest:tt)*) => {
        $crate::script_scenario!(@ $c no $s no $r, $name, $($rest)*);
    };
    (@ $c:ident $w:ident $s:ident $a:ident $r:ident, $name:ident, not_snapshot = $why:literal, $($rest:tt)*) => {
        $crate::script_scenario!(@ $c $w no $a $r, $name, $($rest)*);
    };
    (@ $c:ident $w:ident $s:ident $a:ident $r:ident, $name:ident, not_async = $why:literal, $($rest:tt)*) => {
        $crate::script_scenario!(@ $c $w $s no $r, $name, $($rest)*);
    };
    (@ $c:ident $w:ident $s:ident $a:ident $r:ident, $name:ident, $setup:expr, $body:expr $(,)?) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            $crate::scenario_in!($c classic, $setup, $body);
            $crate::scenario_in!($w worker, $setup, $body);
            $crate::scenario_in!($s snapshot, $setup, $body);
            $crate::scenario_in!($a async_mode, $setup, $body);
            $crate::scenario_in!($r reference, $setup, $body);
        }
    };
    ($name:ident, $($rest:tt)*) => {
        $crate::script_scenario!(@ yes yes yes yes yes, $name, $($rest)*);
    };
}

/// Declares a scenario of snapshot mode that runs with each method to find written pages: the best one here, `pagemap`,
/// which works everywhere, and `fork`, which needs no search. All must behave the same.
#[macro_export]
macro_rules! in_each_way {
    ($name:ident, $setup:expr, $body:expr $(,)?) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            #[test]
            fn best() {
                $crate::run($crate::Mode::Snapshot, $setup, $body);
            }

            #[test]
            fn pagemap() {
                let setup = |s: $crate::Setup| ($setup)(s.env("HOWDAH_SNAPSHOT_PAGES", "pagemap"));
                $crate::run($crate::Mode::Snapshot, setup, $body);
            }

            #[test]
            fn fork() {
                let setup = |s: $crate::Setup| ($setup)(s.env("HOWDAH_SNAPSHOT_PAGES", "fork"));
                $crate::run($crate::Mode::Snapshot, setup, $body);
            }
        }
    };
}
