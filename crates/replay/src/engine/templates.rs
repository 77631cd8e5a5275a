//! Templates of the objects that calls of a replay make: of their sessions, and gone with these.

use cryptoki_sys::*;
use tapstone_module::{RawTemplate, Template};
use tapstone_names::pkcs11::Pkcs11Function;
use tapstone_token_operations::catalogue::KeySpec;

use super::keys::{named_pairs, used_halves};
use crate::steps::{KeyUses, MadeObject};

/// What ECDH over P-256 gives, the shortest of all (SEC 1, 3.3.1): no key derived is longer.
const LONGEST_DERIVED: usize = 32;

/// The templates of one kind of object, ready to be used many times.
pub(super) struct MadeTemplates {
    call: Pkcs11Function,
    spec: KeySpec,
    uses: KeyUses,
    is_read: bool,
    /// Of a secret, or of the private half.
    pub(super) own: RawTemplate,
    pub(super) public: RawTemplate,
    /// The public half of the pair that was made last.
    pub(super) last_public: CK_OBJECT_HANDLE,
}

impl MadeTemplates {
    pub(super) fn new(call: Pkcs11Function, made: MadeObject, run: &str, private: bool) -> Self {
        let MadeObject { spec, uses, is_read, .. } = made;
        let common =
            |template: Template| template.flag(CKA_TOKEN, false).bytes(CKA_LABEL, run.as_bytes());
        let mut own = common(Template::new())
            .flag(CKA_PRIVATE, private)
            .flag(CKA_SENSITIVE, !is_read)
            .flag(CKA_EXTRACTABLE, is_read);
        for halves in used_halves(uses) {
            own = own.flag(halves.own, true);
        }
        let mut public = common(named_pairs(spec).into_iter().next().unwrap_or_default());
        if let Some(bytes) = spec.secret_bytes() {
            own = own
                .number(CKA_CLASS, CKO_SECRET_KEY)
                .number(CKA_KEY_TYPE, spec.key_type().unwrap_or(CKK_GENERIC_SECRET));
            own = match call {
                Pkcs11Function::C_DeriveKey => {
                    own.number(CKA_VALUE_LEN, bytes.min(LONGEST_DERIVED) as CK_ULONG)
                }
                // Its length follows from what is unwrapped (PKCS#11 v3.1, 5.18.4).
                Pkcs11Function::C_UnwrapKey => own,
                _ => own.number(CKA_VALUE_LEN, bytes as CK_ULONG),
            };
        }
        for kind in used_halves(uses).filter_map(|halves| halves.public) {
            match spec.secret_bytes() {
                Some(_) => own = own.flag(kind, true),
                None => public = public.flag(kind, true),
            }
        }
        Self {
            call,
            spec,
            uses,
            is_read,
            own: own.into_raw(),
            public: public.into_raw(),
            last_public: CK_INVALID_HANDLE,
        }
    }

    /// Whether they are of objects like this one, made by that call.
    pub(super) fn are_of(&self, call: Pkcs11Function, made: MadeObject) -> bool {
        let Self { spec, uses, is_read, .. } = *self;
        (self.call, spec, uses, is_read) == (call, made.spec, made.uses, made.is_read)
    }
}
