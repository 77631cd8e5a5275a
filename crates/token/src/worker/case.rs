//! A row in a worker process: its keys, its inputs, and the lanes that threads are given.

use std::sync::Arc;

use cryptoki_sys::*;
use tapstone_names::pkcs11::{Pkcs11Failure as Failure, Pkcs11Function as Call, Rv};

use super::bench::Shared;
use super::capture::Capture;
use super::kept_objects::KeptObjects;
use super::keys::{self, Key, KeyReference};
use super::lane::{Keyed, Lane, Made, Make, Prepared, Steps};
use super::parameters::Armed;
use super::round_trip::RoundTrip;
use super::watch::Watch;
use crate::catalogue::{InputKind, KeySpec, Parameters, Shape, Variant, find_label};
use crate::material::{Output, gcm_iv};
use crate::module::{RawTemplate, Session, Template};
use crate::protocol::{Job, KeyReady, KeyUse, LaneReady, Login, Ring, Trouble};

/// What the process holds for the row that is measured.
pub(super) struct Row {
    pub(super) job: Job,
    pub(super) lanes: Vec<RowLane>,
    /// Objects and sessions that only have to be there.
    extra: Vec<CK_OBJECT_HANDLE>,
    _idle: Vec<Session>,
}

/// One operation of the row.
pub(super) struct RowLane {
    variant: Variant,
    pub(super) keys: Vec<Key>,
    /// By key.
    inputs: Vec<Arc<[Prepared]>>,
    /// Only the token can tell whether a result is right.
    by_token: bool,
    /// Objects that inputs became.
    imported: Vec<CK_OBJECT_HANDLE>,
}

/// Objects of a thread that are kept for verification: of a window, and at most of a counted row,
/// which is to be verified whole. Each costs room on the token while the row runs.
const KEPT_SECRETS: (u64, u64) = (64, 4096);

/// Pairs are slow to make, and as many have to be made before the row starts.
const KEPT_PAIRS: (u64, u64) = (4, 64);

impl Row {
    /// Makes or finds the keys. What was made before a failure is gone again.
    pub(super) fn prepare(shared: &Shared, main: &Session, job: Job) -> Result<Self, Trouble> {
        let maker = keys::Maker {
            session: main,
            run: &job.run,
            first_worker: job.first_worker,
            verify: job.verify,
            read_only: shared.read_only,
            private: shared.login != Login::None,
        };
        let mut lanes: Vec<RowLane> = Vec::new();
        for (index, lane) in job.lanes.iter().enumerate() {
            match maker.keys(index as u8, &lane.variant, &lane.keys) {
                Ok(keys) => lanes.push(RowLane {
                    variant: lane.variant.clone(),
                    keys,
                    inputs: Vec::new(),
                    by_token: false,
                    imported: Vec::new(),
                }),
                Err(trouble) => {
                    for lane in &mut lanes {
                        keys::destroy(main, &mut lane.keys).ok();
                    }
                    return Err(trouble);
                }
            }
        }
        let mut row = Self { job, lanes, extra: Vec::new(), _idle: Vec::new() };
        match row.add_company(shared, main) {
            Ok(()) => Ok(row),
            Err(failure) => {
                row.destroy(main).ok();
                Err(Trouble::Call { lane: 0, failure })
            }
        }
    }

    /// Objects and sessions besides those that are measured.
    fn add_company(&mut self, shared: &Shared, main: &Session) -> Result<(), Failure> {
        for number in 0..self.job.extra_objects {
            let label = format!("{}-{number}", self.job.run);
            self.extra.push(create_object(main, &label)?);
        }
        for _ in 0..self.job.idle_sessions {
            self._idle.push(Session::open(&shared.module, shared.slot, shared.read_only)?);
        }
        Ok(())
    }

    /// What the lab needs to know of the keys.
    pub(super) fn ready(&self, shared: &Shared) -> Vec<LaneReady> {
        let ready = |lane: &RowLane| LaneReady {
            keys: lane.keys.iter().map(|key| key.ready.clone()).collect::<Vec<KeyReady>>(),
            hardware: lane.variant.mechanism.and_then(|mechanism| {
                let info = shared.module.mechanism(shared.slot, mechanism.number());
                info.ok().map(|info| info.hardware())
            }),
        };
        self.lanes.iter().map(ready).collect()
    }

    /// Takes the inputs, and imports those that have to be objects.
    pub(super) fn take_inputs(
        &mut self,
        main: &Session,
        inputs: Vec<Vec<Ring>>,
    ) -> Vec<Result<(), Failure>> {
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
        thread: Thread<'_>,
    ) -> Result<Vec<Lane>, Failure> {
        let share = thread.keep_bytes / self.lanes.len().max(1) as u64;
        let thread = Thread { keep_bytes: share, ..thread };
        self.lanes.iter().map(|lane| lane.for_thread(self, shared, session, thread)).collect()
    }

    /// The row logs in and out itself.
    pub(super) fn is_login(&self) -> bool {
        self.lanes.iter().any(|lane| lane.variant.shape == Shape::Login)
    }

    /// By lane, what the keys are found by after a reconnection.
    pub(super) fn references(&self) -> Vec<Vec<KeyReference>> {
        let of = |lane: &RowLane| lane.keys.iter().map(|key| key.reference.clone()).collect();
        self.lanes.iter().map(of).collect()
    }

    /// What finds the keys that this row made on the token.
    pub(super) fn made_on_token(&self) -> Vec<KeyReference> {
        let keys = self.lanes.iter().flat_map(|lane| &lane.keys);
        keys.filter(|key| key.outlives_sessions()).map(|key| key.reference.clone()).collect()
    }

    /// Destroys what was made for the row.
    pub(super) fn destroy(&mut self, main: &Session) -> Result<(), Failure> {
        let mut outcome = Ok(());
        for lane in &mut self.lanes {
            for object in lane.imported.drain(..) {
                outcome = outcome.and(main.destroy_object(object));
            }
            outcome = outcome.and(keys::destroy(main, &mut lane.keys));
        }
        for object in self.extra.drain(..) {
            outcome = outcome.and(main.destroy_object(object));
        }
        outcome
    }
}

/// Which thread lanes are built for.
#[derive(Clone, Copy)]
pub(super) struct Thread<'a> {
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

impl RowLane {
    fn take_ring(
        &mut self,
        main: &Session,
        first_worker: u32,
        mut ring: Ring,
    ) -> Result<(), Failure> {
        self.by_token |= ring.by_token;
        if ring.by_token && self.variant.shape == Shape::Decrypt {
            self.seal(main, first_worker, &mut ring)?;
        }
        let mut prepared = Vec::with_capacity(ring.inputs.ring.len());
        for input in ring.inputs.ring {
            let object = match (self.variant.input, self.variant.shape) {
                (InputKind::KeyToWrap, _) => import_secret(main, &input.message)?,
                (InputKind::PeerPublicKey, Shape::Encapsulate) => {
                    import_public(main, self.variant.key, &input.message)?
                }
                (InputKind::Label, _) => {
                    create_object(main, &String::from_utf8_lossy(&input.message))?
                }
                _ => CK_INVALID_HANDLE,
            };
            if object != CK_INVALID_HANDLE {
                self.imported.push(object);
            }
            prepared.push(Prepared { bytes: input.message, iv: input.iv, object });
        }
        // A search runs among more objects than it asks for.
        if let Parameters::Objects { count } = self.variant.parameters {
            let asked: Vec<&[u8]> = prepared.iter().map(|input| &input.bytes[..]).collect();
            for label in (0..count).map(find_label) {
                if !asked.contains(&label.as_bytes()) {
                    self.imported.push(create_object(main, &label)?);
                }
            }
        }
        self.inputs.push(prepared.into());
        Ok(())
    }

    /// Lets the token make the cipher texts that it is to decrypt.
    fn seal(&self, main: &Session, first_worker: u32, ring: &mut Ring) -> Result<(), Failure> {
        let Some(key) = self.keys.get(self.inputs.len()) else { return Ok(()) };
        let seal = RoundTrip { session: main, variant: &self.variant, key: key.handle };
        for (number, input) in ring.inputs.ring.iter_mut().enumerate() {
            if matches!(self.variant.parameters, Parameters::Gcm { .. }) {
                input.iv = gcm_iv(first_worker, SEALING + number as u64).to_vec();
            }
            input.message = seal.seal(&input.message, &input.iv)?;
        }
        Ok(())
    }

    fn for_thread(
        &self,
        row: &Row,
        shared: &Arc<Shared>,
        session: &Session,
        thread: Thread<'_>,
    ) -> Result<Lane, Failure> {
        let variant = &self.variant;
        let result_bytes = variant.output_capacity_bytes().max(size_of::<CK_OBJECT_HANDLE>());
        // Objects stand for their results; sessions have none.
        let keeps_bytes = row.job.verify
            && !matches!(variant.shape, Shape::OpenSession | Shape::Login)
            && (makes(variant.shape).is_none() || variant.shape == Shape::Encapsulate);
        let memory = if keeps_bytes { thread.keep_bytes } else { 0 };
        let mut lane = Lane {
            module: Arc::clone(&shared.module),
            session: session.handle,
            worker: thread.worker,
            steps: self.steps(row, shared)?,
            armed: Armed::new(variant),
            keys: self.keyed(row.job.key_use, thread.index),
            capture: Capture::new(result_bytes, memory, thread.limit, thread.seed),
            objects: KeptObjects::new(Vec::new(), thread.seed),
        };
        if row.job.verify && thread.limit > 0 && makes(variant.shape).is_some() {
            let stand_ins = self.stand_ins(&mut lane, thread)?;
            lane.objects = KeptObjects::new(stand_ins, thread.seed);
        }
        Ok(lane)
    }

    /// The keys that one thread uses.
    fn keyed(&self, key_use: KeyUse, thread: usize) -> Vec<Keyed> {
        if self.keys.is_empty() {
            let inputs = self.inputs.first().cloned().unwrap_or_else(|| [].into());
            return vec![Keyed { key: CK_INVALID_HANDLE, inputs }];
        }
        let keyed = |(key, inputs): (&Key, &Arc<[Prepared]>)| Keyed {
            key: key.handle,
            inputs: Arc::clone(inputs),
        };
        let mut all: Vec<Keyed> = self.keys.iter().zip(&self.inputs).map(keyed).collect();
        if key_use == KeyUse::PerThread {
            all = vec![all.swap_remove(key_use.key(thread, 0, all.len()))];
        }
        all
    }

    fn steps(&self, row: &Row, shared: &Shared) -> Result<Steps, Failure> {
        let f = &shared.module.functions;
        let variant = &self.variant;
        let login = self.keys.first().filter(|key| key.ready.always_authenticate);
        let login = login.and(shared.login.pin().cloned());
        let keyed = |init: (Call, _), run: (Call, _)| {
            Ok(Steps::Keyed {
                init: (init.0, present(init.0, init.1)?),
                run: (run.0, present(run.0, run.1)?),
                login: login.clone(),
            })
        };
        match variant.shape {
            Shape::Sign => keyed((Call::C_SignInit, f.C_SignInit), (Call::C_Sign, f.C_Sign)),
            Shape::Encrypt => {
                keyed((Call::C_EncryptInit, f.C_EncryptInit), (Call::C_Encrypt, f.C_Encrypt))
            }
            Shape::Decrypt => {
                keyed((Call::C_DecryptInit, f.C_DecryptInit), (Call::C_Decrypt, f.C_Decrypt))
            }
            Shape::Digest => Ok(Steps::Digest {
                init: present(Call::C_DigestInit, f.C_DigestInit)?,
                run: present(Call::C_Digest, f.C_Digest)?,
            }),
            Shape::Random => Ok(Steps::Random { bytes: variant.message_bytes }),
            Shape::Wrap => Ok(Steps::Wrap),
            Shape::FindObjects => Ok(Steps::Find { templates: self.searches() }),
            Shape::OpenSession => Ok(Steps::OpenSession {
                slot: shared.slot,
                flags: if shared.read_only {
                    CKF_SERIAL_SESSION
                } else {
                    CKF_SERIAL_SESSION | CKF_RW_SESSION
                },
            }),
            Shape::Login => Ok(Steps::Login { pin: shared.login.pin().cloned() }),
            Shape::Derive
            | Shape::Unwrap
            | Shape::GenerateKey
            | Shape::GenerateKeyPair
            | Shape::Encapsulate
            | Shape::Decapsulate => Ok(self.make_steps(row, shared.login != Login::None)),
        }
    }

    fn make_steps(&self, row: &Row, private: bool) -> Steps {
        let variant = &self.variant;
        let how = makes(variant.shape).unwrap_or(Make::GenerateKey);
        let readable = row.job.verify;
        let object =
            Template::new().flag(CKA_TOKEN, false).bytes(CKA_LABEL, row.job.run.as_bytes());
        let secret = |kind: CK_KEY_TYPE| {
            object
                .clone()
                .number(CKA_CLASS, CKO_SECRET_KEY)
                .number(CKA_KEY_TYPE, kind)
                .flag(CKA_PRIVATE, private)
                .flag(CKA_SENSITIVE, !readable)
                .flag(CKA_EXTRACTABLE, readable)
        };
        let (template, other) = match how {
            Make::Derive => {
                let bytes = match variant.parameters {
                    Parameters::Ecdh { secret_bytes } => secret_bytes,
                    _ => 0,
                };
                (secret(CKK_GENERIC_SECRET).number(CKA_VALUE_LEN, bytes as CK_ULONG), None)
            }
            Make::Unwrap => (secret(CKK_AES).flag(CKA_ENCRYPT, true), None),
            Make::Encapsulate | Make::Decapsulate => {
                (secret(CKK_GENERIC_SECRET).number(CKA_VALUE_LEN, 32), None)
            }
            Make::GenerateKey => {
                (keys::secret(variant, readable, private).flag(CKA_TOKEN, false), None)
            }
            Make::GenerateKeyPair => {
                let public = keys::public_templates(variant).swap_remove(0);
                let label = row.job.run.as_bytes();
                let mark = |half: Template| half.flag(CKA_TOKEN, false).bytes(CKA_LABEL, label);
                (mark(public), Some(mark(keys::private(variant, private))))
            }
        };
        let private = other.unwrap_or_default().into_raw();
        Steps::Make { how, template: template.into_raw(), private }
    }

    fn searches(&self) -> Vec<RawTemplate> {
        let search = |input: &Prepared| Template::new().bytes(CKA_LABEL, &input.bytes).into_raw();
        self.inputs.first().map(|ring| ring.iter().map(search).collect()).unwrap_or_default()
    }

    /// Objects for the places of what will be kept, made by the operation itself.
    fn stand_ins(&self, lane: &mut Lane, thread: Thread<'_>) -> Result<Vec<Made>, Failure> {
        let pairs = self.variant.shape == Shape::GenerateKeyPair;
        let (of_window, of_count) = if pairs { KEPT_PAIRS } else { KEPT_SECRETS };
        let most = if thread.limit == u64::MAX { of_window } else { of_count };
        let mut watch = Watch::new(thread.place.clone(), false);
        let mut made = Vec::new();
        // One more than places: the last object waits for the next operation.
        for number in 0..=most.min(thread.limit) {
            lane.objects = KeptObjects::new(vec![NO_OBJECT; 2], 0);
            let operation = STAND_IN_OPERATIONS + number;
            let performed = lane.perform(operation, &mut watch);
            watch.leave();
            performed.map_err(super::lane::failure)?;
            made.extend(lane.objects.take_all().into_iter().filter(|made| *made != NO_OBJECT));
        }
        Ok(made)
    }

    /// What one thread kept, as the verifier wants it.
    pub(super) fn outputs(&self, lane: &Lane, session: &Session) -> Vec<Output> {
        let worker = lane.worker;
        let objects = lane.objects.counted().map(|(operation, made)| {
            let mut bytes = self.value(session, made);
            if self.variant.shape == Shape::Encapsulate {
                let text = lane.capture.results().find(|(number, ..)| *number == operation);
                bytes.splice(0..0, text.map(|(_, _, text)| text.to_vec()).unwrap_or_default());
            }
            Output { worker, operation, iv: None, bytes }
        });
        let mut outputs: Vec<Output> = objects.collect();
        if makes(self.variant.shape).is_none() {
            outputs.extend(lane.capture.results().filter_map(|(operation, iv, result)| {
                let bytes = if self.by_token {
                    self.round_trip(lane, session, operation, iv, result)?
                } else {
                    self.result(session, result)
                };
                Some(Output { worker, operation, iv: self.own_iv(iv), bytes })
            }));
        }
        outputs
    }

    /// The message that a result belongs to, by the token's own word.
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
        let trip = RoundTrip { session, variant: &self.variant, key };
        trip.message_of(result, iv, &input.bytes)
    }

    /// The IV that the operation was done with, where the token may have written its own.
    fn own_iv(&self, iv: &[u8]) -> Option<Vec<u8>> {
        match (self.variant.parameters, self.variant.shape) {
            (Parameters::Gcm { iv_bytes, .. }, Shape::Encrypt) => Some(iv[..iv_bytes].to_vec()),
            _ => None,
        }
    }

    /// A search's result is a handle, and is judged by the label of the object.
    fn result(&self, session: &Session, result: &[u8]) -> Vec<u8> {
        match (self.variant.shape, <[u8; size_of::<CK_OBJECT_HANDLE>()]>::try_from(result)) {
            (Shape::FindObjects, Ok(handle)) => session
                .attribute(CK_OBJECT_HANDLE::from_ne_bytes(handle), CKA_LABEL)
                .unwrap_or_default(),
            _ => result.to_vec(),
        }
    }

    fn value(&self, session: &Session, made: Made) -> Vec<u8> {
        let attribute = match (self.variant.shape, self.variant.key) {
            (Shape::GenerateKeyPair, KeySpec::Rsa { .. }) => CKA_MODULUS,
            (Shape::GenerateKeyPair, KeySpec::Ec { .. } | KeySpec::Ed25519) => CKA_EC_POINT,
            _ => CKA_VALUE,
        };
        session.attribute(made[0], attribute).unwrap_or_default()
    }
}

const NO_OBJECT: Made = [CK_INVALID_HANDLE; 2];

/// Numbers of operations that only make stand-ins: no IV depends on them.
const STAND_IN_OPERATIONS: u64 = 0;

/// Numbers, for their IVs, of the cipher texts that the token makes for itself: below those of any
/// run, above those of trials.
const SEALING: u64 = 1 << 32;

fn makes(shape: Shape) -> Option<Make> {
    Some(match shape {
        Shape::Derive => Make::Derive,
        Shape::Unwrap => Make::Unwrap,
        Shape::GenerateKey => Make::GenerateKey,
        Shape::GenerateKeyPair => Make::GenerateKeyPair,
        Shape::Encapsulate => Make::Encapsulate,
        Shape::Decapsulate => Make::Decapsulate,
        _ => return None,
    })
}

fn present<F>(call: Call, function: Option<F>) -> Result<F, Failure> {
    function.ok_or(Failure { call, code: Rv(CKR_FUNCTION_NOT_SUPPORTED as u64) })
}

/// A small public object that only has a label.
fn create_object(session: &Session, label: &str) -> Result<CK_OBJECT_HANDLE, Failure> {
    let template = Template::new()
        .number(CKA_CLASS, CKO_DATA)
        .flag(CKA_TOKEN, false)
        .flag(CKA_PRIVATE, false)
        .bytes(CKA_LABEL, label.as_bytes())
        .bytes(CKA_VALUE, label.as_bytes());
    session.create_object(template)
}

/// A key to be wrapped.
fn import_secret(session: &Session, value: &[u8]) -> Result<CK_OBJECT_HANDLE, Failure> {
    let template = Template::new()
        .number(CKA_CLASS, CKO_SECRET_KEY)
        .number(CKA_KEY_TYPE, CKK_AES)
        .flag(CKA_TOKEN, false)
        .flag(CKA_PRIVATE, false)
        .flag(CKA_SENSITIVE, false)
        .flag(CKA_EXTRACTABLE, true)
        .flag(CKA_ENCRYPT, true)
        .bytes(CKA_VALUE, value);
    session.create_object(template)
}

/// A public key whose private half only the verifier has.
fn import_public(
    session: &Session,
    spec: KeySpec,
    value: &[u8],
) -> Result<CK_OBJECT_HANDLE, Failure> {
    let mut template = Template::new()
        .number(CKA_CLASS, CKO_PUBLIC_KEY)
        .number(CKA_KEY_TYPE, spec.key_type().unwrap_or(CKK_GENERIC_SECRET))
        .flag(CKA_TOKEN, false)
        .flag(CKA_PRIVATE, false)
        .flag(CKA_ENCAPSULATE, true)
        .bytes(CKA_VALUE, value);
    if let Some(set) = spec.parameter_set() {
        template = template.number(CKA_PARAMETER_SET, set);
    }
    session.create_object(template)
}

/// One operation of each lane, with the real parameters: a mechanism list lies.
pub(super) fn try_lanes(
    row: &Row,
    shared: &Arc<Shared>,
    main: &Session,
    thread: Thread<'_>,
) -> Vec<Result<(), Failure>> {
    let try_one = |lane: &RowLane| {
        let mut prepared = lane.for_thread(row, shared, main, Thread { limit: 0, ..thread })?;
        let mut watch = Watch::new(thread.place.clone(), false);
        let performed = prepared.perform(thread.seed, &mut watch);
        watch.leave();
        performed.map_err(super::lane::failure)
    };
    row.lanes.iter().map(try_one).collect()
}
