//! The settings of a pool's sandbox.

use std::path::PathBuf;

use crate::choice::{SandboxProfile, SystemCalls};
use crate::table::settings;

settings! {
    /// What the workers of a pool may do to the rest of the machine. `sandbox = "app"` is short for a section with only
    /// `profile`.
    pub struct SandboxSettings at "sandbox" {
        /// What holds for the pool's workers: nothing (`off`), what an application needs and what is named below (`app`), or
        /// nothing, but `howdah status --sandbox` prints what the application would have needed (`learn`).
        profile: SandboxProfile = r#""off""# example(r#""app""#);
        /// Whether the pool stays down where the kernel cannot enforce all of it. With `false` it runs with what the kernel
        /// can do, and the log says what is missing.
        required: bool = "true" example("false");
        /// Whether WordPress, Symfony and Laravel are recognized and get the directories that they write to.
        detect: bool = "true" example("false");
        /// Files and directories that may be read beside the root, the application around it, PHP and its libraries.
        read: Vec<PathBuf> = "[]" example(r#"["/srv/shared/translations"]"#);
        /// Directories for data: files there can be written, but are never run as PHP, neither by a request nor by
        /// `include`. A directory that does not exist is made.
        write: Vec<PathBuf> = "[]" example(r#"["public/wp-content/uploads"]"#);
        /// Directories of PHP files that the application writes itself, such as compiled templates. They can be included,
        /// but no request runs them.
        ///
        /// Whoever takes over the application can leave code there. What is built at deployment needs no such directory.
        write_code: Vec<PathBuf> = "[]" example(r#"["var/cache"]"#);
        /// Programs that may be run, or directories of them. They are in the same sandbox.
        execute: Vec<PathBuf> = "[]" example(r#"["/usr/bin/convert"]"#);
        /// TCP ports that may be connected to, on whatever host. With none, UDP is refused too, and with it name resolution.
        connect: Vec<u16> = "[]" example("[3306, 6379, 443]");
        /// TCP ports that may be listened on.
        bind: Vec<u16> = "[]" example("[9003]");
        /// Groups of system calls that are allowed although they are refused otherwise; for `udp` also without any port in
        /// `connect`. The guide on the sandbox has the list.
        allow: Vec<SystemCalls> = "[]" example(r#"["trace"]"#);
        /// Groups of system calls that are refused although they are allowed otherwise.
        deny: Vec<SystemCalls> = "[]" example(r#"["unix", "fork"]"#);
    }
    plus {}
}
