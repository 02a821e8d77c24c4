//! Compares PHP's limits with the server's: the part of `howdah check` about uploads and long requests that fail although
//! one of two limits permits them.

use howdah_config::{Mode, PoolSettings, Settings, ini};
use std::collections::BTreeMap;
use std::time::Duration;

/// PHP's built-in `post_max_size`. A smaller `max_body` is a choice; with a larger `post_max_size`, large forms were
/// wanted.
const DEFAULT_POST_MAX_SIZE: u64 = 8 << 20;

/// Describes the limits of this pool that contradict each other. `limits`: PHP's values by setting.
pub(super) fn contradictions(
    settings: &Settings,
    pool: &PoolSettings,
    limits: &BTreeMap<String, String>,
) -> Vec<String> {
    let text = |name: &str| limits.get(name).map(String::as_str).unwrap_or_default();
    let size = |name: &str| ini::size(text(name)).filter(|bytes| *bytes > 0);
    let (post, upload) = (size("post_max_size"), size("upload_max_filesize"));
    let post_text = text("post_max_size");
    let mut found = Vec::new();
    if let (Some(post), Some(upload)) = (post, upload)
        && upload > post
    {
        let upload = text("upload_max_filesize");
        found.push(format!(
            "upload_max_filesize = {upload} exceeds post_max_size = {post_text}: PHP drops forms above the latter, so raise it too"
        ));
    }
    let sites = settings.all_sites();
    for site in sites.iter().filter(|site| site.pool == pool.name) {
        let (Some(most), Some(post)) = (site.http.max_body, post) else { continue };
        let name =
            if sites.len() == 1 { "http.max_body".to_owned() } else { format!("http.max_body of site {}", site.name) };
        if most.bytes() > post {
            found.push(format!(
                "{name} = {most} exceeds post_max_size = {post_text}: with larger forms, $_POST is empty; raise post_max_size"
            ));
        } else if most.bytes() < post && post > DEFAULT_POST_MAX_SIZE {
            found.push(format!(
                "{name} = {most} is less than post_max_size = {post_text}: larger forms get 413; raise or remove {name}"
            ));
        }
    }
    let execution = text("max_execution_time").trim().parse().ok().map(Duration::from_secs);
    if let (Some(execution), Some(deadline)) = (execution, pool.deadline)
        && execution > deadline
        && pool.mode != Mode::Async
    {
        found.push(format!(
            "max_execution_time = {} exceeds deadline = {}s: requests are ended by the deadline; raise it for long ones",
            execution.as_secs(),
            deadline.as_secs_f64()
        ));
    }
    found.dedup();
    found
}
