//! Differences from Apache with a reason, as documented in docs/reference/htaccess.md.

use super::Outcome;
use super::generated::TestRequest;

/// Removes parts that are not compared. Returns the reason if nothing of this request is compared.
pub(super) fn settle(asked: &TestRequest, theirs: &mut Outcome, ours: &mut Outcome) -> Option<&'static str> {
    let is = |outcome: &Outcome, status: &str| outcome["status"] == status;
    if asked.target.contains("/.") {
        return Some("names that begin with a dot are not there");
    }
    if theirs.get("body").is_some_and(|body| body.starts_with("<?php")) {
        return Some("the source of PHP is not sent");
    }
    if theirs.get("php:REDIRECT_STATUS").is_some_and(|status| !status.starts_with('2')) {
        // An error page has no body to read.
        theirs.insert("php:body".to_owned(), "0".to_owned());
    }
    if !matches!(&*asked.method, "GET" | "HEAD") {
        if is(theirs, "405") || is(ours, "405") || (asked.method == "OPTIONS" && theirs.contains_key("allow")) {
            return Some("files are there for GET and HEAD, and OPTIONS is for scripts");
        }
        if asked.method == "POST" && is(theirs, "404") && is(ours, "403") {
            return Some("a directory without an index is 403 for all methods");
        }
    }
    if (is(theirs, "200") || is(theirs, "304")) && is(ours, "404") && asked.target.contains(".txt/info") {
        return Some("AcceptPathInfo has no effect for files");
    }
    if is(theirs, "403") && is(ours, "403") && theirs.contains_key("php:script") && !ours.contains_key("php:script") {
        return Some("an error's page that <If> refuses too is not shown");
    }
    let text = |outcome: &Outcome, name: &str| outcome.get(name).cloned().unwrap_or_default();
    let whole = text(ours, "php:script") + &text(ours, "php:info");
    if text(theirs, "php:info").is_empty() && text(theirs, "php:script") == whole && text(ours, "php:script") != whole {
        return Some("[DPI] of a rule that leads to the same URL makes no longer name of the script");
    }
    if is(theirs, "206") && !is(ours, "206") {
        return Some("what a script responds is sent as a whole");
    }
    if theirs.get("php:REDIRECT_STATUS").is_some_and(|status| status.starts_with('3')) {
        theirs.remove("php:REDIRECT_STATUS");
    }
    if theirs["status"].starts_with('3') && !is(theirs, "304") && !theirs.contains_key("location") {
        return Some("a redirect that later rules have undone leaves no status behind");
    }
    if !theirs.contains_key("php:HTTP_AUTHORIZATION") {
        // Scripts always receive it.
        ours.remove("php:HTTP_AUTHORIZATION");
    }
    if is(theirs, "416") {
        // They contain the file's length.
        ours.remove("content-range");
        ours.remove("etag");
    }
    if let Some(challenge) = ours.get_mut("www-authenticate") {
        // Passwords are UTF-8.
        *challenge = challenge.replace(", charset=\"UTF-8\"", "");
    }
    settle_types(theirs, ours);
    None
}

fn settle_types(theirs: &mut Outcome, ours: &mut Outcome) {
    let no_charset = |kind: &String| !kind.contains("charset");
    if theirs.get("content-type").is_none_or(no_charset)
        && let Some(kind) = ours.get_mut("content-type")
        && let Some(plain) = kind.strip_suffix("; charset=utf-8")
    {
        // Text has a charset here.
        *kind = plain.to_owned();
    }
    let utf8 = ours.get("content-type").is_some_and(|kind| kind == "text/html; charset=utf-8");
    if utf8 && theirs.get("content-type").is_some_and(|kind| kind == "text/html; charset=iso-8859-1") {
        // So has the text of an `ErrorDocument`.
        theirs.insert("content-type".to_owned(), "text/html; charset=utf-8".to_owned());
    }
    for outcome in [theirs, ours] {
        // Apache sends a generic type or none; the tables of types differ slightly.
        let vague = ["application/octet-stream", "application/sql", "application/x-sql"];
        if outcome.get("content-type").is_some_and(|kind| vague.contains(&kind.as_str())) {
            outcome.remove("content-type");
        }
        // Apache ignores everything after an unset `secure`.
        if let Some(cookie) = outcome.get_mut("set-cookie") {
            *cookie = cookie.replace("; HttpOnly", "");
        }
    }
}
