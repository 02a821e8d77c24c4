//! The server's hand for what needs rights that it has given up: starting PHP as other users, and signalling that.
//!
//! Without a launcher (`Launcher::default()`) the server does both itself. With one, each order is a message; a task on the
//! main runtime sends them, because orders come from every thread and none may wait.

use crate::config::PoolConfig;
use crate::descriptor::{self, SharedFd};
use crate::process::end::End;
use crate::process::launcher_protocol::{FromLauncher, ToLauncher, WorkerSignal};
use crate::process::program::Program;
use crate::process::root_program::RootProgram;
use howdah_transport::{STACK_SIGNAL, control_socket};
use parking_lot::Mutex;
use rustix::process::{Signal, pidfd_send_signal};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot, watch};

/// Argument with which `howdah` becomes the launcher.
pub const LAUNCHER_ARGUMENT: &str = "--launcher";

/// The launcher's process, before the server has a runtime.
#[derive(Debug)]
pub struct LauncherProcess {
    child: Child,
    socket: OwnedFd,
}

impl LauncherProcess {
    /// Starts the launcher, with the programs that it may start (as root only `root_program`) and the socket files to
    /// remove at its end (or not yet, where this server takes another's place). To be called as root, and before the
    /// server becomes somebody else.
    ///
    /// # Errors
    /// The system's error.
    pub fn start<'a>(
        configs: impl IntoIterator<Item = &'a PoolConfig>,
        sockets: Vec<PathBuf>,
        root_program: RootProgram,
        takes_over: bool,
    ) -> io::Result<Self> {
        let (socket, theirs) = control_socket::pair()?;
        // The running program, even if its file was replaced meanwhile.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("howdah").arg(LAUNCHER_ARGUMENT).stdin(Stdio::from(theirs)).process_group(0);
        for (name, _) in &root_program.env {
            command.env_remove(name);
        }
        let child = command.spawn()?;
        let programs = configs.into_iter().map(|config| ToLauncher::Program(Box::new(Program::of(config))));
        let sockets = sockets.into_iter().map(|path| ToLauncher::Socket { path, later: takes_over });
        for message in
            programs.chain(sockets).chain([ToLauncher::RootProgram(Box::new(root_program)), ToLauncher::Settled])
        {
            control_socket::send(&socket, &serde_json::to_vec(&message)?, &[], false)?;
        }
        Ok(Self { child, socket })
    }

    /// Takes up the work on the current runtime.
    ///
    /// # Errors
    /// The system's error.
    pub fn attach(self) -> io::Result<(Launcher, LauncherEnd)> {
        let (orders, queue) = mpsc::unbounded_channel();
        let (gone_sender, gone) = watch::channel(false);
        let socket = Arc::new(descriptor::watch_both(Arc::new(self.socket))?);
        let waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        tokio::spawn(send_orders(socket.clone(), queue));
        tokio::spawn(hear(socket.clone(), waiting.clone(), gone_sender));
        let launcher = Launcher(Some(Arc::new(Remote { orders, waiting, next: AtomicU64::new(1) })));
        Ok((launcher, LauncherEnd { child: self.child, socket, gone }))
    }
}

/// The launcher's end, as the server awaits it.
#[derive(Debug)]
pub struct LauncherEnd {
    child: Child,
    socket: Arc<AsyncFd<SharedFd>>,
    gone: watch::Receiver<bool>,
}

impl LauncherEnd {
    /// Returns when the launcher has ended unexpectedly.
    pub async fn gone(&mut self) {
        let _ = self.gone.wait_for(|gone| *gone).await;
    }

    /// Has the launcher end, which then removes the server's socket files, and returns when it has.
    pub async fn end(mut self) {
        let _ = rustix::net::shutdown(self.socket.get_ref().get(), rustix::net::Shutdown::Write);
        self.gone().await;
        // It closes its end of the socket by ending.
        let _ = self.child.wait();
    }
}

/// Starts and signals PHP's processes. Clones mean the same.
#[derive(Debug, Clone, Default)]
pub struct Launcher(Option<Arc<Remote>>);

#[derive(Debug)]
struct Remote {
    orders: mpsc::UnboundedSender<Order>,
    /// Receivers of the ends of started processes; `None` when the launcher has ended, and no end will be known.
    waiting: Arc<Mutex<Option<Waiting>>>,
    next: AtomicU64,
}

type Waiting = HashMap<u64, oneshot::Sender<End>>;

#[derive(Debug)]
struct Order {
    message: ToLauncher,
    fds: Vec<Arc<OwnedFd>>,
}

/// A process that the launcher has started or is about to.
#[derive(Debug)]
pub struct Remotely {
    /// The launcher's number for it.
    pub id: u64,
    /// Its end.
    pub ended: oneshot::Receiver<End>,
}

impl Launcher {
    /// Orders the start of a pool's program. The descriptors come back where there is no launcher: the caller starts it.
    pub(crate) fn start(&self, config: &PoolConfig, fds: [OwnedFd; 3]) -> Result<Remotely, [OwnedFd; 3]> {
        let Some(remote) = &self.0 else { return Err(fds) };
        let (id, ended) = remote.number();
        let program = Box::new(Program::of(config));
        remote.order(ToLauncher::Start { id, program }, fds.map(Arc::new).to_vec());
        Ok(Remotely { id, ended })
    }

    /// Orders the settings to be read with root's rights, so that their programs may be started; `None` if there is no
    /// launcher. Ends with status 0 if they may.
    #[must_use]
    pub fn settle(&self) -> Option<Remotely> {
        let remote = self.0.as_ref()?;
        let (id, ended) = remote.number();
        remote.order(ToLauncher::Settle { id }, Vec::new());
        Some(Remotely { id, ended })
    }

    /// Orders the start of the program that may run as root, with this as its standard input. That comes back where there
    /// is no launcher: the caller starts it.
    ///
    /// # Errors
    /// There is no launcher.
    pub fn start_root_program(&self, socket: OwnedFd) -> Result<Remotely, OwnedFd> {
        let Some(remote) = &self.0 else { return Err(socket) };
        let (id, ended) = remote.number();
        remote.order(ToLauncher::StartRootProgram { id }, vec![Arc::new(socket)]);
        Ok(Remotely { id, ended })
    }

    /// True if what starts processes is the launcher.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// The launcher leaves these socket files where they are when it ends, or removes them.
    pub fn keep_sockets(&self, paths: Vec<PathBuf>, keep: bool) {
        if let Some(remote) = &self.0 {
            remote.order(ToLauncher::KeepSockets { paths, keep }, Vec::new());
        }
    }

    /// Kills a process that the launcher has started.
    pub fn kill(&self, id: u64) {
        if let Some(remote) = &self.0 {
            remote.order(ToLauncher::Kill { id }, Vec::new());
        }
    }

    /// Kills a worker. One that is dead already is its reader's concern.
    pub(crate) fn kill_worker(&self, pidfd: &Arc<OwnedFd>) {
        match &self.0 {
            Some(remote) => remote.order(ToLauncher::Signal { which: WorkerSignal::Kill }, vec![pidfd.clone()]),
            None => drop(pidfd_send_signal(&**pidfd, Signal::KILL)),
        }
    }

    /// Asks a worker for its stack. False: it is dead.
    pub(crate) fn ask_for_stack(&self, pidfd: &Arc<OwnedFd>) -> bool {
        match &self.0 {
            Some(remote) => {
                remote.order(ToLauncher::Signal { which: WorkerSignal::Stack }, vec![pidfd.clone()]);
                true
            }
            None => pidfd_send_signal(&**pidfd, STACK_SIGNAL).is_ok(),
        }
    }
}

impl Remote {
    /// A number for a process to be, and how it will have ended.
    fn number(&self) -> (u64, oneshot::Receiver<End>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (told, ended) = oneshot::channel();
        if let Some(waiting) = self.waiting.lock().as_mut() {
            waiting.insert(id, told);
        }
        (id, ended)
    }

    fn order(&self, message: ToLauncher, fds: Vec<Arc<OwnedFd>>) {
        // The queue is closed only when the launcher is gone, and the server ends then.
        let _ = self.orders.send(Order { message, fds });
    }
}

async fn send_orders(socket: Arc<AsyncFd<SharedFd>>, mut queue: mpsc::UnboundedReceiver<Order>) {
    while let Some(order) = queue.recv().await {
        let Ok(bytes) = serde_json::to_vec(&order.message) else { continue };
        let fds: Vec<_> = order.fds.iter().map(|fd| fd.as_fd()).collect();
        loop {
            let Ok(mut ready) = socket.writable().await else { return };
            match control_socket::send(socket.get_ref().get(), &bytes, &fds, true) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Ok(()) => break,
                Err(_) => return,
            }
        }
    }
}

async fn hear(socket: Arc<AsyncFd<SharedFd>>, waiting: Arc<Mutex<Option<Waiting>>>, gone: watch::Sender<bool>) {
    while let Ok(mut ready) = socket.readable().await {
        match control_socket::receive(socket.get_ref().get(), true) {
            Ok(Some((bytes, _))) => {
                if let Ok(FromLauncher::Ended { id, end }) = serde_json::from_slice(&bytes)
                    && let Some(told) = waiting.lock().as_mut().and_then(|all| all.remove(&id))
                {
                    let _ = told.send(end);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
            Ok(None) | Err(_) => break,
        }
    }
    // Notifies waiters that the ends of their processes cannot be known.
    *waiting.lock() = None;
    let _ = gone.send(true);
}
