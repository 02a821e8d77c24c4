//! `howdah check`: the settings are those of `howdah serve`.

use super::{ROOT, ServeFlags, serve_flags};
use clap::ArgMatches;
use std::path::PathBuf;

/// The flags of `serve`. A file instead of the document root is the configuration, as for the commands of other servers.
pub(super) fn flags(matches: &ArgMatches) -> ServeFlags {
    let mut flags = serve_flags(matches);
    let file = flags.values.get(ROOT).and_then(|roots| roots.first()).map(PathBuf::from).filter(|path| path.is_file());
    if let Some(file) = file.filter(|_| flags.config.is_none()) {
        flags.values.remove(ROOT);
        flags.config = Some(file);
    }
    flags
}
