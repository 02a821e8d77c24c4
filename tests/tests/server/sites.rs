//! Several sites in one server: the site for each host, and each site's own settings.

use howdah_tests::howdah::program;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Request, Setup, Site, php, scenario};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

const WHO: &str = php!("sites/who.php");

const SHOP: &str = r#"
hosts = ["shop.example", "*.shop.example", "192.0.2.7", "[2001:db8::1]"]
root = "../../shop"
server_name = "www.shop.example"

[pool]
workers = 1
env = { POOL = "own" }

[http]
max_body = 10
server_header = "Shop"

[[rule]]
cache_control = "max-age=5"

[log]
access = "../shop.log"
format = "json"
"#;

const BLOG: &str = r#"
[[site]]
name = "blog"
hosts = "Blog.Example."
root = "../../blog"
front_controller = ""
pool = "blogs"

[[site.rule]]
path = "/old/*"
pool = "default"

[pool.blogs]
workers = 1
env = { POOL = "blogs" }
"#;

/// Sites in files next to `howdah.toml`; requests for an unknown host get 421.
pub(super) fn two_sites(setup: Setup) -> Setup {
    setup
        .more_processes(4)
        .setting("log.access", "\"@TOP@/run/access.log\"")
        .file("../run/conf.d/10-shop.toml", SHOP)
        .file("../run/conf.d/20-blog.toml", BLOG)
        // The site that the harness uses to check readiness.
        .file("../run/conf.d/30-local.toml", "hosts = \"localhost\"\nroot = \"../../root\"\n")
        .php("../shop/index.php", WHO)
        .php("../blog/index.php", WHO)
        .php("../blog/old/who.php", WHO)
        .file("../shop/a.txt", "of the shop")
        .file("../blog/a.txt", "of the blog")
        .file("a.txt", "of no site")
        .allow_log("no site has this host")
        .allow_log("request body exceeds 10")
}

/// The status and body of the response to a request written by hand.
fn raw(site: &Site, head: &str) -> (u16, String) {
    let mut conn = Conn::open(site.target());
    conn.send(format!("{head}\r\nConnection: close\r\n\r\n").replace("\r\n\r\n\r\n", "\r\n\r\n"));
    let response = conn.response("GET");
    (response.status, response.text())
}

fn of(site: &Site, host: &str) -> (u16, String) {
    raw(site, &format!("GET /a.txt HTTP/1.1\r\nHost: {host}"))
}

scenario!(hosts_lead_to_their_sites, howdah_only = "sites are Howdah's", two_sites, |site| {
    for host in
        ["shop.example", "SHOP.example:8080", "shop.example.", "a.b.shop.example", "192.0.2.7:80", "[2001:DB8:0::1]:80"]
    {
        assert_eq!(of(site, host), (200, "of the shop".to_owned()), "{host}");
    }
    assert_eq!(of(site, "blog.example"), (200, "of the blog".to_owned()));
    for host in ["example", "xshop.example", "blog.example.evil", "127.0.0.1", "a.blog.example", ""] {
        let (status, text) = of(site, host);
        assert_eq!(status, 421, "{host}: {text}");
        assert!(text.contains("421 Misdirected Request: the request has a host"), "{text}");
    }
    assert_eq!(of(site, "not a host").0, 400);
});

scenario!(the_target_goes_before_the_host_header, howdah_only = "sites are Howdah's", two_sites, |site| {
    let absolute =
        |host: &str, header: &str| raw(site, &format!("GET http://{host}/a.txt HTTP/1.1\r\nHost: {header}")).1;
    assert_eq!(absolute("blog.example", "shop.example"), "of the blog");
    assert_eq!(absolute("shop.example:81", "nobody.example"), "of the shop");
    assert_eq!(raw(site, "GET http://nobody.example/a.txt HTTP/1.1\r\nHost: shop.example").0, 421);
    assert_eq!(raw(site, "GET /a.txt HTTP/1.0\r\nHost: shop.example").1, "of the shop");
    assert_eq!(raw(site, "GET http://blog.example/a.txt HTTP/1.0\r\n").1, "of the blog");
    assert_eq!(raw(site, "GET /a.txt HTTP/1.0").0, 421);
});

scenario!(http_2_has_sites_too, howdah_only = "sites are Howdah's", two_sites, |site| {
    let ask = |host: &str| {
        let output = Command::new("curl")
            .args(["-s", "--http2-prior-knowledge", "-w", " %{http_code}"])
            .arg("--connect-to")
            .arg(format!("::127.0.0.1:{}", site.port()))
            .arg(format!("http://{host}/a.txt"))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(ask("shop.example"), "of the shop 200");
    assert_eq!(ask("BLOG.example:99"), "of the blog 200");
    assert!(ask("nobody.example").ends_with(" 421"));
});

fn who(site: &Site, host: &str, path: &str) -> Value {
    let mut conn = Conn::open(site.target());
    conn.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    conn.response("GET").expect(200).json()
}

scenario!(each_site_has_root_pool_name_and_front_controller, howdah_only = "sites are Howdah's", two_sites, |site| {
    let shop = who(site, "shop.example", "/no/such/page");
    assert_eq!((&shop["root"], &shop["pool"]), (&"shop".into(), &"own".into()));
    assert_eq!((&shop["name"], &shop["host"]), (&"www.shop.example".into(), &"shop.example".into()));
    let blog = who(site, "blog.example:81", "/");
    assert_eq!((&blog["root"], &blog["pool"]), (&"blog".into(), &"blogs".into()));
    assert_eq!((&blog["name"], &blog["host"]), (&"blog.example".into(), &"blog.example:81".into()));
    assert_eq!(who(site, "blog.example", "/old/who.php")["pool"], "default");
    assert_eq!(raw(site, "GET /no/such/page HTTP/1.1\r\nHost: blog.example").0, 404);
    // The same path is a different file in each site, including from the caches.
    for _ in 0..3 {
        assert_eq!(
            (of(site, "shop.example").1, of(site, "blog.example").1),
            ("of the shop".into(), "of the blog".into())
        );
    }
});

scenario!(each_site_has_limits_and_fields, howdah_only = "sites are Howdah's", two_sites, |site| {
    let post = |host: &str| {
        let mut conn = Conn::open(site.target());
        conn.send(format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 11\r\nConnection: close\r\n\r\nhello world"
        ));
        conn.response("POST")
    };
    assert_eq!(post("shop.example").status, 413);
    assert_eq!(post("blog.example").status, 200);
    let get = |host: &str| {
        let mut conn = Conn::open(site.target());
        conn.send(format!("GET /a.txt HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
        conn.response("GET")
    };
    let (shop, blog) = (get("shop.example"), get("blog.example"));
    assert_eq!((shop.header("server"), blog.header("server")), (Some("Shop"), Some("Howdah")));
    assert_eq!((shop.header("cache-control"), blog.header("cache-control")), (Some("max-age=5"), None));
});

scenario!(
    access_logs_name_host_and_site_and_a_site_may_have_its_own,
    howdah_only = "sites are Howdah's",
    two_sites,
    |site| {
        assert_eq!(of(site, "Shop.Example:81").0, 200);
        assert_eq!(of(site, "blog.example").0, 200);
        assert_eq!(of(site, "nobody.example").0, 421);
        let log = |name: &str| fs::read_to_string(site.place().run.join(name)).unwrap();
        // A line is written once its response has been sent.
        let others = || -> Vec<String> {
            let others = log("access.log");
            others.lines().filter(|line| !line.ends_with(" host=localhost")).map(str::to_owned).collect()
        };
        let written = eventually(PATIENCE, || others().len() == 2 && log("shop.log").ends_with('\n'));
        let lines = others();
        assert!(written, "{lines:?} {}", log("shop.log"));
        let shop: Value = serde_json::from_str(log("shop.log").trim()).unwrap();
        assert_eq!((&shop["site"], &shop["host"]), (&"shop.example".into(), &"Shop.Example:81".into()));
        assert!(lines[0].ends_with(" site=blog host=blog.example"), "{lines:?}");
        assert!(lines[1].contains(" 421 ") && lines[1].ends_with(" site=- host=nobody.example"), "{lines:?}");
        let metrics = Conn::open(&site.howdah().admin()).exchange(&Request::get("/metrics")).text();
        assert!(metrics.contains("howdah_unknown_host_requests_total 1\n"), "{metrics}");
    }
);

scenario!(requests_for_unknown_hosts_may_have_a_site, howdah_only = "sites are Howdah's", two_sites, |site| {
    assert_eq!(of(site, "nobody.example").0, 421);
    let default =
        two_sites(Setup::default()).file("../run/conf.d/99-rest.toml", "hosts = \"default\"\nroot = \"../../root\"\n");
    let other = Site::start(howdah_tests::Mode::Classic, &default);
    assert_eq!(of(&other, "nobody.example"), (200, "of no site".to_owned()));
    assert_eq!(raw(&other, "GET /a.txt HTTP/1.0"), (200, "of no site".to_owned()));
    assert_eq!(of(&other, "shop.example").1, "of the shop");
    other.finish();
},);

scenario!(
    a_trusted_proxy_s_host_chooses_the_site,
    howdah_only = "sites are Howdah's",
    |s| two_sites(s)
        .setting("http.trusted_proxies", "[\"127.0.0.1\"]")
        .setting("http.trusted_headers", "[\"X-Forwarded-Host\"]"),
    |site| {
        let text = raw(site, "GET /a.txt HTTP/1.1\r\nHost: inner\r\nX-Forwarded-Host: blog.example").1;
        assert_eq!(text, "of the blog");
        assert_eq!(of(site, "shop.example").1, "of the shop");
    },
);

scenario!(
    each_site_runs_as_its_own_user,
    howdah_only = "sites are Howdah's",
    |s| s
        .needs_root()
        .open_to_users()
        .more_processes(4)
        .setting("user", "\"nobody\"")
        .file(
            "../run/conf.d/a.toml",
            "hosts = [\"a\", \"localhost\"]\nroot = \"../../root\"\n[pool]\nuser = \"www-data\"\nworkers = 1\n"
        )
        .file("../run/conf.d/b.toml", "hosts = \"b\"\nroot = \"../../root\"\n[pool]\nuser = \"daemon\"\nworkers = 1\n")
        .php("who.php", WHO),
    |site| {
        for (host, user) in [("a", "www-data"), ("b", "daemon")] {
            assert_eq!(who(site, host, "/who.php")["user"], crate::server::users::number(user), "{host}");
        }
    },
);

/// `howdah check` in a directory with these files.
fn check(files: &[(&str, &str)]) -> (tempfile::TempDir, Output) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let output = Command::new(program())
        .current_dir(dir.path())
        .arg("check")
        .env("HOWDAH_ALLOW_ROOT", "true")
        .env("XDG_RUNTIME_DIR", dir.path())
        .output()
        .unwrap();
    (dir, output)
}

#[test]
fn check_lists_sites_and_every_mistake_in_their_files() {
    let (_dir, output) = check(&[
        ("howdah.toml", "root = \".\"\n[[site]]\nhosts = [\"one\", \"*.one\"]\n"),
        ("conf.d/two.toml", "hosts = \"two\"\nroot = \"..\"\n[pool]\nworkers = 1\n"),
    ]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("hosts = [\"one\", \"*.one\"]") && text.contains("[pool.two]"), "{text}");
    assert!(text.contains("# conf.d/two.toml:2\n"), "{text}");

    let (_dir, output) = check(&[
        ("howdah.toml", "root = \".\"\n[[site]]\nhosts = [\"one\"]\npool = \"none\"\n"),
        ("conf.d/two.toml", "hosts = [\"two\", \"ONE.\"]\nlisten = \":80\"\n"),
    ]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    for expected in [
        "howdah.toml:4: [site.one] pool: there is no pool \"none\"",
        "conf.d/two.toml:1: [site.two] hosts: \"one\" is a host of the site \"one\" too, howdah.toml:3",
        "conf.d/two.toml:2: [site.two] listen: unknown key",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}
