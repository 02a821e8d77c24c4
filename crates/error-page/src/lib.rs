//! The page that replaces a failed response during development: the error, its place in the source, the stack, and the
//! request. For `howdah dev` only: it shows source code to anyone who can make the application fail.
//!
//! Reading order: a [`Report`] is created directly or from PHP's text ([`php::report`]); [`render`] converts it to a
//! [`Page`] in the [`Form`] that the client prefers.
#![forbid(unsafe_code)]

mod excerpt;
mod form;
mod html;
mod json;
mod names;
pub mod php;
mod report;
mod secrets;
mod text;

pub use form::Form;
pub use report::{Cause, Frame, Place, Report, Request};

/// A body with its media type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The value of `Content-Type`.
    pub media_type: &'static str,
    /// The text.
    pub body: String,
}

/// Renders the page. Reads the source files that the report names.
pub fn render(report: &Report, form: Form) -> Page {
    let body = match form {
        Form::Html => html::page(report),
        Form::Json => json::page(report),
        Form::Text => text::page(report),
    };
    Page { media_type: form.media_type(), body }
}
