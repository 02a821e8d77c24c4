//! A Redis in which servers share what they have: just the commands that takes, over one connection that is opened again when
//! it breaks. Blocking, with a limit on everything; callers are on threads that may wait.

use crate::client;
use parking_lot::Mutex;
use rustls::{ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time limit of a command with all its steps: the connection, its encryption, the password. Only the system's name
/// resolution has separate limits.
const PATIENCE: Duration = Duration::from_secs(5);
/// After a Redis could not be reached, all commands fail at once for that time: who waits for the connection must not wait
/// once for each one before.
const PAUSE: Duration = Duration::from_secs(2);
/// A certificate with its chain and key has some kilobytes; what is far larger is not ours.
const LONGEST: usize = 1 << 20;
/// A line of the protocol that is not a value.
const LONGEST_LINE: u64 = 8192;

/// Where a Redis is, and who comes: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, with `rediss` over TLS.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisAddress {
    tls: bool,
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<String>,
    database: u32,
    /// Further authorities that may vouch for it, in PEM.
    ca_file: Option<PathBuf>,
}

impl RedisAddress {
    /// Reads an address. What it says of a wrong one holds no password.
    ///
    /// # Errors
    /// It is not one.
    pub fn parse(text: &str, ca_file: Option<PathBuf>) -> Result<Self, &'static str> {
        const SHAPE: &str = "no address such as \"redis://:password@10.0.0.5:6379/0\" (\"rediss://\" for TLS)";
        let (tls, rest) = match (text.strip_prefix("redis://"), text.strip_prefix("rediss://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(SHAPE),
        };
        let (who, place) = rest.rsplit_once('@').map_or((None, rest), |(who, place)| (Some(who), place));
        let (place, database) = place.split_once('/').map_or((place, ""), |(place, database)| (place, database));
        let database = if database.is_empty() { 0 } else { database.parse().map_err(|_| SHAPE)? };
        // The colons of an IPv6 address are in brackets.
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| SHAPE)?),
            _ => (place, 6379),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() || host.contains(['?', '#', ' ']) {
            return Err(SHAPE);
        }
        let text = |part: &str| {
            let plain = percent(part).filter(|plain| !plain.is_empty());
            plain.ok_or(SHAPE)
        };
        let (user, password) = match who.map(|who| who.split_once(':')) {
            None => (None, None),
            Some(None) => return Err(SHAPE),
            Some(Some(("", password))) => (None, Some(text(password)?)),
            Some(Some((user, password))) => (Some(text(user)?), Some(text(password)?)),
        };
        Ok(Self { tls, host, port, user, password, database, ca_file })
    }
}

impl std::fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisAddress").field("host", &self.host).field("port", &self.port).finish_non_exhaustive()
    }
}

/// A text in which `%` and two digits stand for a byte.
fn percent(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let plain = match byte {
            b'%' => u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?,
            other => other,
        };
        bytes.push(plain);
    }
    String::from_utf8(bytes).ok()
}

/// Redis' reply to a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value {
    Nothing,
    Number(i64),
    /// A value, or a word such as `OK`.
    Bytes(Vec<u8>),
}

/// A connection to Redis.
#[derive(Debug)]
pub(super) struct Redis {
    address: RedisAddress,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    connection: Option<Connection>,
    /// Until when it is not tried again, and why.
    paused: Option<(Instant, String)>,
}

impl Redis {
    pub(super) fn new(address: RedisAddress) -> Self {
        Self { address, state: Mutex::default() }
    }

    /// For people: without the password.
    pub(super) fn place(&self) -> String {
        format!("Redis {}:{}", self.address.host, self.address.port)
    }

    /// Has a command done. Once more over a new connection if the one that was there had broken: every command that is sent
    /// may be sent twice.
    pub(super) fn run(&self, words: &[&[u8]]) -> io::Result<Value> {
        let mut state = self.state.lock();
        if let Some((until, why)) = &state.paused
            && Instant::now() < *until
        {
            return Err(io::Error::other(why.clone()));
        }
        state.paused = None;
        let said = self.exchange(&mut state.connection, words);
        match said {
            // A refusal of Redis would be repeated over another connection.
            Ok(said) => said.map_err(|why| io::Error::other(format!("{}: it refuses: {why}", self.place()))),
            Err(error) => {
                let why = format!("{}: {error}", self.place());
                state.paused = Some((Instant::now() + PAUSE, why.clone()));
                Err(io::Error::new(error.kind(), why))
            }
        }
    }

    fn exchange(&self, kept: &mut Option<Connection>, words: &[&[u8]]) -> io::Result<Result<Value, String>> {
        if let Some(mut connection) = kept.take() {
            match connection.exchange(words) {
                Ok(said) => {
                    *kept = Some(connection);
                    return Ok(said);
                }
                // Too slow now is too slow again.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Err(error),
                Err(_) => {}
            }
        }
        let mut connection = Connection::open(&self.address)?;
        let said = connection.exchange(words)?;
        *kept = Some(connection);
        Ok(said)
    }
}

/// A connection that has said who it is.
struct Connection(BufReader<Stream>);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

/// A socket whose reads and writes end by a moment, all together.
struct Bounded {
    socket: TcpStream,
    until: Instant,
}

impl Bounded {
    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(too_slow()) } else { Ok(left) }
    }
}

/// The kernel reports a socket's timeout as "try again".
fn too_slow() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, format!("it did not respond within {} s", PATIENCE.as_secs()))
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.left()?))?;
        let read = self.socket.read(buffer);
        read.map_err(|error| if error.kind() == ErrorKind::WouldBlock { too_slow() } else { error })
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.left()?))?;
        let written = self.socket.write(bytes);
        written.map_err(|error| if error.kind() == ErrorKind::WouldBlock { too_slow() } else { error })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Stream {
    Plain(Bounded),
    Tls(Box<StreamOwned<ClientConnection, Bounded>>),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Stream {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    fn end_by(&mut self, until: Instant) {
        match self {
            Self::Plain(stream) => stream.until = until,
            Self::Tls(stream) => stream.sock.until = until,
        }
    }
}

impl Connection {
    fn open(address: &RedisAddress) -> io::Result<Self> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the name leads nowhere");
        let mut socket = None;
        let found = (address.host.as_str(), address.port).to_socket_addrs()?;
        let until = Instant::now() + PATIENCE;
        for found in found.take(4) {
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            match TcpStream::connect_timeout(&found, left) {
                Ok(connected) => {
                    socket = Some(connected);
                    break;
                }
                Err(error) => last = error,
            }
        }
        let socket = socket.ok_or(last)?;
        socket.set_nodelay(true)?;
        let socket = Bounded { socket, until };
        let stream =
            if address.tls { Stream::Tls(Box::new(encrypted(address, socket)?)) } else { Stream::Plain(socket) };
        let mut connection = Self(BufReader::new(stream));
        let refused = |why| io::Error::new(ErrorKind::PermissionDenied, format!("it refuses: {why}"));
        if let Some(password) = &address.password {
            let user = address.user.as_ref().map(String::as_bytes);
            let words: Vec<&[u8]> =
                [Some(&b"AUTH"[..]), user, Some(password.as_bytes())].into_iter().flatten().collect();
            connection.exchange(&words)?.map_err(refused)?;
        }
        if address.database != 0 {
            connection.exchange(&[b"SELECT", address.database.to_string().as_bytes()])?.map_err(refused)?;
        }
        Ok(connection)
    }

    /// The outer error is the connection's, the inner one what Redis says.
    fn exchange(&mut self, words: &[&[u8]]) -> io::Result<Result<Value, String>> {
        let mut command = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            command.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            command.extend_from_slice(word);
            command.extend_from_slice(b"\r\n");
        }
        self.0.get_mut().end_by(Instant::now() + PATIENCE);
        self.0.get_mut().send(&command)?;
        let line = self.line()?;
        let wrong = || io::Error::new(ErrorKind::InvalidData, "it does not speak as Redis does");
        let (kind, rest) = line.split_at_checked(1).ok_or_else(wrong)?;
        match kind {
            "+" => Ok(Ok(Value::Bytes(rest.as_bytes().to_vec()))),
            "-" => Ok(Err(rest.to_owned())),
            ":" => Ok(Ok(Value::Number(rest.parse().map_err(|_| wrong())?))),
            "$" if rest == "-1" => Ok(Ok(Value::Nothing)),
            "$" => {
                let length = rest.parse().ok().filter(|length| *length <= LONGEST).ok_or_else(wrong)?;
                let mut value = vec![0; length + 2];
                self.0.read_exact(&mut value)?;
                value.truncate(length);
                Ok(Ok(Value::Bytes(value)))
            }
            _ => Err(wrong()),
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        (&mut self.0).take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        let line = line.strip_suffix(b"\r\n").ok_or(ErrorKind::UnexpectedEof)?;
        Ok(String::from_utf8_lossy(line).into_owned())
    }
}

fn encrypted(address: &RedisAddress, stream: Bounded) -> io::Result<StreamOwned<ClientConnection, Bounded>> {
    let config = client::config(address.ca_file.as_deref(), "acme.ca_file").map_err(io::Error::other)?;
    let name = ServerName::try_from(address.host.clone()).map_err(io::Error::other)?;
    let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(session, stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let parsed = |text| RedisAddress::parse(text, None).unwrap();
        let plain = parsed("redis://cache.internal");
        assert_eq!((plain.host.as_str(), plain.port, plain.tls, plain.database), ("cache.internal", 6379, false, 0));
        let full = parsed("rediss://ann:p%40ss%2F@[::1]:7000/3");
        assert_eq!((full.host.as_str(), full.port, full.tls, full.database), ("::1", 7000, true, 3));
        assert_eq!((full.user.as_deref(), full.password.as_deref()), (Some("ann"), Some("p@ss/")));
        assert_eq!(parsed("redis://:secret@h").password.as_deref(), Some("secret"));
        for wrong in
            ["", "http://h", "redis://", "redis://h:x", "redis://h/x", "redis://ann@h", "redis://:%zz@h", "redis://:@h"]
        {
            assert!(RedisAddress::parse(wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_redis_is_an_error_and_not_believed() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers: [&[u8]; 5] = [b"HTTP/1.1 400\r\n", b"$99999999999\r\n", b"$4\r\nab", b"", b"-NOAUTH first\r\n"];
        let server = std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 100]).unwrap();
                stream.write_all(answer).unwrap();
            }
        });
        let address = RedisAddress::parse(&format!("redis://127.0.0.1:{port}"), None).unwrap();
        for _ in answers {
            let error = Redis::new(address.clone()).run(&[b"GET", b"a"]).unwrap_err();
            assert!(error.to_string().contains("Redis 127.0.0.1"), "{error}");
        }
        server.join().unwrap();
    }

    #[test]
    fn a_password_is_in_no_log() {
        let address = RedisAddress::parse("redis://ann:secret@h", None).unwrap();
        assert!(
            !format!("{address:?} {:?} {}", Redis::new(address.clone()), Redis::new(address.clone()).place())
                .contains("secret")
        );
    }

    /// A failure must be reported soon, whatever arrives slowly.
    #[test]
    fn a_redis_that_does_not_get_to_an_end_is_given_up() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("redis://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"+").unwrap();
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        let redis = Redis::new(RedisAddress::parse(&address, None).unwrap());
        for _ in 0..2 {
            let error = redis.run(&[b"GET", b"a"]).unwrap_err();
            assert!(error.to_string().contains("did not respond within"), "{error}");
        }
        server.join().unwrap();
    }
}
