//! Watch mode: reloads a pool when a file that matches its `watch` patterns changes.
//!
//! The server polls the files instead of using the kernel's notifications. Polling works on every file system (shared
//! directories of containers and network mounts send no notifications), sees files that appear later, and has no limit
//! on their number. The interval grows with the duration of a poll, so that polling takes at most a twentieth of one
//! core while no file changes.

use howdah_config::{Glob, Settings};
use howdah_pool::Pool;
use howdah_site::server::Server;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, spawn_blocking};

use crate::server::revision::Revision;

/// Minimum pause between two polls.
const MIN_INTERVAL: Duration = Duration::from_millis(200);
/// Pause between polls, as a multiple of a poll's duration.
const INTERVAL_FACTOR: u32 = 20;
/// Time without changes before a reload: editors and checkouts write many files one after the other.
const SETTLE_TIME: Duration = Duration::from_millis(150);

/// A reload that begins within this time after the last one counts as quick.
const QUICK: Duration = Duration::from_secs(10);
/// Number of quick reloads in a row from which they are delayed. An application that writes files it watches would
/// reload forever.
const MAX_QUICK: u32 = 10;
/// First delay after that, which doubles each time, and the maximum delay.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(60);

/// Identifies a state of a file: a new file under the same name has another inode.
type FileStamp = (i64, i64, u64, u64);
type FileStamps = BTreeMap<PathBuf, FileStamp>;

/// Files that match patterns, as of the last poll.
pub(crate) struct WatchedFiles {
    globs: Arc<Vec<Glob>>,
    known: FileStamps,
    took: Duration,
}

impl WatchedFiles {
    /// Polls for the first time. `None` while the server ends.
    async fn first(globs: Arc<Vec<Glob>>) -> Option<Self> {
        let (known, took) = look(&globs).await?;
        Some(Self { globs, known, took })
    }

    /// Waits until files change and settle; returns one of those that changed. `None` while the server ends.
    async fn next_change(&mut self) -> Option<PathBuf> {
        loop {
            tokio::time::sleep(MIN_INTERVAL.max(self.took * INTERVAL_FACTOR)).await;
            let (now, took) = look(&self.globs).await?;
            self.took = took;
            if let Some(changed) = difference(&self.known, &now) {
                self.known = calm(&self.globs, now).await?;
                return Some(changed);
            }
        }
    }
}

/// First poll, for each pool with patterns. Must precede the start of PHP: a change between PHP's reading and a later
/// first poll would go unnoticed.
pub(crate) async fn look_first(settings: &Settings) -> Vec<Option<WatchedFiles>> {
    let mut all = Vec::new();
    for pool in &settings.pools {
        let globs = globs(&pool.watch);
        let watched = if globs.is_empty() { None } else { WatchedFiles::first(globs).await };
        if let Some(watched) = &watched {
            tracing::info!(pool = pool.name, files = watched.known.len(), "watching for changes");
        }
        all.push(watched);
    }
    all
}

/// The patterns were checked and made absolute when the settings were loaded.
fn globs(patterns: &[String]) -> Arc<Vec<Glob>> {
    Arc::new(patterns.iter().filter_map(|text| Glob::new(text, Path::new("/")).ok()).collect())
}

/// Watches the files of every pool with patterns, and pages under development. Dropping the set stops watching.
pub(crate) fn start(watched: Vec<Option<WatchedFiles>>, revision: &Revision) -> JoinSet<()> {
    let (mut watchers, pools, server) = (JoinSet::new(), &revision.pools, &revision.sites.server);
    if !revision.settings.page_files.is_empty() {
        watchers.spawn(watch_pages(globs(&revision.settings.page_files), server.clone()));
    }
    for (pool, watched) in pools.iter().zip(watched) {
        if let Some(watched) = watched {
            watchers.spawn(watch(pool.clone(), watched, server.clone()));
        }
    }
    watchers
}

/// Delays reloads that follow each other quickly.
#[derive(Debug, Default)]
struct Debounce {
    /// Number of quick reloads in a row.
    quick: u32,
}

impl Debounce {
    /// Returns the pause after a reload. `since_last`: time from the end of the previous reload and its pause to the
    /// begin of this one.
    fn pause(&mut self, since_last: Duration) -> Duration {
        self.quick = if since_last < QUICK { self.quick + 1 } else { 0 };
        match self.quick.checked_sub(MAX_QUICK) {
            None => Duration::ZERO,
            Some(more) => (FIRST_DELAY * 2u32.pow(more.min(8))).min(MAX_DELAY),
        }
    }
}

/// Reloads pages in browsers when one of these files changes.
async fn watch_pages(globs: Arc<Vec<Glob>>, server: Arc<Server>) {
    let Some(mut watched) = WatchedFiles::first(globs).await else { return };
    while let Some(changed) = watched.next_change().await {
        server.reload_pages(&changed);
    }
}

/// Polls until the files stop changing and returns their state. `None` while the server ends.
async fn calm(globs: &Arc<Vec<Glob>>, mut now: FileStamps) -> Option<FileStamps> {
    loop {
        tokio::time::sleep(SETTLE_TIME).await;
        let (later, _) = look(globs).await?;
        if difference(&now, &later).is_none() {
            return Some(later);
        }
        now = later;
    }
}

async fn watch(pool: Arc<Pool>, mut watched: WatchedFiles, server: Arc<Server>) {
    let (mut pace, mut reloaded_at) = (Debounce::default(), Instant::now());
    while let Some(changed) = watched.next_change().await {
        tracing::info!(pool = pool.name(), "{} has changed: reloading", changed.display());
        let since_last = reloaded_at.elapsed();
        if let Err(why) = pool.reload().await {
            // The pool has logged the failure too; this line adds that the next change starts the next attempt.
            tracing::warn!(pool = pool.name(), "reload failed, waiting for the next change: {why}");
        }
        server.reload_pages(&changed);
        let pause = pace.pause(since_last);
        if pause == FIRST_DELAY {
            tracing::warn!(
                pool = pool.name(),
                "watched files change continuously (last: {}): delaying reloads; if the application writes this file, \
                 exclude it from `watch`",
                changed.display()
            );
        }
        tokio::time::sleep(pause).await;
        reloaded_at = Instant::now();
    }
}

/// Polls all watched files; returns their stamps and the duration of the poll. `None` while the server ends.
async fn look(globs: &Arc<Vec<Glob>>) -> Option<(FileStamps, Duration)> {
    let globs = globs.clone();
    let looked = spawn_blocking(move || {
        let began = Instant::now();
        let mut found = BTreeSet::new();
        for glob in &*globs {
            glob.find(&mut found);
        }
        let marks = found.into_iter().filter_map(|path| {
            let meta = std::fs::metadata(&path).ok()?;
            Some((path, (meta.mtime(), meta.mtime_nsec(), meta.size(), meta.ino())))
        });
        (marks.collect(), began.elapsed())
    });
    looked.await.ok()
}

/// Returns a file that is new, removed or changed.
fn difference(before: &FileStamps, after: &FileStamps) -> Option<PathBuf> {
    let new = after.iter().find(|(path, mark)| before.get(*path) != Some(mark));
    let gone = || before.iter().find(|(path, _)| !after.contains_key(*path));
    new.or_else(gone).map(|(path, _)| path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continual_reloads_are_delayed_more_and_more() {
        let mut pace = Debounce::default();
        let mut after = |seconds| pace.pause(Duration::from_secs(seconds)).as_secs();
        let pauses: Vec<u64> = (0..20).map(|_| after(1)).collect();
        assert_eq!(pauses, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]);
        assert_eq!([after(11), after(1)], [0, 0], "a pause ends the row");
    }
}
