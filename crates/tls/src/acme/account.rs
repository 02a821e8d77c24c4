//! The ACME account: created once, kept in the storage, and shared by all servers that use the storage.

use crate::acme::Options;
use crate::acme::blocking::blocking;
use crate::acme::failure::{Failure, patiently};
use crate::acme::http_client::Client;
use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use howdah_store::Storage;
use instant_acme::{Account, AccountCredentials, ExternalAccountKey, NewAccount};
use std::time::Duration;

const FILE: &str = "account.json";
const LOCK: &str = "account.lock";

/// Opens or creates the account, and fetches the authority's directory.
pub(super) async fn open(storage: &Storage, client: &Client, options: &Options) -> Result<Account, Failure> {
    if let Some(credentials) = read(storage).await? {
        return restore(credentials, client).await;
    }
    let _lock = loop {
        let locked = storage.clone();
        match blocking(move || locked.try_lock(LOCK)).await? {
            Ok(Some(lock)) => break lock,
            Ok(None) => tokio::time::sleep(Duration::from_millis(100)).await,
            Err(error) => return Err(Failure::of_authority(format!("cannot lock the account: {error}"))),
        }
    };
    // Another server may have created the account in the meantime.
    if let Some(credentials) = read(storage).await? {
        return restore(credentials, client).await;
    }
    let contact = options.email.as_ref().map(|email| format!("mailto:{email}"));
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    let new = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
    let external = options.external_account.as_ref().map(|(id, key)| external(id, key)).transpose()?;
    let builder = || Account::builder_with_http(Box::new(client.clone()));
    let made = patiently!(builder().create(&new, options.directory.clone(), external.as_ref()));
    let (account, credentials) = made.map_err(|error| {
        let failure = Failure::of("cannot create an account", &error, client.take_retry_after());
        Failure { whose: crate::acme::failure::FailureScope::Authority, ..failure }
    })?;
    let text = serde_json::to_vec(&credentials).map_err(|error| Failure::of_authority(error.to_string()))?;
    let kept = storage.clone();
    let write = move || {
        kept.keep_copy(FILE, &text);
        kept.write(FILE, &text)
    };
    let written = blocking(write).await?;
    written.map_err(|error| Failure::of_authority(format!("cannot save the account: {error}")))?;
    tracing::info!("created an ACME account at {}", options.directory);
    Ok(account)
}

/// Deletes the stored account, which the authority no longer knows.
pub(super) async fn forget(storage: &Storage) {
    let storage = storage.clone();
    let _ = blocking(move || storage.remove(FILE)).await;
}

async fn restore(credentials: AccountCredentials, client: &Client) -> Result<Account, Failure> {
    let builder = Account::builder_with_http(Box::new(client.clone()));
    let restored = builder.from_credentials(credentials).await;
    restored.map_err(|error| Failure::of("cannot reach the authority", &error, client.take_retry_after()))
}

async fn read(storage: &Storage) -> Result<Option<AccountCredentials>, Failure> {
    let place = storage.place(FILE);
    let wrong = |why: String| Failure::of_authority(format!("cannot read {place}: {why}"));
    let storage = storage.clone();
    let text = blocking(move || storage.read_kept(FILE)).await?.map_err(|error| wrong(error.to_string()))?;
    let parse = |text: Vec<u8>| serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()));
    text.map(parse).transpose()
}

fn external(id: &str, key: &str) -> Result<ExternalAccountKey, Failure> {
    let bytes = URL_SAFE_NO_PAD.decode(key).or_else(|_| URL_SAFE.decode(key));
    let bytes = bytes.map_err(|_| Failure::of_authority("the key in `acme.eab` is not base64url"))?;
    Ok(ExternalAccountKey::new(id.to_owned(), &bytes))
}
