//! A published message.

use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// The encoding of an update for one kind of subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A server-sent event.
    Event,
    /// A WebSocket frame.
    Frame,
    /// A compressed WebSocket frame.
    Packed,
}

/// A message shared by all its subscribers. Each form is encoded once, when the first subscriber sends it.
#[derive(Debug, Default)]
pub struct Update {
    /// Its id, after which a subscriber can continue.
    pub id: Arc<str>,
    /// Its topics; the first is the canonical one. It goes to subscribers of any of them.
    pub topics: Box<[Arc<str>]>,
    /// Delivered only to subscribers that are authorized for one of its topics.
    pub private: bool,
    pub data: Bytes,
    /// `data` is not text.
    pub binary: bool,
    /// The type of the event.
    pub kind: Option<Box<str>>,
    /// The time in milliseconds after which clients reconnect.
    pub retry: Option<u64>,
    /// The id of the one subscriber that does not get it.
    pub except: Option<Arc<str>>,
    /// Kept as the last update of its topic, for [`crate::Hub::send_last`].
    pub cached: bool,
    /// Subscribers that are WebSocket connections close after it, with this code.
    pub close: Option<u16>,
    pub forms: Forms,
}

/// An update's forms, as far as they are encoded.
#[derive(Debug, Default)]
pub struct Forms([OnceLock<Bytes>; 3]);

impl Update {
    /// An update with this form, which usually has `data` inside.
    pub fn with_form(self, form: Form, encoded: Bytes) -> Self {
        let _ = self.forms.0[form as usize].set(encoded);
        self
    }

    /// Its bytes in this form.
    pub fn form(&self, form: Form, encode: impl FnOnce() -> Bytes) -> &Bytes {
        self.forms.0[form as usize].get_or_init(encode)
    }

    /// Bytes that it keeps in memory, without its forms.
    pub fn size(&self) -> usize {
        let topics: usize = self.topics.iter().map(|topic| topic.len() + size_of::<Arc<str>>()).sum();
        size_of::<Self>() + self.id.len() + topics + self.data.len()
    }
}
