//! An engine behind a network: a server that answers a byte with a byte, later.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Serves one request at a time. The way to it takes time in each direction and is never full, as a
/// relay's between the two would.
pub(crate) struct RemoteEngine {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl RemoteEngine {
    pub(crate) fn start(service: Duration, delay: Duration) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
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
                    served.push(thread::spawn(move || serve(stream, &engine, service, delay)));
                }
                served.into_iter().for_each(|thread| thread.join().unwrap());
            })
        };
        Self { address, ended, acceptor: Some(acceptor) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for RemoteEngine {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Who waits for a connection gets one. The clients' connections ended with them.
        drop(TcpStream::connect(self.address));
        self.acceptor.take().map(JoinHandle::join);
    }
}

fn serve(mut stream: TcpStream, engine: &Mutex<()>, service: Duration, delay: Duration) {
    stream.set_nodelay(true).unwrap();
    let mut request = [0];
    while stream.read_exact(&mut request).is_ok() {
        thread::sleep(delay);
        {
            let _served = engine.lock().unwrap();
            thread::sleep(service);
        }
        thread::sleep(delay);
        if stream.write_all(&request).is_err() {
            break;
        }
    }
}
