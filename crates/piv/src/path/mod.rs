//! One certification path: RFC 5280, section 6.1, with the policy graph of RFC 9618.
//!
//! Written here on the parsers of x509-cert. The crate certval has it too, and in a spike its
//! 0.2.0-rc.1 made no false grant. But it is a release candidate that pins others (54 crate versions
//! more), searching paths and CRLs would be ours all the same, and its memory of CRLs is not made
//! for a million entries. This stage is held by NIST's 172 cases and 86 policy sub-cases, and by
//! OpenSSL. A stable certval would go behind the same function.

mod name_constraints;
mod policy;
mod section6;

pub use self::section6::PolicyInputs;
pub(crate) use self::section6::{in_time, is_issuing_ca, understood, validate_path};
