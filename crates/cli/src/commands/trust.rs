//! `howdah trust`: adds the local CA to this machine's trusted authorities, or removes it, and prints each step.

use crate::commands::dev;
use crate::output;
use anyhow::{Context, Result, bail};
use howdah_config::AcmeSettings;
use howdah_tls::local_ca;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Path of the CA's certificate in a state directory.
const CERTIFICATE: &str = "local-ca/ca.pem";

/// Directories of additional authorities by system, with the file name and the command that applies them.
const SYSTEMS: &[(&str, &str, &[&str])] = &[
    // Debian, Ubuntu, Alpine.
    ("/usr/local/share/ca-certificates", "howdah-local-ca.crt", &["update-ca-certificates"]),
    // Fedora, RHEL.
    ("/etc/pki/ca-trust/source/anchors", "howdah-local-ca.pem", &["update-ca-trust", "extract"]),
    // Arch.
    ("/etc/ca-certificates/trust-source/anchors", "howdah-local-ca.crt", &["trust", "extract-compat"]),
];

pub(crate) fn run(settings: &AcmeSettings, prints: bool, uninstalls: bool) -> Result<ExitCode> {
    match (prints, uninstalls) {
        (true, _) => output::print(certificate(settings)?.1)?,
        (_, true) => uninstall()?,
        _ => install(settings)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the CA's certificate and its path. Does not create one: it would replace the right CA in the system's list.
fn certificate(settings: &AcmeSettings) -> Result<(PathBuf, String)> {
    // Root may read the files of the server's user, but must not create files there as root.
    let path = settings.state.join(CERTIFICATE);
    let pem = match std::fs::read_to_string(&path) {
        Ok(pem) => pem,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let others: Vec<String> = dev::states()
                .into_iter()
                .filter(|dir| dir.join(CERTIFICATE).exists())
                .map(|dir| dir.display().to_string())
                .collect();
            let advice = match others.is_empty() {
                true => "a server creates it when it first needs a certificate for a local name".to_owned(),
                false => format!("there is one in {}: did you mean that directory?", others.join(", ")),
            };
            bail!("there is no local CA in the state directory {}: {advice}", settings.state.display());
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    // The server's user could have put any CA here, and root is about to trust it.
    local_ca::check_private_only(&pem)
        .with_context(|| format!("{} is not the certificate of a local CA", path.display()))?;
    Ok((path, pem))
}

fn system() -> Option<(PathBuf, &'static [&'static str])> {
    let found = SYSTEMS.iter().find(|(dir, ..)| Path::new(dir).is_dir());
    found.map(|(dir, file, update)| (Path::new(dir).join(file), *update))
}

fn install(settings: &AcmeSettings) -> Result<()> {
    let (path, pem) = certificate(settings)?;
    let Some((target, update)) = system() else {
        bail!(
            "this system has no known list of trusted authorities; `howdah trust --print` prints the certificate, to be \
             installed by hand"
        );
    };
    must_be_root(&path)?;
    std::fs::write(&target, &pem).with_context(|| format!("cannot write {}", target.display()))?;
    output::print(format!("wrote {}\n", target.display()))?;
    refresh(update)?;
    output::print(format!(
        "Programs that use the system's list (curl, PHP, git, …) now trust the local CA, which can certify private names \
         only.\nBrowsers have separate lists (certutil is in libnss3-tools):\n  \
         Chromium: certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n 'Howdah local CA' -i {target}\n  \
         Firefox:  for p in ~/.mozilla/firefox/*.default*; do certutil -d sql:$p -A -t C,, -n 'Howdah local CA' -i {target}; done\n",
        target = target.display()
    ))
}

fn uninstall() -> Result<()> {
    let Some((target, update)) = system().filter(|(target, _)| target.exists()) else {
        return output::print("the local CA is not installed\n");
    };
    must_be_root(&target)?;
    std::fs::remove_file(&target).with_context(|| format!("cannot remove {}", target.display()))?;
    output::print(format!("removed {}\n", target.display()))?;
    refresh(update)?;
    output::print(
        "Browsers have separate lists: certutil -d sql:$HOME/.pki/nssdb -D -n 'Howdah local CA', and the same for \
         Firefox's profiles\n",
    )
}

fn must_be_root(of: &Path) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        let state = of.ancestors().nth(2).unwrap_or(of);
        bail!(
            "only root can change the system's list of authorities: sudo howdah trust --state {}; or `howdah trust --print`",
            state.display()
        );
    }
    Ok(())
}

fn refresh(update: &[&str]) -> Result<()> {
    let Some((program, arguments)) = update.split_first() else { return Ok(()) };
    output::print(format!("running {}\n", update.join(" ")))?;
    let status = Command::new(program).args(arguments).status();
    let status = status.with_context(|| format!("cannot run {program}: install ca-certificates"))?;
    if !status.success() {
        bail!("{program} failed: {status}");
    }
    Ok(())
}
