//! Reads the costs of a run: processor time, memory and context switches of a process tree, and facts about the
//! machine.

pub mod machine;
pub mod mysql;
pub mod proc_tree;

use crate::record::Cpu;
use machine::MachineTime;
use proc_tree::{Classify, TreeReading};

/// All readings right before and right after a run.
#[derive(Debug)]
pub struct Reading {
    tree: TreeReading,
    machine: MachineTime,
    services: Vec<(String, f64)>,
}

impl Reading {
    /// Reads the system below `roots`, the machine, and each service.
    pub fn take(roots: &[u32], classify: Classify<'_>, services: &[(String, u32)]) -> Self {
        Self {
            tree: TreeReading::take(roots, classify),
            machine: MachineTime::now(),
            services: services
                .iter()
                .map(|(name, root)| {
                    (name.clone(), TreeReading::take(&[*root], &|_| crate::record::Role::Both).seconds())
                })
                .collect(),
        }
    }

    /// Returns the processor time between an earlier reading and this one. The caller adds the generator's share.
    pub fn cpu_since(&self, before: &Self) -> Cpu {
        let (by_role, by_process) = self.tree.since(&before.tree);
        let services = self
            .services
            .iter()
            .zip(&before.services)
            .map(|((name, after), (_, before))| (name.clone(), (after - before).max(0.0)))
            .collect();
        Cpu {
            by_role,
            by_process,
            generator: 0.0,
            services,
            machine_busy: (self.machine.busy - before.machine.busy).max(0.0),
            machine_total: (self.machine.total - before.machine.total).max(0.0),
            stolen: (self.machine.stolen - before.machine.stolen).max(0.0),
        }
    }

    /// Returns the context switches between an earlier reading and this one.
    pub fn switches_since(&self, before: &Self) -> crate::record::Switches {
        self.tree.switches_since(&before.tree)
    }
}
