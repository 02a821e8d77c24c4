use super::*;
use crate::key::element;
use crate::{Claims, TokenError};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair};
use serde_json::json;
use std::time::SystemTime;

const SECRET: &[u8] = b"a secret of 32 bytes or more, shared";

fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn oct(id: &str, secret: &[u8]) -> Value {
    json!({ "kty": "oct", "kid": id, "k": b64(secret) })
}

fn set(keys: &[Value]) -> Result<Keys, KeyError> {
    Keys::new(&json!({ "keys": keys }).to_string())
}

fn token(head: &Value, sign: &dyn Fn(&[u8]) -> Vec<u8>) -> String {
    let message = format!("{}.{}", b64(head.to_string().as_bytes()), b64(br#"{"mercure":{"publish":["*"]}}"#));
    let signature = b64(&sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn verify(keys: &Keys, head: &Value, sign: &dyn Fn(&[u8]) -> Vec<u8>) -> Result<(), TokenError> {
    Claims::verify(&token(head, sign), keys, SystemTime::now(), &[]).map(drop)
}

fn hs256(secret: &'static [u8]) -> impl Fn(&[u8]) -> Vec<u8> {
    move |message| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message).as_ref().to_vec()
}

#[test]
fn keys_of_every_kind_verify_their_tokens() {
    let random = SystemRandom::new();
    let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let (_, inside) = element(rsa.public_key().as_ref(), 0x30).unwrap();
    let (rest, modulus) = element(inside, 0x02).unwrap();
    let (_, exponent) = element(rest, 0x02).unwrap();
    let modulus = &modulus[usize::from(modulus[0] == 0)..];
    let rsa_jwk = json!({ "kty": "RSA", "kid": "rsa", "n": b64(modulus), "e": b64(exponent) });
    let rsa_sign = |message: &[u8]| {
        let mut signature = vec![0; rsa.public_modulus_len()];
        rsa.sign(&signature::RSA_PSS_SHA384, &random, message, &mut signature).unwrap();
        signature
    };
    let ed = Ed25519KeyPair::generate().unwrap();
    let ed_jwk = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": b64(ed.public_key().as_ref()) });
    let ed_sign = |message: &[u8]| ed.sign(message).as_ref().to_vec();
    let mut all = vec![rsa_jwk, ed_jwk, oct("secret", SECRET)];
    let pairs = [
        ("P-256", "ES256", &signature::ECDSA_P256_SHA256_FIXED_SIGNING),
        ("P-384", "ES384", &signature::ECDSA_P384_SHA384_FIXED_SIGNING),
        ("P-521", "ES512", &signature::ECDSA_P521_SHA512_FIXED_SIGNING),
    ]
    .map(|(curve, algorithm, how)| (curve, algorithm, EcdsaKeyPair::generate(how).unwrap()));
    for (curve, _, pair) in &pairs {
        let (x, y) = pair.public_key().as_ref()[1..].split_at((pair.public_key().as_ref().len() - 1) / 2);
        all.push(json!({ "kty": "EC", "crv": curve, "kid": curve, "x": b64(x), "y": b64(y), "use": "sig" }));
    }
    let keys = set(&all).unwrap();
    for with_id in [true, false] {
        let head = |algorithm: &str, id: &str| match with_id {
            true => json!({ "alg": algorithm, "kid": id }),
            false => json!({ "alg": algorithm }),
        };
        assert_eq!(verify(&keys, &head("PS384", "rsa"), &rsa_sign), Ok(()));
        assert_eq!(verify(&keys, &head("EdDSA", "ed"), &ed_sign), Ok(()));
        assert_eq!(verify(&keys, &head("HS256", "secret"), &hs256(SECRET)), Ok(()));
        for (curve, algorithm, pair) in &pairs {
            let sign = |message: &[u8]| pair.sign(&random, message).unwrap().as_ref().to_vec();
            assert_eq!(verify(&keys, &head(algorithm, curve), &sign), Ok(()), "{curve}");
            assert_eq!(verify(&keys, &json!({ "alg": algorithm, "kid": "ed" }), &sign), Err(TokenError::Algorithm));
        }
    }
    // Public parts are public, and no secrets.
    for secret in [modulus.to_vec(), ed.public_key().as_ref().to_vec()] {
        let sign = |message: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), message).as_ref().to_vec();
        assert_eq!(verify(&keys, &json!({ "alg": "HS256" }), &sign), Err(TokenError::Signature));
        assert_eq!(verify(&keys, &json!({ "alg": "HS256", "kid": "rsa" }), &sign), Err(TokenError::Algorithm));
    }
    assert_eq!(verify(&keys, &json!({ "alg": "none" }), &|_| Vec::new()), Err(TokenError::Algorithm));
}

#[test]
fn the_kid_of_a_token_selects_its_key() {
    let (one, other) = (hs256(SECRET), hs256(b"another secret of 32 bytes or more"));
    let keys = set(&[oct("1", SECRET), oct("2", b"another secret of 32 bytes or more")]).unwrap();
    let head = |id: &str| json!({ "alg": "HS256", "kid": id });
    assert_eq!((verify(&keys, &head("1"), &one), verify(&keys, &head("2"), &other)), (Ok(()), Ok(())));
    assert_eq!(verify(&keys, &head("2"), &one), Err(TokenError::Signature));
    assert_eq!(verify(&keys, &head("3"), &one), Err(TokenError::KeyId));
    assert_eq!(verify(&keys, &json!({ "alg": "HS256", "kid": 1 }), &one), Err(TokenError::Malformed));
    // One key without an id is for all tokens, and a single key is a set.
    let single = json!({ "kty": "oct", "k": b64(SECRET), "alg": "HS256", "key_ops": ["sign", "verify"] });
    for keys in [Keys::new(&single.to_string()).unwrap(), set(&[single]).unwrap()] {
        assert_eq!(verify(&keys, &head("3"), &one), Ok(()));
        assert_eq!(verify(&keys, &json!({ "alg": "HS512" }), &one), Err(TokenError::Algorithm), "`alg` of the key");
    }
    // A setting with one key, as before, takes no notice of ids.
    let plain = Keys::new(std::str::from_utf8(SECRET).unwrap()).unwrap();
    assert_eq!(verify(&plain, &head("3"), &one), Ok(()));
}

#[test]
fn keys_for_other_purposes_are_left_out() {
    let with = |name: &str, value: Value| {
        let mut key = oct("1", SECRET);
        key[name] = value;
        key
    };
    let others = [
        with("use", json!("enc")),
        with("key_ops", json!(["sign"])),
        with("alg", json!("RS256")),
        json!({ "kty": "new", "kid": "x" }),
        json!({ "kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA" }),
        json!({ "kty": "OKP", "crv": "X25519", "x": "AA" }),
    ];
    for other in &others {
        let error = set(std::slice::from_ref(other)).unwrap_err().to_string();
        assert!(error.starts_with("is a JSON Web Key Set without a key"), "{other} {error}");
        let keys = set(&[other.clone(), oct("2", SECRET)]).unwrap();
        assert_eq!(verify(&keys, &json!({ "alg": "HS256", "kid": "1" }), &hs256(SECRET)), Err(TokenError::KeyId));
        assert_eq!(verify(&keys, &json!({ "alg": "HS256", "kid": "2" }), &hs256(SECRET)), Ok(()));
    }
}

#[test]
fn a_broken_set_is_refused_and_names_its_key() {
    let key = |key: Value| json!({ "keys": [oct("good", SECRET), key] }).to_string();
    let (zeros, small) = (b64(&[0; 32]), b64(&[0xff; 64]));
    for (text, expected) in [
        (r#"{"keys":"#.to_owned(), "is not a JSON Web Key Set: EOF while parsing"),
        (" {secret".to_owned(), "is not a JSON Web Key Set: key must be a string"),
        ("{}".to_owned(), "it has no list \"keys\""),
        (r#"{"keys":{}}"#.to_owned(), "it has no list \"keys\""),
        (r#"{"keys":[]}"#.to_owned(), "without a key that can verify"),
        (key(json!(1)), "key 2 of the JSON Web Key Set is not an object"),
        (key(json!({})), "key 2 of the JSON Web Key Set has no `kty`"),
        (key(json!({ "kty": 1 })), "has a `kty` that is not a string"),
        (key(json!({ "kty": "oct", "kid": "a" })), "key \"a\" of the JSON Web Key Set has no valid `k` (base64url)"),
        (key(json!({ "kty": "oct", "k": "" })), "has no valid `k`"),
        (key(json!({ "kty": "oct", "k": "a+b/" })), "has no valid `k`"),
        (key(json!({ "kty": "RSA", "n": small, "e": "AQAB" })), "does not have 2,048 to 8,192 bits"),
        (key(json!({ "kty": "RSA", "e": "AQAB" })), "has no valid `n`"),
        (key(json!({ "kty": "RSA", "n": "AQ", "e": "AQAB", "d": "AQ" })), "is a private key"),
        (key(json!({ "kty": "EC", "crv": "P-256", "x": zeros, "y": zeros })), "not a point of its curve"),
        (key(json!({ "kty": "EC", "crv": "P-256", "x": "AA", "y": zeros })), "coordinates that do not have 32 bytes"),
        (key(json!({ "kty": "OKP", "crv": "Ed25519", "x": "AA" })), "has a broken Ed25519 key"),
        (key(json!({ "kty": "oct", "k": "AAAA", "kid": 1 })), "has a `kid` that is not a string"),
        (json!({ "keys": vec![oct("x", SECRET); MAX_KEYS + 1] }).to_string(), "33 keys; at most 32"),
    ] {
        let error = Keys::new(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    assert!(set(&vec![oct("x", SECRET); MAX_KEYS]).is_ok());
    assert!(!format!("{:?}", Keys::new(&oct("x", SECRET).to_string())).contains("secret"));
}
