//! Commands to Redis over one connection, which is reopened when it breaks. Logs open their own. Every command has a
//! time limit.

use crate::address::Address;
use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, RedisError};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

pub(crate) use ::redis::{Value, cmd};

/// Default time limit of a command with all its steps: name resolution, connecting, encryption, authentication.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after a failed connection or a command without a reply in which all commands fail at once, so that they do not
/// wait one after the other.
const PAUSE: Duration = Duration::from_secs(2);

/// A client of one Redis.
pub(crate) struct Redis {
    address: Address,
    tls: Option<Arc<ClientConfig>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    link: Option<Arc<Link>>,
    /// Time before which no attempt is made, and the reason.
    paused: Option<(Instant, String)>,
}

/// An authenticated connection. Dropping it ends its task.
pub(crate) struct Link {
    connection: MultiplexedConnection,
    driver: AbortHandle,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The reason why a command failed.
enum Failure {
    /// Redis refused the command. Another connection would change nothing.
    Refused(String),
    Broken(io::Error),
    TooSlow,
}

impl Redis {
    pub(crate) fn new(address: Address, tls: Option<Arc<ClientConfig>>) -> Self {
        Self { address, tls, state: Mutex::default() }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Runs a command within this time. It may be sent twice if the connection breaks meanwhile.
    pub(crate) async fn run(&self, command: &Cmd, limit: Duration) -> io::Result<Value> {
        let mut began = None;
        let failure = match timeout(limit, self.try_twice(command, &mut began)).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(failure)) => failure,
            Err(_) => Failure::TooSlow,
        };
        let why = match &failure {
            Failure::Refused(why) => return Err(self.error(ErrorKind::Other, &format!("command refused: {why}"))),
            Failure::Broken(why) => why.to_string(),
            Failure::TooSlow => format!("did not respond within {limit:?}"),
        };
        let mut state = self.state.lock().await;
        // Another command may have reconnected in the meantime.
        let is_same = match (&state.link, &began) {
            (Some(link), Some(began)) => Arc::ptr_eq(link, began),
            (None, _) => true,
            (Some(_), None) => false,
        };
        if is_same {
            state.link = None;
            state.paused.get_or_insert_with(|| (Instant::now() + PAUSE, why.clone()));
        }
        Err(self.error(ErrorKind::TimedOut, &why))
    }

    /// Creates an error that names the Redis server.
    fn error(&self, kind: ErrorKind, why: &str) -> io::Error {
        io::Error::new(kind, format!("{}: {why}", self.address))
    }

    async fn try_twice(&self, command: &Cmd, used: &mut Option<Arc<Link>>) -> Result<Value, Failure> {
        let (link, is_new) = self.link(None).await?;
        *used = Some(link.clone());
        match link.exchange(command).await {
            Err(Failure::Broken(_)) if !is_new => {
                let (link, _) = self.link(Some(&link)).await?;
                *used = Some(link.clone());
                link.exchange(command).await
            }
            result => result,
        }
    }

    /// Returns the connection, and `true` if it was opened now. `broken` is not reused.
    async fn link(&self, broken: Option<&Arc<Link>>) -> Result<(Arc<Link>, bool), Failure> {
        let mut state = self.state.lock().await;
        if let Some(link) = &state.link
            && broken.is_none_or(|broken| !Arc::ptr_eq(link, broken))
        {
            return Ok((link.clone(), false));
        }
        state.link = None;
        if let Some((until, why)) = &state.paused
            && Instant::now() < *until
        {
            return Err(Failure::Broken(io::Error::other(why.clone())));
        }
        state.paused = None;
        match self.open().await {
            Ok(link) => Ok((state.link.insert(Arc::new(link)).clone(), true)),
            Err(why) => {
                state.paused = Some((Instant::now() + PAUSE, why.to_string()));
                Err(Failure::Broken(why))
            }
        }
    }

    /// Opens a connection. The caller sets the time limit.
    pub(crate) async fn open(&self) -> io::Result<Link> {
        let stream = TcpStream::connect((self.address.host.as_str(), self.address.port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return self.greet(stream).await };
        let name = ServerName::try_from(self.address.host.clone()).map_err(io::Error::other)?;
        self.greet(TlsConnector::from(tls.clone()).connect(name, stream).await?).await
    }

    async fn greet<S>(&self, stream: S) -> io::Result<Link>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // Restricted users may only send the commands that are needed.
        let mut info = RedisConnectionInfo::default().set_db(self.address.database.into()).set_skip_set_lib_name();
        if let Some(password) = &self.address.password {
            info = info.set_password(password);
        }
        if let Some(user) = &self.address.user {
            info = info.set_username(user);
        }
        // The callers set time limits.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let opened = MultiplexedConnection::new_with_config(&info, stream, config).await;
        let (connection, driver) = opened.map_err(|why| io::Error::other(describe(&why)))?;
        Ok(Link { connection, driver: tokio::spawn(driver).abort_handle() })
    }
}

impl Link {
    async fn exchange(&self, command: &Cmd) -> Result<Value, Failure> {
        self.run(command).await.map_err(|why| match why.kind() {
            ::redis::ErrorKind::Server(_) | ::redis::ErrorKind::Extension => Failure::Refused(describe(&why)),
            _ => Failure::Broken(io::Error::other(describe(&why))),
        })
    }

    /// Runs a command on this connection. The caller sets the time limit.
    pub(crate) async fn run(&self, command: &Cmd) -> Result<Value, RedisError> {
        match self.connection.clone().send_packed_command(command).await? {
            Value::ServerError(why) => Err(why.into()),
            value => Ok(value),
        }
    }
}

impl Link {
    /// Runs several commands in one batch and returns the first error; the commands after it run all the same. The
    /// caller sets the time limit.
    pub(crate) async fn run_all(&self, commands: &Pipeline) -> io::Result<()> {
        let count = commands.len();
        let replies = self.connection.clone().send_packed_commands(commands, 0, count).await;
        for reply in replies.map_err(|why| io::Error::other(describe(&why)))? {
            if let Value::ServerError(why) = reply {
                return Err(io::Error::other(format!("command refused: {}", describe(&why.into()))));
            }
        }
        Ok(())
    }
}

/// The message of Redis, without the library's additions.
fn describe(why: &RedisError) -> String {
    match (why.code(), why.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn replies_that_are_not_redis_are_errors() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let replies: [&[u8]; 4] = [b"HTTP/1.1 400\r\n", b"$4\r\nab", b"", b"-NOAUTH first\r\n"];
        let server = std::thread::spawn(move || {
            for reply in replies {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 100]).unwrap();
                stream.write_all(reply).unwrap();
            }
        });
        let address = Address::parse(&format!("redis://127.0.0.1:{port}")).unwrap();
        runtime().block_on(async {
            for _ in replies {
                let error =
                    Redis::new(address.clone(), None).run(cmd("GET").arg("a"), COMMAND_TIMEOUT).await.unwrap_err();
                assert!(error.to_string().contains("Redis 127.0.0.1"), "{error}");
            }
        });
        server.join().unwrap();
    }

    /// A failure must be reported soon, however slowly data arrives.
    #[test]
    fn a_reply_that_never_ends_fails() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("redis://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"+").unwrap();
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        let redis = Redis::new(Address::parse(&address).unwrap(), None);
        runtime().block_on(async {
            for _ in 0..2 {
                let error = redis.run(cmd("GET").arg("a"), COMMAND_TIMEOUT).await.unwrap_err();
                assert!(error.to_string().contains("did not respond within"), "{error}");
            }
        });
        server.join().unwrap();
    }
}
