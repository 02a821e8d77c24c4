//! What the server asks of a running pool: to reload and to stop. The supervisor does it.

use crate::pool::Pool;
use crate::supervisor::Event;
use std::time::Duration;
use tokio::sync::oneshot;

impl Pool {
    /// Starts new workers from a fresh boot of PHP and lets the old ones finish. Returns when the new ones serve.
    ///
    /// # Errors
    /// Why the new ones did not start; the old ones stay then.
    pub async fn reload(&self) -> Result<(), String> {
        let (reply, answer) = oneshot::channel();
        self.tell_supervisor(Event::Reload(reply));
        answer.await.unwrap_or_else(|_| Err("the pool has stopped".into()))
    }

    /// Ends the pool: no new calls, running ones may finish within `grace`. Returns when no process is left.
    pub async fn stop(&self, grace: Duration) {
        let (done, stopped) = oneshot::channel();
        self.tell_supervisor(Event::Stop { grace, done });
        let _ = stopped.await;
    }
}
