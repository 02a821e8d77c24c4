//! A text that Rust owns and C reads in place: one pointer wide, so that structures with texts can be the same on both
//! sides of the border.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::{CStr, CString, NulError, c_char};
use std::fmt;

/// An owned text without NUL bytes, with one behind it. C sees a `const char *` that is never NULL.
#[repr(transparent)]
pub struct CText(*const c_char);

// SAFETY: the text has one owner and it is never written, so it may be read and dropped by any thread.
unsafe impl Send for CText {}
// SAFETY: as above.
unsafe impl Sync for CText {}

impl CText {
    /// Copies a text.
    ///
    /// # Errors
    /// It has a NUL byte, at which C would take it to end.
    pub fn new(text: &str) -> Result<Self, NulError> {
        Ok(Self(CString::new(text)?.into_raw()))
    }

    /// The text as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // SAFETY: the pointer came from `CString::into_raw` and is taken back only by `drop`; the bytes are never
        // written.
        let text = unsafe { CStr::from_ptr(self.0) };
        // It was made from a `str`.
        text.to_str().unwrap_or_default()
    }

    /// True for the text without bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }
}

impl Drop for CText {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `CString::into_raw`, the length of the text has not changed since, and this is the
        // one place that takes it back.
        drop(unsafe { CString::from_raw(self.0.cast_mut()) });
    }
}

impl Default for CText {
    fn default() -> Self {
        Self(CString::default().into_raw())
    }
}

impl Clone for CText {
    fn clone(&self) -> Self {
        // SAFETY: as in `as_str`.
        Self(unsafe { CStr::from_ptr(self.0) }.to_owned().into_raw())
    }
}

impl PartialEq for CText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for CText {}

impl fmt::Debug for CText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl Serialize for CText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for CText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_reads_the_text_that_was_given() {
        let text = CText::new("a=ä\n").unwrap();
        // SAFETY: the text is alive.
        assert_eq!(unsafe { CStr::from_ptr(text.0) }.to_bytes(), "a=ä\n".as_bytes());
        assert_eq!((size_of::<CText>(), text.clone()), (size_of::<*const c_char>(), text));
        assert!(CText::default().is_empty());
    }

    #[test]
    fn a_nul_byte_is_refused() {
        assert!(CText::new("a\0b").is_err());
        assert!(serde_json::from_str::<CText>(r#""a\u0000b""#).is_err());
        assert_eq!(serde_json::from_str::<CText>(r#""a""#).unwrap().as_str(), "a");
    }
}
