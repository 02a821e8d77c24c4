//! Sends entries to journald in its native protocol: each is a datagram with fields or, if that is too long, a sealed
//! memory file.

use crate::record::Record;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// journald's socket.
#[derive(Debug)]
pub(crate) struct Journald {
    path: PathBuf,
    socket: UnixDatagram,
    name: &'static str,
    /// Buffer for the serialized entry.
    entry: Vec<u8>,
}

impl Journald {
    pub(super) fn open(path: &Path, name: &'static str) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), socket: connected(path)?, name, entry: Vec::new() })
    }

    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.socket = connected(&self.path)?;
        Ok(())
    }

    pub(super) fn send(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.entry.clear();
        for (name, value) in [("PRIORITY", record.priority.to_string()), ("SYSLOG_IDENTIFIER", self.name.to_owned())] {
            field(&mut self.entry, name, &value);
        }
        field(&mut self.entry, "MESSAGE", &record.message());
        field(&mut self.entry, "HOWDAH_TARGET", record.about);
        for (name, value) in record.fields() {
            field(&mut self.entry, name, &value);
        }
        match self.send_entry() {
            // journald was restarted, and has a new socket.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionRefused | ErrorKind::NotConnected | ErrorKind::BrokenPipe
                ) =>
            {
                self.reopen()?;
                self.send_entry()
            }
            sent => sent,
        }
    }

    fn send_entry(&self) -> io::Result<()> {
        match self.socket.send(&self.entry) {
            Err(error) if is_too_long(&error) => self.send_as_file(),
            sent => sent.map(drop),
        }
    }

    fn send_as_file(&self) -> io::Result<()> {
        let memory = memfd_create(c"howdah-log", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let mut file = File::from(memory);
        file.write_all(&self.entry)?;
        // journald refuses a file that can still change.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
        let descriptors = [file.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(&self.socket, &[IoSlice::new(&[])], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

fn connected(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    Ok(socket)
}

fn is_too_long(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(code, Some(rustix::io::Errno::MSGSIZE | rustix::io::Errno::NOBUFS))
}

/// Appends `NAME=value` or, if the value contains a line end, the name followed by the value's length and the value.
fn field(entry: &mut Vec<u8>, name: &str, value: &str) {
    entry.extend_from_slice(name.as_bytes());
    if value.contains('\n') {
        entry.push(b'\n');
        entry.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        entry.push(b'=');
    }
    entry.extend_from_slice(value.as_bytes());
    entry.push(b'\n');
}
