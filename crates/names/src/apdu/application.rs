//! Applications by their names (AIDs).

/// An application on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Application {
    /// The issuer's security domain of a GlobalPlatform card, its card manager.
    GlobalPlatform,
    /// The PIV card application (SP 800-73-5).
    Piv,
    /// OpenPGP application on ISO smart card operating systems.
    OpenPgp,
    /// A PKCS#15 application (ISO/IEC 7816-15).
    Pkcs15,
    /// The MUSCLE card applet.
    Muscle,
    /// Common Access Card: GSC-IS 2.1.
    Cac,
    /// The Estonian identity card.
    EstEid,
    /// Generic Identity Device Specification.
    Gids,
    /// The applet of a SmartCard-HSM.
    ScHsm,
    /// FIDO: U2F and CTAP.
    Fido,
    /// Machine-readable travel document: ICAO 9303.
    TravelDocument,
    /// NFC Forum type 4 tag.
    Ndef,
    /// A payment system's directory: EMV.
    Payment,
    /// A YubiKey's own: management, OTP, OATH.
    YubiKey,
    /// Tapstone's benchmark applet.
    Benchmark,
    /// One that is not known here.
    Other,
}

impl Application {
    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GlobalPlatform => "GlobalPlatform issuer security domain",
            Self::Piv => "PIV",
            Self::OpenPgp => "OpenPGP",
            Self::Pkcs15 => "PKCS#15",
            Self::Muscle => "MUSCLE",
            Self::Cac => "CAC",
            Self::EstEid => "EstEID",
            Self::Gids => "GIDS",
            Self::ScHsm => "SmartCard-HSM",
            Self::Fido => "FIDO",
            Self::TravelDocument => "ICAO eMRTD",
            Self::Ndef => "NFC Forum NDEF",
            Self::Payment => "EMV payment system",
            Self::YubiKey => "YubiKey",
            Self::Benchmark => "Tapstone benchmark applet",
            Self::Other => "application",
        }
    }

    /// The application that a SELECT with this name, or the beginning of it, selects.
    #[must_use]
    pub fn by_aid(aid: &[u8]) -> Self {
        // A name can be given in part, but not without its provider (ISO 7816-5: five bytes).
        let is_part = |known: &[u8]| aid.len() >= 5 && known.starts_with(aid);
        let found = KNOWN.iter().find(|(known, _)| aid.starts_with(known) || is_part(known));
        found.map_or(Self::Other, |(_, application)| *application)
    }
}

/// AIDs as far as the application's versions have them in common.
const KNOWN: &[(&[u8], Application)] = &[
    (b"\xA0\x00\x00\x03\x08\x00\x00\x10\x00", Application::Piv),
    (b"\xD2\x76\x00\x01\x24\x01", Application::OpenPgp),
    (b"\xA0\x00\x00\x01\x51\x00\x00", Application::GlobalPlatform),
    // Card managers of before GlobalPlatform had a provider of its own: Open Platform 2.0.
    (b"\xA0\x00\x00\x00\x03\x00\x00\x00", Application::GlobalPlatform),
    (b"\xA0\x00\x00\x00\x63PKCS-15", Application::Pkcs15),
    (b"\xA0\x00\x00\x00\x01\x01", Application::Muscle),
    (b"\xA0\x00\x00\x00\x79", Application::Cac),
    (b"\xA0\x00\x00\x01\x16", Application::Cac),
    (b"\xD2\x33\x00\x00\x00EstEID", Application::EstEid),
    // Since 2018 it stands under the name of its maker's IAS application.
    (b"\xA0\x00\x00\x00\x77\x01\x08\x00\x07\x00\x00\xFE\x00\x00\x01\x00", Application::EstEid),
    (b"\xA0\x00\x00\x03\x97BTFY\x02\x01", Application::Gids),
    (b"\xE8\x2B\x06\x01\x04\x01\x81\xC3\x1F\x02\x01", Application::ScHsm),
    (b"\xA0\x00\x00\x06\x47\x2F\x00\x01", Application::Fido),
    (b"\xA0\x00\x00\x02\x47\x10\x01", Application::TravelDocument),
    (b"\xD2\x76\x00\x00\x85\x01\x01", Application::Ndef),
    (b"1PAY.SYS.DDF01", Application::Payment),
    (b"2PAY.SYS.DDF01", Application::Payment),
    (b"\xA0\x00\x00\x05\x27", Application::YubiKey),
    (b"\xF0TAPSTONE\x01", Application::Benchmark),
];
