//! The process that talks to PC/SC, on orders that come through a pipe.
//!
//! SCardTransmit has no time limit and cannot be cancelled, so whoever calls it can hang; this
//! process can be ended at any moment, and pcscd then ends its transaction. When its orders end it
//! stops measuring, cleans up and goes.

mod orders;
pub(crate) mod rounds;

use std::fs::File;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_names::pcsc::{PcscCode, PcscFailure};
use tapstone_worker::{Board, private_pipes, send};

use self::orders::Orders;
pub use self::rounds::Work;
use self::rounds::{Outlet, run_rounds};
use crate::pcsc::Bench;
use crate::protocol::{Done, Fault, Job, JobWork, Order, Ready, Report};
use crate::scard::{Pcsc, reader_name};
use crate::suite::port::PcscPort;
use crate::suite::run::SuiteRun;
use crate::{look, scard};

/// Between two attempts to get a reader that another program has for itself.
const RETRY: Duration = Duration::from_millis(100);

/// Runs a worker on this process's standard input and output until its orders end.
///
/// # Errors
/// What the pipes say. Everything that goes wrong with PC/SC is a report.
pub fn serve() -> io::Result<()> {
    let (orders, reports) = private_pipes()?;
    Worker { reports, orders: Orders::new(orders)?, pcsc: None }.serve()
}

struct Worker {
    reports: File,
    orders: Orders,
    pcsc: Option<Pcsc>,
}

impl Worker {
    fn serve(mut self) -> io::Result<()> {
        while let Some(order) = self.orders.next() {
            match order {
                Order::Open { board } => {
                    let opened = Pcsc::open(Board::open(&board)?.cell(0));
                    let opened = opened.map(|pcsc| self.pcsc = Some(pcsc));
                    self.report(&Report::Opened(opened.map_err(|error| error.to_string())))?;
                }
                Order::Look(cards) => {
                    let readers = look::readers(self.pcsc()?, &cards);
                    self.report(&Report::Readers(readers))?;
                }
                Order::Prepare(job) => self.do_job(*job)?,
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

    fn do_job(&mut self, job: Job) -> io::Result<()> {
        let pcsc = self.pcsc()?.clone();
        match &job.work {
            JobWork::Pcsc { operation, hold } => {
                let bench = self.patiently(&job, |reader| {
                    Bench::new(*operation, pcsc.clone(), reader, *hold)
                })?;
                self.measure(&job, bench.map(PcscWork::new).map_err(Into::into))
            }
            JobWork::Suite(suite) => {
                let share = scard::ShareMode::Shared;
                let connection = self.patiently(&job, |reader| {
                    let context = pcsc.establish()?;
                    let card = context.connect(&reader, share)?;
                    Ok((context, card))
                })?;
                let work = connection.map_err(Into::into).and_then(|(context, card)| {
                    let mut closed = || self.orders.closed();
                    SuiteRun::new(suite, PcscPort::new(context, card, &job.reader), &mut closed)
                });
                self.measure(&job, work)
            }
        }
    }

    /// Tries again while another program has the reader for itself, and says so once.
    fn patiently<T>(
        &mut self,
        job: &Job,
        mut attempt: impl FnMut(std::ffi::CString) -> Result<T, PcscFailure>,
    ) -> io::Result<Result<T, PcscFailure>> {
        let until = Instant::now() + job.wait;
        let mut said = false;
        loop {
            match attempt(reader_name(&job.reader)) {
                Err(PcscFailure { code: PcscCode::SHARING_VIOLATION, .. })
                    if Instant::now() < until && !self.orders.closed() =>
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
        // Whatever becomes of the controller, what was made on the card is removed.
        let ran = self.report(&Report::Ready(Ok(ready))).and_then(|()| {
            let Some(at) = self.start() else { return Ok(None) };
            Monotonic.wait_until(at);
            let mut outlet = Outlet::new(&mut self.reports);
            run_rounds(&mut work, job.count, &mut self.orders, &mut outlet)
        });
        let left = work.end().err();
        self.report(&Report::Done(Done { gave_up: ran?, left }))
    }

    /// When to start; `None` when the run was called off.
    fn start(&mut self) -> Option<Nanos> {
        loop {
            match self.orders.next()? {
                Order::Go { at } => return Some(at),
                Order::Close => return None,
                _ => {}
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
