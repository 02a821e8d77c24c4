//! A pool's own directory for temporary files: a compromised script cannot read or replace files that others have left
//! in the common directory. It exists from the zygote's start to its end; a zygote that is killed leaves it.

use howdah_transport::SandboxProfile;
use howdah_transport::zygote_protocol::BootSpec;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The directory. The zygote drops it when its workers have ended; a copy in a worker is never dropped.
pub(crate) struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    /// Creates the directory and makes PHP and its libraries use it, unless php.ini names another one. Called before
    /// PHP starts.
    #[expect(clippy::disallowed_methods, reason = "before PHP starts nothing else reads it")]
    pub(crate) fn make(spec: &BootSpec) -> Result<Option<Self>, String> {
        if spec.sandbox.profile != SandboxProfile::App {
            return Ok(None);
        }
        let template = std::env::temp_dir().join(format!("howdah-{}-XXXXXX", spec.pool));
        let template = CString::new(template.into_os_string().into_vec()).map_err(|error| error.to_string())?;
        let raw = template.into_raw();
        // SAFETY: only this function has the text; mkdtemp() replaces its last six bytes.
        let (made, path) = unsafe { (!libc::mkdtemp(raw).is_null(), CString::from_raw(raw)) };
        if !made {
            let error = std::io::Error::last_os_error();
            return Err(format!(
                "sandbox: cannot create a directory for temporary files in {}: {error}",
                std::env::temp_dir().display()
            ));
        }
        let path = PathBuf::from(OsString::from_vec(path.into_bytes()));
        // SAFETY: this process has one thread, and PHP does not run yet.
        unsafe { std::env::set_var("TMPDIR", path.as_os_str()) };
        debug_assert!(path.as_os_str().as_bytes().starts_with(b"/"));
        Ok(Some(Self(path)))
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
