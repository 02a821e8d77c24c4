//! Tests of `variables`: names and numbers. `tests/front/php.rs` tests complete requests.

use super::*;

#[test]
fn known_headers_travel_as_numbers_and_others_by_name() {
    let name = |text: &'static str| match variable_name(&HeaderName::from_static(text)) {
        None => "dropped".to_owned(),
        Some(Variable::Known(var)) => format!("#{}", VAR_NAMES[var as usize - 1]),
        Some(Variable::Spelled(spelled)) => String::from_utf8(spelled).unwrap(),
    };
    assert_eq!(name("host"), "#HTTP_HOST");
    assert_eq!(name("if-none-match"), "#HTTP_IF_NONE_MATCH");
    assert_eq!(name("x-forwarded-for"), "#HTTP_X_FORWARDED_FOR");
    assert_eq!(name("x-my-own"), "HTTP_X_MY_OWN");
    assert_eq!(name("x-my_own"), "dropped");
    assert_eq!(name("content_length"), "dropped");
    assert_eq!(name("proxy"), "dropped");
}

#[test]
fn numbers_are_written_in_full() {
    for number in [0, 7, 10, 4096, u64::MAX] {
        assert_eq!(Decimal::new(number).as_bytes(), number.to_string().as_bytes());
    }
    assert_eq!(Decimal::EMPTY.as_bytes(), b"");
}
