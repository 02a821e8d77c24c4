//! Every signal that somebody may send to the server has an effect on purpose, and never its default action.

use super::lifecycle::{finishes_what_runs, holding};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::scenario;
use rustix::process::Signal;

scenario!(
    quit_finishes_what_runs_as_phpfpm_and_nginx_do,
    howdah_only = "the end of howdah is judged",
    holding,
    |site| finishes_what_runs(site, Signal::QUIT),
);

scenario!(
    usr2_reloads_as_in_phpfpm,
    howdah_only = "the processes of howdah are compared",
    |s| s.workers(1).php("pid.php", "echo getmypid();"),
    |site| {
        let before = site.get_ok("/pid.php");
        site.howdah().signal(Signal::USR2);
        assert!(eventually(PATIENCE, || site.get_ok("/pid.php") != before), "the same worker serves");
    },
);

scenario!(
    signals_without_a_meaning_are_logged_and_change_nothing,
    howdah_only = "the log of howdah is read",
    |s| s.php("hello.php", "echo 'hello';"),
    |site| {
        let signals = [Signal::ALARM, Signal::VTALARM, Signal::PROF, Signal::IO, Signal::POWER, Signal::XCPU];
        let unheard = [Signal::XFSZ, Signal::STKFLT, Signal::WINCH, Signal::PIPE, Signal::URG, Signal::CONT];
        for signal in signals.into_iter().chain(unheard) {
            site.howdah().signal(signal);
            assert_eq!(site.get_ok("/hello.php"), "hello", "after {signal:?}");
        }
        let names = ["ALRM", "VTALRM", "PROF", "IO", "PWR", "XCPU"];
        names.iter().for_each(|name| drop(site.wait_for_log(&["signal ignored", &format!("signal={name}")])));
    },
);
