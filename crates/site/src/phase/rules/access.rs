//! Who may come in: limits of clients, and users with passwords.

use crate::exchange::Exchange;
use crate::refusal::Refusal;
use crate::site::Site;
use howdah_rules::Access;
use howdah_rules::auth::{Asked, Auth, Verification};
use howdah_rules::limit::{Limit, Wait};
use http::{StatusCode, header};
use std::sync::Arc;
use std::time::Instant;

/// Passwords that wait to be verified; who comes later is told to come again.
const MOST_WAITING: usize = 256;

/// Asks for one thing; an error is the refusal.
pub(super) async fn ask(site: &Site, exchange: &mut Exchange, access: Access) -> Result<(), Refusal> {
    match access {
        Access::Limit(limit) => limited(exchange, &limit),
        Access::Auth(auth) => authenticated(site, exchange, &auth).await,
    }
}

fn limited(exchange: &mut Exchange, limit: &Arc<Limit>) -> Result<(), Refusal> {
    match limit.admit(exchange.remote, Instant::now()) {
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
        Asked::Verify(verification) => verify(site, verification).await?.ok_or_else(|| {
            let (id, client) = (exchange.id, exchange.remote.map(|ip| ip.to_string()).unwrap_or_default());
            tracing::warn!(target: "howdah::rules", %id, client, "a wrong user or password");
            refused()
        })?,
    };
    if let Some(ruled) = &mut exchange.ruled {
        ruled.user = Some(user);
    }
    Ok(())
}

/// Verifies a password on a thread that may take its time, a few at once.
async fn verify(site: &Site, verification: Verification) -> Result<Option<Arc<str>>, Refusal> {
    let busy = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE).retry_after(1);
    let verifying = &site.server.verifying;
    let Some(_place) = verifying.place(MOST_WAITING) else { return Err(busy()) };
    // Held by the thread until it is done, also if the client leaves before.
    let permit = verifying.permits.clone().acquire_owned().await.map_err(|_| busy())?;
    let run = move || {
        let user = verification.run();
        drop(permit);
        user
    };
    tokio::task::spawn_blocking(run).await.map_err(|_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR))
}
