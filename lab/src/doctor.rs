//! Reports missing requirements on this machine with the way to get them, and installs those that apt has.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::apps::REQUIREMENTS;
use crate::record::SystemStatus;
use crate::systems::{builtin, program};

/// A tool or service that the lab itself needs.
#[derive(Debug, Clone, Copy)]
struct Tool {
    /// Program that must exist.
    program: &'static str,
    /// Debian package.
    package: &'static str,
    /// Its purpose in the lab.
    purpose: &'static str,
}

const TOOLS: [Tool; 5] = [
    Tool { program: "wrk", package: "wrk", purpose: "the load generator; nothing is measured without it" },
    Tool { program: "mariadbd", package: "mariadb-server", purpose: "cases with MySQL" },
    Tool { program: "mariadb", package: "mariadb-client", purpose: "cases with MySQL" },
    Tool { program: "redis-server", package: "redis-server", purpose: "the case with Redis" },
    Tool {
        program: "php",
        package: "php-cli",
        purpose: "Swoole, preparing the applications, the speed of computing for mixed loads",
    },
];

/// Returns the Debian packages that a system needs, as far as they exist.
fn packages_of(system: &str) -> &'static [&'static str] {
    match system {
        "nginx-fpm" => &["nginx-light", "php-fpm", "php-mysql", "php-redis"],
        "haproxy-fpm" => &["haproxy", "php-fpm", "php-mysql", "php-redis"],
        "apache" => &["apache2", "libapache2-mod-php", "php-mysql", "php-redis"],
        _ => &[],
    }
}

/// Result of the check.
#[derive(Debug)]
struct Findings {
    text: String,
    packages: BTreeSet<&'static str>,
    tools_missing: bool,
}

fn examine(has: &dyn Fn(&str) -> bool) -> Findings {
    let mut findings = Findings { text: String::new(), packages: BTreeSet::new(), tools_missing: false };
    let _ = writeln!(findings.text, "Tools");
    for tool in TOOLS {
        if has(tool.program) {
            let _ = writeln!(findings.text, "  found    {}", tool.program);
        } else {
            let _ = writeln!(
                findings.text,
                "  missing  {} ({}): apt-get install {}",
                tool.program, tool.purpose, tool.package
            );
            findings.packages.insert(tool.package);
            findings.tools_missing = true;
        }
    }
    let _ = writeln!(findings.text, "\nApplications");
    for requirement in REQUIREMENTS {
        if requirement.is_met() {
            let _ = writeln!(findings.text, "  found    {}", requirement.name);
        } else {
            let packages = requirement.packages.join(" ");
            let _ = writeln!(findings.text, "  missing  {}: apt-get install {packages}", requirement.name);
            findings.packages.extend(requirement.packages);
        }
    }
    let _ = writeln!(findings.text, "\nSystems");
    for system in builtin() {
        match system.find() {
            SystemStatus::Found { versions } => {
                let versions: Vec<String> = versions.into_values().collect();
                let _ = writeln!(findings.text, "  found    {:<20} {}", system.id(), versions.join(", "));
            }
            SystemStatus::Missing { what, how } => {
                let _ = writeln!(findings.text, "  missing  {:<20} {what}\n           {:<20} {how}", system.id(), "");
                findings.packages.extend(packages_of(&system.id()));
            }
        }
    }
    findings
}

/// Prints missing requirements and installs them if `install` is set. The exit code is 0 if the lab itself lacks
/// nothing.
pub fn main(install: bool) -> Result<u8> {
    let findings = examine(&|name| program(name).is_some());
    print!("{}", findings.text);
    if findings.packages.is_empty() {
        println!("\nNothing that apt has is missing.");
        return Ok(0);
    }
    let packages: Vec<&str> = findings.packages.into_iter().collect();
    let line = format!("apt-get install --no-install-recommends -y {}", packages.join(" "));
    if !install {
        println!("\nTo install what apt has:\n  sudo {line}\nor: howdah-lab doctor --install");
        return Ok(u8::from(findings.tools_missing));
    }
    println!("\nInstalling: {}", packages.join(" "));
    let root = rustix::process::geteuid().is_root();
    let mut command = if root { Command::new("apt-get") } else { Command::new("sudo") };
    if !root {
        command.arg("apt-get");
    }
    let status = command
        .args(["install", "--no-install-recommends", "-y"])
        .args(&packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .context("cannot run apt-get")?;
    if !status.success() {
        bail!("apt-get ended {status}; the packages are: {}", packages.join(" "));
    }
    let left = examine(&|name| program(name).is_some());
    Ok(u8::from(left.tools_missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tools_come_with_their_package() {
        let findings = examine(&|name| name != "wrk");
        assert!(findings.text.contains("missing  wrk"));
        assert!(findings.packages.contains("wrk"));
        assert!(findings.tools_missing);
        assert!(!examine(&|_| true).tools_missing);
    }
}
