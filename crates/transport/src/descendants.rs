//! Kills the children of a subreaper and all their descendants. The zygote, the server and the launcher use it, each
//! with its own selection of children.
//!
//! A script may have left a fork bomb. Ended processes count against the limit of a user or control group until they
//! are reaped, so **nothing is reaped before all of them have ended**. Otherwise each killed process makes room for
//! another, and the bomb lasts as long as it forks faster than this process kills.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, waitid, waitpid};

/// An attempt to end all children, in rounds.
#[derive(Default)]
pub struct ChildTermination {
    /// Children that had ended by the end of the last round.
    ended: Vec<Pid>,
}

impl ChildTermination {
    /// Runs one round: kills the remaining children, including unreaped ones. Returns true if all of them have ended;
    /// they are reaped then. Otherwise the caller waits a moment, lists its children again and calls again.
    pub fn round(&mut self, left: &[Pid]) -> bool {
        // Each had ended before the list was made, so the list would contain its own children.
        if left.iter().all(|pid| self.ended.contains(pid)) {
            for pid in left {
                let _ = waitpid(Some(*pid), WaitOptions::NOHANG);
            }
            return true;
        }
        for pid in left {
            // The child is not reaped, so its process id has not been reused.
            let _ = kill_process(*pid, Signal::KILL);
        }
        self.ended = left.iter().copied().filter(|&pid| has_ended(pid)).collect();
        false
    }
}

/// `true` if this child has ended. Does not reap it.
pub fn has_ended(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::Pid(pid), options), Ok(Some(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn waiting() -> (Child, Pid) {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        (child, pid)
    }

    fn until_ended(pid: Pid) {
        while !has_ended(pid) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn without_children_nothing_is_killed() {
        assert!(ChildTermination::default().round(&[]));
    }

    #[test]
    fn no_child_is_reaped_before_all_have_ended() {
        let ((_first, a), (_second, b)) = (waiting(), waiting());
        let mut ending = ChildTermination::default();
        assert!(!ending.round(&[a]));
        until_ended(a);
        // A new child appears, as with a fork bomb: the ended one remains unreaped.
        assert!(!ending.round(&[a, b]));
        until_ended(b);
        assert!(has_ended(a), "not reaped");
        while !ending.round(&[a, b]) {}
        assert!(!has_ended(a) && !has_ended(b), "both are reaped");
    }
}
