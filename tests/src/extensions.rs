//! PHP extensions that are loaded only for a scenario: `make test` unpacks their packages without installing them.

use crate::setup::Setup;
use std::path::{Path, PathBuf};

/// Path of the extension; `None` if PHP loads it anyway.
fn file(name: &str) -> Option<PathBuf> {
    let configured = std::fs::read_dir("/etc/php").into_iter().flatten().flatten().any(|version| {
        let list = std::fs::read_dir(version.path().join("embed/conf.d")).into_iter().flatten().flatten();
        list.into_iter().any(|file| file.file_name().to_string_lossy().contains(name))
    });
    let directory = std::env::var_os("HOWDAH_EXTENSIONS").map(PathBuf::from);
    (!configured).then(|| directory.unwrap_or_else(|| Path::new("/usr/lib/php").to_owned()).join(format!("{name}.so")))
}

impl Setup {
    /// Loads an extension with PHP's setting `key`. Skips the scenario on a machine without the extension.
    #[must_use]
    pub fn extension(self, name: &str, key: &str) -> Self {
        match file(name) {
            None => self,
            Some(path) if path.exists() => self.ini(key, &path.display().to_string()),
            Some(_) => self.lacks(name, "`make test` unpacks its package where the distribution has one"),
        }
    }

    /// Loads the debugger and disables the JIT compiler, since PHP warns if both are enabled.
    #[must_use]
    pub fn xdebug(self) -> Self {
        self.extension("xdebug", "zend_extension").ini("opcache.jit", "disable")
    }
}
