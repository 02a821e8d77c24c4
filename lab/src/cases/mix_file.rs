//! Reads a mixed load from a file of the user, for `howdah-lab load`.
//!
//! ```toml
//! seed = 1                     # decides every random choice
//! [[clients]]
//! kind = "fast"                # results are grouped by it
//! path = "/hello.php"
//! body = "Hello, world!"       # the correct body; absent: every response with a success status is correct
//! connections = 7
//! [[clients]]
//! kind = "report"
//! path = "/report.php?month=5"
//! connections = 100
//! rate = 20                    # open loop: requests per second, at random times; absent: a closed loop per connection
//! # wave = 64, every_ms = 250  # or this many at once, repeatedly
//! keep_alive = false           # a connection for each request
//! from = "127.0.0.2"           # source address of all connections; with each_from, each has its own, counting up
//! ```

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::mix::{Clients, Draw, Mix, Rhythm, Source, Work};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default = "one")]
    seed: u64,
    clients: Vec<Group>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    kind: String,
    path: String,
    body: Option<String>,
    connections: u32,
    rate: Option<f64>,
    wave: Option<u32>,
    every_ms: Option<u32>,
    #[serde(default = "enabled_by_default")]
    keep_alive: bool,
    from: Option<Ipv4Addr>,
    each_from: Option<Ipv4Addr>,
}

fn one() -> u64 {
    1
}

fn enabled_by_default() -> bool {
    true
}

pub fn read(path: &Path) -> Result<Mix> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> Result<Mix> {
    let file: File = toml::from_str(text)?;
    if file.clients.is_empty() {
        bail!("at least one [[clients]] is needed");
    }
    let clients = file.clients.into_iter().map(clients).collect::<Result<_>>()?;
    Ok(Mix { clients, seed: file.seed })
}

fn clients(group: Group) -> Result<Clients> {
    let kind = &group.kind;
    if group.connections == 0 {
        bail!("{kind}: at least one connection is needed");
    }
    if !group.path.starts_with('/') || group.path.contains(|c: char| c.is_whitespace() || c.is_control()) {
        bail!("{kind}: path {:?} must start with / and contain no blanks", group.path);
    }
    let rhythm = match (group.rate, group.wave, group.every_ms) {
        (None, None, None) => Rhythm::Closed,
        (Some(per_second), None, None) if per_second > 0.0 && per_second.is_finite() => Rhythm::Poisson { per_second },
        (None, Some(size), Some(every_ms)) if size > 0 && every_ms > 0 => Rhythm::Waves { size, every_ms },
        _ => bail!("{kind}: either rate, or wave and every_ms, each above 0"),
    };
    let from = match (group.from, group.each_from) {
        (None, None) => Source::Any,
        (Some(address), None) => Source::One(address),
        (None, Some(first)) => Source::Each(first),
        _ => bail!("{kind}: either from or each_from"),
    };
    Ok(Clients {
        requests: vec![Draw { kind: group.kind, work: Work::Path { path: group.path, body: group.body }, weight: 1.0 }],
        connections: group.connections,
        keep_alive: group.keep_alive,
        from,
        rhythm,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_every_key() {
        let mix = parse(
            "seed = 9\n[[clients]]\nkind='fast'\npath='/a?b'\nbody='x'\nconnections=7\neach_from='127.0.1.1'\n\
             [[clients]]\nkind='slow'\npath='/s'\nconnections=2\nrate=2.5\nkeep_alive=false\nfrom='127.0.0.2'\n\
             [[clients]]\nkind='wave'\npath='/w'\nconnections=64\nwave=32\nevery_ms=100\n",
        )
        .unwrap();
        assert_eq!(mix.seed, 9);
        let [fast, slow, wave] = mix.clients.as_slice() else { panic!("{mix:?}") };
        assert_eq!(fast.requests[0].work, Work::Path { path: "/a?b".into(), body: Some("x".into()) });
        assert_eq!((fast.from, fast.keep_alive), (Source::Each(Ipv4Addr::new(127, 0, 1, 1)), true));
        assert_eq!((&slow.rhythm, slow.keep_alive), (&Rhythm::Poisson { per_second: 2.5 }, false));
        assert_eq!(slow.from, Source::One(Ipv4Addr::new(127, 0, 0, 2)));
        assert_eq!(wave.rhythm, Rhythm::Waves { size: 32, every_ms: 100 });
        assert_eq!(mix.offered(), Some(322.5));
    }

    #[test]
    fn nonsensical_values_are_refused() {
        let base = "[[clients]]\nkind='a'\npath='/'\nconnections=1\n";
        assert!(parse(base).is_ok());
        for wrong in
            ["rate=0", "wave=5", "rate=1\nwave=1\nevery_ms=1", "from='127.0.0.2'\neach_from='127.0.0.3'", "rat=1"]
        {
            assert!(parse(&format!("{base}{wrong}\n")).is_err(), "{wrong}");
        }
        assert!(parse("[[clients]]\nkind='a'\npath='x'\nconnections=1\n").is_err());
        assert!(parse("[[clients]]\nkind='a'\npath='/'\nconnections=0\n").is_err());
        assert!(parse("clients = []\n").is_err());
    }
}
