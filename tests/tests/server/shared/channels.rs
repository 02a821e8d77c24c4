//! WebSocket channels across several servers.

use super::sharing;
use crate::server::websocket_events::{chat, open};
use howdah_tests::servers::Server;
use howdah_tests::websocket::TEXT;
use howdah_tests::{Mode, Setup, Site};

#[test]
fn a_script_reaches_the_connections_of_its_channel_on_every_server() {
    let redis = Server::redis(false);
    let setup = sharing(chat(Setup::default()), "redis", redis.port).allow_log("is away: updates of");
    let sites = [(); 2].map(|()| Site::start(Mode::Classic, &setup));
    let mut sockets = sites.each_ref().map(|site| open(site, "room=a").0);
    for number in 0..20 {
        assert_eq!(sites[number % 2].get_ok(&format!("/chat.php?publish=a&text={number}")), "no event");
        for socket in &mut sockets {
            assert_eq!(socket.next(TEXT), number.to_string());
        }
    }
    drop((sockets, redis));
    sites.into_iter().for_each(Site::finish);
}
