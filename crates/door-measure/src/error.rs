//! What can stand in the way of measuring at a door, in words that say what to do.

use std::io;
use std::path::PathBuf;

use tapstone_card::controller::Lost;
use tapstone_card::scard::NoLibrary;
use tapstone_piv::{NotACertificate, TrustError};
use thiserror::Error;

/// Why certificates or CRLs cannot be used.
#[derive(Debug, Error)]
pub enum FilesError {
    /// A file or folder cannot be read.
    #[error("{}: {error}", .path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A file holds something else.
    #[error("{}: {error}", .path.display())]
    NotACertificate {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with it.
        error: NotACertificate,
    },
    /// There is no certificate.
    #[error(
        "no certificate in {0}\nhint: put the root CA's certificate there, as .der, .cer, .crt or \
         .pem"
    )]
    NoCertificate(String),
    /// There is no CRL, although some were asked for.
    #[error("no CRL in {0}\nhint: put CRLs there, as .crl, .der or .pem, or leave --crl out")]
    NoCrl(String),
    /// There is no OCSP answer, although some were named.
    #[error("no OCSP answer in {0}\nhint: put answers there in DER, as .ocsp, .ors, .resp or .der")]
    NoOcspAnswer(String),
    /// Bytes that were read before are no certificate.
    #[error("{0}")]
    Certificate(#[from] NotACertificate),
    /// Nothing can be decided with what there is.
    #[error("{0}")]
    Trust(#[from] TrustError),
}

/// Why a worker cannot authenticate cards.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The memory that names a call in flight cannot be mapped.
    #[error("{0}")]
    Board(#[from] io::Error),
    /// PC/SC's library is missing.
    #[error("{0}")]
    NoLibrary(#[from] NoLibrary),
    /// Certificates or CRLs cannot be used.
    #[error("{0}")]
    Files(#[from] FilesError),
    /// The policy is no object identifier.
    #[error("{0}")]
    Policy(String),
    /// The PIN cannot be that of a PIV card.
    #[error("a PIV card's PIN has 1 to 8 characters\nhint: look at the PIN")]
    Pin,
}

/// Why nothing can be measured.
#[derive(Debug, Error)]
pub enum DoorMeasureError {
    /// No worker process could be started.
    #[error("cannot start a worker process: {0}")]
    Spawn(io::Error),
    /// The worker could not be made ready; it says why.
    #[error("{0}")]
    Open(String),
    /// The worker is no more.
    #[error("{0}")]
    Lost(Lost),
    /// The worker's answer is to something else.
    #[error("the worker answers something else")]
    Unexpected,
    /// The user ended it.
    #[error("interrupted before anything was measured")]
    Interrupted,
}
