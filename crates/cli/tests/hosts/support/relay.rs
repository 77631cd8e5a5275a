//! A stretch of network between a client and a server, which can be slow and can fail.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use super::Network;

/// Between two looks for a connection.
const LOOK: Duration = Duration::from_millis(10);

/// What is on its way at most, for each direction of a connection.
const CHUNK_BYTES: usize = 64 * 1024;
const CHUNKS: usize = 256;

/// Listens on 127.0.0.1 of a network, and connects from this machine's own.
pub(crate) struct Relay {
    address: SocketAddr,
    line: Arc<Line>,
    acceptor: Option<JoinHandle<()>>,
}

impl Relay {
    /// Between this machine and itself.
    pub(crate) fn to(upstream: SocketAddr) -> Self {
        Self::listening(listen().unwrap(), upstream)
    }

    /// From within another network.
    pub(crate) fn from_within(network: &Network, upstream: SocketAddr) -> Self {
        Self::listening(network.within(listen).unwrap(), upstream)
    }

    fn listening(listener: TcpListener, upstream: SocketAddr) -> Self {
        let address = listener.local_addr().unwrap();
        let line = Arc::new(Line::default());
        let acceptor = {
            let line = Arc::clone(&line);
            thread::spawn(move || accept(&listener, upstream, &line))
        };
        Self { address, line, acceptor: Some(acceptor) }
    }

    /// Where it listens, in the client's network.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it takes to come through, in each direction. For what comes from now on.
    pub(crate) fn delay(self, each_direction: Duration) -> Self {
        self.line.set(|conduct| conduct.delay = each_direction);
        self
    }

    /// Breaks what is connected; who connects again comes through.
    pub(crate) fn break_connections(&self) {
        self.line.set(Conduct::break_all);
    }

    /// Nothing comes through, and nobody is told. Connections stay, new ones too.
    pub(crate) fn stall(&self) {
        self.line.set(|conduct| conduct.stalled = true);
    }

    /// Breaks what is connected; new connections are closed at once.
    pub(crate) fn cut_off(&self) {
        self.line.set(|conduct| {
            conduct.cut_off = true;
            conduct.break_all();
        });
    }

    /// Ends `stall` and `cut_off`. What was held up then comes through.
    pub(crate) fn come_back(&self) {
        self.line.set(|conduct| {
            conduct.stalled = false;
            conduct.cut_off = false;
        });
    }

    /// How many connections have come through so far.
    pub(crate) fn connections_ever(&self) -> usize {
        self.line.conduct().connections_ever
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.line.set(|conduct| {
            conduct.ended = true;
            conduct.break_all();
        });
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// What all threads of a relay look at.
#[derive(Default)]
struct Line {
    conduct: Mutex<Conduct>,
    changed: Condvar,
}

#[derive(Default)]
struct Conduct {
    delay: Duration,
    stalled: bool,
    cut_off: bool,
    ended: bool,
    /// A connection of an earlier age is broken.
    age: usize,
    connections_ever: usize,
    /// Both ends of every connection of this age.
    sockets: Vec<TcpStream>,
}

impl Conduct {
    fn refuses(&self) -> bool {
        self.cut_off || self.ended
    }

    fn break_all(&mut self) {
        self.age += 1;
        for socket in self.sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Line {
    fn conduct(&self) -> MutexGuard<'_, Conduct> {
        self.conduct.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn set(&self, change: impl FnOnce(&mut Conduct)) {
        change(&mut self.conduct());
        self.changed.notify_all();
    }

    /// Waits while nothing comes through. Whether the connection still stands then.
    fn passes(&self, age: usize) -> bool {
        let held_up = |conduct: &mut Conduct| conduct.stalled && conduct.age == age;
        let conduct = self.changed.wait_while(self.conduct(), held_up);
        conduct.is_ok_and(|conduct| conduct.age == age)
    }
}

fn listen() -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // Only so can the relay end, from whatever network.
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn accept(listener: &TcpListener, upstream: SocketAddr, line: &Arc<Line>) {
    let mut pumps = Vec::new();
    while !line.conduct().ended {
        match listener.accept() {
            Ok((client, _)) => pumps.extend(connect(client, upstream, line).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(LOOK),
            Err(error) => panic!("accept: {error}"),
        }
    }
    for pump in pumps {
        let _ = pump.join();
    }
}

/// Four threads: one reads and one writes, in each direction.
fn connect(
    client: TcpStream,
    upstream: SocketAddr,
    line: &Arc<Line>,
) -> io::Result<Vec<JoinHandle<()>>> {
    if line.conduct().refuses() {
        return Ok(Vec::new());
    }
    client.set_nonblocking(false)?;
    let server = TcpStream::connect(upstream)?;
    for socket in [&client, &server] {
        socket.set_nodelay(true)?;
    }
    let both = [client.try_clone()?, server.try_clone()?];
    let age = {
        let mut conduct = line.conduct();
        // It may have been cut off meanwhile, and then nobody would break this one.
        if conduct.refuses() {
            return Ok(Vec::new());
        }
        conduct.connections_ever += 1;
        conduct.sockets.extend(both);
        conduct.age
    };
    let mut pumps = Vec::new();
    for (from, to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        let (sender, receiver) = sync_channel(CHUNKS);
        let reading = Arc::clone(line);
        let writing = Arc::clone(line);
        pumps.push(thread::spawn(move || read(from, &sender, &reading)));
        pumps.push(thread::spawn(move || write(to, &receiver, &writing, age)));
    }
    Ok(pumps)
}

/// Bytes, and when they are due at the other end.
type Chunk = (Instant, Vec<u8>);

/// Until the sender is done, or the connection is broken; then the channel ends too.
fn read(mut from: TcpStream, sender: &SyncSender<Chunk>, line: &Line) {
    let mut buffer = vec![0; CHUNK_BYTES];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let due = Instant::now() + line.conduct().delay;
        if sender.send((due, buffer[..length].to_vec())).is_err() {
            return;
        }
    }
    // The end of a stream takes as long as its bytes.
    let due = Instant::now() + line.conduct().delay;
    let _ = sender.send((due, Vec::new()));
}

fn write(mut to: TcpStream, receiver: &Receiver<Chunk>, line: &Line, age: usize) {
    for (due, bytes) in receiver {
        sleep(due.saturating_duration_since(Instant::now()));
        if !line.passes(age) || to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
