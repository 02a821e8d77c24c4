//! Quarantine for requests that kill their workers: when most recent deaths happened in requests for one path, and
//! hardly any request for it survives, its requests are answered at once for a while, which doubles each time the next
//! request dies as well.
//!
//! A storm of signals from outside looks different, and must have no effect: it hits whatever runs, so the deaths
//! belong to many paths or to idle workers, or requests for the path mostly survive. Workers that die together, as with
//! their zygote, count as one death: one cause has killed them.
//!
//! The table is empty until a worker dies in a request, and short then: requests that end well are compared with it
//! only while it has entries. It lies in the scheduler, under the pool's lock. Paths are as the client wrote them,
//! without the query.

use crate::request::Request;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Deaths, and requests that survive, count together within this time.
const WINDOW: Duration = Duration::from_secs(10);
/// Deaths within the window from which on a path is suspected.
const SUSPICIOUS: u32 = 6;
/// Of a suspected path's requests at most one in so many survives.
const SURVIVORS: u32 = 5;
/// Deaths this close to each other are one.
const SAME_DEATH_WINDOW: Duration = Duration::from_millis(5);
/// For how long requests are refused, the first time and at most.
const FIRST: Duration = Duration::from_secs(1);
const MAX_QUARANTINE: Duration = Duration::from_secs(60);
/// A path of which nothing was heard for so long is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(300);
/// Most paths that are remembered, and the bytes of one.
const PATHS: usize = 64;
const PATH_LEN: usize = 256;

/// The method and the path of a request: those whose deaths count together.
pub(crate) fn key(request: &Request) -> String {
    let short = |bytes: &[u8], most: usize| String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned();
    format!("{} {}", short(request.method(), 16), short(request.path(), PATH_LEN))
}

/// Record of a path. The counts are those of the window.
#[derive(Debug)]
struct Suspect {
    /// Requests that died.
    deaths: u32,
    /// Deaths, where those that happened together count once.
    moments: u32,
    survived: u32,
    /// When the last moment began.
    moment: Instant,
    /// Until when its requests are refused, and for how long that was ordered.
    until: Option<Instant>,
    pause: Duration,
}

/// The paths whose requests died with their workers.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    paths: HashMap<String, Suspect>,
    /// When the window began, and the deaths in it: in requests for whatever path, or idle.
    since: Option<Instant>,
    all: u32,
}

impl Quarantine {
    /// True while no request has died for long: nothing is to be looked up.
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// For how long requests for this path are still refused.
    pub(crate) fn refuses(&self, path: &str, now: Instant) -> Option<Duration> {
        self.paths.get(path)?.until?.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// A worker has died, whatever it was doing.
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

    /// A request for this path has died with its worker, which was noted. Its pause, should it be refused from now on.
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
        let mostly_die = suspect.survived * SURVIVORS <= suspect.moments;
        let is_the_cause = suspect.deaths * 2 > all;
        let again = !suspect.pause.is_zero() && suspect.survived == 0;
        if !(again || suspect.moments >= SUSPICIOUS && mostly_die && is_the_cause) {
            return None;
        }
        suspect.pause = (suspect.pause * 2).clamp(FIRST, MAX_QUARANTINE);
        suspect.until = Some(now + suspect.pause);
        Some(suspect.pause)
    }

    /// A request for this path has ended well.
    pub(crate) fn note_survivor(&mut self, path: &str, now: Instant) {
        let Some(suspect) = self.paths.get_mut(path) else { return };
        suspect.survived += 1;
        // One that was refused, and whose requests end well now, is trusted again.
        let trusted = !suspect.pause.is_zero() && suspect.until.is_none_or(|until| until <= now);
        if trusted || now.duration_since(suspect.moment) > WINDOW {
            self.paths.remove(path);
        }
    }

    /// Forgets what is old. Called once per tick.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.paths.retain(|_, suspect| {
            let quiet = now.duration_since(suspect.moment);
            quiet < if suspect.pause.is_zero() { WINDOW } else { FORGET_AFTER }
        });
    }

    /// The paths whose requests are refused, and for how long still.
    pub(crate) fn refused(&self, now: Instant) -> Vec<(String, Duration)> {
        let left = |suspect: &Suspect| suspect.until?.checked_duration_since(now);
        self.paths.iter().filter_map(|(path, suspect)| Some((path.clone(), left(suspect)?))).collect()
    }

    /// Makes room for one path more: first those go that are not refused, the oldest of them first.
    fn make_room(&mut self, path: &str, now: Instant) {
        if self.paths.len() < PATHS || self.paths.contains_key(path) {
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
    fn queries_do_not_tell_paths_apart() {
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
        assert_eq!((deaths, pause), (SUSPICIOUS, FIRST));
        assert!(quarantine.refuses("GET /crash", now).is_some() && quarantine.refuses("GET /", now).is_none());
        assert_eq!(quarantine.refused(now).len(), 1);
        for seconds in [2, 4, 8, 16, 32, 60, 60] {
            now += MAX_QUARANTINE;
            assert!(quarantine.refuses("GET /crash", now).is_none());
            assert_eq!(die(&mut quarantine, "GET /crash", now), Some(Duration::from_secs(seconds)));
        }
        now += MAX_QUARANTINE;
        quarantine.note_survivor("GET /crash", now);
        assert!(quarantine.is_empty(), "it has been repaired");
    }

    #[test]
    fn a_storm_from_outside_refuses_nobody() {
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
    fn the_table_is_bounded_and_what_is_refused_stays_longest() {
        let (mut quarantine, mut now) = (Quarantine::default(), Instant::now());
        while die(&mut quarantine, "GET /crash", now).is_none() {
            now += STEP;
        }
        for n in 0..1000 {
            die(&mut quarantine, &format!("GET /{n}"), now);
        }
        assert_eq!(quarantine.paths.len(), PATHS);
        assert!(quarantine.refuses("GET /crash", now).is_some());
        quarantine.forget(now + WINDOW);
        assert_eq!(quarantine.paths.len(), 1);
        quarantine.forget(now + FORGET_AFTER);
        assert!(quarantine.is_empty());
    }
}
