//! A real nats-server, on a port that was free.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use async_nats::{Client, RequestErrorKind};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::{command, eventually, skip};

/// It starts and ends within a tenth of a second.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The folder that is shipped.
pub(crate) const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");

/// A server for as long as this lives.
pub(crate) struct Nats {
    directory: TempDir,
    server: Option<Child>,
    port: u16,
    credentials: Option<Credentials>,
}

/// What `deploy/make-lab` made for clients.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(crate) lab: PathBuf,
    pub(crate) ca: PathBuf,
}

/// The agents and coordinators of a secured laboratory.
const AGENTS: &str = "client-1,client-2,thief";
const COORDINATORS: &str = "lab,other";

impl Credentials {
    /// A file of an agent or a coordinator.
    pub(crate) fn of_member(&self, name: &str, file: &str) -> PathBuf {
        self.lab.join(name).join(file)
    }

    /// The NATS user of an agent.
    pub(crate) fn agent(&self, name: &str) -> PathBuf {
        self.of_member(name, "agent.creds")
    }

    /// The NATS user of a coordinator.
    pub(crate) fn coordinator(&self, name: &str) -> PathBuf {
        self.of_member(name, "coordinator.creds")
    }

    /// The public packet key of an agent.
    pub(crate) fn identity_of(&self, agent: &str) -> String {
        self.public_key("lab", "coordinator.toml", "agents", agent)
    }

    /// The public packet key of a coordinator.
    pub(crate) fn identity_of_coordinator(&self, name: &str) -> String {
        self.public_key("client-1", "agent.toml", "coordinators", name)
    }

    fn public_key(&self, member: &str, file: &str, table: &str, name: &str) -> String {
        let text = fs::read_to_string(self.of_member(member, file)).unwrap();
        let file: toml::Table = toml::from_str(&text).unwrap();
        file[table][name].as_str().unwrap().to_owned()
    }
}

impl Nats {
    /// Without TLS and without credentials. `None`, which has been said then: not installed.
    pub(crate) fn open() -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let configuration = "max_payload: 1MB\nhttp: \"127.0.0.1:-1\"\n";
        fs::write(directory.path().join("nats.conf"), configuration).unwrap();
        Self::first(directory, None)
    }

    /// With the configuration that is shipped: TLS, and credentials for agents and coordinators.
    /// Its certificate is for `localhost` and 127.0.0.1. `None` as above.
    pub(crate) fn secured() -> Option<Self> {
        let directory = TempDir::new().unwrap();
        fs::copy(Path::new(DEPLOY).join("nats.conf"), directory.path().join("nats.conf")).unwrap();
        let lab = directory.path().join("lab");
        let mut make = command(Path::new(DEPLOY).join("make-lab"));
        make.arg(&lab).args(["--agents", AGENTS, "--coordinators", COORDINATORS]);
        let made = make.output();
        let Ok(made) = made else {
            skip("python3 (Debian: python3)");
            return None;
        };
        assert!(made.status.success(), "make-lab: {}", String::from_utf8_lossy(&made.stderr));
        let credentials = Credentials { ca: lab.join("ca.pem"), lab };
        Self::first(directory, Some(credentials))
    }

    fn first(directory: TempDir, credentials: Option<Credentials>) -> Option<Self> {
        if command("nats-server").arg("--version").output().is_err() {
            skip("nats-server (Debian: nats-server)");
            return None;
        }
        let mut nats = Self { directory, server: None, port: free_port(), credentials };
        nats.launch();
        Some(nats)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// What clients on this machine are told; those behind a relay are told the relay's.
    pub(crate) fn url(&self) -> String {
        self.url_at(self.address())
    }

    /// The same by way of a relay.
    pub(crate) fn url_at(&self, address: SocketAddr) -> String {
        let scheme = if self.credentials.is_some() { "tls" } else { "nats" };
        format!("{scheme}://{address}")
    }

    pub(crate) fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// The process, while it runs.
    pub(crate) fn pid(&self) -> Option<Pid> {
        self.server.as_ref().map(Pid::from_child)
    }

    /// Ends it as an administrator would.
    pub(crate) fn stop(&mut self) {
        self.end(Signal::TERM);
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        self.end(Signal::KILL);
    }

    /// On the same port as before.
    pub(crate) fn start_again(&mut self) {
        assert!(self.server.is_none(), "it was stopped");
        self.launch();
    }

    /// The bytes of all messages that clients have sent so far, by the server's own account.
    pub(crate) fn bytes_sent(&self) -> u64 {
        let pid = self.pid().expect("it runs").as_raw_nonzero();
        let ports = self.directory.path().join(format!("nats-server_{pid}.ports"));
        let ports: Value = serde_json::from_slice(&fs::read(ports).unwrap()).unwrap();
        let address = ports["monitoring"][0].as_str().unwrap().trim_start_matches("http://");
        let mut monitor = TcpStream::connect(address).unwrap();
        monitor.write_all(b"GET /varz HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        monitor.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let told: Value = serde_json::from_str(body).unwrap();
        told["in_bytes"].as_u64().unwrap()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// It says in a file when it listens.
    fn launch(&mut self) {
        let directory = self.directory.path();
        let port = self.port.to_string();
        let log = File::options().create(true).append(true).open(directory.join("log")).unwrap();
        let mut server = command("nats-server");
        server.arg("-c").arg(directory.join("nats.conf")).args(["-a", "127.0.0.1", "-p", &port]);
        server.arg("--ports_file_dir").arg(directory);
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.server = Some(server.spawn().unwrap());
        let pid = self.pid().expect("just started").as_raw_nonzero();
        let ports = self.directory.path().join(format!("nats-server_{pid}.ports"));
        let listens = eventually(TIME_LIMIT, || told_url(&ports).is_some());
        assert!(listens, "nats-server listens: {}", self.log());
    }

    fn end(&mut self, signal: Signal) {
        let Some(mut server) = self.server.take() else { return };
        let _ = kill_process(Pid::from_child(&server), signal);
        if !eventually(TIME_LIMIT, || server.try_wait().is_ok_and(|status| status.is_some())) {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// A port that the system gives to nobody by itself (ip_local_port_range begins at 32768), so that it
/// stays free while the server is away.
fn free_port() -> u16 {
    const FIRST: u16 = 14_222;
    const PORTS: u16 = 16_000;
    static TRIES: AtomicU16 = AtomicU16::new(0);
    loop {
        // Tests of another process begin elsewhere.
        let from = (process::id() % u32::from(PORTS)) as u16;
        let port = FIRST + (from + TRIES.fetch_add(1, Ordering::Relaxed)) % PORTS;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `{"nats":["tls://127.0.0.1:40301"]}`, when it has been written to its end.
fn told_url(ports: &Path) -> Option<String> {
    let ports: Value = serde_json::from_slice(&fs::read(ports).ok()?).ok()?;
    ports["nats"][0].as_str().map(str::to_owned)
}

/// Whether a question of a coordinator reaches the server, which says that nobody is there to answer.
/// It takes what a client says in order, so it has then heard all that was said before;
/// [`flush`](Client::flush) is done once that is sent.
pub(crate) async fn is_heard(client: &Client) -> bool {
    let answer = client.request("tapstone.agent.0.ask", "there?".into()).await;
    answer.is_err_and(|error| error.kind() == RequestErrorKind::NoResponders)
}
