//! A simulated network between client and server that loses, reorders and counts datagrams. The seed and the number of
//! datagrams alone determine what happens to each.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// A lossy network between client and server. Dropping it ends the network.
pub(crate) struct Line {
    pub(crate) addr: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

/// Statistics of the datagrams.
#[derive(Default)]
pub(crate) struct Seen {
    /// Datagrams that were lost.
    pub(crate) lost: AtomicUsize,
    /// The server's packets that ask a client to prove its address (RFC 9000 17.2.5).
    pub(crate) retries: AtomicUsize,
    /// Set to drop everything from the server.
    pub(crate) deaf: AtomicBool,
}

/// Pseudorandom numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

impl Line {
    /// Connects one client to a server. `percent` of the datagrams are lost, and as many are delayed.
    pub(crate) async fn to(server: SocketAddr, percent: u64, seed: u64) -> Self {
        let near = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap());
        let far = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap());
        let addr = near.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let client = Arc::new(std::sync::Mutex::new(None));
        let mut tasks = JoinSet::new();
        let (from, to, noted, counts) = (near.clone(), far.clone(), client.clone(), seen.clone());
        tasks.spawn(async move {
            let mut dice = Dice(seed | 1);
            let mut datagram = vec![0; 65536];
            while let Ok((length, address)) = from.recv_from(&mut datagram).await {
                *noted.lock().unwrap() = Some(address);
                deliver(&mut dice, percent, &counts, &to, server, &datagram[..length]);
            }
        });
        let counts = seen.clone();
        tasks.spawn(async move {
            let mut dice = Dice(seed.rotate_left(32) | 1);
            let mut datagram = vec![0; 65536];
            while let Ok((length, _)) = far.recv_from(&mut datagram).await {
                if datagram[0] & 0xf0 == 0xf0 {
                    counts.retries.fetch_add(1, SeqCst);
                }
                let Some(address) = *client.lock().unwrap() else { continue };
                if !counts.deaf.load(SeqCst) {
                    deliver(&mut dice, percent, &counts, &near, address, &datagram[..length]);
                }
            }
        });
        Self { addr, seen, _tasks: tasks }
    }
}

fn deliver(dice: &mut Dice, percent: u64, seen: &Seen, over: &Arc<UdpSocket>, to: SocketAddr, datagram: &[u8]) {
    let chance = dice.below(100);
    if chance < percent {
        seen.lost.fetch_add(1, SeqCst);
        return;
    }
    let late = if chance < 2 * percent { dice.below(20) } else { 0 };
    let (over, datagram) = (over.clone(), datagram.to_vec());
    if late == 0 {
        // A full buffer loses the datagram too.
        let _ = over.try_send_to(&datagram, to);
        return;
    }
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(late)).await;
        let _ = over.try_send_to(&datagram, to);
    });
}
