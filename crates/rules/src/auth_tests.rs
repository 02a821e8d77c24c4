use super::*;

fn header(user: &str, password: &str) -> HeaderValue {
    let text = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    HeaderValue::from_str(&format!("Basic {text}")).unwrap()
}

/// Output of `htpasswd -nbBC 5`, `-nb` and `-nbs` for the password "secret".
const USERS: [(&str, &str); 3] = [
    ("bcrypt", "$2y$05$xZEHREeI1mL1Th6Ky4Ku3.sw.6qzbgb/eK/QUvyOkgzX72r1jvWNW"),
    ("apr1", "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/"),
    ("sha", "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="),
];

fn auth(users: &[(&str, &str)], only: &[&str]) -> Arc<Auth> {
    let users: Vec<_> = users.iter().map(|(name, hash)| ((*name).to_owned(), (*hash).to_owned())).collect();
    let only = only.iter().map(|name| Box::from(*name)).collect();
    Arc::new(Auth::new("Staff \"only\"", Users::named(&users).unwrap(), only).unwrap())
}

fn who(auth: &Arc<Auth>, value: Option<&HeaderValue>) -> Option<String> {
    match auth.ask(value, Instant::now()) {
        AuthResult::Refused => None,
        AuthResult::User(user) => Some(format!("{user} (known)")),
        AuthResult::Verify(verification) => verification.run().map(|user| user.to_string()),
    }
}

#[test]
fn a_right_password_is_verified_once() {
    let auth = auth(&USERS, &[]);
    for user in ["bcrypt", "apr1", "sha"] {
        assert_eq!(who(&auth, Some(&header(user, "wrong"))), None, "{user}");
        assert_eq!(who(&auth, Some(&header(user, "secret"))).as_deref(), Some(user));
        assert_eq!(who(&auth, Some(&header(user, "secret"))), Some(format!("{user} (known)")));
        assert_eq!(who(&auth, Some(&header(user, "secret "))), None, "{user}");
    }
    assert_eq!(who(&auth, Some(&header("nobody", "secret"))), None);
    assert_eq!(auth.challenge(), "Basic realm=\"Staff \\\"only\\\"\", charset=\"UTF-8\"");
}

#[test]
fn an_unknown_user_costs_a_verification_too() {
    let auth = auth(&USERS, &["apr1"]);
    for user in ["nobody", "sha"] {
        assert!(matches!(auth.ask(Some(&header(user, "secret")), Instant::now()), AuthResult::Verify(_)), "{user}");
        assert_eq!(who(&auth, Some(&header(user, "secret"))), None, "{user}");
    }
    assert_eq!(who(&auth, Some(&header("apr1", "secret"))).as_deref(), Some("apr1"));
}

#[test]
fn invalid_credentials_are_refused() {
    let auth = auth(&USERS, &[]);
    let long = header("sha", &"x".repeat(3000));
    for value in ["", "Basic", "Basic ", "Basic !!!", "Bearer abc", "Basic c2hh", "Basic OnNlY3JldA=="] {
        let value = HeaderValue::from_static(value);
        assert!(matches!(auth.ask(Some(&value), Instant::now()), AuthResult::Refused), "{value:?}");
    }
    for value in [None, Some(&long), Some(&header("sha", "a\0b")), Some(&header("s\nha", "secret"))] {
        assert!(matches!(auth.ask(value, Instant::now()), AuthResult::Refused), "{value:?}");
    }
}

#[test]
fn a_file_is_read_again_when_it_has_changed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let write = |text: &str| std::fs::write(file.path(), text).unwrap();
    write("# staff\n\nsha:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=:a comment\nbad:$9$x\nline\n");
    let auth = Arc::new(Auth::new("x", Users::file(file.path()).unwrap(), Vec::new()).unwrap());
    let ask =
        |seconds: u64| match auth.ask(Some(&header("sha", "secret")), Instant::now() + Duration::from_secs(seconds)) {
            AuthResult::Refused => "refused",
            AuthResult::User(_) => "known",
            AuthResult::Verify(verification) => {
                if verification.run().is_some() {
                    "right"
                } else {
                    "wrong"
                }
            }
        };
    assert_eq!((ask(0), ask(0)), ("right", "known"));
    write("sha:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n");
    assert_eq!((ask(2), ask(4)), ("right", "known"));
    std::fs::remove_file(file.path()).unwrap();
    assert_eq!((ask(6), ask(6)), ("wrong", "refused"));
    write("sha:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
    assert_ne!(ask(8), "refused");
}

#[test]
fn a_changed_file_is_read_by_the_thread_that_verifies_and_not_by_the_one_that_asks() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "sha:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n").unwrap();
    let auth = Arc::new(Auth::new("x", Users::file(file.path()).unwrap(), Vec::new()).unwrap());
    let now = Instant::now();
    assert_eq!(who(&auth, Some(&header("sha", "secret"))).as_deref(), Some("sha"));
    std::fs::write(file.path(), "# no user is left\n").unwrap();
    let later = now + Duration::from_secs(3);
    for _ in 0..2 {
        let asked = auth.ask(Some(&header("sha", "secret")), later);
        assert!(matches!(asked, AuthResult::Verify(_)), "the asking thread has read the file: {asked:?}");
    }
    let AuthResult::Verify(verification) = auth.ask(Some(&header("sha", "secret")), later) else { panic!() };
    assert_eq!(verification.run(), None);
    assert!(matches!(auth.ask(Some(&header("sha", "secret")), later), AuthResult::Refused));
}

#[test]
fn hashes_that_cannot_be_verified_are_errors() {
    let huge = "$argon2id$v=19$m=4194304,t=3,p=1$c29tZXNhbHQ$RdescudvJCsgt3ub+b5dWRWJTmaaJObG";
    for hash in
        ["", "plain", "$2y$31$short", &format!("$2y$31${}", "x".repeat(53)), "$apr1$x", "{SHA}x", "$6$a$b", huge]
    {
        assert!(Users::named(&[("a".to_owned(), hash.to_owned())]).is_err(), "{hash}");
    }
}

#[test]
fn argon2_is_verified() {
    // `echo -n secret | argon2 somesalt -id -t 1 -m 8 -e` has this form.
    use argon2::PasswordHasher as _;
    let params = argon2::Params::new(64, 1, 1, None).unwrap();
    let hasher = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    let salt = argon2::password_hash::SaltString::from_b64("c29tZXNhbHQ").unwrap();
    let hash = hasher.hash_password(b"secret", &salt).unwrap().to_string();
    let auth = auth(&[("a", &hash)], &[]);
    assert_eq!(who(&auth, Some(&header("a", "wrong"))), None);
    assert_eq!(who(&auth, Some(&header("a", "secret"))).as_deref(), Some("a"));
}
