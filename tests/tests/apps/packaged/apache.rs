//! Debian's Apache with its own configuration and that of the applications' packages, as enabled by `install.sh`.

use howdah_tests::process::{self, PATIENCE, eventually, wait_for_exit};
use howdah_tests::{Target, clip};
use rustix::process::Signal;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running Apache. Dropping it ends Apache.
pub(crate) struct Apache {
    process: Child,
    pub(crate) port: u16,
    directory: TempDir,
}

impl Apache {
    pub(crate) fn start(port: u16) -> Self {
        let directory = tempfile::Builder::new().prefix("howdah-apache-").tempdir().unwrap();
        let top = directory.path();
        fs::set_permissions(top, fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["run", "lock", "log", "sessions"] {
            fs::create_dir(top.join(name)).unwrap();
            fs::set_permissions(top.join(name), fs::Permissions::from_mode(0o1777)).unwrap();
        }
        // The only changes: separate sessions, and connections that last as long as a visitor wants.
        let own = format!(
            "php_admin_value session.save_path {}\nKeepAliveTimeout 300\nMaxKeepAliveRequests 0\n",
            top.join("sessions").display()
        );
        fs::write("/etc/apache2/conf-enabled/zz-sessions.conf", own).unwrap();
        let output = fs::File::create(top.join("out")).unwrap();
        let mut command = Command::new("setpriv");
        command
            .args([
                "--pdeathsig",
                "TERM",
                "--",
                "/usr/sbin/apache2",
                "-D",
                "FOREGROUND",
                "-f",
                "/etc/apache2/apache2.conf",
            ])
            .env("APACHE_RUN_USER", "www-data")
            .env("APACHE_RUN_GROUP", "www-data")
            .env("APACHE_PID_FILE", top.join("apache.pid"))
            .env("APACHE_RUN_DIR", top.join("run"))
            .env("APACHE_LOCK_DIR", top.join("lock"))
            .env("APACHE_LOG_DIR", top.join("log"))
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output);
        let process = command.spawn().unwrap_or_else(|e| panic!("apache2: {e}: run `make setup-apps`"));
        let mut apache = Self { process, port, directory };
        let ready = eventually(PATIENCE, || {
            apache.process.try_wait().unwrap().is_some() || TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        let running = apache.process.try_wait().unwrap().is_none();
        assert!(ready && running, "apache2: {}", apache.log());
        apache
    }

    pub(crate) fn target(&self) -> Target {
        Target::Tcp(([127, 0, 0, 1], self.port).into())
    }

    fn log(&self) -> String {
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let text = read(&self.directory.path().join("out")) + &read(&self.directory.path().join("log/error.log"));
        clip(&text).to_owned()
    }
}

impl Drop for Apache {
    fn drop(&mut self) {
        let known = process::tree(self.process.id());
        process::signal(self.process.id(), Signal::TERM);
        let _ = wait_for_exit(&mut self.process, PATIENCE);
        for identity in known.iter().filter(|i| process::alive(**i)) {
            process::signal(identity.pid, Signal::KILL);
        }
    }
}
