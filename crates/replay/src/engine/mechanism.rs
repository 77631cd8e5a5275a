//! `CK_MECHANISM` with its parameters, kept at one address.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;

use cryptoki_sys::*;

use crate::steps::{MechanismUse, ReplayParameters};

/// The mechanisms that a thread has used. One stays at its address, so that what a call is given can be
/// kept for the next one.
#[derive(Default)]
pub(super) struct Mechanisms(HashMap<MechanismUse, Box<PointedMechanism>>);

impl Mechanisms {
    /// A mechanism with this IV, and with one of these points, where it takes one.
    pub(super) fn point(
        &mut self,
        wanted: MechanismUse,
        iv: [u8; 16],
        points: &[Vec<u8>],
    ) -> *mut CK_MECHANISM {
        let known = self.0.entry(wanted).or_insert_with(|| PointedMechanism::new(wanted));
        known.point(iv, points)
    }
}

/// A mechanism, which points into itself.
struct PointedMechanism {
    parameters: ReplayParameters,
    mechanism: CK_MECHANISM,
    iv: [u8; 16],
    pss: CK_RSA_PKCS_PSS_PARAMS,
    oaep: CK_RSA_PKCS_OAEP_PARAMS,
    counter: CK_AES_CTR_PARAMS,
    gcm: CK_GCM_PARAMS,
    ecdh: CK_ECDH1_DERIVE_PARAMS,
}

impl PointedMechanism {
    fn new(wanted: MechanismUse) -> Box<Self> {
        Box::new(Self {
            parameters: wanted.parameters,
            mechanism: CK_MECHANISM {
                mechanism: wanted.number as CK_MECHANISM_TYPE,
                pParameter: ptr::null_mut(),
                ulParameterLen: 0,
            },
            iv: [0; 16],
            pss: CK_RSA_PKCS_PSS_PARAMS { hashAlg: 0, mgf: 0, sLen: 0 },
            oaep: CK_RSA_PKCS_OAEP_PARAMS {
                hashAlg: CKM_SHA_1,
                mgf: CKG_MGF1_SHA1,
                source: CKZ_DATA_SPECIFIED,
                pSourceData: ptr::null_mut(),
                ulSourceDataLen: 0,
            },
            counter: CK_AES_CTR_PARAMS { ulCounterBits: 128, cb: [0; 16] },
            gcm: CK_GCM_PARAMS {
                pIv: ptr::null_mut(),
                ulIvLen: GCM_IV_BYTES as CK_ULONG,
                ulIvBits: 8 * GCM_IV_BYTES as CK_ULONG,
                pAAD: ptr::null_mut(),
                ulAADLen: 0,
                ulTagBits: 128,
            },
            ecdh: CK_ECDH1_DERIVE_PARAMS {
                kdf: CKD_NULL,
                ulSharedDataLen: 0,
                pSharedData: ptr::null_mut(),
                ulPublicDataLen: 0,
                pPublicData: ptr::null_mut(),
            },
        })
    }

    /// The mechanism with this IV, and with one of these points, where it takes one.
    fn point(&mut self, iv: [u8; 16], points: &[Vec<u8>]) -> *mut CK_MECHANISM {
        self.iv = iv;
        let (parameter, length): (*mut c_void, usize) = match self.parameters {
            ReplayParameters::None => (ptr::null_mut(), 0),
            ReplayParameters::Pss { hash } => {
                self.pss.hashAlg = hash.mechanism().number();
                self.pss.mgf = hash.mgf();
                self.pss.sLen = hash.output_bytes() as CK_ULONG;
                (ptr::from_mut(&mut self.pss).cast(), size_of::<CK_RSA_PKCS_PSS_PARAMS>())
            }
            ReplayParameters::Oaep => {
                (ptr::from_mut(&mut self.oaep).cast(), size_of::<CK_RSA_PKCS_OAEP_PARAMS>())
            }
            ReplayParameters::Iv => (self.iv.as_mut_ptr().cast(), self.iv.len()),
            ReplayParameters::Counter => {
                self.counter.cb = iv;
                (ptr::from_mut(&mut self.counter).cast(), size_of::<CK_AES_CTR_PARAMS>())
            }
            ReplayParameters::Gcm => {
                self.gcm.pIv = self.iv.as_mut_ptr();
                (ptr::from_mut(&mut self.gcm).cast(), size_of::<CK_GCM_PARAMS>())
            }
            ReplayParameters::Ecdh { curve } => {
                let point = points.get(curve as usize).map_or(&[][..], Vec::as_slice);
                self.ecdh.pPublicData = point.as_ptr().cast_mut();
                self.ecdh.ulPublicDataLen = point.len() as CK_ULONG;
                (ptr::from_mut(&mut self.ecdh).cast(), size_of::<CK_ECDH1_DERIVE_PARAMS>())
            }
        };
        self.mechanism.pParameter = parameter;
        self.mechanism.ulParameterLen = length as CK_ULONG;
        &mut self.mechanism
    }
}

/// NIST SP 800-38D, 5.2.1.1: the length that is recommended.
const GCM_IV_BYTES: usize = 12;
