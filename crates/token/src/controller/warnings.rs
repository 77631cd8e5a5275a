//! What a reader of a case should know before believing it, each with what to try next.

use tapstone_measure::series::Series;
use tapstone_measure::summary::Summary;
use tapstone_measure::trend::{self, FirstCalls};
use tapstone_measure::units::Nanos;
use tapstone_names::pkcs11::Pkcs11Failure;
use tapstone_record as record;

use super::plan::{CasePlan, LoadPlan};
use super::ran_case::RanCase;
use crate::protocol::Broken;

/// An open loop that completed less than this share of what was offered did not keep up.
const KEPT_UP: f64 = 0.99;

/// Time in calls may exceed workers times window by this much: clocks are read twice.
const BUSY_TOLERANCE: f64 = 0.005;

/// The warnings of a case whose figures are in place.
pub(super) fn case_warnings(
    case: &record::CaseResult,
    plan: &CasePlan,
    ran: &RanCase,
    series: &Series,
    summary: &Summary,
) -> Vec<String> {
    let window = ran.gathered.window();
    let total = series.total();
    let median = summary.p50.map(|p50| Nanos(p50.estimate as u64));
    let drift = trend::drift(series, window);
    let drifts = matches!(drift.course, trend::Course::Slower | trend::Course::Faster);
    // The operations of a mix differ by themselves.
    let alone = case.mechanism.is_some() || plan.lanes.len() == 1;
    let modes = alone.then(|| trend::bimodality(&total, plan.common.clock_step)).flatten();
    let warm_up = ran.warm_ups.first().zip(median).and_then(|(warm_up, median)| {
        let first = FirstCalls { latencies: &warm_up.first, warm_up: warm_up.operations };
        trend::slow_start(first, median, total.busy)
    });
    let all = [
        wrong(case),
        failed(case),
        behind(case, plan),
        kept_away(case, plan, ran),
        drifts.then(|| drift.to_string()),
        modes.map(|modes| modes_note(&case.operation, &modes.to_string())),
        trend::outlier(&total).map(|outlier| outlier.to_string()),
        warm_up.map(|warm_up| warm_up.to_string()),
        dropped(ran),
    ];
    all.into_iter().flatten().collect()
}

/// Answers that cannot be, of operations that do not count: no figure holds them, but they say
/// what the module is worth.
pub(super) fn broken_outside(broken: &[Broken]) -> Option<String> {
    let all: u64 = broken.iter().map(|broken| broken.count).sum();
    let named = |broken: &Broken| {
        let Pkcs11Failure { call, code } = broken.first;
        match broken.count {
            count if count == all => format!("{call} {}", code.kind()),
            count => format!("{call} {} ({count} times)", code.kind()),
        }
    };
    let named: Vec<String> = broken.iter().map(named).collect();
    (all > 0).then(|| {
        format!(
            "outside the window, {all} {} broke PKCS #11: {}; no figure holds that, but the module \
             is not to be trusted",
            if all == 1 { "answer" } else { "answers" },
            named.join(", ")
        )
    })
}

/// What two modes mean. A signature of ML-DSA is begun again until it passes (FIPS 204, algorithm
/// 7), so its time is a geometric number of attempts, whatever the device.
fn modes_note(operation: &str, modes: &str) -> String {
    let rejects = operation.starts_with("ml-dsa-") && operation.ends_with(".sign");
    if !rejects {
        return modes.to_owned();
    }
    let (found, _) = modes.split_once(", so neither").unwrap_or((modes, ""));
    format!(
        "{found}: by design, since ML-DSA begins a signature again until it passes its rejection \
         step; judge it by its quantiles, and look at attempts, not at the device"
    )
}

fn wrong(case: &record::CaseResult) -> Option<String> {
    let record::Verification { wrong, checked, .. } = case.verification.filter(|v| v.wrong > 0)?;
    Some(format!(
        "{wrong} of {checked} checked results were wrong: no figure of this case can be trusted"
    ))
}

fn failed(case: &record::CaseResult) -> Option<String> {
    let failed: u64 = case.failed.values().sum();
    let all = failed + case.completed;
    (failed > 0).then(|| format!("{failed} of {all} operations failed; no figure counts them"))
}

fn behind(case: &record::CaseResult, plan: &CasePlan) -> Option<String> {
    let offered = case.offered_rate?;
    let achieved = case.achieved_rate?;
    let requests = offered.0 * case.window?.seconds.0;
    let missing = requests - achieved.0 * case.window?.seconds.0;
    // Independent arrivals vary by the root of their number; three times that is no chance.
    let chance = match plan.load {
        LoadPlan::Open { poisson: true, .. } => 3.0 * requests.sqrt(),
        _ => 0.0,
    };
    (missing > (1.0 - KEPT_UP) * requests + chance).then(|| {
        format!(
            "{achieved} of the offered {offered} were reached: requests were still waiting at the \
             end, and their wait is not in the latencies"
        )
    })
}

/// Little's law: in a closed loop a worker is either in a call or in the loop.
fn kept_away(case: &record::CaseResult, plan: &CasePlan, ran: &RanCase) -> Option<String> {
    let two_readings = case.clock_readings == record::ClockReadings::Two;
    let busy = case.busy_share.filter(|_| two_readings && case.failed.is_empty())?.0;
    let workers = f64::from(ran.threads) * ran.took_part.len() as f64;
    let per_operation = workers * ran.gathered.window().0 as f64 / case.completed.max(1) as f64;
    let lowest = 1.0 - plan.common.loop_cost_ns / per_operation - trend::EFFECT;
    let percent = 100.0 * busy;
    if busy > 1.0 + BUSY_TOLERANCE {
        return Some(format!(
            "workers were in calls for {percent:.1} % of the window, which cannot be: please report it"
        ));
    }
    (busy < lowest).then(|| {
        format!(
            "workers were in calls for {percent:.1} % of the window only: other work of this machine \
             kept them from the device; try fewer workers or an idle machine"
        )
    })
}

fn dropped(ran: &RanCase) -> Option<String> {
    let dropped: u64 = ran.gathered.done.iter().flatten().map(|done| done.samples_dropped).sum();
    (dropped > 0).then(|| {
        format!(
            "{dropped} raw samples found no room and are not in the samples file; every figure \
             counts them"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_modes_of_ml_dsa_signing_are_by_design() {
        let modes = "latencies have two modes: 60 % around 1 ms and 40 % around 2 ms, so neither \
                     mean nor median describes a typical call: look for two clock speeds";
        let told = modes_note("ml-dsa-65.sign", modes);
        assert!(told.contains("two modes: 60 %") && told.contains("rejection step"), "{told}");
        assert!(!told.contains("clock speeds"), "{told}");
        for other in ["ml-dsa-65.generate", "rsa2048.sign"] {
            assert_eq!(modes_note(other, modes), modes);
        }
    }
}
