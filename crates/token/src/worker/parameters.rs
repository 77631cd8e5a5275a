//! What `CK_MECHANISM.pParameter` points to, kept at one address and brought up to date for each
//! operation without allocating.

use std::ptr;

use cryptoki_sys::*;

use super::capture::IV_BYTES;
use super::input::PreparedInput;
use crate::catalogue::{Parameters, Variant};
use crate::material::gcm_iv;

/// A mechanism whose parameters follow the input. Boxed by its owner: the mechanism points into it.
pub(super) struct Armed {
    mechanism: CK_MECHANISM,
    storage: Storage,
    iv_source: IvSource,
}

/// Where the IV of an operation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IvSource {
    /// The IV is part of the operation's input.
    Input,
    /// It is this worker's counter: no IV comes twice.
    WorkerCounter,
}

enum Storage {
    None,
    Pss(CK_RSA_PKCS_PSS_PARAMS),
    Oaep(CK_RSA_PKCS_OAEP_PARAMS),
    Iv { bytes: usize },
    Counter(CK_AES_CTR_PARAMS),
    Gcm(CK_GCM_PARAMS),
    Ecdh(CK_ECDH1_DERIVE_PARAMS),
}

// SAFETY: the pointers lead into this value, or to the lane that owns it and moves with it.
unsafe impl Send for Armed {}

impl Armed {
    pub(super) fn new(variant: &Variant, iv_source: IvSource) -> Box<Self> {
        let mechanism = CK_MECHANISM {
            mechanism: variant.mechanism.map_or(0, |mechanism| mechanism.number()),
            pParameter: ptr::null_mut(),
            ulParameterLen: 0,
        };
        let storage = storage(variant.parameters);
        let mut armed = Box::new(Self { mechanism, storage, iv_source });
        armed.point();
        armed
    }

    /// Lets the mechanism point to the parameters, which do not move from now on.
    fn point(&mut self) {
        let (pointer, length): (*mut std::ffi::c_void, usize) = match &mut self.storage {
            Storage::None | Storage::Iv { .. } => (ptr::null_mut(), 0),
            Storage::Pss(p) => (ptr::from_mut(p).cast(), size_of::<CK_RSA_PKCS_PSS_PARAMS>()),
            Storage::Oaep(p) => (ptr::from_mut(p).cast(), size_of::<CK_RSA_PKCS_OAEP_PARAMS>()),
            Storage::Counter(p) => (ptr::from_mut(p).cast(), size_of::<CK_AES_CTR_PARAMS>()),
            Storage::Gcm(p) => (ptr::from_mut(p).cast(), size_of::<CK_GCM_PARAMS>()),
            Storage::Ecdh(p) => (ptr::from_mut(p).cast(), size_of::<CK_ECDH1_DERIVE_PARAMS>()),
        };
        self.mechanism.pParameter = pointer;
        self.mechanism.ulParameterLen = length as CK_ULONG;
    }

    /// The mechanism for the next operation.
    ///
    /// `place` starts with [`IV_BYTES`] for the operation's IV, which the token may overwrite.
    ///
    /// # Safety
    /// `place` is valid for writes of [`IV_BYTES`], and with `input` outlives the use
    /// of the mechanism.
    #[inline]
    pub(super) unsafe fn next(
        &mut self,
        worker: u32,
        operation: u64,
        input: &PreparedInput,
        place: *mut u8,
    ) -> *mut CK_MECHANISM {
        let iv = &input.iv[..];
        match &mut self.storage {
            Storage::None | Storage::Pss(_) | Storage::Oaep(_) => {}
            Storage::Iv { bytes } => {
                // SAFETY: the caller vouches for `place`; `iv` is copied within both lengths.
                unsafe { copy_iv(iv, place) };
                self.mechanism.pParameter = place.cast();
                self.mechanism.ulParameterLen = *bytes as CK_ULONG;
            }
            Storage::Counter(parameters) => {
                let length = iv.len().min(parameters.cb.len());
                parameters.cb[..length].copy_from_slice(&iv[..length]);
            }
            Storage::Gcm(parameters) => {
                let counter;
                let iv = match self.iv_source {
                    IvSource::WorkerCounter => {
                        counter = gcm_iv(worker, operation);
                        &counter[..]
                    }
                    IvSource::Input => iv,
                };
                // SAFETY: as above.
                unsafe { copy_iv(iv, place) };
                parameters.pIv = place;
            }
            Storage::Ecdh(parameters) => {
                parameters.pPublicData = input.bytes.as_mut_ptr();
                parameters.ulPublicDataLen = input.bytes.len() as CK_ULONG;
            }
        }
        &mut self.mechanism
    }
}

/// # Safety
/// `place` is valid for writes of [`IV_BYTES`].
unsafe fn copy_iv(iv: &[u8], place: *mut u8) {
    // SAFETY: the length is within `iv` and within what the caller vouches for.
    unsafe { ptr::copy_nonoverlapping(iv.as_ptr(), place, iv.len().min(IV_BYTES)) };
}

fn storage(parameters: Parameters) -> Storage {
    match parameters {
        Parameters::None | Parameters::Objects { .. } => Storage::None,
        Parameters::Pss { hash, salt_bytes } => Storage::Pss(CK_RSA_PKCS_PSS_PARAMS {
            hashAlg: hash.mechanism().number(),
            mgf: hash.mgf(),
            sLen: salt_bytes as CK_ULONG,
        }),
        Parameters::Oaep { hash } => Storage::Oaep(CK_RSA_PKCS_OAEP_PARAMS {
            hashAlg: hash.mechanism().number(),
            mgf: hash.mgf(),
            source: CKZ_DATA_SPECIFIED,
            pSourceData: ptr::null_mut(),
            ulSourceDataLen: 0,
        }),
        Parameters::Iv { bytes } => Storage::Iv { bytes },
        Parameters::Counter { bits } => {
            Storage::Counter(CK_AES_CTR_PARAMS { ulCounterBits: bits as CK_ULONG, cb: [0; 16] })
        }
        Parameters::Gcm { iv_bytes, tag_bits } => Storage::Gcm(CK_GCM_PARAMS {
            pIv: ptr::null_mut(),
            ulIvLen: iv_bytes as CK_ULONG,
            ulIvBits: 8 * iv_bytes as CK_ULONG,
            pAAD: ptr::null_mut(),
            ulAADLen: 0,
            ulTagBits: tag_bits as CK_ULONG,
        }),
        Parameters::Ecdh { .. } => Storage::Ecdh(CK_ECDH1_DERIVE_PARAMS {
            kdf: CKD_NULL,
            ulSharedDataLen: 0,
            pSharedData: ptr::null_mut(),
            ulPublicDataLen: 0,
            pPublicData: ptr::null_mut(),
        }),
    }
}
