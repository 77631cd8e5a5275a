//! What a worker has to know of a shape, outside the timed section.

use cryptoki_sys::*;
use tapstone_names::pkcs11::Pkcs11Failure;

use super::super::input::PreparedInput;
use super::super::operation::TimedCalls;
use super::super::parameters::IvSource;
use super::super::round_trip::RoundTrip;
use super::super::shared::Shared;
use crate::catalogue::{KeySpec, Variant};
use crate::module::Session;
use crate::module::key_templates::KeyUsage;
use crate::protocol::NewKeys;
use tapstone_pin::Pin;

/// How a worker prepares the operations of one shape and reads their results. The defaults are
/// those of an operation under a private or secret key that writes its result into a buffer.
pub(in super::super) trait ShapeWork: Sync {
    /// The calls of one operation, for one thread.
    ///
    /// # Errors
    /// [`NOT_IN_FUNCTION_LIST`](tapstone_names::pkcs11::Rv::NOT_IN_FUNCTION_LIST), with the
    /// function that the module lacks.
    fn timed_calls(&self, setup: &CallSetup<'_>) -> Result<Box<dyn TimedCalls>, Pkcs11Failure>;

    /// Whether it runs under a key that must be there before it starts.
    fn needs_key(&self) -> bool {
        true
    }

    /// Whether it generates keys, which `--token-keys` puts on the token.
    fn generates_keys(&self) -> bool {
        false
    }

    /// What the keys of an operation are allowed to do.
    fn key_usage(&self) -> KeyUsage {
        KeyUsage { used_half: CKA_SIGN, other_half: CKA_VERIFY }
    }

    /// The class of the half that it uses, where the key is a pair.
    fn class_of_pair(&self) -> CK_OBJECT_CLASS {
        CKO_PRIVATE_KEY
    }

    /// Whether software can only make its inputs when it knows the key.
    fn inputs_need_key_value(&self) -> bool {
        false
    }

    /// Whether the token itself makes the inputs where software does not know the key: a cipher
    /// text that it is to decrypt.
    fn token_can_make_inputs(&self) -> bool {
        false
    }

    /// Makes the object that an input stands for; `None`: the calls take the bytes.
    ///
    /// # Errors
    /// The failure of C_CreateObject.
    fn import_input(
        &self,
        _session: &Session,
        _key: KeySpec,
        _input: &[u8],
    ) -> Result<Option<CK_OBJECT_HANDLE>, Pkcs11Failure> {
        Ok(None)
    }

    /// Where the IV of an operation comes from, if its mechanism takes one.
    fn iv_source(&self, _variant: &Variant) -> IvSource {
        IvSource::Input
    }

    /// What of its results is kept for verification.
    fn kept_results(&self) -> KeptResults {
        KeptResults::Bytes
    }

    /// The attribute by which an object that it made is judged.
    fn judged_attribute(&self, _key: KeySpec) -> CK_ATTRIBUTE_TYPE {
        CKA_VALUE
    }

    /// A kept result as the verifier takes it.
    fn judged_result(&self, _session: &Session, result: &[u8]) -> Vec<u8> {
        result.to_vec()
    }

    /// The message that a result belongs to, as the token tells it by the opposite operation.
    /// `None`: there is no opposite operation.
    fn message_by_token(
        &self,
        _token: &RoundTrip<'_>,
        _kept: &KeptResult<'_>,
    ) -> Option<Result<Vec<u8>, Pkcs11Failure>> {
        None
    }

    /// Whether the operation itself logs in and out.
    fn logs_in(&self) -> bool {
        false
    }
}

/// What the calls of one thread are made from.
pub(in super::super) struct CallSetup<'a> {
    pub(in super::super) shared: &'a Shared,
    pub(in super::super) variant: &'a Variant,
    /// The label of objects that the operation makes.
    pub(in super::super) label: &'a [u8],
    /// Where keys that the operation generates are kept.
    pub(in super::super) new_keys: NewKeys,
    /// The CKA_ID of keys that it generates on the token.
    pub(in super::super) new_key_id: Vec<u8>,
    /// Results are verified: what the operation makes can be read.
    pub(in super::super) readable: bool,
    /// The PIN for a key with CKA_ALWAYS_AUTHENTICATE; else `None`.
    pub(in super::super) key_pin: Option<Pin>,
    /// The inputs of the first key.
    pub(in super::super) inputs: &'a [PreparedInput],
}

/// What of an operation's results is kept for verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum KeptResults {
    /// The operation has no results to keep.
    Nothing,
    /// What it wrote into its buffer.
    Bytes,
    /// The objects that it made.
    Objects(ObjectLimits),
    /// The objects that it made, each after what it wrote into its buffer.
    BytesAndObjects(ObjectLimits),
}

impl KeptResults {
    /// Whether memory for results is needed.
    pub(in super::super) fn has_bytes(self) -> bool {
        matches!(self, Self::Bytes | Self::BytesAndObjects(_))
    }

    /// How many objects are kept, if any.
    pub(in super::super) fn object_limits(self) -> Option<ObjectLimits> {
        match self {
            Self::Objects(limits) | Self::BytesAndObjects(limits) => Some(limits),
            Self::Nothing | Self::Bytes => None,
        }
    }
}

/// How many objects a thread keeps for verification. Each costs room on the token while the case
/// runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct ObjectLimits {
    /// Of a case that its window ends.
    pub(in super::super) in_window: u64,
    /// Of a case with a given number of operations, which is to be verified whole.
    pub(in super::super) in_counted_case: u64,
}

/// A result that was kept, with what it was made from.
pub(in super::super) struct KeptResult<'a> {
    pub(in super::super) result: &'a [u8],
    pub(in super::super) iv: &'a [u8],
    pub(in super::super) message: &'a [u8],
}
