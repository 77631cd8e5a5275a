//! What a module says of itself, its slots, its tokens and their mechanisms.

use std::fmt;
use std::ptr;

use cryptoki_sys::*;
use serde::{Deserialize, Serialize};
use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Violation};

use super::{Module, ck};

/// A `CK_VERSION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The part before the point.
    pub major: u8,
    /// The part after it, two digits.
    pub minor: u8,
}

impl From<CK_VERSION> for Version {
    fn from(version: CK_VERSION) -> Self {
        Self { major: version.major, minor: version.minor }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// `CK_INFO`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryInfo {
    /// The interface that the module implements.
    pub cryptoki_version: Version,
    /// manufacturerID: who made the library.
    pub manufacturer: String,
    /// libraryDescription: what the library is.
    pub description: String,
    /// Which one it is.
    pub version: Version,
}

impl From<&CK_INFO> for LibraryInfo {
    fn from(info: &CK_INFO) -> Self {
        Self {
            cryptoki_version: info.cryptokiVersion.into(),
            manufacturer: text(&info.manufacturerID),
            description: text(&info.libraryDescription),
            version: info.libraryVersion.into(),
        }
    }
}

/// A slot, with its token when there is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotInfo {
    /// `CK_SLOT_ID`.
    pub id: u64,
    /// What the slot is.
    pub description: String,
    /// The slot is a hardware slot (CKF_HW_SLOT).
    pub hardware: bool,
    /// The token in it.
    pub token: Option<TokenInfo>,
}

/// `CK_TOKEN_INFO`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenInfo {
    /// The label given at initialisation.
    pub label: String,
    /// manufacturerID: who made the token.
    pub manufacturer: String,
    /// model: what the token is.
    pub model: String,
    /// Which one it is.
    pub serial: String,
    /// flags: bits CKF_… of CK_TOKEN_INFO.
    pub flags: u64,
    /// hardwareVersion, of the device.
    pub hardware_version: Version,
    /// firmwareVersion, of the device's software.
    pub firmware_version: Version,
    /// The most sessions that this application may have open; `None` when there is no limit or
    /// the token does not say.
    pub max_sessions: Option<u64>,
}

/// Flags of a token by name, in the order of their bits (PKCS #11 3.2, table "Token Information
/// Flags").
const TOKEN_FLAGS: [(u64, &str); 19] = [
    (CKF_RNG, "CKF_RNG"),
    (CKF_WRITE_PROTECTED, "CKF_WRITE_PROTECTED"),
    (CKF_LOGIN_REQUIRED, "CKF_LOGIN_REQUIRED"),
    (CKF_USER_PIN_INITIALIZED, "CKF_USER_PIN_INITIALIZED"),
    (CKF_RESTORE_KEY_NOT_NEEDED, "CKF_RESTORE_KEY_NOT_NEEDED"),
    (CKF_CLOCK_ON_TOKEN, "CKF_CLOCK_ON_TOKEN"),
    (CKF_PROTECTED_AUTHENTICATION_PATH, "CKF_PROTECTED_AUTHENTICATION_PATH"),
    (CKF_DUAL_CRYPTO_OPERATIONS, "CKF_DUAL_CRYPTO_OPERATIONS"),
    (CKF_TOKEN_INITIALIZED, "CKF_TOKEN_INITIALIZED"),
    (CKF_SECONDARY_AUTHENTICATION, "CKF_SECONDARY_AUTHENTICATION"),
    (CKF_USER_PIN_COUNT_LOW, "CKF_USER_PIN_COUNT_LOW"),
    (CKF_USER_PIN_FINAL_TRY, "CKF_USER_PIN_FINAL_TRY"),
    (CKF_USER_PIN_LOCKED, "CKF_USER_PIN_LOCKED"),
    (CKF_USER_PIN_TO_BE_CHANGED, "CKF_USER_PIN_TO_BE_CHANGED"),
    (CKF_SO_PIN_COUNT_LOW, "CKF_SO_PIN_COUNT_LOW"),
    (CKF_SO_PIN_FINAL_TRY, "CKF_SO_PIN_FINAL_TRY"),
    (CKF_SO_PIN_LOCKED, "CKF_SO_PIN_LOCKED"),
    (CKF_SO_PIN_TO_BE_CHANGED, "CKF_SO_PIN_TO_BE_CHANGED"),
    (CKF_ERROR_STATE, "CKF_ERROR_STATE"),
];

impl TokenInfo {
    /// Whether a flag is set.
    #[must_use]
    pub fn has(&self, flag: CK_FLAGS) -> bool {
        self.flags & flag as u64 != 0
    }

    /// The flags that are set, by name.
    #[must_use]
    pub fn flag_names(&self) -> Vec<&'static str> {
        TOKEN_FLAGS.iter().filter(|(bit, _)| self.flags & bit != 0).map(|(_, name)| *name).collect()
    }
}

/// A mechanism as the token lists it. A list lies: only a trial operation tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MechanismInfo {
    /// `CK_MECHANISM_TYPE`.
    pub mechanism: u64,
    /// The smallest key, in the mechanism's own unit.
    pub min_key_size: u64,
    /// ulMaxKeySize, in bits or bytes as the mechanism has it.
    pub max_key_size: u64,
    /// flags: bits CKF_… of CK_MECHANISM_INFO.
    pub flags: u64,
}

impl MechanismInfo {
    /// The token says that hardware does it (CKF_HW).
    #[must_use]
    pub fn hardware(&self) -> bool {
        self.flags & CKF_HW as u64 != 0
    }
}

impl Module {
    /// All slots, with their tokens.
    ///
    /// # Errors
    /// The code of C_GetSlotList or C_GetSlotInfo, or [`Violation::BeyondRoom`] where a list is longer
    /// than a module can have.
    pub fn slots(&self) -> Result<Vec<SlotInfo>, Pkcs11Failure> {
        let mut count = 0;
        // SAFETY: a null list asks for the count (PKCS #11 3.2, 5.5.1); `count` outlives the call.
        unsafe { ck!(self, C_GetSlotList(CK_FALSE, ptr::null_mut(), &mut count)) }?;
        let mut ids = list_of(Pkcs11Function::C_GetSlotList, count)?;
        // SAFETY: the list is as long as `count` says.
        unsafe { ck!(self, C_GetSlotList(CK_FALSE, ids.as_mut_ptr(), &mut count)) }?;
        cut_list(Pkcs11Function::C_GetSlotList, &mut ids, count)?;
        ids.into_iter().map(|id| self.slot(id)).collect()
    }

    /// All slots, with the mechanisms of their tokens if asked.
    ///
    /// # Errors
    /// As [`Module::slots`], and the code of C_GetMechanismList.
    pub fn slots_with_mechanisms(
        &self,
        mechanisms: bool,
    ) -> Result<Vec<(SlotInfo, Vec<MechanismInfo>)>, Pkcs11Failure> {
        let with = |slot: SlotInfo| {
            let ask = mechanisms && slot.token.is_some();
            let list = if ask { self.mechanisms(slot.id as CK_SLOT_ID)? } else { Vec::new() };
            Ok((slot, list))
        };
        self.slots()?.into_iter().map(with).collect()
    }

    fn slot(&self, id: CK_SLOT_ID) -> Result<SlotInfo, Pkcs11Failure> {
        let mut info = CK_SLOT_INFO::default();
        // SAFETY: `info` outlives the call.
        unsafe { ck!(self, C_GetSlotInfo(id, &mut info)) }?;
        let present = info.flags & CKF_TOKEN_PRESENT != 0;
        // A token that cannot be read is as good as none: its slot is still listed.
        let token = if present { self.token(id).ok() } else { None };
        Ok(SlotInfo {
            id: id as u64,
            description: text(&info.slotDescription),
            hardware: info.flags & CKF_HW_SLOT != 0,
            token,
        })
    }

    /// C_GetTokenInfo: also what tells how many tries a PIN has left.
    ///
    /// # Errors
    /// The code of C_GetTokenInfo: CKR_TOKEN_NOT_PRESENT for an empty slot.
    pub fn token(&self, slot: CK_SLOT_ID) -> Result<TokenInfo, Pkcs11Failure> {
        let mut info = CK_TOKEN_INFO::default();
        // SAFETY: `info` outlives the call.
        unsafe { ck!(self, C_GetTokenInfo(slot, &mut info)) }?;
        let limit = info.ulMaxSessionCount;
        let unlimited = limit == CK_EFFECTIVELY_INFINITE || limit == CK_UNAVAILABLE_INFORMATION;
        Ok(TokenInfo {
            label: text(&info.label),
            manufacturer: text(&info.manufacturerID),
            model: text(&info.model),
            serial: text(&info.serialNumber),
            flags: info.flags as u64,
            hardware_version: info.hardwareVersion.into(),
            firmware_version: info.firmwareVersion.into(),
            max_sessions: (!unlimited).then_some(limit as u64),
        })
    }

    /// The mechanisms of a token.
    ///
    /// # Errors
    /// The code of C_GetMechanismList, or a violation where the list cannot be that long.
    pub fn mechanisms(&self, slot: CK_SLOT_ID) -> Result<Vec<MechanismInfo>, Pkcs11Failure> {
        let mut count = 0;
        // SAFETY: a null list asks for the count; `count` outlives the call.
        unsafe { ck!(self, C_GetMechanismList(slot, ptr::null_mut(), &mut count)) }?;
        let mut list = list_of(Pkcs11Function::C_GetMechanismList, count)?;
        // SAFETY: the list is as long as `count` says.
        unsafe { ck!(self, C_GetMechanismList(slot, list.as_mut_ptr(), &mut count)) }?;
        cut_list(Pkcs11Function::C_GetMechanismList, &mut list, count)?;
        // A mechanism that is listed but has no information is left out.
        Ok(list.into_iter().filter_map(|one| self.mechanism(slot, one).ok()).collect())
    }

    /// The key sizes and flags of one mechanism (C_GetMechanismInfo).
    ///
    /// # Errors
    /// The code of the call: CKR_MECHANISM_INVALID for one that the token does not have.
    pub fn mechanism(
        &self,
        slot: CK_SLOT_ID,
        mechanism: CK_MECHANISM_TYPE,
    ) -> Result<MechanismInfo, Pkcs11Failure> {
        let mut info = CK_MECHANISM_INFO::default();
        // SAFETY: `info` outlives the call.
        unsafe { ck!(self, C_GetMechanismInfo(slot, mechanism, &mut info)) }?;
        Ok(MechanismInfo {
            mechanism: mechanism as u64,
            min_key_size: info.ulMinKeySize as u64,
            max_key_size: info.ulMaxKeySize as u64,
            flags: info.flags as u64,
        })
    }
}

/// Far more than any token has mechanisms, or any module slots.
const MAX_LISTED: u64 = 1 << 16;

/// Room for as many as a module says that there are.
fn list_of(call: Pkcs11Function, count: CK_ULONG) -> Result<Vec<CK_ULONG>, Pkcs11Failure> {
    if count as u64 > MAX_LISTED {
        let numbers = Violation::numbers(count as u64, MAX_LISTED);
        return Err(Pkcs11Failure { call, code: Violation::BeyondRoom(numbers).code() });
    }
    Ok(vec![0; count as usize])
}

/// As many as the module has filled in.
fn cut_list(
    call: Pkcs11Function,
    list: &mut Vec<CK_ULONG>,
    count: CK_ULONG,
) -> Result<(), Pkcs11Failure> {
    if count as u64 > list.len() as u64 {
        let numbers = Violation::numbers(count as u64, list.len() as u64);
        return Err(Pkcs11Failure { call, code: Violation::BeyondRoom(numbers).code() });
    }
    list.truncate(count as usize);
    Ok(())
}

/// A blank-padded field (PKCS #11 3.2, 3.1); some modules pad with zeros.
fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field).trim_end_matches([' ', '\0']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_what_there_was_room_for() {
        const CALL: Pkcs11Function = Pkcs11Function::C_GetSlotList;
        let said = |failure: Pkcs11Failure| failure.to_string();
        let mut list = list_of(CALL, 3).unwrap();
        assert_eq!(
            cut_list(CALL, &mut list, 4).map_err(said),
            Err("C_GetSlotList: returned count 4 with room for 3".to_owned())
        );
        assert_eq!(cut_list(CALL, &mut list, 2), Ok(()));
        assert_eq!(list.len(), 2);
        assert_eq!(
            list_of(CALL, CK_ULONG::MAX).map_err(said),
            Err("C_GetSlotList: returned count ~0UL with room for 65536".to_owned())
        );
    }
}
