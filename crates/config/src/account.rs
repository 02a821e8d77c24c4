//! Users and groups of the server and of the pools' PHP, looked up in the system's databases.

use std::ffi::CString;
use std::path::PathBuf;

use nix::unistd::{Gid, Group, Uid, User, getgrouplist};

use crate::choice::ServerUser;
use crate::settings::{PoolSettings, Settings};

/// A user with the groups of its processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The user's name, or its number if it has no name.
    pub name: String,
    /// User ID.
    pub uid: u32,
    /// Primary group ID of the processes.
    pub gid: u32,
    /// Supplementary group IDs.
    pub groups: Vec<u32>,
    /// The user's home directory, if it is known.
    pub home: Option<PathBuf>,
}

impl Account {
    /// Looks up `USER` or `USER:GROUP`, each a name or a number. Without `GROUP`, the user's primary group is used.
    /// `groups` are the supplementary groups; if empty, the user's own.
    ///
    /// # Errors
    /// The missing name, as a message for the operator.
    pub fn find(text: &str, groups: &[String]) -> Result<Self, String> {
        let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
        let known = match user.parse() {
            Ok(number) => User::from_uid(Uid::from_raw(number)),
            Err(_) => User::from_name(user),
        };
        let known = known.map_err(|error| format!("cannot look up the user \"{user}\": {error}"))?;
        let (uid, own_group) = match (&known, user.parse::<u32>()) {
            (Some(known), _) => (known.uid.as_raw(), Some(known.gid)),
            (None, Ok(number)) => (number, None),
            (None, Err(_)) => return Err(format!("there is no user \"{user}\"")),
        };
        let gid = match (group, own_group) {
            (Some(group), _) => Gid::from_raw(find_group(group)?),
            (None, Some(own)) => own,
            (None, None) => {
                return Err(format!(
                    "user {user} is not in the user database: name a group too, for example {user}:{user}"
                ));
            }
        };
        let groups = match (&known, groups) {
            (_, [_, ..]) => groups.iter().map(|name| find_group(name)).collect::<Result<_, _>>()?,
            (Some(known), []) => groups_of(&known.name, gid)?,
            (None, []) => vec![gid.as_raw()],
        };
        let home = known.as_ref().map(|known| known.dir.clone());
        let name = known.map_or_else(|| user.to_owned(), |known| known.name);
        Ok(Self { name, uid, gid: gid.as_raw(), groups, home })
    }
}

/// The name of a user, or its number if it has no name.
pub fn user_name(uid: u32) -> String {
    User::from_uid(Uid::from_raw(uid)).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}

/// Looks up the number of a group.
///
/// # Errors
/// The group does not exist; the message is for the operator.
pub fn find_group(group: &str) -> Result<u32, String> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    match Group::from_name(group) {
        Ok(Some(found)) => Ok(found.gid.as_raw()),
        Ok(None) => Err(format!("there is no group \"{group}\"")),
        Err(error) => Err(format!("cannot look up the group \"{group}\": {error}")),
    }
}

fn groups_of(user: &str, gid: Gid) -> Result<Vec<u32>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot look up the groups of \"{user}\": {error}");
    let name = CString::new(user).map_err(|error| failed(&error))?;
    let found = getgrouplist(&name, gid).map_err(|error| failed(&error))?;
    Ok(found.into_iter().map(Gid::as_raw).collect())
}

impl Settings {
    /// The account that the server switches to; `None` if it keeps its user.
    ///
    /// # Errors
    /// The missing name.
    pub fn account(&self) -> Result<Option<Account>, String> {
        let Some(user) = &self.user else { return Ok(None) };
        let mut account = Account::find(user, &[])?;
        if self.server_user == ServerUser::Own {
            // Adds PHP's groups, so that files readable only by PHP's group can be served.
            for pool in self.pools.iter().filter_map(|pool| self.account_of(pool).ok().flatten()) {
                if pool.gid != 0 && !account.groups.contains(&pool.gid) {
                    account.groups.push(pool.gid);
                }
            }
        }
        Ok(Some(account))
    }

    /// The account that a pool's PHP runs as; `None` for the user that starts the server.
    ///
    /// # Errors
    /// The missing name.
    pub fn account_of(&self, pool: &PoolSettings) -> Result<Option<Account>, String> {
        let php = &pool.php;
        let user = php.user.as_ref().or(self.user.as_ref());
        user.map(|user| Account::find(user, &php.groups)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_number_with_their_groups() {
        let root = Account::find("root", &[]).unwrap();
        assert_eq!((root.uid, root.gid, root.name.as_str()), (0, 0, "root"));
        assert!(root.groups.contains(&0), "{root:?}");
        assert_eq!(Account::find("0", &[]).unwrap(), root);
        let mixed = Account::find("root:4711", &["0".to_owned(), "4712".to_owned()]).unwrap();
        assert_eq!((mixed.gid, mixed.groups), (4711, vec![0, 4712]));
        assert_eq!(Account::find("4294960000:7", &[]).unwrap().groups, [7]);
        for (user, what) in [
            ("no-such-user", "there is no user \"no-such-user\""),
            ("root:no-such-group", "there is no group \"no-such-group\""),
            ("root:", "there is no group \"\""),
            ("4294960000", "name a group too"),
        ] {
            let error = Account::find(user, &[]).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}
