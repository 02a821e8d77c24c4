//! Prints PHP's information about itself, as `php-fpm -i` and `-m` do, for `howdah-fpm`.

use crate::php;
use howdah_transport::zygote_protocol::BootSpec;
use std::process::ExitCode;

/// Reads a boot order from standard input, starts PHP for it, and prints the information.
pub(crate) fn print(modules: bool) -> ExitCode {
    let started = match serde_json::from_reader::<_, BootSpec>(std::io::stdin().lock()) {
        Ok(spec) => php::start(&spec, Vec::new()),
        Err(error) => Err(format!("howdah-php: standard input is not a boot order ({error})")),
    };
    if let Err(why) = started {
        eprintln!("{why}");
        return ExitCode::FAILURE;
    }
    php::print(modules);
    php::shutdown();
    ExitCode::SUCCESS
}
