//! A network between one of our servers and another: it forwards bytes, slowly if requested, and can be cut off such
//! that both ends keep their connections and receive nothing.

use crate::site::Port;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A relay to one server. Dropping it ends the relay.
#[derive(Debug)]
pub struct Relay {
    pub port: u16,
    _held: Port,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_cut: bool,
    ends: bool,
    streams: Vec<TcpStream>,
    passing: Vec<JoinHandle<()>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the network is cut. `false`: the relay is ending.
    fn is_open(&self) -> bool {
        let waited = self.changed.wait_while(self.state(), |state| state.is_cut && !state.ends);
        !waited.unwrap_or_else(PoisonError::into_inner).ends
    }
}

impl Relay {
    /// Starts a relay to this port. Each piece, in each direction, is delayed by `delay`.
    pub fn to(target: u16, delay: Duration) -> Self {
        let held = Port::hold();
        let listener = TcpListener::bind(("127.0.0.1", held.number)).unwrap_or_else(|e| panic!("{e}"));
        let shared = Arc::<Shared>::default();
        let own = shared.clone();
        let listening = std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if own.state().ends {
                    return;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else {
                    let _ = client.shutdown(Shutdown::Both);
                    continue;
                };
                let copy = |stream: &TcpStream| stream.try_clone().unwrap_or_else(|e| panic!("{e}"));
                for (from, to) in [(copy(&client), copy(&server)), (copy(&server), copy(&client))] {
                    let shared = own.clone();
                    let passing = std::thread::spawn(move || pass(from, to, delay, &shared));
                    own.state().passing.push(passing);
                }
                own.state().streams.extend([client, server]);
            }
        });
        Self { port: held.number, _held: held, shared, listening: Some(listening) }
    }

    /// Stops forwarding; connections stay open.
    pub fn cut(&self) {
        self.shared.state().is_cut = true;
    }

    /// Resumes forwarding: everything arrives, late.
    pub fn mend(&self) {
        self.shared.state().is_cut = false;
        self.shared.changed.notify_all();
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, delay: Duration, shared: &Shared) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        // The latency of this network; no test waits for it.
        std::thread::sleep(delay);
        if !shared.is_open() || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.state().ends = true;
        self.shared.changed.notify_all();
        // Wakes the listener, which checks for the end with its next connection.
        if let Ok(last) = TcpStream::connect(("127.0.0.1", self.port)) {
            let _ = last.shutdown(Shutdown::Both);
        }
        let _ = self.listening.take().map(JoinHandle::join);
        let (streams, passing) = {
            let mut state = self.shared.state();
            (std::mem::take(&mut state.streams), std::mem::take(&mut state.passing))
        };
        streams.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        passing.into_iter().for_each(|thread| drop(thread.join()));
    }
}
