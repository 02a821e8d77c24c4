//! Access control: limits of clients, and users with passwords.

use crate::exchange::Exchange;
use crate::refusal::Refusal;
use crate::site::Site;
use howdah_rules::Access;
use howdah_rules::auth::{Asked, Auth};
use howdah_rules::limit::{Limit, Wait};
use http::{StatusCode, header};
use std::sync::Arc;
use std::time::Instant;

/// Asks for one thing; an error is the refusal.
pub(super) async fn ask(site: &Site, exchange: &mut Exchange, access: Access) -> Result<(), Refusal> {
    match access {
        Access::Limit(limit) => limited(exchange, &limit),
        Access::Auth(auth) => authenticated(site, exchange, &auth).await,
    }
}

fn limited(exchange: &mut Exchange, limit: &Arc<Limit>) -> Result<(), Refusal> {
    match limit.admit(exchange.client.ip, Instant::now()) {
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

async fn authenticated(site: &Site, exchange: &mut Exchange, auth: &Arc<Auth>) -> Result<(), Refusal> {
    let refused = || Refusal::new(StatusCode::UNAUTHORIZED).challenge(auth.challenge().clone());
    let user = match auth.ask(exchange.head.headers.get(header::AUTHORIZATION), Instant::now()) {
        Asked::Refused => return Err(refused()),
        Asked::User(user) => user,
        Asked::Verify(verification) => {
            site.server.passwords.verify(exchange.id, exchange.client.ip, verification).await?.ok_or_else(refused)?
        }
    };
    if let Some(ruled) = &mut exchange.ruled {
        ruled.user = Some(user);
    }
    Ok(())
}
