//! What came of a case, for the record and for the user; also of one that could not be measured.

use tapstone_measure::summary::Summary;
use tapstone_names::pkcs11::{Pkcs11Failure, Rv};
use tapstone_record as record;

use super::HostClock;
use super::describe::{concurrency, describe_variant, load};
use super::error::{Lost, TokenMeasureError};
use super::plan::CasePlan;
use crate::protocol::Trouble;

/// What came of a case.
#[derive(Debug)]
pub struct CaseOutcome {
    /// The record's cases: one, or for a mix the whole and then its parts.
    pub cases: Vec<record::CaseResult>,
    /// The figures of the first case, for claims and for comparison.
    pub summary: Option<Summary>,
    /// What the user has to be told: a worker lost, keys that were not removed.
    pub trouble: Vec<TokenMeasureError>,
    /// The user ended it.
    pub interrupted: bool,
    /// With hosts: what each had a part in.
    pub hosts: Vec<HostPart>,
}

/// A host's part in a case.
#[derive(Clone, Debug)]
pub struct HostPart {
    /// The number of the host.
    pub host: usize,
    /// From the window's opening to the last that was heard of it.
    pub window: record::Window,
    /// Its clock, as it was known over the case.
    pub clock: Option<HostClock>,
}

impl CaseOutcome {
    pub(super) fn with_trouble(mut self, trouble: Option<TokenMeasureError>) -> Self {
        self.trouble.extend(trouble);
        self
    }

    /// Everything was measured, nothing failed, nothing was wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let clean = |case: &record::CaseResult| {
            let right = case.verification.is_none_or(|verification| verification.wrong == 0);
            case.status.outcome == record::Outcome::Ok && right
        };
        self.trouble.is_empty() && self.cases.iter().all(clean)
    }

    /// The token lacks the operation.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        self.cases.iter().all(|case| case.status.outcome == record::Outcome::Unsupported)
    }
}

/// The outcome of a case that a controller which could not be opened was to measure.
#[must_use]
pub fn not_measured(plan: &CasePlan, error: TokenMeasureError) -> CaseOutcome {
    without(plan, CaseNotMeasured::Error(error))
}

/// A case that was not measured.
pub(super) fn without(plan: &CasePlan, why: CaseNotMeasured) -> CaseOutcome {
    let (status, trouble) = match why {
        CaseNotMeasured::Refused(failure) => {
            let outcome = if is_unsupported(failure.code) {
                record::Outcome::Unsupported
            } else {
                record::Outcome::Failed
            };
            let status = record::Status::at(outcome, failure.call.name(), failure.code.to_string());
            (status, None)
        }
        CaseNotMeasured::Error(error) => {
            let (step, code) = match &error {
                TokenMeasureError::Lost { lost, .. } => (step_of(lost), lost.code().to_owned()),
                TokenMeasureError::Call { failure, .. } => {
                    (failure.call.to_string(), failure.code.to_string())
                }
                TokenMeasureError::Keys { trouble } => {
                    ("C_FindObjects".to_owned(), key_code(trouble).to_owned())
                }
                TokenMeasureError::Interrupted => ("run".to_owned(), "interrupted".to_owned()),
                other => (
                    "prepare".to_owned(),
                    other.to_string().lines().next().unwrap_or("").to_owned(),
                ),
            };
            (record::Status::at(record::Outcome::Failed, step, code), Some(error))
        }
    };
    let interrupted = matches!(trouble, Some(TokenMeasureError::Interrupted));
    let mut case = record::CaseResult::new(plan.name(), status, concurrency(plan), load(plan));
    if let [lane] = &plan.lanes[..] {
        describe_variant(&mut case, &lane.variant, None);
    }
    CaseOutcome {
        cases: vec![case],
        summary: None,
        trouble: trouble.into_iter().collect(),
        interrupted,
        hosts: Vec::new(),
    }
}

fn key_code(trouble: &Trouble) -> &'static str {
    match trouble {
        Trouble::ManyKeys { .. } => "several such keys",
        Trouble::WrongKey { .. } => "wrong key",
        Trouble::NotNoted { .. } => "key not noted",
        Trouble::NotAllowed { .. } => "not allowed by the agent",
        Trouble::NoKey { .. } | Trouble::Call { .. } => "no such key",
    }
}

/// The token cannot do it, as opposed to could not do it now.
fn is_unsupported(code: Rv) -> bool {
    use cryptoki_sys::*;
    !code.is_lost()
        && !code.is_pin()
        && code.violation().is_none()
        && !matches!(
            code.0 as CK_RV,
            CKR_HOST_MEMORY
                | CKR_DEVICE_MEMORY
                | CKR_SESSION_COUNT
                | CKR_FUNCTION_CANCELED
                | CKR_GENERAL_ERROR
                | CKR_FUNCTION_FAILED
        )
}

pub(super) fn step_of(lost: &Lost) -> String {
    lost.call().map_or_else(|| "worker".to_owned(), |call| call.to_string())
}

/// Why a case has no figures.
pub(super) enum CaseNotMeasured {
    /// A call of the trial, or before it, failed: the token cannot do this, or not this way.
    Refused(Pkcs11Failure),
    /// Everything else that can go wrong.
    Error(TokenMeasureError),
}

impl From<TokenMeasureError> for CaseNotMeasured {
    fn from(error: TokenMeasureError) -> Self {
        Self::Error(error)
    }
}
