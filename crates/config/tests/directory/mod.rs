//! A directory of settings, for tests of loading.
#![allow(dead_code, reason = "not every file of tests needs all of it")]

use std::collections::BTreeMap;
use std::path::Path;

use howdah_config::{ConfigErrors, Environment, Loaded, ServeFlags, load_in};

/// A directory with these files, to load settings in.
pub(crate) struct Site {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) flags: ServeFlags,
    pub(crate) uid: Option<u32>,
}

impl Site {
    pub(crate) fn new(toml: &str) -> Self {
        let site =
            Self { dir: tempfile::tempdir().unwrap(), env: BTreeMap::new(), flags: ServeFlags::default(), uid: None };
        site.write("howdah.toml", toml);
        site
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn load(&self) -> Result<Loaded, ConfigErrors> {
        let mut env = self.env.clone();
        env.insert("XDG_RUNTIME_DIR".to_owned(), self.path().to_str().unwrap().to_owned());
        load_in(
            &self.flags,
            &Environment { current_dir: self.path().to_path_buf(), env, uid: self.uid, ..Environment::default() },
        )
    }

    pub(crate) fn errors(&self) -> Vec<String> {
        self.load().map(|loaded| loaded.settings).unwrap_err().to_string().lines().map(str::to_owned).collect()
    }
}
