//! A MariaDB with the lab's tables.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::wait_until_ready;
use crate::cases::catalogue::{KEYED_ROWS, SMALL_ROWS, row_name};
use crate::guard::{Guarded, Launch};
use crate::interrupt::Interrupt;
use crate::record::MysqlWork;
use crate::sample::mysql::Counters;
use crate::systems::program;

pub const DATABASE: &str = "lab";

/// A running MariaDB.
#[derive(Debug)]
pub struct MariaDb {
    guarded: Guarded,
    pub socket: PathBuf,
    /// Counts that one reading adds to its counters.
    pub reading_cost: MysqlWork,
}

impl MariaDb {
    /// Creates a data directory, starts the server and fills the tables.
    pub fn start(dir: &Path, interrupt: &Interrupt) -> Result<Self> {
        let need = |name: &str| {
            program(name).with_context(|| format!("{name} is not installed (apt-get install mariadb-server)"))
        };
        let (install, server) = (need("mariadb-install-db")?, need("mariadbd")?);
        need("mariadb")?;
        fs::create_dir_all(dir)?;
        let data = dir.join("data");
        let account = if rustix::process::geteuid().is_root() { vec!["--user=root".to_owned()] } else { Vec::new() };
        let output = Command::new(install)
            .arg("--no-defaults")
            .arg(format!("--datadir={}", data.display()))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .args(&account)
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            bail!("mariadb-install-db failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let socket = dir.join("mariadb.sock");
        let mut arguments = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={}", data.display()),
            format!("--socket={}", socket.display()),
            format!("--pid-file={}", dir.join("mariadb.pid").display()),
            "--skip-networking".into(),
            "--max-connections=500".into(),
            "--back-log=500".into(),
            "--innodb-buffer-pool-size=256M".into(),
        ];
        arguments.extend(account);
        let guarded = Guarded::start(&Launch {
            program: server,
            arguments,
            environment: Vec::new(),
            directory: dir.to_owned(),
            log: dir.join("mariadb.log"),
        })?;
        let mut service = Self { guarded, socket, reading_cost: MysqlWork::default() };
        let ready = || Counters::read(&service.socket).map(drop);
        wait_until_ready("MariaDB", &service.guarded, Duration::from_secs(60), interrupt, ready)?;
        service.execute(&schema())?;
        service.execute(&rows(KEYED_ROWS))?;
        // Twice in a row: the difference is caused by one reading.
        let first = Counters::read(&service.socket)?;
        service.reading_cost = Counters::read(&service.socket)?.since(&first, &MysqlWork::default());
        Ok(service)
    }

    /// Returns the guard's process id.
    pub fn root(&self) -> u32 {
        self.guarded.root()
    }

    /// Runs statements as the administrator.
    pub fn execute(&self, statements: &str) -> Result<()> {
        let mut client = Command::new("mariadb")
            .arg("--no-defaults")
            .arg(format!("--socket={}", self.socket.display()))
            .args(["--user=root", "--default-character-set=utf8mb4"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run the mariadb client")?;
        if let Some(mut input) = client.stdin.take() {
            input.write_all(statements.as_bytes())?;
        }
        let output = client.wait_with_output()?;
        if !output.status.success() {
            bail!("MariaDB refused a statement: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }
}

fn schema() -> String {
    format!(
        "CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4;
CREATE DATABASE wordpress CHARACTER SET utf8mb4;
CREATE USER lab@localhost IDENTIFIED BY 'lab';
GRANT ALL ON {DATABASE}.* TO lab@localhost;
GRANT ALL ON wordpress.* TO lab@localhost;
USE {DATABASE};
CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(64) NOT NULL, price INT NOT NULL, stock INT NOT NULL);
CREATE TABLE small_item (id INT PRIMARY KEY, name VARCHAR(64) NOT NULL, price INT NOT NULL, stock INT NOT NULL);
CREATE TABLE review (id INT PRIMARY KEY, item_id INT NOT NULL, stars INT NOT NULL, text VARCHAR(200) NOT NULL,
  KEY (item_id));
"
    )
}

fn rows(count: u32) -> String {
    let mut statements = format!("USE {DATABASE};\nSET autocommit = 0;\n");
    for start in (1..=count).step_by(1000) {
        let values: Vec<String> = (start..(start + 1000).min(count + 1))
            .map(|key| format!("({key},'{}',{},{})", row_name(key), 100 + key % 900, key % 50))
            .collect();
        let _ = writeln!(statements, "INSERT INTO item VALUES {};", values.join(","));
    }
    let _ = writeln!(statements, "INSERT INTO small_item SELECT * FROM item WHERE id <= {SMALL_ROWS};");
    let reviews: Vec<String> = (1..=1000u32)
        .map(|id| format!("({id},{},{},'Review {id}: it does what it claims')", 1 + id % 200, 1 + id % 5))
        .collect();
    let _ = writeln!(statements, "INSERT INTO review VALUES {};\nCOMMIT;", reviews.join(","));
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_inserted_once() {
        let statements = rows(2500);
        assert_eq!(statements.matches("INSERT INTO item ").count(), 3);
        assert_eq!(statements.matches("'item-").count(), 2500);
        assert!(statements.contains("(2500,'item-002500"));
    }
}
