//! The settings of certificates that the server gets or makes itself.

use std::path::PathBuf;
use std::time::Duration;

use crate::choice::Proof;
use crate::secret::Secret;
use crate::table::settings;

settings! {
    /// Certificates that the server gets itself, by ACME (RFC 8555), and those that its local CA makes for names that no
    /// public authority vouches for.
    pub struct AcmeSettings at "acme" {
        /// The names to have certificates for. Names below `localhost`, `test`, `internal`, `local` and `home.arpa`, and private
        /// addresses, get theirs from the local CA (`howdah trust`); all others by ACME.
        names: Vec<String> = "[]" example(r#"["example.org", "www.example.org"]"#);
        /// The authority: `production` and `staging` are those of Let's Encrypt; or the address of another one's directory.
        ///
        /// Whoever sets names accepts the authority's terms of service.
        directory: String = r#""production""# example(r#""https://ca.internal/acme/directory""#);
        /// Further authorities that may vouch for the authority's own server, in PEM: for one in your own network.
        ca_file: Option<PathBuf> = r#""""# example(r#""/etc/ssl/own-ca.pem""#);
        /// Where the authority may write to if something is wrong with a certificate; only some authorities want it.
        email: Option<String> = r#""""# example(r#""admin@example.org""#);
        /// External account binding: the identifier of the key that the authority gave you.
        eab_kid: Option<String> = r#""""# example(r#""kid-1""#);
        /// The key itself (base64url). Better in the environment than in a file.
        eab_key: Option<Secret> = r#""""# example(r#""zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W""#);
        /// The kind of certificate to ask for, as the authority calls it.
        profile: Option<String> = r#""""# example(r#""shortlived""#);
        /// How the authority is shown that a name is ours: `http-01` (it comes to port 80) or `tls-alpn-01` (to port 443). After
        /// a failure the next one is tried.
        challenges: Vec<Proof> = r#"["http-01", "tls-alpn-01"]"# example(r#"["tls-alpn-01"]"#);
        /// Get certificates for names that are not listed, when a client asks for them, if this address allows it: it is asked
        /// with `?domain=NAME`, and a status of 2xx allows. `""` for never.
        on_demand: Option<String> = r#""""# example(r#""http://127.0.0.1:9000/may-have-certificate""#);
        /// The longest pause after failures. The first one is a minute, or a fifth of this, and doubles with each further
        /// failure.
        retry: Duration = r#""12h""# example(r#""1h""#);
        /// The directory of certificates, their keys, accounts and the local CA. Several servers may share it: one orders, the
        /// others take what it got.
        ///
        /// It is made if it is not there, for the server's user alone. Whoever can read it can pretend to be your site.
        state: PathBuf = "`/var/lib/howdah` for root, else `$STATE_DIRECTORY`, `$XDG_STATE_HOME/howdah` or `~/.local/state/howdah`"
            auto(default_state) flag("state") example(r#""/srv/shared/howdah""#);
        /// A Redis in which several servers share certificates with their keys, the account and challenges:
        /// `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, with `rediss` over TLS. `""` for none: then they are in `state`.
        ///
        /// Whoever can read it can pretend to be your site. An address with a password is better in the environment.
        redis: Option<Secret> = r#""""# example(r#""rediss://:password@redis.internal:6379/0""#);
        /// The authorities that may vouch for that Redis, in PEM, in the place of the system's.
        redis_ca_file: Option<PathBuf> = r#""""# example(r#""/etc/ssl/own-ca.pem""#);
    }
    plus {}
}

impl AcmeSettings {
    /// Whether the server has to do with ACME or its local CA at all.
    #[must_use]
    pub fn is_used(&self) -> bool {
        !self.names.is_empty() || self.on_demand.is_some()
    }

    /// The address of the authority's directory.
    #[must_use]
    pub fn directory_url(&self) -> &str {
        match self.directory.as_str() {
            "production" => "https://acme-v02.api.letsencrypt.org/directory",
            "staging" => "https://acme-staging-v02.api.letsencrypt.org/directory",
            url => url,
        }
    }
}

/// That of root.
pub(crate) fn default_state() -> PathBuf {
    PathBuf::from("/var/lib/howdah")
}
