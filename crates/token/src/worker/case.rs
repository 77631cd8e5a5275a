//! A case in a worker process: its keys, its inputs, and the lanes that threads are given.

use std::sync::Arc;

use cryptoki_sys::*;
use tapstone_names::pkcs11::Pkcs11Failure;

use super::case_lane::{CaseLane, LaneThread};
use super::keys::{self, KeyReference};
use super::lane::Lane;
use super::operation::as_failure;
use super::shapes::shape_work;
use super::shared::Shared;
use super::watch::CallWatch;
use crate::module::Session;
use crate::protocol::{Job, LaneReady, Login, NewKeys, Ring, Trouble};

/// What the process holds for the case that is measured.
pub(super) struct Case {
    pub(super) job: Job,
    pub(super) lanes: Vec<CaseLane>,
    /// Objects that only have to be there.
    extra: Vec<CK_OBJECT_HANDLE>,
    /// Sessions that only have to be open.
    _idle: Vec<Session>,
}

impl Case {
    /// Makes or finds the keys. What was made before a failure is gone again.
    pub(super) fn prepare(shared: &Shared, main: &Session, job: Job) -> Result<Self, Trouble> {
        let maker = keys::KeyMaker {
            session: main,
            shared,
            run: &job.run,
            first_worker: job.first_worker,
            verify: job.verify,
            read_only: shared.read_only,
            private: shared.login != Login::None,
        };
        let mut lanes: Vec<CaseLane> = Vec::new();
        for (index, lane) in job.lanes.iter().enumerate() {
            match maker.keys(index as u8, &lane.variant, &lane.keys) {
                Ok(keys) => lanes.push(CaseLane::new(lane.variant.clone(), keys)),
                Err(trouble) => {
                    for lane in &mut lanes {
                        keys::destroy(main, &mut lane.keys).ok();
                    }
                    return Err(trouble);
                }
            }
        }
        let mut case = Self { job, lanes, extra: Vec::new(), _idle: Vec::new() };
        if case.new_keys_on_token().is_some() {
            let new_keys = shared.note(&case.job.run, &keys::new_key_id(case.job.first_worker));
            if let Err(trouble) = new_keys {
                case.destroy(main).ok();
                return Err(trouble);
            }
        }
        match case.add_extra_load(shared, main) {
            Ok(()) => Ok(case),
            Err(failure) => {
                case.destroy(main).ok();
                Err(Trouble::Call { lane: 0, failure })
            }
        }
    }

    /// Objects and sessions besides those that are measured.
    fn add_extra_load(&mut self, shared: &Shared, main: &Session) -> Result<(), Pkcs11Failure> {
        for number in 0..self.job.extra_objects {
            let label = format!("{}-{number}", self.job.run);
            self.extra.push(main.create_labelled_object(&label)?);
        }
        for _ in 0..self.job.idle_sessions {
            self._idle.push(Session::open(&shared.module, shared.slot, shared.read_only)?);
        }
        Ok(())
    }

    /// What the controller needs to know of the keys.
    pub(super) fn ready(&self, shared: &Shared) -> Vec<LaneReady> {
        self.lanes.iter().map(|lane| lane.ready(shared)).collect()
    }

    /// Takes the inputs, and imports those that have to be objects.
    pub(super) fn take_inputs(
        &mut self,
        main: &Session,
        inputs: Vec<Vec<Ring>>,
    ) -> Vec<Result<(), Pkcs11Failure>> {
        let mut results = Vec::new();
        for (lane, rings) in self.lanes.iter_mut().zip(inputs) {
            let first_worker = self.job.first_worker;
            let take = |ring| lane.take_ring(main, first_worker, ring);
            let taken = rings.into_iter().try_for_each(take);
            results.push(taken);
        }
        results
    }

    /// The lanes for one thread.
    pub(super) fn lanes_for(
        &self,
        shared: &Arc<Shared>,
        session: &Session,
        thread: LaneThread<'_>,
    ) -> Result<Vec<Lane>, Pkcs11Failure> {
        let share = thread.keep_bytes / self.lanes.len().max(1) as u64;
        let thread = LaneThread { keep_bytes: share, ..thread };
        self.lanes.iter().map(|lane| lane.for_thread(&self.job, shared, session, thread)).collect()
    }

    /// The case logs in and out itself.
    pub(super) fn is_login(&self) -> bool {
        self.lanes.iter().any(|lane| shape_work(lane.variant.shape).logs_in())
    }

    /// By lane, what the keys are found by after a reconnection.
    pub(super) fn references(&self) -> Vec<Vec<KeyReference>> {
        let references =
            |lane: &CaseLane| lane.keys.iter().map(|key| key.reference.clone()).collect();
        self.lanes.iter().map(references).collect()
    }

    /// What finds the keys that this case made on the token.
    pub(super) fn made_on_token(&self) -> Vec<KeyReference> {
        let keys = self.lanes.iter().flat_map(|lane| &lane.keys);
        let keys = keys.filter(|key| key.outlives_sessions()).map(|key| key.reference.clone());
        keys.chain(self.new_keys_on_token()).collect()
    }

    /// What finds the keys that operations generated on the token, if they do.
    fn new_keys_on_token(&self) -> Option<KeyReference> {
        let generates = |lane: &CaseLane| shape_work(lane.variant.shape).generates_keys();
        let on_token = self.job.new_keys == NewKeys::OnToken;
        (on_token && self.lanes.iter().any(generates)).then(|| KeyReference::of_new_keys(&self.job))
    }

    /// Destroys what was made for the case.
    pub(super) fn destroy(&mut self, main: &Session) -> Result<(), Pkcs11Failure> {
        let mut outcome = Ok(());
        for lane in &mut self.lanes {
            outcome = outcome.and(lane.destroy_imported(main));
            outcome = outcome.and(keys::destroy(main, &mut lane.keys));
        }
        // Handles go with a lost device, the keys that operations generated on the token do not.
        let new_keys: Vec<KeyReference> = self.new_keys_on_token().into_iter().collect();
        outcome = outcome.and(keys::destroy_found(main, &new_keys));
        for object in self.extra.drain(..) {
            outcome = outcome.and(main.destroy_object(object));
        }
        outcome
    }
}

/// One operation of each lane, with the real parameters: a mechanism list lies.
pub(super) fn try_lanes(
    case: &Case,
    shared: &Arc<Shared>,
    main: &Session,
    thread: LaneThread<'_>,
) -> Vec<Result<(), Pkcs11Failure>> {
    let try_one = |lane: &CaseLane| {
        let mut prepared =
            lane.for_thread(&case.job, shared, main, LaneThread { limit: 0, ..thread })?;
        let mut watch = CallWatch::new(thread.place.clone(), false);
        prepared.try_once(thread.seed, &mut watch).map_err(as_failure)
    };
    case.lanes.iter().map(try_one).collect()
}
