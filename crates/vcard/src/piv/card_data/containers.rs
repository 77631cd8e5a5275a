//! The contents of data objects that are not signed by themselves: SP 800-73-5 part 1, appendix A.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Deserialize;

use crate::piv::{AID, tlv};

/// How certificates stand in their objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CertificateStorage {
    /// As DER.
    #[default]
    Plain,
    /// Compressed with gzip.
    Gzip,
}

/// Error detection code: empty, and last in every container.
pub(super) fn error_detection_code() -> Vec<u8> {
    tlv::element(0xFE, &[])
}

fn container(elements: &[(u8, &[u8])]) -> Vec<u8> {
    let elements = elements.iter().map(|(tag, value)| tlv::element(*tag, value));
    elements.chain([error_detection_code()]).collect::<Vec<_>>().concat()
}

/// A certificate's container. CertInfo says whether it is compressed (bit 1), with gzip.
pub(super) fn certificate(der: &[u8], stored: CertificateStorage) -> Vec<u8> {
    match stored {
        CertificateStorage::Plain => container(&[(0x70, der), (0x71, &[0x00])]),
        CertificateStorage::Gzip => container(&[(0x70, &gzip(der)), (0x71, &[0x01])]),
    }
}

/// RFC 1952, as small as it gets.
fn gzip(der: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(der).and_then(|()| encoder.finish());
    written.expect("memory takes everything that is written to it")
}

/// The card capability container, which only old middleware reads: GSC-IS 2.1, 6.1.
pub(super) fn card_capability_container(guid: &[u8; 16]) -> Vec<u8> {
    // GSC-RID, manufacturer unknown, card type 02 (Java Card file system), card identifier.
    let mut identifier = vec![0xA0, 0x00, 0x00, 0x01, 0x16, 0xFF, 0x02];
    identifier.extend(&guid[2..]);
    container(&[
        (0xF0, &identifier),
        // Versions 2.1 of the container and of its grammar.
        (0xF1, &[0x21]),
        (0xF2, &[0x21]),
        (0xF3, &[]),
        // No PKCS #15; data model 10, PIV.
        (0xF4, &[0x00]),
        (0xF5, &[0x10]),
        (0xF6, &[]),
        (0xF7, &[]),
        (0xFA, &[]),
        (0xFB, &[]),
        (0xFC, &[]),
        (0xFD, &[]),
    ])
}

/// The discovery object: the application's name; a PIN of its own, and nothing else, opens it.
pub(super) fn discovery() -> Vec<u8> {
    let policy = tlv::long_element(tlv::Tag::application(0x2F), &[0x40, 0x00]);
    tlv::element(0x7E, &[tlv::element(0x4F, &AID), policy].concat())
}

/// Printed information; the date is `2031JAN02`.
pub(super) fn printed_information(name: &str, expires: &str, serial: &str) -> Vec<u8> {
    container(&[
        (0x01, name.as_bytes()),
        (0x02, b"Virtual"),
        (0x04, expires.as_bytes()),
        (0x05, serial.as_bytes()),
        (0x06, b"TAPSTONE"),
    ])
}
