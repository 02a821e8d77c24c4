//! Limits of a pool's control group: parses `cgroup_limits`, and formats it for the kernel.

use std::collections::BTreeMap;

use crate::quantity::ByteSize;
use crate::value::Value;
use howdah_rules::keys::nearest;

/// The limits that can be set: files of cgroup v2.
pub const NAMES: [&str; 6] = ["cpu.max", "cpu.weight", "memory.high", "memory.max", "memory.swap.max", "pids.max"];

/// The period of `cpu.max`, in microseconds.
const PERIOD: f64 = 100_000.0;

/// Converts limits to cgroup files and their contents.
///
/// # Errors
/// The first error.
pub fn read(written: &BTreeMap<String, String>) -> Result<Vec<(String, String)>, String> {
    written.iter().map(|(name, value)| Ok((name.clone(), one(name, value.trim())?))).collect()
}

fn one(name: &str, value: &str) -> Result<String, String> {
    let wrong = |expected: &str| Err(format!("{name}: expected {expected}, found \"{value}\""));
    let max = value == "max" || value == "unlimited";
    match name {
        "memory.max" | "memory.high" | "memory.swap.max" => match ByteSize::from_text(value) {
            _ if max => Ok("max".to_owned()),
            Some(size) => Ok(size.bytes().to_string()),
            None => wrong("a size or \"max\""),
        },
        "pids.max" => match value.parse::<u32>() {
            _ if max => Ok("max".to_owned()),
            Ok(number) => Ok(number.to_string()),
            Err(_) => wrong("a number of processes or \"max\""),
        },
        "cpu.max" => match value.parse::<f64>() {
            _ if max => Ok("max".to_owned()),
            Ok(cores) if (0.01..=4096.0).contains(&cores) => Ok(format!("{:.0} {PERIOD:.0}", cores * PERIOD)),
            _ => wrong("a number of cores such as 1.5, or \"max\""),
        },
        "cpu.weight" => match value.parse::<u32>() {
            Ok(weight) if (1..=10_000).contains(&weight) => Ok(weight.to_string()),
            _ => wrong("a number from 1 to 10000"),
        },
        other => {
            let advice = nearest(other, NAMES.into_iter()).map_or_else(
                || format!("; there is {}", NAMES.join(", ")),
                |near| format!("; did you mean \"{near}\"?"),
            );
            Err(format!("unknown limit \"{other}\"{advice}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        for (name, value, kernel) in [
            ("memory.max", "512M", "536870912"),
            ("memory.high", "max", "max"),
            ("pids.max", "200", "200"),
            ("cpu.max", "1.5", "150000 100000"),
            ("cpu.max", "unlimited", "max"),
            ("cpu.weight", "50", "50"),
        ] {
            assert_eq!(one(name, value).unwrap(), kernel, "{name}");
        }
        for (name, value, what) in [
            ("memory.maxx", "1", "did you mean \"memory.max\""),
            ("cgroup.kill", "1", "unknown limit"),
            ("../memory.max", "1", "unknown limit"),
            ("memory.max", "much", "expected a size"),
            ("cpu.max", "0", "expected a number of cores"),
            ("cpu.max", "nan", "expected a number of cores"),
            ("cpu.weight", "0", "from 1 to 10000"),
            ("pids.max", "-1", "expected a number of processes"),
        ] {
            let error = one(name, value).unwrap_err();
            assert!(error.contains(what), "{name} = {value}: {error}");
        }
    }
}
