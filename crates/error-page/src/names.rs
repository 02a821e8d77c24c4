//! Header names in their usual spelling.

/// Converts PHP's `HTTP_X_REQUEST_ID` to `X-Request-Id`. `None` for variables that are not headers.
pub(crate) fn header_of_variable(variable: &str) -> Option<String> {
    let name = match variable {
        "CONTENT_TYPE" | "CONTENT_LENGTH" => variable,
        _ => variable.strip_prefix("HTTP_")?,
    };
    Some(in_words(name))
}

/// Capitalizes each word.
pub(crate) fn in_words(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters.map(|letter| letter.to_ascii_lowercase())).collect::<String>()
    };
    name.split(['_', '-']).map(word).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_headers_again() {
        assert_eq!(header_of_variable("HTTP_X_REQUEST_ID").as_deref(), Some("X-Request-Id"));
        assert_eq!(header_of_variable("CONTENT_TYPE").as_deref(), Some("Content-Type"));
        assert_eq!(header_of_variable("DOCUMENT_ROOT"), None);
    }
}
