//! The calls of a recorded thread as steps, or as skipped.

use std::collections::{BTreeMap, HashMap, HashSet};

use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::Pkcs11Function;
use tapstone_token_operations::catalogue::{Curve, KeySpec};
use tapstone_workload::{WorkloadCall, WorkloadThread};

use super::made::{CallPlace, Maker, Makers};
use super::works::{WORKS, is_for_key, work_of};
use super::{MadeKeys, MappedKey, SkipReason};
use crate::mechanisms::known_mechanism;
use crate::steps::{
    Due, KeyOrder, MadeObject, MechanismUse, PreparedInput, PreparedKind, ReplayParameters,
    ReplayStep, StepInput,
};

/// CKR_BUFFER_TOO_SMALL: the operation goes on.
pub(crate) const BUFFER_TOO_SMALL: u64 = 0x150;
/// Room for a result beyond what the recorded one took: another key may make a longer one.
pub(crate) const SPARE_BYTES: u32 = 1_024;

/// Plans the threads of one process.
pub(super) struct ThreadPlanner<'a> {
    observed: BTreeMap<u32, &'a MappedKey>,
    makers: &'a Makers,
    process: u32,
    /// Keys that this process makes.
    pub(super) keys: Vec<KeyOrder>,
    /// Their places, by the recorded object.
    known_keys: HashMap<u32, u32>,
    pub(super) sessions: Vec<PlannedSession>,
    known_sessions: HashMap<u32, u32>,
    /// Sessions that a call opens, and those that one closes.
    opened: HashSet<u32>,
    closed: HashSet<u32>,
    /// Places of objects that calls make, by the recorded object.
    known_objects: HashMap<u32, u32>,
    /// Keys that its calls make.
    pub(super) made: Vec<MadeKeys>,
    /// Curves on which keys are agreed upon.
    pub(super) curves: Vec<Curve>,
    pub(super) prepared: Vec<PreparedInput>,
    known_prepared: HashMap<PreparedInput, u32>,
    pub(super) longest_input: u32,
    pub(super) skipped: SkipCounts,
}

pub(super) struct PlannedSession {
    /// It was open before the first call that uses it.
    pub(super) opened_before: bool,
}

#[derive(Default)]
pub(super) struct SkipCounts(BTreeMap<(&'static str, SkipReason), u64>);

impl SkipCounts {
    fn add(&mut self, function: &'static str, reason: SkipReason) {
        *self.0.entry((function, reason)).or_default() += 1;
    }

    pub(super) fn drain_all(
        &mut self,
    ) -> impl Iterator<Item = ((&'static str, SkipReason), u64)> + use<> {
        std::mem::take(&mut self.0).into_iter()
    }
}

/// Which work an operation does, and with what.
#[derive(Clone, Copy)]
struct Begun {
    mechanism: MechanismUse,
    used: UsedObject,
    is_raw_rsa: bool,
    /// In parts: the input that they are of, and how much of it was passed already.
    parts: Option<PassedParts>,
}

/// What a call uses: a key that the replay makes before it begins, or an object that a call makes.
#[derive(Clone, Copy, Default)]
struct UsedObject {
    key: Option<u32>,
    object: Option<u32>,
}

#[derive(Clone, Copy)]
struct PassedParts {
    prepared: u32,
    passed: u32,
}

/// What becomes of the pauses before calls that are left out: they are part of the next one's.
#[derive(Default)]
struct Pause {
    time: Nanos,
    after_wait: bool,
}

impl<'a> ThreadPlanner<'a> {
    pub(super) fn new(observed: &'a [MappedKey], makers: &'a Makers, process: u32) -> Self {
        Self {
            observed: observed.iter().map(|key| (key.object, key)).collect(),
            makers,
            process,
            keys: Vec::new(),
            known_keys: HashMap::new(),
            sessions: Vec::new(),
            known_sessions: HashMap::new(),
            opened: HashSet::new(),
            closed: HashSet::new(),
            known_objects: HashMap::new(),
            made: Vec::new(),
            curves: Vec::new(),
            prepared: Vec::new(),
            known_prepared: HashMap::new(),
            longest_input: 0,
            skipped: SkipCounts::default(),
        }
    }

    /// The steps of a thread, by its place among those of the workload.
    pub(super) fn steps(&mut self, number: usize, thread: &WorkloadThread) -> Vec<ReplayStep> {
        let mut steps = Vec::new();
        let mut pause = Pause { time: Nanos::ZERO, after_wait: true };
        let mut operations: HashMap<(u32, &'static str), Result<Begun, SkipReason>> =
            HashMap::new();
        let followers = Followers::of(&thread.calls);
        for (place, (begin, call)) in thread.timed_calls().enumerate() {
            let before = call.computing.0.saturating_add(call.waiting.0);
            pause.time = Nanos(pause.time.0.saturating_add(before));
            pause.after_wait |= call.after_wait;
            let at = CallPlace { thread: number, place, begin };
            match self.step(call, at, followers.after(place), &mut operations) {
                Err(reason) => self.skipped.add(call.function, reason),
                Ok(mut step) => {
                    step.origin = place as u32;
                    let pause = std::mem::take(&mut pause);
                    step.due = match pause.after_wait {
                        true => Due::At(begin),
                        false => Due::AfterAnswer(pause.time),
                    };
                    steps.push(step);
                }
            }
        }
        steps
    }

    /// What a call is in a replay; `rest` are those after it in its session that are part of the
    /// same work.
    fn step<'c>(
        &mut self,
        call: &WorkloadCall,
        at: CallPlace,
        rest: impl Iterator<Item = &'c WorkloadCall> + Clone,
        operations: &mut HashMap<(u32, &'static str), Result<Begun, SkipReason>>,
    ) -> Result<ReplayStep, SkipReason> {
        let function = call.function;
        if call.unfinished {
            return Err(SkipReason::NeverReturned);
        }
        let maker = self.makers.made_by(call, at).copied();
        let makes = maker.is_some();
        let destroys = function == "C_DestroyObject" && self.made_object(call.object, at).is_some();
        let never = never_replayed(function).filter(|_| !is_for_key(call) && !makes && !destroys);
        if let Some(reason) = never {
            return Err(reason);
        }
        let work = work_of(function);
        let begins = function.ends_with("Init") && work.is_some();
        let goes_on = call.result == 0 || call.result == BUFFER_TOO_SMALL;
        if !goes_on && function != "C_GetAttributeValue" {
            if let (true, Some(work)) = (begins, work) {
                operations.insert((call.session, work), Err(SkipReason::FailedThen));
            }
            return Err(SkipReason::FailedThen);
        }
        let known = Pkcs11Function::named(function).ok_or(SkipReason::UnknownFunction)?;
        let mut step = ReplayStep {
            origin: 0,
            call: known,
            due: Due::AfterAnswer(Nanos::ZERO),
            session: None,
            turn: None,
            is_interrupted: false,
            key: None,
            object: None,
            makes: None,
            mechanism: None,
            input: StepInput::Bytes(call.input_bytes),
            room: room(call),
            only_length: call.only_length,
            shape: call.shape,
            is_judged: false,
        };
        if let (true, Some(work)) = (begins, work) {
            let begun = self.begin(call, at, rest, work);
            operations.insert((call.session, work), begun);
            let begun = begun?;
            step.mechanism = Some(begun.mechanism);
            UsedObject { key: step.key, object: step.object } = begun.used;
            step.input = StepInput::Bytes(0);
        } else if let Some(maker) = maker {
            self.make(call, at, maker, &mut step)?;
        } else if destroys {
            step.object = self.made_object(call.object, at);
        } else if let Some(work) = work {
            let begun = operations.get_mut(&(call.session, work));
            let begun = begun.map(|begun| begun.as_mut().map_err(|reason| *reason)).transpose()?;
            step.input = self.input(call, begun);
        } else if function == "C_Login" {
            let of_session = WORKS.iter().filter_map(|work| operations.get(&(call.session, *work)));
            let mut begun = of_session.filter_map(|begun| begun.ok()?.used.key);
            let asks = |key: u32| self.keys[key as usize].always_authenticate;
            if !begun.any(asks) {
                return Err(SkipReason::LoginHappensOnce);
            }
            step.input = StepInput::Pin;
        } else if function == "C_GetAttributeValue" {
            let used = self.used(call.object, at).unwrap_or_default();
            UsedObject { key: step.key, object: step.object } = used;
        } else if function == "C_GetMechanismInfo" {
            let parameters = crate::steps::ReplayParameters::None;
            let number = call.mechanism.unwrap_or_default();
            step.mechanism = Some(MechanismUse { number, parameters });
        }
        if !matches!(function, "C_FindObjects" | "C_FindObjectsInit") {
            self.longest_input = self.longest_input.max(call.input_bytes);
        }
        if has_session(function) {
            step.session = Some(self.session(call)?);
        }
        Ok(step)
    }

    /// A place for the session of a call.
    fn session(&mut self, call: &WorkloadCall) -> Result<u32, SkipReason> {
        if call.session == 0 {
            return Err(SkipReason::UnknownSession);
        }
        let opens = call.function == "C_OpenSession";
        if opens && !self.opened.insert(call.session) {
            // A recording gives each session a number of its own.
            return Err(SkipReason::UnknownSession);
        }
        // Nor does a session close twice: the second would be another one's by then.
        if call.function == "C_CloseSession" && !self.closed.insert(call.session) {
            return Err(SkipReason::UnknownSession);
        }
        let sessions = &mut self.sessions;
        let place = *self.known_sessions.entry(call.session).or_insert_with(|| {
            sessions.push(PlannedSession { opened_before: true });
            sessions.len() as u32 - 1
        });
        if opens {
            sessions[place as usize].opened_before = false;
        }
        Ok(place)
    }

    fn begin<'c>(
        &mut self,
        call: &WorkloadCall,
        at: CallPlace,
        rest: impl Iterator<Item = &'c WorkloadCall> + Clone,
        work: &'static str,
    ) -> Result<Begun, SkipReason> {
        let known = call.mechanism.and_then(known_mechanism);
        let known = known.filter(|known| !known.is_agreement());
        let known = known.ok_or(SkipReason::UnknownMechanism)?;
        let next = rest.clone().next();
        let in_one = next.is_none_or(|next| next.function == work);
        let mechanism = known.with_parameters(next.map_or(0, |next| next.input_bytes));
        let used = match work {
            "C_Digest" => UsedObject::default(),
            _ => self.used(call.object, at)?,
        };
        let mut begun = Begun { mechanism, used, is_raw_rsa: known.is_raw_rsa(), parts: None };
        if let ("C_Decrypt" | "C_Verify", Some(key), false) = (work, used.key, in_one) {
            // Of RSA without a digest a token knows no parts (PKCS#11 3.1, 6.1).
            let bytes = bytes_of_parts(rest, work).filter(|_| !begun.is_raw_rsa);
            let bytes = bytes.ok_or(SkipReason::InParts)?;
            let kind = match work {
                "C_Verify" => PreparedKind::Signature(bytes),
                _ => PreparedKind::CipherText(bytes),
            };
            let prepared = self.prepare(PreparedInput { key, mechanism, kind });
            self.longest_input = self.longest_input.max(bytes);
            begun.parts = Some(PassedParts { prepared, passed: 0 });
        }
        Ok(begun)
    }

    /// A place for the key that stands for a recorded one.
    fn key(&mut self, object: u32) -> Result<u32, SkipReason> {
        if let Some(place) = self.known_keys.get(&object) {
            return Ok(*place);
        }
        let mapped = self.observed.get(&object).ok_or(SkipReason::UnknownKey)?;
        let spec = mapped.spec.ok_or(SkipReason::UnknownKey)?;
        let MappedKey { uses, always_authenticate, .. } = **mapped;
        // Only private keys ask for it (PKCS#11 3.1, 4.9).
        let always_authenticate = always_authenticate && spec.secret_bytes().is_none();
        self.keys.push(KeyOrder { spec, uses, always_authenticate });
        let place = self.keys.len() as u32 - 1;
        self.known_keys.insert(object, place);
        Ok(place)
    }

    /// What a call uses: what another one made before it, or a key that is made before the replay.
    fn used(&mut self, object: u32, at: CallPlace) -> Result<UsedObject, SkipReason> {
        match self.made_object(object, at) {
            Some(place) => Ok(UsedObject { key: None, object: Some(place) }),
            None => Ok(UsedObject { key: Some(self.key(object)?), object: None }),
        }
    }

    /// The place of an object that a call makes before that one.
    fn made_object(&mut self, object: u32, at: CallPlace) -> Option<u32> {
        self.makers.maker(object, self.process, at)?;
        Some(self.place_of(object))
    }

    fn place_of(&mut self, object: u32) -> u32 {
        let next = self.known_objects.len() as u32;
        *self.known_objects.entry(object).or_insert(next)
    }

    /// How many objects its calls make.
    pub(super) fn objects(&self) -> u32 {
        self.known_objects.len() as u32
    }

    /// A call that makes an object.
    fn make(
        &mut self,
        call: &WorkloadCall,
        at: CallPlace,
        maker: Maker,
        step: &mut ReplayStep,
    ) -> Result<(), SkipReason> {
        let Maker { function, mechanism, base, spec, is_read, certainty, .. } = maker;
        if base != 0 {
            UsedObject { key: step.key, object: step.object } = self.used(base, at)?;
        }
        let known = known_mechanism(mechanism).map(|known| known.with_parameters(0));
        let mut used =
            known.unwrap_or(MechanismUse { number: mechanism, parameters: ReplayParameters::None });
        step.input = StepInput::Bytes(0);
        match (function, step.key) {
            ("C_DeriveKey", _) => {
                let KeySpec::Ec { curve } = self.spec_of(base)? else {
                    return Err(SkipReason::UnknownKey);
                };
                used.parameters = ReplayParameters::Ecdh { curve: self.curve(curve) };
            }
            ("C_UnwrapKey", Some(key)) => {
                let kind = PreparedKind::WrappedKey(spec);
                let wrapped = self.prepare(PreparedInput { key, mechanism: used, kind });
                step.input = StepInput::CipherText(wrapped);
            }
            _ => {}
        }
        step.mechanism = Some(used);
        let uses = self.observed.get(&call.object).map(|known| known.uses).unwrap_or_default();
        step.makes = Some(MadeObject { place: self.place_of(call.object), spec, uses, is_read });
        let same = |known: &&mut MadeKeys| {
            (known.function, known.spec, known.certainty) == (function, spec, certainty)
        };
        match self.made.iter_mut().find(same) {
            Some(known) => known.count += 1,
            None => self.made.push(MadeKeys { function, spec, certainty, count: 1 }),
        }
        Ok(())
    }

    /// The place of a curve.
    fn curve(&mut self, curve: Curve) -> u32 {
        let known = self.curves.iter().position(|known| *known == curve);
        known.unwrap_or_else(|| {
            self.curves.push(curve);
            self.curves.len() - 1
        }) as u32
    }

    /// The kind of a key, whoever makes it.
    fn spec_of(&self, object: u32) -> Result<KeySpec, SkipReason> {
        let made = self.makers.spec(object);
        let known = || self.observed.get(&object)?.spec;
        made.or_else(known).ok_or(SkipReason::UnknownKey)
    }

    fn input(&mut self, call: &WorkloadCall, begun: Option<&mut Begun>) -> StepInput {
        let bytes = call.input_bytes;
        let Some(begun) = begun else { return StepInput::Bytes(bytes) };
        if let Some(PassedParts { prepared, passed }) = &mut begun.parts {
            return match call.function {
                "C_VerifyFinal" => StepInput::Signed(*prepared),
                "C_DecryptFinal" => StepInput::CipherText(*prepared),
                _ => {
                    let part = StepInput::Part { prepared: *prepared, from: *passed, bytes };
                    // A call that asks for a length, or has too little room, takes nothing.
                    let is_taken = !call.only_length && call.result != BUFFER_TOO_SMALL;
                    *passed += if is_taken { bytes } else { 0 };
                    part
                }
            };
        }
        let prepared = |key, kind| PreparedInput { key, mechanism: begun.mechanism, kind };
        match (call.function, begun.used.key) {
            ("C_Verify", Some(key)) => {
                let signature = prepared(key, PreparedKind::Signature(bytes));
                StepInput::Signed(self.prepare(signature))
            }
            ("C_Decrypt", Some(_)) if begun.is_raw_rsa => StepInput::Below(bytes),
            ("C_Decrypt", Some(key)) => {
                let cipher_text = prepared(key, PreparedKind::CipherText(bytes));
                StepInput::CipherText(self.prepare(cipher_text))
            }
            _ if begun.is_raw_rsa => StepInput::Below(bytes),
            _ => StepInput::Bytes(bytes),
        }
    }

    fn prepare(&mut self, input: PreparedInput) -> u32 {
        let prepared = &mut self.prepared;
        *self.known_prepared.entry(input).or_insert_with(|| {
            prepared.push(input);
            prepared.len() as u32 - 1
        })
    }
}

/// For each call of a thread the next one in the same session that is part of the same work.
struct Followers<'c> {
    calls: &'c [WorkloadCall],
    next: Vec<Option<u32>>,
}

impl<'c> Followers<'c> {
    fn of(calls: &'c [WorkloadCall]) -> Self {
        let mut next = vec![None; calls.len()];
        let mut latest: HashMap<(u32, &'static str), u32> = HashMap::new();
        for (place, call) in calls.iter().enumerate().rev() {
            if let Some(work) = work_of(call.function) {
                next[place] = latest.insert((call.session, work), place as u32);
            }
        }
        Self { calls, next }
    }

    /// All of them after that place, in their order.
    fn after(&self, place: usize) -> impl Iterator<Item = &'c WorkloadCall> + Clone + '_ {
        let following = std::iter::successors(self.next[place], |at| self.next[*at as usize]);
        following.map(|at| &self.calls[at as usize])
    }
}

/// How many bytes an operation is given in parts up to its end; `None` where that was not recorded.
fn bytes_of_parts<'c>(
    rest: impl Iterator<Item = &'c WorkloadCall>,
    work: &'static str,
) -> Option<u32> {
    let mut bytes: u32 = 0;
    for call in rest {
        if call.function.ends_with("Init") {
            return None;
        }
        if call.only_length || call.result != 0 {
            continue;
        }
        match call.function.strip_prefix(work)? {
            "Update" => bytes = bytes.checked_add(call.input_bytes)?,
            "Final" => return Some(bytes),
            _ => return None,
        }
    }
    None
}

/// Room for the result of a call.
fn room(call: &WorkloadCall) -> u32 {
    match call.function {
        "C_FindObjects" => call.input_bytes.clamp(1, 4_096),
        "C_OpenSession" => call.detail,
        "C_GenerateKey" | "C_GenerateKeyPair" | "C_UnwrapKey" | "C_DeriveKey" => 0,
        _ if call.result == BUFFER_TOO_SMALL => 1,
        _ => call.output_bytes.max(call.input_bytes).saturating_add(SPARE_BYTES),
    }
}

/// Whether a function that is replayed takes a session.
fn has_session(function: &str) -> bool {
    !matches!(
        function,
        "C_GetInfo"
            | "C_GetSlotList"
            | "C_GetSlotInfo"
            | "C_GetTokenInfo"
            | "C_GetMechanismList"
            | "C_GetMechanismInfo"
    )
}

/// Why a function is never replayed, whatever it was given.
fn never_replayed(function: &str) -> Option<SkipReason> {
    Some(match function {
        "C_Initialize" | "C_Finalize" | "C_GetFunctionList" | "C_GetInterface"
        | "C_GetInterfaceList" => SkipReason::OnceForEachProcess,
        "C_Login" | "C_LoginUser" => SkipReason::LoginHappensOnce,
        "C_Logout" | "C_CloseAllSessions" => SkipReason::WouldEndTheReplay,
        "C_InitToken" | "C_InitPIN" | "C_SetPIN" => SkipReason::WouldChangeTheToken,
        "C_CreateObject"
        | "C_CopyObject"
        | "C_DestroyObject"
        | "C_SetAttributeValue"
        | "C_GenerateKey"
        | "C_GenerateKeyPair"
        | "C_UnwrapKey"
        | "C_DeriveKey" => SkipReason::WouldChangeObjects,
        "C_GetInfo"
        | "C_GetSlotList"
        | "C_GetSlotInfo"
        | "C_GetTokenInfo"
        | "C_GetMechanismList"
        | "C_GetMechanismInfo"
        | "C_OpenSession"
        | "C_CloseSession"
        | "C_GetSessionInfo"
        | "C_GenerateRandom"
        | "C_SeedRandom"
        | "C_GetAttributeValue"
        | "C_FindObjectsInit"
        | "C_FindObjects"
        | "C_FindObjectsFinal"
        | "C_EncryptInit"
        | "C_Encrypt"
        | "C_EncryptUpdate"
        | "C_EncryptFinal"
        | "C_DecryptInit"
        | "C_Decrypt"
        | "C_DecryptUpdate"
        | "C_DecryptFinal"
        | "C_DigestInit"
        | "C_Digest"
        | "C_DigestUpdate"
        | "C_DigestFinal"
        | "C_SignInit"
        | "C_Sign"
        | "C_SignUpdate"
        | "C_SignFinal"
        | "C_VerifyInit"
        | "C_Verify"
        | "C_VerifyUpdate"
        | "C_VerifyFinal" => return None,
        _ => SkipReason::UnknownFunction,
    })
}
