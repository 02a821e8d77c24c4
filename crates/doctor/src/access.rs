//! Access control lists (acl(5)): grant named users access to a file of the doctor and deny it to all others, whatever
//! their groups.

use anyhow::{Context, Result};
use rustix::fs::{XattrFlags, setxattr};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Extended attribute of the list; below, the version of its format and its kinds of entries (linux/posix_acl.h).
const ATTRIBUTE: &str = "system.posix_acl_access";
const VERSION: u32 = 2;
const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;
/// User ID in entries for no particular user.
const NO_USER: u32 = u32::MAX;

/// Permission to enter a directory.
pub(crate) const ENTER: u16 = 1;
/// Permission to read and write a file.
pub(crate) const READ_AND_WRITE: u16 = 6;

/// Denies access to a file or directory except to its owner, who gets read, write and `may`, and these users, who get
/// `may`.
pub(crate) fn only_for(path: &Path, users: &[u32], may: u16) -> Result<()> {
    let owners = 6 | may;
    fs::set_permissions(path, Permissions::from_mode(u32::from(owners) << 6))?;
    if users.is_empty() {
        return Ok(());
    }
    setxattr(path, ATTRIBUTE, &list(owners, users, may), XattrFlags::empty())
        .map_err(std::io::Error::from)
        .with_context(|| {
            format!("cannot give PHP's user access to {}: set TMPDIR to a directory that supports ACLs", path.display())
        })
}

fn list(owners: u16, users: &[u32], may: u16) -> Vec<u8> {
    let mut users = users.to_vec();
    // The kernel requires this order.
    users.sort_unstable();
    users.dedup();
    let named = users.into_iter().map(|user| (USER, may, user));
    let entries = [(OWNER, owners, NO_USER)].into_iter().chain(named);
    let entries = entries.chain([(GROUP, 0, NO_USER), (MASK, may, NO_USER), (OTHERS, 0, NO_USER)]);
    let bytes = entries.flat_map(|(kind, may, user)| {
        let entry = [kind.to_le_bytes(), may.to_le_bytes()].concat();
        [entry, user.to_le_bytes().to_vec()].concat()
    });
    VERSION.to_le_bytes().into_iter().chain(bytes).collect()
}
