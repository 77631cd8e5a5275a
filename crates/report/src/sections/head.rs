//! What was measured, how, and on which machine. The command line is not shown: the record has it.

use tapstone_record::{
    CaseResult, Environment, Host, HostState, LimitedBy, Load, LoadKind, Record, StoppedBy, Target,
    Token,
};

use super::mix::{Item, ordered};
use super::page::Page;
use super::shared::common;
use super::span::{Span, Tint};
use crate::{figures, words};

/// More tokens than this are counted, not listed.
const TOKENS: usize = 8;

/// The same of hosts.
const HOSTS: usize = 16;

pub(super) fn add_head(page: &mut Page, record: &Record) {
    let tool = format!("{} {}", record.tool.name, record.tool.version);
    let kind = record.target.kind.name();
    let started = record.started_at.strftime("%Y-%m-%d %H:%M UTC");
    page.heading(&tool, &format!("{kind} · {started}"));
    show_target(page, &record.target);
    if !super::door::is_model(record) {
        page.fact("machine", Span::faint(machine(&record.environment)));
    }
    show_hosts(page, &record.hosts);
}

/// Whoever was lost first, then as many of the others as there is room for.
fn show_hosts(page: &mut Page, hosts: &[Host]) {
    let (done, others): (Vec<&Host>, Vec<&Host>) =
        hosts.iter().partition(|host| host.state == HostState::Done);
    let shown = others.len().max(HOSTS);
    let mut label = "hosts";
    for host in others.iter().chain(&done).take(shown) {
        let tint = if host.state == HostState::Done { Tint::Plain } else { Tint::Bad };
        page.fact(label, Span::new(host_line(host), tint));
        label = "";
    }
    if hosts.len() > shown {
        page.fact("", Span::faint(format!("and {} more", hosts.len() - shown)));
    }
}

fn host_line(host: &Host) -> String {
    let mut parts = vec![host.name.clone()];
    let cores = host.environment.as_ref().and_then(|environment| environment.cores);
    parts.extend(cores.map(|cores| tapstone_text::counted(cores.into(), "core", "cores")));
    parts.extend(host.clock.map(|clock| format!("clock ± {}", clock.bound_ns)));
    let why = host.reason.as_deref().unwrap_or("no reason is known");
    match host.state {
        HostState::Done => {}
        HostState::Lost => parts.push(format!("lost: {why}")),
        HostState::Refused => parts.push(format!("did not take part: {why}")),
    }
    parts.join(" · ")
}

/// What all cases of the table share.
pub(super) fn show_shared(page: &mut Page, cases: &[CaseResult]) {
    page.fact("load", Span::plain(load(cases)));
    if let Some(window) = window(cases) {
        page.fact("window", Span::plain(window));
    }
    if let Some(bytes) = common(measured(cases).filter_map(|case| case.message_bytes)) {
        page.fact("message", Span::plain(figures::bytes(bytes)));
    }
    if let Some(limit) = common(limits(&ordered(cases))) {
        page.fact("limited by", Span::plain(words::limit(limit)));
    }
}

fn show_target(page: &mut Page, target: &Target) {
    let mut label = "token";
    for token in target.tokens.iter().take(TOKENS) {
        page.fact(label, Span::plain(identity(token)));
        label = "";
    }
    let more = target.tokens.len().saturating_sub(TOKENS);
    if more > 0 {
        page.fact(
            "",
            Span::plain(format!("and {}", tapstone_text::counted(more as u64, "more", "more"))),
        );
    }
    let file = target.module.as_ref().map(|module| file_name(&module.path).to_owned());
    let library = target.library.as_ref().map(|it| named(&[&it.description, &it.version], " "));
    let versioned = |name: &str, version: &Option<String>| {
        named(&[name, version.as_deref().unwrap_or_default()], " ")
    };
    let rest = [
        ("module", joined([file, library])),
        ("reader", target.reader.as_ref().map(|it| versioned(&it.name, &it.driver_version))),
        (
            "card",
            target.card.as_ref().map(|it| {
                let name = it.name.as_deref().unwrap_or_default();
                named(&[name, &it.atr, it.protocol.as_deref().unwrap_or_default()], " · ")
            }),
        ),
        ("daemon", target.daemon.as_ref().map(|it| named(&[&it.name, &it.version], " "))),
        ("program", target.program.as_ref().map(|it| file_name(&it.path).to_owned())),
    ];
    for (label, value) in rest {
        value.into_iter().for_each(|value| page.fact(label, Span::plain(value)));
    }
}

/// `hsm-a · Model 1 · serial 0000 · firmware 3.1`.
fn identity(token: &Token) -> String {
    let with = |word: &str, value: &str| match value {
        "" => String::new(),
        value => format!("{word} {value}"),
    };
    let (serial, firmware) =
        (with("serial", &token.serial), with("firmware", &token.firmware_version));
    named(&[&token.label, &token.model, &serial, &firmware], " · ")
}

/// Who asks, and when.
fn load(cases: &[CaseResult]) -> String {
    let workers = common(cases.iter().map(|case| case.concurrency));
    let workers = workers.map_or("concurrency as in the table".into(), words::concurrency);
    let pace =
        common(cases.iter().map(|case| case.load)).map_or("load as in the table".into(), pace);
    format!("{workers}, {pace}")
}

fn pace(load: Load) -> String {
    match (load.kind, load.rate_per_second) {
        (LoadKind::Closed, _) => "closed loop".into(),
        (LoadKind::Open, None) => "open loop".into(),
        (LoadKind::Open, Some(rate)) => format!("open loop, {} offered", figures::rate(rate.0)),
    }
}

/// How long windows were, and what ended them; `None` without any.
fn window(cases: &[CaseResult]) -> Option<String> {
    let lengths = || cases.iter().filter_map(|case| Some(case.window?.seconds.0 * 1e9));
    let shortest = lengths().reduce(f64::min)?;
    let longest = lengths().reduce(f64::max)?;
    let length = match figures::time(longest) {
        one if one == figures::time(shortest) => one,
        _ => figures::range(shortest, longest, figures::time),
    };
    let ends = [
        (StoppedBy::Precision, "precise enough"),
        (StoppedBy::Time, "the time was up"),
        (StoppedBy::Count, "the count was reached"),
        (StoppedBy::Interrupted, "the run was interrupted"),
        (StoppedBy::Failures, "too much failed"),
    ];
    let ended = |reason| cases.iter().filter(|case| case.stopped_by == Some(reason)).count();
    let ends: Vec<_> = ends
        .iter()
        .map(|(reason, words)| (ended(*reason), words))
        .filter(|end| end.0 > 0)
        .collect();
    Some(match ends[..] {
        [] => length,
        [(_, words)] => format!("{length}, until {words}"),
        _ => {
            let end = |(cases, words): &(usize, &&str)| {
                format!(
                    "until {words} ({})",
                    tapstone_text::counted(*cases as u64, "case", "cases")
                )
            };
            format!("{length}, {}", ends.iter().map(end).collect::<Vec<_>>().join(", "))
        }
    })
}

fn machine(environment: &Environment) -> String {
    let cores =
        environment.cores.map(|cores| tapstone_text::counted(cores.into(), "core", "cores"));
    let quota = environment.cgroup_quota_cores.map(|cores| format!("quota of {cores} cores"));
    let virtualisation = environment.virtualisation.as_deref().unwrap_or_default();
    let quota = quota.unwrap_or_default();
    let known = |text: &Option<String>| text.clone().unwrap_or_default();
    let cpu = known(&environment.cpu);
    let kernel = known(&environment.kernel);
    let all = [&cpu, &known(&cores), &quota, virtualisation, &kernel];
    match named(&all, " · ") {
        nothing if nothing.is_empty() => "unknown".into(),
        machine => machine,
    }
}

/// Whose limit each rate is; of a mix only the whole can tell.
pub(super) fn limits(items: &[Item<'_>]) -> impl Iterator<Item = LimitedBy> {
    let told = items.iter().filter(|item| !item.place.is_part() && item.case.throughput.is_some());
    // Only where processor time was looked at can anything be told.
    let told = told.filter(|item| item.case.client_cpu.is_some());
    told.map(|item| item.case.limited_by)
}

pub(super) fn measured(cases: &[CaseResult]) -> impl Iterator<Item = &CaseResult> {
    cases.iter().filter(|case| case.throughput.is_some() || case.latency_ns.is_some())
}

/// The last part of a path: a long one says less, and may say more than it should.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn joined(parts: [Option<String>; 2]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// The parts that are not empty.
fn named(parts: &[&str], between: &str) -> String {
    let parts: Vec<&str> =
        parts.iter().map(|part| part.trim()).filter(|it| !it.is_empty()).collect();
    parts.join(between)
}
