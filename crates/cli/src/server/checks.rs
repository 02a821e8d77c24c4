//! Checks of settings before they are used: by `howdah check`, and by a reload before it changes anything.

use crate::server::certificates;
use crate::server::identity;
use crate::server::php_hosts;
use crate::server::shared;
use crate::server::tls::{self, Tls};
use howdah_config::Loaded;
use howdah_site::mercure::wrong_keys;
use howdah_tls::{Files, Store};
use std::sync::Arc;

pub(crate) struct Checked {
    /// TLS configuration; `None` without an address that uses it.
    pub(crate) tls: Option<Tls>,
    /// PHP of each pool, as comments.
    pub(crate) hosts: String,
    /// Problems that do not prevent serving.
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Depth<'a> {
    /// Also checks that the PHP programs run.
    WithPhp,
    /// Does not start PHP, because the caller will. These certificates replace those that the server may no longer
    /// read.
    Over(Option<&'a Files>),
}

/// Checks resources named by settings: certificates, the state directory, the programs that run PHP.
///
/// # Errors
/// All mistakes.
pub(crate) fn check(loaded: &Loaded, store: Arc<Store>, depth: Depth<'_>) -> Result<Checked, Vec<String>> {
    let before = match depth {
        Depth::WithPhp => None,
        Depth::Over(before) => before,
    };
    let mut errors = Vec::new();
    let tls = tls::prepare(loaded, store, before).unwrap_or_else(|wrong| {
        errors.extend(wrong);
        None
    });
    let account = identity::account(&loaded.settings).ok().flatten();
    if let Some(why) = certificates::trouble(&loaded.settings.acme, account.as_ref()) {
        errors.push(format!("{}: [acme] state: {why}", loaded.origins.of("acme.state")));
    }
    if let Err(why) = shared::address(&loaded.settings) {
        errors.push(format!("{}: share {why}", loaded.origins.of("share")));
    }
    errors.extend(wrong_keys(&loaded.settings).into_iter().map(|error| format!("howdah: {error}")));
    let mut hosts = String::new();
    if let Depth::WithPhp = depth {
        match php_hosts::report(&loaded.settings) {
            Ok(found) => hosts = found,
            Err(wrong) => errors.extend(wrong.into_iter().map(|error| format!("howdah: {error}"))),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut warnings = loaded.warnings();
    warnings.extend(tls.as_ref().map(|tls| tls.warnings(account.as_ref())).unwrap_or_default());
    Ok(Checked { tls, hosts, warnings })
}
