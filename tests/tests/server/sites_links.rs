//! Symbolic links in Debian's packages: followed to packages' directories, otherwise refused and reported.

use howdah_tests::{Request, Setup, Site, scenario};
use std::os::unix::fs::{lchown, symlink};
use std::path::PathBuf;

/// An application whose parts are in other directories; `share` stands for `/usr/share`.
fn application(setup: Setup) -> Setup {
    setup
        .setting("static.follow_symlinks", "[\"@TOP@/share\"]")
        .php("index.php", "echo 'the front page';")
        .file("../share/js/jquery.js", "jquery")
        .file("../share/skin/style.css", "style")
        .php("../share/app/page.php", "echo 'a page';")
        .file("../etc/secret.conf", "secret")
        .allow_log("which is not followed")
}

fn link(site: &Site, name: &str, target: &str) -> PathBuf {
    let link = site.file(name);
    symlink(site.place().top.join(target), &link).unwrap();
    link
}

scenario!(
    links_of_packages_are_followed,
    howdah_only = "the settings for links are Howdah's",
    |s| application(s).needs_root(),
    |site| {
        let _ = link(site, "jquery.js", "share/js/jquery.js");
        let _ = link(site, "skin", "share/skin");
        let _ = link(site, "page.php", "share/app/page.php");
        for _ in 0..2 {
            assert_eq!(site.get("/jquery.js").expect(200).text(), "jquery");
            assert_eq!(site.get("/skin/style.css").expect(200).text(), "style");
            assert_eq!(site.get("/page.php").expect(200).text(), "a page");
        }
        let range = site.send(&Request::get("/jquery.js").header("Range", "bytes=1-2")).expect(206);
        assert_eq!(range.text(), "qu");
        assert!(!site.log().contains("not followed"), "{}", site.log());
    },
);

scenario!(
    a_link_that_is_not_followed_is_404_and_logged_once,
    howdah_only = "the settings for links are Howdah's",
    application,
    |site| {
        let etc = link(site, "conf", "etc");
        let _ = link(site, "style.css", "etc/secret.conf");
        for path in ["/conf/secret.conf", "/style.css", "/style.css", "/conf/secret.conf?again"] {
            let response = site.get(path).expect(404);
            assert!(!response.text().contains("front page"), "{path}");
        }
        let _ = site.wait_for_log(&["style.css is a link to "]);
        let log = site.log();
        let named = format!("{} is a link to ", etc.display());
        assert_eq!(log.matches(&named).count(), 1, "{log}");
        assert!(log.contains("see `static.follow_symlinks`"), "{log}");
        // Missing files still go to the front controller.
        assert_eq!(site.get("/conf/nothing").expect(200).text(), "the front page");
    },
);

scenario!(
    links_that_others_than_root_have_made_stay_inside,
    howdah_only = "the settings for links are Howdah's",
    |s| application(s).needs_root(),
    |site| {
        for (name, target) in [("planted.js", "share/js/jquery.js"), ("planted.php", "share/app/page.php")] {
            lchown(link(site, name, target), Some(65534), None).unwrap();
            let _ = site.get(&format!("/{name}")).expect(404);
        }
        lchown(link(site, "fine.txt", "root/a.txt"), Some(65534), None).unwrap();
        std::fs::write(site.file("a.txt"), "inside").unwrap();
        assert_eq!(site.get("/fine.txt").expect(200).text(), "inside");
        let _ = site.wait_for_log(&["root does not own it"]);
    },
);
