//! Warnings about roots and scripts that this process sees, and the service with these settings does not, because its
//! systemd unit hides them.

use std::path::{Path, PathBuf};

use crate::hidden::{HOMES, REMEDY};
use crate::load::Loaded;

/// Directories with units, those with precedence first.
const UNIT_DIRS: &[&str] = &[
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

impl Loaded {
    /// Warnings about roots and scripts that exist for this process, but not for the service that has these settings.
    pub fn hidden_from_service(&self) -> Vec<String> {
        let Some(unit) = self.settings.config_file.as_deref().and_then(|file| Unit::of(file, UNIT_DIRS)) else {
            return Vec::new();
        };
        let sites = self.settings.all_sites();
        let roots = sites.iter().map(|site| ("root", site.root.as_path()));
        let scripts = self.settings.pools.iter().flat_map(|pool| [("script", &pool.script), ("boot", &pool.boot)]);
        let scripts = scripts.filter_map(|(name, path)| Some((name, path.as_deref()?)));
        let mut found: Vec<String> = roots
            .chain(scripts)
            .filter(|(_, path)| path.exists())
            .filter_map(|(name, path)| {
                // A link may lead into a home.
                let real = path.canonicalize().ok()?;
                let hidden_by = unit.hides(&real)?;
                Some(format!(
                    "{name} {}: {} hides it from the service ({hidden_by}); {REMEDY}",
                    path.display(),
                    unit.name
                ))
            })
            .collect();
        found.dedup();
        found
    }
}

/// The settings of a unit that decide which directories its service sees.
struct Unit {
    name: String,
    /// The last `ProtectHome=` and its file, if that hides homes.
    protect_home: Option<String>,
    /// Targets of `BindPaths=` and `BindReadOnlyPaths=`, which are visible in any case.
    bound: Vec<PathBuf>,
}

impl Unit {
    /// The unit that starts a server with this settings file.
    fn of(config: &Path, dirs: &[&str]) -> Option<Self> {
        let instance = config.file_stem()?.to_str()?;
        let candidates = [("howdah.service", String::new()), ("howdah@.service", format!("howdah@{instance}.service"))];
        candidates.into_iter().find_map(|(file, started)| {
            let paths = dirs.iter().map(|dir| Path::new(dir).join(file));
            let path = paths.into_iter().find(|path| path.is_file())?;
            let text = std::fs::read_to_string(&path).ok()?;
            let has_config = |line: &str| {
                let mut words = line.split_whitespace().skip_while(|word| *word != "--config").skip(1);
                words.next().is_some_and(|word| Path::new(&word.replace("%i", instance)) == config)
            };
            if !text.lines().any(|line| line.starts_with("ExecStart=") && has_config(line)) {
                return None;
            }
            let name = if started.is_empty() { file.to_owned() } else { started };
            let mut unit = Self { name, protect_home: None, bound: Vec::new() };
            unit.read(&path, &text);
            unit.drop_ins(file, dirs).iter().for_each(|path| {
                unit.read(path, &std::fs::read_to_string(path).unwrap_or_default());
            });
            Some(unit)
        })
    }

    /// Drop-ins in the order in which they apply. Of equal file names, the directory with precedence counts.
    fn drop_ins(&self, file: &str, dirs: &[&str]) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = Vec::new();
        for dir in dirs.iter().flat_map(|dir| [file, &self.name].map(|unit| Path::new(dir).join(format!("{unit}.d")))) {
            let files = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
            for path in files.filter(|path| path.extension().is_some_and(|ending| ending == "conf")) {
                if !found.iter().any(|known| known.file_name() == path.file_name()) {
                    found.push(path);
                }
            }
        }
        found.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
        found
    }

    fn read(&mut self, path: &Path, text: &str) {
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            match key.trim() {
                "ProtectHome" => {
                    let hides = !["no", "n", "false", "f", "off", "0", "read-only"].contains(&value.trim());
                    self.protect_home = hides.then(|| format!("ProtectHome={} in {}", value.trim(), path.display()));
                }
                "BindPaths" | "BindReadOnlyPaths" => self.bound.extend(value.split_whitespace().map(|bound| {
                    let bound = bound.trim_start_matches(['-', '+']);
                    PathBuf::from(bound.split(':').nth(1).unwrap_or(bound))
                })),
                _ => {}
            }
        }
    }

    /// The setting that hides this path.
    fn hides(&self, path: &Path) -> Option<&str> {
        let is_in_home = HOMES.iter().any(|home| path.starts_with(home));
        let is_bound = self.bound.iter().any(|bound| path.starts_with(bound));
        self.protect_home.as_deref().filter(|_| is_in_home && !is_bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_last_drop_in_decides_and_bound_paths_are_visible() {
        let dir = tempfile::tempdir().unwrap();
        let (own, packaged) = (dir.path().join("etc"), dir.path().join("lib"));
        let dirs = [own.to_str().unwrap(), packaged.to_str().unwrap()];
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let exec = "[Service]\nExecStart=/usr/bin/howdah serve --config /etc/howdah";
        write(packaged.join("howdah.service"), &format!("{exec}/howdah.toml\nProtectHome=yes\n"));
        write(packaged.join("howdah@.service"), &format!("{exec}/%i.toml\nProtectHome=tmpfs\n"));
        let hidden = |config: &str, path: &str| {
            let unit = Unit::of(Path::new(config), &dirs)?;
            unit.hides(Path::new(path)).map(|by| (unit.name.clone(), by.split(' ').next().unwrap().to_owned()))
        };
        let (main, shop) = ("/etc/howdah/howdah.toml", "/etc/howdah/shop.toml");
        let by = |unit: &str, setting: &str| Some((unit.to_owned(), setting.to_owned()));
        assert_eq!(hidden(main, "/home/ann/app"), by("howdah.service", "ProtectHome=yes"));
        assert_eq!(hidden(shop, "/root/app"), by("howdah@shop.service", "ProtectHome=tmpfs"));
        assert_eq!(hidden(main, "/srv/app"), None);
        assert_eq!(hidden("/srv/howdah.toml", "/home/ann/app"), None, "no unit starts a server with it");
        write(own.join("howdah@shop.service.d/a.conf"), "[Service]\nBindReadOnlyPaths=/srv/x:/home/ann\n");
        assert_eq!(hidden(shop, "/home/ann/app"), None);
        assert_eq!(hidden(shop, "/home/bob/app"), by("howdah@shop.service", "ProtectHome=tmpfs"));
        write(own.join("howdah.service.d/b.conf"), "[Service]\nProtectHome=read-only\n");
        assert_eq!(hidden(main, "/home/ann/app"), None);
        write(packaged.join("howdah.service.d/c.conf"), "[Service]\nProtectHome=true\n");
        assert_eq!(hidden(main, "/home/ann/app"), by("howdah.service", "ProtectHome=true"));
    }
}
