//! What a workload is made of.

use serde::{Deserialize, Serialize};
use tapstone_events::{FUNCTIONS, Family};
use tapstone_measure::units::Nanos;

/// What a program did with its token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// What is known of the whole.
    pub head: WorkloadHead,
    /// Threads that called the module, in the order of their first calls.
    pub threads: Vec<WorkloadThread>,
}

/// What a file says of the whole workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadHead {
    /// File name of the program, without its folder.
    pub program: String,
    /// File name of the module that was called.
    pub module: String,
    /// How long the program ran.
    pub wall_ns: Nanos,
    /// What one transaction is, where the user said so: a function such as `C_Sign`.
    pub transaction: Option<String>,
    /// Slots that sessions were opened in.
    pub slots: u32,
    /// What is missing of it.
    pub losses: WorkloadLosses,
}

/// What a recording lacks, as counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadLosses {
    /// Events that found no room.
    pub dropped: u64,
    /// Calls of modules other than the one that was called most.
    pub other_modules: u64,
    /// Calls that never returned.
    pub unfinished: u64,
}

/// A thread that called the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadThread {
    /// Its process, from 0 in the order of their first calls.
    pub process: u32,
    /// When its first call began, since the program's start.
    pub start: Nanos,
    /// Its calls, in their order.
    pub calls: Vec<WorkloadCall>,
}

impl WorkloadThread {
    /// Each call with the moment at which it began, since the program's start.
    pub fn timed_calls(&self) -> impl Iterator<Item = (Nanos, &WorkloadCall)> {
        let mut end = self.start;
        self.calls.iter().map(move |call| {
            let pause = call.computing.0.saturating_add(call.waiting.0);
            let begin = Nanos(end.0.saturating_add(pause));
            end = Nanos(begin.0.saturating_add(call.duration.0));
            (begin, call)
        })
    }
}

/// One call of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadCall {
    /// The function that was called, `C_…`.
    pub function: &'static str,
    /// The part of the pause before it in which the program computed.
    pub computing: Nanos,
    /// The part of it in which the thread waited for something outside of itself.
    pub waiting: Nanos,
    /// A wait lies in that pause, however short.
    pub after_wait: bool,
    /// From its beginning to its return.
    pub duration: Nanos,
    /// How long before its beginning it was due, because the answer before came that late: part of
    /// what its operation and transaction took. Zero in a recording.
    pub held_up: Nanos,
    /// Its session, from 1; 0 where it has none.
    pub session: u32,
    /// The mechanism that it names (`CKM_…`).
    pub mechanism: Option<u64>,
    /// The object that it uses or makes, from 1; 0 where it has none.
    pub object: u32,
    /// Bytes that it is given or asked for; objects that C_FindObjects asks for.
    pub input_bytes: u32,
    /// Bytes that it gives; objects that C_FindObjects found.
    pub output_bytes: u32,
    /// Which attributes its template has.
    pub shape: TemplateShape,
    /// Of C_FindObjectsInit the number of the template, of C_Login the kind of user, of
    /// C_OpenSession its flags, of C_DeriveKey and C_UnwrapKey the object that they derive from or
    /// unwrap with.
    pub detail: u32,
    /// What it returned (`CKR_…`).
    pub result: u64,
    /// It has no room for a result, and only asks how long that is.
    pub only_length: bool,
    /// What it makes stays on the token.
    pub on_token: bool,
    /// It had not returned when the program ended.
    pub unfinished: bool,
    /// Of a replay: it failed, and did not when it was recorded. Never so in a recording.
    pub fails_anew: bool,
}

impl WorkloadCall {
    /// A call of a function of which nothing else is known.
    #[must_use]
    pub const fn named(function: &'static str) -> Self {
        Self {
            function,
            computing: Nanos::ZERO,
            waiting: Nanos::ZERO,
            after_wait: false,
            duration: Nanos::ZERO,
            held_up: Nanos::ZERO,
            session: 0,
            mechanism: None,
            object: 0,
            input_bytes: 0,
            output_bytes: 0,
            shape: TemplateShape(0),
            detail: 0,
            result: 0,
            only_length: false,
            on_token: false,
            unfinished: false,
            fails_anew: false,
        }
    }

    /// Whether it ended with CKR_OK.
    #[must_use]
    pub const fn succeeded(&self) -> bool {
        self.result == 0 && !self.unfinished
    }
}

/// Which attributes a template has, without their values.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct TemplateShape(pub u64);

/// Attributes that a shape tells apart, by their bit.
pub const KNOWN_ATTRIBUTES: [(u64, &str); 15] = [
    (0x000, "CKA_CLASS"),
    (0x001, "CKA_TOKEN"),
    (0x002, "CKA_PRIVATE"),
    (0x003, "CKA_LABEL"),
    (0x102, "CKA_ID"),
    (0x100, "CKA_KEY_TYPE"),
    (0x011, "CKA_VALUE"),
    (0x080, "CKA_CERTIFICATE_TYPE"),
    (0x101, "CKA_SUBJECT"),
    (0x120, "CKA_MODULUS"),
    (0x122, "CKA_PUBLIC_EXPONENT"),
    (0x180, "CKA_EC_PARAMS"),
    (0x181, "CKA_EC_POINT"),
    (0x108, "CKA_SIGN"),
    (0x202, "CKA_ALWAYS_AUTHENTICATE"),
];

/// All bits that a shape may have.
pub(crate) const SHAPE_BITS: u32 = 41;

impl TemplateShape {
    /// The attributes that are known, as `(CKA_… number, name)`.
    pub fn attributes(self) -> impl Iterator<Item = (u64, &'static str)> {
        let has = move |bit: &usize| self.0 >> bit & 1 == 1;
        (0..KNOWN_ATTRIBUTES.len()).filter(has).map(|bit| KNOWN_ATTRIBUTES[bit])
    }

    /// How many attributes the template has, known or not.
    #[must_use]
    pub const fn count(self) -> u32 {
        (self.0 >> 16 & 0xFF) as u32
    }

    /// The CKA_CLASS that it names.
    #[must_use]
    pub const fn class(self) -> Option<u64> {
        (self.0 >> 24 & 0xFFFF).checked_sub(1)
    }

    /// No attribute has room for a value: only lengths are asked for.
    #[must_use]
    pub const fn asks_for_lengths(self) -> bool {
        self.0 >> 40 & 1 == 1
    }

    /// Whether it can be one.
    #[must_use]
    pub const fn is_sound(self) -> bool {
        self.0 >> SHAPE_BITS == 0
    }
}

/// The name of a PKCS#11 function as it is kept for ever; `None` for a text that is none.
#[must_use]
pub fn pkcs11_function(name: &str) -> Option<&'static str> {
    let known = FUNCTIONS.iter().filter(|function| function.family == Family::Pkcs11);
    known.map(|function| function.name).find(|known| *known == name)
}
