//! Settings of automatic certificates, from ACME authorities and the local CA.

use std::path::PathBuf;
use std::time::Duration;

use crate::choice::Proof;
use crate::fixed_time::fixed_time;
use crate::secret::Secret;
use crate::table::settings;

settings! {
    /// Certificates that the server obtains by ACME (RFC 8555), and those that its local CA creates for names that no
    /// public authority certifies.
    pub struct AcmeSettings at "acme" {
        /// Names to obtain certificates for. Names below `localhost`, `test`, `internal`, `local` and `home.arpa`, and
        /// private addresses, get theirs from the local CA (`howdah trust`); all others by ACME.
        names: Vec<String> = "[]" example(r#"["example.org", "www.example.org"]"#);
        /// Authority: `production` and `staging` are Let's Encrypt's; or the URL of another authority's directory.
        ///
        /// By setting names you accept the authority's terms of service.
        directory: String = r#""production""# example(r#""https://ca.internal/acme/directory""#);
        /// Additional CA certificates to verify the authority's server with, in PEM: for one in your own network.
        ca_file: Option<PathBuf> = r#""""# example(r#""/etc/ssl/own-ca.pem""#);
        /// E-mail address for the authority's notices; only some authorities require one.
        email: Option<String> = r#""""# example(r#""admin@example.org""#);
        /// External account binding, `KEY_ID:KEY`, as the authority gave you both. Prefer the environment variable.
        eab: Option<Secret> = r#""""# example(r#""kid-1:zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W""#);
        /// Kind of certificate to request, as named by the authority.
        profile: Option<String> = r#""""# example(r#""shortlived""#);
        /// Ways to prove control of a name: `http-01` (port 80) or `tls-alpn-01` (port 443). After a failure the next
        /// one is tried.
        challenges: Vec<Proof> = r#"["http-01", "tls-alpn-01"]"# example(r#"["tls-alpn-01"]"#);
        /// URL that decides about certificates for unlisted names, when a client requests one: it is requested with
        /// `?domain=NAME`, and a 2xx status allows the certificate. `""` for never.
        on_demand: Option<String> = r#""""# example(r#""http://127.0.0.1:9000/may-have-certificate""#);
        /// Directory of certificates, their keys, accounts and the local CA. Several servers may share it, or use
        /// `share`: one orders, the others load the result.
        ///
        /// It is created for the server's user only. Anyone who can read it can impersonate your site.
        state: PathBuf = "`$STATE_DIRECTORY`, else `/var/lib/howdah` for root (`/var/lib/howdah-USER` if that belongs to another user), else `$XDG_STATE_HOME/howdah` or `~/.local/state/howdah`"
            auto(default_state) flag("state") example(r#""/srv/shared/howdah""#);
    }
    plus {
        /// Maximum pause after failures, before a random change of up to a quarter. The first pause is a minute, or a
        /// fifth of this if that is less, and doubles with each failure.
        retry: Duration = fixed_time("acme.retry", Duration::from_secs(12 * 3600));
    }
}

impl AcmeSettings {
    /// `true` if the server uses ACME or its local CA at all.
    pub fn is_used(&self) -> bool {
        !self.names.is_empty() || self.on_demand.is_some()
    }

    /// The address of the authority's directory.
    pub fn directory_url(&self) -> &str {
        match self.directory.as_str() {
            "production" => "https://acme-v02.api.letsencrypt.org/directory",
            "staging" => "https://acme-staging-v02.api.letsencrypt.org/directory",
            url => url,
        }
    }
}

/// Root's state directory. Placeholder until `check_acme::find_state` is called.
pub(crate) fn default_state() -> PathBuf {
    PathBuf::from("/var/lib/howdah")
}
