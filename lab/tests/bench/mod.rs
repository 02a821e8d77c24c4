//! A lab with a separate directory for its results and temporary files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use howdah_lab::systems;

pub(crate) const LAB: &str = env!("CARGO_BIN_EXE_howdah-lab");

pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("lab-test-").tempdir().unwrap();
        fs::create_dir(dir.path().join("tmp")).unwrap();
        // Servers that drop privileges must reach the applications below.
        for open in [dir.path().to_owned(), dir.path().join("tmp")] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn out(&self) -> String {
        self.path("out").display().to_string()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(LAB);
        command.args(arguments).env("TMPDIR", self.path("tmp")).stdin(Stdio::null());
        command
    }

    /// Returns the processes whose command line mentions this test's directory.
    pub(crate) fn processes(&self) -> Vec<String> {
        let needle = self.dir.path().display().to_string();
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
            .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
            .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
            .filter(|line| line.contains(&needle))
            .collect()
    }

    /// Checks that nothing is left: no process, no directory of the lab.
    pub(crate) fn assert_clean(&self) {
        let deadline = Instant::now() + Duration::from_secs(45);
        loop {
            let processes = self.processes();
            let files: Vec<PathBuf> =
                fs::read_dir(self.path("tmp")).unwrap().flatten().map(|entry| entry.path()).collect();
            if processes.is_empty() && files.iter().all(|file| file.is_file()) {
                return;
            }
            assert!(Instant::now() < deadline, "left behind: {processes:?} {files:?}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

pub(crate) fn has_generator() -> bool {
    systems::program("wrk").is_some()
}
