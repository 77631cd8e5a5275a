//! Inputs that only the token can make: signatures to verify, cipher texts to decrypt.

use cryptoki_sys::*;
use tapstone_module::ck;
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Rv};

use super::keys::MadeKey;
use super::mechanism::PointedMechanism;
use super::{ReplaySite, ReplayTrouble};
use crate::inputs::{iv_of_prepared, noise, prepared_input};
use crate::steps::{PreparedInput, ReplayProcess};

/// An input that was made.
#[derive(Clone, Debug)]
pub(super) struct PreparedBytes {
    /// What is verified or decrypted.
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
    let mut mechanism = PointedMechanism::new();
    let mut made = Vec::new();
    let noise = noise(process.seed, process.longest_input);
    for (number, wanted) in process.prepared.iter().enumerate() {
        let key = keys[wanted.key as usize];
        let iv = iv_of_prepared(number);
        let mut source = Source { site, key, mechanism: &mut mechanism, noise: &noise };
        made.push(if wanted.is_signature {
            source.signature(wanted, iv)?
        } else {
            source.cipher_text(wanted, iv)?
        });
    }
    Ok(made)
}

struct Source<'a> {
    site: &'a ReplaySite<'a>,
    key: MadeKey,
    mechanism: &'a mut PointedMechanism,
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
        let mechanism = self.mechanism.point(wanted.mechanism, iv);
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
        let mut cipher_text = vec![0; wanted.bytes as usize + SPARE_BYTES];
        let mut length = cipher_text.len() as CK_ULONG;
        let session = self.site.main;
        let mechanism = self.mechanism.point(wanted.mechanism, iv);
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
