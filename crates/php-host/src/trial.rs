//! Starts PHP once with a pool's settings, for `howdah check`. PHP's messages go to standard error, its limits to standard
//! output. No application code runs; preloading is disabled because it is part of the application.

use crate::php;
use howdah_transport::CText;
use howdah_transport::zygote_protocol::BootSpec;
use std::process::ExitCode;

/// Overrides all other settings: PHP's messages go to standard error, whatever log file is set.
const SETTINGS: &str = "opcache.preload=\nerror_log=\nlog_errors=1\ndisplay_startup_errors=0\n";

/// Settings whose values are printed, because the server's own limits are compared with them.
const LIMITS: &[&str] = &["post_max_size", "upload_max_filesize", "max_execution_time"];

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
    for (name, value) in LIMITS.iter().filter_map(|name| Some((name, php::setting(name)?))) {
        println!("{name}={value}");
    }
    php::shutdown();
    ExitCode::SUCCESS
}
