//! Settings of automatic certificates: finds the state directory, and rejects values that cannot work.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::account::Account;
use crate::host_name;
use crate::secret::Secret;
use crate::settings::Settings;
use crate::settings_acme::default_state;
use crate::source::Source;

/// The state directory of a server that runs as `account` (`None` if it keeps the user that starts it). systemd
/// separates several directories by colons (systemd.exec(5)).
pub(crate) fn find_state(source: &Source<'_>, account: Option<&Account>) -> PathBuf {
    let var = |name: &str| source.environment.env.get(name).filter(|value| !value.is_empty());
    if let Some(directories) = var("STATE_DIRECTORY") {
        return PathBuf::from(directories.split(':').next().unwrap_or_default());
    }
    if source.environment.uid == Some(0) {
        return state_of_root(default_state(), account);
    }
    let below_home = || var("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    var("XDG_STATE_HOME").map(PathBuf::from).or_else(below_home).map_or_else(default_state, |dir| dir.join("howdah"))
}

/// The usual directory. If it belongs to another user, because a package gave it to the service, a directory for the
/// account.
fn state_of_root(usual: PathBuf, account: Option<&Account>) -> PathBuf {
    let uid = account.map_or(0, |account| account.uid);
    // Root gives its own directory to the account.
    let is_usable = std::fs::metadata(&usual).map_or(true, |found| matches!(found.uid(), 0) || found.uid() == uid);
    if is_usable {
        return usual;
    }
    let name = account.map_or("root", |account| &account.name);
    usual.with_file_name(format!("{}-{name}", usual.file_name().unwrap_or_default().to_string_lossy()))
}

/// Reports settings that cannot work.
pub(crate) fn check(settings: &Settings, source: &mut Source<'_>) {
    let acme = &settings.acme;
    for (at, name) in acme.names.iter().enumerate() {
        if let Err(why) = host_name::normalize(name) {
            source.object("acme.names", format!("\"{name}\" {why}"));
        } else if acme.names[..at].contains(name) {
            source.object("acme.names", format!("\"{name}\" is listed twice"));
        }
    }
    if !matches!(acme.directory.as_str(), "production" | "staging") && !acme.directory.starts_with("https://") {
        let message = format!("\"{}\" is neither production, staging nor an https:// address", acme.directory);
        source.object("acme.directory", message);
    }
    if let Some(file) = &acme.ca_file
        && !file.is_file()
    {
        source.object("acme.ca_file", format!("there is no file {}", file.display()));
    }
    if let Some(url) = &acme.on_demand
        && !(url.starts_with("http://") || url.starts_with("https://"))
    {
        source
            .object("acme.on_demand", format!("\"{url}\" is not an address such as \"http://127.0.0.1:9000/allowed\""));
    }
    let is_pair = |pair: &Secret| {
        let is_base64url =
            |key: &str| key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'='));
        pair.expose().rsplit_once(':').is_some_and(|(id, key)| !id.is_empty() && !key.is_empty() && is_base64url(key))
    };
    if !acme.eab.as_ref().is_none_or(is_pair) {
        source
            .object("acme.eab", "is not \"KEY_ID:KEY\" with a key in base64url (letters, digits, - and _)".to_owned());
    }
    if let Some(email) = &acme.email
        && (!email.contains('@') || email.contains([' ', ',', '<', '>']) || email.starts_with("mailto:"))
    {
        source.object("acme.email", format!("\"{email}\" is not an address such as \"admin@example.org\""));
    }
    if acme.challenges.is_empty() {
        source.object("acme.challenges", "needs at least one type of challenge".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_directory_of_another_user_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let usual = dir.path().join("howdah");
        let account = |uid| Account { name: "site".to_owned(), uid, gid: 0, groups: Vec::new(), home: None };
        assert_eq!(state_of_root(usual.clone(), Some(&account(1234))), usual, "it is not there yet");
        std::fs::create_dir(&usual).unwrap();
        let owner = std::fs::metadata(&usual).unwrap().uid();
        assert_eq!(state_of_root(usual.clone(), Some(&account(owner))), usual);
        if owner == 0 {
            assert_eq!(state_of_root(usual.clone(), Some(&account(1234))), usual, "root gives it away");
            std::os::unix::fs::chown(&usual, Some(4321), None).unwrap();
        }
        assert_eq!(state_of_root(usual.clone(), Some(&account(1234))), dir.path().join("howdah-site"));
        if owner == 0 {
            assert_eq!(state_of_root(usual, None), dir.path().join("howdah-root"));
        }
    }
}
