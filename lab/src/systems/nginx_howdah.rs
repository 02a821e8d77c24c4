//! nginx in front of Howdah instead of PHP-FPM: the same nginx, the same socket, the same variables.

use anyhow::Result;

use super::howdah::{Build, Howdah, Mode};
use super::{Running, Script, Site, System, drop_to, missing, nginx, program};
use crate::record::{Role, SystemStatus};

/// Persistent connections per nginx worker: unlike in PHP-FPM they occupy no process.
const KEPT: u32 = 64;

/// The adapter.
#[derive(Debug)]
pub struct NginxHowdah(Howdah);

impl NginxHowdah {
    /// Creates the adapter for a mode, with the build that is found.
    pub fn new(mode: Mode) -> Self {
        Self(Howdah { mode, build: Build::Found })
    }
}

impl System for NginxHowdah {
    fn id(&self) -> String {
        format!("nginx-{}", self.0.id())
    }

    fn title(&self) -> String {
        format!("nginx + {}", self.0.title())
    }

    fn find(&self) -> SystemStatus {
        match (program("nginx"), self.0.find()) {
            (None, _) => missing("nginx", "apt-get install nginx-light"),
            (Some(_), SystemStatus::Found { mut versions }) => {
                let version = nginx::version().unwrap_or_else(|| "unknown version".into());
                versions.insert("nginx".into(), version);
                SystemStatus::Found { versions }
            }
            (Some(_), missing) => missing,
        }
    }

    fn tuning(&self) -> Vec<String> {
        let mut notes = nginx::tuning();
        notes.extend(self.0.tuning());
        notes.push(format!(
            "FastCGI keep-alive with {KEPT} connections for each of nginx's workers: in Howdah a kept connection is not a process"
        ));
        notes
    }

    fn script(&self) -> Script {
        self.0.script()
    }

    fn role(&self, process: &str) -> Role {
        self.0.role(process)
    }

    fn start(&self, site: &Site) -> Result<Running> {
        let socket = site.dir.join("howdah.sock");
        let group: Vec<(&str, &str)> = drop_to().into_iter().map(|group| ("listen_group", group)).collect();
        let mut running = self.0.listening(site, &format!("fastcgi:unix:{}", socket.display()), &group)?;
        let upstream = format!(
            "    upstream howdah {{\n        server unix:{};\n        keepalive {KEPT};\n    }}\n",
            socket.display()
        );
        let pass = "            fastcgi_keep_conn on;\n            fastcgi_pass howdah;\n";
        nginx::start(site, &mut running, &nginx::config(site, &upstream, &nginx::scripts(site, pass)))?;
        Ok(running)
    }
}
