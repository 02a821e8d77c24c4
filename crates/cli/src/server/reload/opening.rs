//! Opens the logs, sites and addresses that only the new settings name. Those that both settings name stay open.

use super::FixedState;
use crate::server::identity;
use crate::server::revision::{Front, Revision};
use crate::server::tls::Tls;
use howdah_config::{ListenAddr, Settings};
use howdah_protocol::inherited::InheritedSockets;
use howdah_protocol::listener::Listener;
use howdah_protocol::listeners::Listeners;
use std::sync::Arc;

/// Newly opened resources. Nothing uses them yet; dropping this closes them.
pub(super) struct OpenedResources {
    pub(super) front: Front,
    /// Listeners of new addresses.
    pub(super) listeners: Vec<Listener>,
}

/// Opens the resources that are not open yet.
///
/// # Errors
/// Resources that cannot be opened.
pub(super) fn open(
    fixed: &FixedState,
    old: &Revision,
    settings: &Arc<Settings>,
    tls: Option<&Tls>,
) -> Result<OpenedResources, String> {
    let metrics = &fixed.context.metrics;
    let logs = old.access_logs.open_for(settings, metrics);
    let logs = logs.map_err(|error| format!("cannot open an access log: {error}"))?;
    let front = Front::new(settings, metrics, logs, fixed.budgets, &old.proxies)?;
    let mut listeners = Vec::new();
    for addr in settings.listen.iter().filter(|addr| at_place_of(addr, &old.settings).is_none()) {
        let listener = {
            let access = identity::access_at(settings, addr, fixed.access);
            Listener::bind_for(addr, access).map_err(|error| error.to_string())?
        };
        let listener = match tls {
            Some(tls) => tls.on(listener, addr),
            None => listener,
        };
        let http3 = tls.and_then(|tls| tls.http3_listener(&listener, &mut InheritedSockets::default())).transpose();
        listeners.push(listener);
        listeners.extend(http3.map_err(|error| error.to_string())?);
    }
    Ok(OpenedResources { front, listeners })
}

/// Opens new addresses, closes those that the settings no longer name, and changes the protocol of addresses where it
/// differs.
pub(super) fn change_addresses(
    listeners: &Listeners,
    old: &Settings,
    new: &Settings,
    added: Vec<Listener>,
    tls: Option<&Tls>,
) {
    for addr in &new.listen {
        if let Some(before) = at_place_of(addr, old) {
            listeners.set_protocol(before, addr, tls.map(Tls::config));
        }
    }
    added.into_iter().for_each(|listener| listeners.open(listener));
    let gone: Vec<ListenAddr> = old.listen.iter().filter(|addr| !new.listen.contains(addr)).cloned().collect();
    listeners.close(&gone);
}

/// Returns the address in these settings that has the same socket.
fn at_place_of<'a>(addr: &ListenAddr, settings: &'a Settings) -> Option<&'a ListenAddr> {
    settings.listen.iter().find(|other| other.place() == addr.place())
}
