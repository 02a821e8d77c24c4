//! A configuration of Unit: there, the first step that fits decides, and scripts of a `share` are files.

use super::{Applications, ask};
use std::path::Path;

const APPLICATIONS: &[(&str, &str)] = &[("unit", include_str!("unit.json"))];

const ANSWERS: &[(&str, u16, &str)] = &[
    ("/", 200, "/index.php /"),
    ("/page?a=1", 200, "/index.php /page?a=1 a=1"),
    ("/style.css", 200, "file style.css"),
    ("/dir2/a.txt", 200, "file dir2/a.txt"),
    ("/vendor/a.txt", 403, ""),
    ("/vendor/a.php", 403, ""),
    ("/cache/a.txt", 403, ""),
    ("/wp-content/uploads/a.png", 200, "file wp-content/uploads/a.png"),
    ("/wp-content/uploads/x.php", 403, ""),
    ("/wp-content/uploads/x.php/a", 403, ""),
    ("/images/a.png", 200, "file images/a.png"),
    ("/images/none.png", 410, ""),
    ("/api.php", 200, "/api.php"),
    ("/sites/default/files/x.php", 200, "/sites/default/files/x.php"),
    ("/other.php", 403, ""),
];

#[test]
fn routes_of_unit_become_rules_that_admit_no_more() {
    let applications = Applications::new(APPLICATIONS);
    let port = applications.port.number;
    let ours = applications.serve("unit.json", &applications.text(&port.to_string(), Path::new("/none")));
    for (path, status, expected) in ANSWERS {
        let answer = ask(port, "unit.localhost", path);
        let is_same = answer.status == *status && answer.text().starts_with(expected);
        assert!(
            is_same || *status >= 400 && answer.status == *status,
            "{path}: {} {}\n{}",
            answer.status,
            answer.text(),
            ours.page
        );
    }
}
