//! The part of `howdah check` about a pool's sandbox: the final profile with the origin of each line, and the
//! restrictions that this kernel enforces.

use super::kernel::KernelSupport;
use super::profile::{Access, Profile};
use super::system_calls;
use crate::php;
use howdah_transport::zygote_protocol::BootSpec;
use howdah_transport::{CText, SandboxProfile};
use std::fmt::Write as _;
use std::process::ExitCode;

/// Reads a boot order from standard input, starts PHP to get its settings, and prints the report, including the
/// features that this build `lacks`. No application code runs.
pub(crate) fn print(lacks: &[String]) -> ExitCode {
    let mut spec: BootSpec = match serde_json::from_reader(std::io::stdin().lock()) {
        Ok(spec) => spec,
        Err(error) => {
            eprintln!("howdah-php: standard input is not a boot order ({error})");
            return ExitCode::from(2);
        }
    };
    let means = KernelSupport::of_this_kernel();
    println!("this kernel: {}", means.describe());
    for line in lacks {
        println!("{line}");
    }
    if spec.sandbox.profile == SandboxProfile::Off {
        return ExitCode::SUCCESS;
    }
    let profile = without_preload(&mut spec)
        .and_then(|()| php::start(&spec, Vec::new()))
        .and_then(|()| Profile::of(&spec, &php::setting));
    let text = profile.and_then(|profile| {
        // Filters that cannot be compiled are detected here, not only in the server.
        system_calls::Filters::of(&profile, &means)?;
        text(&profile, &spec)
    });
    let (text, code) = match text {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(why) => (format!("cannot build the sandbox: {why}\n"), ExitCode::FAILURE),
    };
    print!("{text}");
    if spec.sandbox.required && !means.missing().is_empty() {
        println!("this pool does not start here, because `required` is true");
    }
    php::shutdown();
    code
}

/// Disables preloading, which would run code of the application.
fn without_preload(spec: &mut BootSpec) -> Result<(), String> {
    let entries = &mut spec.worker.ini_text;
    *entries = CText::new(&format!("{}opcache.preload=\n", entries.as_str())).map_err(|error| error.to_string())?;
    Ok(())
}

fn text(profile: &Profile, spec: &BootSpec) -> Result<String, String> {
    let mut out = String::new();
    if spec.sandbox.profile == SandboxProfile::Learn {
        out.push_str("profile \"learn\" restricts nothing; \"app\" would allow:\n");
    }
    let kinds = [
        (Access::Read, "read"),
        (Access::ReadFiles, "read, not list"),
        (Access::Append, "read and write, not make or remove"),
        (Access::Write, "write (never run as PHP)"),
        (Access::WriteCode, "write PHP (included, but never run by a request)"),
        (Access::Execute, "execute"),
    ];
    for (access, title) in kinds {
        let entries: Vec<_> = profile.entries.iter().filter(|entry| entry.access == access).collect();
        if access == Access::Execute && entries.is_empty() {
            out.push_str("execute: no program\n");
            continue;
        }
        if entries.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{title}:");
        for entry in entries {
            let temporary = entry.origin == "the pool's own";
            let path =
                if temporary { "a directory for temporary files".into() } else { entry.path.display().to_string() };
            let there = if temporary || entry.path.exists() { "" } else { "; does not exist yet" };
            let _ = writeln!(out, "  {path}  ({}{there})", entry.origin);
        }
    }
    let ports = |ports: &[u16]| match ports {
        [] => "no port".to_owned(),
        ports => ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", "),
    };
    let _ = writeln!(out, "connect by TCP to: {}", ports(&profile.connect));
    let _ = writeln!(out, "listen by TCP on: {}", ports(&profile.bind));
    let refused: Vec<_> = system_calls::refused(profile)?.iter().map(|group| group.name).collect();
    let _ = writeln!(out, "refused system calls: {}", refused.join(", "));
    Ok(out)
}
