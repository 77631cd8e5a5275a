//! A run: all workers get ready, start together, and end when enough is known, the count is done,
//! the user asks to, or one of them is lost. What was seen until then is kept.

use std::time::{Duration, Instant};

use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;

use super::error::{LabError, Lost};
use super::figures::{LaneFigures, lanes};
use super::{Lab, Word};
use crate::protocol::{Done, Order, Ready, Report, Sample};

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// When the workers have done their count.
    Count,
    /// After this time.
    Time(Duration),
    /// When every row's mean is known this well, relatively, looked at after 2, 4, 8 … seconds; or
    /// after the time.
    Precision {
        /// Half the interval's width over the mean.
        relative: f64,
        /// The longest run.
        longest: Duration,
    },
}

/// Watches a run.
pub trait Observer {
    /// Something worth a line: another program has the reader.
    fn waiting(&mut self, text: &str);

    /// How far it is; called a few times a second.
    fn progress(&mut self, progress: Progress);
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Operations seen.
    pub completed: u64,
    /// Since the start.
    pub elapsed: Duration,
}

/// What a run has brought.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What each worker saw, in order.
    pub samples: Vec<Vec<Sample>>,
    /// What each worker said when it was ready; none of one that never was.
    pub ready: Vec<Option<Ready>>,
    /// What each worker said at its end.
    pub done: Vec<Option<Done>>,
    /// A worker that was lost.
    pub lost: Option<Lost>,
    /// The user ended it.
    pub interrupted: bool,
    /// It ended because every row was known well enough.
    pub precise: bool,
}

/// From the order to start to the start.
const START_NOTICE: Nanos = Nanos::from_millis(20);

/// When precision is first looked at; then at twice that, and so on.
const FIRST_LOOK: Duration = Duration::from_secs(2);

/// Between two reports of progress.
const PROGRESS: Duration = Duration::from_millis(200);

/// The lab while a run goes on. After the order to end, a worker may finish its operation for as
/// long as a call may take.
pub(super) struct Steering<'a> {
    lab: &'a mut Lab,
    numbers: &'a [usize],
    stop: Stop,
    observer: &'a mut dyn Observer,
    ran: Ran,
    started: Option<Instant>,
    closing: bool,
    /// That another program holds the card has been said; among contending workers waiting is what
    /// is measured.
    said: bool,
    next_look: Duration,
    last_progress: Instant,
}

impl<'a> Steering<'a> {
    pub(super) fn new(
        lab: &'a mut Lab,
        numbers: &'a [usize],
        stop: Stop,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let count = numbers.len();
        let ran = Ran {
            samples: vec![Vec::new(); count],
            ready: vec![None; count],
            done: vec![None; count],
            lost: None,
            interrupted: false,
            precise: false,
        };
        Self {
            lab,
            numbers,
            stop,
            observer,
            ran,
            started: None,
            closing: false,
            said: numbers.len() > 1,
            next_look: FIRST_LOOK,
            last_progress: Instant::now(),
        }
    }

    pub(super) fn run(mut self) -> Result<Ran, LabError> {
        while self.waits() {
            if let Some((number, word)) = self.lab.hear(Duration::from_millis(20)) {
                self.take(number, word)?;
            }
            self.watch();
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
        let mut alive = places.filter(|(_, number)| self.lab.workers[**number].is_some());
        alive.any(|(place, _)| self.ran.done[place].is_none())
    }

    fn take(&mut self, number: usize, word: Word) -> Result<(), LabError> {
        let Some(place) = self.numbers.iter().position(|other| *other == number) else {
            return Ok(());
        };
        match word {
            Word::Report(Report::Waiting) => {
                self.observer.waiting("another program has the reader for itself: waiting for it");
            }
            Word::Report(Report::Ready(Ok(ready))) => {
                self.ran.ready[place] = Some(ready);
                if !self.closing && self.ran.ready.iter().all(Option::is_some) {
                    self.start();
                }
            }
            Word::Report(Report::Ready(Err(fault))) => return Err(LabError::Fault(fault)),
            Word::Report(Report::Samples(samples)) => self.ran.samples[place].extend(samples),
            Word::Report(Report::Done(done)) => {
                // One that gave up will not be waited for by the others.
                if done.gave_up.is_some() {
                    self.close();
                }
                self.ran.done[place] = Some(done);
            }
            Word::Report(Report::Opened(_) | Report::Readers(_)) => {}
            Word::Gone => self.lose(number, None),
            Word::Garbled(why) => self.lose(number, Some(Lost::Garbled(why))),
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
            self.lab.order(*number, order);
        }
    }

    fn lose(&mut self, number: usize, why: Option<Lost>) {
        let lost = self.lab.bury(number, why);
        self.ran.lost.get_or_insert(lost);
        self.close();
    }

    /// Calls that do not return, and the user who wants to go.
    fn watch(&mut self) {
        // One of several may wait for its siblings as long as they run.
        let siblings = match self.stop {
            Stop::Time(time) | Stop::Precision { longest: time, .. } if self.numbers.len() > 1 => {
                time
            }
            _ => Duration::ZERO,
        };
        let wait = self.lab.options.wait + siblings;
        for number in self.numbers {
            if let Some(lost) = self.lab.hangs(*number, &mut self.said, wait, self.observer) {
                self.lose(*number, Some(lost));
            }
        }
        if self.lab.interrupted() && !self.closing {
            self.ran.interrupted = true;
            self.close();
        }
    }

    fn look(&mut self) {
        let Some(started) = self.started.filter(|_| !self.closing) else { return };
        let elapsed = started.elapsed();
        match self.stop {
            Stop::Count => {}
            Stop::Time(time) if elapsed >= time => self.close(),
            Stop::Precision { longest, .. } if elapsed >= longest => self.close(),
            Stop::Precision { relative, .. } if elapsed >= self.next_look => {
                self.next_look *= 2;
                let lanes = lanes(&self.ran);
                if !lanes.is_empty() && lanes.iter().all(|lane| known(lane, relative)) {
                    self.ran.precise = true;
                    self.close();
                }
            }
            Stop::Time(_) | Stop::Precision { .. } => {}
        }
        if self.last_progress.elapsed() >= PROGRESS {
            self.last_progress = Instant::now();
            let completed = self.ran.samples.iter().map(|samples| samples.len() as u64).sum();
            self.observer.progress(Progress { completed, elapsed });
        }
    }
}

fn known(lane: &LaneFigures, relative: f64) -> bool {
    let mean = lane.summary.mean.filter(|_| lane.summary.reliable);
    mean.is_some_and(|mean| mean.relative_half_width() <= relative)
}
