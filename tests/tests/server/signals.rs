//! Every signal that can be sent to the server has a deliberate effect, and never its default action.

use super::lifecycle::{finishes_running_requests, holding};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Request, scenario};
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::Command;

scenario!(
    quit_finishes_running_requests_as_in_phpfpm_and_nginx,
    howdah_only = "checks how Howdah ends",
    holding,
    |site| finishes_running_requests(site, Signal::QUIT),
);

scenario!(
    usr2_reloads_as_in_phpfpm,
    howdah_only = "compares Howdah's processes",
    |s| s.workers(1).php("pid.php", "echo getmypid();"),
    |site| {
        let before = site.get_ok("/pid.php");
        site.howdah().signal(Signal::USR2);
        assert!(eventually(PATIENCE, || site.get_ok("/pid.php") != before), "the same worker serves");
    },
);

scenario!(
    signals_without_a_meaning_are_logged_and_change_nothing,
    howdah_only = "checks Howdah's log",
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

scenario!(
    real_time_signals_are_logged_and_change_nothing,
    howdah_only = "checks Howdah's log",
    |s| s.php("hello.php", "echo 'hello';"),
    |site| {
        // The shell's `kill`: libraries name only the standard signals.
        for signal in ["RTMIN", "RTMIN+7", "RTMAX"] {
            let pid = site.howdah().pid().to_string();
            assert!(
                Command::new("bash").args(["-c", "kill -s \"$0\" \"$1\"", signal, &pid]).status().unwrap().success()
            );
            let _ = site.wait_for_log(&["signal ignored", "a real-time signal"]);
            assert_eq!(site.get_ok("/hello.php"), "hello", "after {signal}");
        }
    },
);

scenario!(
    quit_to_the_process_group_finishes_running_requests,
    howdah_only = "checks how Howdah ends",
    holding,
    |site| {
        // Sent by Ctrl-\ in a terminal, and by `docker stop` with `--init`.
        let gate = site.gate("g");
        let mut conn = site.conn();
        conn.send(Request::get("/hold.php").bytes());
        let held = gate.wait();
        let server = Pid::from_raw(i32::try_from(site.howdah().pid()).unwrap()).unwrap();
        kill_process_group(server, Signal::QUIT).unwrap();
        let target = site.target().clone();
        assert!(eventually(PATIENCE, || Conn::try_open(&target).is_err()), "the server still accepts connections");
        held.release();
        assert_eq!(conn.response("GET").expect(200).text(), "finished");
        assert_eq!(site.howdah_mut().wait(), Some(0));
    },
);
