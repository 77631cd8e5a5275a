//! Objects that calls of a recording make, and that its replay makes by the same calls.

use std::collections::{BTreeMap, HashMap};

use cryptoki_sys::*;
use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::makes_object_by_mechanism;
use tapstone_token_operations::catalogue::{Hash, KeySpec};
use tapstone_workload::{Workload, WorkloadCall};

use super::turns::WhichThreads;
use super::works::use_as_base;
use super::{KeyCertainty, MappedKey};
use crate::mechanisms::{KeyFamily, known_mechanism};

/// An object that a call makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maker {
    pub(super) function: &'static str,
    pub(super) mechanism: u64,
    /// The object that it is derived from or unwrapped with; 0 for none.
    pub(super) base: u32,
    /// What it is; of a pair the private half.
    pub(super) spec: KeySpec,
    /// Its value is read.
    pub(super) is_read: bool,
    pub(super) certainty: KeyCertainty,
    process: u32,
    at: CallPlace,
    session: u32,
    /// When the call ended.
    end: Nanos,
}

/// A call of a workload, and when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallPlace {
    /// Its thread's place among those of the workload.
    pub(super) thread: usize,
    /// Its place among the calls of its thread.
    pub(super) place: usize,
    pub(super) begin: Nanos,
}

/// Objects with the calls that make them. What stays on a token is none of them, nor what a replay
/// cannot make in this way: such keys are made before the replay.
#[derive(Debug, Default)]
pub(super) struct Makers(HashMap<u32, Maker>);

impl Makers {
    pub(super) fn of(workload: &Workload, observed: &[MappedKey]) -> Self {
        let observed: HashMap<u32, &MappedKey> =
            observed.iter().map(|key| (key.object, key)).collect();
        let mut makers = Self::default();
        let lives = Lives::of(workload);
        // An object is made after its base, and has a higher number.
        for (object, maker) in seen_makers(workload) {
            // What is decrypted, verified or unwrapped is made beforehand, and the key for it.
            let uses = observed.get(&object).map(|known| known.uses).unwrap_or_default();
            if uses.decrypt || uses.verify || uses.unwrap || !lives.are_clear(object, &maker) {
                continue;
            }
            let base_is_made = makers.maker(maker.base, maker.process, maker.at);
            let base_is_made = base_is_made.map(|base| base.spec);
            let base = base_is_made.or_else(|| observed.get(&maker.base)?.spec);
            let what = What { base, known: observed.get(&object).copied() };
            if let Some((spec, certainty)) = what.kind_by(&maker) {
                makers.0.insert(object, Maker { spec, certainty, ..maker });
            }
        }
        makers
    }

    /// Who makes an object that a call of that process uses: it was made before. Of two threads no
    /// moment is both, so that none ever waits for one that waits for it.
    pub(super) fn maker(&self, object: u32, process: u32, user: CallPlace) -> Option<&Maker> {
        self.0.get(&object).filter(|maker| {
            let is_before = match maker.at.thread == user.thread {
                true => maker.at.place < user.place,
                false => maker.end < user.begin,
            };
            maker.process == process && is_before
        })
    }

    /// Who makes an object by that call.
    pub(super) fn made_by(&self, call: &WorkloadCall, at: CallPlace) -> Option<&Maker> {
        self.0.get(&call.object).filter(|maker| makes(call) && maker.at == at)
    }

    pub(super) fn spec(&self, object: u32) -> Option<KeySpec> {
        self.0.get(&object).map(|maker| maker.spec)
    }

    pub(super) fn has(&self, object: u32) -> bool {
        self.0.contains_key(&object)
    }
}

/// Which threads end objects and sessions, and which use objects.
#[derive(Default)]
struct Lives {
    close: HashMap<u32, WhichThreads>,
    destroy: HashMap<u32, WhichThreads>,
    uses: HashMap<u32, WhichThreads>,
}

impl Lives {
    fn of(workload: &Workload) -> Self {
        let mut lives = Self::default();
        for (number, thread) in workload.threads.iter().enumerate() {
            for call in &thread.calls {
                let by = |of: &mut HashMap<u32, WhichThreads>, what: u32| {
                    of.entry(what).or_insert(WhichThreads::One(number)).add(number);
                };
                match call.function {
                    "C_CloseSession" => by(&mut lives.close, call.session),
                    "C_DestroyObject" => by(&mut lives.destroy, call.object),
                    _ => {}
                }
                by(&mut lives.uses, call.object);
                if makes_object_by_mechanism(call.function) {
                    by(&mut lives.uses, call.detail);
                }
            }
        }
        lives
    }

    /// Whether no thread can use an object while another one ends it or its session: its handle may
    /// be that of an object of the user's then.
    fn are_clear(&self, object: u32, maker: &Maker) -> bool {
        let ends = [self.close.get(&maker.session), self.destroy.get(&object)];
        let is_its_own = |threads: &WhichThreads| *threads == WhichThreads::One(maker.at.thread);
        let mut ends = ends.into_iter().flatten().peekable();
        ends.peek().is_none()
            || ends.all(is_its_own) && self.uses.get(&object).is_none_or(is_its_own)
    }
}

/// All that make an object, by the object. A recording gives each a number of its own.
fn seen_makers(workload: &Workload) -> BTreeMap<u32, Maker> {
    let mut makers = BTreeMap::new();
    for (number, thread) in workload.threads.iter().enumerate() {
        let calls = thread.timed_calls().enumerate().filter(|(_, (_, call))| makes(call));
        for (place, (begin, call)) in calls {
            makers.entry(call.object).or_insert(Maker {
                function: call.function,
                mechanism: call.mechanism.unwrap_or_default(),
                base: base_of(call),
                spec: KeySpec::None,
                is_read: false,
                certainty: KeyCertainty::Unknown,
                process: thread.process,
                at: CallPlace { thread: number, place, begin },
                session: call.session,
                end: Nanos(begin.0.saturating_add(call.duration.0)),
            });
        }
    }
    let calls = workload.threads.iter().flat_map(|thread| &thread.calls);
    for call in calls.filter(|call| reads_value(call)) {
        if let Some(maker) = makers.get_mut(&call.object) {
            maker.is_read = true;
        }
    }
    makers
}

fn reads_value(call: &WorkloadCall) -> bool {
    let mut attributes = call.shape.attributes();
    call.function == "C_GetAttributeValue"
        && call.succeeded()
        && attributes.any(|(number, _)| number as CK_ATTRIBUTE_TYPE == CKA_VALUE)
}

/// Whether a call makes an object of its session.
fn makes(call: &WorkloadCall) -> bool {
    makes_object_by_mechanism(call.function)
        && call.succeeded()
        && !call.on_token
        && call.session != 0
        && call.object > base_of(call)
}

/// The object that another one is derived from or unwrapped with; 0 for none.
fn base_of(call: &WorkloadCall) -> u32 {
    if use_as_base(call.function).is_some() { call.detail } else { 0 }
}

/// What is known of an object that a call makes.
struct What<'a> {
    /// The kind of the key that it is made with.
    base: Option<KeySpec>,
    /// By what it was used for.
    known: Option<&'a MappedKey>,
}

impl What<'_> {
    /// Its kind and how well that is known; `None` where a replay does not make it by that call.
    fn kind_by(&self, maker: &Maker) -> Option<(KeySpec, KeyCertainty)> {
        let seen = self.known.and_then(|known| Some((known.spec?, known.certainty)));
        let or = |usual: KeySpec| seen.unwrap_or((usual, KeyCertainty::Assumed));
        let secret = KeySpec::Hmac { hash: Hash::Sha256 };
        let aes = KeySpec::Aes { bits: 256 };
        let mechanism = known_mechanism(maker.mechanism);
        let made = match maker.function {
            "C_DeriveKey" => {
                let is_curve = matches!(self.base?, KeySpec::Ec { .. });
                (is_curve && mechanism?.is_agreement()).then(|| or(secret))
            }
            "C_UnwrapKey" => unwraps(maker, self.base?).then(|| or(aes)),
            "C_GenerateKey" => match maker.mechanism as CK_MECHANISM_TYPE {
                CKM_AES_KEY_GEN => Some(or(aes)),
                CKM_GENERIC_SECRET_KEY_GEN => Some(or(secret)),
                _ => seen,
            },
            _ => seen,
        };
        let (spec, certainty) = made?;
        let is_kind = match maker.function {
            "C_DeriveKey" | "C_UnwrapKey" => spec.secret_bytes().is_some(),
            _ => spec.generation().is_some_and(|it| it.number() as u64 == maker.mechanism),
        };
        is_kind.then_some((spec, certainty))
    }
}

/// Whether keys are unwrapped by a mechanism with such a key.
fn unwraps(maker: &Maker, base: KeySpec) -> bool {
    let Some(known) = known_mechanism(maker.mechanism) else { return false };
    match (base, known.family) {
        (KeySpec::Rsa { .. }, KeyFamily::Rsa) => {
            [CKM_RSA_PKCS, CKM_RSA_PKCS_OAEP].contains(&(maker.mechanism as CK_MECHANISM_TYPE))
        }
        (KeySpec::Aes { .. }, KeyFamily::Aes) => {
            [CKM_AES_KEY_WRAP, CKM_AES_KEY_WRAP_PAD, CKM_AES_CBC_PAD]
                .contains(&(maker.mechanism as CK_MECHANISM_TYPE))
        }
        _ => false,
    }
}
