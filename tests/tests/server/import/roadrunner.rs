//! RoadRunner's configuration: of the files, only those that it sends are sent.

use super::{Applications, ask};
use howdah_tests::php;
use std::fs;
use std::path::Path;

const APPLICATIONS: &[(&str, &str)] = &[("roadrunner", include_str!("roadrunner.yaml"))];

const ANSWERS: &[(&str, u16, &str)] = &[
    ("/any/page", 200, "in a worker /any/page"),
    ("/other.php", 200, "in a worker /other.php"),
    ("/style.css", 200, "file style.css"),
    ("/robots.txt", 404, ""),
    ("/images/a.png", 404, ""),
];

#[test]
fn files_that_roadrunner_keeps_are_not_sent() {
    let applications = Applications::new(APPLICATIONS);
    let worker = applications.root("roadrunner").join("public/worker.php");
    fs::write(worker, format!("<?php\n{}", php!("worker.php"))).unwrap();
    let port = applications.port.number;
    let ours = applications.serve(".rr.yaml", &applications.text(&port.to_string(), Path::new("/none")));
    for (path, status, expected) in ANSWERS {
        let answer = ask(port, "localhost", path);
        let is_same = answer.status == *status && (*status == 404 || answer.text().starts_with(expected));
        assert!(is_same, "{path}: {} {}\n{}", answer.status, answer.text(), ours.page);
    }
}
