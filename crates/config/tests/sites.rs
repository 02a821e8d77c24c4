//! Sites in `howdah.toml` and in site files: inheritance, and errors with file and line.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use howdah_config::{
    ByteSize, ConfigErrors, Environment, HostPattern, Loaded, ServeFlags, Settings, SiteSettings, load_in,
};

/// A directory with these files and a directory for each root, to load settings in.
struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for root in ["a", "b", "top"] {
            std::fs::create_dir(dir.path().join(root)).unwrap();
        }
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn load(&self) -> Result<Loaded, ConfigErrors> {
        let env = [("XDG_RUNTIME_DIR".to_owned(), self.path().to_str().unwrap().to_owned())].into();
        let environment = Environment { current_dir: self.path().to_path_buf(), env, ..Environment::default() };
        load_in(&ServeFlags::default(), &environment)
    }

    fn settings(&self) -> Settings {
        self.load().unwrap().settings
    }

    fn errors(&self) -> Vec<String> {
        self.load().map(|loaded| loaded.settings).unwrap_err().to_string().lines().map(str::to_owned).collect()
    }
}

#[test]
fn without_sites_the_top_level_is_the_one_site() {
    let files = Files::new(&[("howdah.toml", "root = \"top\"\nserver_name = \"www.example.org\"\n")]);
    let settings = files.settings();
    assert!(settings.sites.is_empty());
    let sites = settings.all_sites();
    assert_eq!((sites.len(), sites[0].name.as_str(), &sites[0].hosts[..]), (1, "default", &[HostPattern::Any][..]));
    assert_eq!(sites[0].root, files.path().join("top"));
    assert_eq!(sites[0].server_name.as_deref(), Some("www.example.org"));
}

#[test]
fn a_site_inherits_the_settings_that_it_does_not_set() {
    let files = Files::new(&[(
        "howdah.toml",
        r#"
index = ["home.php"]
[http]
max_body = "3M"
[static]
dotfiles = true
x_accel_redirect = { "/one/" = "/usr" }
[pool.api]
workers = 2
[[rule]]
path = "/api/*"
pool = "api"
weight = 3

[[site]]
hosts = ["Shop.Example", "*.shop.example"]
root = "a"
front_controller = ""
server_name = "shop.example"
[site.static]
x_accel_redirect = { "/two/" = "/etc" }
[site.http]
max_body = "64M"
[site.log]
access = "shop.log"
[[site.rule]]
path = "/x/*"
pool = "api"
workers = 1

[[site]]
name = "rest"
hosts = "default"
root = "b"
pool = "api"
"#,
    )]);
    let settings = files.settings();
    let [shop, rest] = &settings.sites[..] else { panic!() };
    assert_eq!((shop.name.as_str(), rest.name.as_str()), ("shop.example", "rest"));
    assert_eq!(shop.hosts.iter().map(ToString::to_string).collect::<Vec<_>>(), ["shop.example", "*.shop.example"]);
    assert_eq!((shop.pool.as_str(), rest.pool.as_str()), ("default", "api"));
    assert_eq!((&shop.index, &rest.index), (&vec!["home.php".to_owned()], &vec!["home.php".to_owned()]));
    assert_eq!((shop.front_controller.as_deref(), rest.front_controller.as_deref()), (None, Some("index.php")));
    assert_eq!((shop.http.max_body, rest.http.max_body), (Some(ByteSize(64 << 20)), Some(ByteSize(3 << 20))));
    assert!(shop.static_files.dotfiles);
    assert_eq!(shop.static_files.x_accel_redirect.len(), 2);
    assert_eq!(rest.static_files.x_accel_redirect.len(), 1);
    assert_eq!((shop.rules.routes().len(), &*shop.rules.routes()[0].name), (1, "/x/*"));
    assert_eq!(rest.rules, settings.rules);
    let shares: Vec<_> = settings.shares().iter().map(|share| (share.workers, share.weight)).collect();
    assert_eq!(shares, [(0, 3), (1, 1)]);
    let share = |site: &SiteSettings| site.rules.routes()[0].share.map(|share| share.number);
    assert_eq!((share(rest), share(shop)), (Some(0), Some(1)));
    let alone = settings.of_one_site(rest);
    assert_eq!(alone.rules.pools().collect::<Vec<_>>(), ["default"], "its own pool is the default one there");
    let api = settings.pool("api").unwrap();
    assert_eq!(settings.site_of(api).unwrap().name, "rest");
    assert_eq!(settings.root_of(&settings.pools[0]), files.path().join("a"));
    assert_eq!(settings.further_roots_of(api), [files.path().join("a")]);
    assert!(settings.further_roots_of(&settings.pools[0]).is_empty());
}

#[test]
fn site_files_hold_one_site_or_several_and_their_pools() {
    let files = Files::new(&[
        ("howdah.toml", "root = \"top\"\n[pool.shared]\n"),
        (
            "conf.d/20-two.toml",
            "[[site]]\nhosts = \"two\"\npool = \"own\"\n[[site]]\nhosts = \"three\"\n[pool.own]\nworkers = 3\n",
        ),
        (
            "conf.d/10-one.toml",
            "hosts = \"one\"\nroot = \"../a\"\n[pool]\nworkers = 1\nwatch = \"x/*.php\"\nsandbox = \"app\"\n[http]\nmax_body = 7\n",
        ),
        ("conf.d/ignored.toml~", "nonsense"),
    ]);
    let settings = files.settings();
    let seen: Vec<_> = settings.sites.iter().map(|site| (site.name.as_str(), site.pool.as_str())).collect();
    assert_eq!(seen, [("one", "one"), ("two", "own"), ("three", "default")]);
    let one = settings.pool("one").unwrap();
    assert_eq!(one.workers.max, 1);
    assert_eq!(one.watch, [files.path().join("conf.d/x/*.php").to_str().unwrap()]);
    assert_eq!(settings.pool("own").unwrap().workers.max, 3);
    assert_eq!(settings.sites[0].root, files.path().join("a"));
    assert_eq!(settings.sites[1].root, files.path().join("top"));
    assert_eq!(settings.sites[0].http.max_body, Some(ByteSize(7)));
    assert_eq!(settings.site_files.len(), 2);
}

#[test]
fn every_mistake_is_reported_with_its_file_and_line() {
    let files = Files::new(&[
        (
            "howdah.toml",
            "[[site]]\nhosts = [\"one\", \"a:80\"]\nroot = \"a\"\n\n[[site]]\nhosts = \"two\"\nroot = \"nowhere\"\n[site.http]\nidle_timeout = 5\nmax_bodi = 1\n",
        ),
        (
            "conf.d/a.toml",
            "hosts = [\"two\", \"three\"]\nroot = \"../a\"\npool = \"shp\"\nlisten = \":80\"\nworkers = 3\n\n[log]\nlevel = \"debug\"\n",
        ),
        ("conf.d/b.toml", "root = \"../a\"\n"),
        ("conf.d/c.toml", "[[site]]\nhosts = \"c\"\n\n[http]\nmax_body = 3\n"),
        ("conf.d/d.toml", "hosts = \"d\nroot = 3"),
        (
            "conf.d/e.toml",
            "name = \"two\"\nhosts = \"e\"\nroot = \"../a\"\n[pool]\nworkerz = 3\n[[rule]]\npath = \"/x\"\n",
        ),
    ]);
    let errors = files.errors();
    for expected in [
        "howdah.toml:2: [site.one] hosts: expected a host without a port",
        "howdah.toml:7: [site.two] root: ",
        "howdah.toml:9: [site.two.http] idle_timeout: unknown key; it applies to all sites and belongs to [http]",
        "howdah.toml:10: [site.two.http] max_bodi: unknown key; did you mean max_body?",
        "conf.d/a.toml:1: [site.two (3)] hosts: \"two\" is a host of the site \"two\" too",
        "conf.d/a.toml:3: [site.two (3)] pool: there is no pool \"shp\"",
        "conf.d/a.toml:4: [site.two] listen: unknown key; it applies to all sites and belongs to the top level",
        "conf.d/a.toml:5: [site.two] workers: unknown key; it belongs to a pool",
        "conf.d/a.toml:8: [site.two.log] level: unknown key; it applies to all sites and belongs to [log]",
        "conf.d/b.toml:1: [site.line 1] hosts: needs at least one host",
        "conf.d/c.toml:1: [site.c] root: is required",
        "conf.d/c.toml:4: http: a file with [[site]] sections may contain only these and [pool.NAME]",
        "conf.d/d.toml:1: ",
        "conf.d/e.toml:1: site: the site at ",
        "conf.d/e.toml:5: [site.two.pool] workerz: unknown key; did you mean workers?",
        "conf.d/e.toml:6: [site.two (6)] rule: the rule does nothing",
    ] {
        assert!(errors.iter().any(|error| error.starts_with(expected)), "{expected}\n{errors:#?}");
    }
}

#[test]
fn settings_shown_with_sites_load_again() {
    let files = Files::new(&[
        (
            "howdah.toml",
            "[static]\ndotfiles = true\n[[site]]\nhosts = [\"default\"]\nroot = \"a\"\n[site.static]\ndotfiles = false\n[[site.rule]]\npath = \"/x\"\npool = \"b.example\"\n",
        ),
        (
            "conf.d/b.toml",
            "hosts = [\"b.example\", \"*.b.example\"]\nroot = \"../b\"\nserver_name = \"b.example\"\n[pool]\nworkers = 1\n",
        ),
    ]);
    let loaded = files.load().unwrap();
    let shown = loaded.show();
    assert!(shown.contains("# conf.d/b.toml:1\n"), "{shown}");
    // A test has no such program.
    let shown: String =
        shown.lines().filter(|line| !line.starts_with("binary = ")).map(|line| format!("{line}\n")).collect();
    let again = Files::new(&[("howdah.toml", &shown)]);
    let mut settings = again.load().unwrap_or_else(|errors| panic!("{errors}\n{shown}")).settings;
    assert_eq!(settings.sites.len(), 2);
    for (site, first) in settings.sites.iter_mut().zip(&loaded.settings.sites) {
        site.origin = first.origin.clone();
    }
    assert_eq!(settings.sites, loaded.settings.sites);
    assert_eq!(settings.pools.len(), 2);
}

#[test]
fn certificates_are_obtained_for_the_hosts_of_sites() {
    let toml = "[tls]\nauto = true\n[[site]]\nroot = \"a\"\nhosts = [\"shop.example\", \"*.shop.example\", \"intranet\"]\n\
                [[site]]\nroot = \"b\"\nhosts = \"default\"\n";
    let settings = Files::new(&[("howdah.toml", toml)]).settings();
    assert_eq!(settings.acme.names, ["shop.example"]);
    let named = format!("[acme]\nnames = [\"other.example\"]\n{toml}");
    assert_eq!(Files::new(&[("howdah.toml", &named)]).settings().acme.names, ["other.example"]);
}
