//! The works that calls of a session are part of.

use tapstone_workload::WorkloadCall;

use crate::steps::KeyUses;

/// Works that are begun, given input and ended in a session.
pub(super) const WORKS: [&str; 5] = ["C_Encrypt", "C_Decrypt", "C_Digest", "C_Sign", "C_Verify"];

/// The work that a function is a part of.
pub(crate) fn work_of(function: &'static str) -> Option<&'static str> {
    let stem = ["Init", "Update", "Final"].into_iter().find_map(|end| function.strip_suffix(end));
    let stem = stem.unwrap_or(function);
    let work = WORKS.into_iter().find(|work| *work == stem);
    debug_assert!(work.is_some() || use_begun(function).is_none());
    work
}

/// Whether a login is for the key of the operation that has begun in its session: of the user
/// CKU_CONTEXT_SPECIFIC (PKCS#11 3.1, 5.6.8).
pub(super) fn is_for_key(call: &WorkloadCall) -> bool {
    const CONTEXT_SPECIFIC: u32 = 2;
    call.function == "C_Login" && call.detail == CONTEXT_SPECIFIC
}

/// The functions that make an object by another key, and what that key is used for.
pub(super) fn use_as_base(function: &str) -> Option<fn(&mut KeyUses)> {
    Some(match function {
        "C_DeriveKey" => |uses| uses.derive = true,
        "C_UnwrapKey" => |uses| uses.unwrap = true,
        _ => return None,
    })
}

/// What a key is used for by the operation that a function begins.
pub(super) fn use_begun(function: &str) -> Option<fn(&mut KeyUses)> {
    Some(match function {
        "C_SignInit" => |uses| uses.sign = true,
        "C_VerifyInit" => |uses| uses.verify = true,
        "C_EncryptInit" => |uses| uses.encrypt = true,
        "C_DecryptInit" => |uses| uses.decrypt = true,
        _ => return None,
    })
}
