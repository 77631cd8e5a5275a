//! One operation of a case: its keys, its inputs, what threads perform it with, and what of their
//! results the verifier gets.

use std::sync::Arc;

use cryptoki_sys::*;
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Rv};

use super::capture::{Capture, CaptureSize};
use super::input::{OfferedBytes, PreparedInput};
use super::kept_objects::{KeptObjects, MadeObjects, NO_OBJECTS};
use super::keys::{self, Key};
use super::lane::{Keyed, Lane, OfferedInput};
use super::operation::as_failure;
use super::parameters::{Armed, IvSource};
use super::round_trip::{RoundTrip, may_not_tell};
use super::shapes::{CallSetup, KeptResult, KeptResults, ShapeWork, shape_work};
use super::shared::Shared;
use super::watch::CallWatch;
use crate::catalogue::{Parameters, Variant, find_label};
use crate::material::{Output, gcm_iv};
use crate::module::Session;
use crate::protocol::{Job, KeyUse, LaneReady, Ring};

/// One operation of the case.
pub(super) struct CaseLane {
    pub(super) variant: Variant,
    pub(super) keys: Vec<Key>,
    /// The prepared inputs of each key, by the number of the key.
    inputs: Vec<Arc<[PreparedInput]>>,
    /// Only the token can tell whether a result is right.
    by_token: bool,
    /// Objects that inputs became.
    imported: Vec<CK_OBJECT_HANDLE>,
}

/// Which thread lanes are built for.
#[derive(Clone, Copy)]
pub(super) struct LaneThread<'a> {
    pub(super) index: usize,
    /// Its number in the run.
    pub(super) worker: u32,
    /// Memory for its results.
    pub(super) keep_bytes: u64,
    /// Results beyond this number need not be kept.
    pub(super) limit: u64,
    pub(super) seed: u64,
    pub(super) place: &'a tapstone_worker::BoardCell,
}

impl CaseLane {
    /// An operation whose inputs are still to come.
    pub(super) fn new(variant: Variant, keys: Vec<Key>) -> Self {
        Self { variant, keys, inputs: Vec::new(), by_token: false, imported: Vec::new() }
    }

    fn work(&self) -> &'static dyn ShapeWork {
        shape_work(self.variant.shape)
    }

    /// What the controller needs to know of the keys.
    pub(super) fn ready(&self, shared: &Shared) -> LaneReady {
        LaneReady {
            keys: self.keys.iter().map(|key| key.ready.clone()).collect(),
            hardware: self.variant.mechanism.and_then(|mechanism| {
                let info = shared.module.mechanism(shared.slot, mechanism.number());
                info.ok().map(|info| info.hardware())
            }),
        }
    }

    /// Takes the inputs for the next key, and imports those that have to be objects.
    pub(super) fn take_ring(
        &mut self,
        main: &Session,
        first_worker: u32,
        mut ring: Ring,
    ) -> Result<(), Pkcs11Failure> {
        self.by_token |= ring.by_token;
        if ring.by_token && self.work().token_can_make_inputs() {
            self.seal(main, first_worker, &mut ring)?;
        }
        let mut prepared = Vec::with_capacity(ring.inputs.ring.len());
        for input in ring.inputs.ring {
            let object = self.work().import_input(main, self.variant.key, &input.message)?;
            self.imported.extend(object);
            let object = object.unwrap_or(CK_INVALID_HANDLE);
            let bytes = OfferedBytes::new(input.message);
            prepared.push(PreparedInput { bytes, iv: input.iv, object });
        }
        // A search runs among more objects than it asks for.
        if let Parameters::Objects { count } = self.variant.parameters {
            let asked: Vec<&[u8]> = prepared.iter().map(|input| input.bytes.original()).collect();
            for label in (0..count).map(find_label) {
                if !asked.contains(&label.as_bytes()) {
                    self.imported.push(main.create_labelled_object(&label)?);
                }
            }
        }
        self.inputs.push(prepared.into());
        Ok(())
    }

    /// Lets the token make the cipher texts that it is to decrypt.
    fn seal(
        &self,
        main: &Session,
        first_worker: u32,
        ring: &mut Ring,
    ) -> Result<(), Pkcs11Failure> {
        let Some(key) = self.keys.get(self.inputs.len()) else { return Ok(()) };
        let token = RoundTrip { session: main, variant: &self.variant, key: key.handle };
        for (number, input) in ring.inputs.ring.iter_mut().enumerate() {
            if matches!(self.variant.parameters, Parameters::Gcm { .. }) {
                input.iv = gcm_iv(first_worker, SEALING + number as u64).to_vec();
            }
            input.message = token.encrypt(&input.message, &input.iv)?;
        }
        Ok(())
    }

    /// What one thread performs the operation with.
    pub(super) fn for_thread(
        &self,
        job: &Job,
        shared: &Arc<Shared>,
        session: &Session,
        thread: LaneThread<'_>,
    ) -> Result<Lane, Pkcs11Failure> {
        let variant = &self.variant;
        let kept = self.work().kept_results();
        let result_bytes = variant.output_capacity_bytes().max(size_of::<CK_OBJECT_HANDLE>());
        let size = CaptureSize {
            result_bytes,
            lengths: variant.output_lengths(),
            memory_bytes: if job.verify && kept.has_bytes() { thread.keep_bytes } else { 0 },
            limit: thread.limit,
        };
        let mut lane = Lane {
            module: Arc::clone(&shared.module),
            session: session.handle,
            worker: thread.worker,
            calls: self.work().timed_calls(&self.call_setup(job, shared))?,
            armed: Armed::new(variant, self.work().iv_source(variant)),
            keys: self.keyed(job.key_use, thread.index),
            capture: Capture::new(size, thread.seed).map_err(|_| OUT_OF_MEMORY)?,
            offered: OfferedInput::default(),
            returned_length: 0,
            objects: KeptObjects::new(Vec::new(), thread.seed),
        };
        if let Some(limits) = kept.object_limits()
            && job.verify
            && thread.limit > 0
        {
            let counted = thread.limit != u64::MAX;
            let most = if counted { limits.in_counted_case } else { limits.in_window };
            let stand_ins = stand_ins(&mut lane, most.min(thread.limit), thread.place)?;
            lane.objects = KeptObjects::new(stand_ins, thread.seed);
        }
        Ok(lane)
    }

    fn call_setup<'a>(&'a self, job: &'a Job, shared: &'a Shared) -> CallSetup<'a> {
        let asks_for_pin = self.keys.first().is_some_and(|key| key.ready.always_authenticate);
        CallSetup {
            shared,
            variant: &self.variant,
            label: job.run.as_bytes(),
            new_keys: job.new_keys,
            new_key_id: keys::new_key_id(job.first_worker),
            readable: job.verify,
            key_pin: shared.login.pin().filter(|_| asks_for_pin).cloned(),
            inputs: self.inputs.first().map_or(&[], |ring| &ring[..]),
        }
    }

    /// The keys that one thread uses.
    fn keyed(&self, key_use: KeyUse, thread: usize) -> Vec<Keyed> {
        if self.keys.is_empty() {
            let inputs = self.inputs.first().cloned().unwrap_or_else(|| [].into());
            return vec![Keyed { key: CK_INVALID_HANDLE, inputs }];
        }
        let keyed = |(key, inputs): (&Key, &Arc<[PreparedInput]>)| Keyed {
            key: key.handle,
            inputs: Arc::clone(inputs),
        };
        let mut all: Vec<Keyed> = self.keys.iter().zip(&self.inputs).map(keyed).collect();
        if key_use == KeyUse::PerThread {
            all = vec![all.swap_remove(key_use.key(thread, 0, all.len()))];
        }
        all
    }

    /// What one thread kept, as the verifier wants it.
    pub(super) fn outputs(&self, lane: &Lane, session: &Session) -> Vec<Output> {
        match self.work().kept_results() {
            KeptResults::Nothing => Vec::new(),
            KeptResults::Bytes => self.kept_bytes(lane, session),
            KeptResults::Objects(_) => {
                let kept = lane.objects.counted();
                let output = |(operation, made): (u64, MadeObjects)| {
                    let bytes = self.value(session, made);
                    Output { worker: lane.worker, operation, iv: None, bytes }
                };
                kept.map(output).collect()
            }
            KeptResults::BytesAndObjects(_) => {
                let kept = lane.objects.counted();
                let output = |(operation, made): (u64, MadeObjects)| {
                    let mut texts = lane.capture.results();
                    let text = texts.find(|(number, ..)| *number == operation);
                    let text = text.map(|(_, _, text)| text).unwrap_or_default();
                    let bytes = [text, &self.value(session, made)].concat();
                    Output { worker: lane.worker, operation, iv: None, bytes }
                };
                kept.map(output).collect()
            }
        }
    }

    fn kept_bytes(&self, lane: &Lane, session: &Session) -> Vec<Output> {
        let output = |(operation, iv, result): (u64, &[u8], &[u8])| {
            let bytes = if self.by_token {
                self.round_trip(lane, session, operation, iv, result)?
            } else {
                self.work().judged_result(session, result)
            };
            Some(Output { worker: lane.worker, operation, iv: self.own_iv(iv), bytes })
        };
        lane.capture.results().filter_map(output).collect()
    }

    /// The message that a result belongs to, as the token tells it; empty if the token says that
    /// the result is wrong. `None`: it may not tell.
    fn round_trip(
        &self,
        lane: &Lane,
        session: &Session,
        operation: u64,
        iv: &[u8],
        result: &[u8],
    ) -> Option<Vec<u8>> {
        let (key, input) = lane.used(operation);
        let iv_bytes = match self.variant.parameters {
            Parameters::Gcm { iv_bytes, .. } => iv_bytes,
            Parameters::Iv { bytes } => bytes,
            _ => 0,
        };
        // A counter block stays in the parameters; the other modes leave their IV with the result.
        let iv = if iv_bytes == 0 { &input.iv[..] } else { &iv[..iv_bytes] };
        let token = RoundTrip { session, variant: &self.variant, key };
        let kept = KeptResult { result, iv, message: input.bytes.original() };
        match self.work().message_by_token(&token, &kept)? {
            Ok(message) => Some(message),
            Err(failure) if may_not_tell(failure.code) => None,
            Err(_) => Some(Vec::new()),
        }
    }

    /// The IV that the operation was done with, where the token may have written its own.
    fn own_iv(&self, iv: &[u8]) -> Option<Vec<u8>> {
        let counted = self.work().iv_source(&self.variant) == IvSource::WorkerCounter;
        match self.variant.parameters {
            Parameters::Gcm { iv_bytes, .. } if counted => Some(iv[..iv_bytes].to_vec()),
            _ => None,
        }
    }

    fn value(&self, session: &Session, made: MadeObjects) -> Vec<u8> {
        let attribute = self.work().judged_attribute(self.variant.key);
        session.attribute(made[0], attribute).unwrap_or_default()
    }

    /// Destroys the objects that inputs became.
    pub(super) fn destroy_imported(&mut self, main: &Session) -> Result<(), Pkcs11Failure> {
        let mut outcome = Ok(());
        for object in self.imported.drain(..) {
            outcome = outcome.and(main.destroy_object(object));
        }
        outcome
    }
}

/// Objects for the places of what will be kept, made by the operation itself.
fn stand_ins(
    lane: &mut Lane,
    places: u64,
    board: &tapstone_worker::BoardCell,
) -> Result<Vec<MadeObjects>, Pkcs11Failure> {
    let mut watch = CallWatch::new(board.clone(), false);
    let mut made = Vec::new();
    // One more than places: the last object waits for the next operation.
    for number in 0..=places {
        lane.objects = KeptObjects::new(vec![NO_OBJECTS; 2], 0);
        let operation = STAND_IN_OPERATIONS + number;
        lane.try_once(operation, &mut watch).map_err(as_failure)?;
        made.extend(lane.objects.take_all().into_iter().filter(|made| *made != NO_OBJECTS));
    }
    Ok(made)
}

/// Buffers for results could not be made.
const OUT_OF_MEMORY: Pkcs11Failure =
    Pkcs11Failure { call: Pkcs11Function::C_OpenSession, code: Rv(CKR_HOST_MEMORY as u64) };

/// Numbers of operations that only make stand-ins: no IV depends on them.
const STAND_IN_OPERATIONS: u64 = 0;

/// Numbers, for their IVs, of the cipher texts that the token makes for itself: below those of any
/// run, above those of trials.
const SEALING: u64 = 1 << 32;
