//! What a recorded load asks for and a token does not list.

use std::collections::BTreeMap;

use cryptoki_sys::{
    CKF_DECRYPT, CKF_DERIVE, CKF_DIGEST, CKF_ENCRYPT, CKF_GENERATE, CKF_GENERATE_KEY_PAIR,
    CKF_SIGN, CKF_UNWRAP, CKF_VERIFY, CKF_WRAP,
};
use tapstone_module::MechanismInfo;
use tapstone_workload::{OperationKind, Workload, operations};

/// Operations whose mechanism not every token lists for what they do with it (PKCS#11 v3.1, 5.5.6),
/// and how many there are of each.
#[must_use]
pub fn unlisted_operations(
    recorded: &Workload,
    tokens: &[Vec<MechanismInfo>],
) -> BTreeMap<OperationKind, u64> {
    let mut unlisted = BTreeMap::new();
    for operation in operations(recorded) {
        if !tokens.iter().all(|listed| is_listed(&operation.kind, listed)) {
            *unlisted.entry(operation.kind).or_default() += 1;
        }
    }
    unlisted
}

fn is_listed(kind: &OperationKind, listed: &[MechanismInfo]) -> bool {
    let flag = match kind.function {
        "C_Sign" => CKF_SIGN,
        "C_Verify" => CKF_VERIFY,
        "C_Encrypt" => CKF_ENCRYPT,
        "C_Decrypt" => CKF_DECRYPT,
        "C_Digest" => CKF_DIGEST,
        "C_DeriveKey" => CKF_DERIVE,
        // What is unwrapped is wrapped before the replay.
        "C_UnwrapKey" => CKF_WRAP | CKF_UNWRAP,
        "C_GenerateKey" => CKF_GENERATE,
        "C_GenerateKeyPair" => CKF_GENERATE_KEY_PAIR,
        _ => return true,
    };
    let Some(number) = kind.mechanism else { return true };
    let can = |known: &MechanismInfo| {
        known.mechanism == number && known.flags & flag as u64 == flag as u64
    };
    listed.iter().any(can)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mechanism_that_only_verifies_lacks_signatures() {
        let can = |flags| {
            let listed = [MechanismInfo { mechanism: 1, min_key_size: 0, max_key_size: 0, flags }];
            let kind = |function| OperationKind { function, mechanism: Some(1) };
            [is_listed(&kind("C_Sign"), &listed), is_listed(&kind("C_Verify"), &listed)]
        };
        assert_eq!(can(CKF_VERIFY as u64), [false, true]);
        assert_eq!(can((CKF_SIGN | CKF_VERIFY) as u64), [true, true]);
        let unwraps = |flags| {
            let listed = [MechanismInfo { mechanism: 1, min_key_size: 0, max_key_size: 0, flags }];
            is_listed(&OperationKind { function: "C_UnwrapKey", mechanism: Some(1) }, &listed)
        };
        assert!(unwraps((CKF_WRAP | CKF_UNWRAP) as u64) && !unwraps(CKF_UNWRAP as u64));
        let search = OperationKind { function: "C_FindObjects", mechanism: None };
        assert!(is_listed(&search, &[]));
    }
}
