//! Values and locks in NATS, as JetStream's buckets of keys and values.

use crate::backoff::{STEP_TIMEOUT, within};
use crate::nats::{Nats, decoded, encoded};
use crate::values::{ANNOUNCED_LIFE, LOCK_LIFE, Values, key, wait};
use async_nats::jetstream::kv::{CreateErrorKind, Entry, Operation, Store, UpdateErrorKind};
use async_nats::jetstream::stream::{self, DiscardPolicy};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// A bucket. NATS removes its entries after a time that counts from their last change.
#[derive(Clone, Copy)]
struct Bucket {
    name: &'static str,
    /// `ZERO`: they stay.
    life: Duration,
}

const VALUES: Bucket = Bucket { name: "howdah-values", life: Duration::ZERO };
const ANNOUNCED: Bucket = Bucket { name: "howdah-announced", life: ANNOUNCED_LIFE };
const LOCKS: Bucket = Bucket { name: "howdah-locks", life: LOCK_LIFE };

pub(crate) struct NatsValues {
    pub(crate) nats: Arc<Nats>,
    pub(crate) runtime: Handle,
}

impl Values for NatsValues {
    fn get(&self, key: &str) -> io::Result<Option<Vec<u8>>> {
        let (nats, key) = (self.nats.clone(), encoded(key));
        wait(&self.runtime, async move {
            for bucket in [VALUES, ANNOUNCED] {
                if let Some(entry) = entry(&bucket.store(&nats).await?, &key).await? {
                    return Ok(Some(entry.value.to_vec()));
                }
            }
            Ok(None)
        })
    }

    fn set(&self, key: &str, value: &[u8]) -> io::Result<()> {
        self.put(VALUES, key, value)
    }

    fn add(&self, key: &str, value: &[u8]) -> io::Result<()> {
        let (nats, key, value) = (self.nats.clone(), encoded(key), Bytes::copy_from_slice(value));
        wait(&self.runtime, async move { create(&VALUES.store(&nats).await?, &key, value).await.map(drop) })
    }

    fn remove(&self, key: &str) -> io::Result<()> {
        self.purge(VALUES, key)
    }

    fn announce(&self, prefix: &str, name: &str, value: &[u8]) -> io::Result<()> {
        self.put(ANNOUNCED, &key(prefix, name), value)
    }

    fn announced(&self, prefix: &str) -> io::Result<HashSet<String>> {
        let (nats, prefix) = (self.nats.clone(), key(prefix, ""));
        wait(&self.runtime, async move {
            let store = ANNOUNCED.store(&nats).await?;
            let keys = within(STEP_TIMEOUT, async {
                store.keys().await.map_err(io::Error::other)?.try_collect::<Vec<_>>().await.map_err(io::Error::other)
            });
            let texts = keys.await?.into_iter().filter_map(|key| decoded(&key));
            Ok(texts.filter_map(|text| text.strip_prefix(&prefix).map(str::to_owned)).collect())
        })
    }

    fn withdraw(&self, prefix: &str, name: &str) -> io::Result<()> {
        self.purge(ANNOUNCED, &key(prefix, name))
    }

    fn take_lock(&self, key: &str, own: &str) -> io::Result<bool> {
        let (nats, key, own) = (self.nats.clone(), encoded(key), Bytes::copy_from_slice(own.as_bytes()));
        wait(&self.runtime, async move {
            let store = LOCKS.store(&nats).await?;
            // A request whose reply was lost may have taken it.
            Ok(create(&store, &key, own.clone()).await? || holds(&store, &key, &own).await?.is_some())
        })
    }

    fn extend_lock(&self, key: &str, own: &str) -> io::Result<bool> {
        let (nats, key, own) = (self.nats.clone(), encoded(key), Bytes::copy_from_slice(own.as_bytes()));
        wait(&self.runtime, async move {
            let store = LOCKS.store(&nats).await?;
            let Some(revision) = holds(&store, &key, &own).await? else { return Ok(false) };
            within(STEP_TIMEOUT, async {
                match store.update(&key, own, revision).await {
                    Ok(_) => Ok(true),
                    Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(false),
                    Err(error) => Err(io::Error::other(error)),
                }
            })
            .await
        })
    }

    fn release_lock(&self, key: &str, own: &str) -> io::Result<()> {
        let (nats, key, own) = (self.nats.clone(), encoded(key), Bytes::copy_from_slice(own.as_bytes()));
        wait(&self.runtime, async move {
            let store = LOCKS.store(&nats).await?;
            let Some(revision) = holds(&store, &key, &own).await? else { return Ok(()) };
            let purge = store.purge_expect_revision(&key, Some(revision));
            within(STEP_TIMEOUT, async { purge.await.map_err(io::Error::other) }).await
        })
    }
}

impl NatsValues {
    fn put(&self, bucket: Bucket, key: &str, value: &[u8]) -> io::Result<()> {
        let (nats, key, value) = (self.nats.clone(), encoded(key), Bytes::copy_from_slice(value));
        wait(&self.runtime, async move {
            let store = bucket.store(&nats).await?;
            within(STEP_TIMEOUT, async { store.put(key, value).await.map_err(io::Error::other) }).await.map(drop)
        })
    }

    fn purge(&self, bucket: Bucket, key: &str) -> io::Result<()> {
        let (nats, key) = (self.nats.clone(), encoded(key));
        wait(&self.runtime, async move {
            let store = bucket.store(&nats).await?;
            within(STEP_TIMEOUT, async { store.purge(key).await.map_err(io::Error::other) }).await
        })
    }
}

impl Bucket {
    /// Opens the bucket; the first server creates it. An operator may have changed its settings, such as replicas.
    async fn store(self, nats: &Nats) -> io::Result<Store> {
        let context = nats.context().await?;
        within(STEP_TIMEOUT, async {
            if let Ok(store) = context.get_key_value(self.name).await {
                return Ok(store);
            }
            // Not `create_key_value`: it reads the account first, whose description by NATS 2.9 it does not understand.
            let config = stream::Config {
                name: format!("KV_{}", self.name),
                subjects: vec![format!("$KV.{}.>", self.name)],
                max_messages_per_subject: 1,
                max_age: self.life,
                allow_rollup: true,
                deny_delete: true,
                allow_direct: true,
                discard: DiscardPolicy::New,
                ..stream::Config::default()
            };
            context.get_or_create_stream(config).await.map_err(io::Error::other)?;
            context.get_key_value(self.name).await.map_err(io::Error::other)
        })
        .await
    }
}

/// The entry of a key, unless it was removed.
async fn entry(store: &Store, key: &str) -> io::Result<Option<Entry>> {
    let entry = within(STEP_TIMEOUT, async { store.entry(key).await.map_err(io::Error::other) }).await?;
    Ok(entry.filter(|entry| entry.operation == Operation::Put))
}

/// Creates a key; `false` if it exists.
async fn create(store: &Store, key: &str, value: Bytes) -> io::Result<bool> {
    within(STEP_TIMEOUT, async {
        match store.create(key, value).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(io::Error::other(error)),
        }
    })
    .await
}

/// The revision of a lock that `own` holds.
async fn holds(store: &Store, key: &str, own: &Bytes) -> io::Result<Option<u64>> {
    Ok(entry(store, key).await?.filter(|entry| entry.value == *own).map(|entry| entry.revision))
}
