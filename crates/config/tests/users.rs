//! Users of the server and its pools.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod directory;

use directory::Site;

#[test]
fn root_needs_a_user_to_switch_to() {
    let mut site = Site::new("");
    site.uid = Some(0);
    let errors = site.errors();
    assert!(
        errors.len() == 1 && errors[0].contains("started as root") && errors[0].contains("--allow-root"),
        "{errors:?}"
    );
    for (text, what) in [
        ("user = \"root\"", "root is root"),
        ("user = \"0\"", "root is root"),
        ("user = \"no-such-user\"", "there is no user \"no-such-user\""),
        ("user = \"nobody:no-such-group\"", "there is no group"),
        ("user = \"nobody\"\n[php]\nuser = \"root\"", "root is root"),
        ("user = \"nobody\"\n[pool.a]\nuser = \"no-such-user\"", "pool.a"),
        ("allow_root = true\n[php]\ngroups = [\"nogroup\"]", "has no effect without `user`"),
        ("user = \"nobody\"\nadmin_group = \"no-such-group\"", "admin_group"),
    ] {
        site.write("howdah.toml", text);
        let errors = site.errors().join("\n");
        assert!(errors.contains(what), "{text}: {errors}");
    }
    site.write("howdah.toml", "[php]\nuser = \"no-such-user\"");
    assert_eq!(site.errors().len(), 1, "one error: {:?}", site.errors());
    for text in ["allow_root = true", "user = \"nobody\"", "user = \"root\"\nallow_root = true"] {
        site.write("howdah.toml", text);
        site.load().unwrap();
    }
    site.write("howdah.toml", "");
    site.flags.set("allow_root", "true");
    site.load().unwrap();
}

#[test]
fn only_root_can_switch_users() {
    let mut site = Site::new("user = \"nobody\"\n[pool.a]\nuser = \"root\"\n");
    site.uid = Some(4_294_960_000);
    let errors = site.errors().join("\n");
    assert!(errors.contains("only root can become nobody; the server was started by 4294960000"), "{errors}");
    assert!(errors.contains("only root can become root"), "{errors}");
    // The current user may be named.
    let nobody = howdah_config::Account::find("nobody", &[]).unwrap();
    site.write("howdah.toml", "user = \"nobody\"\n[php]\nuser = \"nobody\"\n");
    site.uid = Some(nobody.uid);
    site.load().unwrap();
}

#[test]
fn a_pool_runs_as_its_own_user_or_the_servers() {
    let mut site = Site::new(
        "user = \"nobody:daemon\"\n[pool.a]\nuser = \"daemon\"\ngroups = [\"nogroup\"]\n[pool.b]\nuser = \"nobody:root\"\n",
    );
    site.uid = Some(0);
    let settings = site.load().unwrap().settings;
    let nobody = howdah_config::Account::find("nobody:daemon", &[]).unwrap();
    let account = |name: &str| settings.account_of(settings.pool(name).unwrap()).unwrap().unwrap();
    assert_eq!(settings.account().unwrap().unwrap(), nobody);
    assert_eq!(account("default"), nobody);
    let nogroup = howdah_config::find_group("nogroup").unwrap();
    assert_eq!((account("a").name.as_str(), account("a").groups), ("daemon", vec![nogroup]));
    assert_eq!((account("b").uid, account("b").gid), (nobody.uid, 0));
}
