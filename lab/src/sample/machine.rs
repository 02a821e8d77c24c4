//! Facts about the machine, and its total load.

use std::fs;
use std::path::Path;

use crate::record::Machine;

/// Time that all processors together spent since boot, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MachineTime {
    /// Busy for any reason.
    pub busy: f64,
    /// Busy or idle.
    pub total: f64,
    /// Taken away by the hypervisor.
    pub stolen: f64,
}

impl MachineTime {
    /// Reads `/proc/stat`.
    pub fn now() -> Self {
        fs::read_to_string("/proc/stat").map(|text| Self::parse(&text)).unwrap_or_default()
    }

    fn parse(text: &str) -> Self {
        let Some(line) = text.lines().find_map(|line| line.strip_prefix("cpu ")) else { return Self::default() };
        let second = rustix::param::clock_ticks_per_second() as f64;
        let values: Vec<f64> =
            line.split_whitespace().filter_map(|field| field.parse::<f64>().ok()).map(|ticks| ticks / second).collect();
        let at = |index: usize| values.get(index).copied().unwrap_or(0.0);
        // user nice system idle iowait irq softirq steal; guest time is already part of user.
        let busy = at(0) + at(1) + at(2) + at(5) + at(6);
        Self { busy, total: busy + at(3) + at(4) + at(7), stolen: at(7) }
    }
}

/// Reads the facts.
pub fn facts() -> Machine {
    let cpuinfo = read("/proc/cpuinfo");
    let uname = rustix::system::uname();
    Machine {
        cpu: value_after(&cpuinfo, "model name", ':').unwrap_or_else(|| "unknown processor".into()),
        cores: std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1)),
        arch: std::env::consts::ARCH.into(),
        memory_bytes: value_after(&read("/proc/meminfo"), "MemTotal", ':')
            .and_then(|value| value.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()))
            .map_or(0, |kib| kib * 1024),
        kernel: uname.release().to_string_lossy().into_owned(),
        os: value_after(&read("/etc/os-release"), "PRETTY_NAME", '=')
            .map_or_else(|| "unknown".into(), |name| name.trim_matches('"').to_owned()),
        virtualisation: virtualisation(&cpuinfo),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").trim().to_owned(),
        congestion_control: read("/proc/sys/net/ipv4/tcp_congestion_control").trim().to_owned(),
        load_average: read("/proc/loadavg").split_whitespace().next().and_then(|v| v.parse().ok()).unwrap_or(0.0),
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn value_after(text: &str, key: &str, separator: char) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim().to_owned())
}

fn virtualisation(cpuinfo: &str) -> String {
    let product = read("/sys/class/dmi/id/product_name").trim().to_owned();
    let container = ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists());
    let guest = value_after(cpuinfo, "flags", ':').is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor"));
    let mut parts = Vec::new();
    if container {
        parts.push("container".to_owned());
    }
    if guest {
        parts.push(if product.is_empty() {
            "virtual machine".to_owned()
        } else {
            format!("virtual machine ({product})")
        });
    }
    if parts.is_empty() { "none seen".into() } else { parts.join(" in ") }
}

/// Returns a short name for this class of machine that can be part of a directory's name.
pub fn host_class(machine: &Machine) -> String {
    let vendor = ["EPYC", "Xeon", "Ryzen", "Core", "Graviton", "Neoverse", "Altra", "Apple"]
        .into_iter()
        .find(|name| machine.cpu.contains(name))
        .map_or_else(|| "cpu".to_owned(), str::to_lowercase);
    let gib = (machine.memory_bytes as f64 / f64::from(1u32 << 30)).round();
    format!("{}core-{vendor}-{}-{gib}gb", machine.cores, machine.arch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_stat_is_split_into_busy_idle_and_stolen() {
        let second = rustix::param::clock_ticks_per_second() as f64;
        let time = MachineTime::parse("cpu  100 10 50 1000 40 5 5 20 30 0\ncpu0 1 1 1 1\n");
        assert!((time.busy * second - 170.0).abs() < 1e-9);
        assert!((time.total * second - 1230.0).abs() < 1e-9);
        assert!((time.stolen * second - 20.0).abs() < 1e-9);
    }

    #[test]
    fn host_class_has_cores_processor_architecture_and_memory() {
        let machine = Machine {
            cpu: "AMD EPYC 9R14".into(),
            cores: 2,
            arch: "x86_64".into(),
            memory_bytes: 25_000_000_000,
            ..Machine::default()
        };
        assert_eq!(host_class(&machine), "2core-epyc-x86_64-23gb");
    }

    #[test]
    fn facts_of_this_machine_are_plausible() {
        let machine = facts();
        assert!(machine.cores >= 1);
        assert!(machine.memory_bytes > 1 << 20);
        assert!(!machine.kernel.is_empty());
    }
}
