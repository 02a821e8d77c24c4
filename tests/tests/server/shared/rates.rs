//! Rate limits across all servers.

use super::sharing;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::servers::Server;
use howdah_tests::{Mode, Setup, Site};

#[test]
fn servers_share_a_rate_and_limit_separately_while_the_broker_hangs() {
    let redis = Server::redis(false);
    let rule = "[{ path = '/login', limit = { rate = '1/h', burst = 9 } }]";
    let setup = Setup::default().php("index.php", "echo 'ok';").setting("rule", rule);
    let setup = sharing(setup, "redis", redis.port).allow_log("each server limits rates alone");
    let sites = [(); 2].map(|()| Site::start(Mode::Classic, &setup));
    let is_admitted = |site: &Site| match site.get("/login").status {
        200 => true,
        429 => false,
        other => panic!("{other}"),
    };
    let admitted = (0..20).filter(|at| is_admitted(&sites[at % 2])).count();
    assert_eq!(admitted, 10, "ten for both together");
    redis.suspend();
    for site in &sites {
        assert_eq!((0..12).filter(|_| is_admitted(site)).count(), 10, "ten for each");
        let _ = site.wait_for_log(&["each server limits rates alone"]);
    }
    redis.resume();
    for site in &sites {
        let is_back = || !is_admitted(site) && site.log().contains("rate limits are shared again");
        assert!(eventually(PATIENCE, is_back), "{}", site.log());
    }
    // The servers' connections to it end.
    drop(redis);
    sites.into_iter().for_each(Site::finish);
}
