//! Tests of rules that apply to the names of served files, in addition to those that match the path.

use super::*;
use crate::testing::{SomeFiles, rules, with_request};
use crate::trace::NoTrace;
use crate::{Access, Rules, Stop};

/// Result for a request, then for names of its destination (`+` before one that differs from the request).
fn judged(rules: &Rules, line: &str, names: &[&str]) -> String {
    with_request(line, |request| {
        let first = rules.evaluate(request, &SomeFiles, &mut NoTrace);
        let names: Vec<Name<'_>> = names
            .iter()
            .map(|text| match text.strip_prefix('+') {
                Some(path) => Name { path: path.as_bytes(), elsewhere: true, served: true },
                None => Name { path: text.as_bytes(), elsewhere: false, served: true },
            })
            .collect();
        let Some(second) = rules.judge(request, &names, first.as_deref(), &SomeFiles, &mut NoTrace) else {
            return "-".to_owned();
        };
        let mut parts: Vec<String> = second
            .access
            .iter()
            .map(|access| match access {
                Access::Limit(_) => "limit".to_owned(),
                Access::Auth(_) => "auth".to_owned(),
            })
            .collect();
        parts.extend(second.php.filter(|php| !php).map(|_| "no php".to_owned()));
        parts.extend(second.stop.as_ref().map(|stop| match stop {
            Stop::Status(status, _) => status.as_u16().to_string(),
            Stop::Redirect(_, location) => location.to_str().unwrap().to_owned(),
            other => format!("{other:?}"),
        }));
        parts.join(" ")
    })
}

const USERS: &str =
    "auth = { realm = 'r', users = { a = '$2y$05$xZEHREeI1mL1Th6Ky4Ku3.sw.6qzbgb/eK/QUvyOkgzX72r1jvWNW' } }";

#[test]
fn a_rule_for_the_name_applies_and_one_for_the_path_is_not_repeated() {
    let text = format!(
        "[[rule]]\npath = '/secret.php'\n{USERS}\n[[rule]]\npath = '/install.php'\nallow = '10.0.0.0/8'\n\
         [[rule]]\npath = '/login.php'\nmethod = 'POST'\nlimit = {{ rate = '1/m' }}\n\
         [[rule]]\npath = '/up/*'\nphp = false\n[[rule]]\npath = '/gone.php'\nstatus = 410\n\
         [[rule]]\npath = '/pay.php'\nhttps = false\nredirect = 'https://$host$path'"
    );
    let rules = rules(&text).unwrap();
    for (line, names, expected) in [
        ("GET h/secret.php/x", &["/secret.php"][..], "auth"),
        ("GET h/secret.php", &["/secret.php"], "-"),
        ("GET h/install.php/", &["/install.php"], "403"),
        ("GET h/install.php/ from 10.1.1.1", &["/install.php"], "-"),
        ("POST h/login.php/a", &["/login.php"], "limit"),
        ("POST h/login.php/a", &["/login.php", "/login.php"], "limit"),
        ("GET h/login.php/a", &["/login.php"], "-"),
        ("GET h/media/x.php", &["+/up/x.php"], "no php"),
        ("GET h/up/", &["/up/index.php"], "-"),
        ("GET h/x", &["/gone.php"], "410"),
        ("GET h/x", &["/secret.php", "/gone.php"], "auth 410"),
        ("GET h/pay.php/x", &["/pay.php"], "https://h/pay.php/x"),
        ("GET https://h/pay.php/x", &["/pay.php"], "-"),
        ("GET h/x", &["/other.php"], "-"),
    ] {
        assert_eq!(judged(&rules, line, names), expected, "{line} {names:?}");
    }
}

#[test]
fn a_restriction_lifted_for_the_path_stays_lifted() {
    let text = format!(
        "[[rule]]\npath = '/staff/*'\n{USERS}\n[[rule]]\npath = '/staff/open/*'\nauth = false\n\
         [[rule]]\npath = '*.php'\nphp = false\n[[rule]]\npath = '/index.php'\nphp = true"
    );
    let rules = rules(&text).unwrap();
    assert_eq!(judged(&rules, "GET h/staff/open/", &["/staff/open/index.html"]), "-");
    assert_eq!(judged(&rules, "GET h/x", &["/staff/y"]), "auth");
    assert_eq!(judged(&rules, "GET h/x", &["/index.php"]), "-");
    assert_eq!(judged(&rules, "GET h/x", &["/other.php"]), "no php");
    // An exception for one name does not apply to the other.
    assert_eq!(judged(&rules, "GET h/x", &["/staff/y", "/staff/open/y"]), "auth");
}

/// Otherwise a front controller could not require a password for all but a few paths.
#[test]
fn rules_for_every_path_apply_only_to_targets_of_rewrites_and_links() {
    for text in
        ["path = '/*'", "not = { path = '/hook/*' }", "path = '~^/(?!hook/)'", "path = '*'\nnot = { path = '/hook/*' }"]
    {
        let rules = rules(&format!("[[rule]]\n{text}\n{USERS}\n[[rule]]\npath = '/hook/*'\nauth = false")).unwrap();
        assert_eq!(judged(&rules, "GET h/hook/x", &["/index.php"]), "-", "{text}");
        assert_eq!(judged(&rules, "GET h/other", &["/index.php"]), "-", "{text}");
        let led = if text == "path = '/*'" { "-" } else { "auth" };
        assert_eq!(judged(&rules, "GET h/hook/x", &["+/private"]), led, "{text}");
    }
    let rules = rules("[[rule]]\npath = '*.php'\nnot = { path = '/index.php' }\nstatus = 404").unwrap();
    assert_eq!(judged(&rules, "GET h/page", &["/index.php"]), "-");
    assert_eq!(judged(&rules, "GET h/sub/", &["/sub/index.php"]), "404");
}

#[test]
fn last_ends_the_evaluation_for_a_name_too() {
    let rules = rules("[[rule]]\npath = '/open/*'\nlast = true\n[[rule]]\npath = '*.php'\ndeny = true").unwrap();
    assert_eq!(judged(&rules, "GET h/open/x.php/y", &["/open/x.php"]), "-");
    assert_eq!(judged(&rules, "GET h/x.php/y", &["/x.php"]), "403");
}

#[test]
fn sites_without_protecting_rules_are_not_evaluated_twice() {
    for (text, protect) in [
        ("cache_control = 'no-store'", false),
        ("deny = '10.0.0.0/8'", false),
        ("path = '/x'\nphp = true", false),
        ("path = '/x'\nlast = true", false),
        ("path = '/x'\nredirect = '/y'", false),
        ("path = '/x'\ndeny = true", true),
        ("exists = 'file'\nphp = false", true),
    ] {
        assert_eq!(rules(&format!("[[rule]]\n{text}")).unwrap().protect(), protect, "{text}");
    }
}

#[test]
fn a_path_that_is_left_open_above_a_protected_one_is_found() {
    let found = |text: &str| rules(&format!("[[rule]]\n{text}")).unwrap().open_above().next().map(|(_, path)| path);
    assert_eq!(found("path = '/admin/*'\nallow = '10.0.0.0/8'").as_deref(), Some("/admin"));
    assert_eq!(found("path = ['/a', '/a/*', '/b/*']\ndeny = true").as_deref(), Some("/b"));
    for closed in
        ["path = ['/admin', '/admin/*']\ndeny = true", "path = '/x/*'\nphp = false", "path = '/*'\ndeny = true"]
    {
        assert_eq!(found(closed), None, "{closed}");
    }
}
