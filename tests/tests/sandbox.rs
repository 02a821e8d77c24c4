//! A script that was taken over, in a pool with `sandbox = "app"`: what it tries, in many ways, and what the application
//! around it can still do. The attempts are shown to succeed without a sandbox, so that none is one that cannot.

use howdah_tests::process::eventually;
use howdah_tests::servers::Server;
use howdah_tests::site::Port;
use howdah_tests::{Kind, Part, Request, Setup, Site, multipart, run, script_scenario};
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What an attacker has uploaded somewhere: runs what it is sent.
pub(crate) const SHELL: &str = "eval(file_get_contents('php://input'));";

pub(crate) fn site(setup: Setup) -> Setup {
    setup
        .php("shell.php", SHELL)
        .file("uploads/.keep", "")
        .file("../secret.txt", "root:x:0:0: not for everyone\n")
        .ini("ffi.enable", "1")
        .ini("display_errors", "0")
        .ini("sendmail_path", "/usr/bin/touch @ROOT@/uploads/ran-mail")
        // The warnings of PHP about what it was refused, and what is refused to FFI.
        .allow_log("PHP Warning")
        .allow_log("PHP Fatal error:  Uncaught")
}

pub(crate) fn sandboxed(setup: Setup) -> Setup {
    site(setup).setting("sandbox", "{ profile = \"app\", write = [\"@ROOT@/uploads\"] }")
}

pub(crate) fn shell(site: &Site, code: &str) -> String {
    site.send(&Request::post("/shell.php", "text/plain", code)).expect(200).text()
}

/// Runs attempts, each an expression; returns the names of those that succeeded: a text with `root:` in it, or true.
fn successes(site: &Site, prepare: &str, attempts: &[(&str, &str)]) -> Vec<String> {
    let list: String = attempts.iter().map(|(name, code)| format!("'{name}' => function () {{ {code} }},\n")).collect();
    let code = format!(
        "{prepare} $done = []; foreach ([{list}] as $name => $try) {{
            try {{ $got = @$try(); }} catch (Throwable $e) {{ $got = false; }}
            if (is_string($got) ? str_contains($got, 'root:') : $got === true) $done[] = $name;
        }} echo json_encode($done);"
    );
    let seen: serde_json::Value = serde_json::from_str(&shell(site, &code)).unwrap();
    seen.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn names(attempts: &[(&str, &str)]) -> Vec<String> {
    attempts.iter().map(|(name, _)| (*name).to_owned()).collect()
}

// --- files -------------------------------------------------------------------------------------------------------------

/// `F` is the file.
const READS: &[(&str, &str)] = &[
    ("file_get_contents", "return file_get_contents(F);"),
    ("fopen for both", "return fread(fopen(F, 'r+'), 100);"),
    ("file", "return implode(file(F));"),
    ("readfile", "ob_start(); readfile(F); return ob_get_clean();"),
    ("include", "ob_start(); include F; return ob_get_clean();"),
    ("highlight_file", "return highlight_file(F, true);"),
    ("copy", "copy(F, U . '/copied'); return file_get_contents(U . '/copied');"),
    ("a wrapper", "return file_get_contents('file://' . F);"),
    ("a filter", "return file_get_contents('php://filter/resource=' . F);"),
    ("SplFileObject", "return (new SplFileObject(F))->fgets();"),
    ("curl", "$c = curl_init('file://' . F); curl_setopt($c, CURLOPT_RETURNTRANSFER, true); return curl_exec($c);"),
    ("a detour", "return file_get_contents(U . str_repeat('/..', 12) . F);"),
    ("/proc/self/root", "return file_get_contents('/proc/self/root' . F);"),
    ("/proc/self/cwd", "return file_get_contents('/proc/self/cwd' . str_repeat('/..', 12) . F);"),
    ("a hard link", "link(F, U . '/linked'); return file_get_contents(U . '/linked');"),
    (
        "renaming it",
        "rename(F, U . '/renamed'); $s = file_get_contents(U . '/renamed'); rename(U . '/renamed', F); return $s;",
    ),
    (
        "the system call",
        "$c = FFI::cdef('long syscall(long, ...); long read(int, void *, long);'); $b = FFI::new('char[100]');
        $fd = $c->syscall(PHP_OS_FAMILY === 'Linux' && php_uname('m') === 'aarch64' ? 56 : 257, -100, F, 0);
        $n = $c->read($fd, $b, 99); return $n > 0 ? FFI::string($b, $n) : false;",
    ),
];

fn reads(site: &Site, file: &str, attempts: &[(&str, &str)]) -> Vec<String> {
    let uploads = site.file("uploads").display().to_string();
    successes(
        site,
        &format!("defined('F') || define('F', '{file}'); defined('U') || define('U', '{uploads}');"),
        attempts,
    )
}

script_scenario!(
    a_web_shell_cannot_read_files_of_the_system,
    howdah_only = "PHP-FPM has no sandbox",
    |s| sandboxed(s).workers(1).expect_log("sandbox: refused file_get_contents(/etc/passwd)"),
    |site| {
        // One whose name begins like that of something allowed, and is not.
        assert_eq!(reads(site, "/etc/passwd", READS), Vec::<String>::new());
        let seen = shell(
            site,
            "$seen = []; foreach (['/etc', '/root', '/home', '/', '/proc'] as $d) if (@scandir($d)) $seen[] = $d;
            foreach (glob('/etc/*') ?: [] as $f) $seen[] = $f;
            foreach (['/etc/shadow', '/etc/group', '/etc/ssl/private'] as $f) if (@file_get_contents($f)) $seen[] = $f;
            echo json_encode($seen);",
        );
        assert_eq!(seen, "[]");
        let log = site.log();
        assert!(log.contains("shell.php") && log.contains("(/shell.php)"), "script and address are logged: {log}");
    },
);

script_scenario!(
    a_web_shell_cannot_read_its_neighbours_files,
    howdah_only = "PHP-FPM has no sandbox",
    |s| sandboxed(s).workers(1),
    |site| {
        let secret = site.place().top.join("secret.txt").display().to_string();
        assert_eq!(reads(site, &secret, READS), Vec::<String>::new());
        assert!(std::path::Path::new(&secret).exists());
    },
);

#[test]
fn without_a_sandbox_each_of_these_ways_reads_a_file() {
    run(
        Kind::Classic,
        |s| site(s).workers(1),
        |site| {
            let secret = site.place().top.join("secret.txt").display().to_string();
            assert_eq!(reads(site, &secret, READS), names(READS));
        },
    );
}

script_scenario!(
    a_web_shell_sees_nothing_of_other_processes,
    howdah_only = "PHP-FPM has no sandbox",
    |s| sandboxed(s).workers(2),
    |site| {
        let others: Vec<u32> = site.howdah().processes().iter().map(|process| process.pid).collect();
        assert!(others.len() >= 4, "{others:?}");
        let list = others.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let seen = shell(
            site,
            &format!(
                "$c = FFI::cdef('long ptrace(int, int, void *, void *); int kill(int, int); long syscall(long, ...);');
                $seen = [];
                foreach ([{list}] as $pid) if ($pid !== getmypid()) {{
                    foreach (['environ', 'maps', 'mem', 'auxv', 'root/etc/hostname', 'cwd/howdah.toml', 'fd/2'] as $f)
                        if (@fopen(\"/proc/$pid/$f\", 'r')) $seen[] = \"$pid $f\";
                    if (posix_kill($pid, 0)) $seen[] = \"$pid posix_kill\";
                    if ($c->kill($pid, 0) === 0) $seen[] = \"$pid kill\";
                    if ($c->ptrace(16, $pid, null, null) === 0) $seen[] = \"$pid ptrace\";
                    $fd = $c->syscall(434, $pid, 0);
                    if ($fd >= 0 && $c->syscall(424, $fd, 0, 0, 0) === 0) $seen[] = \"$pid pidfd_send_signal\";
                    if ($fd >= 0 && $c->syscall(438, $fd, 0, 0) >= 0) $seen[] = \"$pid pidfd_getfd\";
                }}
                $seen[] = posix_kill(getmypid(), 0) ? 'itself' : 'not even itself';
                echo json_encode($seen);"
            ),
        );
        assert_eq!(seen, "[\"itself\"]");
        let _ = site.wait_for_log(&["sandbox: refused system call ptrace"]);
        let _ = site.wait_for_log(&["sandbox: refused system call pidfd_getfd"]);
    },
);

// --- programs ----------------------------------------------------------------------------------------------------------

/// `R` is a command that leaves a file with the name that is appended.
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
    (
        "posix_spawn",
        "$c = FFI::cdef('int posix_spawn(int *, const char *, void *, void *, char **, char **); int waitpid(int, int *, int);');
        $f = function ($s) { $m = FFI::new('char[' . (strlen($s) + 1) . ']', false); FFI::memcpy($m, $s . chr(0), strlen($s) + 1); return FFI::cast('char *', $m); };
        $a = FFI::new('char *[3]'); $a[0] = $f('/usr/bin/touch'); $a[1] = $f(explode(' ', R . '10')[1]); $a[2] = null;
        $e = FFI::new('char *[1]'); $e[0] = null; $p = FFI::new('int');
        if ($c->posix_spawn(FFI::addr($p), '/usr/bin/touch', null, null, $a, $e) === 0) $c->waitpid($p->cdata, null, 0);",
    ),
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
        // These would put a program in the worker's place.
        let replaced = shell(
            site,
            "$c = FFI::cdef('int execv(const char *, char **); int memfd_create(const char *, int); long write(int, const char *, long);
                int fexecve(int, char **, char **); long syscall(long, ...);');
            $a = FFI::new('char *[2]'); $n = FFI::new('char[2]'); $n[0] = 'x'; $a[0] = FFI::cast('char *', $n); $a[1] = null;
            $r = [@pcntl_exec('/bin/true'), $c->execv('/bin/true', $a)];
            // A program that has no name: a copy in memory, and one in a directory that can be written to.
            $program = \"#!/bin/true\\n\"; $fd = $c->memfd_create('x', 0); $c->write($fd, $program, strlen($program));
            $r[] = $c->fexecve($fd, $a, $a); $r[] = $c->execv(\"/proc/self/fd/$fd\", $a);
            file_put_contents($f = dirname(__FILE__) . '/uploads/program', $program); chmod($f, 0755);
            $r[] = $c->execv($f, $a); $r[] = $c->execv('/lib64/ld-linux-x86-64.so.2', $a);
            echo json_encode($r), getmypid();",
        );
        assert_eq!(replaced, format!("[false,-1,-1,-1,-1,-1]{worker}"));
    },
);

#[test]
fn without_a_sandbox_each_of_these_ways_runs_a_program() {
    run(Kind::Classic, |s| site(s).workers(1), |site| assert_eq!(programs_run(site), PROGRAMS.len()));
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
        // A program in memory has no path to be judged by.
        let hidden = shell(
            site,
            "$c = FFI::cdef('int memfd_create(const char *, int); int execv(const char *, char **);'); $fd = $c->memfd_create('x', 0);
            echo $fd;",
        );
        assert_eq!(hidden, "-1");
    },
);

// --- network -----------------------------------------------------------------------------------------------------------

/// `P` is a port of this machine.
const CONNECTIONS: &[(&str, &str)] = &[
    ("fsockopen", "return (bool) fsockopen('127.0.0.1', P, $e, $s, 2);"),
    ("stream_socket_client", "return (bool) stream_socket_client('tcp://127.0.0.1:' . P, $e, $s, 2);"),
    (
        "without waiting",
        "$c = stream_socket_client('tcp://127.0.0.1:' . P, $e, $s, 2, STREAM_CLIENT_ASYNC_CONNECT); return $c && fwrite($c, 'x') === 1;",
    ),
    ("socket_connect", "$s = socket_create(AF_INET, SOCK_STREAM, 0); return socket_connect($s, '127.0.0.1', P);"),
    (
        "curl",
        "$c = curl_init('telnet://127.0.0.1:' . P); curl_setopt($c, CURLOPT_CONNECT_ONLY, true); return curl_exec($c);",
    ),
    (
        "fast open",
        "$c = FFI::cdef('int socket(int, int, int); long sendto(int, const char *, long, int, char *, unsigned);');
        $a = FFI::new('char[16]'); FFI::memcpy($a, pack('vnNNN', 2, P, 0x7f000001, 0, 0), 16);
        return $c->sendto($c->socket(2, 1, 0), 'hello', 5, 0x20000000, $a, 16) >= 0;",
    ),
    (
        "several paths (MPTCP)",
        "$c = FFI::cdef('int socket(int, int, int); int connect(int, char *, unsigned);');
        $a = FFI::new('char[16]'); FFI::memcpy($a, pack('vnNNN', 2, P, 0x7f000001, 0, 0), 16);
        return $c->connect($c->socket(2, 1, 262), $a, 16) === 0;",
    ),
];

fn connections(site: &Site, port: u16) -> Vec<String> {
    // A constant would stay in modes in which the process does.
    let attempts: Vec<(&str, String)> =
        CONNECTIONS.iter().map(|(name, code)| (*name, code.replace(" P", &format!(" {port}")))).collect();
    let attempts: Vec<(&str, &str)> = attempts.iter().map(|(name, code)| (*name, code.as_str())).collect();
    successes(site, "", &attempts)
}

fn nobody_came(listener: &TcpListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    listener.accept().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[test]
fn without_a_sandbox_each_of_these_ways_connects() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    run(
        Kind::Classic,
        |s| site(s).workers(1),
        |site| {
            let came = connections(site, listener.local_addr().unwrap().port());
            // Not every kernel has these two.
            let (ours, all) =
                (|name: &String| !["several paths (MPTCP)", "fast open"].contains(&name.as_str()), names(CONNECTIONS));
            assert_eq!(
                came.into_iter().filter(ours).collect::<Vec<_>>(),
                all.into_iter().filter(ours).collect::<Vec<_>>()
            );
        },
    );
}

script_scenario!(
    a_web_shell_connects_to_no_port,
    howdah_only = "PHP-FPM has no sandbox",
    |s| sandboxed(s).workers(1),
    |site| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (port, udp) = (listener.local_addr().unwrap().port(), datagrams.local_addr().unwrap().port());
        assert_eq!(connections(site, port), Vec::<String>::new());
        assert!(nobody_came(&listener));
        let seen = successes(
            site,
            "",
            &[
                ("a datagram", &format!("return fwrite(fsockopen('udp://127.0.0.1', {udp}), 'x') === 1;")),
                ("the socket of a datagram", "return socket_create(AF_INET, SOCK_DGRAM, 0) instanceof Socket;"),
                ("a raw socket", "return socket_create(AF_INET, SOCK_RAW, 1) instanceof Socket;"),
                ("a raw socket, v6", "return socket_create(AF_INET6, SOCK_RAW, 58) instanceof Socket;"),
                ("packets", "return FFI::cdef('int socket(int, int, int);')->socket(17, 3, 0) >= 0;"),
                ("messages of the kernel", "return FFI::cdef('int socket(int, int, int);')->socket(16, 3, 15) >= 0;"),
                ("virtual machines", "return FFI::cdef('int socket(int, int, int);')->socket(40, 1, 0) >= 0;"),
                ("listening", "return (bool) stream_socket_server('tcp://127.0.0.1:0');"),
                ("listening anywhere", "return socket_create_listen(0) instanceof Socket;"),
            ],
        );
        assert_eq!(seen, ["listening anywhere"; 0]);
        datagrams.set_nonblocking(true).unwrap();
        assert!(datagrams.recv(&mut [0; 8]).is_err());
        let _ = site.wait_for_log(&["sandbox: refused a connection to 127.0.0.1 port"]);
        let _ = site.wait_for_log(&["sandbox: refused system call socket"]);
    },
);

#[test]
fn a_port_that_is_named_is_reached_and_its_neighbour_is_not() {
    let (named, other) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    run(
        Kind::Classic,
        |s| {
            site(s).workers(1).setting(
                "sandbox",
                &format!("{{ profile = \"app\", write = [\"@ROOT@/uploads\"], connect = {} }}", port(&named)),
            )
        },
        |site| {
            let came = connections(site, port(&named));
            for name in ["fsockopen", "stream_socket_client", "without waiting", "socket_connect", "curl"] {
                assert!(came.contains(&name.to_owned()), "{name} of {came:?}");
            }
            assert_eq!(connections(site, port(&other)), Vec::<String>::new());
            assert!(nobody_came(&other));
        },
    );
}

// --- code --------------------------------------------------------------------------------------------------------------

script_scenario!(
    a_web_shell_leaves_no_code_where_code_runs,
    howdah_only = "PHP-FPM has no sandbox",
    |s| sandboxed(s).workers(1).library("lib/used.php", "return 'as it was';"),
    |site| {
        let code = "$root = dirname(__DIR__) . '/root'; $f = __FILE__; $evil = '<?php echo \"EVIL\";'; file_put_contents(\"$root/uploads/e.php\", $evil);";
        let seen = successes(
            site,
            &format!("{code} define('ROOT', $root); define('EVIL', $evil);"),
            &[
                ("a new script", "return file_put_contents(ROOT . '/new.php', EVIL) > 0;"),
                ("changing one", "return file_put_contents(ROOT . '/lib/used.php', EVIL) > 0;"),
                ("appending to one", "return fwrite(fopen(ROOT . '/lib/used.php', 'a'), EVIL) > 0;"),
                (
                    "truncating one",
                    "return FFI::cdef('int truncate(const char *, long);')->truncate(ROOT . '/lib/used.php', 0) === 0;",
                ),
                ("moving one there", "return rename(ROOT . '/uploads/e.php', ROOT . '/new.php');"),
                ("moving one over another", "return rename(ROOT . '/uploads/e.php', ROOT . '/lib/used.php');"),
                ("a hard link", "return link(ROOT . '/uploads/e.php', ROOT . '/new.php');"),
                ("a symbolic link", "return symlink(ROOT . '/uploads/e.php', ROOT . '/new.php');"),
                ("a link to elsewhere", "return symlink('/etc', ROOT . '/uploads/etc');"),
                ("deleting one", "return unlink(ROOT . '/lib/used.php');"),
                ("moving the directory", "return rename(ROOT . '/lib', ROOT . '/uploads/lib');"),
                ("a new directory", "return mkdir(ROOT . '/newdir');"),
                (
                    "settings of a directory",
                    "return file_put_contents(ROOT . '/.user.ini', 'auto_prepend_file=uploads/e.php') > 0;",
                ),
                ("the library of PHP", "return file_put_contents('/usr/share/php/evil.php', EVIL) > 0;"),
                ("a pipe", "return posix_mkfifo(ROOT . '/uploads/pipe', 0600);"),
            ],
        );
        assert_eq!(seen, Vec::<String>::new());
        assert_eq!(std::fs::read_to_string(site.file("lib/used.php")).unwrap(), "<?php\nreturn 'as it was';\n");
        assert!(site.file("uploads/e.php").is_file());
    },
);

/// Puts files for the next test where an upload would be.
const SMUGGLE: &str = "$d = dirname(__DIR__) . '/root/uploads'; $evil = '<?php echo \"EV\" . \"IL\";';
    file_put_contents(\"$d/e.php\", $evil); file_put_contents(\"$d/e.txt\", $evil); file_put_contents(\"$d/e.gz\", gzencode($evil));
    copy(dirname($d) . '/archive.phar', \"$d/e.jpg\"); file_put_contents(\"$d/e.ini\", 'a = 1'); file_put_contents(sys_get_temp_dir() . '/e.php', $evil);";

fn archive() -> Vec<u8> {
    let path = std::env::temp_dir().join(format!("howdah-archive-{}.phar", std::process::id()));
    let code = format!("$p = new Phar('{}'); $p['e.php'] = '<?php echo \"EV\" . \"IL\";';", path.display());
    let made = Command::new("php").args(["-d", "phar.readonly=0", "-r", &code]).status().unwrap();
    assert!(made.success());
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    bytes
}

/// Expressions for names of these.
const INCLUDES: [&str; 13] = [
    r#""$d/e.php""#,
    r#""$d/e.txt""#,
    r#""$d/../uploads/e.php""#,
    r#""uploads/e.php""#,
    r#""$d/../linked/e.php""#,
    r#""file://$d/e.php""#,
    r#""php://filter/resource=$d/e.php""#,
    r#""PHP://FILTER/read=string.rot13|string.rot13/resource=$d/e.php""#,
    r#""compress.zlib://$d/e.gz""#,
    r#""php://filter/resource=compress.zlib://$d/e.gz""#,
    r#""phar://$d/e.jpg/e.php""#,
    r#""phar://$d/../linked/e.jpg/e.php""#,
    r#"sys_get_temp_dir() . "/e.php""#,
];

fn included(site: &Site) -> String {
    let list = INCLUDES.join(", ");
    let code = format!(
        "{SMUGGLE} chdir(dirname($d)); ob_start();
        foreach ([{list}] as $f) {{ try {{ @include $f; }} catch (Throwable $e) {{}} }}
        echo substr_count(ob_get_clean(), 'EVIL'), ' of {}, ', parse_ini_file(\"$d/e.ini\")['a'];
        unlink(sys_get_temp_dir() . '/e.php');",
        INCLUDES.len()
    );
    shell(site, &code)
}

fn with_archive(setup: Setup) -> Setup {
    setup.file("archive.phar", archive()).ini("open_basedir", "")
}

fn link_uploads(site: &Site) {
    std::os::unix::fs::symlink("uploads", site.file("linked")).unwrap();
}

script_scenario!(
    an_upload_is_never_code,
    howdah_only = "PHP-FPM has no sandbox",
    |s| with_archive(sandboxed(s))
        .workers(1)
        .expect_log("sandbox: refused to run a file from a directory for data as PHP"),
    |site| {
        link_uploads(site);
        // Twice: the second time OPcache would have it.
        assert_eq!(included(site), format!("0 of {}, 1", INCLUDES.len()));
        assert_eq!(included(site), format!("0 of {}, 1", INCLUDES.len()));
    },
);

#[test]
fn without_a_sandbox_an_upload_is_code() {
    run(
        Kind::Classic,
        |s| with_archive(site(s)).workers(1),
        |site| {
            link_uploads(site);
            assert_eq!(included(site), format!("{} of {}, 1", INCLUDES.len(), INCLUDES.len()));
        },
    );
}

#[test]
fn no_request_runs_an_upload() {
    for kind in [Kind::Classic, Kind::Snapshot] {
        let setup = |s: Setup| {
            sandboxed(s)
                .workers(1)
                .setting("static.follow_symlinks", "\"always\"")
                .allow_log("Access to the script is denied")
                .expect_log("sandbox: refused to run a script in a directory that can be written to")
        };
        run(kind, setup, |site| {
            link_uploads(site);
            shell(
                site,
                "mkdir($d = dirname(__FILE__) . '/uploads/sub'); file_put_contents(\"$d/index.php\", '<?php echo 1;'); copy(\"$d/index.php\", \"$d/../e.php\");",
            );
            assert!(site.file("uploads/sub/index.php").is_file());
            for path in [
                "/uploads/e.php",
                "/uploads/e.php/info",
                "/uploads/sub/",
                "/uploads/sub/index.php",
                "/linked/e.php",
                "/uploads/../uploads/e.php",
            ] {
                let status = site.get(path).status;
                assert!(matches!(status, 400 | 403 | 404), "{path}: {status}");
            }
            assert_eq!(site.get("/uploads/e.php").status, 403);
        });
    }
}

#[test]
fn code_that_the_application_writes_is_included_but_not_run_by_a_request() {
    run(
        Kind::Classic,
        |s| {
            site(s)
                .workers(1)
                .file("var/cache/.keep", "")
                .setting(
                    "sandbox",
                    "{ profile = \"app\", write = [\"@ROOT@/var\"], write_code = [\"@ROOT@/var/cache\"] }",
                )
                .allow_log("Access to the script is denied")
        },
        |site| {
            let code = "foreach (['/var/cache/t.php', '/var/t.php'] as $f) { file_put_contents(__DIR__ . $f, '<?php return 7;'); echo json_encode(@include __DIR__ . $f); }";
            let code = code.replace("__DIR__", "dirname(__DIR__) . '/root'");
            assert_eq!(shell(site, &code), "7false");
            assert_eq!(site.get("/var/cache/t.php").status, 403);
        },
    );
}

// --- the application ---------------------------------------------------------------------------------------------------

script_scenario!(
    an_application_works_in_a_sandbox,
    howdah_only = "PHP-FPM has no sandbox",
    |s| sandboxed(s)
        .workers(2)
        .php(
            "upload.php",
            "echo json_encode(move_uploaded_file($_FILES['f']['tmp_name'], __DIR__ . '/uploads/' . $_POST['as']));"
        )
        .php("session.php", "session_start(); echo $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; session_write_close();")
        .library("lib/used.php", "return 'library';"),
    |site| {
        let big = vec![b'x'; 300_000];
        let parts = [
            Part { name: "as", file: None, content: b"big.bin" },
            Part { name: "f", file: Some(("big.bin", "application/octet-stream")), content: &big },
        ];
        assert_eq!(site.send(&multipart("/upload.php", &parts)).expect(200).text(), "true");
        assert_eq!(site.get("/uploads/big.bin").expect(200).body.len(), big.len());
        let first = site.get("/session.php").expect(200);
        let cookie = first.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        assert_eq!(site.send(&Request::get("/session.php").header("Cookie", &cookie)).expect(200).text(), "2");
        let seen = shell(
            site,
            r"$root = dirname(__DIR__) . '/root'; $u = $root . '/uploads'; $r = [];
            $t = tempnam(sys_get_temp_dir(), 'x'); file_put_contents($t, 'moved');
            @mkdir($u . '/a'); @mkdir($u . '/b');
            $r['across'] = rename($t, $u . '/a/f') && rename($u . '/a/f', $u . '/b/f') ? file_get_contents($u . '/b/f') : false;
            $r['locked'] = file_put_contents($u . '/b/f', 'x', FILE_APPEND | LOCK_EX);
            $r['gone'] = unlink($u . '/b/f') && rmdir($u . '/b') && rmdir($u . '/a');
            $r['list'] = in_array('uploads', scandir($root));
            $r['lib'] = require $root . '/lib/used.php';
            $r['opcache'] = opcache_get_status(false)['opcache_enabled'] ?? false;
            $r['intl'] = (new NumberFormatter('de_DE', NumberFormatter::DECIMAL))->format(1234.5);
            $r['zone'] = (new DateTime('2024-07-01 12:00', new DateTimeZone('Europe/Vienna')))->getOffset();
            $r['iconv'] = iconv('UTF-8', 'ISO-8859-15', '€') === chr(164);
            $r['random'] = strlen(random_bytes(16)) + strlen(openssl_random_pseudo_bytes(16));
            $r['file type'] = (new finfo(FILEINFO_MIME_TYPE))->file($root . '/ready.txt');
            $r['null'] = file_put_contents('/dev/null', 'x');
            $db = new PDO('sqlite:' . $u . '/d.sqlite'); $db->exec('PRAGMA journal_mode=WAL'); $db->exec('CREATE TABLE IF NOT EXISTS t (a)'); $db->exec('INSERT INTO t VALUES (1)');
            $r['sqlite'] = $db->query('SELECT max(a) FROM t')->fetchColumn() == 1; $db = null;
            $r['load'] = count(sys_getloadavg() ?: []);
            $r['memory file'] = fwrite(fopen('php://temp/maxmemory:10', 'r+'), str_repeat('x', 100));
            $r['tmpfile'] = fwrite(tmpfile(), 'x');
            $r['xml'] = simplexml_load_string('<a>b</a>')->__toString();
            echo json_encode($r, JSON_UNESCAPED_SLASHES);",
        );
        let expected = serde_json::json!({"across": "moved", "locked": 1, "gone": true, "list": true, "lib": "library", "opcache": true, "intl": "1.234,5",
            "zone": 7200, "iconv": true, "random": 32, "file type": "text/plain", "null": 1, "sqlite": true, "load": 3, "memory file": 100, "tmpfile": 1, "xml": "b"});
        assert_eq!(serde_json::from_str::<serde_json::Value>(&seen).unwrap(), expected);
    },
);

/// A server for HTTPS, by OpenSSL.
struct Https {
    process: Child,
    port: Port,
    directory: tempfile::TempDir,
}

impl Https {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (key, cert) = (directory.path().join("key.pem"), directory.path().join("cert.pem"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout"])
            .args([key.as_os_str(), "-out".as_ref(), cert.as_os_str()])
            .stderr(Stdio::null())
            .status();
        assert!(made.unwrap().success());
        let port = Port::hold();
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "openssl", "s_server", "-www", "-quiet", "-accept"])
            .arg(format!("127.0.0.1:{}", port.number))
            .args(["-key".as_ref(), key.as_os_str(), "-cert".as_ref(), cert.as_os_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let up = || std::net::TcpStream::connect(("127.0.0.1", port.number)).is_ok();
        assert!(eventually(Duration::from_secs(60), up), "openssl s_server");
        Self { process, port, directory }
    }
}

impl Drop for Https {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn databases_and_services_that_are_named_are_reached() {
    let (database, https) = (Server::mariadb(), Https::start());
    let (port, socket) = (database.port, database.directory().join("db.sock").display().to_string());
    for kind in [Kind::Classic, Kind::Worker, Kind::Snapshot, Kind::Async] {
        let sandbox = format!(
            "{{ profile = \"app\", write = [\"@ROOT@/uploads\"], connect = [{port}, {}], read = [\"{}\"] }}",
            https.port.number,
            https.directory.path().display()
        );
        run(
            kind,
            |s| site(s).workers(1).setting("sandbox", &sandbox),
            |site| {
                let code = format!(
                "$r = []; foreach (['host=127.0.0.1;port={port}', 'unix_socket={socket}'] as $where)
                    $r[] = (new PDO(\"mysql:$where\", strpos($where, 'socket') ? 'root' : 'tester', ''))->query('SELECT 6 * 7')->fetchColumn();
                $c = curl_init('https://localhost:{}/'); curl_setopt_array($c, [CURLOPT_RETURNTRANSFER => true, CURLOPT_CAINFO => '{}/cert.pem']);
                $r[] = str_contains((string) curl_exec($c), 's_server') ?: curl_error($c); echo json_encode($r);",
                https.port.number,
                https.directory.path().display()
            );
                assert_eq!(shell(site, &code), "[42,42,true]", "{kind:?}");
            },
        );
    }
}
