//! A Symfony or Laravel project in Composer's layout, on Debian's packages, and a `howdah serve` without settings that serves
//! it.

use howdah_tests::howdah::{php_program, program};
use howdah_tests::process::{PATIENCE, eventually, signal};
use howdah_tests::site::replace_file;
use howdah_tests::{Conn, Request, Response, Target};
use rustix::process::Signal;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const FRAMEWORK: &str = "/usr/share/php/Symfony/Bundle/FrameworkBundle/autoload.php";
const RUNTIME: &str = "/usr/share/php/Symfony/Component/Runtime/Internal/autoload_runtime.template";
pub(super) const INDEX: &str = include_str!("php/recipes/symfony_index.php");
pub(super) const KERNEL: &str = include_str!("php/recipes/symfony_kernel.php");
const LOCK: &str = r#"{"packages": [{"name": "symfony/framework-bundle", "version": "v5.4.0"},
    {"name": "symfony/runtime", "version": "v5.4.0"}]}"#;

macro_rules! need_symfony {
    () => {
        if !crate::server::project::has_symfony() {
            howdah_skip::skip!(
                "symfony",
                "Debian's php-symfony-framework-bundle and php-symfony-runtime are not installed"
            );
        }
    };
}
pub(super) use need_symfony;

pub(super) fn has_symfony() -> bool {
    Path::new(FRAMEWORK).exists() && Path::new(RUNTIME).exists()
}

pub(super) const LARAVEL: &str = "/usr/share/php/Illuminate/autoload.php";
pub(super) const OF_LARAVEL: &[(&str, &str)] = &[
    ("composer.lock", r#"{"packages": [{"name": "laravel/framework", "version": "v8.83.26"}]}"#),
    ("vendor/autoload.php", include_str!("../apps/laravel/autoload.php")),
    ("public/index.php", include_str!("../apps/laravel/public/index.php")),
    ("app/Counter.php", include_str!("../apps/laravel/app/Counter.php")),
    ("app/HttpKernel.php", include_str!("../apps/laravel/app/HttpKernel.php")),
    ("app/Routes.php", include_str!("../apps/laravel/app/Routes.php")),
    ("bootstrap/app.php", include_str!("../apps/laravel/bootstrap/app.php")),
    ("config/app.php", include_str!("../apps/laravel/config/app.php")),
    ("config/auth.php", include_str!("../apps/laravel/config/auth.php")),
    ("config/cache.php", include_str!("../apps/laravel/config/cache.php")),
    ("config/database.php", include_str!("../apps/laravel/config/database.php")),
    ("config/logging.php", include_str!("../apps/laravel/config/logging.php")),
    ("config/session.php", include_str!("../apps/laravel/config/session.php")),
    ("config/view.php", include_str!("../apps/laravel/config/view.php")),
    ("resources/views/page.blade.php", include_str!("../apps/laravel/resources/views/page.blade.php")),
    ("routes/web.php", include_str!("../apps/laravel/routes/web.php")),
    ("bootstrap/cache/.keep", ""),
    ("storage/data.sqlite", ""),
    ("storage/framework/sessions/.keep", ""),
    ("storage/framework/views/.keep", ""),
    ("storage/logs/.keep", ""),
];

/// A project in a separate directory.
pub(super) struct Project {
    top: TempDir,
    pub(super) dir: PathBuf,
}

impl Project {
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let top = tempfile::tempdir().unwrap();
        let project = Self { dir: top.path().join("project"), top };
        project.write("composer.json", "{}");
        files.iter().for_each(|(name, text)| project.write(name, text));
        project
    }

    pub(super) fn symfony() -> Self {
        let generated = fs::read_to_string(RUNTIME)
            .unwrap()
            .replace("%runtime_class%", r"'Symfony\\Component\\Runtime\\SymfonyRuntime'")
            .replace("%runtime_options%", "['project_dir' => dirname(__DIR__, 1)]");
        Self::of(&[
            ("composer.lock", LOCK),
            (".env", "APP_ENV=prod\nAPP_SECRET=secret\nGREETING=hello\n"),
            ("public/index.php", INDEX),
            ("public/style.css", "a {}"),
            ("src/Kernel.php", KERNEL),
            ("vendor/autoload.php", include_str!("php/recipes/symfony_autoload.php")),
            ("vendor/autoload_runtime.php", &generated),
            ("var/sessions/.keep", ""),
        ])
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        replace_file(&path, text);
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).unwrap_or_default()
    }

    /// Serves the project with these flags in addition to those that tests need.
    pub(super) fn serve(&self, flags: &[&str]) -> Served<'_> {
        self.serve_with_times("", flags)
    }

    /// With these durations instead of the usual ones: `name=duration`, separated by commas.
    pub(super) fn serve_with_times(&self, times: &str, flags: &[&str]) -> Served<'_> {
        let socket = self.top.path().join("http.sock");
        let log = self.top.path().join("log");
        let listen = format!("unix:{}", socket.display());
        let admin = format!("unix:{}", self.top.path().join("admin.sock").display());
        let errors = ["-d", "error_reporting=E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED", "-d", "display_errors=0"];
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program());
        command.args(["serve", "--listen", &listen, "--admin", &admin, "--state"]).arg(self.top.path().join("state"));
        command.args(errors).args(flags);
        command.current_dir(&self.dir).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("TMPDIR", self.top.path()).env("HOWDAH_ALLOW_ROOT", "true").env("HOWDAH_PHP", php_program());
        command.env("HOWDAH_WORKERS", "2").env("HOWDAH_TEST_TIMES", times);
        let child = command.stdout(Stdio::null()).stderr(File::create(&log).unwrap()).spawn().unwrap();
        let served = Served { project: self, child: Some(child), target: Target::Unix(socket), log };
        assert!(
            eventually(PATIENCE, || Conn::try_open(&served.target).is_ok()),
            "the server does not listen: {}",
            served.log()
        );
        served
    }

    /// Runs a command on the server that serves the project, through its admin socket.
    pub(super) fn command(&self, arguments: &[&str]) -> String {
        let admin = format!("unix:{}", self.top.path().join("admin.sock").display());
        let output = Command::new(program()).args(arguments).args(["--admin", &admin]).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Serves the project in classic mode.
    pub(super) fn classic(&self) -> Served<'_> {
        self.serve(&["--mode", "classic"])
    }
}

pub(super) struct Served<'a> {
    project: &'a Project,
    pub(super) child: Option<Child>,
    target: Target,
    log: PathBuf,
}

impl Served<'_> {
    /// The output of `howdah status`.
    pub(super) fn status(&self) -> String {
        self.project.command(&["status"])
    }

    pub(super) fn send(&self, request: Request) -> Response {
        Conn::open(&self.target).exchange(&request.close())
    }

    pub(super) fn get(&self, path: &str) -> (u16, String) {
        let response = self.send(Request::get(path));
        (response.status, response.text())
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(super) fn wait_for_log(&self, text: &str) {
        assert!(eventually(PATIENCE, || self.log().contains(text)), "no \"{text}\" in: {}", self.log());
    }

    /// Waits until requests run in this mode.
    pub(super) fn wait_for_mode(&self, mode: &str) {
        let expected = (200, format!("{mode} 1"));
        assert!(eventually(PATIENCE, || self.get("/mode") == expected), "not in {mode} mode: {}", self.log());
    }

    /// Each page without request-specific parts; requested twice, so that state left by the first request shows.
    pub(super) fn pages(&self, paths: &[&str]) -> Vec<String> {
        let own = regex_lite::Regex::new(r#""REQUEST_ID": "\w+""#).unwrap();
        let ask = |path: &str| {
            let response = self.send(Request::get(path));
            let text = own.replace_all(&response.text(), "").into_owned();
            format!("{path} {} {:?} {text}", response.status, response.header("content-type"))
        };
        paths.iter().chain(paths).map(|path| ask(path)).collect()
    }

    pub(super) fn finish(mut self) -> String {
        let child = self.child.take().unwrap();
        signal(child.id(), Signal::TERM);
        let output = child.wait_with_output().unwrap();
        let said = self.log();
        assert!(output.status.success(), "{said}");
        said
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = &self.project;
    }
}
