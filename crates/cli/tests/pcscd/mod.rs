//! pcscd with its virtual reader, and a `tapstone vcard` in it: for tests in several programs.
//!
//! There is one pcscd on a machine and one card in a reader, so these tests take turns, across
//! processes, by a lock on a file. A pcscd that runs already is used and left alone; one that is
//! started here ends here.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use tapstone_testing::Urgent;
pub(crate) use tapstone_testing::{private_environment, skip};

/// What takes so long hangs: a card makes RSA keys before it goes into the reader.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// Where Debian's pcscd and its clients meet.
const SOCKET: &str = "/run/pcscd/pcscd.comm";

/// The first virtual reader. Clients are always told which one: in another may be somebody's card.
pub(crate) const READER: &str = "Virtual PCD 00 00";

/// How Debian's vsmartcard-vpcd tells pcscd of its readers.
const READERS: &str = "/etc/reader.conf.d/vpcd";

/// pcscd for as long as this lives, and nobody else's turn.
pub(crate) struct Pcscd {
    started: Option<Child>,
    _turn: File,
    _urgent: Option<Urgent>,
}

impl Pcscd {
    /// Waits for its turn and for pcscd to answer. `None`, which has been said then: it is not
    /// installed, or this user may not start it.
    pub(crate) fn start() -> Option<Self> {
        if !Path::new(READERS).exists() {
            skip("the reader driver vpcd (Debian: vsmartcard-vpcd)");
            return None;
        }
        let turn = turn();
        if answers() {
            return Some(Self { started: None, _turn: turn, _urgent: None });
        }
        let Ok(mut pcscd) = launch() else {
            skip("pcscd (Debian: pcscd)");
            return None;
        };
        let until = Instant::now() + TIME_LIMIT;
        while !answers() {
            if pcscd.try_wait().unwrap().is_some() {
                skip("a pcscd that runs, or the right to start one");
                return None;
            }
            assert!(Instant::now() < until, "pcscd does not answer");
            sleep(PAUSE);
        }
        Some(Self { started: Some(pcscd), _turn: turn, _urgent: None })
    }

    /// As [`Self::start`], and never one that ran already.
    pub(crate) fn start_own() -> Option<Self> {
        let pcscd = Self::start()?;
        if pcscd.started.is_none() {
            skip("a machine on which no pcscd runs");
            return None;
        }
        Some(pcscd)
    }

    /// Ends one that was started here as a crash does.
    pub(crate) fn kill(&self) {
        if let Some(pcscd) = &self.started {
            kill_process(Pid::from_child(pcscd), Signal::KILL).unwrap();
        }
    }

    /// As [`Self::start`]; this pcscd, and from now on what the test does and starts, runs before
    /// whatever else the machine has to do. Not with a pcscd that ran already.
    pub(crate) fn start_urgently() -> Option<Self> {
        let urgent = Urgent::start();
        let mut pcscd = Self::start()?;
        pcscd._urgent = pcscd.started.is_some().then_some(urgent);
        Some(pcscd)
    }
}

/// A turn without pcscd: for whoever starts it differently.
pub(crate) struct NoPcscd {
    _turn: File,
}

impl NoPcscd {
    /// `None`, which has been said then: one runs, or there is none that this user may start.
    pub(crate) fn take_turn() -> Option<Self> {
        if !Path::new(READERS).exists() || !rustix::process::geteuid().is_root() {
            skip("the reader driver vpcd (Debian: vsmartcard-vpcd), or root");
            return None;
        }
        let turn = turn();
        if answers() {
            skip("a machine on which no pcscd runs");
            return None;
        }
        Some(Self { _turn: turn })
    }
}

fn turn() -> File {
    // Whoever made the file, others may lock it: that takes no right to write.
    let path = env::temp_dir().join("tapstone-pcscd.lock");
    let turn = File::open(&path).or_else(|_| File::create(&path)).unwrap();
    flock(&turn, FlockOperation::LockExclusive).unwrap();
    turn
}

impl Drop for Pcscd {
    fn drop(&mut self) {
        self.started.iter_mut().for_each(end);
    }
}

/// A card in the first virtual reader for as long as this lives.
pub(crate) struct VirtualCard {
    tapstone: Child,
    _pcscd: Pcscd,
}

impl VirtualCard {
    /// `tapstone vcard` with these arguments; returns when clients find the card. `None` as in
    /// [`Pcscd::start`].
    pub(crate) fn insert<A: AsRef<OsStr>>(arguments: &[A]) -> Option<Self> {
        let pcscd = Pcscd::start()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        private_environment(&mut command);
        command.arg("vcard").args(arguments);
        let mut tapstone = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = follow(&mut tapstone);
        let card = Self { tapstone, _pcscd: pcscd };
        let until = Instant::now() + TIME_LIMIT;
        let mut all = String::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match said.recv_timeout(left) {
                Ok(line) => all.push_str(&format!("{line}\n")),
                Err(error) => panic!("{command:?}: {error}; it said: {all}"),
            }
            if all.contains(" is in the reader at ") {
                break;
            }
        }
        // pcscd tells its clients of a card only after it has powered it.
        while !client("opensc-tool", &["--reader", READER, "--atr"])?.status.success() {
            assert!(Instant::now() < until, "pcscd has no card in its reader");
            sleep(PAUSE);
        }
        Some(card)
    }
}

impl Drop for VirtualCard {
    fn drop(&mut self) {
        // Before pcscd ends, which is a field and therefore dropped later.
        end(&mut self.tapstone);
    }
}

/// Runs a client to its end; `None` when it is not installed, which has been said then.
pub(crate) fn client(program: &str, arguments: &[&str]) -> Option<Output> {
    match Command::new(program).args(arguments).stdin(Stdio::null()).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip(program);
            None
        }
        output => Some(output.unwrap()),
    }
}

pub(crate) fn answers() -> bool {
    UnixStream::connect(SOCKET).is_ok()
}

/// Outside the path of users who are not root, usually.
fn launch() -> io::Result<Child> {
    let start = |program: &str| {
        let mut command = Command::new(program);
        command.arg("--foreground").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    };
    start("pcscd").or_else(|_| start("/usr/sbin/pcscd"))
}

/// The lines that a program writes on standard error, as they come.
fn follow(program: &mut Child) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let stderr = program.stderr.take().expect("standard error is a pipe");
    // Goes on reading when nobody listens any more, so that the program never waits.
    spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}

fn end(program: &mut Child) {
    // It may have ended by itself.
    let _ = kill_process(Pid::from_child(program), Signal::TERM);
    let _ = program.wait();
}
