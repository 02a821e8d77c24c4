//! Raises the limit of descriptors: thousands of connections need more than the usual 1024, in the lab and in the
//! systems that it starts.

use anyhow::{Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors of the lab and a server for other purposes than connections.
const OTHERS: u64 = 512;

/// Raises the soft limit of this process and its children for this number of connections; a front needs two descriptors
/// for each.
pub fn make_room(connections: u32) -> Result<()> {
    let wanted = 2 * u64::from(connections) + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= wanted) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|hard| hard < wanted) {
        bail!(
            "{connections} connections need {wanted} descriptors, but the hard limit is {:?} (ulimit -Hn)",
            limit.maximum
        );
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_as_needed_up_to_the_hard_one() {
        let before = getrlimit(Resource::Nofile);
        make_room(1).unwrap();
        if let (Some(soft), Some(hard)) = (before.current, before.maximum)
            && hard > soft
        {
            let connections = u32::try_from((soft.max(OTHERS) - OTHERS) / 2 + 1).unwrap();
            if 2 * u64::from(connections) + OTHERS <= hard {
                make_room(connections).unwrap();
                assert!(getrlimit(Resource::Nofile).current.is_some_and(|now| now > soft));
            }
        }
        if before.maximum.is_some_and(|hard| hard < 2 * u64::from(u32::MAX)) {
            assert!(make_room(u32::MAX).unwrap_err().to_string().contains("hard limit"));
        }
    }
}
