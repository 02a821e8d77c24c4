//! Tests of new workers before they take over: they respond to the paths of `deploy.check`, and, while they are watched as a
//! canary, no more of their responses fail than of the current workers' (`trial`).

use super::Server;
use crate::server::edition::Edition;
use crate::server::trial::{self, Responses, Trial, percent};
use howdah_config::{Ratio, ReloadFlags};
use howdah_observe::Metrics;
use howdah_site::server_request::{Purpose, ServerRequest};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};

/// Interval of checks.
const LOOK: Duration = Duration::from_millis(100);
/// Time for which new workers are watched.
const USUAL_WATCH: Duration = Duration::from_secs(30);
/// Maximum time for one response of `deploy.check`.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

impl Server {
    /// Tests the next edition; returns a line for each finding.
    ///
    /// # Errors
    /// The failure.
    pub(super) async fn prove(
        &self,
        old: &Edition,
        new: &Arc<Edition>,
        flags: ReloadFlags,
    ) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        for target in &new.settings.deploy.check {
            let status = self.check(new, target).await?;
            found.push(format!("deploy: {target} responds with {status}"));
        }
        if let Some(canary) = flags.canary.map(Ratio::get).filter(|canary| *canary > 0.0) {
            found.push(self.watch(old, new, canary, flags.watch.unwrap_or(USUAL_WATCH)).await?);
        }
        Ok(found)
    }

    /// Asks the new edition for one path; the status.
    async fn check(&self, new: &Edition, target: &str) -> Result<u16, String> {
        let fails = |why: &dyn std::fmt::Display| format!("`deploy.check`: {target}: {why}");
        let request =
            ServerRequest::for_address(&new.sites, Purpose::DeployCheck, target).map_err(|why| fails(&why))?;
        let service = new.service_of_its_own();
        let asked = async {
            let response = service.request(&request).await?;
            let (head, body) = response.into_parts();
            let broken = |error| format!("the response of the new workers breaks off: {error}");
            body.discard().await.map_err(broken)?;
            Ok::<_, String>(head.status)
        };
        match tokio::time::timeout(CHECK_TIMEOUT, asked).await {
            Ok(Ok(status)) if status.as_u16() < 400 => Ok(status.as_u16()),
            Ok(Ok(status)) => Err(fails(&format_args!("the new workers respond with {status}"))),
            Ok(Err(why)) => Err(fails(&why)),
            Err(_) => Err(fails(&format_args!("no response of the new workers within {CHECK_TIMEOUT:?}"))),
        }
    }

    /// Has the new edition serve a share of the clients, and looks how that goes.
    async fn watch(&self, old: &Edition, new: &Edition, canary: f64, time: Duration) -> Result<String, String> {
        let before = responses_so_far(&self.fixed.around.metrics);
        let salt = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let trial = Trial::new(new.services().to_vec(), new.settings.http.clone(), canary, salt);
        let trial = Arc::new(trial);
        let share = percent(canary);
        tracing::info!("canary: new workers serve {share} of the clients for {time:?}");
        old.begin_trial(trial.clone());
        let until = Instant::now() + time;
        let failure = loop {
            tokio::time::sleep(LOOK.min(until.saturating_duration_since(Instant::now()))).await;
            let (of_new, of_old) = trial.responses();
            if let Some(why) = trial::failure(of_new, of_old, before) {
                break Some(why);
            }
            if self.stopping.load(Relaxed) {
                break Some("the server is stopping".to_owned());
            }
            if Instant::now() >= until {
                break None;
            }
        };
        old.end_trial();
        let (of_new, _) = trial.responses();
        match failure {
            Some(why) => Err(why),
            None if of_new.all == 0 => {
                Ok(format!("deploy: no request of {share} of the clients came in {time:?}; nothing was learnt"))
            }
            None => Ok(format!(
                "deploy: {} of {} responses to {share} of the clients had a status of 5xx",
                of_new.failed, of_new.all
            )),
        }
    }
}

/// All responses since the start of the server.
fn responses_so_far(metrics: &Metrics) -> Responses {
    let mut sum = Responses { all: 0, failed: 0 };
    for requests in metrics.requests.all() {
        for (class, number) in requests.by_class() {
            sum.all += number;
            sum.failed += if class == "5xx" { number } else { 0 };
        }
    }
    sum
}
