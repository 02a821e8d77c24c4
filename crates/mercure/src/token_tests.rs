use super::*;
use crate::key::{Key, KeyError};
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair};
use aws_lc_rs::{hmac, rsa};
use base64::engine::general_purpose::STANDARD;

const SECRET: &str = "!ChangeThisMercureHubJWTSecretKey!";
const ALL: &str = r#"{"mercure":{"publish":["*"],"subscribe":["/a/{b}"],"payload":{"user":1}}}"#;

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_000_000)
}

fn message(head: &str, claims: &str) -> String {
    format!("{}.{}", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(claims))
}

fn signed(head: &str, claims: &str, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let message = message(head, claims);
    let signature = URL_SAFE_NO_PAD.encode(sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn hs256(claims: &str) -> String {
    hs256_with(r#"{"alg":"HS256"}"#, claims, SECRET)
}

fn hs256_with(head: &str, claims: &str, secret: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    signed(head, claims, |message| hmac::sign(&key, message).as_ref().to_vec())
}

fn hubs() -> [String; 2] {
    ["https://hub.example", "https://other.example"].map(|origin| format!("{origin}/.well-known/mercure"))
}

fn verify(token: &str) -> Result<Claims, TokenError> {
    Claims::verify(token, &Keys::new(SECRET).unwrap(), now(), &hubs())
}

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

#[test]
fn claims_are_read() {
    let claims = verify(&hs256(ALL)).unwrap();
    assert!(claims.publish.unwrap()[0].matches("anything"));
    assert!(claims.subscribe.unwrap()[0].matches("/a/1"));
    assert_eq!(claims.payload.as_deref(), Some(r#"{"user":1}"#));
    let claims = verify(&hs256(r#"{"exp":1000001.5,"nbf":999999,"mercure":{"publish":[]}}"#)).unwrap();
    assert_eq!((claims.publish.unwrap().len(), claims.subscribe.is_none()), (0, true));
    assert_eq!(claims.expires, Some(now() + Duration::from_millis(1500)));
    let claims = verify(&hs256(r#"{"sub":"x","exp":1e300}"#)).unwrap();
    assert!(claims.publish.is_none() && claims.subscribe.is_none() && claims.expires.unwrap() > now());
}

#[test]
fn invalid_tokens_are_refused() {
    use TokenError as Error;
    let good = hs256(ALL);
    let (message, _) = good.rsplit_once('.').unwrap();
    let of = |claims: &str| hs256(claims);
    for (token, error) in [
        (String::new(), Error::Malformed),
        ("a.b".to_owned(), Error::Malformed),
        ("a.b.c.d".to_owned(), Error::Malformed),
        (message.to_owned(), Error::Malformed),
        (format!("{good}="), Error::Malformed),
        ("x".repeat(MAX_LENGTH + 1), Error::Malformed),
        (format!("{message}."), Error::Signature),
        (hs256_with(r#"{"alg":"HS256"}"#, ALL, "another secret"), Error::Signature),
        (hs256_with(r#"{"alg":"HS384"}"#, ALL, SECRET), Error::Signature),
        (hs256_with(r#"{"alg":"none"}"#, ALL, SECRET), Error::Algorithm),
        (format!("{}.", self::message(r#"{"alg":"none"}"#, ALL)), Error::Algorithm),
        (hs256_with(r#"{"alg":"hs256"}"#, ALL, SECRET), Error::Algorithm),
        (hs256_with(r#"{"alg":"RS256"}"#, ALL, SECRET), Error::Algorithm),
        (hs256_with(r"{}", ALL, SECRET), Error::Algorithm),
        (hs256_with(r#"{"alg":1}"#, ALL, SECRET), Error::Algorithm),
        (hs256_with(r#"["HS256"]"#, ALL, SECRET), Error::Malformed),
        (hs256_with(r#"{"alg":"HS256","crit":["b64"],"b64":false}"#, ALL, SECRET), Error::Critical),
        (of(r#"{"exp":1000000}"#), Error::Expired),
        (of(r#"{"exp":-5}"#), Error::Expired),
        (of(r#"{"nbf":1000001}"#), Error::NotYet),
        (of(r#"{"exp":"tomorrow"}"#), Error::Claims),
        (of(r#"{"mercure":[]}"#), Error::Claims),
        (of(r#"{"mercure":{"publish":"*"}}"#), Error::Claims),
        (of(r#"{"mercure":{"subscribe":[1]}}"#), Error::Claims),
        (of("[]"), Error::Claims),
        (of("nothing"), Error::Claims),
    ] {
        assert_eq!(verify(&token).map(|_| ()), Err(error), "{token}");
    }
    // Each bit of the signature counts.
    let signature = URL_SAFE_NO_PAD.decode(good.rsplit_once('.').unwrap().1).unwrap();
    for at in 0..signature.len() {
        let mut forged = signature.clone();
        forged[at] ^= 1;
        assert_eq!(
            verify(&format!("{message}.{}", URL_SAFE_NO_PAD.encode(forged))).map(|_| ()),
            Err(TokenError::Signature)
        );
    }
}

#[test]
fn a_public_key_accepts_its_algorithms_and_is_no_secret() {
    let random = SystemRandom::new();
    let check = |pem: &str, algorithm: &str, sign: &dyn Fn(&[u8]) -> Vec<u8>| {
        let key = Keys::new(pem).unwrap();
        let verify = |token: &str| Claims::verify(token, &key, now(), &hubs()).map(|_| ());
        let head = format!(r#"{{"alg":"{algorithm}"}}"#);
        let token = signed(&head, ALL, sign);
        assert_eq!(verify(&token), Ok(()), "{algorithm}");
        let (message, signature) = token.rsplit_once('.').unwrap();
        let forged = format!("{message}.{}", URL_SAFE_NO_PAD.encode([0; 64]));
        assert_eq!(verify(&forged), Err(TokenError::Signature), "{algorithm}");
        let other = self::message(&head, r#"{"mercure":{"publish":["*"],"subscribe":["*"]}}"#);
        assert_eq!(verify(&format!("{other}.{signature}")), Err(TokenError::Signature), "{algorithm}");
        // The public key is public: as a secret it would admit any client.
        for secret in [pem, pem.trim()] {
            let confused = hs256_with(r#"{"alg":"HS256"}"#, ALL, secret);
            assert_eq!(verify(&confused), Err(TokenError::Algorithm), "{algorithm}");
        }
        assert_eq!(verify(&signed(r#"{"alg":"none"}"#, ALL, |_| Vec::new())), Err(TokenError::Algorithm));
    };
    let spki = |der: PublicKeyX509Der<'_>| pem("PUBLIC KEY", der.as_ref());

    let rsa = RsaKeyPair::generate(rsa::KeySize::Rsa2048).unwrap();
    let rsa_sign = |how: &'static dyn signature::RsaEncoding| {
        let (rsa, random) = (&rsa, &random);
        move |message: &[u8]| {
            let mut signature = vec![0; rsa.public_modulus_len()];
            rsa.sign(how, random, message, &mut signature).unwrap();
            signature
        }
    };
    let rsa_pem = spki(AsDer::as_der(rsa.public_key()).unwrap());
    check(&rsa_pem, "RS256", &rsa_sign(&signature::RSA_PKCS1_SHA256));
    check(&rsa_pem, "PS512", &rsa_sign(&signature::RSA_PSS_SHA512));
    check(&pem("RSA PUBLIC KEY", rsa.public_key().as_ref()), "RS384", &rsa_sign(&signature::RSA_PKCS1_SHA384));

    for (algorithm, how) in [
        ("ES256", &signature::ECDSA_P256_SHA256_FIXED_SIGNING),
        ("ES384", &signature::ECDSA_P384_SHA384_FIXED_SIGNING),
        ("ES512", &signature::ECDSA_P521_SHA512_FIXED_SIGNING),
    ] {
        let pair = EcdsaKeyPair::generate(how).unwrap();
        let sign = |message: &[u8]| pair.sign(&random, message).unwrap().as_ref().to_vec();
        check(&spki(AsDer::as_der(pair.public_key()).unwrap()), algorithm, &sign);
    }
    let pair = Ed25519KeyPair::generate().unwrap();
    check(&spki(AsDer::as_der(pair.public_key()).unwrap()), "EdDSA", &|message| pair.sign(message).as_ref().to_vec());
}

#[test]
fn an_invalid_key_is_refused_with_advice() {
    let x25519 =
        [0x30, 42, 0x30, 5, 0x06, 3, 0x2b, 0x65, 0x6e, 0x03, 33].into_iter().chain([0; 33]).collect::<Vec<u8>>();
    for (text, error) in [
        (String::new(), KeyError::Empty),
        (pem("PRIVATE KEY", b"x"), KeyError::Private),
        (pem("RSA PRIVATE KEY", b"x"), KeyError::Private),
        (pem("CERTIFICATE", b"x"), KeyError::Unreadable),
        (pem("PUBLIC KEY", b"x"), KeyError::Unreadable),
        (pem("PUBLIC KEY", &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), KeyError::Unreadable),
        (pem("PUBLIC KEY", &x25519), KeyError::Unsupported),
        ("-----BEGIN PUBLIC KEY-----".to_owned(), KeyError::Unreadable),
        ("-----BEGIN PUBLIC KEY-----\n!\n-----END PUBLIC KEY-----".to_owned(), KeyError::Unreadable),
    ] {
        assert_eq!(Key::new(&text).map(|_| ()), Err(error), "{text}");
    }
    assert!(!format!("{:?}", Key::new(SECRET)).contains("Change"));
}

/// An access token with these claims and otherwise valid ones.
fn access_token(typ: &str, changes: &Value) -> String {
    let mut claims = serde_json::json!({
        "iss": "https://example.com", "aud": "https://hub.example/.well-known/mercure", "exp": 1_000_600,
        "authorization_details": [
            { "type": access_token::DETAIL_TYPE, "actions": ["subscribe"], "topics": [{ "match": "a" }], "payload": { "n": 1 } },
            { "type": access_token::DETAIL_TYPE, "actions": ["subscribe", "later"],
              "topics": [{ "match": "/books/:id", "match_type": "urlpattern" }, { "match": "b" }], "payload": { "n": 2 } },
            { "type": access_token::DETAIL_TYPE, "actions": ["publish"], "topics": [{ "match": "*" }] },
            { "type": "https://example.com/other", "actions": 1 },
        ],
    });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    hs256_with(&format!(r#"{{"alg":"HS256","typ":"{typ}"}}"#), &claims.to_string(), SECRET)
}

#[test]
fn access_tokens_have_authorization_details() {
    for typ in ["at+jwt", "AT+JWT", "application/at+jwt"] {
        let claims = verify(&access_token(typ, &serde_json::json!({}))).unwrap();
        assert!(claims.is_access_token && claims.publish.as_ref().unwrap()[0].matches("anything"));
        let matches = |topic| claims.subscribe.as_ref().unwrap().iter().any(|own| own.matches(topic));
        assert!(matches("a") && matches("b") && matches("/books/1") && matches("https://hub.example/books/1"));
        assert!(!matches("c") && !matches("/books/:id/x"));
        let payload = |selector: Selector| claims.payload_of(&selector).map(String::from);
        assert_eq!(payload(Selector::exact("a")).as_deref(), Some(r#"{"n":1}"#));
        let pattern = Selector::url_pattern("/books/:id", &hubs()[0]).unwrap();
        assert_eq!(payload(pattern).as_deref(), Some(r#"{"n":2}"#));
        assert_eq!(payload(Selector::exact("c")), None);
    }
    let both = serde_json::json!({ "aud": ["x", "https://other.example/.well-known/mercure"] });
    assert!(verify(&access_token("at+jwt", &both)).is_ok());
    // Without details it allows nothing; the claim of 0.x alone makes it a token of 0.x.
    let none = verify(&hs256_with(
        r#"{"alg":"HS256","typ":"at+jwt"}"#,
        r#"{"iss":"a","aud":"https://hub.example/.well-known/mercure","exp":2000000}"#,
        SECRET,
    ));
    let none = none.unwrap();
    assert!(none.is_access_token && none.publish.is_none() && none.subscribe.is_none());
    assert!(!verify(&hs256_with(r#"{"alg":"HS256","typ":"at+jwt"}"#, ALL, SECRET)).unwrap().is_access_token);
    // The details of a token that is not an access token count for nothing.
    assert!(verify(&access_token("JWT", &serde_json::json!({}))).unwrap().publish.is_none());
}

#[test]
fn access_tokens_that_are_not_valid_in_every_part_are_refused() {
    let detail = |changes: Value| {
        let mut detail = serde_json::json!({
            "type": access_token::DETAIL_TYPE, "actions": ["publish"], "topics": [{ "match": "a" }]
        });
        for (name, value) in changes.as_object().unwrap() {
            detail[name] = value.clone();
        }
        serde_json::json!({ "authorization_details": [detail] })
    };
    let json = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    assert!(verify(&access_token("at+jwt", &detail(json("{}")))).is_ok());
    for (changes, error) in [
        (json(r#"{"exp":null}"#), TokenError::Claims),
        (json(r#"{"exp":1}"#), TokenError::Expired),
        (json(r#"{"nbf":1000001}"#), TokenError::NotYet),
        (json(r#"{"iss":""}"#), TokenError::Claims),
        (json(r#"{"iss":null}"#), TokenError::Claims),
        (json(r#"{"aud":null}"#), TokenError::Audience),
        (json(r#"{"aud":["https://hub.example"]}"#), TokenError::Audience),
        (json(r#"{"authorization_details":{}}"#), TokenError::Claims),
        (json(r#"{"authorization_details":["x"]}"#), TokenError::Claims),
        (detail(json(r#"{"actions":[]}"#)), TokenError::Claims),
        (detail(json(r#"{"actions":["publish",1]}"#)), TokenError::Claims),
        (detail(json(r#"{"topics":[]}"#)), TokenError::Claims),
        (detail(json(r#"{"topics":["a"]}"#)), TokenError::Claims),
        (detail(json(r#"{"topics":[{"match":"a","match_type":"other"}]}"#)), TokenError::Claims),
        (detail(json(r#"{"payload":1}"#)), TokenError::Claims),
    ] {
        assert_eq!(verify(&access_token("at+jwt", &changes)).err(), Some(error), "{changes}");
    }
}
