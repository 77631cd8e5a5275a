//! What the arguments of a function are: who keeps the arguments of a call, or shows them, asks here.

/// Whether the second argument points to a mechanism.
///
/// Functions of PKCS #11 2.40 only: of those for messages, and of encapsulation, no observer keeps
/// the mechanism.
///
/// ```
/// use tapstone_names::pkcs11::takes_mechanism;
///
/// assert!(takes_mechanism("C_SignInit"));
/// assert!(!takes_mechanism("C_Sign"));
/// ```
#[must_use]
pub fn takes_mechanism(function: &str) -> bool {
    makes_object_by_mechanism(function)
        || matches!(
            function,
            "C_EncryptInit"
                | "C_DecryptInit"
                | "C_DigestInit"
                | "C_SignInit"
                | "C_SignRecoverInit"
                | "C_VerifyInit"
                | "C_VerifyRecoverInit"
                | "C_WrapKey"
        )
}

/// Whether it takes a mechanism and gives the handle of a new object.
#[must_use]
pub fn makes_object_by_mechanism(function: &str) -> bool {
    matches!(function, "C_GenerateKey" | "C_GenerateKeyPair" | "C_UnwrapKey" | "C_DeriveKey")
}

/// Whether it makes an object, of a session or of the token.
#[must_use]
pub fn makes_object(function: &str) -> bool {
    makes_object_by_mechanism(function)
        || matches!(
            function,
            "C_CreateObject"
                | "C_CopyObject"
                | "C_UnwrapKeyAuthenticated"
                | "C_EncapsulateKey"
                | "C_DecapsulateKey"
        )
}

/// Whether it changes or removes what may be on the token, whatever it is given.
#[must_use]
pub fn changes_token(function: &str) -> bool {
    matches!(
        function,
        "C_DestroyObject" | "C_SetAttributeValue" | "C_InitToken" | "C_InitPIN" | "C_SetPIN"
    )
}

/// The first argument of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstArgument {
    /// `CK_SESSION_HANDLE`.
    Session,
    /// `CK_SLOT_ID`.
    Slot,
    /// A pointer, flags, or nothing: it tells no call from another.
    Other,
}

/// What the first argument is; [`FirstArgument::Session`] for whatever is not known otherwise.
#[must_use]
pub fn first_argument(function: &str) -> FirstArgument {
    match function {
        "C_Initialize" | "C_Finalize" | "C_GetInfo" | "C_GetFunctionList" | "C_GetInterface"
        | "C_GetInterfaceList" | "C_GetSlotList" | "C_WaitForSlotEvent" => FirstArgument::Other,
        "C_GetSlotInfo" | "C_GetTokenInfo" | "C_GetMechanismList" | "C_GetMechanismInfo"
        | "C_InitToken" | "C_OpenSession" | "C_CloseAllSessions" => FirstArgument::Slot,
        _ => FirstArgument::Session,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mechanism_begins_an_operation_or_makes_or_wraps_a_key() {
        let with = [
            "C_EncryptInit",
            "C_DecryptInit",
            "C_DigestInit",
            "C_SignInit",
            "C_SignRecoverInit",
            "C_VerifyInit",
            "C_VerifyRecoverInit",
            "C_GenerateKey",
            "C_GenerateKeyPair",
            "C_WrapKey",
            "C_UnwrapKey",
            "C_DeriveKey",
        ];
        assert!(with.iter().all(|function| takes_mechanism(function)));
        let without = ["C_Sign", "C_CreateObject", "C_FindObjectsInit", "C_GetMechanismInfo"];
        assert!(!without.iter().any(|function| takes_mechanism(function)));
        let made: Vec<&str> =
            with.into_iter().filter(|function| makes_object_by_mechanism(function)).collect();
        assert_eq!(made, ["C_GenerateKey", "C_GenerateKeyPair", "C_UnwrapKey", "C_DeriveKey"]);
    }

    #[test]
    fn what_makes_an_object_is_apart_from_what_changes_the_token_by_itself() {
        for function in ["C_CreateObject", "C_CopyObject", "C_GenerateKey", "C_EncapsulateKey"] {
            assert!(makes_object(function) && !changes_token(function), "{function}");
        }
        for function in ["C_DestroyObject", "C_SetAttributeValue", "C_InitToken", "C_SetPIN"] {
            assert!(changes_token(function) && !makes_object(function), "{function}");
        }
        for function in ["C_WrapKey", "C_SignInit", "C_FindObjects", "C_Login"] {
            assert!(!makes_object(function) && !changes_token(function), "{function}");
        }
    }

    #[test]
    fn a_slot_is_told_from_a_session() {
        assert_eq!(first_argument("C_OpenSession"), FirstArgument::Slot);
        assert_eq!(first_argument("C_CloseAllSessions"), FirstArgument::Slot);
        assert_eq!(first_argument("C_CloseSession"), FirstArgument::Session);
        assert_eq!(first_argument("C_Sign"), FirstArgument::Session);
        assert_eq!(first_argument("C_GetSlotList"), FirstArgument::Other);
        assert_eq!(first_argument("C_WaitForSlotEvent"), FirstArgument::Other);
    }
}
