//! Reloads, upgrades and stops: subscribers stay connected, or are asked to reconnect.

use super::{HUB, SECRET, Subscriber, hub, publish, published, publisher};
use howdah_tests::site::replace_file;
use howdah_tests::{Request, Site, scenario};
use rustix::process::Signal;

fn command(site: &Site, name: &str) {
    let output = site.howdah().command(&[name]);
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stderr), site.log());
}

scenario!(
    a_reload_keeps_subscribers_and_history_unless_the_hub_changes,
    howdah_only = "a Mercure hub is Howdah's",
    |s| hub(s).time("drain", "100ms").allow_log("token refused"),
    |site| {
        let token = publisher();
        let mut subscriber = Subscriber::anonymous(site, "topic=t");
        published(site, &token, "topic=t&data=x&id=1");
        command(site, "reload");
        published(site, &token, "topic=t&data=x&id=2");
        assert_eq!(
            (subscriber.event().as_str(), subscriber.event().as_str()),
            ("id: 1\ndata: x\n\n", "id: 2\ndata: x\n\n")
        );
        let settings = site.place().run.join("howdah.toml");
        let text = std::fs::read_to_string(&settings).unwrap();
        assert!(text.contains(SECRET));
        replace_file(&settings, text.replace(SECRET, "a new secret, of 32 bytes or more, too"));
        command(site, "reload");
        let rest = subscriber.rest();
        assert!(rest.starts_with("retry: ") && rest.ends_with("\n\n"), "{rest}");
        assert_eq!(publish(site, &token, "topic=t").status, 401, "the key has changed");
        let mut back = Subscriber::anonymous(site, "topic=t&lastEventID=1");
        assert_eq!(back.event(), "id: 2\ndata: x\n\n");
    },
);

scenario!(
    subscribers_are_asked_to_come_back_after_an_upgrade,
    howdah_only = "a Mercure hub is Howdah's",
    |s| hub(s).linked_program().time("drain", "2s").limit("grace", 2000),
    |site| {
        let subscribers: Vec<Subscriber> = (0..10).map(|_| Subscriber::anonymous(site, "topic=t")).collect();
        command(site, "upgrade");
        site.howdah_mut().follow();
        for subscriber in subscribers {
            let rest = subscriber.rest();
            assert!(rest.starts_with("retry: ") && rest.ends_with("\n\n"), "{rest}");
        }
        let mut back = Subscriber::open(site.target(), &Request::get(&format!("{HUB}?topic=t")));
        published(site, &publisher(), "topic=t&data=x&id=1");
        assert_eq!(back.event(), "id: 1\ndata: x\n\n");
    },
);

scenario!(a_stop_waits_for_no_subscriber, howdah_only = "a Mercure hub is Howdah's", hub, |site| {
    let subscribers: Vec<Subscriber> = (0..10).map(|_| Subscriber::anonymous(site, "topic=t")).collect();
    site.howdah().signal(Signal::TERM);
    for subscriber in subscribers {
        assert!(subscriber.rest().starts_with("retry: "));
    }
    assert_eq!(site.howdah_mut().wait(), Some(0), "no response was cut off");
},);
