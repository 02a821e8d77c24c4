use super::*;

fn asked(socket: &Path) -> NotifyEnvironment {
    NotifyEnvironment {
        socket: Some(socket.into()),
        watchdog_us: None,
        watchdog_pid: None,
        takes_over: false,
        kept: BTreeSet::new(),
    }
}

fn heard(socket: &UnixDatagram) -> Option<String> {
    let mut bytes = [0; 4096];
    let length = socket.recv(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

fn manager() -> (tempfile::TempDir, UnixDatagram, Service) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    let manager = Manager::named(&asked(&path)).unwrap();
    (place, socket, Service { manager })
}

#[test]
fn without_a_socket_nothing_is_sent() {
    let none = NotifyEnvironment {
        socket: None,
        watchdog_us: None,
        watchdog_pid: None,
        takes_over: false,
        kept: BTreeSet::new(),
    };
    assert!(Manager::named(&none).unwrap().is_none());
    Service::default().ready("serves");
    assert!(Manager::named(&asked("vsock:2:1".as_ref())).is_err());
}

#[test]
fn an_abstract_socket_is_as_good_as_one_with_a_file() {
    let name = format!("howdah-service-{}", std::process::id());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let manager = Manager::named(&asked(format!("@{name}").as_ref())).unwrap();
    Service { manager }.stopping();
    assert!(heard(&socket).unwrap().starts_with("STOPPING=1\n"));
}

#[test]
fn the_watchdog_is_for_the_process_that_it_names_and_for_its_successor() {
    let me = std::process::id().to_string();
    let asked = |us: &str, pid: Option<&str>, takes_over| NotifyEnvironment {
        socket: None,
        watchdog_us: Some(us.into()),
        watchdog_pid: pid.map(Into::into),
        takes_over,
        kept: BTreeSet::new(),
    };
    let half = Some(Duration::from_secs(1));
    assert_eq!(asked("2000000", None, false).watchdog(), half);
    assert_eq!(asked("2000000", Some(&me), false).watchdog(), half);
    assert_eq!(asked("2000000", Some("1"), false).watchdog(), None);
    assert_eq!(asked("2000000", Some("1"), true).watchdog(), half);
    assert_eq!(asked("0", None, false).watchdog(), None);
    assert_eq!(asked("soon", None, false).watchdog(), None);
}

#[test]
fn a_replaced_process_reports_nothing_more() {
    let (_place, socket, service) = manager();
    service.replaced_by(4711);
    service.stopping();
    assert_eq!(heard(&socket).unwrap(), "MAINPID=4711\nREADY=1\nWATCHDOG=1\nSTATUS=process 4711 has taken over");
    assert_eq!(heard(&socket), None);
}

/// Reading the message closes the pipe sent with it.
#[tokio::test]
async fn a_replaced_process_waits_until_that_was_acknowledged() {
    let (_place, socket, service) = manager();
    service.replaced_by(4711);
    let mut waiting = std::pin::pin!(service.heard());
    let first = std::future::poll_fn(|cx| std::task::Poll::Ready(waiting.as_mut().poll(cx).is_ready())).await;
    assert!(!first, "nothing was read yet");
    assert!(heard(&socket).unwrap().starts_with("MAINPID=4711"));
    // The reader closes descriptors that it does not expect.
    assert_eq!(heard(&socket).unwrap(), "BARRIER=1");
    waiting.await;
}

#[test]
fn a_status_is_one_line() {
    let (_place, socket, service) = manager();
    service.ready("two\nlines");
    assert_eq!(heard(&socket).unwrap(), "READY=1\nSTATUS=two lines");
}

/// The kernel queues only a limited number of datagrams for a reader that does not read.
#[tokio::test]
async fn dropped_lines_are_reported_later_and_nothing_waits() {
    let (_place, socket, service) = manager();
    let full = service.manager.as_ref().unwrap();
    let mut filling = 0;
    while full.socket.send_to_addr(b"X=1", &full.to).is_ok() {
        filling += 1;
    }
    service.ready("serves");
    let beat = service.ping_watchdog();
    let reader = async {
        loop {
            match heard(&socket) {
                Some(message) if message == "X=1" => filling -= 1,
                Some(message) => return message,
                None => tokio::task::yield_now().await,
            }
        }
    };
    let message = tokio::select! {
        () = beat => panic!("it never ends"),
        message = reader => message,
    };
    assert_eq!((filling, &*message), (0, "READY=1\nSTATUS=serves"));
}

#[tokio::test]
async fn a_watchdog_is_notified_repeatedly() {
    let (_place, socket, mut service) = manager();
    service.manager.as_mut().unwrap().alive = Some(Duration::from_millis(1));
    let reader = async {
        for _ in 0..3 {
            while heard(&socket).is_none_or(|message| message != "WATCHDOG=1") {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::select! {
        () = service.ping_watchdog() => panic!("it never ends"),
        () = reader => {}
    }
}
