//! Starts PHP once with a pool's settings, for `howdah check`. PHP's messages go to standard error. No application code
//! runs; preloading is disabled because it is part of the application.

use crate::php;
use howdah_transport::CText;
use howdah_transport::zygote_protocol::BootSpec;
use std::process::ExitCode;

/// Overrides all other settings: PHP's messages go to standard error, whatever log file is set.
const SETTINGS: &str = "opcache.preload=\nerror_log=\nlog_errors=1\ndisplay_startup_errors=0\n";

/// Reads a boot order from standard input and starts PHP for it. `names`: settings of the pool, one per line.
pub(crate) fn run(names: &str) -> ExitCode {
    let mut spec: BootSpec = match serde_json::from_reader(std::io::stdin().lock()) {
        Ok(spec) => spec,
        Err(error) => {
            eprintln!("howdah-php: standard input is not a boot order ({error})");
            return ExitCode::from(2);
        }
    };
    let text = format!("{}{SETTINGS}", spec.worker.ini_text.as_str());
    let started = CText::new(&text).map_err(|error| error.to_string()).and_then(|text| {
        spec.worker.ini_text = text;
        php::start(&spec, Vec::new())
    });
    if let Err(why) = started {
        eprintln!("{why}");
        return ExitCode::FAILURE;
    }
    let loads = |name: &str| name == "extension" || name == "zend_extension";
    for name in names.lines().filter(|name| !loads(name) && php::setting(name).is_none()) {
        eprintln!("PHP has no setting \"{name}\": is it misspelt, or its extension missing?");
    }
    php::shutdown();
    ExitCode::SUCCESS
}
