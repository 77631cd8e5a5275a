//! One measuring thread's work: its lanes, its session, and what it does after a failure.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use cryptoki_sys::*;
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::gate::Gate;
use tapstone_measure::looper::{MeasuredWork, Onward};
use tapstone_measure::recorder::LaneEnd;
use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Rv};

use super::keys::KeyReference;
use super::lane::Lane;
use super::operation::as_failure;
use super::shared::Shared;
use super::watch::CallWatch;
use crate::module::{Session, ck};
use crate::protocol::{Broken, Outage};

/// What a thread does after a failure.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailurePolicy {
    /// Failures in a row that end it.
    pub(super) max_failures: u32,
    /// Whether it waits for a lost device to come back.
    pub(super) reconnect: bool,
}

/// What one thread measures with.
pub(super) struct Bench {
    pub(super) shared: Arc<Shared>,
    pub(super) gate: Arc<Gate>,
    pub(super) session: Option<Session>,
    pub(super) lanes: Vec<Lane>,
    /// By lane, what its keys are found by after a reconnection.
    pub(super) references: Vec<Vec<KeyReference>>,
    /// The order of the lanes, a power of two long; empty for one lane.
    pub(super) mix: Vec<u8>,
    pub(super) watch: CallWatch,
    pub(super) failure_policy: FailurePolicy,
    pub(super) seed: u64,
    pub(super) outages: Vec<Outage>,
    pub(super) in_a_row: u32,
    pub(super) last: Option<Pkcs11Failure>,
    /// All answers that cannot be, in the window and outside.
    pub(super) violations: Vec<Broken>,
}

/// How long to wait between two attempts to reach a lost device.
const RETRY: Duration = Duration::from_millis(50);

impl MeasuredWork for Bench {
    #[inline]
    fn perform(&mut self, operation: u64) -> Result<(), u64> {
        let lane = self.lane(operation);
        match self.lanes[lane].perform(operation, &mut self.watch) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.last = Some(as_failure(error));
                Err(error.1.0)
            }
        }
    }

    #[inline]
    fn settle(&mut self, operation: u64, outcome: Result<(), u64>) -> Result<(), u64> {
        let lane = self.lane(operation);
        let performed = match (outcome, self.last) {
            (Err(_), Some(failure)) => Err((failure.call, failure.code)),
            _ => Ok(()),
        };
        match self.lanes[lane].settle(operation, performed) {
            Ok(()) => {
                self.in_a_row = 0;
                Ok(())
            }
            Err(error) => {
                self.last = Some(as_failure(error));
                self.note_violation(lane, as_failure(error));
                Err(error.1.kind().0)
            }
        }
    }

    #[inline]
    fn lane(&self, operation: u64) -> usize {
        match &self.mix[..] {
            [] => 0,
            mix => usize::from(mix[operation as usize & (mix.len() - 1)]),
        }
    }

    fn opened(&mut self, operation: u64) {
        for lane in &mut self.lanes {
            lane.capture.restart(operation, self.seed);
            lane.objects.restart(operation, self.seed);
        }
        self.watch.restart();
    }

    fn cut_off(&mut self, operation: u64) {
        let lane = self.lane(operation);
        self.lanes[lane].capture.withdraw(operation);
        self.lanes[lane].objects.withdraw(operation);
    }

    fn failed(&mut self, operation: u64, code: u64) -> Onward {
        self.watch.leave();
        self.in_a_row += 1;
        let lost = self.last.filter(|failure| failure.code.is_lost());
        if Rv(code).is_pin() || self.shared.pin_refused.load(Relaxed) {
            return Onward::GiveUp;
        }
        if let (true, Some(failure)) = (self.failure_policy.reconnect, lost) {
            return self.reconnect(failure);
        }
        if self.in_a_row >= self.failure_policy.max_failures {
            return Onward::GiveUp;
        }
        let lane = self.lane(operation);
        if self.lanes[lane].calls.may_leave_session_active() && self.renew().is_err() {
            return Onward::GiveUp;
        }
        Onward::Continue
    }
}

impl Bench {
    #[cold]
    fn note_violation(&mut self, lane: usize, failure: Pkcs11Failure) {
        if failure.code.violation().is_none() {
            return;
        }
        let kind = failure.code.kind();
        let same = |noted: &&mut Broken| {
            usize::from(noted.lane) == lane && noted.first.code.kind() == kind
        };
        match self.violations.iter_mut().find(same) {
            Some(noted) => noted.count += 1,
            None => self.violations.push(Broken { lane: lane as u8, first: failure, count: 1 }),
        }
    }

    /// The answers that cannot be of operations that do not count, when those that count are
    /// these failures by lane.
    pub(super) fn violations_outside(&self, counted: &[LaneEnd]) -> Vec<Broken> {
        let outside = self.violations.iter().map(|noted| {
            let failures = counted.get(usize::from(noted.lane)).map_or(&[][..], |l| &l.failures);
            let same = failures.iter().filter(|(code, _)| *code == noted.first.code.kind().0);
            let counted: u64 = same.map(|(_, count)| count).sum();
            Broken { count: noted.count - counted.min(noted.count), ..*noted }
        });
        outside.filter(|noted| noted.count > 0).collect()
    }

    /// Leaves no operation active: cancels it where the module can (PKCS #11 3.0), else opens
    /// another session.
    fn renew(&mut self) -> Result<(), Pkcs11Failure> {
        let Some(session) = &self.session else { return self.reopen() };
        let all = CKF_SIGN | CKF_ENCRYPT | CKF_DECRYPT | CKF_DIGEST | CKF_FIND_OBJECTS;
        // SAFETY: only values are passed.
        match unsafe { ck!(&session.module, C_SessionCancel(session.handle, all)) } {
            Ok(()) => Ok(()),
            // With the main session the login and the keys would go.
            Err(failure) if session.is_lent() => Err(failure),
            Err(_) => self.reopen(),
        }
    }

    /// Objects go with their session: from now on their handles may be given again.
    fn release_objects(&self) {
        for object in self.lanes.iter().flat_map(|lane| lane.objects.all()).flatten() {
            self.shared.module.live_objects.release(object as u64);
        }
    }

    fn reopen(&mut self) -> Result<(), Pkcs11Failure> {
        self.release_objects();
        self.session = None;
        let session = Session::open(&self.shared.module, self.shared.slot, self.shared.read_only)?;
        for lane in &mut self.lanes {
            lane.session = session.handle;
        }
        self.session = Some(session);
        Ok(())
    }

    /// Waits for a lost device, and notes how long it was gone.
    fn reconnect(&mut self, failure: Pkcs11Failure) -> Onward {
        let start = Monotonic.now();
        loop {
            if self.try_to_reconnect().is_ok() {
                let length = Some(Monotonic.now() - start);
                self.outages.push(Outage { start, length, failure });
                self.in_a_row = 0;
                return Onward::Continue;
            }
            let ended = self.gate.closes() <= Monotonic.now();
            if ended || self.shared.pin_refused.load(Relaxed) {
                self.outages.push(Outage { start, length: None, failure });
                // The window's end is not the device's fault: the loop sees it by itself.
                return if ended { Onward::Continue } else { Onward::GiveUp };
            }
            std::thread::sleep(RETRY);
        }
    }

    fn try_to_reconnect(&mut self) -> Result<(), Pkcs11Failure> {
        self.shared.module.forget_handles();
        self.reopen()?;
        let Some(session) = &self.session else { return Ok(()) };
        self.shared.login_again(session)?;
        for (lane, references) in self.lanes.iter_mut().zip(&self.references) {
            for (keyed, reference) in lane.keys.iter_mut().zip(references) {
                keyed.key = reference.find(session)?;
            }
        }
        Ok(())
    }

    /// Destroys the objects that were kept for verification.
    pub(super) fn discard_objects(&mut self) {
        let Some(session) = &self.session else { return };
        for object in self.lanes.iter_mut().flat_map(|lane| lane.objects.take_all()).flatten() {
            if object != CK_INVALID_HANDLE {
                // Session objects: closing the session ends those that resist.
                session.destroy_object(object).ok();
            }
        }
    }

    /// The time spent in each call, if that was asked for.
    pub(super) fn phases(&self) -> Vec<(Pkcs11Function, u64, Nanos)> {
        self.watch.phases()
    }
}
