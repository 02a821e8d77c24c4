//! The final profile of a sandbox: paths from the settings, paths implied by PHP's own settings, and paths that PHP and
//! its libraries need on any machine. Each entry records its origin, for `howdah check`.

use super::application;
use howdah_transport::Mode;
use howdah_transport::zygote_protocol::BootSpec;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Rights on a path and everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read and list.
    Read,
    /// Read files, but list no directory.
    ReadFiles,
    /// Read and write existing files: a log, a device.
    Append,
    /// Read and write; PHP does not run files from it.
    Write,
    /// Read and write; PHP may include files from it.
    WriteCode,
    /// Read, and run as a program.
    Execute,
}

/// One line of a profile.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) access: Access,
    pub(crate) path: PathBuf,
    pub(crate) origin: Cow<'static, str>,
}

/// A worker's rights.
#[derive(Debug, Clone, Default)]
pub(crate) struct Profile {
    pub(crate) entries: Vec<Entry>,
    pub(crate) connect: Vec<u16>,
    pub(crate) bind: Vec<u16>,
    /// Groups of system calls, by their names in the settings.
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
}

/// Readable for every pool: libraries with the files they load later (character sets, name services, locales, fonts,
/// media types), and PHP libraries of the distribution. These contain no user data, and nothing that names users or
/// secrets.
const SYSTEM: &[&str] = &[
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share",
    "/usr/local/share",
    "/etc/ImageMagick-6",
    "/etc/ImageMagick-7",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/run/systemd/resolve",
    "/sys/devices/system/cpu",
    "/var/cache/fontconfig",
];

const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Files in `/proc` about the process itself and the machine, but not about other processes.
const PROC: &[&str] = &[
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/proc/filesystems",
    "/proc/sys/kernel/random",
];

/// PHP settings that name a file or directory to read.
const PHP_READS: &[&str] = &[
    "extension_dir",
    "auto_prepend_file",
    "auto_append_file",
    "openssl.cafile",
    "openssl.capath",
    "curl.cainfo",
    "opcache.file_cache",
];

impl Profile {
    /// Builds the profile of a pool. `setting` returns the value of a PHP setting, if it has one.
    pub(crate) fn of(spec: &BootSpec, setting: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let own = &spec.sandbox;
        let mut profile = Self {
            entries: Vec::new(),
            connect: own.connect.clone(),
            bind: own.bind.clone(),
            allow: own.allow.clone(),
            deny: own.deny.clone(),
        };
        profile.add_application(spec);
        profile.add_named(spec);
        profile.add_php(setting);
        for path in SYSTEM {
            profile.add_existing(Access::Read, path, "system");
        }
        for path in DEVICES {
            profile.add_existing(Access::Append, path, "system");
        }
        for path in PROC {
            profile.add_existing(Access::Read, path, "system");
        }
        // A worker that was forked from the template has a directory in /proc that the template's rules cannot name.
        if spec.worker.mode == Mode::Snapshot {
            profile.add(Access::ReadFiles, "/proc", "system; snapshot mode");
        }
        if let Some(entry) = profile.entries.iter().find(|entry| !entry.path.is_absolute()) {
            return Err(format!("{} ({}) is not an absolute path", entry.path.display(), entry.origin));
        }
        Ok(profile)
    }

    fn add(&mut self, access: Access, path: impl Into<PathBuf>, origin: impl Into<Cow<'static, str>>) {
        let (path, origin) = (path.into(), origin.into());
        if !self.entries.iter().any(|entry| entry.access == access && entry.path == path) {
            self.entries.push(Entry { access, path, origin });
        }
    }

    fn add_existing(&mut self, access: Access, path: &str, origin: impl Into<Cow<'static, str>>) {
        if Path::new(path).exists() {
            self.add(access, path, origin);
        }
    }

    fn add_application(&mut self, spec: &BootSpec) {
        let root = Path::new(&spec.root);
        let mut projects = Vec::new();
        let beside = [("script", spec.worker.script.as_str()), ("boot", spec.worker.boot_script.as_str())];
        let scripts = beside.iter().filter_map(|(origin, script)| Some((*origin, Path::new(script).parent()?)));
        for (origin, directory) in std::iter::once(("root", root)).chain(scripts) {
            if directory.as_os_str().is_empty() || directory == Path::new("/") {
                continue;
            }
            let project = application::project(directory);
            self.add(Access::Read, directory, origin);
            if project != directory {
                self.add(Access::Read, project, format!("the project of {origin}"));
            }
            projects.push(project.to_owned());
        }
        if !spec.sandbox.detect {
            return;
        }
        for project in projects {
            for written in application::written(root, &project) {
                let access = if written.code { Access::WriteCode } else { Access::Write };
                self.add(access, written.path, format!("detected: {}", written.application));
            }
        }
    }

    fn add_named(&mut self, spec: &BootSpec) {
        let own = &spec.sandbox;
        let named = [
            (Access::Read, "read", &own.read),
            (Access::Write, "write", &own.write),
            (Access::WriteCode, "write_code", &own.write_code),
            (Access::Execute, "execute", &own.execute),
        ];
        for (access, origin, paths) in named {
            for path in paths {
                self.add(access, path.as_str(), origin);
            }
        }
        if !own.execute.is_empty() {
            // The kernel opens the loader as a program before the program itself.
            for loader in ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"] {
                self.add_existing(Access::Execute, loader, "execute: the loader of programs");
            }
        }
    }

    fn add_php(&mut self, setting: &dyn Fn(&str) -> Option<String>) {
        let value = |name: &str| setting(name).filter(|value| !value.is_empty());
        let absolute = |name: &str| value(name).filter(|value| value.starts_with('/'));
        for name in PHP_READS {
            if let Some(path) = absolute(name) {
                self.add_existing(Access::Read, &path, format!("PHP's {name}"));
            }
        }
        let include_path = value("include_path").unwrap_or_default();
        for path in include_path.split(':').filter(|path| path.starts_with('/') && *path != "/") {
            self.add_existing(Access::Read, path, "PHP's include_path");
        }
        let temporary = absolute("sys_temp_dir");
        let temporary = match &temporary {
            Some(path) => (PathBuf::from(path), "PHP's sys_temp_dir"),
            None => (std::env::temp_dir(), "the pool's own"),
        };
        self.add(Access::Write, temporary.0, temporary.1);
        if let Some(path) = absolute("upload_tmp_dir") {
            self.add(Access::Write, path, "PHP's upload_tmp_dir");
        }
        if value("session.save_handler").as_deref() == Some("files")
            && let Some(value) = value("session.save_path")
            // The path may follow a depth and a mode: "2;0600;/path".
            && let Some(path) = value.rsplit(';').next().filter(|path| path.starts_with('/'))
        {
            self.add(Access::Write, path, "PHP's session.save_path");
        }
        for name in ["error_log", "mail.log"] {
            if let Some(path) = absolute(name) {
                self.add_existing(Access::Append, &path, format!("PHP's {name}"));
            }
        }
    }

    /// Creates missing directories for writing. Returns those that could not be created.
    pub(crate) fn make_directories(&self) -> Vec<(&Path, &str)> {
        let written = self.entries.iter().filter(|entry| matches!(entry.access, Access::Write | Access::WriteCode));
        let failed = written.filter(|entry| !entry.path.exists() && std::fs::create_dir_all(&entry.path).is_err());
        failed.map(|entry| (entry.path.as_path(), entry.origin.as_ref())).collect()
    }

    /// `true` if the profile allows running any program.
    pub(crate) fn runs_programs(&self) -> bool {
        self.entries.iter().any(|entry| entry.access == Access::Execute)
    }

    /// Rules about which files may be PHP: those in directories for data may not, unless a more specific rule allows
    /// it. The paths are canonical, because PHP compares files by canonical paths.
    pub(crate) fn code_rules(&self) -> Vec<(PathBuf, bool)> {
        let written = self.entries.iter().filter_map(|entry| match entry.access {
            Access::Write => Some((entry, false)),
            Access::WriteCode => Some((entry, true)),
            _ => None,
        });
        written.map(|(entry, code)| (entry.path.canonicalize().unwrap_or_else(|_| entry.path.clone()), code)).collect()
    }

    /// `true` if the profile grants one of these rights on a canonical path.
    pub(crate) fn covers(&self, path: &Path, rights: &[Access]) -> bool {
        let of_right = self.entries.iter().filter(|entry| rights.contains(&entry.access));
        of_right.into_iter().any(|entry| {
            path.starts_with(&entry.path) || entry.path.canonicalize().is_ok_and(|real| path.starts_with(real))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_transport::zygote_protocol::SandboxSpec;

    fn profile_of(sandbox: SandboxSpec, settings: &[(&str, &str)]) -> Profile {
        let spec = BootSpec { root: "/srv/app".to_owned(), sandbox, ..BootSpec::default() };
        let setting = |name: &str| settings.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Profile::of(&spec, &setting).unwrap()
    }

    fn of<'a>(profile: &'a Profile, path: &str) -> Vec<(Access, &'a str)> {
        let entries = profile.entries.iter().filter(|entry| entry.path == Path::new(path));
        entries.map(|entry| (entry.access, entry.origin.as_ref())).collect()
    }

    #[test]
    fn users_and_secrets_of_the_system_are_in_no_profile() {
        let profile = profile_of(SandboxSpec::default(), &[]);
        for path in
            ["/etc/passwd", "/etc/shadow", "/etc/group", "/etc/ssl/private/x", "/root/x", "/home/a/.ssh/id", "/proc/1"]
        {
            assert!(!profile.covers(Path::new(path), &[Access::Read, Access::Write, Access::Append]), "{path}");
        }
        assert!(profile.covers(Path::new("/srv/app/a/b.php"), &[Access::Read]));
        assert!(!profile.covers(Path::new("/srv/application"), &[Access::Read]), "names are compared whole");
    }

    #[test]
    fn phps_own_settings_count() {
        let settings = [
            ("session.save_handler", "files"),
            ("session.save_path", "2;0600;/var/lib/sessions"),
            ("upload_tmp_dir", "/var/uploads"),
            ("include_path", ".:/usr/share/php:/"),
        ];
        let profile = profile_of(SandboxSpec::default(), &settings);
        assert_eq!(of(&profile, "/var/lib/sessions"), [(Access::Write, "PHP's session.save_path")]);
        assert_eq!(of(&profile, "/var/uploads"), [(Access::Write, "PHP's upload_tmp_dir")]);
        assert!(of(&profile, "/").is_empty());
        let redis = [("session.save_handler", "redis"), ("session.save_path", "/run/redis.sock")];
        assert!(of(&profile_of(SandboxSpec::default(), &redis), "/run/redis.sock").is_empty());
    }

    #[test]
    fn a_relative_path_is_refused() {
        let sandbox = SandboxSpec { write: vec!["var".to_owned()], ..SandboxSpec::default() };
        let spec = BootSpec { root: "/srv/app".to_owned(), sandbox, ..BootSpec::default() };
        assert!(Profile::of(&spec, &|_| None).is_err());
    }
}
