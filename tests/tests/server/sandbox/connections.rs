//! Connections: to ports of this machine, raw sockets, listening.

use super::{names, sandboxed, site, successes};
use howdah_tests::{Mode, Site, php, run, script_scenario};
use std::net::{TcpListener, UdpSocket};

/// `P` is replaced with a port of this machine.
const CONNECTIONS: &[(&str, &str)] = &[
    ("fsockopen", "return (bool) fsockopen('127.0.0.1', P, $e, $s, 2);"),
    ("stream_socket_client", "return (bool) stream_socket_client('tcp://127.0.0.1:' . P, $e, $s, 2);"),
    ("without waiting", php!("connect_without_waiting.php")),
    ("socket_connect", "$s = socket_create(AF_INET, SOCK_STREAM, 0); return socket_connect($s, '127.0.0.1', P);"),
    ("curl", php!("connect_by_curl.php")),
    ("fast open", php!("connect_by_fast_open.php")),
    (
        "several paths (MPTCP)",
        "$c = FFI::cdef('int socket(int, int, int); int connect(int, char *, unsigned);');
        $a = FFI::new('char[16]'); FFI::memcpy($a, pack('vnNNN', 2, P, 0x7f000001, 0, 0), 16);
        return $c->connect($c->socket(2, 1, 262), $a, 16) === 0;",
    ),
];

fn connections(site: &Site, port: u16) -> Vec<String> {
    // A constant would persist in modes that keep the process.
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
fn without_a_sandbox_every_function_connects() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    run(
        Mode::Classic,
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
        Mode::Classic,
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
