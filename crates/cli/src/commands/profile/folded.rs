//! Folded stacks: one line per stack, with its functions from the outermost on, separated by semicolons, and its count.
//! This is the input of flame graph scripts.

use super::{name_of, outermost_first};
use howdah_pool::Profile;
use std::collections::BTreeMap;

pub(super) fn render(profile: &Profile) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (stack, times) in &profile.stacks {
        let names: Vec<String> = outermost_first(profile, stack).map(|frame| plain(name_of(frame))).collect();
        *lines.entry(names.join(";")).or_default() += times;
    }
    lines.into_iter().map(|(stack, times)| format!("{stack} {times}\n")).collect()
}

/// Replaces characters that would end the name or the line.
fn plain(name: &str) -> String {
    name.replace(';', ":").replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::super::testing::profile;

    #[test]
    fn a_line_for_each_stack_of_functions() {
        let expected =
            "/srv/index.php 25\n/srv/index.php;App\\Report->work 50\n/srv/index.php;App\\Report->work;sort 25\n";
        assert_eq!(super::render(&profile()), expected);
    }
}
