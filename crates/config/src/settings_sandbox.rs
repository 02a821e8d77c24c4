//! The settings of a pool's sandbox.

use std::path::PathBuf;

use crate::choice::{SandboxProfile, SystemCalls};
use crate::table::settings;

settings! {
    /// Restrictions of a pool's workers. `sandbox = "app"` is short for a section with only `profile`.
    pub struct SandboxSettings at "sandbox" {
        /// Restrictions of the pool's workers: none (`off`), everything but what an application needs and what is
        /// listed below (`app`), or none, while recording what the application would need for `howdah status --sandbox`
        /// (`learn`).
        profile: SandboxProfile = r#""off""# example(r#""app""#);
        /// Keep the pool down if the kernel cannot enforce everything. With `false` it runs with what the kernel
        /// supports, and the log names the rest.
        required: bool = "true" example("false");
        /// Detect WordPress, Symfony and Laravel, and allow the directories that they write to.
        detect: bool = "true" example("false");
        /// Files and directories that may be read, in addition to the root, the application around it, PHP and its
        /// libraries.
        read: Vec<PathBuf> = "[]" example(r#"["/srv/shared/translations"]"#);
        /// Directories for data: files there can be written, but are not run as PHP, neither by a request nor by
        /// `include`, except in directories of `write_code`. Missing directories are created.
        write: Vec<PathBuf> = "[]" example(r#"["public/wp-content/uploads"]"#);
        /// Directories of PHP files that the application writes, such as compiled templates. They can be included, but
        /// not requested.
        ///
        /// An attacker who controls the application can leave code there. Caches built at deployment need no such
        /// directory.
        write_code: Vec<PathBuf> = "[]" example(r#"["var/cache"]"#);
        /// Programs, or directories of programs, that may be run, in the same sandbox.
        execute: Vec<PathBuf> = "[]" example(r#"["/usr/bin/convert"]"#);
        /// TCP ports that may be connected to, on any host. With none, UDP is refused too, and with it name resolution.
        connect: Vec<u16> = "[]" example("[3306, 6379, 443]");
        /// TCP ports that may be listened on.
        bind: Vec<u16> = "[]" example("[9003]");
        /// Groups of system calls to allow that are refused by default; for `udp` also without a port in `connect`. The
        /// guide on the sandbox lists them.
        allow: Vec<SystemCalls> = "[]" example(r#"["trace"]"#);
        /// Groups of system calls to refuse that are allowed by default.
        deny: Vec<SystemCalls> = "[]" example(r#"["unix", "fork"]"#);
    }
    plus {}
}
