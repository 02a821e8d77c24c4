//! A settings file: `howdah.toml`, or a site file. Reads and parses it, and expands short forms; the meaning of keys is
//! not known here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::origin::{ConfigError, Origin};
use howdah_rules::tree::{self, Entry, Node, Tree};

/// Key of a site's `pool` section, as opposed to a pool's name. It cannot be written in a file.
pub(crate) const OWN_POOL: &str = "\0pool";

/// A parsed file.
#[derive(Debug)]
pub(crate) struct File {
    /// Its path for messages.
    pub(crate) path: Arc<PathBuf>,
    /// The base directory of its relative paths.
    pub(crate) dir: PathBuf,
    /// Its content.
    pub(crate) root: Node,
}

impl File {
    /// Parses a file's content; `of_sites` for a site file.
    ///
    /// # Errors
    /// Each line with a TOML syntax error.
    pub(crate) fn parse(
        shown: PathBuf,
        full: &Path,
        content: Vec<u8>,
        of_sites: bool,
    ) -> Result<Self, Vec<ConfigError>> {
        let path = Arc::new(shown);
        let fail = |origin, message| ConfigError { origin, setting: String::new(), message };
        let Ok(text) = String::from_utf8(content) else {
            return Err(vec![fail(None, format!("{} is not UTF-8 text", path.display()))]);
        };
        let at = |(line, message)| fail(Some(Origin::File(Arc::clone(&path), line)), message);
        let mut root = tree::parse(&text).map_err(|errors| errors.into_iter().map(at).collect::<Vec<_>>())?;
        write_out(&mut root, of_sites);
        Ok(Self { dir: full.parent().map_or_else(PathBuf::new, PathBuf::from), path, root })
    }

    pub(crate) fn line(&self, line: usize) -> Origin {
        Origin::File(Arc::clone(&self.path), line)
    }
}

/// Expands short forms of sections: `sandbox = "app"` and `php = "8.4"`, at the top level and in pools; and
/// distinguishes a site's `[site.pool]` from the name of a pool.
fn write_out(root: &mut Node, of_sites: bool) {
    let Tree::Table(top) = &mut root.tree else { return };
    if of_sites && !top.iter().any(|entry| entry.key == "site") {
        return own_pool(top);
    }
    for entry in top {
        match entry.key.as_str() {
            "sandbox" => only(entry, "profile"),
            "php" => only(entry, "binary"),
            "pool" => {
                let Tree::Table(pools) = &mut entry.node.tree else { continue };
                pools.iter_mut().for_each(pool_in_short);
            }
            "site" => {
                let Tree::List(sites) = &mut entry.node.tree else { continue };
                for site in sites {
                    if let Tree::Table(keys) = &mut site.tree {
                        own_pool(keys);
                    }
                }
            }
            _ => {}
        }
    }
}

fn own_pool(site: &mut [Entry]) {
    for entry in site.iter_mut().filter(|entry| entry.key == "pool") {
        if matches!(entry.node.tree, Tree::Table(_)) {
            entry.key = OWN_POOL.to_owned();
            pool_in_short(entry);
        }
    }
}

/// Within a pool, PHP's settings have no separate section.
fn pool_in_short(pool: &mut Entry) {
    let Tree::Table(own) = &mut pool.node.tree else { return };
    let has_binary = own.iter().any(|entry| entry.key == "binary");
    for entry in own {
        match entry.key.as_str() {
            "sandbox" => only(entry, "profile"),
            "php" if !has_binary => entry.key = "binary".to_owned(),
            _ => {}
        }
    }
}

/// Replaces a text by a section with this single key.
fn only(entry: &mut Entry, key: &str) {
    if matches!(entry.node.tree, Tree::Text(_)) {
        let said = Entry { key: key.to_owned(), line: entry.line, node: entry.node.clone() };
        entry.node.tree = Tree::Table(vec![said]);
    }
}
