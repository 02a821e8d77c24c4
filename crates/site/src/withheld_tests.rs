//! Tests of `withheld`: files that are never sent, under any name, and files that are.

use super::*;

fn withheld(change: impl FnOnce(&mut Settings)) -> Withheld {
    let mut settings = Settings::default();
    change(&mut settings);
    Withheld::new(&settings, &settings.static_files, Arc::new(PrivateFiles::new(&settings)))
}

#[test]
fn php_source_is_withheld_by_name_whatever_the_settings() {
    let withheld = withheld(|settings| settings.static_files.never_send.clear());
    for name in [
        "a.php",
        ".php",
        "a.PHP",
        "a.pHtMl",
        "a.php.",
        "a.php...",
        "a.php ",
        "a.php~",
        "a.php~ .",
        "x/a.phar",
        "a.phps",
        "a.php.gz",
        "a.PHP.Br",
        "a.php.zst",
        "a.php8",
    ] {
        assert!(withheld.by_name(name.as_bytes()), "{name}");
    }
    for name in
        ["php", "a.phpx", "aphp", "a.php.txt", "a.php/x", "a.inc", "", "...", "phar", "x.php/readme", ".gz", "a.gz"]
    {
        assert!(!withheld.by_name(name.as_bytes()), "{name}");
    }
}

#[test]
fn copies_of_source_are_withheld_by_default_and_generated_pages_are_not() {
    let withheld = withheld(|_| ());
    for name in [
        "x.php.bak",
        "x.php.save",
        "x.php.swp",
        "x.php.old",
        "x.php.orig",
        "x.php.txt",
        "x.php.1",
        "x.php~1~",
        "x.php_",
        "x.php_old",
        "x.php-2020",
        "X.PHP.BAK",
        "x.php (1)",
        "x.php#",
        "x.phtml.bak",
        "x.phar.old",
        "x.inc",
        "x.INC",
        "x.inc.bak",
        "x.class.inc",
        "x.php.tar.gz",
        "x.module",
        "wp-config.php.save",
        ".user.ini",
        ".env",
        ".env.local",
        ".htpasswd",
        "php.ini",
        "php.ini-production",
        "my-howdah.prod.toml",
        "x.php.bak.gz",
    ] {
        assert!(withheld.by_name(name.as_bytes()), "{name}");
    }
    for name in [
        "x.php.html",
        "x.php.html.gz",
        "index.php_.jpg",
        "x.php.js",
        "x.html",
        "x.js",
        "x.tar.gz",
        "composer.json",
        "x.txt",
        "x.ini",
        "include",
        "x.increment",
        "a.phpunit",
        "favicon.ico",
        "app.toml",
        "x.sql",
    ] {
        assert!(!withheld.by_name(name.as_bytes()), "{name}");
    }
}

#[test]
fn a_configuration_and_its_copies_are_withheld() {
    let withheld = withheld(|settings| {
        settings.static_files.never_send.clear();
        settings.config_file = Some("/nowhere/Site.conf.toml".into());
    });
    for of in ["howdah.toml", "HOWDAH.TOML", "site.conf.toml", "SITE.conf.Toml"] {
        for name in [
            of.to_owned(),
            format!("{of}~"),
            format!("{of}.bak"),
            format!(".{of}.swp"),
            format!("#{of}#"),
            format!("{of}.gz"),
            format!("{of}.br"),
            format!("{of}.zst"),
            format!("{of}."),
            format!("{of} "),
            format!("{of}-old"),
            format!(".#{of}"),
            format!("a/b/{of}"),
        ] {
            assert!(withheld.by_name(name.as_bytes()), "{name}");
        }
    }
    for name in ["howdah.tomlx", "ahowdah.toml", "site.conf", "site.toml", "howdah.toml/x"] {
        assert!(!withheld.by_name(name.as_bytes()), "{name}");
    }
}

#[test]
fn private_files_are_withheld_under_any_name_even_after_replacement() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["conf", "ini/php.ini", "error.log", "access.log", "slow.log", "worker", "other"] {
        std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        std::fs::write(at(name), "x").unwrap();
    }
    let withheld = withheld(|settings| {
        settings.config_file = Some(at("conf"));
        settings.pools[0].php.config = Some(at("ini"));
        settings.pools[0].script = Some(at("worker"));
        settings.log.error = LogTarget::File(at("error.log"));
        settings.log.access = AccessTarget::File(at("access.log"));
        settings.pools[0].slow_log = LogTarget::File(at("slow.log"));
    });
    for (number, name) in ["conf", "ini/php.ini", "worker", "error.log", "access.log", "slow.log"].iter().enumerate() {
        let (link, hard) = (at(&format!("link{number}")), at(&format!("hard{number}")));
        std::os::unix::fs::symlink(at(name), &link).unwrap();
        std::fs::hard_link(at(name), &hard).unwrap();
        for path in [&at(name), &link, &hard] {
            assert!(withheld.is_at(path), "{}", path.display());
        }
    }
    assert!(!withheld.is_at(&at("other")) && !withheld.is_at(&at("none")) && !withheld.is_at(dir.path()));
    // Like editors: keep the old file under another name and create a new one.
    std::fs::rename(at("conf"), at("kept")).unwrap();
    std::fs::write(at("new"), "y").unwrap();
    std::fs::rename(at("new"), at("conf")).unwrap();
    assert!(withheld.is_at(&at("kept")) && withheld.is_at(&at("conf")));
}

#[test]
fn rotated_logs_are_withheld() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().canonicalize().unwrap();
    std::os::unix::fs::symlink(&real, dir.path().join("link")).unwrap();
    let withheld = withheld(|settings| {
        settings.log.access = AccessTarget::File(dir.path().join("link/access.log"));
        settings.pools[0].slow_log = LogTarget::File(dir.path().join("slow.log"));
    });
    for name in ["access.log.1", "access.log-20261130.gz", "slow.log.2.gz", "slow.log"] {
        let path = real.join(name);
        std::fs::write(&path, "x").unwrap();
        assert!(withheld.is_at(&path), "{name}");
    }
    for name in ["access", "my-slow.log", "below/slow.log.1"] {
        assert!(!withheld.is_at(&real.join(name)), "{name}");
    }
}
