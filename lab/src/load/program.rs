//! Runs a generator that is a separate program, or two with a pipe between them, until it ends, times out, or the user
//! stops the lab.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::interrupt::Interrupt;
use crate::sample::proc_tree;

/// Output of the programs, and their processor time in seconds.
#[derive(Debug)]
pub struct Ended {
    pub text: String,
    pub cpu: f64,
}

/// Runs the commands, each with the output of the previous one as its input.
pub fn run(commands: &mut [Command], limit: Duration, interrupt: &Interrupt) -> Result<Ended> {
    let before = proc_tree::own_ended_children_seconds();
    let mut children: Vec<Child> = Vec::new();
    let ended = pipeline(commands, &mut children)
        .and_then(|()| output_within(&mut children, limit, interrupt))
        .and_then(|text| {
            for child in &mut children {
                let status = child.wait()?;
                if !status.success() {
                    bail!("the load generator ended {status}: {}", text.trim());
                }
            }
            Ok(text)
        });
    if ended.is_err() {
        for child in &mut children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
    Ok(Ended { text: ended?, cpu: proc_tree::own_ended_children_seconds() - before })
}

fn pipeline(commands: &mut [Command], children: &mut Vec<Child>) -> Result<()> {
    for command in commands {
        let input = match children.last_mut() {
            Some(before) => before.stdout.take().map_or_else(Stdio::null, Stdio::from),
            None => Stdio::null(),
        };
        // A separate process group: Ctrl-C in the terminal reaches the lab first.
        command.process_group(0).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
        children.push(child);
    }
    Ok(())
}

fn output_within(children: &mut [Child], limit: Duration, interrupt: &Interrupt) -> Result<String> {
    let (sender, receiver) = channel();
    let last = children.last_mut().context("nothing to run")?;
    let mut stdout = last.stdout.take().context("the load generator has no output")?;
    let mut errors: Vec<_> = children.iter_mut().filter_map(|child| child.stderr.take()).collect();
    thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.read_to_string(&mut text);
        for stderr in &mut errors {
            let _ = stderr.read_to_string(&mut text);
        }
        let _ = sender.send(text);
    });
    let deadline = Instant::now() + limit;
    loop {
        match receiver.recv_timeout(Duration::from_millis(100)) {
            Ok(text) => return Ok(text),
            Err(RecvTimeoutError::Disconnected) => bail!("the output of the load generator was lost"),
            Err(RecvTimeoutError::Timeout) => interrupt.check()?,
        }
        if Instant::now() > deadline {
            bail!("the load generator did not end in time");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_reads_the_output_of_the_one_before() {
        let mut both = [shell("echo one"), shell("cat; echo two")];
        let ended = run(&mut both, Duration::from_secs(300), &Interrupt::default()).unwrap();
        assert_eq!(ended.text, "one\ntwo\n");
    }

    #[test]
    fn a_failure_shows_the_output() {
        let error = run(&mut [shell("echo no such host >&2; exit 3")], Duration::from_secs(300), &Interrupt::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("no such host"), "{error}");
    }
}
