//! Tests of new workers before they take over: they respond to the paths of `deploy.check`.

use super::Server;
use crate::server::revision::Revision;
use howdah_site::server_request::{Purpose, ServerRequest};
use std::time::Duration;

/// Maximum time for one response of `deploy.check`.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

impl Server {
    /// Tests the next revision; returns a line for each check.
    ///
    /// # Errors
    /// The first check that fails.
    pub(super) async fn prove(&self, new: &Revision) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        for target in &new.settings.deploy.check {
            let status = check(new, target).await.map_err(|why| format!("`deploy.check`: {target}: {why}"))?;
            found.push(format!("deploy: {target} responds with {status}"));
        }
        Ok(found)
    }
}

/// Requests one path from the new revision; returns the status.
async fn check(new: &Revision, target: &str) -> Result<u16, String> {
    let request = ServerRequest::for_address(&new.sites, Purpose::DeployCheck, target)?;
    let service = new.internal_service();
    let asked = async {
        let (head, body) = service.request(&request).await?.into_parts();
        let broken = |error| format!("the response of the new workers ended early: {error}");
        body.discard().await.map_err(broken)?;
        Ok::<_, String>(head.status)
    };
    match tokio::time::timeout(CHECK_TIMEOUT, asked).await {
        Ok(Ok(status)) if status.as_u16() < 400 => Ok(status.as_u16()),
        Ok(Ok(status)) => Err(format!("the new workers respond with {status}")),
        Ok(Err(why)) => Err(why),
        Err(_) => Err(format!("no response from the new workers within {CHECK_TIMEOUT:?}")),
    }
}
