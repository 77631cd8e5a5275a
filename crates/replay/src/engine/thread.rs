//! One thread of a replay: its calls in their order, each at its time.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use cryptoki_sys::*;
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;
use tapstone_module::{RawTemplate, Template, ck};
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Rv};
use tapstone_worker::BoardCell;
use tapstone_workload::TemplateShape;

use super::SharedReplay;
use super::calls::{AskedAttributes, CallArguments, Called, Caller, KnownCall, MOST_OBJECTS};
use super::kept::{KeptBytes, memory_for};
use super::mechanism::Mechanisms;
use super::schedule::{DistinctCall, Schedule};
use super::sessions::SharedSessions;
use super::templates::MadeTemplates;
use crate::inputs::{input_offset, iv_of_step};
use crate::measured::{ReplayedCall, ReplayedThread};
use crate::steps::{Due, MadeObject, ReplayStep, ReplayThread, StepInput};

/// No moment is waited for longer at once: somebody may want to end.
const LONGEST_SLEEP: Nanos = Nanos(50_000_000);

pub(super) struct ReplayingThread {
    plan: ReplayThread,
    number: u32,
    shared: Arc<SharedReplay>,
    sessions: Arc<SharedSessions>,
    cell: BoardCell,
}

/// What a thread reads while it replays, and memory for what its calls come to.
pub(super) struct ThreadMemory {
    schedule: Schedule,
    times: Vec<ReplayedCall>,
    results: KeptBytes,
}

impl ThreadMemory {
    /// As much as these steps took when they were recorded; results no more than there is room for.
    pub(super) fn for_steps(steps: &[ReplayStep], room: &AtomicUsize) -> Self {
        let times = memory_for(steps.len(), ReplayedCall::default());
        Self { schedule: Schedule::new(steps), times, results: KeptBytes::for_steps(steps, room) }
    }
}

/// A call that a thread comes to.
struct NextCall<'a> {
    place: usize,
    due: Nanos,
    /// It is due at once.
    is_due: bool,
    turn: u32,
    distinct: &'a DistinctCall,
}

/// What a thread writes to and reads from while it replays.
struct Desk {
    mechanisms: Mechanisms,
    output: Vec<u8>,
    /// A number below an RSA modulus.
    below: Vec<u8>,
    /// Templates of searches, by their shape.
    searches: Vec<(TemplateShape, RawTemplate)>,
    /// Templates of objects that are made.
    made: Vec<MadeTemplates>,
}

impl ReplayingThread {
    pub(super) fn new(
        plan: ReplayThread,
        number: u32,
        shared: Arc<SharedReplay>,
        sessions: Arc<SharedSessions>,
        cell: BoardCell,
    ) -> Self {
        Self { plan, number, shared, sessions, cell }
    }

    /// Makes the calls from that moment on, until all are made or somebody wants to end.
    pub(super) fn replay(
        self,
        memory: ThreadMemory,
        at: Nanos,
        stop: &AtomicBool,
    ) -> ReplayedThread {
        let shared = Arc::clone(&self.shared);
        let mut caller =
            Caller::new(&shared.module, shared.slot, shared.read_only, self.cell.clone());
        let ThreadMemory { schedule, times, results: mut kept } = memory;
        let mut desk = Desk {
            mechanisms: Mechanisms::default(),
            output: vec![0; schedule.longest_result().max(1)],
            below: Vec::new(),
            searches: Vec::new(),
            made: Vec::new(),
        };
        let mut replayed = ReplayedThread { times, results: Vec::new() };
        // Of each distinct call that is given the same each time, once it is known.
        let mut known: Vec<Option<KnownCall>> = vec![None; schedule.distinct_calls()];
        let mut answered = at;
        for (place, (scheduled, distinct)) in schedule.steps().enumerate() {
            let DistinctCall { step, changes_handles, .. } = distinct;
            let due = match scheduled.due {
                Due::AfterAnswer(pause) => Nanos(answered.0.saturating_add(pause.0)),
                Due::At(moment) => Nanos(at.0.saturating_add(moment.0)),
            };
            // Without a pause nobody looks at the clock.
            let is_due = due == answered && place > 0;
            if stop.load(Relaxed) {
                break;
            }
            let known = &mut known[scheduled.call as usize];
            let mut waited = Nanos::ZERO;
            let called = match known {
                Some(known) if is_due && self.is_in_session(step, &known.arguments) => {
                    if known.moves_input {
                        let offset = input_offset(self.number as usize, place);
                        known.arguments.input = shared.noise[offset..].as_ptr().cast_mut();
                    }
                    Some(caller.call_known(known))
                }
                _ => {
                    let next = NextCall { place, due, is_due, turn: scheduled.turn, distinct };
                    match self.call_when_due(next, &mut caller, &mut desk, known, stop) {
                        ControlFlow::Continue(called) => {
                            waited = called.1;
                            called.0
                        }
                        ControlFlow::Break(()) => break,
                    }
                }
            };
            let is_called = called.is_some();
            let went = called.unwrap_or_else(not_called);
            if *changes_handles {
                self.note_handles(step, &went);
            }
            if let Some(session) = step.session.filter(|_| step.turn.is_some()) {
                self.sessions.end_turn(session);
            }
            self.keep_result(place, step, &went, &desk, &mut kept);
            answered = went.end;
            replayed.times.push(ReplayedCall {
                begin: went.begin - at,
                duration: went.end - went.begin,
                late: went.begin - due,
                waited,
                result: went.result,
                is_called,
                output: if went.result == 0 && !step.gives_handle() {
                    u32::try_from(went.output).unwrap_or(u32::MAX)
                } else {
                    0
                },
            });
        }
        replayed.results = kept.results();
        replayed
    }

    /// Makes a call at its time, and says how long it waited for other threads. `None`: it is not made;
    /// `Break`: somebody wants to end.
    fn call_when_due(
        &self,
        next: NextCall<'_>,
        caller: &mut Caller<'_>,
        desk: &mut Desk,
        known: &mut Option<KnownCall>,
        stop: &AtomicBool,
    ) -> ControlFlow<(), (Option<Called>, Nanos)> {
        let NextCall { place, due, mut is_due, turn, distinct } = next;
        let DistinctCall { step, changes_handles, is_given_the_same } = distinct;
        let mut arguments = CallArguments::NONE;
        let mut waited = Nanos::ZERO;
        let may_end = |arguments: &_| !changes_handles || self.may_end(step, arguments);
        let mut can_call = self.arrange(place, step, desk, &mut arguments);
        if can_call && step.turn.is_none() {
            can_call = may_end(&arguments);
            if !is_due && !wait_until(due, stop) {
                return ControlFlow::Break(());
            }
        } else {
            if !wait_until(due, stop) {
                return ControlFlow::Break(());
            }
            let since = Monotonic.now();
            is_due = false;
            let are_done = self.others_are_done(step, turn, stop);
            can_call = are_done && (can_call || self.arrange(place, step, desk, &mut arguments));
            can_call = can_call && may_end(&arguments);
            waited = Monotonic.now() - since;
        }
        // What was there before the wait may be gone by now, and its handle another one's.
        if can_call && (!is_due || *changes_handles) {
            can_call = self.is_still_there(step, &arguments);
        }
        if !can_call {
            return ControlFlow::Continue((None, waited));
        }
        if *is_given_the_same {
            *known = caller.known(step, arguments);
        }
        ControlFlow::Continue((self.call(step, &arguments, caller, desk), waited))
    }

    /// Whether a call that would destroy an object may. That is looked at before the call is due, or in its
    /// turn, and outside of the call.
    fn may_end(&self, step: &ReplayStep, arguments: &CallArguments) -> bool {
        let CallArguments { session, object, .. } = *arguments;
        step.call != Pkcs11Function::C_DestroyObject || self.is_made_here(session, object)
    }

    /// Whether an object has this run's label.
    fn is_made_here(&self, session: CK_SESSION_HANDLE, object: CK_OBJECT_HANDLE) -> bool {
        let run = self.shared.run.as_bytes();
        let mut label = vec![0; run.len() + 1];
        let mut attribute = CK_ATTRIBUTE {
            type_: CKA_LABEL,
            pValue: label.as_mut_ptr().cast(),
            ulValueLen: label.len() as CK_ULONG,
        };
        // SAFETY: one attribute, with room for as many bytes as it says; both outlive the call.
        let read: Result<(), Pkcs11Failure> = unsafe {
            ck!(&self.shared.module, C_GetAttributeValue(session, object, &mut attribute, 1))
        };
        read.is_ok() && label.get(..attribute.ulValueLen as usize) == Some(run)
    }

    /// Destroys the public half of a pair whose private half has gone: a recording has no number for
    /// it. In no time of a call.
    fn destroy_public_half(&self, place: u32, session: CK_SESSION_HANDLE) {
        let half = self.shared.public_halves.take(place);
        if let Some(half) = half.filter(|half| self.is_made_here(session, *half)) {
            // What is left goes with its session.
            // SAFETY: only values are passed.
            let _: Result<(), Pkcs11Failure> =
                unsafe { ck!(&self.shared.module, C_DestroyObject(session, half)) };
        }
    }

    /// Whether handles are as they were when the arguments were made, for a call that begins at once.
    /// What the call ends is given to it alone.
    fn is_still_there(&self, step: &ReplayStep, with: &CallArguments) -> bool {
        let sessions = &self.sessions.handles;
        let session = match (step.call, step.session) {
            (Pkcs11Function::C_OpenSession, _) | (_, None) => Some(with.session),
            (Pkcs11Function::C_CloseSession, Some(place)) => sessions.take(place),
            (_, Some(place)) => sessions.now(place),
        };
        let objects = &self.shared.objects;
        let object = match (step.call, step.object) {
            _ if session != Some(with.session) => return false,
            (_, None) => Some(with.object),
            (Pkcs11Function::C_DestroyObject, Some(place)) => objects.take(place),
            (_, Some(place)) => objects.now(place),
        };
        object == Some(with.object)
    }

    fn call(
        &self,
        step: &ReplayStep,
        arguments: &CallArguments,
        caller: &mut Caller<'_>,
        desk: &mut Desk,
    ) -> Option<Called> {
        if let Some(made) = step.makes {
            let templates = self.templates(step.call, made, desk);
            let went = caller.make(step.call, arguments, templates);
            if templates.last_public != CK_INVALID_HANDLE {
                self.shared.public_halves.set(made.place, templates.last_public);
            }
            return went;
        }
        match step.call {
            Pkcs11Function::C_FindObjectsInit => {
                let template = self.search_template(step.shape, desk);
                Some(caller.begin_search(arguments.session, template))
            }
            Pkcs11Function::C_GetAttributeValue => {
                let asked = if step.reads_stand_in() {
                    AskedAttributes::OfAnyObject
                } else {
                    AskedAttributes::AsRecorded
                };
                Some(caller.ask_attributes(arguments.session, arguments.object, step.shape, asked))
            }
            Pkcs11Function::C_Login => {
                self.shared.key_login.log_in(|| caller.call(step.call, arguments))
            }
            function => caller.call(function, arguments).map(|went| believed(step, went)),
        }
    }

    /// Waits for what other threads do before that call: for its turn in its session, and for its
    /// session and object to be made. False where its turn does not come.
    #[cold]
    fn others_are_done(&self, step: &ReplayStep, turn: u32, stop: &AtomicBool) -> bool {
        let its_turn = step.session.filter(|_| step.turn.is_some());
        if its_turn.is_some_and(|session| !self.sessions.wait_for_turn(session, turn, stop)) {
            return false;
        }
        let session = step.session.filter(|_| step.call != Pkcs11Function::C_OpenSession);
        if let Some(session) = session {
            self.sessions.handles.wait_for(session, stop);
        }
        if let Some(object) = step.object {
            self.shared.objects.wait_for(object, stop);
        }
        true
    }

    /// Whether the session of these arguments is still there.
    fn is_in_session(&self, step: &ReplayStep, known: &CallArguments) -> bool {
        step.session.and_then(|place| self.sessions.handles.now(place)) == Some(known.session)
    }

    /// Sets what a call is given; false where its session, or its object, is not there.
    fn arrange(
        &self,
        place: usize,
        step: &ReplayStep,
        desk: &mut Desk,
        arguments: &mut CallArguments,
    ) -> bool {
        *arguments = CallArguments::NONE;
        if let Some(session) = step.session.filter(|_| step.call != Pkcs11Function::C_OpenSession) {
            let Some(handle) = self.sessions.handles.now(session) else { return false };
            arguments.session = handle;
        }
        let Some(object) = self.object(step) else { return false };
        arguments.object = object;
        if !step.only_length {
            arguments.output = desk.output.as_mut_ptr();
            arguments.room = step.room as CK_ULONG;
        }
        self.give_input(place, step, desk, arguments);
        if let Some(mechanism) = step.mechanism {
            let steps = &self.plan.steps;
            let iv = match mechanism.parameters.has_iv() {
                true => iv_of_step(steps, self.number as usize, place, self.shared.prepared.len()),
                false => [0; 16],
            };
            arguments.mechanism = desk.mechanisms.point(mechanism, iv, &self.shared.points);
        }
        true
    }

    /// The private half or the public one, by what is done with it. Of an object that is none of
    /// the replay's keys its stand-in, or else the first of them. `None`: a call is to make it, and
    /// has not, or it is gone.
    fn object(&self, step: &ReplayStep) -> Option<CK_OBJECT_HANDLE> {
        if let Some(place) = step.object {
            return self.shared.objects.now(place);
        }
        let keys = &self.shared.keys;
        if let (true, Some(object)) = (step.reads_stand_in(), self.shared.stand_in) {
            return Some(object);
        }
        let place = step.key.map_or(0, |place| place as usize);
        let Some(key) = keys.get(place) else { return Some(CK_INVALID_HANDLE) };
        Some(match step.call {
            Pkcs11Function::C_VerifyInit | Pkcs11Function::C_EncryptInit => key.public,
            _ => key.own,
        })
    }

    /// Templates of an object that a call makes.
    fn templates<'d>(
        &self,
        call: Pkcs11Function,
        made: MadeObject,
        desk: &'d mut Desk,
    ) -> &'d mut MadeTemplates {
        let known = desk.made.iter().position(|it| it.are_of(call, made));
        let place = known.unwrap_or_else(|| {
            let SharedReplay { run, private, .. } = &*self.shared;
            desk.made.push(MadeTemplates::new(call, made, run, *private));
            desk.made.len() - 1
        });
        &mut desk.made[place]
    }

    fn give_input(
        &self,
        place: usize,
        step: &ReplayStep,
        desk: &mut Desk,
        arguments: &mut CallArguments,
    ) {
        let noise = &self.shared.noise;
        let prepared = |place: u32| self.shared.prepared.get(place as usize);
        match step.input {
            StepInput::Bytes(bytes) => {
                let offset = input_offset(self.number as usize, place);
                let bytes = (bytes as usize).min(noise.len() - offset);
                arguments.input = noise[offset..].as_ptr().cast_mut();
                arguments.input_bytes = bytes as CK_ULONG;
            }
            StepInput::Below(bytes) => {
                let bytes = (bytes as usize).min(noise.len());
                desk.below.clear();
                desk.below.extend_from_slice(&noise[..bytes]);
                if let Some(first) = desk.below.first_mut() {
                    *first = 0;
                }
                arguments.input = desk.below.as_mut_ptr();
                arguments.input_bytes = bytes as CK_ULONG;
            }
            StepInput::CipherText(place) | StepInput::Signed(place) => {
                let Some(known) = prepared(place) else { return };
                arguments.input = known.input.as_ptr().cast_mut();
                arguments.input_bytes = known.input.len() as CK_ULONG;
                arguments.signature = known.signature.as_ptr().cast_mut();
                arguments.signature_bytes = known.signature.len() as CK_ULONG;
            }
            StepInput::Pin => {
                let Some(pin) = self.shared.key_login.pin() else { return };
                arguments.input = pin.as_ptr().cast_mut();
                arguments.input_bytes = pin.len() as CK_ULONG;
            }
            StepInput::Part { prepared: place, from, bytes } => {
                let Some(known) = prepared(place) else { return };
                let from = (from as usize).min(known.input.len());
                let part = &known.input[from..];
                arguments.input = part.as_ptr().cast_mut();
                arguments.input_bytes = part.len().min(bytes as usize) as CK_ULONG;
            }
        }
    }

    /// A template of that shape, which looks for keys of this run.
    fn search_template<'d>(
        &self,
        shape: TemplateShape,
        desk: &'d mut Desk,
    ) -> &'d mut [CK_ATTRIBUTE] {
        let known = desk.searches.iter().position(|(other, _)| *other == shape);
        let place = known.unwrap_or_else(|| {
            desk.searches.push((shape, self.template(shape).into_raw()));
            desk.searches.len() - 1
        });
        let raw = &mut desk.searches[place].1;
        let count = raw.count() as usize;
        // SAFETY: as many attributes as it has, which nothing else reaches meanwhile.
        unsafe { std::slice::from_raw_parts_mut(raw.as_mut_ptr(), count) }
    }

    fn template(&self, shape: TemplateShape) -> Template {
        let mut template = Template::new();
        for (number, name) in shape.attributes() {
            template = match (name, shape.class()) {
                ("CKA_CLASS", Some(class)) => template.number(CKA_CLASS, class as CK_ULONG),
                ("CKA_LABEL", _) => template.bytes(CKA_LABEL, self.shared.run.as_bytes()),
                ("CKA_ID", _) => template.bytes(CKA_ID, &self.shared.first_id),
                ("CKA_SIGN", _) => template.flag(number as CK_ATTRIBUTE_TYPE, true),
                // Of others the value is not known, and keys are found without them.
                _ => template,
            };
        }
        template
    }

    /// Keeps a result for those who judge it, as long as there is room.
    fn keep_result(
        &self,
        place: usize,
        step: &ReplayStep,
        went: &Called,
        desk: &Desk,
        kept: &mut KeptBytes,
    ) {
        if went.result != 0 || !step.keeps_result() {
            return;
        }
        let bytes = (went.output as usize).min(desk.output.len());
        kept.keep(place as u32, &desk.output[..bytes], &self.shared.room_for_results);
    }

    /// What was made can be used, and what is gone cannot.
    fn note_handles(&self, step: &ReplayStep, went: &Called) {
        let objects = &self.shared.objects;
        match (step.makes, step.object) {
            (Some(made), _) if went.result == 0 && went.output != 0 => {
                objects.set(made.place, went.output as CK_OBJECT_HANDLE);
            }
            (Some(made), _) => objects.forget(made.place),
            (None, Some(place)) if step.call == Pkcs11Function::C_DestroyObject => {
                objects.forget(place);
                let session = step.session.and_then(|place| self.sessions.handles.now(place));
                if let Some(session) = session.filter(|_| went.result == 0) {
                    self.destroy_public_half(place, session);
                }
            }
            _ => {}
        }
        let Some(place) = step.session else { return };
        if step.call == Pkcs11Function::C_CloseSession {
            for object in &self.shared.objects_of_session[place as usize] {
                objects.forget(*object);
                self.shared.public_halves.forget(*object);
            }
        }
        match (step.call, went.result) {
            (Pkcs11Function::C_OpenSession, 0) => {
                self.sessions.handles.set(place, went.output as CK_SESSION_HANDLE);
            }
            (Pkcs11Function::C_OpenSession, _) | (Pkcs11Function::C_CloseSession, 0) => {
                self.sessions.handles.forget(place);
            }
            _ => {}
        }
    }
}

/// False: somebody wants to end.
fn wait_until(due: Nanos, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Relaxed) {
            return false;
        }
        let left = due - Monotonic.now();
        if left == Nanos::ZERO {
            return true;
        }
        if left <= LONGEST_SLEEP {
            Monotonic.wait_until(due);
            return !stop.load(Relaxed);
        }
        Monotonic.wait_until(Monotonic.now() + LONGEST_SLEEP);
    }
}

/// A module that says that its result is longer than the room for it, or that there are more
/// objects than it was asked for, is not believed.
fn believed(step: &ReplayStep, went: Called) -> Called {
    let room = match step.call {
        Pkcs11Function::C_FindObjects => u64::from(step.room).min(MOST_OBJECTS as u64),
        Pkcs11Function::C_OpenSession | Pkcs11Function::C_Verify => return went,
        _ => u64::from(step.room),
    };
    if went.result == 0 && !step.only_length && went.output > room {
        return Called { result: Rv(CKR_DEVICE_ERROR as u64).0, ..went };
    }
    went
}

/// A call that is not made: its session, or the object that another call was to make, is not there.
fn not_called() -> Called {
    let now = Monotonic.now();
    Called { begin: now, end: now, result: CKR_OBJECT_HANDLE_INVALID as u64, output: 0 }
}
