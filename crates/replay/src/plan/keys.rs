//! What kind of key each recorded one was, from what was done with it.

use std::collections::{BTreeMap, HashMap};

use tapstone_token_operations::catalogue::KeySpec;
use tapstone_workload::{Workload, WorkloadCall};

use super::works::{is_for_key, use_as_base, use_begun, work_of};
use super::{KeyCertainty, MappedKey, PlanError};
use crate::mechanisms::{KeyFamily, key_of_length, known_mechanism};
use crate::steps::KeyUses;

/// What a recording shows of a key.
#[derive(Default)]
struct SeenKey {
    uses: KeyUses,
    family: Option<KeyFamily>,
    /// From what it made or was given.
    spec: Option<KeySpec>,
    operations: u64,
    always_authenticate: bool,
}

/// The keys of a thread's operations that go on.
#[derive(Default)]
struct CurrentKeys {
    /// By session and work: PKCS#11 lets a session sign and decrypt at once (section 5.13).
    operations: HashMap<(u32, &'static str), u32>,
    /// By session: the key that a login before its use is meant for.
    last: HashMap<u32, u32>,
}

/// All keys with which an operation was begun, by their object.
pub(super) fn observed_keys(
    workload: &Workload,
    told: &BTreeMap<u32, KeySpec>,
) -> Result<Vec<MappedKey>, PlanError> {
    let mut keys: BTreeMap<u32, SeenKey> = BTreeMap::new();
    for thread in &workload.threads {
        let mut current = CurrentKeys::default();
        for call in &thread.calls {
            look_at(call, &mut current, &mut keys);
        }
    }
    if let Some(stranger) = told.keys().find(|object| !keys.contains_key(*object)) {
        return Err(PlanError::NoSuchKey(*stranger));
    }
    let mapped = |(object, seen): (u32, SeenKey)| {
        let usual = seen.family.and_then(usual_key);
        let (spec, certainty) = match (told.get(&object), seen.spec, usual) {
            (Some(told), ..) => (Some(*told), KeyCertainty::Told),
            (None, Some(seen), _) => (Some(seen), KeyCertainty::Seen),
            (None, None, Some(usual)) => (Some(usual), KeyCertainty::Assumed),
            (None, None, None) => (None, KeyCertainty::Unknown),
        };
        let SeenKey { uses, operations, always_authenticate, family, .. } = seen;
        MappedKey {
            object,
            spec,
            uses,
            certainty,
            operations,
            always_authenticate,
            can_be_told: family.is_some(),
        }
    };
    Ok(keys.into_iter().map(mapped).collect())
}

fn look_at(call: &WorkloadCall, current: &mut CurrentKeys, keys: &mut BTreeMap<u32, SeenKey>) {
    if let Some(use_of) = use_as_base(call.function) {
        if call.detail != 0 {
            let key = keys.entry(call.detail).or_default();
            use_of(&mut key.uses);
            key.operations += 1;
            let family = call.mechanism.and_then(known_mechanism).map(|known| known.family);
            key.family = key.family.or(family);
        }
        return;
    }
    if let Some(use_of) = use_begun(call.function) {
        if call.object == 0 {
            return;
        }
        let key = keys.entry(call.object).or_default();
        use_of(&mut key.uses);
        key.operations += 1;
        key.family = call.mechanism.and_then(known_mechanism).map(|known| known.family);
        if let Some(KeyFamily::Hmac(hash)) = key.family {
            key.spec = Some(KeySpec::Hmac { hash });
        }
        if let Some(work) = work_of(call.function) {
            current.operations.insert((call.session, work), call.object);
        }
        current.last.insert(call.session, call.object);
        return;
    }
    let object = match work_of(call.function) {
        Some(work) => current.operations.get(&(call.session, work)),
        None => current.last.get(&call.session),
    };
    let Some(key) = object.and_then(|object| keys.get_mut(object)) else { return };
    let length = match call.function {
        "C_Sign" | "C_SignFinal" | "C_Verify" => call.output_bytes,
        "C_VerifyFinal" => call.input_bytes,
        "C_Encrypt" | "C_EncryptFinal" if key.family == Some(KeyFamily::Rsa) => call.output_bytes,
        "C_Decrypt" if key.family == Some(KeyFamily::Rsa) => call.input_bytes,
        _ if is_for_key(call) => {
            key.always_authenticate = true;
            return;
        }
        _ => return,
    };
    if call.succeeded() && key.spec.is_none() {
        key.spec = key.family.and_then(|family| key_of_length(family, length));
    }
}

/// What is made where a recording does not tell the length. An RSA key or a curve is never guessed:
/// too much of the time depends on it.
fn usual_key(family: KeyFamily) -> Option<KeySpec> {
    match family {
        KeyFamily::Aes => Some(KeySpec::Aes { bits: 256 }),
        KeyFamily::Edwards => Some(KeySpec::Ed25519),
        _ => None,
    }
}
