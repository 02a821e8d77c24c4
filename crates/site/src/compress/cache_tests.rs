//! Tests of the cache: second sighting, verification by bytes under forced collisions, bounds, eviction, threads.

use super::*;
use howdah_config::Algorithm::{Gzip, Zstd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const GZIP: Coding = Coding { algorithm: Gzip, level: 1 };

/// Every body has the same hash.
fn constant(_: &[u8]) -> u64 {
    7
}

fn body(text: &str, length: usize) -> Vec<u8> {
    text.bytes().cycle().take(length).collect()
}

/// Shows a body until it is admitted, and stores `encoded` for it.
fn admit(cache: &Cache, coding: Coding, body: &[u8], encoded: &'static [u8]) {
    for _ in 0..3 {
        if let CacheLookup::Again(admission) = cache.look(coding, body) {
            assert_eq!(admission.original(), body);
            return admission.complete(Bytes::from_static(encoded));
        }
    }
    panic!("not admitted");
}

fn hit(cache: &Cache, coding: Coding, body: &[u8]) -> Option<Bytes> {
    match cache.look(coding, body) {
        CacheLookup::Hit(encoded) => encoded,
        _ => None,
    }
}

#[test]
fn admitted_on_the_second_sighting() {
    let cache = Cache::new(1 << 20);
    let page = body("page", 5000);
    assert!(matches!(cache.look(GZIP, &page), CacheLookup::New));
    let CacheLookup::Again(admission) = cache.look(GZIP, &page) else { panic!("seen twice") };
    assert!(matches!(cache.look(GZIP, &page), CacheLookup::Again(_)), "nothing is stored yet");
    admission.complete(Bytes::from_static(b"small"));
    assert_eq!(hit(&cache, GZIP, &page).unwrap(), "small");
    assert_eq!(cache.usage(), (1, 5000 + 5 + OVERHEAD));
}

#[test]
fn one_off_bodies_are_not_cached() {
    let cache = Cache::new(1 << 20);
    for number in 0..5000 {
        assert!(matches!(cache.look(GZIP, &body(&format!("nonce {number}"), 2000)), CacheLookup::New));
    }
    assert_eq!(cache.usage(), (0, 0));
}

#[test]
fn a_hash_collision_never_returns_other_bytes() {
    let cache = Cache::with_hasher(1 << 20, constant);
    let mut one = body("one", 4000);
    let (two, three) = (body("two", 4000), body("three", 4000));
    admit(&cache, GZIP, &one, b"encoded one");
    assert_eq!(hit(&cache, GZIP, &two), None);
    one[3999] ^= 1;
    assert_eq!(hit(&cache, GZIP, &one), None, "differs in the last byte");
    one[3999] ^= 1;
    assert_eq!(hit(&cache, GZIP, &one).unwrap(), "encoded one");
    // The second body is stored under the hash of all bytes. If two collide there too, the later one replaces the
    // earlier.
    admit(&cache, GZIP, &two, b"encoded two");
    assert_eq!(hit(&cache, GZIP, &two).unwrap(), "encoded two");
    assert_eq!(hit(&cache, GZIP, &one).unwrap(), "encoded one");
    admit(&cache, GZIP, &three, b"encoded three");
    assert_eq!(hit(&cache, GZIP, &three).unwrap(), "encoded three");
    assert_eq!(hit(&cache, GZIP, &two), None);
    assert_eq!(hit(&cache, GZIP, &one).unwrap(), "encoded one");
    assert_eq!(cache.usage().0, 2);
}

/// A page of 50 KB with a token at a position that the first hash does not read.
fn page_with_token(token: u32) -> Vec<u8> {
    let mut page = body("page ", 50_000);
    // The samples are in the middle of 32 equal parts between the two ends.
    page[ENDS + 10..ENDS + 20].copy_from_slice(format!("{token:010}").as_bytes());
    page
}

#[test]
fn pages_that_differ_outside_the_sample_are_distinguished_and_all_stay() {
    let cache = Cache::new(4 << 20);
    assert_eq!(cache.sample(&page_with_token(1)[..]), cache.sample(&page_with_token(2)[..]), "the test's own premise");
    for token in 0..10 {
        admit(&cache, GZIP, &page_with_token(token), &b"0123456789"[token as usize..][..1]);
    }
    for token in 0..10 {
        assert_eq!(hit(&cache, GZIP, &page_with_token(token)).unwrap(), &b"0123456789"[token as usize..][..1]);
    }
    assert_eq!(cache.usage().0, 10);
}

#[test]
fn pages_with_changing_tokens_use_no_further_entries() {
    let cache = Cache::new(1 << 20);
    admit(&cache, GZIP, &page_with_token(0), b"first");
    for token in 1..2000 {
        assert!(matches!(cache.look(GZIP, &page_with_token(token)), CacheLookup::New));
    }
    assert_eq!(cache.usage().0, 1);
    assert_eq!(hit(&cache, GZIP, &page_with_token(0)).unwrap(), "first");
}

#[test]
fn an_entry_with_only_collisions_is_evicted() {
    let cache = Cache::new(300_000);
    admit(&cache, GZIP, &page_with_token(0), b"old");
    for number in 0..20 {
        assert_eq!(hit(&cache, GZIP, &page_with_token(1)), None);
        admit(&cache, GZIP, &body(&format!("other {number} "), 50_000), b"other");
    }
    assert_eq!(hit(&cache, GZIP, &page_with_token(0)), None);
}

#[test]
fn algorithm_level_and_length_are_part_of_the_key() {
    let cache = Cache::with_hasher(1 << 20, constant);
    let page = body("x", 3000);
    admit(&cache, GZIP, &page, b"gzip 1");
    admit(&cache, Coding { algorithm: Gzip, level: 2 }, &page, b"gzip 2");
    admit(&cache, Coding { algorithm: Zstd, level: 1 }, &page, b"zstd 1");
    admit(&cache, GZIP, &page[..2999], b"shorter");
    assert_eq!(cache.usage().0, 4);
    assert_eq!(hit(&cache, GZIP, &page).unwrap(), "gzip 1");
    assert_eq!(hit(&cache, Coding { algorithm: Gzip, level: 2 }, &page).unwrap(), "gzip 2");
    assert_eq!(hit(&cache, Coding { algorithm: Zstd, level: 1 }, &page).unwrap(), "zstd 1");
    assert_eq!(hit(&cache, GZIP, &page[..2999]).unwrap(), "shorter");
}

#[test]
fn the_stored_original_does_not_share_the_callers_memory() {
    let cache = Cache::new(1 << 20);
    let mut page = body("mapped file", 4000);
    admit(&cache, GZIP, &page, b"old");
    // The file behind the caller's slice changes in place.
    page[100] ^= 1;
    assert_eq!(hit(&cache, GZIP, &page), None);
    page[100] ^= 1;
    assert_eq!(hit(&cache, GZIP, &page).unwrap(), "old");
}

#[test]
fn useless_encodings_are_remembered() {
    let cache = Cache::new(1 << 20);
    let page = body("noise", 4000);
    assert!(matches!(cache.look(GZIP, &page), CacheLookup::New));
    let CacheLookup::Again(admission) = cache.look(GZIP, &page) else { panic!("seen twice") };
    admission.useless();
    assert!(matches!(cache.look(GZIP, &page), CacheLookup::Hit(None)));
}

#[test]
fn memory_is_bounded_and_used_entries_stay() {
    let budget = 200_000;
    let cache = Cache::new(budget);
    let favourite = body("favourite", 9000);
    admit(&cache, GZIP, &favourite, b"kept");
    for number in 0..300 {
        admit(&cache, GZIP, &body(&format!("page {number} "), 9000), b"page");
        assert_eq!(hit(&cache, GZIP, &favourite).unwrap(), "kept", "after {number}");
        assert!(cache.usage().1 <= budget);
    }
    let (entries, _) = cache.usage();
    assert!(entries > 10, "{entries}");
    assert_eq!(hit(&cache, GZIP, &body("page 0 ", 9000)), None);
    assert!(hit(&cache, GZIP, &body("page 299 ", 9000)).is_some());
}

#[test]
fn too_large_and_off() {
    let cache = Cache::new(100_000);
    for _ in 0..4 {
        assert!(matches!(cache.look(GZIP, &body("large", 60_000)), CacheLookup::New));
    }
    let off = Cache::new(0);
    for _ in 0..4 {
        assert!(matches!(off.look(GZIP, &body("any", 2000)), CacheLookup::New));
        assert!(matches!(off.look(GZIP, b""), CacheLookup::New));
    }
    assert_eq!(off.usage(), (0, 0));
    // Larger when encoded than the whole budget (this cannot come from `encode`, only from a caller's error).
    let page = body("p", 4000);
    assert!(matches!(cache.look(GZIP, &page), CacheLookup::New));
    let CacheLookup::Again(admission) = cache.look(GZIP, &page) else { panic!("seen twice") };
    admission.complete(Bytes::from(vec![0; 200_000]));
    assert_eq!(cache.usage(), (0, 0));
}

#[test]
fn shards_share_one_budget() {
    let budget = 20 << 20;
    let cache = Cache::new(budget);
    assert_eq!(cache.inner.shards.len(), 5);
    for number in 0..400 {
        admit(&cache, GZIP, &body(&format!("page {number} "), 100_000), b"page");
    }
    let (_, bytes) = cache.usage();
    assert!(bytes <= budget && bytes > budget / 2, "{bytes}");
}

#[test]
fn threads_see_their_own_bytes() {
    let cache = Cache::with_hasher(300_000, |body| u64::from(body[0] % 4));
    let hits = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let (cache, hits) = (&cache, &hits);
            scope.spawn(move || {
                for round in 0..2000_u32 {
                    // Four threads compete for each of four keys.
                    let number = (round / 8) as u8 % 4;
                    let page = [vec![number; 2000], vec![thread; 4]].concat();
                    match cache.look(GZIP, &page) {
                        CacheLookup::Hit(encoded) => {
                            assert_eq!(encoded.unwrap(), [number, thread][..]);
                            hits.fetch_add(1, Relaxed);
                        }
                        CacheLookup::Again(admission) => admission.complete(Bytes::copy_from_slice(&[number, thread])),
                        CacheLookup::New => {}
                    }
                }
            });
        }
    });
    assert!(hits.into_inner() > 0 && cache.usage().1 <= 300_000, "{:?}", cache.usage());
}
