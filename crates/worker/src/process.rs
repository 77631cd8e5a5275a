//! A worker process as the one that started it sees it: started, spoken to, watched, and ended by its handle.

use std::ffi::OsString;
use std::io::{self, BufReader, BufWriter};
use std::marker::PhantomData;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{self, Child, ChildStdin, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::board::{Board, InFlight};
use crate::frames::{receive, send};
use crate::lost::Lost;

/// What to run as a worker: this program, with the argument that makes it one.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables that it does not inherit: one may hold the PIN.
    pub hidden: Vec<OsString>,
}

/// Something that a worker said, or that it says no more.
#[derive(Debug)]
pub enum Word<R> {
    /// A report.
    Report(R),
    /// The pipe has ended.
    Gone,
    /// What came through it was no report.
    Garbled(String),
}

/// See the module's text.
#[derive(Debug)]
pub struct Process<O, R> {
    child: Child,
    orders: Option<BufWriter<ChildStdin>>,
    board: Arc<Board>,
    watched: Vec<(InFlight, Instant)>,
    patience: Duration,
    messages: PhantomData<fn(O) -> R>,
}

impl<O: Serialize, R: DeserializeOwned + Send + 'static> Process<O, R> {
    /// Starts a worker that reports to `inbox` under this number, and that may take so long to
    /// clean up once its orders have ended.
    ///
    /// # Errors
    /// What starting a process says.
    pub fn start(
        command: &Command,
        number: usize,
        inbox: Sender<(usize, Word<R>)>,
        patience: Duration,
    ) -> io::Result<Self> {
        let board = Board::create()?;
        let mut child = process::Command::new(&command.program);
        command.hidden.iter().for_each(|name| {
            child.env_remove(name);
        });
        let mut child = child
            .args(&command.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A Ctrl-C is for the one that started it, who then ends it in good order.
            .process_group(0)
            .spawn()?;
        let orders = child.stdin.take().map(BufWriter::new);
        if let Some(reports) = child.stdout.take() {
            thread::Builder::new().name(format!("reports-{number}")).spawn(move || {
                let mut reports = BufReader::with_capacity(1 << 16, reports);
                loop {
                    let word = match receive(&mut reports) {
                        Ok(Some(report)) => Word::Report(report),
                        Ok(None) => Word::Gone,
                        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Word::Gone,
                        Err(error) => Word::Garbled(error.to_string()),
                    };
                    let last = !matches!(word, Word::Report(_));
                    if inbox.send((number, word)).is_err() || last {
                        return;
                    }
                }
            })?;
        }
        Ok(Self { child, orders, board, watched: Vec::new(), patience, messages: PhantomData })
    }

    /// Where the worker finds its board.
    #[must_use]
    pub fn board(&self) -> PathBuf {
        self.board.path()
    }

    /// Sends an order. A worker that is gone is noticed by its reports' end.
    pub fn order(&mut self, order: &O) {
        if let Some(orders) = &mut self.orders {
            let _ = send(orders, order);
        }
    }

    /// A call that has not returned for longer than `limit`, on any of the worker's threads.
    pub fn stuck(&mut self, threads: usize, limit: Duration) -> Option<Lost<u8>> {
        self.watched.resize(1 + threads, (self.board.place(0).look(), Instant::now()));
        for (thread, (seen, since)) in self.watched.iter_mut().enumerate() {
            let look = self.board.place(thread).look();
            if look != *seen || look.call().is_none() {
                (*seen, *since) = (look, Instant::now());
            } else if since.elapsed() >= limit {
                return Some(Lost::Hung { after: limit, call: look.call() });
            }
        }
        None
    }

    /// How a worker ended whose reports have ended.
    pub fn post_mortem(&mut self, threads: usize) -> Lost<u8> {
        self.orders = None;
        let how = match self.child.wait() {
            Ok(status) => describe(status),
            Err(error) => error.to_string(),
        };
        let call = (0..=threads).find_map(|thread| self.board.place(thread).look().call());
        Lost::Crashed { how, call }
    }
}

impl<O, R> Process<O, R> {
    /// Ends the worker at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A worker whose orders end removes what it made: it is given the time, and then killed.
impl<O, R> Drop for Process<O, R> {
    fn drop(&mut self) {
        self.orders = None;
        let until = Instant::now() + self.patience;
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
        self.kill();
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match signal_hook::low_level::signal_name(signal) {
            Some(name) => name.to_owned(),
            None => format!("signal {signal}"),
        },
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "for no known reason".into(),
    }
}
