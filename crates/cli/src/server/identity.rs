//! The server's user: the work that needs root at the start, and the switch to that user.

use crate::server::socket_files::file_of;
use anyhow::{Context, Result, bail};
use howdah_config::{Account, ListenAddr, ServerUser, Settings, find_group};
use howdah_observe::log_file::{self, LogOwner};
use howdah_pool::PoolConfig;
use howdah_pool::process::launcher::LauncherProcess;
use howdah_pool::process::root_program::RootProgram;
use howdah_protocol::unix_socket::UnixAccess;
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior};
use rustix::thread::CapabilitySet;
use std::path::PathBuf;
use std::sync::LazyLock;

/// `true` if the process was root at the first call, which must precede the switch.
pub(crate) fn started_as_root() -> bool {
    static ROOT: LazyLock<bool> = LazyLock::new(|| geteuid().is_root());
    *ROOT
}

/// The account that the server switches to; `None` if it keeps its user.
pub(crate) fn account(settings: &Settings) -> Result<Option<Account>, String> {
    let account = if geteuid().is_root() { settings.account()? } else { None };
    Ok(account.filter(|account| account.uid != 0))
}

/// Comments for `howdah check`: the pools whose scripts run as the server's user, and the risks of that.
pub(crate) fn report(settings: &Settings) -> String {
    let own = geteuid().as_raw();
    let uid = |account: Result<Option<Account>, String>| account.ok().flatten().map_or(own, |account| account.uid);
    let server = uid(account(settings));
    let shared: Vec<_> = settings.pools.iter().filter(|pool| uid(settings.account_of(pool)) == server).collect();
    if shared.is_empty() {
        return String::new();
    }
    let pools = shared.iter().map(|pool| &*pool.name).collect::<Vec<_>>().join(", ");
    let user = howdah_config::user_name(server);
    let remedy = if own != 0 {
        "start as root with `php.user` (--user), and a user `howdah` for the server"
    } else if settings.server_user == ServerUser::Shared {
        "create a user for the server: useradd --system --no-create-home --shell /usr/sbin/nologin howdah"
    } else {
        "set `user` and `php.user` to different users"
    };
    format!(
        "\n# Users: PHP of pool {pools} runs as the server's user {user}\n\
         #   scripts can signal and stop the server, and read that user's files, private keys included\n\
         #   to prevent that, {remedy}\n"
    )
}

/// Log files are opened before the server switches users, and reopened after.
pub(crate) fn announce_logs(account: Option<&Account>) {
    if let Some(account) = account {
        log_file::will_belong_to(LogOwner { uid: account.uid, gid: account.gid, groups: account.groups.clone() });
    }
}

/// Permissions of Unix sockets in `listen`.
pub(crate) fn listener_access(settings: &Settings, account: Option<&Account>) -> Result<UnixAccess, String> {
    let group = settings.listen_group.as_deref().map(find_group).transpose()?;
    Ok(UnixAccess {
        mode: 0o660,
        uid: account.map(|account| account.uid),
        gid: group.or(account.map(|account| account.gid)),
    })
}

/// Permissions of the socket at an address: those of its PHP-FPM pool, if it has one.
pub(crate) fn access_at(settings: &Settings, addr: &ListenAddr, access: UnixAccess) -> UnixAccess {
    let own = settings.fpm.as_ref().zip(file_of(addr)).and_then(|(fpm, path)| fpm.sockets.get(path));
    let Some(own) = own else { return access };
    UnixAccess { mode: own.mode.unwrap_or(access.mode), uid: own.owner.or(access.uid), gid: own.group.or(access.gid) }
}

/// Permissions of the admin endpoint's Unix socket.
pub(crate) fn admin_access(settings: &Settings) -> Result<UnixAccess, String> {
    let gid = settings.admin_group.as_deref().map(find_group).transpose()?;
    Ok(UnixAccess { mode: if gid.is_some() { 0o660 } else { 0o600 }, uid: None, gid })
}

/// Parameters of the last step as root, which fixes what the launcher may do.
pub(crate) struct PrivilegeDrop<'a> {
    pub(crate) configs: &'a [PoolConfig],
    /// Socket files that the server removes.
    pub(crate) own_files: Vec<PathBuf>,
    pub(crate) program: &'a RootProgram,
    pub(crate) takes_over: bool,
}

/// Leaves the launcher running as root and switches to the account, permanently. Without an account nothing changes.
pub(crate) fn give_up_root(
    settings: &Settings,
    account: Option<&Account>,
    act: PrivilegeDrop<'_>,
) -> Result<Option<LauncherProcess>> {
    let launcher = match account {
        Some(account) => {
            has_rights()?;
            let PrivilegeDrop { configs, own_files, program, takes_over } = act;
            let launcher = LauncherProcess::start(configs, own_files, program.clone(), takes_over)
                .context("cannot start the launcher")?;
            change_to(account).with_context(|| format!("cannot become {}", account.name))?;
            Some(launcher)
        }
        None => None,
    };
    // Changing the user has reset this flag.
    let wanted = if settings.dumpable { DumpableBehavior::Dumpable } else { DumpableBehavior::NotDumpable };
    set_dumpable_behavior(wanted).context("cannot set the server's dumpable flag (PR_SET_DUMPABLE)")?;
    Ok(launcher)
}

/// Root in a container may lack root's capabilities.
fn has_rights() -> Result<()> {
    let have = rustix::thread::capabilities(None).context("cannot read this process's capabilities")?.effective;
    let needed = [
        ("CAP_SETUID", CapabilitySet::SETUID),
        ("CAP_SETGID", CapabilitySet::SETGID),
        ("CAP_KILL", CapabilitySet::KILL),
    ];
    let missing: Vec<_> = needed.iter().filter(|(_, one)| !have.contains(*one)).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        bail!("to switch users, root needs {}, which this container or service lacks", missing.join(", "));
    }
    Ok(())
}

/// Uses the C library's functions because they change all threads: a log's thread may be running already.
fn change_to(account: &Account) -> Result<()> {
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    let groups: Vec<Gid> = account.groups.iter().map(|group| Gid::from_raw(*group)).collect();
    setgroups(&groups)?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    if setresuid(Uid::from_raw(0), Uid::from_raw(0), Uid::from_raw(0)).is_ok() || nix::unistd::geteuid() != uid {
        bail!("the change of user is not permanent: it could become root again");
    }
    // From here on only the launcher starts programs, so no setuid program can restore rights.
    rustix::thread::set_no_new_privs(true)?;
    Ok(())
}

/// Logs warnings about the users of the server and its pools.
pub(crate) fn log_risks(settings: &Settings, configs: &[PoolConfig]) {
    let own = geteuid().as_raw();
    let user_of = |config: &PoolConfig| config.privileges.user.as_ref().map_or(own, |user| user.uid);
    let with = |uid: u32| {
        configs
            .iter()
            .filter(|config| user_of(config) == uid)
            .map(|config| config.settings.name.as_str())
            .collect::<Vec<_>>()
    };
    if own == 0 {
        tracing::warn!("running as root is unsafe: set `user` (for example user = \"www-data\")");
    }
    let roots = with(0);
    if !roots.is_empty() {
        tracing::warn!(
            pools = roots.join(","),
            "PHP runs as root: scripts have full control of this machine; set `php.user`"
        );
    }
    let shared = with(own);
    // Only root can start PHP as another user.
    if own != 0 && started_as_root() && !shared.is_empty() {
        let remedy = match settings.server_user {
            ServerUser::Shared => "create the user `howdah`, which the server then runs as",
            ServerUser::Named | ServerUser::Own => "set php.user to another user",
        };
        tracing::info!(
            pools = shared.join(","),
            "PHP runs as the server's own user, so scripts can signal the server; {remedy}"
        );
    }
    if matches!(settings.admin, ListenAddr::Tcp(_)) && settings.admin_token.is_none() {
        tracing::warn!(
            "the admin endpoint is on {} without `admin_token`: any process on this machine, scripts included, can stop \
             the server",
            settings.admin
        );
    }
}
