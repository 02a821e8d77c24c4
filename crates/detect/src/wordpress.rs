//! Properties of WordPress's wp-config.php that depend on the request. Debian's reads a separate file for each host.

use std::fs;
use std::path::Path;

const CONFIGURATIONS: &str = "/etc/wordpress";

/// Returns the only host that WordPress in this document root is configured for, if it is Debian's and has a single
/// host file.
pub fn only_host(root: &Path) -> Option<String> {
    only_host_in(root, Path::new(CONFIGURATIONS))
}

/// `true` if the configuration treats a request as HTTPS when a proxy's header says so.
pub fn believes_proxies(root: &Path) -> bool {
    let is_in = |dir: &Path| {
        fs::read_to_string(dir.join("wp-config.php")).is_ok_and(|text| text.contains("HTTP_X_FORWARDED_PROTO"))
    };
    // WordPress also looks in the parent directory.
    root.ancestors().take(2).any(is_in)
}

pub(crate) fn only_host_in(root: &Path, configurations: &Path) -> Option<String> {
    let chooses = fs::read_to_string(root.join("wp-config.php")).ok()?.contains("'/etc/wordpress/config-'");
    let names = fs::read_dir(configurations).ok().filter(|_| chooses)?.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        Some(name.strip_prefix("config-")?.strip_suffix(".php")?.to_owned())
    });
    let mut names: Vec<_> = names.take(2).collect();
    // The file for all other hosts (`default`) names no host.
    names.pop().filter(|name| names.is_empty() && name != "default" && name.bytes().all(is_of_host))
}

const fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-')
}
