//! Chooses the format of the error page.

/// Format of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For browsers.
    Html,
    /// For programs that request JSON.
    Json,
    /// For terminals.
    Text,
}

impl Form {
    /// The format for a request with this `Accept`. Clients that name neither HTML nor JSON, such as curl, get text.
    pub fn for_accept(accept: &str) -> Self {
        let types =
            accept.split(',').map(|part| part.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        for media_type in types {
            if media_type == "text/html" || media_type == "application/xhtml+xml" {
                return Self::Html;
            }
            if media_type == "application/json" || media_type.ends_with("+json") {
                return Self::Json;
            }
        }
        Self::Text
    }

    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
            Self::Text => "text/plain; charset=utf-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_type_that_is_known_decides() {
        for (accept, form) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Form::Html),
            ("application/json, text/plain, */*", Form::Json),
            ("application/problem+json", Form::Json),
            ("*/*", Form::Text),
            ("", Form::Text),
            ("TEXT/HTML;q=1", Form::Html),
        ] {
            assert_eq!(Form::for_accept(accept), form, "{accept}");
        }
    }
}
