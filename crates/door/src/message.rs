//! What is sent on a path, and the steps that it belongs to.

/// The steps of PKI-CAK as `tapstone door measure` names them, and the one that only modules have.
pub(crate) mod step {
    /// SELECT of the PIV application.
    pub(crate) const SELECT: &str = "select";
    /// GET DATA of the card authentication certificate.
    pub(crate) const READ_CERTIFICATE: &str = "read-certificate";
    /// GENERAL AUTHENTICATE, and the check of its signature.
    pub(crate) const CHALLENGE: &str = "challenge";
    /// Path validation to a trust anchor.
    pub(crate) const VALIDATE: &str = "validate";
    /// The look into a CRL, and whether the certificate is valid now.
    pub(crate) const REVOCATION: &str = "revocation";
    /// GET DATA of the CHUID.
    pub(crate) const READ_CHUID: &str = "read-chuid";
    /// All that is none of these.
    pub(crate) const OTHER: &str = "other";
    /// As scenarios may name them.
    pub(crate) const ALL: [&str; 7] =
        [SELECT, READ_CERTIFICATE, CHALLENGE, VALIDATE, REVOCATION, READ_CHUID, OTHER];
}

/// A command and its response, so many times.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The step that it belongs to.
    pub step: String,
    /// How often it is sent.
    pub count: u32,
    /// Bytes of the command, towards the card.
    pub command_bytes: u32,
    /// Bytes of the response, away from the card.
    pub response_bytes: u32,
}
