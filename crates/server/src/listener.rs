//! Listening: the server as a whole, from its first connection to its end.
use std::fmt;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use sql::Session;

use crate::registry::Registry;
use crate::{startup, watch};

/// The stack of a connection's thread. The memory is only touched when a deep statement comes.
const STACK_BYTES: usize = 16 << 20;
/// After how long without a word the system asks whether a client is still there.
const KEEPALIVE_TIME: Duration = Duration::from_secs(60);
/// How long connections may take to end at a shutdown.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(10);
/// Connections beyond the limit that may wait for being refused, or carry a cancel request.
const SPARE_CONNECTIONS: usize = 64;

/// How a server behaves.
pub struct Options {
    /// Where to listen: on this machine only.
    pub listen: SocketAddr,
    /// How many clients there may be at a time.
    pub connections_max: usize,
    /// The longest message that a client may send.
    pub message_bytes_max: usize,
    /// Time within which a client must send its startup message.
    pub startup_time: Duration,
    /// Makes the session of a connection.
    pub open: Box<dyn Fn() -> Session + Send + Sync>,
}

impl Options {
    /// The usual limits.
    pub fn new(listen: SocketAddr, open: impl Fn() -> Session + Send + Sync + 'static) -> Options {
        let (connections_max, message_bytes_max) = (250, 64 << 20);
        Options {
            listen,
            connections_max,
            message_bytes_max,
            startup_time: Duration::from_secs(10),
            open: Box::new(open),
        }
    }
}

/// Why a server did not start.
#[derive(Debug)]
pub enum StartError {
    /// The address can be reached from other machines.
    NotLoopback(SocketAddr),
    /// The address is not to be had, or no thread.
    Io(SocketAddr, std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::NotLoopback(address) => write!(
                f,
                "{address} can be reached from other machines, and there is no authentication yet: listen on 127.0.0.1 or [::1]"
            ),
            StartError::Io(address, error) => write!(f, "can't listen on {address}: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// The state that the threads of a server share.
pub(crate) struct ServerState {
    pub(crate) options: Options,
    pub(crate) registry: Registry,
}

/// A server that runs.
pub struct Server {
    address: SocketAddr,
    shared: Arc<ServerState>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts to listen.
    ///
    /// # Errors
    /// If the address is not one of this machine alone, or taken.
    pub fn start(options: Options) -> Result<Server, StartError> {
        let listen = options.listen;
        if !listen.ip().is_loopback() {
            return Err(StartError::NotLoopback(listen));
        }
        let failed = |error| StartError::Io(listen, error);
        let listener = TcpListener::bind(listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(ServerState { options, registry: Registry::new() });
        let mut server = Server { address, shared: shared.clone(), threads: Vec::new() };
        let watched = shared.clone();
        let watch = move || watch::watch(&watched.registry, watched.options.startup_time);
        server.threads.push(thread::Builder::new().name("watch".to_owned()).spawn(watch).map_err(failed)?);
        let accept = move || accept(&listener, &shared);
        server.threads.push(thread::Builder::new().name("listener".to_owned()).spawn(accept).map_err(failed)?);
        Ok(server)
    }

    /// Where it listens; tells the port if that was left to the system.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many clients are connected.
    pub fn connection_count(&self) -> usize {
        self.shared.registry.count()
    }

    /// Ends it: no more clients, statements that run are cancelled, transactions that are open are rolled back. Returns
    /// whether every connection ended in time.
    pub fn stop(self) -> bool {
        let has_ended = self.shared.registry.stop(SHUTDOWN_PATIENCE);
        // Wakes the listener, which looks whether it is to end.
        let _ = TcpStream::connect(self.address);
        for thread in self.threads {
            let _ = thread.join();
        }
        has_ended
    }
}

fn accept(listener: &TcpListener, shared: &Arc<ServerState>) {
    loop {
        let accepted = listener.accept();
        if shared.registry.is_stopping() {
            return;
        }
        match accepted {
            Ok((stream, _)) => begin(stream, shared),
            // Out of files, most likely: some will be closed.
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Starts the thread of a connection. Where that fails the client finds itself disconnected.
fn begin(stream: TcpStream, shared: &Arc<ServerState>) {
    let hard_max = shared.options.connections_max.saturating_add(SPARE_CONNECTIONS);
    if shared.registry.count() >= hard_max || prepare(&stream).is_err() {
        return;
    }
    let Ok(own) = stream.try_clone() else { return };
    let entry = shared.registry.enter(own);
    let (ours, theirs) = (shared.clone(), entry.clone());
    let run = move || {
        // Leaves whatever happens, a panic included.
        let _guard = Leave { shared: &ours, entry: &theirs };
        startup::run(stream, &ours, &theirs);
    };
    let name = format!("connection {}", entry.process);
    if thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(run).is_err() {
        shared.registry.leave(&entry);
    }
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE_TIME))
}

struct Leave<'a> {
    shared: &'a ServerState,
    entry: &'a crate::registry::Entry,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.entry.close();
        self.shared.registry.leave(self.entry);
    }
}
