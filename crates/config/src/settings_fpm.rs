//! The names that PHP-FPM gives to what a pool's settings say too, so that a pool's file can be taken over as it is. Each
//! sets the setting it stands for; who says the same thing in both ways is told to decide.

use std::time::Duration;

use crate::document::quoted;
use crate::log_target::LogTarget;
use crate::origin::Origin;
use crate::quantity::{SpareWorkers, WorkerRange};
use crate::settings::PoolSettings;
use crate::source::Source;
use crate::table::settings;

settings! {
    /// PHP-FPM's names for a pool's settings. A key with a dot stands in quotes: `"pm.max_children" = 20`.
    pub struct FpmNames at "" {
        /// PHP-FPM's name for the kind of pool: `static` is `workers = N`, `dynamic` is `workers = "MIN-MAX"` with
        /// `spare_workers`, `ondemand` is `workers = "0-MAX"`. Needs `"pm.max_children"`.
        manager: Option<String> = r#""""# key("pm") example(r#""dynamic""#);
        /// PHP-FPM's name for the largest number in `workers`. Goes with `pm`.
        max_children: u32 = "0" in(0, 4096) key("pm.max_children") example("20");
        /// PHP-FPM's name for `start_workers`, where `pm` is `dynamic`.
        start_servers: u32 = "0" in(0, 4096) key("pm.start_servers") example("4");
        /// PHP-FPM's name for the smaller number in `spare_workers`, where `pm` is `dynamic`.
        min_spare_servers: u32 = "0" in(0, 4096) key("pm.min_spare_servers") example("2");
        /// PHP-FPM's name for the larger number in `spare_workers`, where `pm` is `dynamic`.
        max_spare_servers: u32 = "0" in(0, 4096) key("pm.max_spare_servers") example("6");
        /// PHP-FPM's name for `shrink_after`, where `pm` is `ondemand`.
        process_idle_timeout: Duration = r#""10s""# key("pm.process_idle_timeout") example(r#""1m""#);
        /// PHP-FPM's name for `max_requests`.
        max_requests: u64 = "0" key("pm.max_requests") example("500");
        /// PHP-FPM's name for `deadline`.
        terminate_timeout: Option<Duration> = "0" key("request_terminate_timeout") example(r#""30s""#);
        /// PHP-FPM's name for `slow_log_after`.
        slowlog_timeout: Option<Duration> = "0" key("request_slowlog_timeout") example(r#""5s""#);
        /// PHP-FPM's name for `slow_log`.
        slowlog: LogTarget = r#""stderr""# example(r#""/var/log/howdah/slow.log""#);
        /// PHP-FPM's name for `status_path`.
        status_path: Option<String> = r#""""# key("pm.status_path") example(r#""/fpm-status""#);
        /// PHP-FPM's name for `ping_path`.
        ping_path: Option<String> = r#""""# key("ping.path") example(r#""/ping""#);
        /// PHP-FPM's name for `ping_response`.
        ping_response: String = r#""pong""# key("ping.response") example(r#""alive""#);
    }
    plus {}
}

/// The keys that say how many processes there are, beside `pm`.
const NUMBERS: [&str; 5] =
    ["pm.max_children", "pm.start_servers", "pm.min_spare_servers", "pm.max_spare_servers", "pm.process_idle_timeout"];
/// What they say in a pool's own settings.
const OWN_NUMBERS: [&str; 3] = ["workers", "start_workers", "spare_workers"];

impl FpmNames {
    /// Reads these names and puts what they say into the pool's settings, where nothing stronger is said there.
    pub(crate) fn over(pool: PoolSettings, source: &mut Source<'_>) -> PoolSettings {
        let names = Self::read(source);
        names.put_into(pool, source)
    }

    fn put_into(self, mut pool: PoolSettings, source: &mut Source<'_>) -> PoolSettings {
        if let Some(origin) = deciding(source, &["pm.max_requests"], &["max_requests"]) {
            pool.max_requests = self.max_requests;
            source.now_from("max_requests", origin);
        }
        if let Some(origin) = deciding(source, &["request_terminate_timeout"], &["deadline"]) {
            pool.deadline = self.terminate_timeout;
            source.now_from("deadline", origin);
        }
        if let Some(origin) = deciding(source, &["request_slowlog_timeout"], &["slow_log_after"]) {
            pool.slow_log_after = self.slowlog_timeout;
            source.now_from("slow_log_after", origin);
        }
        if let Some(origin) = deciding(source, &["slowlog"], &["slow_log"]) {
            pool.slow_log.clone_from(&self.slowlog);
            source.now_from("slow_log", origin);
        }
        if let Some(origin) = deciding(source, &["pm.status_path"], &["status_path"]) {
            pool.status_path.clone_from(&self.status_path);
            source.now_from("status_path", origin);
        }
        if let Some(origin) = deciding(source, &["ping.path"], &["ping_path"]) {
            pool.ping_path.clone_from(&self.ping_path);
            source.now_from("ping_path", origin);
        }
        if let Some(origin) = deciding(source, &["ping.response"], &["ping_response"]) {
            pool.ping_response.clone_from(&self.ping_response);
            source.now_from("ping_response", origin);
        }
        let numbers = [&["pm"], &NUMBERS[..]].concat();
        let Some(origin) = deciding(source, &numbers, &OWN_NUMBERS) else { return pool };
        match self.numbers(source) {
            Ok((workers, start, spare)) => {
                (pool.workers, pool.start_workers, pool.spare_workers) = (workers, start, spare);
                for name in OWN_NUMBERS {
                    source.now_from(name, origin.clone());
                }
            }
            Err((name, message)) => source.object_to(name, message),
        }
        if self.manager.as_deref() == Some("ondemand")
            && let Some(origin) = deciding(source, &["pm", "pm.process_idle_timeout"], &["shrink_after"])
        {
            pool.shrink_after = self.process_idle_timeout;
            source.now_from("shrink_after", origin);
        }
        pool
    }

    /// `workers`, `start_workers` and `spare_workers` as these names say them, with PHP-FPM's rules about what fits.
    fn numbers(&self, source: &Source<'_>) -> Result<(WorkerRange, usize, SpareWorkers), (&'static str, String)> {
        let Some(manager) = self.manager.as_deref() else {
            let first = NUMBERS.iter().find(|name| source.strength(name) > 0).copied().unwrap_or("pm");
            return Err((
                first,
                "goes with pm = \"static\", \"dynamic\" or \"ondemand\", which is not said".to_owned(),
            ));
        };
        let max = self.max_children;
        if max == 0 {
            return Err(("pm", "needs \"pm.max_children\", the largest number of workers".to_owned()));
        }
        let none = SpareWorkers::default();
        match manager {
            "static" => Ok((WorkerRange { min: max, max }, 0, none)),
            "ondemand" => Ok((WorkerRange { min: 0, max }, 0, none)),
            "dynamic" => self.dynamic(max),
            other => {
                let message = format!("expected \"static\", \"dynamic\" or \"ondemand\", found {}", quoted(other));
                Err(("pm", message))
            }
        }
    }

    fn dynamic(&self, max: u32) -> Result<(WorkerRange, usize, SpareWorkers), (&'static str, String)> {
        let (least, most) = (self.min_spare_servers, self.max_spare_servers);
        if least == 0 || least > max {
            let message = format!("must be from 1 to \"pm.max_children\" ({max}) where pm is \"dynamic\", not {least}");
            return Err(("pm.min_spare_servers", message));
        }
        if most < least || most > max {
            let message = format!(
                "must be from \"pm.min_spare_servers\" ({least}) to \"pm.max_children\" ({max}) where pm is \
                 \"dynamic\", not {most}"
            );
            return Err(("pm.max_spare_servers", message));
        }
        let start = if self.start_servers == 0 { least + (most - least) / 2 } else { self.start_servers };
        if !(least..=most).contains(&start) {
            let message = format!(
                "must be from \"pm.min_spare_servers\" ({least}) to \"pm.max_spare_servers\" ({most}), not {start}"
            );
            return Err(("pm.start_servers", message));
        }
        let spare = SpareWorkers { min: least, max: Some(most) };
        Ok((WorkerRange { min: least, max }, start as usize, spare))
    }
}

/// The origin of what is said by PHP-FPM's `names`, if that counts: nothing stronger is said by our `own` ones. Both at once
/// in one place is an error.
fn deciding(source: &mut Source<'_>, names: &[&str], own: &[&str]) -> Option<Origin> {
    let strongest = |source: &Source<'_>, keys: &[&str]| {
        // Of those that are as strong the first one.
        let found = keys.iter().rev().map(|key| (source.strength(key), (*key).to_owned()));
        found.filter(|(strength, _)| *strength > 0).max_by_key(|(strength, _)| *strength)
    };
    let (strength, name) = strongest(source, names)?;
    let Some((other, ours)) = strongest(source, own) else { return Some(source.origin_of(&name)) };
    if other == strength {
        let place = source.origin_of(&ours);
        source.object_to(&name, format!("`{ours}` ({place}) says the same in another way; keep one of them"));
    }
    (strength > other).then(|| source.origin_of(&name))
}
