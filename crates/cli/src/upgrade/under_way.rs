//! The upgrade that is under way, if there is one: at most one at a time, while everything goes on as before.

use super::{HandOver, Replaced, TakeOver};
use std::path::PathBuf;
use std::pin::Pin;
use tokio::sync::oneshot;

/// Who asked for an upgrade, and hears what came of it.
pub(crate) type Reply = oneshot::Sender<Result<String, String>>;

type Running = Pin<Box<dyn Future<Output = Result<Replaced, String>> + Send>>;

/// See above.
#[derive(Default)]
pub(crate) struct UnderWay(Option<(Running, Reply)>);

impl UnderWay {
    /// Begins an upgrade, or says why there can be none now.
    pub(crate) fn begin(
        &mut self,
        binary: Option<PathBuf>,
        reply: Reply,
        before: Option<&TakeOver>,
        hand_over: impl FnOnce() -> HandOver,
    ) {
        let why = if self.0.is_some() {
            Some("an upgrade is under way already".to_owned())
        } else if std::process::id() == 1 {
            Some("this server is process 1, and a container ends with that; start another container".to_owned())
        } else {
            before.and_then(TakeOver::predecessor).map(|old| {
                format!(
                    "process {old} still has connections from before the last upgrade, for `drain_timeout` at most; try \
                     again when it has ended"
                )
            })
        };
        if let Some(why) = why {
            let _ = reply.send(Err(why));
            return;
        }
        let mut hand_over = hand_over();
        if let Some(binary) = binary {
            if hand_over.launcher.is_there() {
                let fixed = hand_over.program.binary().display();
                let why = format!(
                    "a server that root has started starts nothing but {fixed}; install the new program there and leave \
                     --binary out"
                );
                let _ = reply.send(Err(why));
                return;
            }
            hand_over.program = hand_over.program.with_binary(binary);
        }
        self.0 = Some((Box::pin(hand_over.run()), reply));
    }

    /// Returns when the upgrade that is under way has succeeded. Whoever asked hears of a failure, and so does the log.
    pub(crate) async fn done(&mut self) -> Replaced {
        loop {
            let Some((running, _)) = &mut self.0 else { return std::future::pending().await };
            let outcome = running.as_mut().await;
            let Some((_, reply)) = self.0.take() else { continue };
            match outcome {
                Ok(replaced) => {
                    let _ = reply.send(Ok(format!(
                        "process {} serves; process {} finishes what it has begun",
                        replaced.pid,
                        std::process::id()
                    )));
                    return replaced;
                }
                Err(why) => {
                    tracing::error!("the upgrade has failed, and this process goes on: {why}");
                    let _ = reply.send(Err(format!("the upgrade has failed, and the old process goes on: {why}")));
                }
            }
        }
    }
}
