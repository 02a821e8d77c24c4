//! Messages of a running request for the log of the web server in front: FastCGI's standard error. Filled from any
//! thread, emptied by the request's connection whenever it writes.

use std::sync::{Mutex, PoisonError};

/// Maximum number of bytes that wait; further messages only go to this server's log.
const MAX_WAITING: usize = 64 * 1024;

/// Pending messages of one request.
#[derive(Debug, Default)]
pub struct Messages(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    text: Vec<u8>,
    begun: bool,
}

impl Messages {
    /// Appends a message in PHP-FPM's format, or drops it if too much waits.
    pub fn push(&self, message: &[u8]) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.text.len() + message.len() > MAX_WAITING {
            return;
        }
        let start: &[u8] =
            if std::mem::replace(&mut waiting.begun, true) { b"; PHP message: " } else { b"PHP message: " };
        waiting.text.extend_from_slice(start);
        waiting.text.extend_from_slice(message);
    }

    /// Takes the pending text.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_request_are_one_text_of_bounded_length() {
        let messages = Messages::default();
        assert!(messages.take().is_empty());
        messages.push(b"one");
        messages.push(b"two");
        assert_eq!(messages.take(), b"PHP message: one; PHP message: two");
        messages.push(b"three");
        messages.push(&[b'x'; MAX_WAITING]);
        assert_eq!(messages.take(), b"; PHP message: three");
    }
}
