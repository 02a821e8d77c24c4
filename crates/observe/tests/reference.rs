//! The committed page of metrics says what the table of metrics says.

#[test]
fn the_committed_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let fresh = howdah_observe::metrics::reference();
    assert!(committed == fresh, "docs/reference/metrics.md is out of date: run `make generate` and commit it");
}
