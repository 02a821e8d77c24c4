//! The zygote: boots PHP, forks workers on order or has them forked (`shared_boot`), reaps them, and ends with its
//! socket.
//!
//! It has one thread and no signal handlers: workers are watched through pidfds in the same `poll` as the socket, other
//! children (`adopted`) through a signalfd. When the server's end of the socket closes, for whatever reason, it kills
//! all its children and ends; workers also carry a parent-death signal, so they end even if the zygote is killed.

use crate::adopted_children::{self, AdoptedChildren};
use crate::memory::{self, MemoryFile, WorkerMemory};
use crate::profile::Profile;
use crate::reaped::{Reaped, reap};
use crate::sandbox::learn::Learner;
use crate::shared_boot::{Order, Origin, SharedBoot};
use crate::{capabilities, library, php, priority, sandbox, stacks, warmup_report, worker, worker_lane, zygote_memory};
use howdah_transport::php_stack::RequestStacks;
use howdah_transport::wire::WIRE_VERSION;
use howdah_transport::zygote_protocol::{BootSpec, FromZygote, ToZygote, WarmUpRequest};
use howdah_transport::{Mode, control_socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;

struct Child {
    pid: Pid,
    pidfd: OwnedFd,
    /// Its memory, for reading; `None` until the worker has sent it.
    memory: Option<OwnedFd>,
    /// File with the size of that memory; likewise.
    size: Option<OwnedFd>,
}

struct Zygote {
    /// The server's socket.
    socket: OwnedFd,
    /// Workers and the template.
    children: Vec<Child>,
    shared_boot: SharedBoot,
    adopted: AdoptedChildren,
    /// Present with a learning sandbox.
    learner: Option<Learner>,
    /// Receives the descriptors for `Child::memory` and `Child::size`. Only the zygote has it.
    memories: Option<WorkerMemory>,
    profile: Option<Profile>,
    /// Workers run one request at a time.
    serial: bool,
}

/// The event loop's next step.
enum Next {
    Continue,
    /// The server has closed its socket.
    End,
}

/// Runs the zygote; returns when it must end. A forked worker never returns from here: it exits.
pub(crate) fn run() -> ExitCode {
    let socket = match take_socket() {
        Ok(socket) => socket,
        Err(error) => {
            eprintln!("howdah-php: standard input is not the server's control socket ({error})");
            return ExitCode::from(2);
        }
    };
    // If the server dies before its first order, the poll below sees the end of file.
    let mut warm_up = Vec::new();
    let spec = loop {
        match receive(&socket) {
            Ok(Some((ToZygote::WarmUp(request), _))) => warm_up.push(request),
            Ok(Some((ToZygote::Boot(spec), _))) => break spec,
            Ok(_) => return ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("howdah-php: {error}");
                return ExitCode::FAILURE;
            }
        }
    };
    // Removed at the end of this function, when all workers have ended.
    let temporary = sandbox::PrivateDirectory::make(&spec);
    let learner = match temporary.as_ref().map_err(Clone::clone).and_then(|_| boot(&spec, warm_up)) {
        Ok(learner) => learner,
        Err(error) => {
            let _ = send(&socket, &FromZygote::BootFailed { error }, &[]);
            return ExitCode::FAILURE;
        }
    };
    zygote_memory::release_libraries();
    let booted = FromZygote::Booted {
        php_version: php::version(),
        restores_nice: priority::is_restorable(),
        form_limit: php::form_limit(),
    };
    if send(&socket, &booted, &[]).is_err() {
        return ExitCode::SUCCESS;
    }
    let shared_boot = SharedBoot::new(spec.worker.mode == Mode::Snapshot);
    let adopted = match AdoptedChildren::new() {
        Ok(adopted) => adopted,
        Err(error) => {
            eprintln!("howdah-php: cannot adopt processes that scripts leave behind: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Without it workers' stacks are not available; everything else works.
    let memories = WorkerMemory::new().ok();
    let serial = !spec.worker.mode.is_multiplexed();
    let mut zygote =
        Zygote { socket, children: Vec::new(), shared_boot, adopted, learner, memories, profile: None, serial };
    let code = loop {
        match zygote.step() {
            Ok(Next::Continue) => {}
            Ok(Next::End) => break ExitCode::SUCCESS,
            // The server is gone.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                break ExitCode::SUCCESS;
            }
            Err(error) => {
                eprintln!("howdah-php: {error}");
                break ExitCode::FAILURE;
            }
        }
    };
    for child in &zygote.children {
        let _ = pidfd_send_signal(&child.pidfd, Signal::KILL);
    }
    for child in &zygote.children {
        let _ = waitpid(Some(child.pid), WaitOptions::empty());
    }
    if let Some(learner) = &zygote.learner {
        learner.end();
    }
    adopted_children::end_all();
    php::shutdown();
    code
}

/// Takes over the control socket from standard input, which becomes empty for scripts.
fn take_socket() -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    rustix::net::sockopt::socket_type(&stdin)?;
    let socket = rustix::io::fcntl_dupfd_cloexec(&stdin, 3)?;
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok(socket)
}

fn boot(spec: &BootSpec, warm_up: Vec<WarmUpRequest>) -> Result<Option<Learner>, String> {
    if spec.wire_version != WIRE_VERSION {
        return Err(format!(
            "howdah speaks wire version {}, this howdah-php {WIRE_VERSION}: install both from one build",
            spec.wire_version
        ));
    }
    let mode = spec.worker.mode.word();
    if !capabilities::modes().contains(&mode) {
        return Err(format!("this howdah-php was built without {mode} mode"));
    }
    let (targets, requests): (Vec<_>, Vec<_>) = warm_up.into_iter().map(|one| (one.target, one.words)).unzip();
    warmup_report::targets(targets);
    php::start(spec, requests)?;
    if spec.worker.mode == Mode::Async {
        library::compile_once();
    }
    sandbox::prepare(spec)
}

fn receive(socket: &OwnedFd) -> io::Result<Option<(ToZygote, Vec<OwnedFd>)>> {
    let Some((bytes, fds)) = control_socket::receive(socket, false)? else { return Ok(None) };
    Ok(Some((serde_json::from_slice(&bytes)?, fds)))
}

fn send(socket: &OwnedFd, message: &FromZygote, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    control_socket::send(socket, &serde_json::to_vec(message)?, fds, false)
}

impl Zygote {
    /// Waits for an order, a worker's end, or a message from a worker or the template, and handles it.
    fn step(&mut self) -> io::Result<Next> {
        let (orders, ended) = self.wait()?;
        // Handle a process's messages before its end.
        self.receive()?;
        while let Some(needs) = self.learner.as_ref().map_or(Ok(None), Learner::receive)? {
            send(&self.socket, &FromZygote::Learnt { needs }, &[])?;
        }
        for index in ended.into_iter().rev() {
            self.reap_child(index)?;
        }
        self.take_memories();
        self.profile()?;
        self.adopted.reap(|pid| self.children.iter().any(|child| child.pid == pid));
        if !orders {
            return Ok(Next::Continue);
        }
        match receive(&self.socket)? {
            Some((ToZygote::Fork { worker }, fds)) => self.place(Order { worker, fds })?,
            Some((ToZygote::DropTemplate, _)) => self.drop_template()?,
            Some((ToZygote::Stacks { order, pid, request }, _)) => {
                let found = self.stacks(pid, request);
                send(&self.socket, &FromZygote::Stacks { order, found }, &[])?;
            }
            Some((ToZygote::Measure, _)) => {
                let sizes = self.sizes();
                send(&self.socket, &FromZygote::Sizes { sizes }, &[])?;
            }
            Some((ToZygote::Profile { order, rate, milliseconds }, _)) => {
                self.profile = Profile::new(order, rate, milliseconds);
            }
            Some((ToZygote::WarmUp(_) | ToZygote::Boot(_), _)) => {
                return Err(io::Error::other("unexpected boot order: PHP has already started"));
            }
            None => return Ok(Next::End),
        }
        Ok(Next::Continue)
    }

    /// Assigns memory descriptors to the workers that have sent them. Others, such as those of a script's child, are
    /// ignored.
    fn take_memories(&mut self) {
        let Some(memories) = self.memories.as_mut() else { return };
        memories.receive();
        for child in self.children.iter_mut().filter(|child| child.memory.is_none() || child.size.is_none()) {
            let pid = child.pid.as_raw_nonzero().get();
            child.memory = child.memory.take().or_else(|| memories.claim(pid, MemoryFile::Content));
            child.size = child.size.take().or_else(|| memories.claim(pid, MemoryFile::Size));
        }
    }

    /// Memory of each worker, and of the template, which belongs to the pool.
    fn sizes(&self) -> Vec<(u32, u64)> {
        let size = |child: &Child| Some((child.pid.as_raw_nonzero().get() as u32, memory::size(child.size.as_ref()?)?));
        self.children.iter().filter_map(size).collect()
    }

    /// Reads the stacks of a worker's request.
    fn stacks(&self, pid: u32, request: u64) -> Result<RequestStacks, String> {
        let is_it = |child: &&Child| child.pid.as_raw_nonzero().get() as u32 == pid;
        let child = self.children.iter().find(is_it).ok_or("the worker has ended")?;
        let memory = child.memory.as_ref().ok_or("the zygote has no access to the worker's memory (/proc/self/mem)")?;
        stacks::of_request(pid as i32, memory, request, self.serial)
    }

    /// Continues a profile, if one is running.
    fn profile(&mut self) -> io::Result<()> {
        let Some(profile) = self.profile.as_mut() else { return Ok(()) };
        let template = self.shared_boot.template();
        let workers = self.children.iter().filter(|child| Some(child.pid) != template);
        let mut messages = profile.step(workers.map(|child| (child.pid.as_raw_nonzero().get(), child.memory.as_ref())));
        if profile.is_over() {
            messages.push(profile.last());
            self.profile = None;
        }
        messages.iter().try_for_each(|message| send(&self.socket, message, &[]))
    }

    /// Handles all messages from the booting worker or the template.
    fn receive(&mut self) -> io::Result<()> {
        while let Some(message) = self.shared_boot.receive() {
            self.pass_on(&message)?;
            if let Some(snapshot) = self.shared_boot.take_snapshot() {
                zygote_memory::share(&snapshot);
            }
            for order in self.shared_boot.released() {
                self.place(order)?;
            }
        }
        Ok(())
    }

    /// Ends the template after its current fork, if any. Its other orders are executed elsewhere.
    fn drop_template(&mut self) -> io::Result<()> {
        let Some(pid) = self.shared_boot.template() else { return Ok(()) };
        let Some(index) = self.children.iter().position(|child| child.pid == pid) else { return Ok(()) };
        self.shared_boot.dismiss();
        loop {
            let mut waited = vec![PollFd::new(&self.children[index].pidfd, PollFlags::IN)];
            waited.extend(self.shared_boot.socket().map(|socket| PollFd::new(socket, PollFlags::IN)));
            match poll(&mut waited, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let ended = !waited[0].revents().is_empty();
            // Children added by this are appended.
            self.receive()?;
            if ended {
                return self.reap_child(index);
            }
        }
    }

    /// Waits; returns whether an order is waiting, and the indices of ended children.
    fn wait(&self) -> io::Result<(bool, Vec<usize>)> {
        let mut waited = vec![PollFd::new(&self.socket, PollFlags::IN)];
        waited.extend(self.children.iter().map(|c| PollFd::new(&c.pidfd, PollFlags::IN)));
        waited.extend(self.shared_boot.socket().map(|socket| PollFd::new(socket, PollFlags::IN)));
        waited.extend(self.learner.as_ref().map(|learner| PollFd::new(learner.socket(), PollFlags::IN)));
        waited.push(PollFd::new(self.adopted.signals(), PollFlags::IN));
        waited
            .extend(self.memories.as_ref().map(|memories| PollFd::from_borrowed_fd(memories.socket(), PollFlags::IN)));
        let limits = [self.adopted.recheck_after(), self.profile.as_ref().map(Profile::due_in)];
        let limit = limits.into_iter().flatten().min().and_then(|limit| Timespec::try_from(limit).ok());
        match poll(&mut waited, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ended = (0..self.children.len()).filter(|&i| !waited[i + 1].revents().is_empty()).collect();
        Ok((!waited[0].revents().is_empty(), ended))
    }

    /// Reaps a child and reports it.
    fn reap_child(&mut self, index: usize) -> io::Result<()> {
        let child = self.children.swap_remove(index);
        let Reaped { status, signal, processor_time } = reap(child.pid)?;
        let message = FromZygote::Exited {
            pid: child.pid.as_raw_nonzero().get() as u32,
            status,
            signal,
            processor_us: processor_time.as_micros() as u64,
        };
        send(&self.socket, &message, &[])?;
        if self.shared_boot.template() == Some(child.pid) {
            // Otherwise the dead template's snapshot would stay in memory together with that of the next one.
            zygote_memory::take_back();
        }
        for order in self.shared_boot.ended(child.pid) {
            self.place(order)?;
        }
        Ok(())
    }

    /// Forwards a message from a worker or the template about processes that are children of the zygote.
    fn pass_on(&mut self, message: &FromZygote) -> io::Result<()> {
        if let FromZygote::WarmUp { refused: true, .. } = message {
            php::refuse_warmup();
        }
        if let FromZygote::Template { pid, .. } | FromZygote::Forked { pid, .. } = message {
            self.adopt(*pid as i32)?;
        }
        let pidfd = match message {
            FromZygote::Forked { .. } => self.children.last().map(|c| c.pidfd.as_fd()),
            _ => None,
        };
        send(&self.socket, message, pidfd.as_slice())
    }

    fn adopt(&mut self, pid: i32) -> io::Result<Pid> {
        let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork returned no process"))?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        self.children.push(Child { pid, pidfd, memory: None, size: None });
        Ok(pid)
    }

    /// Executes an order for a worker, here or elsewhere.
    fn place(&mut self, order: Order) -> io::Result<()> {
        let worker = order.worker;
        let forked = match self.shared_boot.place(order) {
            Ok(Origin::Elsewhere) => return Ok(()),
            Ok(Origin::Zygote(order)) => self.fork(order, None),
            Ok(Origin::Booter(order, ours, theirs)) => self.fork(order, Some((ours, theirs))),
            Err(error) => Err(error),
        };
        match forked {
            Ok(message) => self.pass_on(&message),
            Err(error) => send(&self.socket, &FromZygote::ForkFailed { worker, error: error.to_string() }, &[]),
        }
    }

    /// Forks a worker; `offers`: both ends of the socket on which it reports whether others can be forked from it.
    #[expect(clippy::disallowed_methods, reason = "the zygote has one thread")]
    fn fork(&mut self, order: Order, offers: Option<(OwnedFd, OwnedFd)>) -> io::Result<FromZygote> {
        let Order { worker, fds } = order;
        let fds =
            worker_lane::Descriptors::new(fds).ok_or_else(|| io::Error::other("a fork order lacks its descriptors"))?;
        let (ours, theirs) = offers.unzip();
        let parent = rustix::process::getpid();
        // SAFETY: this process has one thread, so the child is a complete copy and may go on running ordinary code.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // The child drops everything that belongs to the zygote.
                self.children.clear();
                self.learner = None;
                self.memories = None;
                self.profile = None;
                self.shared_boot = SharedBoot::default();
                drop(ours);
                // SAFETY: closes the child's copy of a descriptor that the child never uses again: `run` below does not
                // return, so the owner is not dropped in this process.
                unsafe { libc::close(std::os::fd::AsRawFd::as_raw_fd(&self.socket)) };
                self.adopted.close_copy();
                adopted_children::forked();
                worker::run(worker, parent, fds, theirs)
            }
            pid => {
                if let (Some(ours), Some(pid)) = (ours, Pid::from_raw(pid)) {
                    self.shared_boot.boots(pid, ours);
                }
                Ok(FromZygote::Forked { worker, pid: pid as u32 })
            }
        }
    }
}
