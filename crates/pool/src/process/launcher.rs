//! Operations that need rights the server has given up: starting PHP as other users, and signalling it.
//!
//! Without a launcher (`Launcher::default()`) the server does both itself. With a launcher each order is a message. A
//! task on the main runtime sends the messages, because orders come from every thread and none may block.

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
    /// Starts the launcher with the programs that it may start (as root only `root_program`) and the socket files to
    /// remove when it ends (with `takes_over` not yet, as the predecessor still listens there). Must be called as root,
    /// before the server switches its user.
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

    /// Starts the tasks that send orders and receive reports, on the current runtime.
    ///
    /// # Errors
    /// The system's error.
    pub fn attach(self) -> io::Result<(Launcher, LauncherEnd)> {
        let (orders, queue) = mpsc::unbounded_channel();
        let (gone_sender, gone) = watch::channel(false);
        let socket = Arc::new(descriptor::watch_both(Arc::new(self.socket))?);
        let waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        tokio::spawn(send_orders(socket.clone(), queue));
        tokio::spawn(receive(socket.clone(), waiting.clone(), gone_sender));
        let launcher = Launcher(Some(Arc::new(LauncherClient { orders, waiting, next: AtomicU64::new(1) })));
        Ok((launcher, LauncherEnd { child: self.child, socket, gone }))
    }
}

/// Handle to await the launcher's end.
#[derive(Debug)]
pub struct LauncherEnd {
    child: Child,
    socket: Arc<AsyncFd<SharedFd>>,
    gone: watch::Receiver<bool>,
}

impl LauncherEnd {
    /// Returns when the launcher has ended.
    pub async fn gone(&mut self) {
        let _ = self.gone.wait_for(|gone| *gone).await;
    }

    /// Ends the launcher, which then removes the server's socket files, and returns when it has ended.
    pub async fn end(mut self) {
        let _ = rustix::net::shutdown(self.socket.get_ref().get(), rustix::net::Shutdown::Write);
        self.gone().await;
        // The launcher closes its end of the socket only by exiting.
        let _ = self.child.wait();
    }
}

/// Starts and signals PHP's processes. Clones share one launcher.
#[derive(Debug, Clone, Default)]
pub struct Launcher(Option<Arc<LauncherClient>>);

#[derive(Debug)]
struct LauncherClient {
    orders: mpsc::UnboundedSender<Order>,
    /// Receivers of started processes' ends; `None` once the launcher has ended, after which no end is reported.
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
pub struct LaunchedProcess {
    /// The launcher's number for it.
    pub id: u64,
    /// Resolves to the process's end.
    pub ended: oneshot::Receiver<End>,
}

impl Launcher {
    /// Orders the start of a pool's program. Returns the descriptors if there is no launcher: the caller then starts
    /// it.
    pub(crate) fn start(&self, config: &PoolConfig, fds: [OwnedFd; 3]) -> Result<LaunchedProcess, [OwnedFd; 3]> {
        let Some(remote) = &self.0 else { return Err(fds) };
        let (id, ended) = remote.number();
        let program = Box::new(Program::of(config));
        remote.order(ToLauncher::Start { id, program }, fds.map(Arc::new).to_vec());
        Ok(LaunchedProcess { id, ended })
    }

    /// Orders the launcher to read the settings with root's rights, so that their programs may be started; `None` if
    /// there is no launcher. The process ends with status 0 on success.
    #[must_use]
    pub fn settle(&self) -> Option<LaunchedProcess> {
        let remote = self.0.as_ref()?;
        let (id, ended) = remote.number();
        remote.order(ToLauncher::Settle { id }, Vec::new());
        Some(LaunchedProcess { id, ended })
    }

    /// Orders the start of the program that may run as root, with `socket` as its standard input.
    ///
    /// # Errors
    /// There is no launcher: returns the socket, and the caller starts the program.
    pub fn start_root_program(&self, socket: OwnedFd) -> Result<LaunchedProcess, OwnedFd> {
        let Some(remote) = &self.0 else { return Err(socket) };
        let (id, ended) = remote.number();
        remote.order(ToLauncher::StartRootProgram { id }, vec![Arc::new(socket)]);
        Ok(LaunchedProcess { id, ended })
    }

    /// True if a launcher starts the processes.
    pub fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Orders the launcher to keep these socket files when it ends (`keep`), or to remove them.
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

    /// Kills a worker. Its reader handles one that is already dead.
    pub(crate) fn kill_worker(&self, pidfd: &Arc<OwnedFd>) {
        match &self.0 {
            Some(remote) => remote.order(ToLauncher::Signal { which: WorkerSignal::Kill }, vec![pidfd.clone()]),
            None => drop(pidfd_send_signal(&**pidfd, Signal::KILL)),
        }
    }

    /// Asks a worker for its stack. Returns false if the worker is dead; with a launcher always true.
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

impl LauncherClient {
    /// Allocates a number for a new process, with the receiver of its end.
    fn number(&self) -> (u64, oneshot::Receiver<End>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, ended) = oneshot::channel();
        if let Some(waiting) = self.waiting.lock().as_mut() {
            waiting.insert(id, sender);
        }
        (id, ended)
    }

    fn order(&self, message: ToLauncher, fds: Vec<Arc<OwnedFd>>) {
        // The queue is closed only after the launcher has ended, and the server then ends too.
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

async fn receive(socket: Arc<AsyncFd<SharedFd>>, waiting: Arc<Mutex<Option<Waiting>>>, gone: watch::Sender<bool>) {
    while let Ok(mut ready) = socket.readable().await {
        match control_socket::receive(socket.get_ref().get(), true) {
            Ok(Some((bytes, _))) => {
                if let Ok(FromLauncher::Ended { id, end }) = serde_json::from_slice(&bytes)
                    && let Some(waiter) = waiting.lock().as_mut().and_then(|all| all.remove(&id))
                {
                    let _ = waiter.send(end);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
            Ok(None) | Err(_) => break,
        }
    }
    // Notifies waiters that their processes' ends will not be reported.
    *waiting.lock() = None;
    let _ = gone.send(true);
}
