//! JSON Web Key Sets: the key of a token by its `kid`, rotation by a reload, and broken sets.

use super::{SECRET, SUBSCRIBERS, openssl, publish, token_with};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use howdah_tests::{Site, scenario};
use serde_json::{Value, json};

fn oct(id: &str, secret: &str) -> Value {
    json!({ "kty": "oct", "kid": id, "k": URL_SAFE_NO_PAD.encode(secret), "alg": "HS256", "use": "sig" })
}

fn set(keys: &[&Value]) -> String {
    json!({ "keys": keys }).to_string()
}

/// Creates a key of Ed25519 in this file, and returns its public part as a JSON Web Key.
fn new_ed25519(private: &str) -> Value {
    openssl(&["genpkey", "-out", private, "-algorithm", "ED25519"]);
    let der = openssl(&["pkey", "-in", private, "-pubout", "-outform", "DER"]);
    let x = URL_SAFE_NO_PAD.encode(&der[der.len() - 32..]);
    json!({ "kty": "OKP", "crv": "Ed25519", "kid": "new", "x": x })
}

/// Runs a command of `howdah` with other keys in the file, and returns its success and messages.
fn with_keys(site: &Site, text: &str, command: &str) -> (bool, String) {
    std::fs::write(site.file("keys.json"), text).unwrap();
    let file = site.place().top.join("run/howdah.toml");
    let arguments = [command, "--config", file.to_str().unwrap()];
    let output = site.howdah().command(&arguments[..if command == "check" { 3 } else { 1 }]);
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

scenario!(
    a_set_of_keys_is_rotated_by_a_reload,
    howdah_only = "a Mercure hub is Howdah's",
    |s| {
        let s = s
            .allow_log("token refused")
            .allow_log("reload failed, nothing has changed")
            .setting("mercure.publisher_key", "\"file:@ROOT@/keys.json\"");
        s.file("keys.json", set(&[&oct("old", SECRET), &oct("other", SUBSCRIBERS)]))
    },
    |site| {
        let all = json!({ "mercure": { "publish": ["*"] } });
        let of = |key: &str, alg: &str, id: Option<&str>| {
            let mut head = json!({ "alg": alg });
            if let Some(id) = id {
                head["kid"] = id.into();
            }
            token_with(key, alg, head, all.clone())
        };
        let (good, other) = (of(SECRET, "HS256", Some("old")), of(SUBSCRIBERS, "HS256", Some("other")));
        let status = |token: &str| publish(site, token, "topic=a&data=x").status;
        for (token, expected) in [
            (&good, 200),
            (&other, 200),
            (&of(SECRET, "HS256", None), 200),
            (&of(SECRET, "HS256", Some("other")), 401),
            (&of(SECRET, "HS256", Some("unknown")), 401),
            (&of(SECRET, "HS512", Some("old")), 401),
            (&of("forged", "HS256", None), 401),
        ] {
            assert_eq!(status(token), expected, "{token}");
        }
        site.wait_for_log(&["token refused: no key has its `kid`"]);

        // The issuer adds a key, signs with it, and then removes the earlier one.
        let private = site.place().top.join("private.pem").to_str().unwrap().to_owned();
        let new = new_ed25519(&private);
        let signed = of(&private, "EdDSA", Some("new"));
        assert_eq!(status(&signed), 401);
        let (changed, text) = with_keys(site, &set(&[&oct("old", SECRET), &new]), "reload");
        assert!(changed, "{text}");
        assert_eq!((status(&good), status(&signed), status(&other)), (200, 200, 401));
        let (changed, text) = with_keys(site, &set(&[&new]), "reload");
        assert!(changed, "{text}");
        assert_eq!((status(&good), status(&signed)), (401, 200));
        // The public key is no secret.
        let public = std::fs::read_to_string(site.file("keys.json")).unwrap();
        assert_eq!(status(&of(&public, "HS256", None)), 401);
        assert_eq!(status(&of(new["x"].as_str().unwrap(), "HS256", Some("new"))), 401);

        // A broken set changes nothing.
        let broken = [
            ("{\"keys\": [", "is not a JSON Web Key Set: EOF"),
            ("{\"keys\": []}", "without a key that can verify tokens"),
            (r#"{"keys": [{"kty": "RSA", "kid": "r"}]}"#, "key \"r\" of the JSON Web Key Set has no valid `n`"),
        ];
        for (text, expected) in broken {
            for command in ["check", "reload"] {
                let (succeeded, said) = with_keys(site, text, command);
                let named = said.contains("mercure.publisher_key ") && said.contains(expected);
                assert!(!succeeded && named, "{command}: {said}");
            }
        }
        assert_eq!((status(&good), status(&signed)), (401, 200));
    },
);
