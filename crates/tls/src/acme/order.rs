//! One order: from a name to its certificate.

use crate::acme::Options;
use crate::acme::challenges::{self, Challenges, Published};
use crate::acme::failure::{CHECKING, Failure, NONCES, kind, patiently};
use crate::acme::http_client::Client;
use crate::store::Store;
use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error, Identifier, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use rustls_pki_types::CertificateDer;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time for the authority to check the name, and again to issue the certificate.
const RETRY_POLICY: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(250)).backoff(1.5).timeout(Duration::from_secs(90));
/// Maximum time for a whole order.
const ORDER_TIMEOUT: Duration = Duration::from_secs(300);

/// Kind of a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text served on port 80.
    Http01,
    /// A TLS handshake on port 443.
    TlsAlpn01,
}

impl Kind {
    fn of_library(self) -> ChallengeType {
        match self {
            Self::Http01 => ChallengeType::Http01,
            Self::TlsAlpn01 => ChallengeType::TlsAlpn01,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        }
    }
}

/// Inputs of an order.
pub(super) struct OrderContext<'a> {
    pub(super) account: &'a Account,
    pub(super) client: &'a Client,
    pub(super) options: &'a Options,
    pub(super) store: &'a Arc<Store>,
    pub(super) challenges: &'a Arc<Challenges>,
}

impl OrderContext<'_> {
    /// Orders a certificate, and returns its chain and key in PEM. `replaced` is the certificate to renew. The number
    /// of consecutive `failures` selects the challenge, so that the kinds are tried in turn.
    pub(super) async fn certificate(
        &self,
        name: &str,
        replaced: Option<&CertificateDer<'_>>,
        failures: u32,
    ) -> Result<String, Failure> {
        match tokio::time::timeout(ORDER_TIMEOUT, self.run(name, replaced, failures)).await {
            Ok(result) => result,
            Err(_) => Err(Failure::of_name(format!("the authority did not finish within {ORDER_TIMEOUT:?}"))),
        }
    }

    fn failed(&self, doing: &str, error: &Error) -> Failure {
        Failure::of(doing, error, self.client.take_retry_after())
    }

    async fn run(&self, name: &str, replaced: Option<&CertificateDer<'_>>, failures: u32) -> Result<String, Failure> {
        let mut order = self.begin(name, replaced).await?;
        // Dropping the guard withdraws the challenge response, also on errors.
        let _published = self.prove(&mut order, failures).await?;
        let status = patiently!(order.poll_ready(&RETRY_POLICY));
        let status = match status {
            Ok(status) => status,
            Err(error) => {
                return Err(self.why_refused(&mut order).await.unwrap_or_else(|| self.failed(CHECKING, &error)));
            }
        };
        if status != OrderStatus::Ready {
            let why = self.why_refused(&mut order).await;
            return Err(why.unwrap_or_else(|| Failure::of_name(format!("{CHECKING}, and gave no reason"))));
        }
        let (key, request) =
            request(name).map_err(|error| Failure::of_name(format!("cannot create a request: {error}")))?;
        let finalized = patiently!(order.finalize_csr(&request));
        finalized.map_err(|error| self.failed("the authority refused the request", &error))?;
        let chain = patiently!(order.poll_certificate(&RETRY_POLICY));
        let chain = chain.map_err(|error| self.failed("the authority issued no certificate", &error))?;
        Ok(format!("{}\n{}", chain.trim_end(), key.serialize_pem()))
    }

    async fn begin(&self, name: &str, replaced: Option<&CertificateDer<'_>>) -> Result<Order, Failure> {
        let identifier = match name.parse() {
            Ok(address) => Identifier::Ip(address),
            Err(_) => Identifier::Dns(name.to_owned()),
        };
        let identifiers = [identifier];
        let new = || {
            let order = NewOrder::new(&identifiers);
            match &self.options.profile {
                Some(profile) => order.profile(profile),
                None => order,
            }
        };
        // An order that names the certificate it replaces is exempt from some limits (RFC 9773 section 5). If the
        // authority refuses that, perhaps because it does not know the old certificate, the order is repeated without
        // it.
        if let Some(replaced) = replaced.and_then(|old| CertificateIdentifier::try_from(old).ok())
            && let Ok(order) = patiently!(self.account.new_order(&new().replaces(replaced.clone())))
        {
            return Ok(order);
        }
        let order = patiently!(self.account.new_order(&new()));
        order.map_err(|error| self.failed("the authority accepted no order", &error))
    }

    /// Publishes the challenge response, and asks the authority to verify it.
    async fn prove(&self, order: &mut Order, failures: u32) -> Result<Vec<Published>, Failure> {
        let mut left = NONCES;
        'again: loop {
            let mut published = Vec::new();
            let mut authorizations = order.authorizations();
            while let Some(authorization) = authorizations.next().await {
                let mut authorization = match authorization {
                    Ok(authorization) => authorization,
                    Err(error) if left > 0 && kind(&error) == "badNonce" => {
                        left -= 1;
                        continue 'again;
                    }
                    Err(error) => return Err(self.failed("the authority's order cannot be read", &error)),
                };
                match authorization.status {
                    AuthorizationStatus::Valid => continue,
                    AuthorizationStatus::Pending => {}
                    other => return Err(Failure::of_name(format!("{CHECKING}: its state is {other:?}"))),
                }
                let name = authorization.identifier().to_string();
                let offered = |kind: &Kind| authorization.challenges.iter().any(|c| c.r#type == kind.of_library());
                let kinds: Vec<Kind> = self.options.kinds.iter().copied().filter(offered).collect();
                let Some(kind_of_proof) = kinds.get(failures as usize % kinds.len().max(1)).copied() else {
                    let wanted: Vec<_> = self.options.kinds.iter().map(|kind| kind.word()).collect();
                    let message = format!("the authority offers none of {}: see `acme.challenges`", wanted.join(", "));
                    return Err(Failure::of_name(message));
                };
                let Some(mut challenge) = authorization.challenge(kind_of_proof.of_library()) else { continue };
                let proof = challenge.key_authorization();
                let made = match kind_of_proof {
                    Kind::Http01 => {
                        let token = challenge.token.clone();
                        self.challenges.publish_token(&token, proof.as_str()).await
                    }
                    Kind::TlsAlpn01 => challenges::publish_certificate(self.store, &name, proof.digest().as_ref()),
                };
                published.push(made.map_err(Failure::of_name)?);
                let ready = patiently!(challenge.set_ready());
                ready.map_err(|error| self.failed(CHECKING, &error))?;
            }
            return Ok(published);
        }
    }

    /// The authority's reason for the refusal; the order itself has few details.
    async fn why_refused(&self, order: &mut Order) -> Option<Failure> {
        let mut authorizations = order.authorizations();
        while let Some(Ok(mut authorization)) = authorizations.next().await {
            let state = patiently!(authorization.refresh()).ok()?;
            for challenge in &state.challenges {
                if let Some(problem) = &challenge.error {
                    let way = match challenge.r#type {
                        ChallengeType::Http01 => " by http-01 (port 80)",
                        ChallengeType::TlsAlpn01 => " by tls-alpn-01 (port 443)",
                        _ => "",
                    };
                    return Some(self.failed(&format!("{CHECKING}{way}"), &Error::Api(problem.clone())));
                }
            }
        }
        None
    }
}

/// Creates a key, and a certificate request for the name.
fn request(name: &str) -> Result<(KeyPair, Vec<u8>), rcgen::Error> {
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    let key = KeyPair::generate()?;
    let request = params.serialize_request(&key)?.der().to_vec();
    Ok((key, request))
}
