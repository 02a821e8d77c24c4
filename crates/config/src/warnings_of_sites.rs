//! Warnings about valid sites that cannot serve: site files that nothing reads, and roots that are empty or
//! inaccessible to the server.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::glob::Glob;
use crate::load::Loaded;
use crate::origin::Origin;
use crate::settings_site::SiteSettings;
use crate::source::Environment;

/// Directories in which site files are usually kept.
const USUAL: &[&str] = &["conf.d", "sites", "sites.d", "sites-enabled"];
const EXECUTE: u32 = 0o1;
const READ: u32 = 0o4;

impl Loaded {
    /// Adds a warning for each such site.
    pub(crate) fn silent_sites(&self, found: &mut Vec<String>) {
        self.files_that_nothing_reads(found);
        let sites = self.settings.all_sites();
        if self.settings.only_web_servers() {
            return;
        }
        for site in &sites {
            let of_site = |text: String| match sites.len() {
                1 => text,
                _ => format!("site {}: {text}", site.name),
            };
            found.extend(self.trouble_with_root(site).map(of_site));
        }
    }

    fn files_that_nothing_reads(&self, found: &mut Vec<String>) {
        let Some(dir) = self.settings.config_file.as_deref().and_then(Path::parent) else { return };
        let patterns = &self.settings.site_patterns;
        if self.origins.of("sites") != Origin::Default {
            for pattern in patterns {
                let mut files = BTreeSet::new();
                if let Ok(glob) = Glob::new(pattern, dir) {
                    glob.find(&mut files);
                }
                if files.is_empty() {
                    found.push(format!("sites: no file matches \"{pattern}\" in {}", dir.display()));
                }
            }
        }
        for name in USUAL {
            let entries = std::fs::read_dir(dir.join(name)).into_iter().flatten().flatten();
            let is_unread = |path: &PathBuf| {
                path.extension().is_some_and(|ending| ending == "toml") && !self.settings.site_files.contains(path)
            };
            let mut unread: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_unread).collect();
            unread.sort();
            if let Some(first) = unread.first() {
                let more = if unread.len() > 1 { format!(" and {} more", unread.len() - 1) } else { String::new() };
                let patterns = patterns.join(", ");
                found.push(format!("{}{more} is not read: `sites` names {patterns}", first.display()));
            }
        }
    }

    /// A warning if the root is `/`, or if requests of this site would get 404 because of it.
    fn trouble_with_root(&self, site: &SiteSettings) -> Option<String> {
        let root = site.root.display();
        if site.root == Path::new("/") {
            return Some(
                "root is /: clients can request every file of this machine that the server may read".to_owned(),
            );
        }
        // A missing root is reported as an error.
        if !site.root.exists() {
            return None;
        }
        self.closed_root(site).or_else(|| {
            let pool = self.settings.pool(&site.pool)?;
            // Rules and .htaccess files may serve files from outside the root.
            let is_elsewhere = !site.rules.is_empty() || site.htaccess;
            if is_elsewhere || pool.script.is_some() || pool.boot.is_some() {
                return None;
            }
            let is_there = |name: &str| site.root.join(name).is_file();
            let front = site.front_controller.as_deref().filter(|front| !is_there(front));
            let is_said = ["front_controller".to_owned(), format!("site.{}.front_controller", site.name)]
                .iter()
                .any(|name| self.origins.of(name) != Origin::Default);
            match front {
                Some(front) if is_said => Some(format!(
                    "front_controller: there is no {front} in {root}, so paths that are not files are 404"
                )),
                Some(front) if !site.index.iter().any(|name| is_there(name)) => Some(format!(
                    "root {root} has neither {} nor the front controller {front}: is it the document root?",
                    site.index.join(", ")
                )),
                _ => None,
            }
        })
    }

    /// The server or PHP may not be able to read the root. Only root can check that, before it switches users.
    fn closed_root(&self, site: &SiteSettings) -> Option<String> {
        if Environment::of_process().uid != Some(0) {
            return None;
        }
        let settings = &self.settings;
        let of_php = settings.pool(&site.pool).and_then(|pool| settings.account_of(pool).ok().flatten());
        let front = site.front_controller.as_ref().map(|front| site.root.join(front));
        [settings.account().ok().flatten(), of_php].into_iter().flatten().find_map(|account| {
            let closed =
                site.root.ancestors().collect::<Vec<_>>().into_iter().rev().find(|dir| !may(&account, dir, EXECUTE));
            let (closed, what) = match closed {
                Some(dir) => (dir.to_owned(), "enter"),
                None => (front.clone().filter(|front| !may(&account, front, READ))?, "read"),
            };
            let (root, closed) = (site.root.display(), closed.display());
            Some(format!("root {root}: the user {} may not {what} {closed}, so requests get 404", account.name))
        })
    }
}

/// `true` if the permissions give this user the permission `bit`; also for missing files and those with an access
/// control list.
fn may(account: &Account, path: &Path, bit: u32) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return true };
    let has_list = rustix::fs::getxattr(path, "system.posix_acl_access", &mut [0; 0][..]).is_ok_and(|size| size > 0);
    account.uid == 0 || has_list || shift(account, &found).is_some_and(|shift| found.mode() >> shift & bit != 0)
}

/// The bit position of the permissions that apply to this user.
fn shift(account: &Account, found: &Metadata) -> Option<u32> {
    let is_group = found.gid() == account.gid || account.groups.contains(&found.gid());
    Some(if found.uid() == account.uid {
        6
    } else if is_group {
        3
    } else {
        0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_those_of_the_users_class() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let own = std::fs::metadata(dir.path()).unwrap();
        let (other, stranger) = (own.uid() + 1, own.gid() + 1);
        let account = |uid, gid| Account { name: String::new(), uid, gid, groups: vec![own.gid() + 2], home: None };
        let set = |mode| std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o710);
        assert!(may(&account(other, own.gid()), dir.path(), EXECUTE));
        assert!(!may(&account(other, stranger), dir.path(), EXECUTE));
        set(0o701);
        assert!(!may(&account(other, own.gid()), dir.path(), EXECUTE), "the group's permissions count alone");
        assert!(may(&account(other, stranger), dir.path(), EXECUTE));
    }
}
