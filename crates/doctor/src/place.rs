//! The doctor's directory, with a copy of the application if that has a SQLite database.

use crate::access;
use crate::interrupted;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// First bytes of every SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Maximum size of an application to copy, in bytes.
const MAX_COPY_BYTES: u64 = 4 << 30;

/// Directories within a server's directory: the doctor's PHP files, and the files that these write. Sandboxed workers
/// can access nothing else there.
pub(crate) const PHP: &str = "php";
pub(crate) const REPORTS: &str = "report";

/// Contents of a directory.
#[derive(Debug, Default)]
struct Content {
    databases: Vec<PathBuf>,
    bytes: u64,
}

/// A directory for settings, probes and logs, removed on drop, and the location of the application.
#[derive(Debug)]
pub(crate) struct Place {
    dir: tempfile::TempDir,
    project: PathBuf,
    /// Users of the servers and their PHP, other than the doctor's user.
    users: Vec<u32>,
    copy: Option<PathBuf>,
    databases: Vec<PathBuf>,
}

impl Place {
    /// Creates the directory for this application, with a copy of the application if it has a SQLite database.
    ///
    /// Only the doctor's user and these users can enter the directory: the application may hold secrets that only its
    /// parent directory protects.
    pub(crate) fn new(project: &Path, users: &[u32]) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("howdah-doctor-").tempdir().context("cannot create a directory")?;
        interrupted::remove_in_any_case(dir.path());
        access::only_for(dir.path(), users, access::ENTER)?;
        let mut content = Content::default();
        scan(project, &mut content, 0)?;
        let mut place = Self {
            dir,
            project: project.to_owned(),
            users: users.to_owned(),
            copy: None,
            databases: content.databases,
        };
        if !place.databases.is_empty() {
            if content.bytes > MAX_COPY_BYTES {
                bail!("{} has a SQLite database, and is too large to copy", project.display());
            }
            let copy = place.dir.path().join("application");
            // `cp` preserves owners, links and times, and shares blocks where the file system can.
            let done = Command::new("cp").args(["-a", "--reflink=auto", "--"]).arg(project).arg(&copy).status();
            if !done.is_ok_and(|status| status.success()) {
                bail!("cannot copy {} to {}", project.display(), copy.display());
            }
            place.copy = Some(copy);
        }
        Ok(place)
    }

    /// Creates a server's directory in this one.
    pub(crate) fn room(&self, name: &str) -> Result<PathBuf> {
        let room = self.dir.path().join(name);
        fs::create_dir_all(room.join(PHP))?;
        fs::create_dir_all(room.join(REPORTS))?;
        Ok(room)
    }

    /// Creates an empty file in a server's directory, for the probe to write to.
    pub(crate) fn report(&self, room: &Path) -> Result<PathBuf> {
        let report = room.join(REPORTS).join("report.jsonl");
        fs::File::create(&report)?;
        access::only_for(&report, &self.users, access::READ_AND_WRITE)?;
        Ok(report)
    }

    /// Location of the application for the servers.
    pub(crate) fn application(&self) -> &Path {
        self.copy.as_deref().unwrap_or(&self.project)
    }

    /// Translates a path in the application to its location for the servers.
    pub(crate) fn moved(&self, text: &str) -> String {
        match (&self.copy, text.find(&*self.project.to_string_lossy())) {
            (Some(copy), Some(_)) => text.replace(&*self.project.to_string_lossy(), &copy.to_string_lossy()),
            _ => text.to_owned(),
        }
    }

    /// Translates a path back to the original application.
    pub(crate) fn original(&self, text: &str) -> String {
        match &self.copy {
            Some(copy) => text.replace(&*copy.to_string_lossy(), &self.project.to_string_lossy()),
            None => text.to_owned(),
        }
    }

    /// `true` if the servers use a copy of the application.
    pub(crate) const fn is_copied(&self) -> bool {
        self.copy.is_some()
    }

    /// Restores the databases from the application.
    pub(crate) fn restore_databases(&self) -> Result<()> {
        let Some(copy) = &self.copy else { return Ok(()) };
        for database in &self.databases {
            let Ok(inside) = database.strip_prefix(&self.project) else { continue };
            for ending in ["-wal", "-shm", "-journal"] {
                let mut name = copy.join(inside).into_os_string();
                name.push(ending);
                let _ = fs::remove_file(name);
            }
            fs::copy(database, copy.join(inside)).with_context(|| format!("cannot copy {}", database.display()))?;
        }
        Ok(())
    }
}

/// Finds databases, and adds up the size of all files.
fn scan(dir: &Path, content: &mut Content, depth: usize) -> Result<()> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot open the directory {}", dir.display()))?;
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth < 12 {
            let _ = scan(&path, content, depth + 1);
        } else if kind.is_file() {
            content.bytes += entry.metadata().map_or(0, |about| about.len());
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            let may_be = matches!(ending, "" | "db" | "db3" | "sqlite" | "sqlite3" | "s3db");
            if may_be && is_database(&path) {
                content.databases.push(path);
            }
        }
    }
    Ok(())
}

fn is_database(path: &Path) -> bool {
    let mut start = [0; SQLITE.len()];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == SQLITE
}
