//! A user-defined system, described by a small TOML file.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{Running, Site, System, found, missing, program, version_line};
use crate::cases::Case;
use crate::names::nearest;
use crate::record::{Role, SystemStatus};

/// The file's content.
#[derive(Debug, Clone, Deserialize)]
pub struct Description {
    /// Name on the command line.
    pub id: String,
    /// Display name.
    pub title: Option<String>,
    /// The command, word by word. `{address}`, `{host}`, `{port}`, `{root}`, `{workers}`, `{dir}` and `{script}` are
    /// replaced.
    pub command: Vec<String>,
    /// Environment, with the same replacements.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files to write into the private directory before the start, with the same replacements.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The address, if the command takes none.
    pub address: Option<SocketAddr>,
    /// A command that prints the version.
    #[serde(default)]
    pub version: Vec<String>,
    /// Names of processes that run no PHP.
    #[serde(default)]
    pub front: Vec<String>,
    /// Names of processes that only run PHP.
    #[serde(default)]
    pub php: Vec<String>,
    /// Cases that it can serve; all if absent.
    pub cases: Option<Vec<String>>,
    /// Paths that differ from the usual ones, by case.
    #[serde(default)]
    pub paths: BTreeMap<String, String>,
    /// Its configuration, with reasons.
    #[serde(default)]
    pub tuning: Vec<String>,
}

const KEYS: [&str; 12] =
    ["id", "title", "command", "env", "files", "address", "version", "front", "php", "cases", "paths", "tuning"];

/// The adapter.
#[derive(Debug)]
pub struct Custom {
    description: Description,
}

impl Custom {
    /// Reads the file; an unknown key is an error with the nearest known one.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let table: toml::Table = text.parse()?;
        let unknown: Vec<String> = table
            .keys()
            .filter(|key| !KEYS.contains(&key.as_str()))
            .map(|key| match nearest(key, KEYS) {
                Some(known) => format!("unknown key {key:?}, did you mean {known:?}?"),
                None => format!("unknown key {key:?}; known are {}", KEYS.join(", ")),
            })
            .collect();
        if !unknown.is_empty() {
            bail!(unknown.join("; "));
        }
        let description: Description = table.try_into()?;
        if description.command.is_empty() {
            bail!("command is empty");
        }
        Ok(Self { description })
    }

    fn fill(text: &str, site: &Site) -> String {
        text.replace("{address}", &site.address.to_string())
            .replace("{host}", &site.address.ip().to_string())
            .replace("{port}", &site.address.port().to_string())
            .replace("{root}", &site.root.display().to_string())
            .replace("{workers}", &site.workers.to_string())
            .replace("{dir}", &site.dir.display().to_string())
            .replace(
                "{script}",
                &site.worker_script.as_ref().map_or_else(String::new, |path| path.display().to_string()),
            )
    }
}

impl System for Custom {
    fn id(&self) -> String {
        self.description.id.clone()
    }

    fn title(&self) -> String {
        self.description.title.clone().unwrap_or_else(|| self.id())
    }

    fn find(&self) -> SystemStatus {
        let name = &self.description.command[0];
        let there = if name.contains('/') { Path::new(name).is_file() } else { program(name).is_some() };
        if !there {
            return missing(name.clone(), "its description names a program that is not on this machine");
        }
        let version = self.description.version.split_first().and_then(|(program, arguments)| {
            version_line(program, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
        });
        found([("version", version)])
    }

    fn tuning(&self) -> Vec<String> {
        self.description.tuning.clone()
    }

    fn refuses(&self, case: &Case) -> Option<String> {
        let cases = self.description.cases.as_ref()?;
        (!cases.contains(&case.id)).then(|| "its description does not list this case".into())
    }

    fn path(&self, case: &Case) -> String {
        self.description.paths.get(&case.id).unwrap_or(&case.path).clone()
    }

    fn fixed_address(&self) -> Option<SocketAddr> {
        self.description.address
    }

    fn role(&self, process: &str) -> Role {
        let named = |names: &[String]| names.iter().any(|name| process.starts_with(name.as_str()));
        if named(&self.description.front) {
            Role::Front
        } else if named(&self.description.php) {
            Role::Php
        } else {
            Role::Both
        }
    }

    fn start(&self, site: &Site) -> Result<Running> {
        let mut running = Running::default();
        for (name, content) in &self.description.files {
            if name.contains('/') || name.contains("..") {
                bail!("file {name:?} must be a plain name");
            }
            let path = site.write(name, &Self::fill(content, site))?;
            running.keep(&path)?;
        }
        let words: Vec<String> = self.description.command.iter().map(|word| Self::fill(word, site)).collect();
        let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let binary = program(&words[0]).unwrap_or_else(|| PathBuf::from(&words[0]));
        let mut launch = site.launch(&self.description.id, binary, &arguments);
        launch
            .environment
            .extend(self.description.env.iter().map(|(name, value)| (name.clone(), Self::fill(value, site))));
        running.spawn(&launch)?;
        Ok(running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_refused_with_the_nearest() {
        let error = Custom::parse("id = \"x\"\ncomand = [\"true\"]\n").unwrap_err().to_string();
        assert!(error.contains("\"comand\"") && error.contains("\"command\""), "{error}");
        assert!(Custom::parse("id = \"x\"\ncommand = []\n").is_err());
    }

    #[test]
    fn placeholders_are_filled() {
        let site = Site {
            app: crate::cases::App::Scripts,
            root: "/srv/www".into(),
            front_controller: false,
            worker_script: None,
            swoole_script: None,
            async_script: None,
            boot_file: None,
            recipe: None,
            front_worker: None,
            path: "/".into(),
            workers: 4,
            processes: None,
            pool: Default::default(),
            setup: Default::default(),
            jit: false,
            connections: 8,
            certificate: None,
            protocol: crate::cases::Protocol::Http1,
            upstream: None,
            address: "127.0.0.1:8081".parse().unwrap(),
            dir: "/tmp/x".into(),
        };
        let filled = Custom::fill("{address} {host} {port} {root} {workers} {dir}", &site);
        assert_eq!(filled, "127.0.0.1:8081 127.0.0.1 8081 /srv/www 4 /tmp/x");
    }
}
