//! The doctor's own directory, and the copy of an application that writes into its own: one with a database of SQLite.

use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How every database of SQLite begins.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Larger applications are not copied.
const MOST: u64 = 4 << 30;

/// What is there of a directory.
#[derive(Debug, Default)]
struct Content {
    databases: Vec<PathBuf>,
    bytes: u64,
}

/// A directory for settings, probes and logs, which goes with this value, and where the application lies.
#[derive(Debug)]
pub(crate) struct Place {
    dir: tempfile::TempDir,
    project: PathBuf,
    copy: Option<PathBuf>,
    databases: Vec<PathBuf>,
}

impl Place {
    /// A place for this application: a copy of it is made if it has a database of SQLite.
    pub(crate) fn new(project: &Path) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("howdah-doctor-").tempdir().context("cannot make a directory")?;
        // Started as root, PHP may run as another user, which must get through.
        let mode = if may_change_user(dir.path())? { 0o711 } else { 0o700 };
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode))?;
        let mut content = Content::default();
        look(project, &mut content, 0)?;
        let mut place = Self { dir, project: project.to_owned(), copy: None, databases: content.databases };
        if !place.databases.is_empty() {
            if content.bytes > MOST {
                bail!("{} has a database of SQLite, and is too large to be copied", project.display());
            }
            let copy = place.dir.path().join("application");
            // Another program does it, since it keeps owners, links and times, and shares blocks where it can.
            let done = Command::new("cp").args(["-a", "--reflink=auto", "--"]).arg(project).arg(&copy).status();
            if !done.is_ok_and(|status| status.success()) {
                bail!("cannot copy {} to {}", project.display(), copy.display());
            }
            place.copy = Some(copy);
        }
        Ok(place)
    }

    /// A directory in this one for a server.
    pub(crate) fn room(&self, name: &str) -> Result<PathBuf> {
        let room = self.dir.path().join(name);
        fs::create_dir_all(&room)?;
        Ok(room)
    }

    /// Where the servers find the application.
    pub(crate) fn application(&self) -> &Path {
        self.copy.as_deref().unwrap_or(&self.project)
    }

    /// The path of something in the application, where the servers find it.
    pub(crate) fn moved(&self, text: &str) -> String {
        match (&self.copy, text.find(&*self.project.to_string_lossy())) {
            (Some(copy), Some(_)) => text.replace(&*self.project.to_string_lossy(), &copy.to_string_lossy()),
            _ => text.to_owned(),
        }
    }

    /// The way back: a path as the application's owner knows it.
    pub(crate) fn original(&self, text: &str) -> String {
        match &self.copy {
            Some(copy) => text.replace(&*copy.to_string_lossy(), &self.project.to_string_lossy()),
            None => text.to_owned(),
        }
    }

    /// Whether the servers run on a copy.
    pub(crate) const fn is_copied(&self) -> bool {
        self.copy.is_some()
    }

    /// Puts the databases back into the state that they have in the application.
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

/// Whether the servers can run PHP as another user: `own`, a path that this process has made, is root's.
pub(crate) fn may_change_user(own: &Path) -> Result<bool> {
    Ok(fs::metadata(own)?.uid() == 0)
}

/// Looks for databases, and how much there is in all.
fn look(dir: &Path, content: &mut Content, depth: usize) -> Result<()> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot look into {}", dir.display()))?;
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth < 12 {
            let _ = look(&path, content, depth + 1);
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
