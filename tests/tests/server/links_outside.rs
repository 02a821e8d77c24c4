//! Symbolic links that lead out of the document root, created by users with write access: neither sent, nor run, nor
//! listed.

use howdah_tests::{Mode, Setup, Site, script_scenario};
use std::fs;
use std::os::unix::fs::symlink;

/// Files outside, and links to them in the root.
fn lead_outside(site: &Site) {
    let outside = site.place().top.join("outside");
    fs::create_dir(&outside).unwrap();
    for (name, text) in [
        ("secret.txt", "OUTSIDE"),
        ("secret.php", "<?php echo 'OUT', 'SIDE';"),
        ("index.php", "<?php echo 'OUT', 'SIDE';"),
        ("index.html", "OUTSIDE"),
    ] {
        fs::write(outside.join(name), text).unwrap();
    }
    for name in ["secret.txt", "secret.php"] {
        symlink(outside.join(name), site.file(&format!("list/{name}"))).unwrap();
    }
    symlink("../../outside", site.file("list/directory")).unwrap();
    symlink(&outside, site.file("absolute")).unwrap();
    symlink("inside.txt", site.file("list/link.txt")).unwrap();
}

/// Paths that lead outside, each through a link.
const OUTSIDE: &[&str] = &[
    "/list/secret.txt",
    "/list/secret.php",
    "/list/secret.php/info",
    "/list/directory/",
    "/list/directory/secret.txt",
    "/list/directory/secret.php",
    "/list/directory/index.php",
    "/absolute/",
    "/absolute/index.html",
    "/absolute/../absolute/secret.txt",
];

/// In worker and async mode everything but files goes to one script, which may include any file.
fn one_script(site: &Site) -> bool {
    matches!(site.mode(), Some(Mode::Worker | Mode::Async))
}

fn stay_inside(site: &mut Site, more: &[&str]) {
    assert_eq!(site.get_ok("/list/link.txt"), "inside");
    let one_script = one_script(site);
    for path in OUTSIDE.iter().chain(more).filter(|path| !one_script || path.ends_with(".txt")) {
        let response = site.get(path);
        assert!([403, 404].contains(&response.status), "{path}: {}", response.status);
        assert!(!response.text().contains("OUTSIDE"), "{path}");
    }
}

fn inside(setup: Setup) -> Setup {
    setup.file("list/inside.txt", "inside").php("inside.php", "echo 'inside';").allow_log("which is not followed")
}

script_scenario!(
    links_out_of_the_root_are_neither_sent_nor_run_nor_listed,
    howdah_only = "Debian's nginx follows every symbolic link",
    |s| inside(s).setting("rule", "[{ path = '/list/*', listing = true, index = ['none'] }]"),
    |site: &mut Site| {
        lead_outside(site);
        stay_inside(site, &[]);
        if one_script(site) {
            return;
        }
        let list = site.get_ok("/list/");
        assert!(list.contains("./inside.txt") && list.contains("./link.txt"), "{list}");
        for name in ["secret.txt", "secret.php", "directory"] {
            assert!(!list.contains(name), "{name}: {list}");
        }
    },
);

script_scenario!(
    htaccess_files_do_not_lead_out_of_the_root_by_links,
    howdah_only = "the reference reads no .htaccess",
    |s| {
        inside(s).setting("htaccess", "true").file(
        ".htaccess",
        "RewriteEngine On\nRewriteRule ^rewritten\\.(txt|php)$ list/secret.$1 [L]\nRewriteRule ^deep/(.*)$ absolute/$1 [L]\n\
         ErrorDocument 410 /list/secret.txt\nRedirect gone /gone\n",
    )
    },
    |site: &mut Site| {
        lead_outside(site);
        stay_inside(site, &["/rewritten.txt", "/rewritten.php", "/deep/secret.txt", "/deep/secret.php", "/deep/"]);
        let gone = site.get("/gone").expect(410).text();
        assert!(!gone.contains("OUTSIDE"), "{gone}");
    },
);
