//! A pool's own directory for temporary files: what others have left in the common one cannot be read or replaced by a
//! script that was taken over. It begins and ends with the zygote.

use howdah_transport::SandboxProfile;
use howdah_transport::zygote_protocol::BootSpec;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The directory. Dropped by the zygote, whose workers have ended by then; a copy in a worker is never dropped.
pub(crate) struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    /// Makes it and has PHP and its libraries use it, unless php.ini names another one. Before PHP starts.
    #[expect(clippy::disallowed_methods, reason = "before PHP starts nothing else reads it")]
    pub(crate) fn make(spec: &BootSpec) -> Result<Option<Self>, String> {
        if spec.sandbox.profile != SandboxProfile::App {
            return Ok(None);
        }
        let template = std::env::temp_dir().join(format!("howdah-{}-XXXXXX", spec.pool));
        let template = CString::new(template.into_os_string().into_vec()).map_err(|error| error.to_string())?;
        let raw = template.into_raw();
        // SAFETY: the text is this function's alone; mkdtemp() replaces its last six bytes.
        let (made, path) = unsafe { (!libc::mkdtemp(raw).is_null(), CString::from_raw(raw)) };
        if !made {
            let error = std::io::Error::last_os_error();
            return Err(format!(
                "sandbox: no directory for temporary files in {}: {error}",
                std::env::temp_dir().display()
            ));
        }
        let path = PathBuf::from(OsString::from_vec(path.into_bytes()));
        // SAFETY: this process has one thread, and nothing of PHP runs yet.
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
