//! Drops capabilities of a worker that runs as root. Some of them bypass Landlock: the capability to monitor the
//! performance of processes allows reading their memory maps and environments. Workers of other users have no
//! capabilities.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Capabilities for files and low ports, which Landlock restricts.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::NET_BIND_SERVICE);

pub(crate) fn give_up() -> Result<(), String> {
    let fail = |error: rustix::io::Errno| format!("capabilities: {error}");
    let have = capabilities(None).map_err(fail)?;
    let kept = CapabilitySets {
        effective: have.effective & KEPT,
        permitted: have.permitted & KEPT,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, kept).map_err(fail)
}
