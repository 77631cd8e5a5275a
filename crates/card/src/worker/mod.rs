//! The process that talks to PC/SC, on orders that come through a pipe.
//!
//! SCardTransmit has no time limit and cannot be cancelled, so whoever calls it can hang; this
//! process can be ended at any moment, and pcscd then ends its transaction. When its orders end it
//! stops measuring, cleans up and goes.

mod rounds;

use std::fs::File;
use std::io::{self, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_worker::{Board, private_pipes, receive, send};

pub use self::rounds::Work;
use self::rounds::{Outlet, run_rounds};
use crate::pcsc::Bench;
use crate::protocol::{Done, Fault, Job, JobWork, Order, Ready, Report};
use crate::scard::{Code, Failure, Pcsc, reader_name};
use crate::suite::run::SuiteRun;
use crate::{look, scard};

/// How long a worker may clean up after its orders have ended: nobody may be left to kill it.
const LAST_RESPITE: Duration = Duration::from_secs(10);

/// Between two attempts to get a reader that another program has for itself.
const RETRY: Duration = Duration::from_millis(100);

/// Runs a worker on this process's standard input and output until its orders end.
///
/// # Errors
/// What the pipes say. Everything that goes wrong with PC/SC is a report.
pub fn serve() -> io::Result<()> {
    let (orders, reports) = private_pipes()?;
    let (sender, inbox) = mpsc::channel();
    let closed = Arc::new(AtomicBool::new(false));
    let close = Arc::clone(&closed);
    thread::Builder::new().name("orders".into()).spawn(move || {
        let mut orders = BufReader::new(orders);
        while let Ok(Some(order)) = receive(&mut orders) {
            if matches!(order, Order::Close) {
                close.store(true, Relaxed);
            }
            if sender.send(order).is_err() {
                return;
            }
        }
        close.store(true, Relaxed);
        drop(sender);
        thread::sleep(LAST_RESPITE);
        std::process::exit(3);
    })?;
    Worker { reports, inbox, closed, pcsc: None }.serve()
}

struct Worker {
    reports: File,
    inbox: Receiver<Order>,
    /// No further operation is to start.
    closed: Arc<AtomicBool>,
    pcsc: Option<Pcsc>,
}

impl Worker {
    fn serve(mut self) -> io::Result<()> {
        while let Ok(order) = self.inbox.recv() {
            match order {
                Order::Open { board } => {
                    let opened = Pcsc::open(Board::open(&board)?.place(0));
                    let opened = opened.map(|pcsc| self.pcsc = Some(pcsc));
                    self.report(&Report::Opened(opened.map_err(|error| error.to_string())))?;
                }
                Order::Look(cards) => {
                    let readers = look::readers(self.pcsc()?, &cards);
                    self.report(&Report::Readers(readers))?;
                }
                Order::Prepare(job) => self.run(*job)?,
                Order::Go { .. } | Order::Close => {}
            }
        }
        Ok(())
    }

    fn pcsc(&self) -> io::Result<&Pcsc> {
        self.pcsc.as_ref().ok_or_else(|| io::Error::other("an order before the library is open"))
    }

    fn report(&mut self, report: &Report) -> io::Result<()> {
        send(&mut self.reports, report)
    }

    fn run(&mut self, job: Job) -> io::Result<()> {
        let pcsc = self.pcsc()?.clone();
        match &job.work {
            JobWork::Pcsc { operation, hold } => {
                let bench = self.patiently(&job, |reader| {
                    Bench::new(*operation, pcsc.clone(), reader, *hold)
                })?;
                self.measure(&job, bench.map(PcscWork::new).map_err(Into::into))
            }
            JobWork::Suite(suite) => {
                let share = scard::Share::Shared;
                let connection = self.patiently(&job, |reader| {
                    let context = pcsc.establish()?;
                    let card = context.connect(&reader, share)?;
                    Ok((context, card))
                })?;
                let work = connection.map_err(Into::into).and_then(|(context, card)| {
                    SuiteRun::new(suite, context, card, &job.reader, &self.closed)
                });
                self.measure(&job, work)
            }
        }
    }

    /// Tries again while another program has the reader for itself, and says so once.
    fn patiently<T>(
        &mut self,
        job: &Job,
        mut attempt: impl FnMut(std::ffi::CString) -> Result<T, Failure>,
    ) -> io::Result<Result<T, Failure>> {
        let until = Instant::now() + job.wait;
        let mut said = false;
        loop {
            match attempt(reader_name(&job.reader)) {
                Err(Failure { code: Code::SHARING_VIOLATION, .. })
                    if Instant::now() < until && !self.closed.load(Relaxed) =>
                {
                    if !said {
                        self.report(&Report::Waiting)?;
                        said = true;
                    }
                    thread::sleep(RETRY);
                }
                outcome => return Ok(outcome),
            }
        }
    }

    fn measure<W: Work>(&mut self, job: &Job, work: Result<W, Fault>) -> io::Result<()> {
        let prepared = work.and_then(|mut work| {
            let warm_up = rounds::warm_up(&mut work, job.warm_up)?;
            let ready = Ready { warm_up, ..work.prepared() };
            Ok((work, ready))
        });
        let (mut work, ready) = match prepared {
            Ok(prepared) => prepared,
            Err(fault) => return self.report(&Report::Ready(Err(fault))),
        };
        // Whatever becomes of the lab, what was made on the card is removed.
        let ran = self.report(&Report::Ready(Ok(ready))).and_then(|()| {
            let Some(at) = self.start() else { return Ok(None) };
            Monotonic.wait_until(at);
            let mut outlet = Outlet::new(&mut self.reports);
            run_rounds(&mut work, job.count, &self.closed, &mut outlet)
        });
        let left = work.end().err();
        self.report(&Report::Done(Done { gave_up: ran?, left }))
    }

    /// When to start; `None` when the run was called off.
    fn start(&self) -> Option<tapstone_measure::units::Nanos> {
        loop {
            match self.inbox.recv() {
                Ok(Order::Go { at }) => return Some(at),
                Ok(Order::Close) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }
}

/// A PC/SC call as work.
struct PcscWork(Bench);

impl PcscWork {
    const fn new(bench: Bench) -> Self {
        Self(bench)
    }
}

impl Work for PcscWork {
    fn prepare(&mut self, _number: u64) -> Result<(), Fault> {
        Ok(self.0.prepare()?)
    }

    #[inline]
    fn perform(&mut self) -> Result<(), Fault> {
        Ok(self.0.perform()?)
    }

    fn undo(&mut self, failed: bool) -> Result<(), Fault> {
        self.0.undo()?;
        if failed {
            self.0.recover()?;
        }
        Ok(())
    }
}
