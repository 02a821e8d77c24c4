//! Processes of a site must not grow while they serve the same pages hundreds of times.

use howdah_tests::Site;
use howdah_tests::process::eventually;
use std::collections::BTreeMap;
use std::time::Duration;

/// Requests for each page before sizes are recorded: caches of PHP and of the application fill up.
const BEFORE: usize = 40;

/// Requests for each page afterwards.
const AFTER: usize = 150;

/// Permitted growth of a worker, in KiB: pages used for the first time, but not one page for each request.
const SLACK: u64 = 2048;

/// Number of measurements. A process that leaks grows every time. One that has served few requests, as others were
/// free, may still use some of its memory for the first time.
const MEASURED: usize = 3;

/// Descriptors, mappings and resident KiB.
type Size = (usize, usize, u64);

/// The size of every process of Howdah that runs PHP.
fn sizes(site: &Site) -> BTreeMap<u32, Size> {
    let mut sizes = BTreeMap::new();
    for process in site.howdah().processes() {
        let read = |what: &str| std::fs::read_to_string(format!("/proc/{}/{what}", process.pid)).unwrap_or_default();
        if !read("cmdline").contains("howdah-php") {
            continue;
        }
        let descriptors = std::fs::read_dir(format!("/proc/{}/fd", process.pid)).map_or(0, Iterator::count);
        let status = read("status");
        let rss = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or("0");
        let rss = rss.trim().trim_end_matches(" kB").parse().unwrap();
        sizes.insert(process.pid, (descriptors, read("maps").lines().count(), rss));
    }
    sizes
}

/// Requests each page hundreds of times. No process may end or grow, and each response must equal the first one: `ask`
/// sends a request for a path and returns the body without parts that differ by design.
pub(crate) fn assert_none(site: &Site, pages: &[&str], mut ask: impl FnMut(&str) -> String) {
    let first: Vec<String> = pages.iter().map(|page| ask(page)).collect();
    let mut rounds = |count| {
        for round in 0..count {
            for (page, first) in pages.iter().zip(&first) {
                assert_eq!(ask(page), *first, "{page}, request {round}");
            }
        }
    };
    rounds(BEFORE);
    let mut before = sizes(site);
    let all: Vec<u32> = before.keys().copied().collect();
    assert!(all.len() > 2, "no workers: {before:?}");
    for measured in 1..=MEASURED {
        rounds(AFTER);
        // A worker may still be finishing its last request when the client has the response.
        let mut grown = Vec::new();
        let mut after = BTreeMap::new();
        let settled = eventually(Duration::from_secs(10), || {
            after = sizes(site);
            assert!(after.keys().eq(&all), "a worker was replaced: {all:?}, {after:?}");
            grown =
                before.iter().map(|(pid, size)| (*pid, *size, after[pid])).filter(|(_, a, b)| larger(a, b)).collect();
            grown.is_empty()
        });
        if settled {
            return;
        }
        println!("measured {measured} times: process, before, after (descriptors, mappings, resident KiB): {grown:?}");
        before = grown.iter().map(|(pid, _, size)| (*pid, *size)).collect();
    }
    panic!("processes grew in each measurement");
}

fn larger(before: &Size, after: &Size) -> bool {
    after.0 > before.0 || after.1 > before.1 || after.2 > before.2 + SLACK
}
