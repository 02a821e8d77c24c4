//! The settings of what new workers have to show before a reload gives them all requests.

use std::time::Duration;

use crate::settings_telemetry::Ratio;
use crate::source::Source;
use crate::table::settings;

settings! {
    /// Checks that new workers must pass before a reload gives them all requests. If they fail, the reload fails, and
    /// the old ones keep serving.
    pub struct DeploySettings at "deploy" {
        /// Paths that new workers must answer with a status below 400 before they get any visitor's request: `/path` of
        /// the first site, or `host/path`.
        check: Vec<String> = "[]" example(r#"["/", "shop.example/health"]"#);
        /// Share of clients that new workers serve first, while they are watched: from 0, for none, to 1, for all.
        ///
        /// A client is an address; behind a trusted proxy, the address that the proxy reports.
        canary: Ratio = "0.0" example("0.05");
        /// Time for which they are watched. Meanwhile the old workers stay.
        watch: Duration = r#""30s""# example(r#""2m""#);
    }
    plus {}
}

/// The longest time that new workers are watched: nothing else can be reloaded meanwhile.
const LONGEST_WATCH: Duration = Duration::from_secs(3600);

/// Reports what could not work.
pub(crate) fn check(deploy: &DeploySettings, source: &mut Source<'_>) {
    for target in &deploy.check {
        let is_written_right = target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        if target.contains("://") || !target.contains('/') || !is_written_right {
            let message = format!("\"{target}\" is neither a path such as \"/health\" nor \"shop.example/health\"");
            source.object("deploy.check", message);
        }
    }
    if deploy.watch > LONGEST_WATCH {
        source.object("deploy.watch", "is more than an hour, in which nothing else could be reloaded".to_owned());
    }
    if deploy.canary.get() > 0.0 && deploy.watch.is_zero() {
        source.object("deploy.watch", "leaves no time to watch the workers that `deploy.canary` speaks of".to_owned());
    }
}
