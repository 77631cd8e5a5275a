//! What one process is to do, as it is sent to it.

use std::fmt;

use serde::{Deserialize, Serialize};
use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::Pkcs11Function;
use tapstone_token_operations::catalogue::{Curve, Hash, KeySpec};
use tapstone_workload::TemplateShape;

/// One process of a replay. It names no file and holds no secret.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReplayProcess {
    /// Which of the devices it works on, from 0.
    pub device: u32,
    /// The keys that it makes.
    pub keys: Vec<KeyOrder>,
    /// Keys are made on the token, where they outlive a session.
    pub on_token: bool,
    /// Sessions that its threads use; true for those that are open before the first call.
    pub sessions: Vec<bool>,
    /// How many objects its calls make, each in a place of its own.
    pub objects: u32,
    /// Inputs that the token has to make before the first call: signatures to verify, cipher texts to
    /// decrypt, wrapped keys.
    pub prepared: Vec<PreparedInput>,
    /// Curves on which keys are agreed upon: there is another party on each.
    pub curves: Vec<Curve>,
    /// The longest input, in bytes.
    pub longest_input: u32,
    /// The threads that it runs.
    pub threads: Vec<ReplayThread>,
    /// Where pseudo-random inputs come from.
    pub seed: u64,
}

/// A key to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyOrder {
    /// Its kind and size.
    pub spec: KeySpec,
    /// What it is for.
    pub uses: KeyUses,
    /// It asks for a login of its own for each operation (CKA_ALWAYS_AUTHENTICATE).
    pub always_authenticate: bool,
}

/// What a key is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyUses {
    /// It makes signatures (CKA_SIGN).
    pub sign: bool,
    /// It verifies signatures (CKA_VERIFY).
    pub verify: bool,
    /// It encrypts messages (CKA_ENCRYPT).
    pub encrypt: bool,
    /// It decrypts messages (CKA_DECRYPT).
    pub decrypt: bool,
    /// Other keys are derived from it (CKA_DERIVE).
    pub derive: bool,
    /// It unwraps other keys (CKA_UNWRAP).
    pub unwrap: bool,
}

impl fmt::Display for KeyUses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uses = [
            (self.sign, "sign"),
            (self.verify, "verify"),
            (self.encrypt, "encrypt"),
            (self.decrypt, "decrypt"),
            (self.derive, "derive"),
            (self.unwrap, "unwrap"),
        ];
        let named: Vec<&str> = uses.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
        f.write_str(&named.join(", "))
    }
}

/// An input that is made before the replay begins, by the token itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PreparedInput {
    /// A place among the keys.
    pub key: u32,
    /// How it is made, and used.
    pub mechanism: MechanismUse,
    /// Whether it is a signature, a cipher text or a wrapped key.
    pub kind: PreparedKind,
}

/// What an input is that is made before the replay begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PreparedKind {
    /// A signature over so many bytes.
    Signature(u32),
    /// A cipher text of so many bytes.
    CipherText(u32),
    /// A secret key, wrapped.
    WrappedKey(KeySpec),
}

impl PreparedKind {
    /// So many bytes are signed, or there are in the cipher text; a wrapped key has few.
    pub(crate) const fn bytes(self) -> u32 {
        match self {
            Self::Signature(bytes) | Self::CipherText(bytes) => bytes,
            Self::WrappedKey(_) => 0,
        }
    }
}

/// A mechanism with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MechanismUse {
    /// The number of it (`CKM_…`).
    pub number: u64,
    /// What it is given beside a key.
    pub parameters: ReplayParameters,
}

/// The parameters of a mechanism. A recording does not hold them: these are the usual ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReplayParameters {
    /// It takes no parameters.
    None,
    /// PSS with a salt as long as the digest.
    Pss {
        /// Of the digest and of MGF1.
        hash: Hash,
    },
    /// OAEP with SHA-1, as most applications have it.
    Oaep,
    /// An IV of 16 bytes.
    Iv,
    /// A counter block of 16 bytes, of which 128 bits count.
    Counter,
    /// An IV of 12 bytes that never comes twice, and a tag of 128 bits.
    Gcm,
    /// The point of another party, and no key derivation function (CKD_NULL).
    Ecdh {
        /// The place of its curve among those of the process.
        curve: u32,
    },
}

impl ReplayParameters {
    /// Whether each operation has an IV of its own.
    pub(crate) const fn has_iv(self) -> bool {
        matches!(self, Self::Iv | Self::Counter | Self::Gcm)
    }
}

/// One thread of a replay.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplayThread {
    /// Its place among the threads of the workload.
    pub origin: u32,
    /// Which copy of it this is, from 0.
    pub copy: u32,
    /// What it calls, in order.
    pub steps: Vec<ReplayStep>,
}

/// One call of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReplayStep {
    /// Its place among the calls of the recorded thread.
    pub origin: u32,
    /// Which function is called.
    pub call: Pkcs11Function,
    /// When the call begins.
    pub due: Due,
    /// A place among the process's sessions.
    pub session: Option<u32>,
    /// In a session that several threads use: how many of its calls had ended when this one began,
    /// whichever thread made them.
    pub turn: Option<u32>,
    /// Other threads' calls were between it and the one before it of this thread in that session, or
    /// at the same time.
    pub is_interrupted: bool,
    /// A place among the keys.
    pub key: Option<u32>,
    /// Instead of a key: the object that a call made, by its place.
    pub object: Option<u32>,
    /// The object that this call makes.
    pub makes: Option<MadeObject>,
    /// Of a call that begins an operation.
    pub mechanism: Option<MechanismUse>,
    /// What it is given.
    pub input: StepInput,
    /// Room for its result, in bytes; of C_FindObjects for so many objects; of C_OpenSession its
    /// flags.
    pub room: u32,
    /// It is given no room, and only asks how long its result is.
    pub only_length: bool,
    /// The template of a search, or of a question for attributes.
    pub shape: TemplateShape,
    /// It belongs to an operation whose result is judged afterwards.
    pub is_judged: bool,
}

impl ReplayStep {
    /// Whether it reads an object that no operation used, and that something else stands for.
    pub(crate) const fn reads_stand_in(&self) -> bool {
        matches!(self.call, Pkcs11Function::C_GetAttributeValue)
            && self.key.is_none()
            && self.object.is_none()
    }

    /// Whether the room of a call is one for bytes.
    pub(crate) const fn gives_bytes(&self) -> bool {
        !matches!(self.call, Pkcs11Function::C_OpenSession | Pkcs11Function::C_FindObjects)
            && self.makes.is_none()
    }

    /// Whether a session or an object begins or ends with it.
    pub(crate) const fn changes_handles(&self) -> bool {
        use Pkcs11Function as F;
        let ends = matches!(self.call, F::C_CloseSession | F::C_DestroyObject);
        ends || self.gives_handle()
    }

    /// Whether a call is given the same each time it is made, but for where its pseudo-random input
    /// begins: no IV of its own, and nothing that another thread makes or ends but its session.
    pub(crate) const fn is_given_the_same(&self) -> bool {
        let has_iv = match self.mechanism {
            Some(mechanism) => mechanism.parameters.has_iv(),
            None => false,
        };
        let is_written = matches!(self.input, StepInput::Below(_) | StepInput::Pin);
        let is_shared = self.turn.is_some() || self.object.is_some() || self.changes_handles();
        self.session.is_some() && !has_iv && !is_written && !is_shared
    }

    /// Whether it opens a session.
    pub(crate) const fn opens_session(&self) -> bool {
        matches!(self.call, Pkcs11Function::C_OpenSession)
    }

    /// Whether a call gives a handle.
    pub(crate) const fn gives_handle(&self) -> bool {
        self.opens_session() || self.makes.is_some()
    }

    /// Bytes that it is given anew; 0 for an input that was prepared.
    pub(crate) const fn given_bytes(&self) -> u32 {
        match self.input {
            StepInput::Bytes(bytes) | StepInput::Below(bytes) => bytes,
            StepInput::CipherText(_)
            | StepInput::Signed(_)
            | StepInput::Part { .. }
            | StepInput::Pin => 0,
        }
    }

    /// Whether what a call gives is kept, to be judged afterwards.
    pub(crate) const fn keeps_result(&self) -> bool {
        self.is_judged && self.gives_result()
    }

    /// Whether a call gives a result of an operation, or a part of one.
    pub(crate) const fn gives_result(&self) -> bool {
        use Pkcs11Function as F;
        !self.only_length
            && matches!(
                self.call,
                F::C_Sign
                    | F::C_SignFinal
                    | F::C_Encrypt
                    | F::C_EncryptUpdate
                    | F::C_EncryptFinal
                    | F::C_Decrypt
                    | F::C_DecryptUpdate
                    | F::C_DecryptFinal
                    | F::C_Digest
                    | F::C_DigestFinal
            )
    }
}

/// An object that a call makes: one of the session's, whatever it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MadeObject {
    /// Its place among the objects of its process.
    pub place: u32,
    /// The kind and size of the key; of a pair it is the private half.
    pub spec: KeySpec,
    /// What later calls do with it.
    pub uses: KeyUses,
    /// Its value is read (not CKA_SENSITIVE, but CKA_EXTRACTABLE).
    pub is_read: bool,
}

/// When a call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Due {
    /// So long after the call before it has returned: the application computes meanwhile.
    AfterAnswer(Nanos),
    /// So long after the replay's start: somebody outside comes when he comes.
    At(Nanos),
}

/// What a call is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StepInput {
    /// So many pseudo-random bytes.
    Bytes(u32),
    /// The same below an RSA modulus of that length.
    Below(u32),
    /// A cipher text, or a wrapped key, that was prepared, by its place.
    CipherText(u32),
    /// So many bytes and their signature, by its place.
    Signed(u32),
    /// The user's PIN, for the key of the operation that has begun.
    Pin,
    /// A part of one of these.
    Part {
        /// Its place.
        prepared: u32,
        /// Where the part begins, in bytes.
        from: u32,
        /// How long it is, in bytes.
        bytes: u32,
    },
}
