//! What one process is to do, as it is sent to it.

use std::fmt;

use serde::{Deserialize, Serialize};
use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::Pkcs11Function;
use tapstone_token_operations::catalogue::{Hash, KeySpec};
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
    /// Inputs that the token has to make: signatures to verify, cipher texts to decrypt.
    pub prepared: Vec<PreparedInput>,
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
}

impl fmt::Display for KeyUses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uses = [
            (self.sign, "sign"),
            (self.verify, "verify"),
            (self.encrypt, "encrypt"),
            (self.decrypt, "decrypt"),
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
    /// A signature over so many bytes, or a cipher text of so many.
    pub bytes: u32,
    /// It is a signature.
    pub is_signature: bool,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayStep {
    /// Its place among the calls of the recorded thread.
    pub origin: u32,
    /// Which function is called.
    pub call: Pkcs11Function,
    /// When the call begins.
    pub due: Due,
    /// A place among the process's sessions.
    pub session: Option<u32>,
    /// A place among the keys.
    pub key: Option<u32>,
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
}

impl ReplayStep {
    /// Whether it reads an object that no operation used, and that something else stands for.
    pub(crate) const fn reads_stand_in(&self) -> bool {
        matches!(self.call, Pkcs11Function::C_GetAttributeValue) && self.key.is_none()
    }

    /// Whether the room of a call is one for bytes.
    pub(crate) const fn gives_bytes(&self) -> bool {
        !matches!(self.call, Pkcs11Function::C_OpenSession | Pkcs11Function::C_FindObjects)
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

/// When a call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Due {
    /// So long after the call before it has returned: the application computes meanwhile.
    AfterAnswer(Nanos),
    /// So long after the replay's start: somebody outside comes when he comes.
    At(Nanos),
}

/// What a call is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepInput {
    /// So many pseudo-random bytes.
    Bytes(u32),
    /// The same below an RSA modulus of that length.
    Below(u32),
    /// A cipher text that was prepared, by its place.
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
