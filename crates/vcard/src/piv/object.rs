//! The data objects of a PIV card, which of them need a PIN, and their files in card data:
//! SP 800-73-5 part 1, table 2 (access), table 3 (tags), appendix A (contents).

/// When an object may be read over the contact interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Always,
    Pin,
}

/// How an object stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectContent {
    /// What tag 53 wraps.
    Data,
    /// An X.509 certificate, DER.
    Certificate,
    /// All of it with its own tag: the two interindustry objects, 7E and 7F61.
    Whole,
}

/// One object of the data model.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredObject {
    pub(super) tag: u32,
    pub(super) file: &'static str,
    pub(super) access: Access,
    pub(super) content: ObjectContent,
}

/// The certificate objects of the keys, by key reference.
pub(super) const fn certificate_of(key: u8) -> Option<u32> {
    match key {
        0x9A => Some(0x5F_C105),
        0x9C => Some(0x5F_C10A),
        0x9D => Some(0x5F_C10B),
        0x9E => Some(0x5F_C101),
        _ => None,
    }
}

pub(super) const CHUID: u32 = 0x5F_C102;
pub(super) const CARD_CAPABILITY_CONTAINER: u32 = 0x5F_C107;
pub(super) const SECURITY_OBJECT: u32 = 0x5F_C106;
pub(super) const PRINTED_INFORMATION: u32 = 0x5F_C109;
pub(super) const DISCOVERY: u32 = 0x7E;

/// The object with this tag.
pub(super) fn by_tag(tag: u32) -> Option<&'static StoredObject> {
    OBJECTS.iter().find(|object| object.tag == tag)
}

/// The object whose file has this name.
pub(super) fn by_file(file: &str) -> Option<&'static StoredObject> {
    OBJECTS.iter().find(|object| object.file == file)
}

/// All files of objects, in the order of the data model.
pub(super) fn files() -> impl Iterator<Item = &'static str> {
    OBJECTS.iter().map(|object| object.file)
}

const fn data(tag: u32, file: &'static str, access: Access) -> StoredObject {
    StoredObject { tag, file, access, content: ObjectContent::Data }
}

const fn certificate(tag: u32, file: &'static str) -> StoredObject {
    StoredObject { tag, file, access: Access::Always, content: ObjectContent::Certificate }
}

const fn whole(tag: u32, file: &'static str) -> StoredObject {
    StoredObject { tag, file, access: Access::Always, content: ObjectContent::Whole }
}

const OBJECTS: [StoredObject; 36] = [
    data(CARD_CAPABILITY_CONTAINER, "ccc.bin", Access::Always),
    data(CHUID, "chuid.bin", Access::Always),
    certificate(0x5F_C105, "piv_authentication_9a.der"),
    data(0x5F_C103, "fingerprints.bin", Access::Pin),
    data(SECURITY_OBJECT, "security_object.bin", Access::Always),
    data(0x5F_C108, "facial_image.bin", Access::Pin),
    certificate(0x5F_C101, "card_authentication_9e.der"),
    certificate(0x5F_C10A, "digital_signature_9c.der"),
    certificate(0x5F_C10B, "key_management_9d.der"),
    data(PRINTED_INFORMATION, "printed_information.bin", Access::Pin),
    whole(DISCOVERY, "discovery.bin"),
    data(0x5F_C10C, "key_history.bin", Access::Always),
    certificate(0x5F_C10D, "retired_1.der"),
    certificate(0x5F_C10E, "retired_2.der"),
    certificate(0x5F_C10F, "retired_3.der"),
    certificate(0x5F_C110, "retired_4.der"),
    certificate(0x5F_C111, "retired_5.der"),
    certificate(0x5F_C112, "retired_6.der"),
    certificate(0x5F_C113, "retired_7.der"),
    certificate(0x5F_C114, "retired_8.der"),
    certificate(0x5F_C115, "retired_9.der"),
    certificate(0x5F_C116, "retired_10.der"),
    certificate(0x5F_C117, "retired_11.der"),
    certificate(0x5F_C118, "retired_12.der"),
    certificate(0x5F_C119, "retired_13.der"),
    certificate(0x5F_C11A, "retired_14.der"),
    certificate(0x5F_C11B, "retired_15.der"),
    certificate(0x5F_C11C, "retired_16.der"),
    certificate(0x5F_C11D, "retired_17.der"),
    certificate(0x5F_C11E, "retired_18.der"),
    certificate(0x5F_C11F, "retired_19.der"),
    certificate(0x5F_C120, "retired_20.der"),
    data(0x5F_C121, "iris_images.bin", Access::Pin),
    whole(0x7F61, "biometric_templates.bin"),
    data(0x5F_C122, "secure_messaging_signer.bin", Access::Always),
    data(0x5F_C123, "pairing_code.bin", Access::Pin),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn tags_and_files_are_each_there_once() {
        assert_eq!(OBJECTS.iter().map(|object| object.tag).collect::<BTreeSet<_>>().len(), 36);
        assert_eq!(files().collect::<BTreeSet<_>>().len(), 36);
        for key in [0x9A, 0x9C, 0x9D, 0x9E] {
            let object = by_tag(certificate_of(key).unwrap()).unwrap();
            assert!(object.file.ends_with(&format!("_{key:02x}.der")), "{object:?}");
        }
    }
}
