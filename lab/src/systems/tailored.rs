//! A system with an exact number of processes or threads, where a published comparison gave each system a different
//! one.

use std::net::SocketAddr;

use anyhow::Result;

use super::{Running, Script, Site, System};
use crate::cases::{Case, Protocol};
use crate::record::{Role, SystemStatus};

/// Another system, whose number of processes is set.
pub struct Tailored {
    pub inner: Box<dyn System>,
    pub processes: u32,
}

impl System for Tailored {
    fn id(&self) -> String {
        self.inner.id()
    }

    fn title(&self) -> String {
        self.inner.title()
    }

    fn find(&self) -> SystemStatus {
        self.inner.find()
    }

    fn tuning(&self) -> Vec<String> {
        let mut notes = self.inner.tuning();
        notes.push(format!("here with exactly {} processes or threads for PHP", self.processes));
        notes
    }

    fn script(&self) -> Script {
        self.inner.script()
    }

    fn refuses(&self, case: &Case) -> Option<String> {
        self.inner.refuses(case)
    }

    fn supports_protocol(&self, over_tls: Protocol) -> bool {
        self.inner.supports_protocol(over_tls)
    }

    fn proxies(&self) -> bool {
        self.inner.proxies()
    }

    fn shapes_pool(&self) -> bool {
        self.inner.shapes_pool()
    }

    fn path(&self, case: &Case) -> String {
        self.inner.path(case)
    }

    fn fixed_address(&self) -> Option<SocketAddr> {
        self.inner.fixed_address()
    }

    fn role(&self, process: &str) -> Role {
        self.inner.role(process)
    }

    fn start(&self, site: &Site) -> Result<Running> {
        self.inner.start(&Site { workers: self.processes, processes: Some(self.processes), ..site.clone() })
    }
}
