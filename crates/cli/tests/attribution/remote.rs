//! An engine behind a network: a server that answers a byte with a byte, later.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::delayed_link::DelayedLink;

/// What is between the module and the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Time in each direction that the server itself waits: never full, and unseen by the kernel.
    Waits,
    /// A link that takes as long, which the kernel sees.
    Link,
    /// The same, and the engine takes no other request before its answer was acknowledged.
    AcknowledgedLink,
}

/// Serves one request at a time.
pub(crate) struct RemoteEngine {
    /// Where clients find it.
    address: SocketAddr,
    /// The same without a network.
    listener: SocketAddr,
    ended: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
    _link: Option<DelayedLink>,
}

/// How requests are served.
#[derive(Clone, Copy)]
struct Service {
    time: Duration,
    /// Before and after it.
    wait: Duration,
    until_acknowledged: bool,
}

impl RemoteEngine {
    pub(crate) fn start(service: Duration, delay: Duration, way: Way) -> Self {
        let link = (way != Way::Waits).then(|| DelayedLink::open(delay).unwrap());
        let here = link.as_ref().map_or(IpAddr::from(Ipv4Addr::LOCALHOST), |link| link.here);
        let service = Service {
            time: service,
            wait: if way == Way::Waits { delay } else { Duration::ZERO },
            until_acknowledged: way == Way::AcknowledgedLink,
        };
        let listener = TcpListener::bind((here, 0)).unwrap();
        let local = listener.local_addr().unwrap();
        let there = link.as_ref().map_or(here, |link| link.there);
        let ended = Arc::new(AtomicBool::new(false));
        let engine = Arc::new(Mutex::new(()));
        let acceptor = {
            let ended = Arc::clone(&ended);
            thread::spawn(move || {
                let mut served = Vec::new();
                for stream in listener.incoming() {
                    if ended.load(Ordering::Relaxed) {
                        break;
                    }
                    let stream = stream.unwrap();
                    let engine = Arc::clone(&engine);
                    served.push(thread::spawn(move || serve(stream, &engine, service)));
                }
                served.into_iter().for_each(|thread| thread.join().unwrap());
            })
        };
        Self {
            address: SocketAddr::new(there, local.port()),
            listener: local,
            ended,
            acceptor: Some(acceptor),
            _link: link,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for RemoteEngine {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Who waits for a connection gets one. The clients' connections ended with them.
        drop(TcpStream::connect(self.listener));
        self.acceptor.take().map(JoinHandle::join);
    }
}

fn serve(mut stream: TcpStream, engine: &Mutex<()>, service: Service) {
    stream.set_nodelay(true).unwrap();
    let mut request = [0];
    while stream.read_exact(&mut request).is_ok() {
        thread::sleep(service.wait);
        let served = engine.lock().unwrap();
        thread::sleep(service.time);
        if service.until_acknowledged {
            let answered = stream.write_all(&request);
            wait_until_acknowledged(&stream);
            drop(served);
            if answered.is_err() {
                break;
            }
            continue;
        }
        drop(served);
        thread::sleep(service.wait);
        if stream.write_all(&request).is_err() {
            break;
        }
    }
}

/// Until the other side has all that was written (tcp(7), SIOCOUTQ), or will not have it any more.
fn wait_until_acknowledged(stream: &TcpStream) {
    for _ in 0..2_000 {
        let mut waiting: libc::c_int = 0;
        // SAFETY: the request writes one `int`, which outlives the call.
        let status = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut waiting) };
        if status < 0 || waiting == 0 {
            return;
        }
        thread::sleep(Duration::from_micros(100));
    }
}
