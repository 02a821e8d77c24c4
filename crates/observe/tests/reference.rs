//! The committed page of metrics matches the table of metrics.

#[test]
fn the_committed_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let fresh = howdah_observe::metrics::reference();
    assert!(committed == fresh, "docs/reference/metrics.md is out of date: run `make generate` and commit it");
}
