//! The values of a record in words: the ones that stand in the record itself for programs, and
//! sentences for people.

use tapstone_record::{
    CaseResult, Change, ComparedCase, Concurrency, Estimate, FindingKind, Fraction, LimitedBy,
    LoadKind, NoNumber, NotCompared, Outcome, OwnSample, Probability, Provenance, Quantity, Queue,
    RateWithin, Record, ShareKind, Status, StoppedBy, Throughput, Variation, Verdict, Verification,
    Verifier, WhatIfSet,
};
use tapstone_text::{counted, thousands};

/// What is said of a queue that grows without bound, which has no mean wait; `None` of another.
pub(crate) fn unbounded_queue(queue: &Queue) -> Option<String> {
    let is_unbounded = queue.overloaded && queue.left_queue.is_none();
    is_unbounded.then(|| {
        format!(
            "{} people an hour come, and at most {} can pass: the queue grows without bound, and \
             no waiting time describes it.",
            thousands(queue.arrivals_per_hour.round() as u64),
            thousands((queue.capacity_per_minute * 60.0).round() as u64)
        )
    })
}

/// Where fewer people came than a queue of this load needs.
pub(crate) fn too_few_people(queue: &Queue) -> Option<String> {
    let needed = queue.arrivals_needed.filter(|needed| *needed > queue.arrivals)?;
    Some(format!(
        "{} people are too few for a queue in use {} of the time, which needs about {} to settle: it \
         started empty, and its times and their intervals cannot be relied on.",
        thousands(queue.arrivals),
        crate::figures::share(queue.utilisation),
        thousands(needed)
    ))
}

/// A set of changes reaches a target by its mean; where its times are spread, not each time.
pub(crate) fn within(set: &WhatIfSet, target: &str) -> String {
    let share = |chance: &Probability| {
        let met = crate::figures::share(Fraction(chance.met.estimate));
        format!("on average within {target}, and {met} of the transactions are")
    };
    set.probability.as_ref().map_or_else(|| format!("within {target}"), share)
}

pub(crate) const fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Unsupported => "unsupported",
        Outcome::Partial => "partial",
        Outcome::Failed => "failed",
    }
}

pub(crate) const fn load(kind: LoadKind) -> &'static str {
    match kind {
        LoadKind::Closed => "closed",
        LoadKind::Open => "open",
    }
}

/// What limits a rate, in a word or two for tables and CSV.
pub(crate) const fn limited_by(limit: LimitedBy) -> &'static str {
    match limit {
        LimitedBy::Device => "device",
        LimitedBy::Client => "client",
        LimitedBy::OtherPrograms => "other programs",
        LimitedBy::ProcessLock => "process lock",
        LimitedBy::ProcessConnection => "process connection",
        LimitedBy::ProcessLockOrConnection => "process lock or connection",
        LimitedBy::Network => "network",
        LimitedBy::SearchCap => "search cap",
        LimitedBy::Interruption => "interruption",
        LimitedBy::Unknown => "unknown",
    }
}

/// What limits a rate, as the beginning of a sentence.
pub(crate) const fn limit(limit: LimitedBy) -> &'static str {
    match limit {
        LimitedBy::Device => "the device",
        LimitedBy::Client => "this machine, not the device",
        LimitedBy::OtherPrograms => "other programs on this machine, not the device",
        LimitedBy::ProcessLock => "a lock that the threads of one process share",
        LimitedBy::ProcessConnection => "a connection that the threads of one process share",
        LimitedBy::ProcessLockOrConnection => {
            "a lock or a connection that the threads of one process share"
        }
        LimitedBy::Network => "the network, not the device",
        LimitedBy::SearchCap => "the end of the search",
        LimitedBy::Interruption => "nothing that is known",
        LimitedBy::Unknown => "nothing that is known",
    }
}

pub(crate) const fn stopped_by(reason: StoppedBy) -> &'static str {
    match reason {
        StoppedBy::Precision => "precision",
        StoppedBy::Time => "time",
        StoppedBy::Count => "count",
        StoppedBy::Interrupted => "interrupted",
        StoppedBy::Failures => "failures",
    }
}

pub(crate) const fn verifier(by: Verifier) -> &'static str {
    match by {
        Verifier::Software => "software",
        Verifier::Agent => "agent",
        Verifier::Token => "token",
    }
}

pub(crate) const fn provenance(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Measured => "measured",
        Provenance::Published => "published",
        Provenance::Derived => "derived",
        Provenance::Assumed => "assumed",
        Provenance::Replayed => "replayed",
        Provenance::Emulated => "emulated",
    }
}

/// Which variation an interval holds.
pub(crate) const fn variation(of: Variation) -> &'static str {
    match of {
        Variation::Window => "within a window",
        Variation::Rounds => "between rounds",
    }
}

/// Why no number of samples would decide, as a clause.
pub(crate) const fn no_number(why: NoNumber) -> &'static str {
    match why {
        NoNumber::OnTheLimit => "the estimate lies on the limit",
        NoNumber::Unreliable => "its samples depend on one another: a longer window may",
        NoNumber::NothingToRepeat => "neither side has a spread that more samples would narrow",
    }
}

/// What stands behind a figure that was not measured: ` (emulated)`. Nothing behind one that was.
pub(crate) fn provenance_mark(of: Option<Provenance>) -> String {
    let marked = of.filter(|it| *it != Provenance::Measured);
    marked.map_or_else(String::new, |it| format!(" ({})", provenance(it)))
}

/// The same of a ratio of two figures.
pub(crate) fn provenance_marks(row: &ComparedCase) -> String {
    let [baseline, candidate] = [row.baseline_provenance, row.candidate_provenance]
        .map(|of| of.filter(|it| *it != Provenance::Measured));
    match (baseline, candidate) {
        (None, None) => String::new(),
        (Some(one), Some(other)) if one == other => format!(" ({})", provenance(one)),
        (one, other) => {
            let side = |name: &str, of: Option<Provenance>| {
                of.map(|it| format!("{name} {}", provenance(it)))
            };
            let sides = [side("baseline", one), side("candidate", other)];
            format!(" ({})", sides.into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
    }
}

/// Where all figures of a record come from, if that is one place, and neither a measurement on this
/// machine nor an emulated device, which the record's own mark tells. In a comparison each side has
/// its own.
pub(crate) fn common_provenance(record: &Record) -> Option<&'static str> {
    if record.comparison.is_some() || record.side_by_side.is_some() {
        return None;
    }
    let first = record.results.first()?.provenance;
    let same = record.results.iter().all(|case| case.provenance == first);
    let told = !matches!(first, Provenance::Measured | Provenance::Emulated);
    (same && told).then(|| provenance(first))
}

pub(crate) const fn party(kind: ShareKind) -> &'static str {
    match kind {
        ShareKind::Token => "tokens",
        ShareKind::Process => "processes",
        ShareKind::Host => "hosts",
        ShareKind::Thread => "threads",
    }
}

pub(crate) const fn quantity(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Throughput => "throughput",
        Quantity::Latency => "latency",
        Quantity::WallTime => "wall time",
        Quantity::CpuTime => "processor time",
    }
}

/// What the interval of a ratio says.
pub(crate) const fn change(change: Change) -> &'static str {
    match change {
        Change::Faster => "faster",
        Change::Slower => "slower",
        Change::Inconclusive => "inconclusive",
    }
}

/// What a row compares, so that no other row of its comparison has the same name:
/// `aes256-gcm.encrypt, 1024 B, 4 threads × 1 process, JCOP31`.
pub(crate) fn row_name(row: &ComparedCase) -> String {
    let bytes = row.message_bytes.map(crate::figures::bytes);
    let parts = [bytes, row.concurrency.map(concurrency), row.item.clone()];
    parts.into_iter().flatten().fold(row.operation.clone(), |name, part| format!("{name}, {part}"))
}

/// `rsa2048.sign: failed: C_Sign: CKR_DEVICE_ERROR`.
pub(crate) fn not_compared(one: &NotCompared) -> String {
    format!("{}: {}", one.operation, one.why)
}

pub(crate) const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Met => "MET",
        Verdict::Missed => "MISSED",
        Verdict::Undecided => "UNDECIDED",
        Verdict::Void => "VOID",
    }
}

/// The source's own mean, where the record's is made anew from the same measurements. It may be
/// negative.
pub(crate) fn published_mean(case: &CaseResult) -> Option<String> {
    let published = case.subtraction.as_ref()?.published_mean_ns?;
    let sign = if published < 0 { "-" } else { "" };
    Some(format!("{sign}{}", crate::figures::time(published.unsigned_abs() as f64)))
}

/// A layer by its name in the record. What is not known is shown as it stands there.
pub(crate) fn layer(name: &str) -> String {
    let known = match name {
        "pcsc" => "PC/SC client",
        "below-pcsc" => "below PC/SC",
        "queue" => "below PC/SC: queue",
        "pcscd" => "below PC/SC: pcscd",
        "driver-and-card" => "below PC/SC: driver and card",
        "lock" => "waiting for a lock",
        "children" => "waiting for children",
        "user" => "waiting for the user",
        other => match other.strip_prefix("pkcs11") {
            Some(module) => return format!("PKCS#11{module}"),
            None => other,
        },
    };
    known.to_owned()
}

pub(crate) fn finding(kind: &FindingKind) -> &str {
    match kind {
        FindingKind::Sleep => "sleep",
        FindingKind::BusyWait => "busy wait",
        FindingKind::PollQuantum => "poll quantum",
        FindingKind::RepeatedLookup => "repeated lookup",
        FindingKind::RepeatedSearch => "repeated search",
        FindingKind::RepeatedRead => "repeated read",
        FindingKind::LengthProbe => "length probe",
        FindingKind::MultiPart => "message in parts",
        FindingKind::KeyChurn => "keys for one operation",
        FindingKind::RepeatedCommand => "repeated command",
        FindingKind::DelayedAck => "delayed acknowledgement",
        FindingKind::Serialised => "serialised threads",
        FindingKind::SessionChurn => "session churn",
        FindingKind::Other(name) => name,
    }
}

/// `4 threads × 1 process`; hosts only where there is more than one.
pub(crate) fn concurrency(workers: Concurrency) -> String {
    let threads = counted(workers.threads.into(), "thread", "threads");
    let processes = counted(workers.processes.into(), "process", "processes");
    match workers.hosts {
        1 => format!("{threads} × {processes}"),
        hosts => format!("{threads} × {processes} × {}", counted(hosts.into(), "host", "hosts")),
    }
}

/// All workers. Wider than any record's product of the three.
pub(crate) fn workers(of: Concurrency) -> u128 {
    u128::from(of.threads) * u128::from(of.processes) * u128::from(of.hosts)
}

/// Where it went wrong: `C_SignInit: CKR_MECHANISM_INVALID`; empty when the record does not say.
pub(crate) fn place(status: &Status) -> String {
    let parts = [status.step.as_deref(), status.code.as_deref()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// A case's rate as an estimate, in operations per second.
pub(crate) fn rate_of(case: &CaseResult) -> Option<Estimate> {
    let Throughput { estimate, low, high, .. } = case.throughput?;
    Some(Estimate { estimate, low, high })
}

/// What stands behind an interval that is too narrow to be true; else nothing.
pub(crate) fn doubt(case: &CaseResult) -> &'static str {
    if case.interval.as_ref().is_none_or(|of| of.reliable) { "" } else { " ?" }
}

/// How many operations of a case failed, whatever the code.
pub(crate) fn failures(case: &CaseResult) -> u64 {
    case.failed.values().fold(0, |sum, count| sum.saturating_add(*count))
}

/// `2 of 502 operations failed`; `None` when none did.
pub(crate) fn failure_count(case: &CaseResult) -> Option<String> {
    let failed = failures(case);
    let all = thousands(case.completed.saturating_add(failed));
    (failed > 0).then(|| format!("{} of {all} operations failed", thousands(failed)))
}

/// `2 × CKR_DEVICE_ERROR, 1 × CKR_FUNCTION_FAILED`.
pub(crate) fn failure_codes(case: &CaseResult) -> String {
    let code = |(code, count): (&String, &u64)| format!("{} × {code}", thousands(*count));
    case.failed.iter().map(code).collect::<Vec<_>>().join(", ")
}

/// What went wrong with a case, in a sentence; `None` when nothing did.
pub(crate) fn trouble(case: &CaseResult) -> Option<String> {
    let place = place(&case.status);
    let place = if place.is_empty() { String::new() } else { format!(": {place}") };
    let outcome = match case.status.outcome {
        Outcome::Ok => None,
        Outcome::Unsupported => Some(format!("unsupported{place}")),
        Outcome::Partial => Some(format!("partial{place}")),
        Outcome::Failed => Some(format!("FAILED{place}")),
    };
    let failures = failure_count(case).map(|count| format!("{count} ({})", failure_codes(case)));
    let parts: Vec<String> = [outcome, failures, wrong(case)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// `3 of 20,000 checked results were WRONG`.
fn wrong(case: &CaseResult) -> Option<String> {
    let of = case.verification.filter(|of| of.wrong > 0)?;
    let wrong = thousands(of.wrong);
    let checked = thousands(of.checked);
    Some(format!("{wrong} of {checked} checked results were WRONG, so the rate counts for nothing"))
}

/// `1,234 ✓`, `12 of 1,234 ✓`, `3 WRONG`, `3 NOT PROVEN` or `not checked`; `by token` where the token
/// itself did.
pub(crate) fn verified(verification: Option<&Verification>) -> String {
    let Some(Verification { eligible, checked, wrong, by, own_sample, .. }) = verification else {
        return "not checked".into();
    };
    let by = judge_suffix(*by);
    if let Some(OwnSample { unproven, .. }) = own_sample
        && *unproven > 0
        && *wrong == 0
    {
        return format!("{} NOT PROVEN", thousands(*unproven));
    }
    match (*checked, *wrong) {
        (_, wrong) if wrong > 0 => format!("{} WRONG", thousands(wrong)),
        (0, _) => "not checked".into(),
        (all, _) if all == *eligible => format!("{} ✓{by}", thousands(all)),
        (some, _) => format!("{} of {} ✓{by}", thousands(some), thousands(*eligible)),
    }
}

const fn judge_suffix(by: Verifier) -> &'static str {
    match by {
        Verifier::Software => "",
        Verifier::Agent => " by the agent",
        Verifier::Token => " by token",
    }
}

/// The same in few columns: of a sample, the share that was checked.
pub(crate) fn verified_briefly(verification: Option<&Verification>) -> String {
    match verification {
        Some(of @ Verification { eligible, checked: checked @ 1.., wrong: 0, by, .. })
            if checked < eligible && !of.is_unproven() =>
        {
            let by = judge_suffix(*by);
            // Never rounded up to all of them, nor down to none.
            let percent = 100.0 * *checked as f64 / *eligible as f64;
            match percent {
                ..0.1 => format!("<0.1 % ✓{by}"),
                percent => format!("{:.1} % ✓{by}", percent.min(99.9)),
            }
        }
        other => verified(other),
    }
}

/// `p99`, `p99.9`; of a quantile that Tapstone does not look for, only that it is one.
pub(crate) fn quantile_name(within: &RateWithin) -> &'static str {
    const NAMES: [(f64, &str); 5] =
        [(0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9")];
    let same = |(quantile, _): &&(f64, &str)| (quantile - within.quantile.0).abs() < 1e-9;
    NAMES.iter().find(same).map_or("quantile", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use tapstone_record::SampleFindings;

    use super::*;

    #[test]
    fn verification_is_never_better_than_it_was() {
        let words = |eligible, checked, wrong, by| {
            verified(Some(&Verification::new(eligible, checked, wrong, by)))
        };
        assert_eq!(words(1234, 1234, 0, Verifier::Software), "1,234 ✓");
        assert_eq!(words(1234, 12, 0, Verifier::Software), "12 of 1,234 ✓");
        assert_eq!(words(1234, 1234, 0, Verifier::Token), "1,234 ✓ by token");
        assert_eq!(words(1234, 12, 0, Verifier::Agent), "12 of 1,234 ✓ by the agent");
        assert_eq!(words(1234, 12, 3, Verifier::Software), "3 WRONG");
        let unproven = |wrong| {
            let found = SampleFindings { checked: 0, wrong: 0, unproven: 32 };
            let own_sample = Some(OwnSample::new(1000, 32, found));
            let of_agent = Verification::new(1234, 12, wrong, Verifier::Agent);
            let verification = Verification { own_sample, ..of_agent };
            [verified(Some(&verification)), verified_briefly(Some(&verification))]
        };
        assert_eq!(unproven(0), ["32 NOT PROVEN", "32 NOT PROVEN"]);
        assert_eq!(unproven(3), ["3 WRONG", "3 WRONG"]);
        assert_eq!(words(1234, 0, 0, Verifier::Software), "not checked");
        assert_eq!(words(0, 0, 0, Verifier::Software), "not checked");
        assert_eq!(verified(None), "not checked");
        let sample = |checked, eligible| {
            let by = Verifier::Software;
            verified_briefly(Some(&Verification::new(eligible, checked, 0, by)))
        };
        assert_eq!(sample(9_999_999, 10_000_000), "99.9 % ✓");
        assert_eq!(sample(1, 10_000_000), "<0.1 % ✓");
        assert_eq!(sample(20, 20), "20 ✓");
    }
}
