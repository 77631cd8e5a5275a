//! Inputs that only the token can make: signatures to verify, cipher texts to decrypt.

use cryptoki_sys::*;
use tapstone_module::{Template, ck};
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Rv};
use tapstone_token_operations::catalogue::KeySpec;

use super::keys::MadeKey;
use super::mechanism::Mechanisms;
use super::{ReplaySite, ReplayTrouble};
use crate::inputs::{iv_of_prepared, noise, prepared_input};
use crate::steps::{PreparedInput, PreparedKind, ReplayProcess};

/// An input that was made.
#[derive(Clone, Debug)]
pub(super) struct PreparedBytes {
    /// What is verified, decrypted or unwrapped.
    pub(super) input: Vec<u8>,
    /// Its signature, or nothing.
    pub(super) signature: Vec<u8>,
}

/// Room for a signature or a tag.
const SPARE_BYTES: usize = 4_096;

pub(super) fn prepare_inputs(
    site: &ReplaySite<'_>,
    process: &ReplayProcess,
    keys: &[MadeKey],
) -> Result<Vec<PreparedBytes>, ReplayTrouble> {
    let mut mechanisms = Mechanisms::default();
    let mut made = Vec::new();
    let noise = noise(process.seed, process.longest_input);
    for (number, wanted) in process.prepared.iter().enumerate() {
        let key = keys[wanted.key as usize];
        let iv = iv_of_prepared(number);
        let mut source = Source { site, key, mechanisms: &mut mechanisms, noise: &noise };
        made.push(match wanted.kind {
            PreparedKind::Signature(_) => source.signature(wanted, iv)?,
            PreparedKind::WrappedKey(spec) => source.wrapped_key(wanted, spec, iv)?,
            PreparedKind::CipherText(_) => source.cipher_text(wanted, iv)?,
        });
    }
    Ok(made)
}

struct Source<'a> {
    site: &'a ReplaySite<'a>,
    key: MadeKey,
    mechanisms: &'a mut Mechanisms,
    noise: &'a [u8],
}

impl Source<'_> {
    fn signature(
        &mut self,
        wanted: &PreparedInput,
        iv: [u8; 16],
    ) -> Result<PreparedBytes, Pkcs11Failure> {
        let mut input = prepared_input(wanted, self.noise);
        let mut signature = vec![0; SPARE_BYTES];
        let mut length = signature.len() as CK_ULONG;
        let session = self.site.main;
        let mechanism = self.mechanisms.point(wanted.mechanism, iv, &[]);
        // SAFETY: the mechanism outlives the call.
        unsafe { ck!(&session.module, C_SignInit(session.handle, mechanism, self.key.own)) }?;
        if let (true, Some(pin)) = (self.key.asks_for_pin, self.site.pin) {
            session.login_for_key(pin)?;
        }
        // SAFETY: the buffers are as long as the arguments say, and outlive the call.
        unsafe {
            ck!(
                &session.module,
                C_Sign(
                    session.handle,
                    input.as_mut_ptr(),
                    input.len() as CK_ULONG,
                    signature.as_mut_ptr(),
                    &mut length
                )
            )
        }?;
        within(length, &mut signature, Pkcs11Function::C_Sign)?;
        Ok(PreparedBytes { input, signature })
    }

    /// A cipher text of the recorded length: of the lengths of a message that give one, the first.
    fn cipher_text(
        &mut self,
        wanted: &PreparedInput,
        iv: [u8; 16],
    ) -> Result<PreparedBytes, Pkcs11Failure> {
        let mut input = prepared_input(wanted, self.noise);
        let mut cipher_text = vec![0; wanted.kind.bytes() as usize + SPARE_BYTES];
        let mut length = cipher_text.len() as CK_ULONG;
        let session = self.site.main;
        let mechanism = self.mechanisms.point(wanted.mechanism, iv, &[]);
        // SAFETY: the mechanism outlives the call.
        unsafe { ck!(&session.module, C_EncryptInit(session.handle, mechanism, self.key.public)) }?;
        // SAFETY: the buffers are as long as the arguments say, and outlive the call.
        unsafe {
            ck!(
                &session.module,
                C_Encrypt(
                    session.handle,
                    input.as_mut_ptr(),
                    input.len() as CK_ULONG,
                    cipher_text.as_mut_ptr(),
                    &mut length
                )
            )
        }?;
        within(length, &mut cipher_text, Pkcs11Function::C_Encrypt)?;
        Ok(PreparedBytes { input: cipher_text, signature: Vec::new() })
    }

    /// A secret of the session's own, wrapped: it is gone afterwards.
    fn wrapped_key(
        &mut self,
        wanted: &PreparedInput,
        spec: KeySpec,
        iv: [u8; 16],
    ) -> Result<PreparedBytes, Pkcs11Failure> {
        let unknown = Pkcs11Failure {
            call: Pkcs11Function::C_GenerateKey,
            code: Rv(CKR_MECHANISM_INVALID as u64),
        };
        let generation = spec.generation().ok_or(unknown)?.number();
        let bytes = spec.secret_bytes().ok_or(unknown)?;
        let template = Template::new()
            .number(CKA_CLASS, CKO_SECRET_KEY)
            .number(CKA_KEY_TYPE, spec.key_type().unwrap_or(CKK_GENERIC_SECRET))
            .flag(CKA_TOKEN, false)
            .bytes(CKA_LABEL, self.site.run.as_bytes())
            .flag(CKA_PRIVATE, self.site.private)
            .flag(CKA_SENSITIVE, false)
            .flag(CKA_EXTRACTABLE, true)
            .number(CKA_VALUE_LEN, bytes as CK_ULONG);
        let session = self.site.main;
        let secret = session.generate_key(generation, template)?;
        let mut wrapped = vec![0; SPARE_BYTES];
        let mut length = wrapped.len() as CK_ULONG;
        let mechanism = self.mechanisms.point(wanted.mechanism, iv, &[]);
        // SAFETY: the buffer is as long as the arguments say, and outlives the call.
        let wrapping: Result<(), Pkcs11Failure> = unsafe {
            ck!(
                &session.module,
                C_WrapKey(
                    session.handle,
                    mechanism,
                    self.key.public,
                    secret,
                    wrapped.as_mut_ptr(),
                    &mut length
                )
            )
        };
        let gone = session.destroy_object(secret);
        wrapping.and(gone)?;
        within(length, &mut wrapped, Pkcs11Function::C_WrapKey)?;
        Ok(PreparedBytes { input: wrapped, signature: Vec::new() })
    }
}

/// A module that says that it wrote more than there was room for is not believed.
fn within(
    length: CK_ULONG,
    buffer: &mut Vec<u8>,
    call: Pkcs11Function,
) -> Result<(), Pkcs11Failure> {
    let length = length as usize;
    if length > buffer.len() {
        return Err(Pkcs11Failure { call, code: Rv(CKR_BUFFER_TOO_SMALL as u64) });
    }
    buffer.truncate(length);
    Ok(())
}
