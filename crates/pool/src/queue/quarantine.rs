//! Quarantine for requests that kill their workers. A path is refused for a while if most recent deaths happened in its
//! requests and hardly any of its requests survive. The time doubles whenever the next request after it dies as well.
//!
//! Signals sent from outside must have no effect. They hit whatever runs, so the deaths belong to many paths or to idle
//! workers, or requests for the path mostly survive. Workers that die together, as with their zygote, count as one
//! death: they have one cause.
//!
//! The table is empty until a worker dies in a request, and stays short: requests that end well are compared with it
//! only while it has entries. It is part of the scheduler, under the pool's lock. Paths are as the client wrote them,
//! without the query.

use crate::request::Request;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Period over which deaths and surviving requests are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// Number of deaths within the window from which a path is suspected.
const MIN_DEATHS: u32 = 6;
/// A suspected path has at most one surviving request for this many deaths.
const DEATHS_PER_SURVIVOR: u32 = 5;
/// Deaths of requests for one path this close together count as one.
const SAME_DEATH_WINDOW: Duration = Duration::from_millis(5);
/// Time for which requests are refused: the first time, and at most.
const FIRST_QUARANTINE: Duration = Duration::from_secs(1);
const MAX_QUARANTINE: Duration = Duration::from_secs(60);
/// Time without a death after which a path that was refused is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(300);
/// Maximum number of remembered paths, and length of each in bytes.
const MAX_PATHS: usize = 64;
const MAX_PATH_LEN: usize = 256;

/// Method and path of a request: requests with the same key are counted together.
pub(crate) fn key(request: &Request) -> String {
    let short = |bytes: &[u8], most: usize| String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned();
    format!("{} {}", short(request.method(), 16), short(request.path(), MAX_PATH_LEN))
}

/// Record of a path, with the counts of the current window.
#[derive(Debug)]
struct Suspect {
    /// Requests that died with their workers.
    deaths: u32,
    /// Deaths, counting those within `SAME_DEATH_WINDOW` once.
    moments: u32,
    survived: u32,
    /// When the last such group of deaths began.
    moment: Instant,
    /// End of the current or last refusal, and its length.
    until: Option<Instant>,
    pause: Duration,
}

/// The paths whose requests died with their workers.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    paths: HashMap<String, Suspect>,
    /// When the window began, and its number of deaths: in requests for any path, or of idle workers.
    since: Option<Instant>,
    all: u32,
}

impl Quarantine {
    /// True if no path is recorded: nothing needs to be looked up.
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Remaining time for which requests for this path are refused.
    pub(crate) fn refuses(&self, path: &str, now: Instant) -> Option<Duration> {
        self.paths.get(path)?.until?.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// Counts the death of a worker that served or had requests.
    pub(crate) fn note_death(&mut self, now: Instant) {
        if self.since.is_none_or(|since| now.duration_since(since) > WINDOW) {
            self.since = Some(now);
            self.all = 0;
            for suspect in self.paths.values_mut() {
                (suspect.deaths, suspect.moments, suspect.survived) = (0, 0, 0);
            }
        }
        self.all = self.all.saturating_add(1);
    }

    /// Records that a request for this path died with its worker, after `note_death`. Returns the length of the refusal
    /// if one begins now.
    pub(crate) fn note_request(&mut self, path: String, now: Instant) -> Option<Duration> {
        self.make_room(&path, now);
        let all = self.all;
        let suspect = self.paths.entry(path).or_insert_with(|| Suspect {
            deaths: 0,
            moments: 0,
            survived: 0,
            moment: now,
            until: None,
            pause: Duration::ZERO,
        });
        suspect.deaths += 1;
        let together = suspect.deaths > 1 && now.duration_since(suspect.moment) < SAME_DEATH_WINDOW;
        if !together {
            suspect.moments += 1;
            suspect.moment = now;
        }
        if suspect.until.is_some_and(|until| until > now) {
            return None; // it was running already when the others were refused
        }
        let mostly_die = suspect.survived * DEATHS_PER_SURVIVOR <= suspect.moments;
        let is_the_cause = suspect.deaths * 2 > all;
        let again = !suspect.pause.is_zero() && suspect.survived == 0;
        if !(again || suspect.moments >= MIN_DEATHS && mostly_die && is_the_cause) {
            return None;
        }
        suspect.pause = (suspect.pause * 2).clamp(FIRST_QUARANTINE, MAX_QUARANTINE);
        suspect.until = Some(now + suspect.pause);
        Some(suspect.pause)
    }

    /// Records that a request for this path ended without killing its worker.
    pub(crate) fn note_survivor(&mut self, path: &str, now: Instant) {
        let Some(suspect) = self.paths.get_mut(path) else { return };
        suspect.survived += 1;
        // A path whose requests end well after a refusal is trusted again.
        let trusted = !suspect.pause.is_zero() && suspect.until.is_none_or(|until| until <= now);
        if trusted || now.duration_since(suspect.moment) > WINDOW {
            self.paths.remove(path);
        }
    }

    /// Removes old records. Called once per tick.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.paths.retain(|_, suspect| {
            let quiet = now.duration_since(suspect.moment);
            quiet < if suspect.pause.is_zero() { WINDOW } else { FORGET_AFTER }
        });
    }

    /// Refused paths, each with the remaining time.
    pub(crate) fn refused(&self, now: Instant) -> Vec<(String, Duration)> {
        let left = |suspect: &Suspect| suspect.until?.checked_duration_since(now);
        self.paths.iter().filter_map(|(path, suspect)| Some((path.clone(), left(suspect)?))).collect()
    }

    /// Makes room for one more path: removes the oldest path that is not refused, or else the one whose refusal ends
    /// first.
    fn make_room(&mut self, path: &str, now: Instant) {
        if self.paths.len() < MAX_PATHS || self.paths.contains_key(path) {
            return;
        }
        let age = |suspect: &Suspect| (suspect.until.filter(|until| *until > now), suspect.moment);
        let oldest = self.paths.iter().min_by_key(|(_, suspect)| age(suspect)).map(|(path, _)| path.clone());
        if let Some(oldest) = oldest {
            self.paths.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::RequestId;
    use howdah_transport::wire::RequestBuilder;

    const STEP: Duration = Duration::from_millis(20);

    fn die(quarantine: &mut Quarantine, path: &str, now: Instant) -> Option<Duration> {
        quarantine.note_death(now);
        quarantine.note_request(path.to_owned(), now)
    }

    #[test]
    fn the_query_does_not_distinguish_paths() {
        let key = |method: &[u8], target: &[u8]| {
            let mut head = RequestBuilder::new(1, 1001, 0);
            let (method, target) = (head.text(method), head.text(target));
            head.method(method).uri(target);
            key(&Request::without_client(head.finish(), RequestId(1)))
        };
        assert_eq!(key(b"GET", b"/a.php?x=1"), "GET /a.php");
        assert_eq!(key(b"POST", b"/a.php"), "POST /a.php");
        assert!(key(&[b'M'; 1000], &[b'/'; 50_000]).len() < 300);
    }

    #[test]
    fn a_path_whose_requests_all_die_is_refused_for_longer_and_longer_and_others_are_not() {
        let (mut quarantine, mut now) = (Quarantine::default(), Instant::now());
        let mut deaths = 0;
        let pause = loop {
            now += STEP;
            deaths += 1;
            if let Some(pause) = die(&mut quarantine, "GET /crash", now) {
                break pause;
            }
        };
        assert_eq!((deaths, pause), (MIN_DEATHS, FIRST_QUARANTINE));
        assert!(quarantine.refuses("GET /crash", now).is_some() && quarantine.refuses("GET /", now).is_none());
        assert_eq!(quarantine.refused(now).len(), 1);
        for seconds in [2, 4, 8, 16, 32, 60, 60] {
            now += MAX_QUARANTINE;
            assert!(quarantine.refuses("GET /crash", now).is_none());
            assert_eq!(die(&mut quarantine, "GET /crash", now), Some(Duration::from_secs(seconds)));
        }
        now += MAX_QUARANTINE;
        quarantine.note_survivor("GET /crash", now);
        assert!(quarantine.is_empty(), "a survivor ends the suspicion");
    }

    #[test]
    fn kills_from_outside_quarantine_no_path() {
        let start = Instant::now();
        // Over many paths.
        let mut quarantine = Quarantine::default();
        for death in 0..3000_u32 {
            let path = format!("GET /{}", death % 7);
            assert_eq!(die(&mut quarantine, &path, start + STEP * death), None, "{death}");
        }
        // One path, whose requests mostly survive.
        let mut quarantine = Quarantine::default();
        for death in 0..3000_u32 {
            let now = start + STEP * death;
            assert_eq!(die(&mut quarantine, "GET /", now), None, "{death}");
            (0..3).for_each(|_| quarantine.note_survivor("GET /", now));
        }
        // Mostly idle workers.
        let mut quarantine = Quarantine::default();
        for death in 0..3000_u32 {
            let now = start + STEP * death;
            quarantine.note_death(now);
            if death % 3 == 0 {
                assert_eq!(quarantine.note_request("GET /".into(), now), None, "{death}");
            }
        }
        // All workers at once, with their zygote.
        let mut quarantine = Quarantine::default();
        for death in 0..100_u32 {
            assert_eq!(die(&mut quarantine, "GET /", start + SAME_DEATH_WINDOW / 200 * death), None, "{death}");
        }
    }

    #[test]
    fn the_table_is_bounded_and_refused_paths_stay_longest() {
        let (mut quarantine, mut now) = (Quarantine::default(), Instant::now());
        while die(&mut quarantine, "GET /crash", now).is_none() {
            now += STEP;
        }
        for n in 0..1000 {
            die(&mut quarantine, &format!("GET /{n}"), now);
        }
        assert_eq!(quarantine.paths.len(), MAX_PATHS);
        assert!(quarantine.refuses("GET /crash", now).is_some());
        quarantine.forget(now + WINDOW);
        assert_eq!(quarantine.paths.len(), 1);
        quarantine.forget(now + FORGET_AFTER);
        assert!(quarantine.is_empty());
    }
}
