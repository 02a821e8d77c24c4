//! Writes the generated pages of `docs/reference`: `cargo run -p howdah-observe --example reference`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    std::fs::create_dir_all(&dir)?;
    let metrics = ("metrics.md", howdah_observe::metrics::reference());
    for (name, text) in howdah_config::reference::files().into_iter().chain([metrics]) {
        std::fs::write(dir.join(name), text)?;
    }
    Ok(())
}
