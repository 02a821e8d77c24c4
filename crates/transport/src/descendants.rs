//! Ends children of a subreaper, with all that they have started. The zygote, the server and the launcher use it, each
//! with its own choice of children.
//!
//! A script may have left a fork bomb. What has ended counts against the limit of a user or of a control group until it is
//! reaped, so **nothing is reaped before all of it has ended**: otherwise each process that is killed makes room for
//! another one, and the bomb lasts for as long as it forks faster than this process kills.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, waitid, waitpid};

/// An attempt to end children, round by round, until there are none.
#[derive(Default)]
pub struct Ending {
    /// Had ended at the end of the last round.
    ended: Vec<Pid>,
}

impl Ending {
    /// One round: kills the children that are left, unreaped ones included. True if nothing of them is alive any more;
    /// they are reaped then. If not, the caller waits a moment, lists its children again and calls again.
    pub fn round(&mut self, left: &[Pid]) -> bool {
        // Each of them had ended before they were listed, so its own children would have been in the list.
        if left.iter().all(|pid| self.ended.contains(pid)) {
            for pid in left {
                let _ = waitpid(Some(*pid), WaitOptions::NOHANG);
            }
            return true;
        }
        for pid in left {
            // A child that is not reaped: the number is still its own.
            let _ = kill_process(*pid, Signal::KILL);
        }
        self.ended = left.iter().copied().filter(|&pid| has_ended(pid)).collect();
        false
    }
}

/// `true` if this child has ended; it stays unreaped.
#[must_use]
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
    fn without_children_there_is_nothing_to_end() {
        assert!(Ending::default().round(&[]));
    }

    #[test]
    fn no_child_is_reaped_before_all_have_ended() {
        let ((_first, a), (_second, b)) = (waiting(), waiting());
        let mut ending = Ending::default();
        assert!(!ending.round(&[a]));
        until_ended(a);
        // Another one has come, as a bomb's do: the first one goes on taking its place.
        assert!(!ending.round(&[a, b]));
        until_ended(b);
        assert!(has_ended(a), "not reaped");
        while !ending.round(&[a, b]) {}
        assert!(!has_ended(a) && !has_ended(b), "both are reaped");
    }
}
