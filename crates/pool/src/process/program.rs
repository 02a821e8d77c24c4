//! The program that runs a pool's PHP, started by the server itself or by its launcher.

use crate::config::PoolConfig;
use crate::process::environment;
use howdah_transport::privileges::{PRIVILEGES_ARGUMENT, Privileges};
use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

/// A `howdah-php` to start, with its environment and privileges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    pub pool: String,
    /// Path of the executable.
    pub binary: PathBuf,
    /// Do not pass on the environment of the process that starts it.
    pub clear_env: bool,
    /// Variables set in addition.
    pub env: Vec<(String, String)>,
    /// User and limits of its processes.
    pub privileges: Privileges,
}

impl Program {
    pub fn of(config: &PoolConfig) -> Self {
        Self {
            pool: config.name().to_owned(),
            binary: config.settings.php.binary.path.clone(),
            clear_env: config.settings.php.clear_env,
            env: config.env.clone(),
            privileges: config.privileges.clone(),
        }
    }

    /// The command, without its standard streams.
    pub(crate) fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .envs(environment::of_php(std::env::vars_os(), self.clear_env, &self.env))
            .arg(format!("--pool={}", self.pool))
            .arg(format!("{PRIVILEGES_ARGUMENT}{}", serde_json::to_string(&self.privileges)?));
        Ok(command)
    }

    /// Starts a pool's program with this argument, and its boot order as standard input.
    ///
    /// # Errors
    /// The reason why it does not start.
    pub(crate) fn start_once(
        config: &PoolConfig,
        argument: &str,
        stdout: Stdio,
        stderr: Stdio,
    ) -> Result<Child, String> {
        let program = Self::of(config);
        let order = serde_json::to_vec(&config.boot).map_err(|error| error.to_string())?;
        let start = || program.command()?.arg(argument).stdin(Stdio::piped()).stdout(stdout).stderr(stderr).spawn();
        let mut child = start().map_err(|error| program.explain(&error))?;
        // In a thread, because a program that does not read its order must not block the caller.
        if let Some(mut stdin) = child.stdin.take() {
            thread::spawn(move || stdin.write_all(&order));
        }
        Ok(child)
    }

    /// Explains a failed start to the operator.
    pub(crate) fn explain(&self, error: &io::Error) -> String {
        format!("cannot start {}: {error} (see `--php`)", self.binary.display())
    }
}
