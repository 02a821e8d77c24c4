//! Tests of `script`: paths and variables of a request. The expected values are PHP-FPM's.

use super::*;
use howdah_protocol::params::write_pair;

/// Variables for a directory, whose path stands for `ROOT`.
fn params(root: &Path, pairs: &[(&str, &str)]) -> Params {
    let mut text = Vec::new();
    for (name, value) in pairs {
        write_pair(&mut text, name.as_bytes(), value.replace("ROOT", root.to_str().unwrap()).as_bytes());
    }
    Params::parse(text).unwrap()
}

#[test]
fn scripts_are_found_and_variables_corrected_as_in_php_fpm() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    std::fs::write(root.join("a.php"), "").unwrap();
    std::fs::create_dir(root.join("dir.php")).unwrap();
    type Pairs = &'static [(&'static str, &'static str)];
    let cases: &[(&str, Pairs, Option<&str>, Pairs)] = &[
        (
            "a plain one",
            &[("SCRIPT_FILENAME", "ROOT/a.php"), ("SCRIPT_NAME", "/a.php"), ("PATH_INFO", "/x")],
            Some("ROOT/a.php"),
            &[("SCRIPT_FILENAME", "ROOT/a.php"), ("PATH_INFO", "/x")],
        ),
        (
            "the whole path in PATH_INFO",
            &[
                ("SCRIPT_FILENAME", "ROOT/a.php/x/y"),
                ("SCRIPT_NAME", "/a.php/x/y"),
                ("PATH_INFO", "/a.php/x/y"),
                ("DOCUMENT_ROOT", "ROOT/"),
            ],
            Some("ROOT/a.php"),
            &[
                ("SCRIPT_FILENAME", "ROOT/a.php"),
                ("ORIG_SCRIPT_FILENAME", "ROOT/a.php/x/y"),
                ("SCRIPT_NAME", "/a.php"),
                ("ORIG_SCRIPT_NAME", "/a.php/x/y"),
                ("PATH_INFO", "/x/y"),
                ("PATH_TRANSLATED", "ROOT/x/y"),
            ],
        ),
        (
            "Apache",
            &[
                ("SCRIPT_FILENAME", "proxy:fcgi://localhost:9000ROOT/a.php/x%20y?q=1"),
                ("SCRIPT_NAME", "/a.php/x y"),
                ("DOCUMENT_ROOT", "ROOT"),
            ],
            Some("ROOT/a.php"),
            &[
                ("SCRIPT_FILENAME", "ROOT/a.php"),
                ("SCRIPT_NAME", "/a.php"),
                ("ORIG_SCRIPT_NAME", "/a.php/x y"),
                ("PATH_INFO", "/x%20y"),
            ],
        ),
        (
            "nothing",
            &[("SCRIPT_FILENAME", "ROOT/no.php"), ("SCRIPT_NAME", "/no.php")],
            None,
            &[("ORIG_SCRIPT_FILENAME", "ROOT/no.php")],
        ),
        ("a directory", &[("SCRIPT_FILENAME", "ROOT/dir.php/")], None, &[]),
        ("a way up", &[("SCRIPT_FILENAME", "ROOT/dir.php/../a.php")], None, &[]),
        ("no variable", &[("SCRIPT_NAME", "/a.php")], None, &[]),
    ];
    for (name, pairs, script, expected) in cases {
        let mut params = params(root, pairs);
        let path = |text: &str| text.replace("ROOT", root.to_str().unwrap()).into_bytes();
        assert_eq!(find(&mut params, true), script.map(path), "{name}");
        for (variable, value) in *expected {
            let value = path(value);
            assert_eq!(params.get(variable), Some(&*value), "{name}: {variable}");
        }
    }
    let mut unfixed = params(root, &[("SCRIPT_FILENAME", "ROOT/a.php/x")]);
    assert!(find(&mut unfixed, false).unwrap().ends_with(b"/a.php/x"));
}

#[test]
fn only_scripts_are_run() {
    for (path, allowed) in
        [("/a.php", true), ("/a.phar", true), ("/a.PHP", false), ("/a.jpg", false), ("/php", false), ("/.php", false)]
    {
        assert_eq!(is_allowed(path.as_bytes(), None), allowed, "{path}");
    }
}

#[test]
fn a_pool_may_name_extensions_or_allow_any() {
    let endings = [".php".to_owned(), ".html".to_owned()];
    for (path, allowed) in [("/a.php", true), ("/a.html", true), ("/a.phar", false), ("/a.html.txt", false)] {
        assert_eq!(is_allowed(path.as_bytes(), Some(&endings)), allowed, "{path}");
    }
    assert!(is_allowed(b"/a.txt", Some(&[])));
}
