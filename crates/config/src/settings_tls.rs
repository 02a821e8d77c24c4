//! The settings of TLS, and how a certificate is written in them.

use std::path::PathBuf;

use crate::choice::{ClientAuth, TlsVersion};
use crate::document::{Node, Tree};
use crate::kind::Kind;
use crate::table::settings;
use crate::value::Value;

settings! {
    /// TLS, for the addresses of `listen` that begin with `https://`.
    pub struct TlsSettings at "tls" {
        /// The certificates: files in PEM, the server's own certificate first and its issuers behind it. A client gets the one
        /// that is for the name it asks for, or else the first.
        ///
        /// The files are looked at every two seconds, and exchanged while the server runs; so the user that it runs as must be
        /// able to read them. A pair that does not fit leaves the one before in place.
        ///
        /// In a site they are for its hosts alone, before those of the top level.
        certificates: Vec<CertificateFiles> = "[]"
            example(r#"[{ cert = "/etc/ssl/shop.pem", key = "/etc/ssl/private/shop.key" }]"#);
        /// Get or make the certificates: for the names in `[acme]`, or for `localhost` where it names none. Without a `listen`
        /// the server listens on ports 80 and 443 then, or on 8080 and 8443 of this machine where it names none.
        ///
        /// `--tls auto` says the same. In a site: for its hosts, beside the names in `[acme]`.
        auto: bool = "false" example("true");
        /// The oldest version that is spoken.
        min_version: TlsVersion = r#""1.2""# example(r#""1.3""#);
        /// Whether clients show a certificate: they are not asked (`off`), they may (`optional`), they must (`required`). One
        /// that `client_ca` has not signed ends the connection; scripts see the others in `SSL_CLIENT_*`.
        client_auth: ClientAuth = r#""off""# example(r#""required""#);
        /// The certificates of the authorities that sign those of clients, in PEM.
        client_ca: Option<PathBuf> = r#""""# example(r#""/etc/ssl/clients-ca.pem""#);
        /// Send requests that come without TLS to the same address with it: 301, or 308 for other methods than GET and HEAD.
        /// What is below `/.well-known/acme-challenge/` is still served.
        redirect: bool = "false" example("true");
        /// The value of `Strict-Transport-Security` on responses over TLS; `""` for none.
        ///
        /// Browsers keep to it for as long as it says, also when there is no certificate any more: begin with a short time.
        hsts: Option<String> = r#""""# example(r#""max-age=31536000; includeSubDomains""#);
        /// Speak HTTP/3 too: over UDP, at the port of every address of `listen` that begins with `https://`. Responses over
        /// HTTP/1.1 and HTTP/2 tell clients so, by `Alt-Svc`.
        ///
        /// **Experimental**, until more clients have been tried with it. The firewall must let UDP through.
        http3: bool = "false" example("true");
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
