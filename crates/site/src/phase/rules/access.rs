//! Access control: limits per client, and users with passwords.

use crate::exchange::Exchange;
use crate::refusal::Refusal;
use crate::site::Site;
use howdah_rules::Access;
use howdah_rules::auth::{Auth, AuthResult};
use howdah_rules::limit::{Limit, Wait, client_number};
use http::{StatusCode, header};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Checks one requirement. An error is the refusal.
pub(super) async fn ask(site: &Site, exchange: &mut Exchange, access: Access) -> Result<(), Refusal> {
    match access {
        Access::Limit(limit) => limited(site, exchange, &limit).await,
        Access::Auth(auth) => authenticated(site, exchange, &auth).await,
    }
}

async fn limited(site: &Site, exchange: &mut Exchange, limit: &Arc<Limit>) -> Result<(), Refusal> {
    let client = exchange.client.ip;
    let admitted = match shared_rate(site, client, limit).await {
        Some(Ok(())) => limit.admit_at_once(client, Instant::now()),
        Some(Err(wait)) => Err(Wait(wait)),
        None => limit.admit(client, Instant::now()),
    };
    match admitted {
        Ok(admitted) => {
            if let Some(ruled) = &mut exchange.ruled {
                ruled.admitted.push(admitted);
            }
            Ok(())
        }
        Err(Wait(wait)) => {
            let seconds = u32::try_from(wait.as_secs_f64().ceil() as u64).unwrap_or(u32::MAX);
            Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS).retry_after(seconds.max(1)))
        }
    }
}

/// Checks a client's rate with the broker; `None` if this server must decide alone.
async fn shared_rate(site: &Site, client: Option<IpAddr>, limit: &Limit) -> Option<Result<(), Duration>> {
    let (broker, rate) = (site.server.broker()?, limit.rate()?);
    let client = client.map_or(1, client_number);
    broker.admit(&format!("{}:{}:{client:x}", site.settings.name, rate.rule), rate.interval, rate.burst).await
}

async fn authenticated(site: &Site, exchange: &mut Exchange, auth: &Arc<Auth>) -> Result<(), Refusal> {
    let refused = || Refusal::new(StatusCode::UNAUTHORIZED).challenge(auth.challenge().clone());
    let user = match auth.ask(exchange.head.headers.get(header::AUTHORIZATION), Instant::now()) {
        AuthResult::Refused => return Err(refused()),
        AuthResult::User(user) => user,
        AuthResult::Verify(verification) => {
            site.server.passwords.verify(exchange.id, exchange.client.ip, verification).await?.ok_or_else(refused)?
        }
    };
    if let Some(ruled) = &mut exchange.ruled {
        ruled.user = Some(user);
    }
    Ok(())
}
