//! The program that a pool's PHP runs in: what it is started with, by the server itself or by its launcher.

use crate::config::PoolConfig;
use crate::server_program::{OF_ONE_PROCESS, TAKES_OVER};
use howdah_transport::privileges::{PRIVILEGES_ARGUMENT, Privileges};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::process::Command;

/// Settings that may come as variables and are nobody's business but the server's: with the token, scripts could stop it.
const SECRETS: &[&str] = &["HOWDAH_ADMIN_TOKEN", "HOWDAH_ACME_EAB_KEY"];

/// What whoever runs the server says to it, and to nobody else: a script could say to systemd that the server has ended.
const OF_THE_SERVICE: &[&str] = &["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "FDSTORE", TAKES_OVER];

/// A `howdah-php` to start. Fixed when the server starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    pub pool: String,
    /// The file.
    pub binary: PathBuf,
    /// Without the environment of the process that starts it.
    pub clear_env: bool,
    /// Variables over that.
    pub env: Vec<(String, String)>,
    /// What it may do.
    pub privileges: Privileges,
}

impl Program {
    #[must_use]
    pub fn of(config: &PoolConfig) -> Self {
        Self {
            pool: config.name().to_owned(),
            binary: config.binary.clone(),
            clear_env: config.clear_env,
            env: config.env.clone(),
            privileges: config.privileges.clone(),
        }
    }

    /// The command, without its standard streams.
    pub(crate) fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(&self.binary);
        if self.clear_env {
            command.env_clear();
        }
        for name in SECRETS.iter().chain(OF_THE_SERVICE).chain(OF_ONE_PROCESS) {
            command.env_remove(name);
        }
        command
            .arg(format!("--pool={}", self.pool))
            .arg(format!("{PRIVILEGES_ARGUMENT}{}", serde_json::to_string(&self.privileges)?))
            .envs(self.env.iter().map(|(k, v)| (k, v)));
        Ok(command)
    }

    /// Why it could not be started, for the operator.
    pub(crate) fn explain(&self, error: &io::Error) -> String {
        format!("cannot start {}: {error} (see `--php`)", self.binary.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_do_not_get_the_servers_secrets() {
        let program = Program {
            pool: "default".to_owned(),
            binary: PathBuf::from("/x"),
            clear_env: false,
            env: vec![("APP_ENV".to_owned(), "prod".to_owned())],
            privileges: Privileges::default(),
        };
        let command = program.command().unwrap();
        let variables: Vec<_> = command.get_envs().collect();
        for secret in SECRETS {
            assert!(
                variables.iter().any(|(name, value)| name.to_str() == Some(*secret) && value.is_none()),
                "{variables:?}"
            );
        }
    }
}
