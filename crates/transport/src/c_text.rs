//! A string that Rust owns and C reads in place. It is one pointer wide, so that structures with strings have the same
//! layout in Rust and C.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::{CStr, CString, NulError, c_char};
use std::fmt;

/// An owned string without NUL bytes, NUL-terminated. C sees a `const char *` that is never NULL.
#[repr(transparent)]
pub struct CText(*const c_char);

// SAFETY: the string has one owner and is never written, so any thread may read and drop it.
unsafe impl Send for CText {}
// SAFETY: as above.
unsafe impl Sync for CText {}

impl CText {
    /// Copies a string.
    ///
    /// # Errors
    /// The string contains a NUL byte, which would end it for C.
    pub fn new(text: &str) -> Result<Self, NulError> {
        Ok(Self(CString::new(text)?.into_raw()))
    }

    /// The string without its terminating NUL.
    pub fn as_str(&self) -> &str {
        // SAFETY: the pointer came from `CString::into_raw` and is taken back only by `drop`; the bytes are never
        // written.
        let text = unsafe { CStr::from_ptr(self.0) };
        // Created from a `str`, so it is UTF-8.
        text.to_str().unwrap_or_default()
    }

    /// True if the string has no bytes.
    pub fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }
}

impl Drop for CText {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `CString::into_raw`, the string's length has not changed since, and only this
        // code takes it back.
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
        // SAFETY: the string is alive.
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
