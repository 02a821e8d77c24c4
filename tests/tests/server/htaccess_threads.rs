//! Expensive work for `.htaccess` files must not run on the I/O threads, because all their connections would wait for
//! it.

use howdah_tests::{Request, Site, scenario};
use std::fs;

/// Rules that match against a long field, each of which takes some time. None matches.
fn expensive_rules() -> String {
    let rule = |n: usize| format!("RewriteCond %{{HTTP:X-Long}} (a|aa)+(a+)*$x?{n}\nRewriteRule ^ - [F]\n");
    format!("RewriteEngine On\n{}", (0..250).map(rule).collect::<String>())
}

/// Processor time of the I/O threads in nanoseconds, and that of the server's other threads.
fn processor_time(site: &Site) -> (u64, u64) {
    let (mut io, mut others) = (0, 0);
    for thread in fs::read_dir(format!("/proc/{}/task", site.howdah().pid())).unwrap().flatten() {
        let read = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let time: u64 = read("schedstat").split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0);
        *if read("comm").starts_with("howdah-io-") { &mut io } else { &mut others } += time;
    }
    (io, others)
}

scenario!(
    expensive_htaccess_files_are_not_evaluated_by_io_threads,
    howdah_only = "the reference reads no .htaccess",
    |s| s
        .setting("htaccess", "true")
        .setting("threads", "1")
        .file("slow/.htaccess", expensive_rules())
        .file("slow/page.txt", "page"),
    |site| {
        let before = processor_time(site);
        let expensive = Request::get("/slow/page.txt").header("X-Long", &"a".repeat(15_000));
        assert_eq!(site.send(&expensive).expect(200).text(), "page");
        let after = processor_time(site);
        let (io, others) = (after.0 - before.0, after.1 - before.1);
        assert!(io < others / 2, "{io} ns on I/O threads, {others} ns on others");
    },
);
