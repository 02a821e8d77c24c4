//! MariaDB's own counters: connections and statements that a run really caused.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::record::MysqlWork;

/// Counters at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Reads the counters of the server at `socket`, and resets its maximum of simultaneous connections.
    pub fn read(socket: &Path) -> Result<Self> {
        let output = Command::new("mariadb")
            .arg("--no-defaults")
            .arg(format!("--socket={}", socket.display()))
            .args(["--user=root", "--batch", "--skip-column-names", "--execute"])
            .arg("SHOW GLOBAL STATUS WHERE Variable_name IN ('Connections', 'Questions', 'Bytes_sent', 'Max_used_connections'); FLUSH STATUS")
            .output()
            .context("cannot run the mariadb client")?;
        if !output.status.success() {
            bail!("MariaDB does not answer: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(Self::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    fn parse(text: &str) -> Self {
        Self(
            text.lines()
                .filter_map(|line| line.split_once('\t'))
                .filter_map(|(name, value)| Some((name.to_lowercase(), value.trim().parse().ok()?)))
                .collect(),
        )
    }

    fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Returns the work since `before`, without the work of reading the counters, which is `reading`.
    pub fn since(&self, before: &Self, reading: &MysqlWork) -> MysqlWork {
        let difference = |name: &str| self.get(name).saturating_sub(before.get(name));
        MysqlWork {
            connections: difference("connections").saturating_sub(reading.connections),
            questions: difference("questions").saturating_sub(reading.questions),
            bytes_sent: difference("bytes_sent").saturating_sub(reading.bytes_sent),
            // The connection that reads the counters is one of them.
            most_open: self.get("max_used_connections").saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_the_difference_without_the_cost_of_reading() {
        let before = Counters::parse("Connections\t10\nQuestions\t100\nBytes_sent\t1000\n");
        let after = Counters::parse("Connections\t31\nQuestions\t163\nBytes_sent\t9000\nMax_used_connections\t12\n");
        let reading = MysqlWork { connections: 1, questions: 3, bytes_sent: 500, most_open: 0 };
        let work = after.since(&before, &reading);
        assert_eq!((work.connections, work.questions, work.bytes_sent), (20, 60, 7500));
        assert_eq!(work.most_open, 11);
    }
}
