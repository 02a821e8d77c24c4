//! Settings of TLS, and the syntax of certificates in them.

use std::path::PathBuf;

use crate::choice::{ClientAuth, TlsVersion};
use crate::kind::Kind;
use crate::table::settings;
use crate::value::Value;
use howdah_rules::tree::{Node, Tree};

settings! {
    /// TLS, for the addresses of `listen` that begin with `https://`.
    pub struct TlsSettings at "tls" {
        /// Certificates: files in PEM, the server's certificate first, then its issuers. A client gets the one for the
        /// requested name, else the first.
        ///
        /// The files are checked every two seconds and reloaded when they change, so the server's user must be able to
        /// read them. A pair that does not match leaves the old one in place.
        ///
        /// In a site they apply to its hosts, before those of the top level.
        certificates: Vec<CertificateFiles> = "[]"
            example(r#"[{ cert = "/etc/ssl/shop.pem", key = "/etc/ssl/private/shop.key" }]"#);
        /// Obtain or create certificates: for the names in `[acme]`, else for the hosts of sites without
        /// `certificates`, else for `localhost`. Without `listen` the server then listens on ports 80 and 443, or for
        /// `localhost` on 8080 and 8443 of this machine.
        ///
        /// `--tls auto` does the same. In a site: for its hosts, in addition to the names in `[acme]`.
        auto: bool = "false" example("true");
        /// Minimum TLS version.
        min_version: TlsVersion = r#""1.2""# example(r#""1.3""#);
        /// Client certificates: not requested (`off`), `optional` or `required`. One that `client_ca` has not signed
        /// ends the connection; scripts see the others in `SSL_CLIENT_*`.
        client_auth: ClientAuth = r#""off""# example(r#""required""#);
        /// CA certificates that sign client certificates, in PEM.
        client_ca: Option<PathBuf> = r#""""# example(r#""/etc/ssl/clients-ca.pem""#);
        /// Redirect requests without TLS: 301 for GET and HEAD, 308 for other methods. `/.well-known/acme-challenge/`
        /// is still served.
        redirect: bool = "false" example("true");
        /// Enable HTTP/3: over UDP, on the port of every `https://` address in `listen`. Responses over TLS advertise
        /// it by `Alt-Svc`.
        ///
        /// **Experimental**, until more clients have been tested. The firewall must allow UDP.
        http3: bool = "false" restart(true) example("true");
    }
    plus {}
}

/// The two files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CertificateFiles {
    /// The chain.
    pub cert: PathBuf,
    /// The key; the same file if both are in one.
    pub key: PathBuf,
}

impl Value for CertificateFiles {
    const KIND: Kind = Kind::Certificate;

    fn from_node(node: &Node) -> Option<Self> {
        let Tree::Table(entries) = &node.tree else {
            return match &node.tree {
                Tree::Text(text) => Self::from_text(text),
                _ => None,
            };
        };
        let (mut cert, mut key) = (None, None);
        for entry in entries {
            let path = PathBuf::from_node(&entry.node)?;
            match entry.key.as_str() {
                "cert" => cert = Some(path),
                "key" => key = Some(path),
                _ => return None,
            }
        }
        let cert = cert?;
        Some(Self { key: key.unwrap_or_else(|| cert.clone()), cert })
    }

    /// In the environment and in flags: `CERT:KEY`, or one file.
    fn from_text(text: &str) -> Option<Self> {
        let (cert, key) = text.split_once(':').unwrap_or((text, text));
        (!cert.is_empty() && !key.is_empty()).then(|| Self { cert: cert.into(), key: key.into() })
    }

    fn show(&self) -> String {
        format!("{{ cert = {}, key = {} }}", self.cert.show(), self.key.show())
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        vec![&mut self.cert, &mut self.key]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_two_files_or_one() {
        let read = |text: &str| Node::from_literal(text).and_then(|node| CertificateFiles::from_node(&node));
        let pair = CertificateFiles { cert: "a.pem".into(), key: "b.pem".into() };
        assert_eq!(read(r#"{ cert = "a.pem", key = "b.pem" }"#), Some(pair.clone()));
        assert_eq!(CertificateFiles::from_text("a.pem:b.pem"), Some(pair.clone()));
        assert_eq!(read(&pair.show()), Some(pair));
        let one = CertificateFiles { cert: "a.pem".into(), key: "a.pem".into() };
        assert_eq!(read(r#"{ cert = "a.pem" }"#), Some(one.clone()));
        assert_eq!(read(r#""a.pem""#), Some(one));
        for wrong in
            [r#"{ key = "b.pem" }"#, r#"{ cert = "a", kee = "b" }"#, r#"{ cert = 1 }"#, r#""""#, "1", r#""a:""#]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
