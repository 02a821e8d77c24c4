//! Checks that TLS settings are consistent. The files' contents are checked when they are loaded.

use crate::address::ListenAddr;
use crate::choice::ClientAuth;
use crate::settings::Settings;
use crate::source::Source;

pub(crate) fn check(settings: &Settings, source: &mut Source<'_>) {
    let tls = &settings.tls;
    let https = settings.listen.iter().find(|addr| matches!(addr, ListenAddr::Https(_)));
    if matches!(settings.admin, ListenAddr::Https(_)) {
        source.object("admin", "the admin endpoint speaks no TLS; use a Unix socket".to_owned());
    }
    if settings.admin.is_fastcgi() {
        source.object("admin", "the admin endpoint speaks HTTP and FastCGI at once; leave out fastcgi:".to_owned());
    }
    match https {
        Some(addr)
            if tls.certificates.is_empty()
                && settings.sites.iter().all(|site| site.tls.certificates.is_empty())
                && !settings.acme.is_used() =>
        {
            let message = format!(
                "{addr} needs a certificate; for example, under [tls]: certificates = [{{ cert = \"cert.pem\", key = \"key.pem\" }}], or auto = true"
            );
            source.object("listen", message);
        }
        None if tls.redirect => {
            let message = "there is nowhere to send clients to: no address of `listen` begins with https://";
            source.object("tls.redirect", message.to_owned());
        }
        None if tls.http3 => {
            let message = "there is nowhere to speak it: no address of `listen` begins with https://";
            source.object("tls.http3", message.to_owned());
        }
        None if !tls.certificates.is_empty() => {
            let message = "no address of `listen` begins with https://, so they would not be used";
            source.object("tls.certificates", message.to_owned());
        }
        _ => {}
    }
    match (tls.client_auth, &tls.client_ca) {
        (ClientAuth::Off, Some(_)) => {
            source.object("tls.client_ca", "has no effect while `client_auth` is \"off\"".to_owned());
        }
        (ClientAuth::Optional | ClientAuth::Required, None) => {
            let message = "needs `client_ca`: whose certificates are taken?";
            source.object("tls.client_auth", message.to_owned());
        }
        _ => {}
    }
}
