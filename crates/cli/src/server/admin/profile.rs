//! `POST /pools/NAME/profile?seconds=N&rate=HZ`: samples the stacks of a pool's workers and responds with JSON when the
//! time is over. Disconnecting ends the profile.

use crate::server::pools::Pools;
use hyper::StatusCode;
use std::time::Duration;

/// Maximum duration of a profile in seconds, and maximum samples per second.
const MAX_SECONDS: u64 = 3600;
const MAX_RATE: u32 = 1000;

/// Returns the profile as JSON; the error is a status and a message.
pub(crate) async fn make(
    pools: &Pools,
    path: &str,
    query: Option<&str>,
) -> Option<Result<String, (StatusCode, String)>> {
    let name = path.strip_prefix("/pools/")?.strip_suffix("/profile")?;
    Some(of_pool(pools, name, query.unwrap_or_default()).await)
}

async fn of_pool(pools: &Pools, name: &str, query: &str) -> Result<String, (StatusCode, String)> {
    let Some(pool) = pools.iter().find(|pool| pool.name() == name).cloned() else {
        let names: Vec<&str> = pools.iter().map(|pool| pool.name()).collect();
        return Err((StatusCode::NOT_FOUND, format!("unknown pool {name}; configured pools: {}", names.join(", "))));
    };
    let wrong = |why: String| (StatusCode::BAD_REQUEST, why);
    let (seconds, rate) = parse(query).map_err(wrong)?;
    let conflict = |why| (StatusCode::CONFLICT, why);
    let profile = pool.profile(rate, Duration::from_secs(seconds)).await.map_err(conflict)?;
    serde_json::to_string(&profile).map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

fn parse(query: &str) -> Result<(u64, u32), String> {
    let (mut seconds, mut rate) = (30, 99);
    for (key, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let number = value.parse::<u64>().ok();
        match (key, number) {
            ("seconds", Some(given @ 1..=MAX_SECONDS)) => seconds = given,
            ("rate", Some(given)) if (1..=u64::from(MAX_RATE)).contains(&given) => rate = given as u32,
            ("seconds", _) => return Err(format!("seconds: expected 1 to {MAX_SECONDS}")),
            ("rate", _) => return Err(format!("rate: expected 1 to {MAX_RATE} samples per second")),
            _ => {}
        }
    }
    Ok((seconds, rate))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn requested_amounts_have_bounds() {
        assert_eq!(parse("").unwrap(), (30, 99));
        assert_eq!(parse("seconds=5&rate=1000&other=1").unwrap(), (5, 1000));
        for wrong in ["seconds=0", "seconds=3601", "seconds=x", "rate=0", "rate=1001", "rate="] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
