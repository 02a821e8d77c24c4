//! Programs: run by PHP, by the C library, from memory.

use super::{sandboxed, shell, site, successes};
use howdah_tests::{Mode, Site, php, run, script_scenario};

/// `R` is replaced with a command that creates a file with the appended name.
const PROGRAMS: &[(&str, &str)] = &[
    ("exec", "exec(R . '1');"),
    ("system", "system(R . '2');"),
    ("passthru", "passthru(R . '3');"),
    ("shell_exec", "shell_exec(R . '4');"),
    ("backticks", "$r = R . '5'; `$r`;"),
    ("popen", "pclose(popen(R . '6', 'r'));"),
    ("proc_open", "proc_close(proc_open(R . '7', [], $p));"),
    ("proc_open without a shell", "proc_close(proc_open(explode(' ', R . '8'), [], $p));"),
    ("mail", "mail('a@b.example', 's', 't');"),
    ("system() of the C library", "FFI::cdef('int system(const char *);')->system(R . '9');"),
    ("posix_spawn", php!("programs.php")),
];

fn programs_run(site: &Site) -> usize {
    let command = format!("/usr/bin/touch {}", site.file("uploads/ran-").display());
    successes(site, &format!("defined('R') || define('R', '{command}');"), PROGRAMS);
    let list = std::fs::read_dir(site.file("uploads")).unwrap().flatten();
    list.filter(|entry| entry.file_name().to_string_lossy().starts_with("ran-")).count()
}

script_scenario!(
    a_web_shell_cannot_run_programs,
    howdah_only = "PHP-FPM has no sandbox",
    |s| sandboxed(s)
        .workers(1)
        .expect_log("sandbox: refused exec()")
        .expect_log("sandbox: refused to run a program: proc_open()"),
    |site| {
        let worker = shell(site, "echo getmypid();");
        assert_eq!(programs_run(site), 0);
        // These would replace the worker with a program.
        let replaced = shell(site, php!("a_web_shell_cannot_run_programs.php"));
        assert_eq!(replaced, format!("[false,-1,-1,-1,-1,-1]{worker}"));
    },
);

#[test]
fn without_a_sandbox_every_function_runs_its_program() {
    run(Mode::Classic, |s| site(s).workers(1), |site| assert_eq!(programs_run(site), PROGRAMS.len()));
}

script_scenario!(
    programs_that_are_named_run_in_the_same_sandbox,
    howdah_only = "PHP-FPM has no sandbox",
    |s| {
        let execute = "[\"/bin/cat\", \"/bin/sh\"]";
        site(s)
            .workers(1)
            .setting("sandbox", &format!("{{ profile = \"app\", write = [\"@ROOT@/uploads\"], execute = {execute} }}"))
    },
    |site| {
        let root = site.file("uploads/.keep").display().to_string();
        assert_eq!(shell(site, &format!("echo shell_exec('cat {root} && echo ran');")), "ran\n");
        assert_eq!(
            shell(
                site,
                "echo (int) shell_exec('cat /etc/passwd 2>/dev/null'), json_encode(shell_exec('/usr/bin/id'));"
            ),
            "0null"
        );
        // A program in memory has no path that a rule could allow.
        let hidden = shell(site, php!("programs_that_are_named_run_in_the_same_sandbox.php"));
        assert_eq!(hidden, "-1");
    },
);
