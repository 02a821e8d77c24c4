//! Sessions with cookies: login, staying logged in, one request at a time per session.

use howdah_tests::{Request, Response, php, script_scenario};

const LOGIN: &str = php!("sessions/login.php");

fn session_cookie(response: &Response) -> String {
    let cookies = response.all("set-cookie");
    let last =
        cookies.iter().rfind(|c| c.starts_with("PHPSESSID=")).unwrap_or_else(|| panic!("no session in {cookies:?}"));
    last.split(';').next().unwrap_or_default().to_owned()
}

script_scenario!(a_login_lasts_over_requests, |s| s.workers(3).php("login.php", LOGIN), |site| {
    assert_eq!(site.send(&Request::form("/login.php", "user=ada&password=wrong")).status, 403);
    let anonymous = session_cookie(&site.get("/login.php"));
    let logged_in =
        site.send(&Request::form("/login.php", "user=ada&password=secret").header("Cookie", &anonymous)).expect(303);
    let cookie = session_cookie(&logged_in);
    assert_ne!(cookie, anonymous, "the id is new after the login");
    for visit in 2..6 {
        let text = site.send(&Request::get("/login.php").header("Cookie", &cookie)).expect(200).text();
        assert_eq!(text, format!("hello ada {visit}"));
    }
    assert!(site.get_ok("/login.php").starts_with("hello stranger"));
    assert_eq!(site.send(&Request::get("/login.php?logout").header("Cookie", &cookie)).text(), "bye");
    assert_eq!(site.send(&Request::get("/login.php").header("Cookie", &cookie)).text(), "hello stranger 1");
});

script_scenario!(
    one_session_runs_one_request_at_a_time,
    |s| s.workers(4).php(
        "count.php",
        "session_start(); $n = $_SESSION['n'] ?? 0; usleep(2000); $_SESSION['n'] = $n + 1; echo $n + 1;"
    ),
    |site| {
        let cookie = session_cookie(&site.get("/count.php"));
        let site = &*site;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        assert_eq!(site.send(&Request::get("/count.php").header("Cookie", &cookie)).status, 200);
                    }
                });
            }
        });
        let last = site.send(&Request::get("/count.php").header("Cookie", &cookie)).expect(200).text();
        assert_eq!(last, "42", "no increment is lost");
    },
);

script_scenario!(
    a_crashed_session_holder_frees_its_lock,
    howdah_only = "the answer for a crashed worker is Howdah's own",
    |s| s
        .workers(2)
        .expect_log("worker_died")
        .php("crash.php", "session_start(); $_SESSION['a'] = 1; posix_kill(getmypid(), SIGKILL);")
        .php("ok.php", "session_start(); echo 'free';"),
    |site| {
        let cookie = "PHPSESSID=abcdefghijklmnopqrstuv";
        assert_eq!(site.send(&Request::form("/crash.php", "").header("Cookie", cookie)).status, 502);
        assert_eq!(site.send(&Request::get("/ok.php").header("Cookie", cookie)).expect(200).text(), "free");
    },
);

script_scenario!(
    session_write_close_lets_the_next_request_in,
    |s| s
        .workers(2)
        .php("hold.php", php!("sessions/session_write_close_lets_the_next_request_in.php"))
        .php("read.php", "session_start(); echo $_SESSION['a'];"),
    |site| {
        let gate = site.gate("g");
        let cookie = "PHPSESSID=0123456789abcdefghijkl";
        let mut slow = site.conn();
        slow.send(Request::get("/hold.php").header("Cookie", cookie).bytes());
        let held = gate.wait();
        assert_eq!(site.send(&Request::get("/read.php").header("Cookie", cookie)).expect(200).text(), "b");
        held.release();
        assert_eq!(slow.response("GET").text(), "held");
    },
);
