//! Parts of a request that WordPress's wp-config.php looks at. Debian's reads another file for each host.

use std::fs;
use std::path::Path;

const CONFIGURATIONS: &str = "/etc/wordpress";

/// The one host that WordPress in this document root is configured for, if it is Debian's and there is one file only.
#[must_use]
pub fn only_host(root: &Path) -> Option<String> {
    only_host_in(root, Path::new(CONFIGURATIONS))
}

/// `true` if the configuration takes a request for one by HTTPS when a proxy's header says so.
#[must_use]
pub fn believes_proxies(root: &Path) -> bool {
    let is_in = |dir: &Path| {
        fs::read_to_string(dir.join("wp-config.php")).is_ok_and(|text| text.contains("HTTP_X_FORWARDED_PROTO"))
    };
    // WordPress looks for it above its directory, too.
    root.ancestors().take(2).any(is_in)
}

pub(crate) fn only_host_in(root: &Path, configurations: &Path) -> Option<String> {
    let chooses = fs::read_to_string(root.join("wp-config.php")).ok()?.contains("'/etc/wordpress/config-'");
    let names = fs::read_dir(configurations).ok().filter(|_| chooses)?.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        Some(name.strip_prefix("config-")?.strip_suffix(".php")?.to_owned())
    });
    let mut names: Vec<_> = names.take(2).collect();
    // That of all other hosts says none.
    names.pop().filter(|name| names.is_empty() && name != "default" && name.bytes().all(is_of_host))
}

const fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-')
}
