//! The clients of one thread: each has a connection, sends a request, reads the response, and repeats.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustls::{ClientConfig, HandshakeKind};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep, timeout};

use super::link::Link;
use super::{ClientTotals, RESPONSE_TIMEOUT, Response, session};
use crate::cases::Connections;
use crate::interrupt::Interrupt;
use crate::load::{Target, Tls};

/// Delay after which a client that could not connect tries again.
const RETRY: Duration = Duration::from_millis(10);

/// Parameters of all clients of a thread.
struct Plan {
    target: Target,
    tls: Tls,
    until: Instant,
    interrupt: Interrupt,
}

/// Runs this number of clients until the given time.
pub(super) fn run(
    target: &Target,
    tls: &Tls,
    clients: u32,
    until: Instant,
    interrupt: &Interrupt,
) -> Result<ClientTotals> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().context("no runtime")?;
    let plan = Rc::new(Plan { target: target.clone(), tls: tls.clone(), until, interrupt: interrupt.clone() });
    LocalSet::new().block_on(&runtime, async {
        let mut all = JoinSet::new();
        for _ in 0..clients {
            all.spawn_local(client(Rc::clone(&plan)));
        }
        let mut totals = ClientTotals::new()?;
        while let Some(one) = all.join_next().await {
            totals.add(&one.context("a client ended")??);
        }
        Ok(totals)
    })
}

async fn client(plan: Rc<Plan>) -> Result<ClientTotals> {
    let mut totals = ClientTotals::new()?;
    let config = Arc::new(session::of_load(plan.tls.protocol, plan.tls.connections)?);
    let (mut link, mut was_here) = (None, false);
    while Instant::now() < plan.until && !plan.interrupt.is_raised() {
        let asked = Instant::now();
        let mut open = match link.take() {
            Some(open) => open,
            None => match timeout(RESPONSE_TIMEOUT, open(&plan, &config, &mut totals, &mut was_here)).await {
                Ok(Ok(open)) => open,
                Ok(Err(_)) => {
                    totals.errors.connect += 1;
                    sleep(RETRY).await;
                    continue;
                }
                Err(_) => {
                    totals.errors.timeout += 1;
                    continue;
                }
            },
        };
        match timeout(RESPONSE_TIMEOUT, open.exchange(&plan.target)).await {
            Ok(Ok(Response { status, bytes, closes })) => {
                totals.latencies.add(asked.elapsed());
                totals.responses += 1;
                totals.bytes += bytes;
                totals.errors.status += u64::from(!(200..300).contains(&status));
                if plan.tls.connections == Connections::Kept && !closes {
                    link = Some(open);
                }
            }
            Ok(Err(_)) => totals.errors.read += 1,
            Err(_) => totals.errors.timeout += 1,
        }
    }
    Ok(totals)
}

async fn open(plan: &Plan, config: &Arc<ClientConfig>, totals: &mut ClientTotals, was_here: &mut bool) -> Result<Link> {
    let (link, handshake) = Link::open(&plan.target, &plan.tls, Arc::clone(config)).await?;
    if *was_here {
        totals.again += 1;
        totals.resumed += u64::from(handshake == Some(HandshakeKind::Resumed));
    }
    *was_here = true;
    Ok(link)
}
