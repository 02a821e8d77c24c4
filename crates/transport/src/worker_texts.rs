//! Texts that a request asks the server for and waits for: the status of its pool, and answers to questions about
//! connections and channels.

use crate::control_socket::Message;
use crate::wire::FrameKind;
use crate::worker_end::WorkerEnd;
use std::io;
use std::os::fd::OwnedFd;

impl WorkerEnd {
    /// Requests the status of the pool and waits for its text. `None` in a multiplexed worker.
    ///
    /// # Errors
    /// The control socket is closed or delivered an unexpected message.
    pub fn receive_status(&mut self) -> io::Result<Option<OwnedFd>> {
        if self.wake_fd().is_some() {
            return Ok(None);
        }
        self.put(FrameKind::NeedStatus, 0, &[]);
        self.publish();
        self.receive_text().map(Some)
    }

    /// Sends a question about connections and channels (`live_order`) and waits for the answer's text.
    ///
    /// # Errors
    /// As `receive_status`.
    pub fn ask_live(&mut self, question: &[u8]) -> io::Result<OwnedFd> {
        self.live(question);
        self.publish();
        self.receive_text()
    }

    /// Sends a question about connections and channels (`live_order`) without waiting: the answer is an event. Answers
    /// arrive in the order of the questions. The worker publishes before it waits. At most `MAX_QUESTIONS` may be
    /// unanswered.
    pub fn ask_live_later(&mut self, question: &[u8]) {
        self.live(question);
        self.questions.open.push_back(self.number());
    }

    /// Waits for the text that the current request has asked for. In a multiplexed worker this waits with all requests:
    /// bodies and answers to earlier questions that arrive in the meantime are kept.
    fn receive_text(&mut self) -> io::Result<OwnedFd> {
        loop {
            match self.control.receive()? {
                Some((Message::Text { number }, Some(fd))) if !self.questions.open.is_empty() => {
                    let other = || io::Error::other("an answer to another question");
                    self.questions.keep(number, fd).map_err(|_| other())?;
                }
                Some((Message::Text { number }, Some(fd))) if number == self.number() => return Ok(fd),
                Some(body @ (Message::Body { .. } | Message::NoBody { .. }, _)) if self.wake_fd().is_some() => {
                    self.bodies.received.push_back(body);
                }
                Some(_) => return Err(io::Error::other("unexpected message on the control socket")),
                None => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "control socket closed")),
            }
        }
    }
}
