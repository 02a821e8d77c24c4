//! Checks the users of the server and of PHP against the user that starts the server; also limits, control groups, and
//! who can reach the admin endpoint.

use std::path::Path;

use crate::account::{Account, find_group, user_name};
use crate::address::ListenAddr;
use crate::choice::ServerUser;
use crate::control_group;
use crate::limits;
use crate::origin::Origin;
use crate::settings::{DEFAULT_POOL, PoolSettings, Settings};
use crate::source::Source;

/// The account that packages create for the server.
const SERVER_ACCOUNT: &str = "howdah";

/// Looks up the server's account, if it exists.
pub(crate) fn of_server() -> Option<Account> {
    Account::find(SERVER_ACCOUNT, &[]).ok().filter(|account| account.uid != 0)
}

/// Chooses the server's user if only PHP's is set: with the same user, scripts could send signals to the server.
pub(crate) fn resolve(settings: &mut Settings, source: &Source<'_>) {
    if source.environment.uid != Some(0) || source.origins.of("user") != Origin::Default {
        return;
    }
    let Some(php) = settings.pools.iter().find(|pool| pool.name == DEFAULT_POOL).map(|pool| &pool.php) else { return };
    let Some(user) = php.user.clone() else { return };
    if of_server().is_some() {
        settings.server_user = ServerUser::Own;
        settings.user = Some(SERVER_ACCOUNT.to_owned());
    } else {
        settings.server_user = ServerUser::Shared;
        settings.user = Some(user);
    }
}

/// Reports errors in users, groups and limits, and in the exposure of the admin endpoint.
pub(crate) fn check(settings: &Settings, source: &mut Source<'_>) {
    if let ListenAddr::Tcp(addr) = settings.admin
        && !addr.ip().to_canonical().is_loopback()
        && settings.admin_token.is_none()
    {
        let message = format!(
            "other machines can reach {addr} and could stop the server: use 127.0.0.1 or a Unix socket, or set \
             admin_token"
        );
        source.object("admin", message);
    }
    for pool in &settings.pools {
        numbers(pool, source);
    }
    let Some(uid) = source.environment.uid else { return };
    for (key, group) in [("admin_group", &settings.admin_group), ("listen_group", &settings.listen_group)] {
        if let Some(Err(message)) = group.as_deref().map(find_group) {
            source.object(key, message);
        }
    }
    server(settings, uid, source);
    for pool in &settings.pools {
        php(settings, pool, uid, source);
    }
}

fn name(pool: &PoolSettings, key: &str) -> String {
    if pool.name == DEFAULT_POOL { format!("php.{key}") } else { format!("pool.{}.{key}", pool.name) }
}

fn numbers(pool: &PoolSettings, source: &mut Source<'_>) {
    let php = &pool.php;
    if let Err(message) = limits::read(&php.limits) {
        source.object(&name(pool, "limits"), message);
    }
    if let Err(message) = control_group::read(&php.cgroup_limits) {
        source.object(&name(pool, "cgroup_limits"), message);
    } else if php.cgroup.is_none() && !php.cgroup_limits.is_empty() {
        source.object(&name(pool, "cgroup_limits"), "needs `cgroup`, the group that the limits apply to".to_owned());
    }
    if let Some(parent) = php.cgroup.as_deref().and_then(Path::parent)
        && source.environment.uid.is_some()
        && !parent.join("cgroup.procs").exists()
    {
        let message = format!("{} is not a directory of control groups (cgroup v2)", parent.display());
        source.object(&name(pool, "cgroup"), message);
    }
}

fn server(settings: &Settings, uid: u32, source: &mut Source<'_>) {
    match settings.account() {
        // An invalid PHP user is reported at its own setting.
        Err(_) if settings.server_user == ServerUser::Shared => {}
        Err(message) => source.object("user", message),
        Ok(None) if uid == 0 && !settings.allow_root => {
            let message = "started as root without a user, so the server and PHP would run as root: set PHP's user, for \
                           example php.user = \"www-data\" (--user www-data), or permit it with allow_root = true \
                           (--allow-root)";
            source.object("user", message.to_owned());
        }
        Ok(account) => may_become(settings, account.as_ref(), uid, "user", source),
    }
}

fn php(settings: &Settings, pool: &PoolSettings, uid: u32, source: &mut Source<'_>) {
    let key = name(pool, "user");
    match settings.account_of(pool) {
        Err(message) => {
            let own = pool.php.user.is_some() || !pool.php.groups.is_empty();
            if own {
                source.object(&key, message);
            }
        }
        Ok(None) if !pool.php.groups.is_empty() => {
            source.object(&name(pool, "groups"), "has no effect without `user`".to_owned());
        }
        Ok(account) if pool.php.user.is_some() => may_become(settings, account.as_ref(), uid, &key, source),
        Ok(_) => {}
    }
}

fn may_become(settings: &Settings, account: Option<&Account>, uid: u32, key: &str, source: &mut Source<'_>) {
    let Some(account) = account else { return };
    if uid != 0 && account.uid != uid {
        let message = format!("only root can become {}; the server was started by {}", account.name, user_name(uid));
        source.object(key, message);
    } else if account.uid == 0 && !settings.allow_root {
        source.object(key, format!("{} is root; set allow_root = true if that is intended", account.name));
    }
}
