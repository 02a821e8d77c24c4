//! Chromium's `URLPattern` gives the same answers, except that its patterns may be larger.

use super::*;

const BASE: &str = "https://hub.example/.well-known/mercure";

fn matches(pattern: &str, topic: &str) -> Option<bool> {
    UrlPattern::new(pattern, BASE).map(|pattern| pattern.matches(&TopicUrl::new(topic)))
}

#[test]
fn a_pattern_matches_urls_component_by_component() {
    for (pattern, topic, is_match) in [
        ("https://example.com/books/:id", "https://example.com/books/1", true),
        ("https://example.com/books/:id", "https://example.com/books/1?a=b#c", true),
        ("https://example.com/books/:id", "https://example.com/books/1/reviews", false),
        ("https://example.com/books/:id", "https://example.com/books/", false),
        ("https://example.com/books/:id", "http://example.com/books/1", false),
        ("https://example.com/books/:id", "https://example.com:8443/books/1", false),
        ("https://example.com/books/:id", "https://EXAMPLE.com/books/1", true),
        ("https://example.com/books/:id", "https://example.com/Books/1", false),
        ("https://example.com/books/:id?", "https://example.com/books", true),
        ("https://example.com/books/:id+", "https://example.com/books/1/2", true),
        ("https://example.com/books/:id*", "https://example.com/books", true),
        ("https://example.com/users/42/*", "https://example.com/users/42/books/1", true),
        ("https://example.com/users/42/*", "https://example.com/users/42", false),
        (r"https://example.com/books/:id(\d+)", "https://example.com/books/12", true),
        (r"https://example.com/books/:id(\d+)", "https://example.com/books/x", false),
        ("https://example.com/books{/:id}?", "https://example.com/books", true),
        ("https://example.com/b{oo}ks", "https://example.com/books", true),
        (r"https://example.com/a\:b", "https://example.com/a:b", true),
        ("https://*.example.com/", "https://a.b.example.com/", true),
        ("https://:sub.example.com/", "https://a.b.example.com/", false),
        ("https://example.com:8443/*", "https://example.com:8443/a", true),
        ("https://example.com:443/*", "https://example.com/a", true),
        ("http{s}?://example.com/*", "http://example.com/a", true),
        ("https://example.com/?q=*", "https://example.com/?q=1", true),
        ("https://example.com/?q=*", "https://example.com/?r=1", false),
        ("https://example.com/#part", "https://example.com/#other", false),
        (r"https://me\:secret@example.com/", "https://me:secret@example.com/", true),
        (r"https://me\:secret@example.com/", "https://example.com/", false),
        ("https://example.com/b\u{fc}cher", "https://example.com/b%C3%BCcher", true),
        ("https://xn--bcher-kva.example/*", "https://xn--bcher-kva.example/a", true),
        ("https://example.com/a/../b", "https://example.com/b", true),
        (r"https://[\:\:1]/*", "https://[::1]/a", true),
        (r"urn\:uuid\:*", "urn:uuid:1", true),
        (r"urn\:isbn\:*", "urn:uuid:1", false),
        ("*", "https://example.com/", false),
    ] {
        assert_eq!(matches(pattern, topic), Some(is_match), "{pattern} and {topic}");
    }
}

#[test]
fn relative_patterns_and_topics_are_relative_to_the_hub() {
    let subscriptions = "/.well-known/mercure/subscriptions/exact/a/urn%3Auuid%3A1";
    for (pattern, topic, is_match) in [
        ("/.well-known/mercure/subscriptions/:type/:match/:subscriber", subscriptions, true),
        ("https://hub.example/.well-known/mercure/subscriptions/*", subscriptions, true),
        ("https://other.example/.well-known/mercure/subscriptions/*", subscriptions, false),
        ("/books/:id", "/books/1", true),
        ("/books/:id", "https://hub.example/books/1", true),
        ("/books/:id", "https://example.com/books/1", false),
        ("books/:id", "/.well-known/books/1", true),
        ("?q=:q", "/.well-known/mercure?q=1", true),
        ("#:part", "#a", true),
        ("/*", "no url at all", true),
        ("/*", "https://[broken", false),
    ] {
        assert_eq!(matches(pattern, topic), Some(is_match), "{pattern} and {topic}");
    }
}

#[test]
fn a_text_that_is_not_a_pattern_is_refused() {
    for text in [
        "https://example.com/{a",
        "https://example.com/a}",
        "https://example.com/(a",
        "https://example.com/(?a)",
        "https://example.com/((a))",
        "https://example.com/()",
        "https://example.com/([a)",
        "https://example.com/:a/:a",
        "https://example.com/a\\",
        "https://[::1]/",
        "https://example.com:(a/",
        "https://example.com/(a{9999})",
        "https://example.com/(\u{fc})",
        "https://exa mple.com/",
    ] {
        assert!(UrlPattern::new(text, BASE).is_none(), "{text}");
    }
    assert!(UrlPattern::new("*", "no URL").is_none());
}

#[test]
fn the_path_of_a_topic_is_resolved_and_decoded() {
    for (topic, path) in [
        ("https://example.com/.well-known/%6Dercure/x", Some("/.well-known/mercure/x")),
        ("/.well-known/mercure/../mercure/x", Some("/.well-known/mercure/x")),
        ("mercure/x", Some("/.well-known/mercure/x")),
        ("/a%2Fb%", Some("/a%2Fb%")),
        ("https://[broken", None),
    ] {
        assert_eq!(path_of(topic, BASE).as_deref(), path, "{topic}");
    }
}

#[test]
fn matching_takes_linear_time() {
    let pattern = UrlPattern::new("https://example.com/((?:a|a)*)*b", BASE).unwrap();
    let topic = format!("https://example.com/{}", "a".repeat(20_000));
    assert!(!pattern.matches(&TopicUrl::new(&topic)));
}
