//! Settings of the checks that new workers must pass before a reload sends them all requests.

use crate::source::Source;
use crate::table::settings;

settings! {
    /// Checks that new workers must pass before a reload gives them all requests. If they fail, the reload fails, and
    /// the old ones keep serving.
    pub struct DeploySettings at "deploy" {
        /// Paths that new workers must answer with a status below 400 before they get any visitor's request: `/path` of
        /// the first site, or `host/path`.
        check: Vec<String> = "[]" example(r#"["/", "shop.example/health"]"#);
    }
    plus {}
}

/// Reports invalid paths.
pub(crate) fn check(deploy: &DeploySettings, source: &mut Source<'_>) {
    for target in &deploy.check {
        let is_written_right = target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        if target.contains("://") || !target.contains('/') || !is_written_right {
            let message = format!("\"{target}\" is neither a path such as \"/health\" nor \"shop.example/health\"");
            source.object("deploy.check", message);
        }
    }
}
