//! What a case says of itself before anything was measured: its load, and its operation in the words
//! of the standard.

use tapstone_record as record;

use super::plan::{CasePlan, LoadPlan};
use crate::catalogue::{Parameters, Variant};

pub(super) fn concurrency(plan: &CasePlan) -> record::Concurrency {
    record::Concurrency { threads: plan.threads, processes: plan.processes, hosts: plan.hosts }
}

pub(super) fn load(plan: &CasePlan) -> record::Load {
    match plan.load {
        LoadPlan::Closed | LoadPlan::Chained => record::Load::CLOSED,
        LoadPlan::Open { rate, .. } => record::Load::open(rate),
    }
}

pub(super) fn describe_variant(
    case: &mut record::CaseResult,
    variant: &Variant,
    ready: Option<&crate::protocol::LaneReady>,
) {
    case.mechanism = variant.mechanism.map(|mechanism| record::Mechanism {
        name: mechanism.name().to_owned(),
        parameters: parameters(variant),
        hardware: ready.and_then(|ready| ready.hardware),
    });
    case.message_bytes = (variant.message_bytes > 0).then_some(variant.message_bytes as u64);
}

fn parameters(variant: &Variant) -> Option<String> {
    Some(match variant.parameters {
        Parameters::None | Parameters::Objects { .. } => return None,
        Parameters::Pss { hash, salt_bytes } => {
            format!("{0}, MGF1 {0}, salt {salt_bytes} bytes", hash.mechanism())
        }
        Parameters::Oaep { hash } => format!("{0}, MGF1 {0}", hash.mechanism()),
        Parameters::Iv { bytes } => format!("IV {bytes} bytes"),
        Parameters::Counter { bits } => format!("counter {bits} bits"),
        Parameters::Gcm { iv_bytes, tag_bits } => {
            format!("IV {iv_bytes} bytes, tag {tag_bits} bits")
        }
        Parameters::Ecdh { secret_bytes } => format!("CKD_NULL, {secret_bytes} bytes"),
    })
}
