//! The one list of what a scenario runs on: Howdah in each of its modes, and the reference.
//!
//! A scenario is written once. `scenario!` is for what the server does whatever runs behind it; `script_scenario!` is for
//! what a script sees and sends, and runs in every mode from the same scripts. A mode that is to be left out needs a
//! written reason. A new mode is a variant of `Kind` here, its settings and files, and a line in `scenario_in!`.

/// Which server runs a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Howdah in classic mode.
    Classic,
    /// Howdah in worker mode: the scenario's scripts are closures, compiled once and called in one loop.
    Worker,
    /// Howdah in snapshot mode: the scenario's scripts as they are, behind a boot file.
    Snapshot,
    /// Howdah in async mode: the scripts of worker mode, up to a hundred requests at once in each process.
    Async,
    /// nginx and PHP-FPM as Debian configures them: what scripts are used to, so the measure of the expectations.
    Reference,
}

/// Runs the scripts of a scenario. It names no superglobal itself, so that each is made only where a script needs it.
const WORKER: &str = r"<?php
$root = dirname(__DIR__) . '/root';
require $root . '/gate.php';
$scripts = [];
// The file that a path means, as the front finds it in classic mode.
$find = function (string $path) use ($root): ?string {
    for ($part = $path; $part !== '' && $part !== '.'; $part = dirname($part)) {
        foreach ([$part, rtrim($part, '/') . '/index.php'] as $name) {
            if (str_ends_with($name, '.php') && is_file($root . $name)) {
                return $root . $name;
            }
        }
        if ($part === '/') {
            break;
        }
    }
    return null;
};
$handle = function () use (&$scripts, $find) {
    $path = rawurldecode(explode('?', preg_replace('~^https?://[^/]*~', '', getenv('REQUEST_URI')))[0]);
    $file = $find($path);
    if ($file === null) {
        http_response_code(404);
        return;
    }
    chdir(dirname($file));
    $script = $scripts[$file] ?? require $file;
    if ($script instanceof Closure) {
        $scripts[$file] = $script;
        $script();
    }
};
while (frankenphp_handle_request($handle)) {
}
";

/// Something for the snapshot to hold; what it leaves must not show in any scenario.
const BOOT: &str = "<?php\nfinal class BootedOnce { public static int $seen = 0; }\nBootedOnce::$seen++;\n";

impl Kind {
    /// The settings that choose the mode: keys of `howdah.toml` and their values.
    pub(crate) fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Classic | Self::Reference => &[],
            Self::Worker => &[("mode", "\"worker\""), ("script", "\"worker.php\"")],
            Self::Snapshot => &[("mode", "\"snapshot\""), ("boot", "\"boot.php\"")],
            Self::Async => &[("mode", "\"async\""), ("script", "\"worker.php\"")],
        }
    }

    /// Files that the mode needs, by their path from the document root.
    pub(crate) fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Classic | Self::Reference => &[],
            Self::Worker | Self::Async => &[("../run/worker.php", WORKER)],
            Self::Snapshot => &[("../run/boot.php", BOOT)],
        }
    }

    /// A scenario's script as this mode runs it; its first line is the second one of the file in each.
    pub(crate) fn script(self, code: &str) -> String {
        match self {
            Self::Worker | Self::Async => format!("<?php return function () {{\n{code}\n}};\n"),
            _ => format!("<?php\n{code}\n"),
        }
    }
}

/// One test of a scenario: in this mode, or none where the mode is left out.
#[macro_export]
#[doc(hidden)]
macro_rules! scenario_in {
    (no $mode:ident, $setup:expr, $body:expr) => {};
    (yes classic, $setup:expr, $body:expr) => {
        #[test]
        fn classic() {
            $crate::run($crate::Kind::Classic, $setup, $body);
        }
    };
    (yes worker, $setup:expr, $body:expr) => {
        #[test]
        fn worker() {
            $crate::run($crate::Kind::Worker, $setup, $body);
        }
    };
    (yes snapshot, $setup:expr, $body:expr) => {
        #[test]
        fn snapshot() {
            $crate::run($crate::Kind::Snapshot, $setup, $body);
        }
    };
    (yes async_mode, $setup:expr, $body:expr) => {
        #[test]
        fn async_mode() {
            $crate::run($crate::Kind::Async, $setup, $body);
        }
    };
    (yes reference, $setup:expr, $body:expr) => {
        #[test]
        fn reference() {
            $crate::run($crate::Kind::Reference, $setup, $body);
        }
    };
}

/// Declares a scenario about the server, whatever mode is behind it: `scenario!(name, setup, body)` runs in classic mode
/// and on the reference. `scenario!(name, howdah_only = "reason", setup, body)` leaves out the reference, for
/// behaviour that nginx and PHP-FPM do not have or configure elsewhere.
#[macro_export]
macro_rules! scenario {
    ($name:ident, howdah_only = $why:literal, $setup:expr, $body:expr $(,)?) => {
        $crate::script_scenario!(@ yes no no no no, $name, $setup, $body);
    };
    ($name:ident, $setup:expr, $body:expr $(,)?) => {
        $crate::script_scenario!(@ yes no no no yes, $name, $setup, $body);
    };
}

/// Declares a scenario about what a script sees and sends: it runs in every mode and on the reference, from the same
/// scripts. `howdah_only = "reason"`, `not_worker = "reason"`, `not_snapshot = "reason"` and `not_async = "reason"`
/// behind the name leave one out; what does not fit worker mode does not fit async mode, which runs the same scripts.
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

/// Declares a scenario of snapshot mode that runs with the way to find written pages that is best here, with the one that
/// works everywhere, and with the one that does without: all must behave the same.
#[macro_export]
macro_rules! in_each_way {
    ($name:ident, $setup:expr, $body:expr $(,)?) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            #[test]
            fn best() {
                $crate::run($crate::Kind::Classic, $setup, $body);
            }

            #[test]
            fn pagemap() {
                let setup = |s: $crate::Setup| ($setup)(s.env("HOWDAH_SNAPSHOT_PAGES", "pagemap"));
                $crate::run($crate::Kind::Classic, setup, $body);
            }

            #[test]
            fn fork() {
                let setup = |s: $crate::Setup| ($setup)(s.env("HOWDAH_SNAPSHOT_PAGES", "fork"));
                $crate::run($crate::Kind::Classic, setup, $body);
            }
        }
    };
}
