//! Checks proxies: matching names, and values that can work.

use crate::settings::Settings;
use crate::settings_proxy::ProxySettings;
use crate::source::Source;

pub(crate) fn check(settings: &Settings, source: &mut Source<'_>) {
    for proxy in settings.proxies.iter().filter(|proxy| !proxy.name.contains(':')) {
        self::proxy(proxy, source);
    }
}

fn proxy(proxy: &ProxySettings, source: &mut Source<'_>) {
    let name = |key: &str| format!("proxy.{}.{key}", proxy.name);
    if proxy.to.is_empty() {
        source.object(&name("to"), "needs at least one server; for example: to = \"http://127.0.0.1:3000\"".to_owned());
    }
    if proxy.response_timeout.is_zero() {
        source.object(&name("response_timeout"), "must be more than 0".to_owned());
    }
    let is_path = |path: &str| path.starts_with('/') && path.bytes().all(|byte| (b'!'..=b'~').contains(&byte));
    if proxy.health.as_deref().is_some_and(|path| !is_path(path)) {
        source.object(&name("health"), "must be a path that begins with a slash, such as \"/healthz\"".to_owned());
    }
    if let Some(ca) = &proxy.ca
        && !ca.is_file()
    {
        source.object(&name("ca"), format!("{} does not exist", ca.display()));
    }
    let tls = proxy.to.iter().any(|server| server.tls);
    if !tls && (proxy.ca.is_some() || proxy.server_name.is_some() || !proxy.verify) {
        source.object(
            &name("to"),
            "no server has https://, so `ca`, `server_name` and `verify` would do nothing".to_owned(),
        );
    }
}
