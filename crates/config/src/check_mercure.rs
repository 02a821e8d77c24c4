//! Settings of Mercure hubs and of the Pusher protocol: reads keys from their files, and rejects values that cannot
//! work.

use std::path::Path;

use crate::secret::Secret;
use crate::settings::Settings;
use crate::settings_site::SiteSettings;
use crate::source::Source;

/// Prefix of a path to a key's file.
const FILE: &str = "file:";
/// Maximum length of a key's file.
const MAX_KEY: u64 = 64 * 1024;
/// Minimum length of a secret for HS256 in bytes (RFC 7518 section 3.2).
const MIN_SECRET: usize = 32;

/// Reads keys from their files now, because the server may lose the permission to read them.
pub(crate) fn resolve(settings: &mut Settings, source: &mut Source<'_>) {
    let mut top = settings.top_level_site();
    read_keys(&mut top, source);
    (settings.mercure, settings.pusher) = (top.mercure, top.pusher);
    settings.sites.iter_mut().for_each(|site| read_keys(site, source));
}

fn read_keys(site: &mut SiteSettings, source: &mut Source<'_>) {
    let at = site.clone();
    for (name, key) in [
        ("mercure.publisher_key", &mut site.mercure.publisher_key),
        ("mercure.subscriber_key", &mut site.mercure.subscriber_key),
        ("pusher.app", &mut site.pusher.app),
    ] {
        let Some(path) = key.as_ref().and_then(|key| key.expose().strip_prefix(FILE)) else { continue };
        match read(Path::new(path)) {
            Ok(read) => *key = Some(read),
            Err(why) => {
                // Falls back to no key, so that other errors are reported as well.
                at.object(name, why, source);
                *key = None;
            }
        }
    }
}

fn read(path: &Path) -> Result<Secret, String> {
    let shown = path.display();
    if !path.is_absolute() {
        return Err(format!("\"{FILE}{shown}\" needs an absolute path"));
    }
    let size = std::fs::metadata(path).map_err(|why| format!("cannot read {shown}: {why}"))?.len();
    if size > MAX_KEY {
        return Err(format!("{shown} is not a key: it has {size} bytes"));
    }
    let text = std::fs::read_to_string(path).map_err(|why| format!("cannot read {shown}: {why}"))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(format!("{shown} is empty")),
        key => Ok(Secret::from(key)),
    }
}

/// Reports settings of a site that cannot work.
pub(crate) fn check(site: &SiteSettings, source: &mut Source<'_>) {
    let mercure = &site.mercure;
    if site.pusher.webhook.as_ref().is_some_and(|path| !path.starts_with('/')) {
        site.object("pusher.webhook", "must be a path that begins with /".to_owned(), source);
    }
    for (name, key) in
        [("mercure.publisher_key", &mercure.publisher_key), ("mercure.subscriber_key", &mercure.subscriber_key)]
    {
        if key.as_ref().is_some_and(|key| key.expose().contains("PRIVATE KEY-----")) {
            let message = "is a private key; the hub needs its public key (openssl pkey -in KEY -pubout)";
            site.object(name, message.to_owned(), source);
        }
    }
    for origin in &mercure.allowed_origins {
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        let is_origin = host.is_some_and(|host| {
            !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte))
        });
        if origin != "*" && !is_origin {
            let message = format!("\"{origin}\" is not an origin, such as \"https://app.example\" (without a path)");
            site.object("mercure.allowed_origins", message, source);
        }
    }
}

/// Bytes of a shared secret, or of the shortest one in a JSON Web Key Set. `None` for public keys.
fn secret_length(key: &str) -> Option<usize> {
    if !key.trim_start().starts_with('{') {
        return (!key.contains("-----BEGIN")).then_some(key.len());
    }
    // `Keys` reports a set that cannot be read.
    let set: serde_json::Value = serde_json::from_str(key).ok()?;
    let all = set.get("keys").and_then(|keys| keys.as_array()).map_or(std::slice::from_ref(&set), Vec::as_slice);
    let secrets = all.iter().filter(|key| key.get("kty").is_some_and(|kind| kind == "oct"));
    secrets.filter_map(|key| key.get("k")?.as_str().map(|text| text.len() * 3 / 4)).min()
}

/// Warnings about secrets so short that they can be guessed from one token.
pub(crate) fn short_secrets(sites: &[SiteSettings]) -> Vec<String> {
    let (mut seen, mut found): (Vec<&Secret>, _) = (Vec::new(), Vec::new());
    for mercure in sites.iter().map(|site| &site.mercure) {
        for (name, key) in [("publisher_key", &mercure.publisher_key), ("subscriber_key", &mercure.subscriber_key)] {
            let Some(key) = key.as_ref().filter(|key| !seen.contains(key)) else { continue };
            seen.push(key);
            if let Some(length) = secret_length(key.expose()).filter(|length| *length < MIN_SECRET) {
                found.push(format!(
                    "mercure.{name} has only {length} bytes, so it can be guessed from one token: use at least \
                     {MIN_SECRET} (openssl rand -base64 32)"
                ));
            }
        }
    }
    found
}
