//! The file format of speedscope (<https://www.speedscope.app>), a viewer in the browser.

use super::{name_of, samples};
use howdah_pool::Profile;
use serde_json::json;

pub(super) fn render(profile: &Profile) -> String {
    let frames = profile.frames.iter().map(|frame| match frame.file.as_str() {
        "" => json!({ "name": name_of(frame) }),
        file => json!({ "name": name_of(frame), "file": file, "line": frame.line }),
    });
    let seconds = |times: u64| times as f64 / f64::from(profile.rate.max(1));
    let stacks = profile.stacks.iter().map(|(stack, _)| stack.iter().rev().copied().collect::<Vec<u32>>());
    let text = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("howdah ", env!("CARGO_PKG_VERSION")),
        "name": format!("pool {}", profile.pool),
        "shared": { "frames": frames.collect::<Vec<_>>() },
        "profiles": [{
            "type": "sampled",
            "name": format!("pool {}", profile.pool),
            "unit": "seconds",
            "startValue": 0,
            "endValue": seconds(samples(profile)),
            "samples": stacks.collect::<Vec<_>>(),
            "weights": profile.stacks.iter().map(|(_, times)| seconds(*times)).collect::<Vec<_>>(),
        }],
    });
    format!("{text}\n")
}

#[cfg(test)]
mod tests {
    use super::super::testing::profile;
    use serde_json::{Value, json};

    #[test]
    fn stacks_begin_with_the_outermost_frame_and_weigh_their_seconds() {
        let value: Value = serde_json::from_str(&super::render(&profile())).unwrap();
        let inner = &value["profiles"][0];
        assert_eq!(inner["samples"], json!([[0, 1], [0, 1, 2], [3]]));
        assert_eq!((&inner["weights"], &inner["endValue"]), (&json!([0.5, 0.25, 0.25]), &json!(1.0)));
        assert_eq!(
            value["shared"]["frames"][1],
            json!({"name": "App\\Report->work", "file": "/srv/report.php", "line": 12})
        );
        assert_eq!(value["shared"]["frames"][2], json!({"name": "sort"}));
    }
}
