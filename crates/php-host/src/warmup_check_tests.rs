use super::*;

const A: &str = "k3JdU82mPq0ZxYtRw7LbNvC5";
const B: &str = "aP9sQ1dWfE4gRhT6jYuKi8Lo";
const W: &str = "mN7bVcX2zLkJhG5fDsA0pOiU";

fn page(body: &str) -> Response<'_> {
    Response { status: 200, body: body.as_bytes(), ..Response::default() }
}

fn head(head: &str) -> Response<'_> {
    Response { status: 200, head: head.as_bytes(), ..Response::default() }
}

/// Findings for these texts of the four visitors; the two on the snapshot come last.
fn found<'a>(make: fn(&'a str) -> Response<'a>, texts: [&'a str; 4]) -> Vec<String> {
    shared(&Responses { alone: [make(texts[0]), make(texts[1])], restored: [make(texts[2]), make(texts[3])] })
}

fn form(token: &str) -> String {
    format!("<form><input type=hidden name=\"_token\" value=\"{token}\"></form>")
}

#[test]
fn a_token_that_two_visitors_share_is_found_and_masked() {
    let texts = [form(A), form(B), form(W), form(W)];
    let findings = found(page, [&texts[0], &texts[1], &texts[2], &texts[3]]);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].contains("mN7b…") && !findings[0].contains(W), "{findings:?}");
    assert!(findings[0].contains("_token"), "{findings:?}");
}

#[test]
fn a_token_that_only_a_warmed_application_has_is_found() {
    let json = format!("{{\"state\":{{\"csrfToken\":\"{W}\"}}}}");
    assert_eq!(found(page, ["{}", "{}", &json, &json]).len(), 1);
}

#[test]
fn visitors_with_tokens_of_their_own_are_fine() {
    let texts = [form(A), form(B), form(W), form("q1W2e3R4t5Y6u7I8o9P0")];
    assert!(found(page, [&texts[0], &texts[1], &texts[2], &texts[3]]).is_empty());
}

#[test]
fn a_value_common_to_all_visitors_is_not_secret() {
    let text = format!("<script src=/app.{W}.js></script>");
    assert!(found(page, [&text, &text, &text, &text]).is_empty());
}

#[test]
fn a_hash_that_changes_with_the_time_is_no_secret() {
    let at = |hash: &str| format!("<meta name=\"build\" content=\"{hash}\">");
    let (before, after) = (at(A), at(W));
    assert!(found(page, [&before, &before, &after, &after]).is_empty());
}

#[test]
fn a_repeated_cookie_value_is_found() {
    let with = |id: &str| format!("X-A: b\nSet-Cookie: visitor={id}; path=/; HttpOnly\n");
    let texts = [with("17"), with("18"), with("19"), with("19")];
    let findings = found(head, [&texts[0], &texts[1], &texts[2], &texts[3]]);
    assert!(findings.len() == 1 && findings[0].contains("visitor"), "{findings:?}");
    let texts = [with("17"), with("18"), with("19"), with("20")];
    assert!(found(head, [&texts[0], &texts[1], &texts[2], &texts[3]]).is_empty());
    let constant = with("variant-a");
    assert!(found(head, [&constant, &constant, &constant, &constant]).is_empty());
}

#[test]
fn the_session_is_inspected() {
    let session = |text| Response { status: 200, session: text, ..Response::default() };
    let texts = [A, B, W, W].map(|token| format!("_csrf/form={token}\n"));
    let [a, b, c, d] = [0, 1, 2, 3].map(|i| session(texts[i].as_bytes()));
    assert_eq!(shared(&Responses { alone: [a, b], restored: [c, d] }).len(), 1);
}

#[test]
fn without_responses_to_compare_with_only_names_and_cookies_count() {
    let two = |make: fn(&'static str) -> Response<'static>, text: String| {
        let response = make(text.leak());
        shared(&Responses { restored: [response, response], ..Responses::default() })
    };
    assert_eq!(two(page, form(W)).len(), 1);
    assert_eq!(two(head, format!("Set-Cookie: PHPSESSID={W}; path=/\n")).len(), 1);
    assert!(two(page, format!("<script src=/app.{W}.js></script>")).is_empty());
    assert!(two(head, "Set-Cookie: variant=a\n".to_owned()).is_empty());
}

#[test]
fn pages_with_different_status_are_not_compared() {
    let limited = "<style>body { font: BlinkMacSystemFont, Ab1Cd2Ef3Gh4Ij5Kl6 }</style>";
    let refused = Response { status: 429, ..page(limited) };
    let responses = Responses { alone: [page("ok"), page("ok")], restored: [refused, refused] };
    assert_eq!(shared(&responses), [""; 0]);
    let form = form(W);
    let refused = Response { status: 429, ..page(&form) };
    assert_eq!(shared(&Responses { restored: [refused, refused], ..responses }).len(), 1);
}

#[test]
fn hostile_responses_do_not_panic() {
    for text in ["", "=", "Set-Cookie:", "Set-Cookie: =;", "\u{0}`\n\r", &"a1b2c3d4e5f6g7h8".repeat(20000)] {
        for make in [page as fn(&str) -> Response<'_>, head] {
            let response = make(text);
            let _ = shared(&Responses { alone: [response, page("x")], restored: [response, response] });
            let _ = shared(&Responses { restored: [response, response], ..Responses::default() });
        }
    }
}

#[test]
fn a_token_without_a_digit_looks_random_and_a_long_name_does_not() {
    assert!(looks_random(b"qWeRTyuIoPaSdFGhjKLzXcvBnMqwErTy"));
    assert!(!looks_random(b"HttpFoundationRequestStackInterface"));
    assert!(!looks_random(b"XMLHttpRequestEventTargetListener"));
    assert!(!looks_random(b"the-name-of-a-class-in-a-style-sheet"));
}
