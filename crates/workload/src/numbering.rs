//! Handles, digests and slots into numbers that mean nothing outside of a recording.
//!
//! A handle may be given again after its session or object is gone, and one thread may use what
//! another has made: so calls are looked at in the order in which they began, over all threads.

use std::collections::{BTreeSet, HashMap};

use tapstone_events::CalledFunction;
use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::{
    FirstArgument, first_argument, makes_object_by_mechanism, takes_mechanism,
};

use crate::model::{SHAPE_BITS, TemplateShape, WorkloadCall, WorkloadThread};
use crate::seen::{SeenCall, SeenThread};

/// Threads of a workload, and what numbering them showed.
pub(crate) struct Numbered {
    pub(crate) threads: Vec<WorkloadThread>,
    pub(crate) slots: u32,
    pub(crate) unfinished: u64,
}

/// Numbers all calls of these threads. `started` is when the program was.
pub(crate) fn number_calls(
    functions: &[CalledFunction],
    seen: &[SeenThread],
    started: Nanos,
) -> Numbered {
    let mut order: Vec<(Nanos, usize, usize)> = Vec::new();
    for (thread, known) in seen.iter().enumerate() {
        order.extend(known.calls.iter().enumerate().map(|(at, it)| (it.begun.at, thread, at)));
    }
    order.sort_unstable();
    let mut numbers = Numbers::default();
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut ends: Vec<Nanos> = Vec::new();
    let mut numbered = Numbered { threads: Vec::new(), slots: 0, unfinished: 0 };
    for (at, thread, call) in order {
        let known = &seen[thread].calls[call];
        let process = seen[thread].process;
        let place = *places.entry(thread).or_insert_with(|| {
            numbered.threads.push(WorkloadThread {
                process: numbers.processes.number(u64::from(process)) - 1,
                start: Nanos(at.0.saturating_sub(started.0)),
                calls: Vec::new(),
            });
            ends.push(at);
            numbered.threads.len() - 1
        });
        let function = functions[known.function as usize].function;
        let mut told = numbers.call(process, function, known);
        let pause = at.0.saturating_sub(ends[place].0);
        let is_first = numbered.threads[place].calls.is_empty();
        told.waiting = Nanos(if is_first { 0 } else { known.waiting.0.min(pause) });
        told.computing = Nanos(pause - told.waiting.0);
        told.after_wait = known.after_wait && !is_first;
        ends[place] = Nanos(at.0.saturating_add(told.duration.0));
        numbered.unfinished += u64::from(told.unfinished);
        numbered.threads[place].calls.push(told);
    }
    numbered.slots = numbers.slots.len() as u32;
    numbered
}

/// Things into numbers from 1, in the order in which they come.
struct Numbering<K> {
    known: HashMap<K, u32>,
    next: u32,
}

impl<K> Default for Numbering<K> {
    fn default() -> Self {
        Self { known: HashMap::new(), next: 0 }
    }
}

impl<K: std::hash::Hash + Eq> Numbering<K> {
    fn number(&mut self, key: K) -> u32 {
        let next = &mut self.next;
        *self.known.entry(key).or_insert_with(|| {
            *next += 1;
            *next
        })
    }

    /// The same for something that is new, whatever was known by that key.
    fn fresh(&mut self, key: K) -> u32 {
        self.known.remove(&key);
        self.number(key)
    }

    fn forget(&mut self, key: &K) {
        self.known.remove(key);
    }

    fn retain(&mut self, keep: impl Fn(&K) -> bool) {
        self.known.retain(|key, _| keep(key));
    }
}

#[derive(Default)]
struct Numbers {
    processes: Numbering<u64>,
    /// By process and handle.
    sessions: Numbering<(u32, u64)>,
    objects: Numbering<(u32, u64)>,
    templates: Numbering<u64>,
    slots: BTreeSet<u64>,
}

impl Numbers {
    fn call(&mut self, process: u32, function: &'static str, seen: &SeenCall) -> WorkloadCall {
        let mut call = WorkloadCall::named(function);
        let begun = &seen.begun;
        call.only_length = begun.only_length;
        call.on_token = begun.on_token;
        match seen.returned() {
            Some(ended) => {
                call.duration = Nanos(ended.at.0.saturating_sub(begun.at.0));
                call.result = ended.result;
            }
            None => call.unfinished = true,
        }
        if first_argument(function) == FirstArgument::Session {
            call.session = self.sessions.number((process, begun.handle));
        }
        self.describe(process, seen, &mut call);
        if call.succeeded() {
            self.forget_ended(process, seen, function);
        }
        call
    }

    fn describe(&mut self, process: u32, seen: &SeenCall, call: &mut WorkloadCall) {
        let begun = &seen.begun;
        let bytes = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        match call.function {
            "C_OpenSession" => {
                self.slots.insert(begun.handle);
                call.detail = bytes(begun.detail);
                if let Some(handle) = seen.made().filter(|handle| *handle != 0) {
                    call.session = self.sessions.fresh((process, handle));
                }
            }
            "C_Login" | "C_LoginUser" => call.detail = bytes(begun.detail),
            "C_FindObjectsInit" => {
                call.detail = self.templates.number(begun.detail);
                call.shape = TemplateShape(begun.operand);
            }
            "C_FindObjects" => {
                call.input_bytes = bytes(begun.operand);
                call.output_bytes = seen.found();
            }
            "C_GetAttributeValue" => {
                call.object = self.object(process, begun.operand >> SHAPE_BITS);
                call.shape = TemplateShape(begun.operand & ((1 << SHAPE_BITS) - 1));
            }
            "C_SetAttributeValue" | "C_DestroyObject" | "C_GetObjectSize" | "C_CopyObject" => {
                call.object = self.object(process, begun.detail);
            }
            "C_GetMechanismInfo" => call.mechanism = Some(begun.detail),
            function if takes_mechanism(function) => {
                call.mechanism = Some(begun.detail);
                call.object = self.object(process, begun.operand);
                if makes_object_by_mechanism(function) {
                    // The key that it is made with.
                    call.detail = std::mem::take(&mut call.object);
                    call.object = self.made(process, seen);
                }
            }
            "C_CreateObject" => call.object = self.made(process, seen),
            _ => {
                call.input_bytes = bytes(begun.operand);
                call.output_bytes = seen.made().map_or(0, bytes);
            }
        }
    }

    fn object(&mut self, process: u32, handle: u64) -> u32 {
        if handle == 0 { 0 } else { self.objects.number((process, handle)) }
    }

    fn made(&mut self, process: u32, seen: &SeenCall) -> u32 {
        let made = seen.made().filter(|handle| *handle != 0);
        made.map_or(0, |handle| self.objects.fresh((process, handle)))
    }

    /// What is gone after a call that went well: its handle may be another's from now on.
    fn forget_ended(&mut self, process: u32, seen: &SeenCall, function: &str) {
        match function {
            "C_CloseSession" => self.sessions.forget(&(process, seen.begun.handle)),
            "C_DestroyObject" => self.objects.forget(&(process, seen.begun.detail)),
            "C_CloseAllSessions" => self.sessions.retain(|(other, _)| *other != process),
            "C_Finalize" => {
                self.sessions.retain(|(other, _)| *other != process);
                self.objects.retain(|(other, _)| *other != process);
            }
            _ => {}
        }
    }
}
