//! Questions that requests of a multiplexed worker have sent, whose answers arrive as events. The server answers in the
//! order of the questions.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

/// Maximum number of questions that are sent and not yet answered. The control socket has room for many times as many.
/// cbindgen:ignore
pub const MAX_QUESTIONS: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Questions {
    /// Requests that asked and whose answers have not been received, oldest first.
    pub(crate) open: VecDeque<u64>,
    /// Answers received and not yet delivered as events, oldest first.
    pub(crate) texts: VecDeque<OwnedFd>,
}

impl Questions {
    /// Keeps a text that the server sent for a request. Returns it if the request asked no open question.
    pub(crate) fn keep(&mut self, number: u64, text: OwnedFd) -> Result<(), OwnedFd> {
        if self.open.front() != Some(&number) {
            return Err(text);
        }
        self.open.pop_front();
        self.texts.push_back(text);
        Ok(())
    }
}
