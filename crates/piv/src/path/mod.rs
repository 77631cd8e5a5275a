//! One certification path: RFC 5280, section 6.1, with the policy graph of RFC 9618.

mod name_constraints;
mod policy;
mod section6;

pub use self::section6::PolicyInputs;
pub(crate) use self::section6::{in_time, is_issuing_ca, understood, validate_path};
