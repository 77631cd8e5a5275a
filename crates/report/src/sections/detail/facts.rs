//! How a result came about, a line for each thing that the record knows of it.

use tapstone_record::{
    CaseResult, Fraction, Key, LimitEvidence, LimitedBy, Mechanism, OwnSample, ShareKind,
    Verification, Verifier,
};
use tapstone_text::{thousands, three_digits};

use crate::sections::grid::{Entry, Grid, Keep, figures as right, words as left};
use crate::sections::page::Page;
use crate::sections::span::{Span, Tint};
use crate::{figures, words};

/// A host that used so much of its processors is what limits its share.
const OWN_LIMIT: f64 = 0.9;

/// What ran, and at which rate.
pub(super) fn before(page: &mut Page, case: &CaseResult) {
    add_fact(page, "mechanism", case.mechanism.as_ref().map(mechanism));
    add_fact(page, "key", case.key.as_ref().map(key));
    add_fact(page, "new keys", case.new_keys_on_token.map(new_keys));
    if let Some(rate) = words::rate_of(case) {
        let rate = figures::with_interval(&rate, figures::rate);
        page.fact("rate", Span::new(rate, Tint::Strong));
    }
    add_fact(page, "open loop", open_loop(case));
    add_fact(page, "scheduling", scheduling_delay(case));
    add_fact(page, "published", words::published_mean(case).map(|mean| format!("mean {mean}")));
}

/// Who did it, how it began and ended, and whether it was right.
pub(super) fn after(page: &mut Page, case: &CaseResult) {
    page.blank();
    page.grid(&parties(case));
    add_fact(page, "warm-up", warm_up(case));
    add_fact(page, "window", window(case));
    add_fact(page, "intervals", intervals(case));
    add_fact(page, "client", client(case));
    add_fact(page, "limited by", case.limit.as_ref().map(limit));
    add_fact(page, "verified", case.verification.as_ref().map(verified));
}

fn limit(limit: &LimitEvidence) -> String {
    let what = match limit.limited_by {
        LimitedBy::Unknown | LimitedBy::Interruption => "not known",
        known => words::limit(known),
    };
    format!("{what}: {}", limit.why)
}

fn add_fact(page: &mut Page, label: &str, value: Option<String>) {
    value.into_iter().for_each(|value| page.fact(label, Span::plain(value)));
}

fn new_keys(on_token: bool) -> String {
    if on_token { "on the token" } else { "for the session" }.to_owned()
}

fn mechanism(mechanism: &Mechanism) -> String {
    let mut parts = vec![mechanism.name.clone()];
    parts.extend(mechanism.parameters.clone());
    parts.push(match mechanism.hardware {
        Some(true) => "the token says hardware".into(),
        Some(false) => "the token says software".into(),
        None => "the token does not say whether in hardware".into(),
    });
    parts.join(" · ")
}

fn key(key: &Key) -> String {
    let mut parts: Vec<String> = key.label.iter().cloned().collect();
    parts.push(tapstone_text::counted(key.count.into(), "key", "keys"));
    let attributes = [
        (key.token, "on the token", "for the session"),
        (key.sensitive, "sensitive", "not sensitive"),
        (key.extractable, "extractable", "not extractable"),
    ];
    let named = attributes.iter().filter_map(|(value, yes, no)| {
        Some(if (*value)? { (*yes).to_owned() } else { (*no).to_owned() })
    });
    parts.extend(named);
    parts.join(" · ")
}

/// `1,000/s offered, 998/s achieved (99.8 %)`.
fn open_loop(case: &CaseResult) -> Option<String> {
    let offered = case.offered_rate.or(case.load.rate_per_second)?;
    let offered_text = format!("{} offered", figures::rate(offered.0));
    let Some(achieved) = case.achieved_rate else { return Some(offered_text) };
    let share = figures::share(Fraction(achieved.0 / offered.0));
    Some(format!("{offered_text}, {} achieved ({share})", figures::rate(achieved.0)))
}

/// How late the generator was; it is in the latencies, which count from the intended start.
fn scheduling_delay(case: &CaseResult) -> Option<String> {
    let late = case.scheduling_delay_ns?;
    let quantiles = [("p50", late.p50), ("p99", late.p99), ("p99.9", late.p99_9)];
    let known = quantiles.iter().filter_map(|(name, value)| Some(format!("{name} {}", (*value)?)));
    let mut parts: Vec<String> = known.collect();
    parts.push(format!("longest {}", late.max));
    Some(format!("delay of the generator: {}", parts.join(", ")))
}

/// The calls of an operation, and who did how much of the work.
fn parties(case: &CaseResult) -> Grid {
    let columns = vec![
        left("", Keep::Always),
        left("", Keep::Always),
        right("", Keep::Always),
        right("", Keep::Always),
    ];
    let mut entries = Vec::new();
    for (position, phase) in case.phases.iter().enumerate() {
        let label = if position == 0 { "calls" } else { "" };
        entries.push(party(label, &phase.call, figures::time(phase.mean_ns), phase.share));
    }
    for kind in [ShareKind::Token, ShareKind::Process, ShareKind::Host, ShareKind::Thread] {
        let shares = case.shares.iter().filter(|share| share.kind == kind);
        for (position, share) in shares.enumerate() {
            let label = if position == 0 { words::party(kind) } else { "" };
            let mut name = share.name.clone();
            if let (Some(mean), Some(longest)) = (share.mean_ns, share.longest_ns) {
                name.push_str(&format!("  mean {}, longest {longest}", figures::time(mean)));
            }
            if let Some(used) = share.client_utilisation {
                let own = if used.0 >= OWN_LIMIT { ", its own limit" } else { "" };
                name.push_str(&format!("  {} of its processors{own}", figures::share(used)));
            }
            entries.push(party(label, &name, figures::rate(share.rate.0), share.share));
        }
    }
    Grid { columns, entries }
}

fn party(label: &str, name: &str, figure: String, share: Fraction) -> Entry {
    Entry::Cells(vec![
        Span::faint(format!("{label:<10}")),
        Span::plain(name),
        Span::plain(figure),
        Span::faint(figures::share(share)),
    ])
}

fn warm_up(case: &CaseResult) -> Option<String> {
    let warm_up = case.warm_up.as_ref()?;
    let operations = tapstone_text::counted(warm_up.operations, "operation", "operations");
    let text = format!("{operations} in {}", figures::seconds(warm_up.seconds));
    let Some(ratio) = warm_up.ratio_to_median else { return Some(text) };
    let first = match warm_up.first_ns.len() {
        1 => "the first call".into(),
        calls => format!("the first {calls} calls"),
    };
    let ratio = three_digits(ratio);
    Some(format!("{text}; {first} took {ratio} times the median"))
}

fn window(case: &CaseResult) -> Option<String> {
    let length = figures::seconds(case.window?.seconds);
    let completed = tapstone_text::counted(case.completed, "operation", "operations");
    let end = case.stopped_by.map(|by| format!(", ended by {}", words::stopped_by(by)));
    Some(format!("{length}, {completed} completed{}", end.unwrap_or_default()))
}

fn intervals(case: &CaseResult) -> Option<String> {
    let interval = case.interval.as_ref()?;
    let level = 100.0 * interval.level.0;
    let doubt = if interval.reliable { "" } else { " · too narrow: still correlated" };
    Some(format!("{level:.0} %: {}, n = {}{doubt}", interval.method, interval.n))
}

fn client(case: &CaseResult) -> Option<String> {
    let cpu = case.client_cpu.map(|cpu| {
        let (user, system) =
            (figures::seconds(cpu.user_seconds), figures::seconds(cpu.system_seconds));
        let used = figures::share(cpu.utilisation);
        format!("{used} of its processors (user {user}, system {system})")
    });
    let busy = case.busy_share.map(|busy| format!("workers busy {}", figures::share(busy)));
    let parts: Vec<String> = [cpu, busy].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

fn verified(verification: &Verification) -> String {
    let by = match verification.by {
        Verifier::Software => "by software",
        Verifier::Agent => "checked by the agent",
        Verifier::Token => "by a round trip through the token itself",
    };
    let wrong = match verification.wrong {
        0 => "none wrong".into(),
        wrong => format!("{} WRONG", thousands(wrong)),
    };
    let checked = thousands(verification.checked);
    let eligible = thousands(verification.eligible);
    let own = verification.own_sample.as_ref().map(own_sample).unwrap_or_default();
    match verification.checked {
        0 => format!("not checked{own}"),
        _ => format!("{checked} of {eligible} {by}, {wrong}{own}"),
    }
}

/// What a coordinator drew itself.
fn own_sample(sample: &OwnSample) -> String {
    let drawn = thousands(sample.drawn);
    if sample.unproven > 0 {
        let unproven = thousands(sample.unproven);
        return format!("; {drawn} drawn by the coordinator, {unproven} NOT PROVEN");
    }
    let wrong = match sample.wrong {
        0 => "none wrong".into(),
        wrong => format!("{} WRONG", thousands(wrong)),
    };
    match sample.checked {
        0 => format!("; {drawn} drawn by the coordinator, which could judge none"),
        checked => format!("; {} drawn and judged by the coordinator, {wrong}", thousands(checked)),
    }
}
