//! Inputs that follow from a plan and its seed: the process that replays makes them, and the one that
//! judges the results makes them again.

use cryptoki_sys::*;
use tapstone_measure::pace::SplitMix;

use crate::mechanisms::is_raw_rsa;
use crate::plan::work_of;
use crate::steps::{PreparedInput, PreparedKind, ReplayParameters, ReplayStep, StepInput};

/// Who makes the IVs of prepared inputs: no thread has that number.
const PREPARER: u32 = u32::MAX;
/// Between noise for the longest input and the place where the last one begins.
const NOISE_SPARE_BYTES: usize = 4_096;

/// Pseudo-random bytes, as many as the longest input needs wherever it begins.
pub(crate) fn noise(seed: u64, longest: u32) -> Vec<u8> {
    let mut random = SplitMix(seed);
    let count = longest as usize + NOISE_SPARE_BYTES;
    let mut noise = Vec::with_capacity(count + 8);
    while noise.len() < count {
        noise.extend_from_slice(&random.bits().to_ne_bytes());
    }
    noise
}

/// Where the input of a step begins in the noise: no two in a row are the same.
pub(crate) const fn input_offset(thread: usize, place: usize) -> usize {
    (thread + place) % NOISE_SPARE_BYTES
}

/// The input of a step that needs none prepared.
pub(crate) fn input_of_step(
    step: &ReplayStep,
    thread: usize,
    place: usize,
    noise: &[u8],
) -> Vec<u8> {
    match step.input {
        StepInput::Bytes(bytes) => {
            let offset = input_offset(thread, place);
            noise[offset..][..(bytes as usize).min(noise.len() - offset)].to_vec()
        }
        StepInput::Below(bytes) => below_modulus(bytes, noise),
        StepInput::CipherText(_)
        | StepInput::Signed(_)
        | StepInput::Part { .. }
        | StepInput::Pin => Vec::new(),
    }
}

/// So many bytes of a number below an RSA modulus of that length.
pub(crate) fn below_modulus(bytes: u32, noise: &[u8]) -> Vec<u8> {
    let mut number = noise[..(bytes as usize).min(noise.len())].to_vec();
    if let Some(first) = number.first_mut() {
        *first = 0;
    }
    number
}

/// What is signed or encrypted to make a prepared input.
pub(crate) fn prepared_input(wanted: &PreparedInput, noise: &[u8]) -> Vec<u8> {
    let bytes = match wanted.kind {
        PreparedKind::Signature(bytes) if is_raw_rsa(wanted.mechanism.number) => {
            return below_modulus(bytes, noise);
        }
        PreparedKind::Signature(bytes) => bytes as usize,
        PreparedKind::CipherText(bytes) => message_bytes(wanted, bytes as usize),
        PreparedKind::WrappedKey(_) => 0,
    };
    noise[..bytes.min(noise.len())].to_vec()
}

/// How long a message is whose cipher text has the recorded length: of those that there are, the
/// longest.
fn message_bytes(wanted: &PreparedInput, bytes: usize) -> usize {
    /// An RSA cipher text is as long as the modulus, whatever is in it: a key of AES.
    const RSA_MESSAGE: usize = 32;
    const GCM_TAG: usize = 16;
    match (wanted.mechanism.number as CK_MECHANISM_TYPE, wanted.mechanism.parameters) {
        (CKM_RSA_PKCS, _) | (_, ReplayParameters::Oaep) => RSA_MESSAGE,
        (_, ReplayParameters::Gcm) => bytes.saturating_sub(GCM_TAG),
        // One byte of padding at least.
        (CKM_AES_CBC_PAD, _) => bytes.saturating_sub(1),
        _ => bytes,
    }
}

/// The IV of a prepared input.
pub(crate) fn iv_of_prepared(place: usize) -> [u8; 16] {
    fresh_iv(PREPARER, place as u64)
}

/// The IV of an operation that begins: that of the prepared input that follows, or one that comes
/// once.
pub(crate) fn iv_of_step(
    steps: &[ReplayStep],
    thread: usize,
    place: usize,
    prepared_inputs: usize,
) -> [u8; 16] {
    if let (Some(_), StepInput::CipherText(prepared)) = (steps[place].makes, steps[place].input) {
        return iv_of_prepared(prepared as usize);
    }
    let part = |step: &ReplayStep| (step.session, work_of(step.call.name()));
    let own = part(&steps[place]);
    let next = steps[place + 1..].iter().find(|next| part(next) == own);
    match next.map(|next| next.input) {
        Some(StepInput::CipherText(prepared) | StepInput::Part { prepared, .. })
            if (prepared as usize) < prepared_inputs =>
        {
            iv_of_prepared(prepared as usize)
        }
        _ => fresh_iv(thread as u32, place as u64),
    }
}

/// An IV that comes once: who makes it, and a counter.
fn fresh_iv(maker: u32, counter: u64) -> [u8; 16] {
    let mut iv = [0; 16];
    iv[..4].copy_from_slice(&maker.to_be_bytes());
    iv[4..12].copy_from_slice(&counter.to_be_bytes());
    iv
}
