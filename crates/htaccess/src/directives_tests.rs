use super::*;

fn mistake(text: &str) -> String {
    read(text.as_bytes(), b"/root/").map(|_| ()).unwrap_err().to_string()
}

#[test]
fn errors_are_reported_with_their_line() {
    for (text, expected) in [
        ("\nRewriteRule (", "line 2: RewriteRule: RewriteRule takes"),
        ("RewriteRule ( -", "line 1: RewriteRule: the pattern"),
        ("RewriteRule a - [Z]", "line 1: RewriteRule: the flag Z: not known"),
        ("RewriteRule a - L", "write flags in brackets"),
        ("RewriteCond a", "RewriteCond takes"),
        ("RewriteEngine maybe", "takes on or off"),
        ("<Files a>\nRewriteEngine on", "line 1: <Files> is not closed"),
        ("<IfModule mod_nonsense.c>\nRewriteEngine on", "line 1: <IfModule> is not closed"),
        ("</Files>", "line 1: </Files> closes nothing"),
        ("<Files a>\n</FilesMatch>", "line 2: </FilesMatch> closes nothing"),
        ("<Directory /x>\n</Directory>", "<Directory> is not for .htaccess files"),
        ("<Nonsense>\n</Nonsense>", "<Nonsense> is not known"),
        ("<If \"%{A} ==\">\n</If>", "an argument is missing"),
        ("<If \"foo\">\n</If>", "write strings in quotes"),
        ("<ElseIf \"true\">\n</ElseIf>", "<ElseIf> without <If>"),
        ("php_admin_value a b", "php_admin_value: is not for .htaccess files"),
        ("RewriteMap a txt:/x", "is not for .htaccess files"),
        ("Require nonsense", "unknown condition Require nonsense"),
        ("Require not ip 10.1.2.3", "put it into <RequireAll>"),
        ("Require ip example.org", "`example.org` is neither an address nor a network"),
        ("Order sideways", "expected allow,deny or deny,allow"),
        ("Header sett A b", "unknown action sett"),
        ("Header set A %x", "is not a format"),
        ("Header set A b sometimes", "is not a condition"),
        ("ExpiresDefault \"access plus 1 eon\"", "is not a period"),
        ("ErrorDocument 299 /x", "299 is not a status"),
        ("Redirect /x y", "neither a path nor an address"),
        ("Options +Everything", "unknown option +Everything"),
        ("RewriteBase /a b", "takes one path"),
        ("<Limit GET NOSUCH>\n</Limit>", "a method that is not known"),
        ("<LimitExcept TRACE>\n</LimitExcept>", "a method that is not known"),
        ("ExpiresByType text/css access plus 1 month", "in quotes if it has blanks"),
        ("ExpiresDefault access plus 1 month", "in quotes if it has blanks"),
        ("<IfModule>\n</IfModule>", "line 1: <IfModule> has no condition"),
        ("<IfModule core.c>\n</IfModule >", "line 2: `</IfModule >` has a blank before its `>`"),
    ] {
        let found = mistake(text);
        assert!(found.contains(expected), "{text:?}: {found}");
    }
    let deep = "<IfModule core.c>\n".repeat(limits::DEPTH + 1) + &"</IfModule>\n".repeat(limits::DEPTH + 1);
    assert!(mistake(&deep).contains("deeper"));
    let long = format!("<If \"{}true\">\n</If>", "!".repeat(limits::EXPRESSION + 1));
    assert!(mistake(&long).contains("too long"));
}

#[test]
fn host_names_that_are_not_looked_up_exclude_no_client() {
    for text in [
        "Order allow,deny\nAllow from all\nDeny from bad.example",
        "Deny from 10.0.0.0/8 .example",
        "<RequireAll>\nRequire all granted\nRequire not host bad.example\n</RequireAll>",
        "<RequireAll>\nRequire all granted\nRequire not group staff\n</RequireAll>",
        "<RequireAll>\nRequire all granted\nRequire not forward-dns bad.example\n</RequireAll>",
        "<RequireNone>\nRequire host bad.example\n</RequireNone>",
        "<RequireNone>\n<RequireAny>\nRequire ip 10.0.0.1\nRequire group staff\n</RequireAny>\n</RequireNone>",
    ] {
        assert!(mistake(text).contains("are not looked up"), "{text:?}");
    }
    for text in ["Allow from good.example", "Require host good.example", "<RequireAny>\nRequire group a\n</RequireAny>"]
    {
        assert!(read(text.as_bytes(), b"/root/").is_ok(), "{text:?}: it admits no client");
    }
}

#[test]
fn directives_without_effect_are_logged_and_unknown_ones_are_errors() {
    let read = read(b"SetOutputFilter DEFLATE\nOptions +ExecCGI -Indexes\n", b"/").unwrap();
    assert_eq!(read.notes.iter().map(|note| note.line).collect::<Vec<_>>(), [1, 2]);
    assert!(mistake("NoSuchThing x\n").contains("unknown directive NoSuchThing"));
}

#[test]
fn sections_that_depend_on_the_server_alone() {
    for (tag, read_it) in [
        ("IfModule mod_rewrite.c", true),
        ("IfModule rewrite_module", true),
        ("IfModule !mod_rewrite.c", false),
        ("IfModule mod_php.c", true),
        ("IfModule mod_php5.c", false),
        ("IfModule mod_security2.c", false),
        ("IfDefine X", false),
        ("IfDefine !X", true),
        ("IfVersion >= 2.4", true),
        ("IfVersion < 2.4", false),
        ("IfVersion >= 2.4.10", true),
        ("IfVersion > 2.6", false),
    ] {
        let name = tag.split(' ').next().unwrap();
        let text = format!("<{tag}>\nSetOutputFilter DEFLATE\n<IfModule core.c>\n</IfModule>\n</{name}>\n");
        let read = read(text.as_bytes(), b"/").unwrap();
        assert_eq!(!read.notes.is_empty(), read_it, "{tag}");
    }
}
