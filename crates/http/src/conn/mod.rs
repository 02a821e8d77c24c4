//! One connection: its transport (`io`) with the request lines as clients spell them (`request_line`) and with clients
//! that send nothing more (`half_closed`), who is on the other side (`peer`), its timeouts (`state`), its interim answers
//! (`interim`), answers from a worker's ring (`straight`) and the task that drives it (`drive`, with `http2`).
//!
//! TLS and HTTP/3 have their place here: TLS is another variant of `io::Socket`, and HTTP/3 another protocol in `drive`.

pub mod drive;
mod half_closed;
pub mod http2;
pub mod interim;
pub mod io;
pub mod peer;
pub mod request_line;
pub mod state;
pub mod straight;

/// A connection, as its requests see it.
#[derive(Debug)]
pub struct Conn {
    /// What all requests share.
    pub site: std::sync::Arc<crate::site::Site>,
    /// Both ends.
    pub peer: peer::Peer,
    /// What it is doing.
    pub state: state::ConnState,
    /// HTTP/2: what its requests hold of the budgets together.
    pub share: std::sync::OnceLock<std::sync::Arc<howdah_budget::Share>>,
    /// Interim answers on their way out.
    pub interim: interim::Interim,
    /// The client's spelling of targets.
    pub targets: request_line::Targets,
    /// The body that goes to the socket from where a worker wrote it.
    pub straight: straight::Straight,
}

impl Conn {
    /// The timeouts as they are now; those with clients that do not read are shorter while budgets are scarce.
    #[must_use]
    pub fn timeouts(&self) -> state::Timeouts {
        state::Timeouts::new(&self.site.settings.http).under(self.site.budgets.pressure())
    }

    /// A charge of nothing yet to the budget of memory.
    #[must_use]
    pub fn charge(&self) -> howdah_budget::Charge {
        howdah_budget::Charge::new(self.site.budgets.memory, self.share.get().cloned())
    }
}
