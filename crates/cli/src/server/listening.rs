//! Listening sockets at the server's start: newly bound, or inherited from the predecessor or from systemd.

use crate::server::admin;
use crate::server::identity;
use crate::server::service::is_kept;
use crate::server::socket_files;
use crate::server::socket_files::Files;
use crate::server::tls::Tls;
use crate::server::upgrade::TakeOver;
use anyhow::{Context, Result, anyhow};
use howdah_config::{Account, Settings};
use howdah_protocol::inherited::{BoundTo, Inherited, InheritedSockets};
use howdah_protocol::listener::{BindError, Listener};
use howdah_protocol::unix_socket::UnixAccess;
use std::os::fd::OwnedFd;

pub(crate) struct Listening {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) admin: admin::Socket,
    /// Permissions of Unix sockets.
    pub(crate) access: UnixAccess,
    pub(crate) files: Files,
    /// Numbers of the predecessor's sockets that this server does not use.
    pub(crate) unused: Vec<usize>,
}

/// Inherited sockets: from the predecessor, or `passed` by systemd with their names.
///
/// # Errors
/// Invalid sockets.
pub(crate) fn inherited(take_over: Option<&TakeOver>, passed: Vec<(OwnedFd, String)>) -> Result<InheritedSockets> {
    let mut sockets = take_over.map(TakeOver::sockets).transpose()?.unwrap_or_default();
    for (fd, name) in passed {
        let mut socket = Inherited::of(fd, false).with_context(|| format!("LISTEN_FDS: socket {name}"))?;
        socket.name = Some(name);
        sockets.0.push(socket);
    }
    Ok(sockets)
}

/// Listens on all addresses in the settings, on inherited sockets where there are any.
///
/// # Errors
/// Addresses that cannot be bound.
pub(crate) fn open(
    settings: &Settings,
    account: Option<&Account>,
    tls: Option<&Tls>,
    mut inherited: InheritedSockets,
) -> Result<Listening> {
    let others = inherited.0.iter().filter(|socket| !socket.owns_file).filter_map(|socket| match &socket.bound {
        BoundTo::Unix(path) => Some(path.clone()),
        BoundTo::Tcp(_) | BoundTo::Udp(_) => None,
    });
    let files = Files { others: others.collect() };
    socket_files::make_directories(settings.listen.iter().chain([&settings.admin]));
    let access = identity::listener_access(settings, account).map_err(|error| anyhow!(error))?;
    let mut bind = |addr| {
        let listener = match inherited.take(addr) {
            Some(socket) => Listener::inherit(addr, socket)?,
            None => Listener::bind_for(addr, identity::access_at(settings, addr, access))?,
        };
        Ok(match tls {
            Some(tls) => tls.on(listener, addr),
            None => listener,
        })
    };
    let bound: Result<Vec<Listener>, BindError> = settings.listen.iter().map(&mut bind).collect();
    let mut listeners = bound.map_err(|error| anyhow!("{error}"))?;
    let http3 = |tls: &Tls| -> Result<Vec<Listener>, BindError> {
        listeners.iter().filter_map(|listener| tls.http3_listener(listener, &mut inherited)).collect()
    };
    let over_udp = tls.map(http3).transpose().map_err(|error| anyhow!("{error}"))?;
    listeners.extend(over_udp.unwrap_or_default());
    let admin = admin::bind(settings, &mut inherited)?;
    for Inherited { name, bound, .. } in &inherited.0 {
        if let Some(name) = name.as_ref().filter(|name| !is_kept(name)) {
            tracing::warn!("the service manager passed the socket {name} on {bound}, which is not in `listen`");
        }
    }
    let unused = inherited.0.iter().map(|socket| socket.number).collect();
    Ok(Listening { listeners, admin, access, files, unused })
}
