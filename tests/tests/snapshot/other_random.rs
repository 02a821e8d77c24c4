//! Random generators of libraries other than OpenSSL that the boot has used: no two requests draw the same numbers.

use super::boot::booted;
use howdah_tests::{Mode, php, run};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn random_generators_of_other_libraries_do_not_repeat() {
    run(
        Mode::Snapshot,
        |s| {
            let s = booted(s.workers(2).ini("ffi.enable", "true"), php!("other_random/draw.php"));
            s.file("index.php", "<?php\necho json_encode(['process' => (string) getmypid()] + draw());\n")
        },
        |site| {
            let mut drawn: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            let requests = 40;
            for _ in 0..requests {
                let numbers: BTreeMap<String, String> = serde_json::from_str(&site.get_ok("/")).unwrap();
                for (kind, number) in numbers {
                    let _ = drawn.entry(kind).or_default().insert(number);
                }
            }
            let processes = drawn.remove("process").unwrap_or_default().len();
            assert!(processes < requests / 2, "workers are replaced, and nothing is restored");
            for library in ["libgnutls", "libgcrypt", "libnss3"] {
                if !drawn.keys().any(|kind| kind.starts_with(library)) {
                    howdah_skip::record(library, "its generator is drawn from");
                }
            }
            for (kind, numbers) in drawn {
                assert_eq!(numbers.len(), requests, "{kind} repeats: {numbers:?}");
            }
        },
    );
}
