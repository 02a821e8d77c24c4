//! A sandbox's settings: the output of `howdah check`, kernels that cannot enforce it, separate pools, learning, and
//! refused system calls.

use super::{SHELL, sandboxed, shell, site};
use howdah_tests::process::eventually;
use howdah_tests::site::Port;
use howdah_tests::{Mode, Request, Setup, Site, php, run, script_scenario};
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

/// Calls of each refused group, with arguments that do no harm if the call is executed.
const CALLS: &[(&str, &str)] = &[
    ("trace", "process_vm_readv(int, void *, long, void *, long, long)|getmypid(), null, 0, null, 0, 0"),
    ("mount", "mount(char *, char *, char *, long, void *)|null, null, null, 0, null"),
    ("namespaces", "unshare(int)|0x10000000"),
    ("kernel", "personality(long)|0x0040000"),
    ("clock", "sethostname(char *, long)|null, 0"),
];

script_scenario!(
    system_calls_that_reach_into_the_system_are_refused,
    howdah_only = "PHP-FPM has no sandbox",
    |s| sandboxed(s).workers(1),
    |site| {
        for (group, call) in CALLS {
            let (declaration, arguments) = call.split_once('|').unwrap();
            let name = declaration.split('(').next().unwrap();
            // A buffer for the library's own call, so that only the permission is missing.
            let code = php!(
                "settings/system_calls_that_reach_into_the_system_are_refused_code.php",
                DECLARATION = declaration,
                NAME = name,
                ARGUMENTS = arguments
            );
            assert_eq!(shell(site, &code), "-1 1", "{group}");
            let _ = site.wait_for_log(&[&format!("sandbox: refused system call {name}")]);
        }
        // A filter cannot read its flags, because they lie in memory.
        let clone3 = php!("settings/system_calls_that_reach_into_the_system_are_refused_clone3.php");
        assert_eq!(shell(site, clone3), "-1 38");
    },
);

#[test]
fn a_script_in_a_loop_of_refusals_does_not_fill_the_log() {
    run(
        Mode::Classic,
        |s| sandboxed(s).workers(1),
        |site| {
            shell(site, "for ($i = 0; $i < 5000; $i++) @file_get_contents('/etc/passwd');");
            shell(site, "$c = FFI::cdef('int unshare(int);'); for ($i = 0; $i < 5000; $i++) $c->unshare(0x10000000);");
            let lines = site.log().lines().filter(|line| line.contains("sandbox: refused")).count();
            assert!((1..2000).contains(&lines), "{lines}");
        },
    );
}

#[test]
fn children_of_scripts_are_in_the_same_sandbox() {
    run(
        Mode::Classic,
        |s| sandboxed(s).workers(1),
        |site| {
            let code = php!("settings/children_of_scripts_are_in_the_same_sandbox.php");
            assert_eq!(shell(site, &code.replace("__DIR__", "dirname(__DIR__) . '/root'")), "[false,false]");
        },
    );
}

#[test]
fn each_pool_has_its_own_sandbox() {
    run(
        Mode::Classic,
        |s| {
            site(s)
                .workers(1)
                .more_processes(2)
                .php("free/shell.php", SHELL)
                .setting("sandbox", "\"app\"")
                .setting("rule", "[{ path = \"/free/*\", pool = \"free\" }]")
                .setting("pool.free.sandbox", "\"off\"")
                .setting("pool.free.workers", "1")
        },
        |site| {
            let ask = |path: &str| {
                let code = "echo json_encode(@file_get_contents('/etc/passwd') !== false);";
                site.send(&Request::post(path, "text/plain", code)).expect(200).text()
            };
            assert_eq!(ask("/shell.php"), "false");
            assert_eq!(ask("/free/shell.php"), "true");
        },
    );
}

/// Starts a program on a simulated kernel without Landlock.
const WITHOUT_LANDLOCK: &str = r#"#!/usr/bin/perl
# landlock_create_ruleset (444) fails with ENOSYS; the other numbers are of linux/filter.h and linux/seccomp.h.
my $arm = `uname -m` =~ /aarch64/;
my $prctl = $arm ? 167 : 157;
my @steps = ([0x20, 0, 0, 0], [0x15, 0, 1, 444], [0x06, 0, 0, 0x00050026], [0x06, 0, 0, 0x7fff0000]);
my $steps = join '', map { pack 'SCCL', @$_ } @steps;
my $program = pack 'Sx![Q]Q', scalar @steps, unpack 'Q', pack 'P', $steps;
syscall($prctl, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
syscall($prctl, 22, 2, $program) == 0 or die "seccomp: $!";
exec @PROGRAM@, @ARGV;
"#;

fn on_an_old_kernel(setup: Setup) -> Setup {
    let program = howdah_tests::howdah::php_program().display().to_string();
    setup.file("../old.pl", WITHOUT_LANDLOCK.replace("@PROGRAM@", &format!("'{program}'")))
}

fn make_executable(site: &Site) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = site.place().top.join("old.pl");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn check(configuration: &str, site: &Site) -> String {
    let file = site.place().top.join("check.toml");
    std::fs::write(&file, format!("root = \"root\"\n{configuration}")).unwrap();
    let output = Command::new(howdah_tests::howdah::program())
        .args(["check", "--config"])
        .arg(&file)
        .env("HOWDAH_ALLOW_ROOT", "true")
        .output()
        .unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn check_shows_the_final_profile_and_the_kernels_support() {
    run(
        Mode::Classic,
        |s| on_an_old_kernel(s).workers(1),
        |site| {
            let php = format!("[php]\nbinary = \"{}\"\n", howdah_tests::howdah::php_program().display());
            let off = check(&php, site);
            assert!(
                off.contains("# Sandbox of pool default: profile \"off\"\n#   this kernel: Landlock version"),
                "{off}"
            );
            let app = format!(
                "{php}[sandbox]\nprofile = \"app\"\nwrite = [\"root/uploads\"]\nconnect = [3306]\n[pool.p.sandbox]\nprofile = \"app\"\ndeny = [\"unix\"]\n"
            );
            let shown = check(&app, site);
            for text in [
                "the whole sandbox is enforced",
                "root/uploads  (write; does not exist yet)",
                "connect by TCP to: 3306",
                "PHP's session.save_path",
                "profile = \"app\"                                  # ",
                "terminal, unix\n",
            ] {
                assert!(shown.contains(text), "{text:?} in {shown}");
            }
            let old = app.replace(&howdah_tests::howdah::php_program().display().to_string(), &make_executable(site));
            let shown = check(&old, site);
            assert!(shown.contains("no Landlock, seccomp; does not restrict files (Linux 5.13"), "{shown}");
            assert!(shown.contains("this pool does not start here, because `required` is true"), "{shown}");
        },
    );
}

/// A second server, on a kernel that cannot enforce its sandbox.
fn serve_on_an_old_kernel(site: &Site, required: bool, until: &str) -> String {
    let top = &site.place().top;
    let port = Port::hold();
    let toml = format!(
        "root = \"root\"\nlisten = \"127.0.0.1:{}\"\nadmin = \"unix:{}/old.sock\"\nworkers = 1\n\
         [php]\nbinary = \"{}\"\n[sandbox]\nprofile = \"app\"\nrequired = {required}\n",
        port.number,
        top.display(),
        make_executable(site)
    );
    std::fs::write(top.join("old.toml"), toml).unwrap();
    let log = top.join("old.log");
    let mut server = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--"])
        .arg(howdah_tests::howdah::program())
        .args(["serve", "--config"])
        .arg(top.join("old.toml"))
        .env("TMPDIR", &site.place().tmp)
        .env("HOWDAH_ALLOW_ROOT", "true")
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    let said = eventually(Duration::from_secs(60), || read().contains(until));
    let answer = (!required).then(|| {
        let target = howdah_tests::Target::Tcp(([127, 0, 0, 1], port.number).into());
        howdah_tests::Conn::open(&target)
            .exchange(&Request::post(
                "/shell.php",
                "text/plain",
                "echo json_encode(@file_get_contents('/etc/passwd') !== false), json_encode(@exec('id'));",
            ))
            .text()
    });
    howdah_tests::process::signal(server.id(), rustix::process::Signal::TERM);
    let _ = server.wait();
    assert!(said, "{}", read());
    answer.unwrap_or_default()
}

#[test]
fn a_pool_whose_sandbox_cannot_be_enforced_stays_down_unless_configured_otherwise() {
    run(
        Mode::Classic,
        |s| on_an_old_kernel(site(s)).workers(1),
        |site| {
            serve_on_an_old_kernel(site, true, "this kernel does not restrict files (Linux 5.13");
            // Then files are not restricted, and system calls still are.
            assert_eq!(serve_on_an_old_kernel(site, false, "WEAKER THAN CONFIGURED"), "truefalse");
        },
    );
}

#[test]
fn a_learning_sandbox_prints_the_applications_needs() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for mode in [Mode::Classic, Mode::Worker, Mode::Snapshot, Mode::Async] {
        run(
            mode,
            |s| site(s).workers(2).file("made/.keep", "").setting("sandbox", "\"learn\""),
            |site| {
                let root = site.file("").display().to_string();
                let code =
                    php!("settings/a_learning_sandbox_prints_the_applications_needs.php", ROOT = root, PORT = port);
                assert_eq!(shell(site, &code), "1ran", "nothing is refused");
                let learnt = || String::from_utf8(site.howdah().command(&["status", "--sandbox"]).stdout).unwrap();
                let wanted = [
                    "[sandbox]\nprofile = \"app\"\n".to_owned(),
                    "\"/etc/passwd\"".to_owned(),
                    format!("write = [\"{root}uploads\"]"),
                    format!("write_code = [\"{root}made\"]"),
                    format!("connect = [{port}]"),
                    "execute = [\"/usr/bin/dash\"]".to_owned(),
                ];
                let complete =
                    eventually(Duration::from_secs(30), || wanted.iter().all(|text| learnt().contains(text)));
                assert!(complete, "{mode:?}: {}", learnt());
                let status = String::from_utf8(site.howdah().command(&["status"]).stdout).unwrap();
                assert!(status.contains("sandbox learn, "), "{status}");
            },
        );
    }
}
