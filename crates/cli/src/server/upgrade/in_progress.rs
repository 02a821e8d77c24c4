//! The running upgrade, if any: at most one at a time, while the server keeps serving.

use super::{HandOver, ReadySuccessor, TakeOver};
use crate::server::orders::Waiter;
use std::pin::Pin;
use std::time::{Duration, Instant};

type Running = Pin<Box<dyn Future<Output = Result<ReadySuccessor, UpgradeError>> + Send>>;

/// Maximum time that a new upgrade request waits for the predecessor of the last upgrade to end.
const LAST_WAIT: Duration = Duration::from_secs(3);

/// Reasons for a failed upgrade.
enum UpgradeError {
    /// No upgrade can begin now.
    Refused(String),
    /// The new process failed before it served.
    Failed(String),
}

#[derive(Default)]
pub(crate) struct UpgradeInProgress(Option<(Running, Waiter)>);

impl UpgradeInProgress {
    /// Begins an upgrade, or reports why none can begin now.
    pub(crate) fn begin(&mut self, waiter: Waiter, before: Option<TakeOver>, hand_over: impl FnOnce() -> HandOver) {
        let why = if self.0.is_some() {
            Some("an upgrade is already in progress".to_owned())
        } else if std::process::id() == 1 {
            Some("this server is process 1, with which its container ends: start another container".to_owned())
        } else if is_watched_by_number() {
            let why =
                "the unit needs Type=notify: otherwise systemd considers the service ended when this process exits";
            Some(why.to_owned())
        } else {
            None
        };
        if let Some(why) = why {
            let _ = waiter.send(Err(why));
            return;
        }
        let hand_over = hand_over();
        let running = async move {
            alone(before).await.map_err(UpgradeError::Refused)?;
            hand_over.run().await.map_err(UpgradeError::Failed)
        };
        self.0 = Some((Box::pin(running), waiter));
    }

    /// Returns when the running upgrade has succeeded. A failure is reported to the requester and in the log.
    pub(crate) async fn done(&mut self) -> ReadySuccessor {
        loop {
            let Some((running, _)) = &mut self.0 else { return std::future::pending().await };
            let outcome = running.as_mut().await;
            let Some((_, waiter)) = self.0.take() else { continue };
            match outcome {
                Ok(replaced) => {
                    let _ = waiter.send(Ok(format!(
                        "process {} serves; process {} finishes its requests",
                        replaced.pid,
                        std::process::id()
                    )));
                    return replaced;
                }
                Err(UpgradeError::Refused(why)) => drop(waiter.send(Err(why))),
                Err(UpgradeError::Failed(why)) => {
                    tracing::error!("upgrade failed, this process keeps serving: {why}");
                    let _ = waiter.send(Err(format!("upgrade failed, the old process keeps serving: {why}")));
                }
            }
        }
    }
}

/// Waits for this process's predecessor to end; the error says that it is still running.
async fn alone(before: Option<TakeOver>) -> Result<(), String> {
    let until = Instant::now() + LAST_WAIT;
    while let Some(old) = before.as_ref().and_then(TakeOver::predecessor) {
        if Instant::now() >= until {
            return Err(format!(
                "process {old} still has connections from before the last upgrade, for a minute or `grace` at most; try \
                 again when it has ended"
            ));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// `true` if systemd started this process and cannot be notified of another main process.
fn is_watched_by_number() -> bool {
    let started = std::env::var("SYSTEMD_EXEC_PID").is_ok_and(|pid| pid == std::process::id().to_string());
    started && std::env::var_os("NOTIFY_SOCKET").is_none()
}
