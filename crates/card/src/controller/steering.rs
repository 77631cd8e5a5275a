//! A run: all workers get ready, start together, and end when enough is known, the count is done,
//! the user asks to, or one of them is lost. What was seen until then is kept.

use std::time::{Duration, Instant};

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_worker::{Heard, HeardOf, PROGRESS_INTERVAL, Periodic, Timeouts};

use super::card_run::CardRun;
use super::error::CardMeasureError;
use super::figures::{LaneFigures, lanes};
use super::{CardController, WAITS};
use crate::protocol::{CardProtocol, Order, Report};

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CardStop {
    /// When the workers have done their count.
    Count,
    /// When this time is over, counted from the start.
    Time(Duration),
    /// When every case's mean is known this well, relatively, looked at after 2, 4, 8 … seconds; or
    /// after the time.
    Precision {
        /// Half the interval's width over the mean.
        relative: f64,
        /// How long the run may last at most.
        longest: Duration,
    },
}

/// Watches a run from outside: progress, and what a user has to know.
pub trait CardObserver {
    /// Something worth a line: another program has the reader.
    fn waiting(&mut self, text: &str);

    /// How far it is; called a few times a second.
    fn progress(&mut self, progress: CardProgress);
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardProgress {
    /// Operations that were done so far, also those that failed.
    pub done: u64,
    /// Operations that have failed so far.
    pub failed: u64,
    /// The time since all workers started together.
    pub elapsed: Duration,
}

/// From the order to start to the start.
const START_NOTICE: Nanos = Nanos::from_millis(20);

/// When precision is first looked at; then at twice that, and so on.
const FIRST_LOOK: Duration = Duration::from_secs(2);

/// Among contending workers one may wait for the others as long as they run.
pub(super) fn timeouts(usual: Timeouts, workers: usize, stop: CardStop) -> Timeouts {
    match stop {
        CardStop::Time(time) | CardStop::Precision { longest: time, .. } if workers > 1 => {
            Timeouts { waiting_call: usual.waiting_call + time, ..usual }
        }
        _ => usual,
    }
}

/// The controller while a run goes on. After the order to end, a worker may finish its operation for as
/// long as a call may take.
pub(super) struct CardSteering<'a> {
    controller: &'a mut CardController,
    numbers: &'a [usize],
    stop: CardStop,
    observer: &'a mut dyn CardObserver,
    ran: CardRun,
    started: Option<Instant>,
    closing: bool,
    next_look: Duration,
    progress_report: Periodic,
    failed: u64,
}

impl<'a> CardSteering<'a> {
    pub(super) fn new(
        controller: &'a mut CardController,
        numbers: &'a [usize],
        stop: CardStop,
        observer: &'a mut dyn CardObserver,
    ) -> Self {
        let count = numbers.len();
        let ran = CardRun {
            samples: vec![Vec::new(); count],
            ready: vec![None; count],
            done: vec![None; count],
            lost: None,
            interrupted: false,
            precise: false,
        };
        Self {
            controller,
            numbers,
            stop,
            observer,
            ran,
            started: None,
            closing: false,
            next_look: FIRST_LOOK,
            progress_report: Periodic::new(PROGRESS_INTERVAL),
            failed: 0,
        }
    }

    pub(super) fn steer(mut self) -> Result<CardRun, CardMeasureError> {
        while self.waits() {
            if let Some((number, heard)) = self.controller.workers.hear(Duration::from_millis(20)) {
                self.take(number, heard)?;
            }
            if self.controller.workers.is_interrupted() && !self.closing {
                self.ran.interrupted = true;
                self.close();
            }
            self.look();
        }
        match self.ran.lost.take() {
            // Nothing was measured: there is nothing to tell but the loss.
            Some(lost) if self.started.is_none() => Err(lost.into()),
            lost => {
                self.ran.lost = lost;
                Ok(self.ran)
            }
        }
    }

    fn waits(&self) -> bool {
        let places = self.numbers.iter().enumerate();
        let mut alive = places.filter(|(_, number)| self.controller.workers.is_alive(**number));
        alive.any(|(place, _)| self.ran.done[place].is_none())
    }

    fn take(
        &mut self,
        number: usize,
        heard: HeardOf<CardProtocol>,
    ) -> Result<(), CardMeasureError> {
        let Some(place) = self.numbers.iter().position(|other| *other == number) else {
            return Ok(());
        };
        let report = match heard {
            Heard::Report(report) => report,
            Heard::Lost(lost) => {
                self.ran.lost.get_or_insert(lost);
                self.close();
                return Ok(());
            }
            Heard::Waits => {
                // Among contending workers waiting is what is measured.
                if self.numbers.len() == 1 {
                    self.observer.waiting(WAITS);
                }
                return Ok(());
            }
        };
        match report {
            Report::Waiting => {
                self.observer.waiting("another program has the reader for itself: waiting for it");
            }
            Report::Ready(Ok(ready)) => {
                self.ran.ready[place] = Some(ready);
                if !self.closing && self.ran.ready.iter().all(Option::is_some) {
                    self.start();
                }
            }
            Report::Ready(Err(fault)) => return Err(CardMeasureError::Fault(fault)),
            Report::Samples(samples) => {
                let failed = samples.iter().filter(|sample| sample.fault.is_some()).count();
                self.failed += failed as u64;
                self.ran.samples[place].extend(samples);
            }
            Report::Done(done) => {
                // One that gave up will not be waited for by the others.
                if done.gave_up.is_some() {
                    self.close();
                }
                self.ran.done[place] = Some(done);
            }
            Report::Opened(_) | Report::Readers(_) => {}
        }
        Ok(())
    }

    fn start(&mut self) {
        let at = Monotonic.now() + START_NOTICE;
        self.order(&Order::Go { at });
        self.started = Some(Instant::now());
    }

    fn close(&mut self) {
        if !self.closing {
            self.closing = true;
            self.order(&Order::Close);
        }
    }

    fn order(&mut self, order: &Order) {
        for number in self.numbers {
            self.controller.workers.send_order(*number, order);
        }
    }

    fn look(&mut self) {
        let Some(started) = self.started.filter(|_| !self.closing) else { return };
        let elapsed = started.elapsed();
        match self.stop {
            CardStop::Count => {}
            CardStop::Time(time) if elapsed >= time => self.close(),
            CardStop::Precision { longest, .. } if elapsed >= longest => self.close(),
            CardStop::Precision { relative, .. } if elapsed >= self.next_look => {
                self.next_look *= 2;
                let lanes = lanes(&self.ran);
                if !lanes.is_empty() && lanes.iter().all(|lane| known(lane, relative)) {
                    self.ran.precise = true;
                    self.close();
                }
            }
            CardStop::Time(_) | CardStop::Precision { .. } => {}
        }
        if self.progress_report.is_due() {
            let done = self.ran.samples.iter().map(|samples| samples.len() as u64).sum();
            self.observer.progress(CardProgress { done, failed: self.failed, elapsed });
        }
    }
}

fn known(lane: &LaneFigures, relative: f64) -> bool {
    let mean = lane.summary.mean.filter(|_| lane.summary.reliable);
    mean.is_some_and(|mean| mean.relative_half_width() <= relative)
}
