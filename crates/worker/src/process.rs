//! A worker process as the controller that started it sees it: it gets orders through one pipe, answers
//! through another, and is watched and ended by its handle.

use std::ffi::OsString;
use std::io::{self, BufReader, BufWriter};
use std::marker::PhantomData;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{self, Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::board::{Board, InFlight};
use crate::clean_up::{CleanUpTimeouts, CleanUpWatch};
use crate::frames::{receive, send};
use crate::inbox::{ReportSender, Word};
use crate::lost::Lost;
use crate::protocol::WorkerProtocol;
use crate::timeouts::Periodic;

/// What to start as a worker: this program, with the argument that makes it one.
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    /// The path of the program.
    pub program: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<String>,
    /// Environment variables that it does not inherit: one may hold the PIN.
    pub hidden: Vec<OsString>,
}

/// A process that was started as a worker.
pub(crate) struct WorkerProcess<P: WorkerProtocol> {
    child: Child,
    orders: Option<BufWriter<ChildStdin>>,
    board: Arc<Board>,
    timeouts: CleanUpTimeouts,
    protocol: PhantomData<fn() -> P>,
}

impl<P: WorkerProtocol> WorkerProcess<P> {
    /// Starts a worker that reports to `inbox` under this number. When its orders end it
    /// ends by itself, unless it stands still for longer than `timeouts`.
    ///
    /// # Errors
    /// What starting a process says.
    pub(crate) fn start(
        command: &WorkerCommand,
        number: usize,
        inbox: ReportSender<P::Report>,
        timeouts: CleanUpTimeouts,
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
            thread::Builder::new()
                .name(format!("reports-{number}"))
                .spawn(move || read_reports(reports, number, &inbox))?;
        }
        Ok(Self { child, orders, board, timeouts, protocol: PhantomData })
    }

    /// Where the worker finds its board.
    pub(crate) fn board(&self) -> PathBuf {
        self.board.path()
    }

    /// Sends an order. A worker that is gone is noticed by its reports' end.
    pub(crate) fn order(&mut self, order: &P::Order) {
        if let Some(orders) = &mut self.orders {
            let _ = send(orders, order);
        }
    }

    /// What a thread is calling: 0 is the main one.
    pub(crate) fn in_flight(&self, thread: usize) -> InFlight {
        self.board.cell(thread).look()
    }

    /// It has ended, although its last reports may still be under way.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// How a worker ended whose reports have ended.
    pub(crate) fn post_mortem(&mut self, threads: usize) -> Lost<P::Call> {
        self.orders = None;
        let how = match self.child.wait() {
            Ok(status) => describe(status),
            Err(error) => error.to_string(),
        };
        let call = (0..=threads).find_map(|thread| self.in_flight(thread).call());
        let call = call.and_then(P::call_of_number);
        if self.board.cell(0).went_beyond_buffer() {
            return Lost::BeyondBuffer { how, call };
        }
        Lost::Crashed { how, call }
    }

    /// Ends the worker at once.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Between two looks at whether a worker has ended.
const LOOK_FOR_END: Duration = Duration::from_millis(2);

/// Between two looks at whether it gets on: a board has many cells.
const LOOK_AT_BOARD: Duration = Duration::from_millis(20);

/// A worker whose orders end removes what it made: it is killed only when it stands still.
impl<P: WorkerProtocol> Drop for WorkerProcess<P> {
    fn drop(&mut self) {
        self.orders = None;
        let is_lasting =
            |number| P::call_of_number(number).is_some_and(|call| P::outlives_process(call));
        let mut watch = CleanUpWatch::new(Arc::clone(&self.board));
        let mut look = Periodic::new(LOOK_AT_BOARD);
        while !self.has_ended() {
            if look.is_due() && watch.is_stuck(self.timeouts, is_lasting) {
                return self.kill();
            }
            thread::sleep(LOOK_FOR_END);
        }
    }
}

/// Passes reports on until there are no more, or nobody wants them.
fn read_reports<R: DeserializeOwned>(reports: ChildStdout, number: usize, inbox: &ReportSender<R>) {
    let mut reports = BufReader::with_capacity(1 << 16, reports);
    loop {
        let word = match receive(&mut reports) {
            Ok(Some(report)) => Word::Report(report),
            Ok(None) => Word::End,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Word::End,
            Err(error) => Word::Garbled(error.to_string()),
        };
        let is_last = !matches!(word, Word::Report(_));
        if inbox.0.send((number, word)).is_err() || is_last {
            return;
        }
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
