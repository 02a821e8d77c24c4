//! Kernel limits on PHP's processes, in the syntax of `limits`.

use std::collections::BTreeMap;

use crate::quantity::ByteSize;
use crate::value::Value;
use howdah_rules::keys::nearest;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Its name, one of [`NAMES`].
    pub name: &'static str,
    /// The effective limit; `None`: no limit.
    pub soft: Option<u64>,
    /// Upper bound to which the process itself may raise it; `None`: no limit.
    pub hard: Option<u64>,
}

/// The limits that can be set.
pub const NAMES: [&str; 9] = ["as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack"];

/// Reads the limits of a pool.
///
/// # Errors
/// The first error.
pub fn read(written: &BTreeMap<String, String>) -> Result<Vec<Limit>, String> {
    written.iter().map(|(name, value)| one(name, value)).collect()
}

fn one(name: &str, value: &str) -> Result<Limit, String> {
    let Some(known) = NAMES.into_iter().find(|known| *known == name) else {
        let advice = nearest(name, NAMES.into_iter())
            .map_or_else(|| format!("; there is {}", NAMES.join(", ")), |near| format!("; did you mean \"{near}\"?"));
        return Err(format!("unknown limit \"{name}\"{advice}"));
    };
    let (soft, hard) = value.split_once(':').unwrap_or((value, value));
    let wrong = || format!("{name}: expected a number, a size, \"unlimited\" or \"SOFT:HARD\", found \"{value}\"");
    let (soft, hard) = (amount(soft).ok_or_else(wrong)?, amount(hard).ok_or_else(wrong)?);
    if soft.unwrap_or(u64::MAX) > hard.unwrap_or(u64::MAX) {
        return Err(format!("{name}: {value} exceeds the hard limit"));
    }
    Ok(Limit { name: known, soft, hard })
}

/// Parses an amount; `Some(None)` means no limit.
fn amount(text: &str) -> Option<Option<u64>> {
    match text.trim() {
        "unlimited" | "infinity" => Some(None),
        text => ByteSize::from_text(text).map(|size| Some(size.bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(name: &str, value: &str) -> Result<Limit, String> {
        one(name, value)
    }

    #[test]
    fn limits_are_numbers_sizes_or_pairs() {
        let limit = |soft, hard| Ok(Limit { name: "nofile", soft, hard });
        assert_eq!(read_one("nofile", "4096"), limit(Some(4096), Some(4096)));
        assert_eq!(read_one("nofile", "4K:unlimited"), limit(Some(4096), None));
        assert_eq!(read_one("nofile", "unlimited"), limit(None, None));
        for (name, value, what) in [
            ("nofiles", "1", "did you mean \"nofile\""),
            ("nofile", "many", "expected a number"),
            ("nofile", "2:1", "exceeds the hard limit"),
            ("nofile", "unlimited:1", "exceeds the hard limit"),
            ("nofile", "", "expected a number"),
        ] {
            let error = read_one(name, value).unwrap_err();
            assert!(error.contains(what), "{name} = {value}: {error}");
        }
    }
}
