//! A publisher's form, and the update that it becomes.

use crate::matcher::is_clean;
use crate::{EVENT_TYPE, PATH, form, new_id};
use howdah_live::{Update, path_of};
use std::sync::Arc;

/// Maximum number of topics of an update.
const MAX_TOPICS: usize = 100;
/// Maximum length of a topic, an id and a type, in bytes.
const MAX_NAME: usize = 4096;

/// An update, as a publisher describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Publication {
    /// Its topics; the first is the canonical one.
    pub topics: Vec<String>,
    pub data: String,
    pub private: bool,
    /// Its id; one is generated if it is `None` or empty.
    pub id: Option<String>,
    /// The type of the event.
    pub kind: Option<String>,
    /// The time in milliseconds after which clients reconnect.
    pub retry: Option<u64>,
}

/// Checks a name that becomes a line of an event.
fn check_name(name: &str) -> Result<(), PublicationError> {
    match name {
        long if long.len() > MAX_NAME => Err(PublicationError::LongName),
        broken if broken.contains(|c: char| c.is_ascii_control()) => Err(PublicationError::ControlCharacter),
        _ => Ok(()),
    }
}

/// Checks an id that a publisher has chosen.
///
/// # Errors
/// The id is too long, contains control characters, or is reserved.
pub fn check_id(id: &str) -> Result<(), PublicationError> {
    check_name(id)?;
    if id.starts_with('#') || id == "earliest" { Err(PublicationError::ReservedId) } else { Ok(()) }
}

/// A mistake in a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublicationError {
    #[error("`topic` is missing")]
    NoTopic,
    #[error("it has more than 100 topics")]
    ManyTopics,
    #[error("a `topic`, the `id` or the `type` is longer than 4096 bytes")]
    LongName,
    #[error("a `topic`, the `id` or the `type` contains a control or format character")]
    ControlCharacter,
    #[error("an `id` that begins with `#` or is `earliest` is reserved")]
    ReservedId,
    #[error("the topic `*` and those below the hub's own path are reserved")]
    ReservedTopic,
    #[error("the `type` `mercure` is reserved")]
    ReservedType,
    #[error("`retry` is not a number of milliseconds")]
    Retry,
    #[error("the system has no random bytes for its `id`")]
    NoRandom,
}

impl Publication {
    /// Reads a form. Unknown fields are ignored. Of repeated fields other than `topic`, the first counts.
    ///
    /// # Errors
    /// `retry` is not a number.
    pub fn from_form(form: &[u8]) -> Result<Self, PublicationError> {
        let (mut found, mut data) = (Self::default(), None);
        for (name, value) in form::fields(form) {
            match &*name {
                "topic" => found.topics.push(value),
                "data" => _ = data.get_or_insert(value),
                "private" => found.private = true,
                "id" => _ = found.id.get_or_insert(value),
                "type" => _ = found.kind.get_or_insert(value),
                "retry" if found.retry.is_none() && !value.is_empty() => {
                    found.retry = Some(value.parse().map_err(|_| PublicationError::Retry)?);
                }
                _ => {}
            }
        }
        found.data = data.unwrap_or_default();
        Ok(found)
    }

    /// Checks the names that Mercure 1.0 reserves. `hub`: the hub's URL.
    ///
    /// # Errors
    /// A topic or the type is reserved, or has format characters.
    pub fn check_reserved(&self, hub: &str) -> Result<(), PublicationError> {
        let is_own = |topic: &String| {
            let path = path_of(topic, hub);
            let below = path.as_deref().and_then(|path| path.strip_prefix(PATH));
            topic == "*" || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if self.topics.iter().any(is_own) {
            return Err(PublicationError::ReservedTopic);
        }
        if self.kind.as_deref() == Some(EVENT_TYPE) {
            return Err(PublicationError::ReservedType);
        }
        let names = self.topics.iter().chain(&self.kind).chain(&self.id);
        if names.into_iter().all(|name| is_clean(name)) { Ok(()) } else { Err(PublicationError::ControlCharacter) }
    }

    /// The update.
    ///
    /// # Errors
    /// The topic is missing, there are too many, or a name is too long, reserved or contains control characters.
    pub fn into_update(self) -> Result<Update, PublicationError> {
        use PublicationError as Error;
        let given = self.id.filter(|id| !id.is_empty());
        let kind = self.kind.as_deref();
        if self.topics.first().is_none_or(String::is_empty) {
            return Err(Error::NoTopic);
        }
        if self.topics.len() > MAX_TOPICS {
            return Err(Error::ManyTopics);
        }
        self.topics.iter().map(String::as_str).chain(kind).try_for_each(check_name)?;
        given.as_deref().map_or(Ok(()), check_id)?;
        let id: Arc<str> = given.or_else(new_id).ok_or(Error::NoRandom)?.into();
        Ok(Update {
            id,
            topics: self.topics.into_iter().map(Arc::from).collect(),
            private: self.private,
            data: self.data.into(),
            kind: self.kind.map(Into::into),
            retry: self.retry,
            ..Update::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event;

    #[test]
    fn topics_and_types_of_the_hub_itself_are_reserved() {
        let hub = "https://hub.example/.well-known/mercure";
        let check = |form: &str| Publication::from_form(form.as_bytes()).unwrap().check_reserved(hub);
        for form in [
            "topic=a&type=x&id=1",
            "topic=/.well-known/mercurex",
            "topic=https://[broken",
            "topic=/.well-known%252Fmercure",
        ] {
            assert_eq!(check(form), Ok(()), "{form}");
        }
        for topic in ["*", "/.well-known/mercure", "mercure/x", "https://other.example/.well-known/%256Dercure/x"] {
            assert_eq!(check(&format!("topic=a&topic={topic}")), Err(PublicationError::ReservedTopic), "{topic}");
        }
        assert_eq!(check("topic=a&type=mercure"), Err(PublicationError::ReservedType));
        assert_eq!(check("topic=a%E2%80%8B"), Err(PublicationError::ControlCharacter));
    }

    fn update(form: &str) -> Result<Update, PublicationError> {
        Publication::from_form(form.as_bytes())?.into_update()
    }

    #[test]
    fn a_form_becomes_an_event() {
        let found = update("topic=/a&topic=/b&data=x%0Ay&id=7&type=new&retry=5&private=&unknown=1").unwrap();
        assert_eq!((&*found.id, found.private), ("7", true));
        assert_eq!(found.topics.iter().map(|topic| &**topic).collect::<Vec<_>>(), ["/a", "/b"]);
        assert_eq!(event::of(&found).unwrap(), "event: new\nretry: 5\nid: 7\ndata: x\ndata: y\n\n");
        let found = update("topic=/a").unwrap();
        assert!(found.id.starts_with("urn:uuid:") && !found.private);
        assert_eq!(event::of(&found).unwrap(), format!("id: {}\ndata: \n\n", found.id));
    }

    #[test]
    fn values_that_would_break_the_stream_are_refused() {
        let long = format!("topic=/a&id={}", "x".repeat(MAX_NAME + 1));
        let many = "topic=a&".repeat(MAX_TOPICS + 1);
        for (form, error) in [
            ("data=x", PublicationError::NoTopic),
            ("topic=", PublicationError::NoTopic),
            ("topic=a&id=%0Adata:%20forged", PublicationError::ControlCharacter),
            ("topic=a&id=%00", PublicationError::ControlCharacter),
            ("topic=a&type=b%0D%0Adata:%20c", PublicationError::ControlCharacter),
            ("topic=a%0Ab", PublicationError::ControlCharacter),
            ("topic=a&id=%231", PublicationError::ReservedId),
            ("topic=a&id=earliest", PublicationError::ReservedId),
            ("topic=a&retry=soon", PublicationError::Retry),
            ("topic=a&retry=-1", PublicationError::Retry),
            (&long, PublicationError::LongName),
            (&many, PublicationError::ManyTopics),
        ] {
            assert_eq!(update(form).map(|update| update.id).unwrap_err(), error, "{form}");
        }
    }
}
