//! Caches parsed files by directory. Each directory, with or without a file, is checked at most once per
//! `RECHECK_INTERVAL`; a file is parsed again when it has changed.

use crate::config::{Config, Section, Select};
use crate::directives::{self, Read};
use crate::limits;
use crate::pattern::{BudgetExceeded, StepBudget};
use crate::system::{Kind, Stamp, System};
use crate::text::SyntaxError;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for which a directory's state is reused without a check.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The directives of a directory's file.
#[derive(Debug)]
pub(crate) enum Parsed {
    Nothing,
    Rules(Box<Read>),
    /// The file is invalid or unreadable: requests below the directory end with 500.
    Broken,
}

/// The merged directives of all files on the path to a directory.
#[derive(Debug)]
pub(crate) struct Merged {
    files: Vec<Arc<Parsed>>,
    pub config: Arc<Config>,
    /// Sections for some requests, in the order of evaluation.
    pub sections: Vec<Arc<Section>>,
    pub broken: bool,
}

#[derive(Debug)]
struct CachedFile {
    looked: Instant,
    stamp: Option<Stamp>,
    parsed: Arc<Parsed>,
}

#[derive(Debug)]
pub(crate) struct Store {
    name: Vec<u8>,
    found: Mutex<FxHashMap<Box<[u8]>, CachedFile>>,
    merged: Mutex<FxHashMap<Box<[u8]>, Arc<Merged>>>,
}

impl Store {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.as_bytes().to_vec(), found: Mutex::default(), merged: Mutex::default() }
    }

    /// The merged directives of these nested directories, the outermost first; each ends in a slash.
    pub(crate) fn merged(
        &self,
        directories: &[Cow<'_, [u8]>],
        system: &dyn System,
        now: Instant,
        budget: &mut StepBudget,
    ) -> Result<Arc<Merged>, BudgetExceeded> {
        let files = directories.iter().map(|directory| self.parsed(directory, system, now, budget));
        let files = files.collect::<Result<Vec<Arc<Parsed>>, BudgetExceeded>>()?;
        let key = directories.last().map_or(&b""[..], |directory| directory);
        if let Some(known) = self.merged.lock().get(key) {
            let same = known.files.len() == files.len();
            if same && known.files.iter().zip(&files).all(|(a, b)| Arc::ptr_eq(a, b)) {
                return Ok(known.clone());
            }
        }
        budget.spend(files.iter().map(|file| file.weight()).sum())?;
        let merged = Arc::new(Merged::new(files));
        let mut kept = self.merged.lock();
        if kept.len() >= limits::MAX_CACHED {
            kept.clear();
        }
        kept.insert(key.into(), merged.clone());
        Ok(merged)
    }

    fn parsed(
        &self,
        directory: &[u8],
        system: &dyn System,
        now: Instant,
        budget: &mut StepBudget,
    ) -> Result<Arc<Parsed>, BudgetExceeded> {
        if let Some(found) = self.found.lock().get(directory)
            && now.saturating_duration_since(found.looked) < RECHECK_INTERVAL
        {
            return Ok(found.parsed.clone());
        }
        budget.spend(limits::LOOKUP_EFFORT)?;
        let path = [directory, &self.name].concat();
        let entry = system.stat(&path).filter(|entry| entry.kind == Kind::File);
        let stamp = entry.map(|entry| entry.stamp);
        if let Some(found) = self.found.lock().get_mut(directory)
            && found.stamp == stamp
        {
            found.looked = now;
            return Ok(found.parsed.clone());
        }
        let parsed = Arc::new(match stamp {
            None => Parsed::Nothing,
            Some(_) => {
                budget.needs_own_thread()?;
                self.read(directory, &path, system)
            }
        });
        let mut kept = self.found.lock();
        if kept.len() >= limits::MAX_CACHED {
            kept.clear();
        }
        kept.insert(directory.into(), CachedFile { looked: now, stamp, parsed: parsed.clone() });
        Ok(parsed)
    }

    /// Parses a file and logs its problems. Each version is parsed, and so logged, once while it is cached.
    fn read(&self, directory: &[u8], path: &[u8], system: &dyn System) -> Parsed {
        let name = String::from_utf8_lossy(path);
        let text = match system.read(path, limits::FILE) {
            Ok(text) => text,
            Err(error) => {
                tracing::error!(target: "howdah::htaccess", "{name}: {error}: requests below its directory get 500");
                return Parsed::Broken;
            }
        };
        match directives::read(&text, directory) {
            Ok(read) => {
                for note in &read.notes {
                    tracing::info!(target: "howdah::htaccess", "{name}:{}: {}", note.line, note.text);
                }
                Parsed::Rules(Box::new(read))
            }
            Err(SyntaxError { line, what }) => {
                tracing::error!(target: "howdah::htaccess", "{name}:{line}: {what}: requests below its directory get 500");
                Parsed::Broken
            }
        }
    }
}

impl Parsed {
    /// Approximate number of bytes that a merge copies.
    fn weight(&self) -> u64 {
        match self {
            Self::Nothing | Self::Broken => 0,
            Self::Rules(read) => read.file.config.weight() + 16 * read.file.sections.len() as u64,
        }
    }
}

impl Merged {
    fn new(files: Vec<Arc<Parsed>>) -> Self {
        let (mut config, mut by_name, mut by_expression) = (Config::default(), Vec::new(), Vec::new());
        let mut broken = false;
        for file in &files {
            let read = match &**file {
                Parsed::Nothing => continue,
                Parsed::Broken => {
                    broken = true;
                    continue;
                }
                Parsed::Rules(read) => read,
            };
            config.merge(&read.file.config);
            for section in &read.file.sections {
                match section.select {
                    Select::If { .. } => by_expression.push(section.clone()),
                    Select::Files(_) | Select::Methods(..) => by_name.push(section.clone()),
                }
            }
        }
        by_name.append(&mut by_expression);
        Self { files, config: Arc::new(config), sections: by_name, broken }
    }
}
