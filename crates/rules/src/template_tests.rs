use super::*;

struct FixedVariables;

impl Variables for FixedVariables {
    fn variable(&self, variable: Variable) -> Vec<u8> {
        match variable {
            Variable::Path => b"/a b/%\xff?\r\n".to_vec(),
            Variable::Query => b"q=a b&r=%20\r\n".to_vec(),
            Variable::Host => b"example.org".to_vec(),
            Variable::Scheme => b"https".to_vec(),
            Variable::Method => b"GET".to_vec(),
            Variable::Client => b"192.0.2.1".to_vec(),
        }
    }
}

fn template(text: &str) -> Template {
    let mut template = Template::new(text).unwrap();
    template.resolve(3, |name| name == "title").unwrap();
    template
}

fn captures(one: &str) -> Captures {
    Captures::of([&b"whole"[..], one.as_bytes(), b"two"].into_iter())
}

#[test]
fn a_rewrite_gives_a_plain_path_and_an_encoded_query() {
    let expand = |text: &str, one: &str| {
        let (path, query) = template(text).expand_path(&captures(one), &FixedVariables);
        (String::from_utf8_lossy(&path).into_owned(), query.map(|query| String::from_utf8_lossy(&query).into_owned()))
    };
    assert_eq!(expand("/x/$1", "a b?c"), ("/x/a b?c".to_owned(), None));
    assert_eq!(
        expand("/i.php?t=$1&n=$2", "a&b=c d?"),
        ("/i.php".to_owned(), Some("t=a%26b%3Dc%20d%3F&n=two".to_owned()))
    );
    assert_eq!(expand("/i.php?", "x"), ("/i.php".to_owned(), Some(String::new())));
    assert_eq!(expand("/i.php?u=$query", "x").1.as_deref(), Some("u=q=a b&r=%20\r\n"));
    assert_eq!(expand("/${1}0$$2", "x").0, "/x0$2");
}

#[test]
fn a_redirect_cannot_be_tricked_into_another_host_or_line() {
    for (text, one, address) in [
        ("/$1", "/evil.org/", "/evil.org/"),
        ("/$1", "\\evil.org", "/%5Cevil.org"),
        ("https://example.org$1", ".evil.org/", "https://example.org/.evil.org/"),
        ("https://example.org$1", "/ok", "https://example.org/ok"),
        ("https://example.org/$1", "a\r\nSet-Cookie: x=y", "https://example.org/a%0D%0ASet-Cookie:%20x=y"),
        ("$scheme://www.$host$path", "", "https://www.example.org/a%20b/%25%FF%3F%0D%0A"),
        ("/x?to=$1", "a&b#c", "/x?to=a%26b%23c"),
        ("/x?$query", "", "/x?q=a%20b&r=%20%0D%0A"),
        ("$1", "//evil.org", "/evil.org"),
    ] {
        assert_eq!(template(text).expand_address(&captures(one), &FixedVariables), address, "{text} {one}");
    }
}

#[test]
fn unknown_names_are_errors() {
    for text in ["/$", "/${", "/${}", "/$-"] {
        assert!(Template::new(text).is_err(), "{text}");
    }
    for text in ["/$3", "/$uri", "/${99}"] {
        assert!(Template::new(text).unwrap().resolve(3, |_| false).is_err(), "{text}");
    }
    assert!(template("/$title").wants_captures() && !template("/$path$$").wants_captures());
}
