//! How the rate grows with concurrency: a row for each level, then what it means in sentences.

use tapstone_record::{
    CaseResult, Claim, Concurrency, Knee, KneeStop, Level, LimitedBy, ScalabilityLaw,
};

use super::charts;
use super::grid::{Entry, Grid, Keep, figures as right, words as left};
use super::page::Page;
use super::span::{Span, Tint};
use crate::{figures, words};

pub(super) fn add_knee(page: &mut Page, knee: &Knee, claims: &[Claim], cases: &[CaseResult]) {
    page.heading_of_conclusions("knee", &knee.operation);
    page.chart(charts::knee(knee, claims));
    let bar_width = (page.width() / 4).min(40);
    page.grid(&levels(knee, bar_width));
    for sentence in sentences(knee, cases) {
        page.hanging(&Span::plain("  "), &Span::plain(sentence));
    }
}

fn levels(knee: &Knee, bar_width: usize) -> Grid {
    let several_hosts = knee.levels.iter().any(|level| level.hosts != 1);
    let of = if knee.plateau.is_some() { "of the plateau" } else { "of the highest" };
    let mut columns = vec![right("threads", Keep::Always), right("processes", Keep::Always)];
    if several_hosts {
        columns.push(right("hosts", Keep::Always));
    }
    columns.extend([
        right("rate", Keep::Always),
        left("interval", Keep::Rank(2)),
        left(of, Keep::Rank(1)),
        right("", Keep::Rank(3)),
        left("", Keep::Rank(4)),
    ]);
    let whole = knee.plateau.map_or_else(|| highest(&knee.levels), |plateau| plateau.estimate);
    let entry = |level: &Level| {
        let mut cells = vec![level.threads, level.processes];
        cells.extend(several_hosts.then_some(level.hosts));
        let mut cells: Vec<Span> =
            cells.iter().map(|count| Span::plain(count.to_string())).collect();
        let part = level.rate.estimate / whole;
        let enough = knee.concurrency == Some(level.concurrency());
        cells.extend([
            Span::new(figures::rate(level.rate.estimate), Tint::Strong),
            Span::faint(interval(level)),
            Span::bar(part, bar_width, Tint::Accent),
            Span::plain(percent(part)),
            Span::new(if enough { "← knee" } else { "" }, Tint::Good),
        ]);
        Entry::Cells(cells)
    };
    Grid { columns, entries: knee.levels.iter().map(entry).collect() }
}

/// A search that was interrupted may have measured a level once.
fn interval(level: &Level) -> String {
    match level.rate_with_interval() {
        Some(rate) => figures::interval(&rate, figures::rate),
        None => "not known: one pass".to_owned(),
    }
}

fn highest(levels: &[Level]) -> f64 {
    levels.iter().map(|level| level.rate.estimate).fold(0.0, f64::max)
}

fn percent(part: f64) -> String {
    if part.is_finite() { format!("{:.0} %", 100.0 * part) } else { figures::NONE.into() }
}

fn sentences(knee: &Knee, cases: &[CaseResult]) -> Vec<String> {
    let mut sentences = vec![plateau(knee)];
    sentences.extend(knee.law.as_ref().map(|law| law_in_words(law, &knee.levels)));
    sentences.extend(limit(knee, cases));
    sentences.push(stop(knee.stopped_by).into());
    sentences
}

fn plateau(knee: &Knee) -> String {
    let Some(plateau) = &knee.plateau else {
        return "No plateau was reached, so there is no knee: the rate may grow with more concurrency."
            .into();
    };
    let plateau = figures::with_interval(plateau, figures::rate);
    let Some(enough) = knee.concurrency else {
        return format!("The plateau is {plateau}.");
    };
    let reached = format!("95 % of the plateau of {plateau} is reached with {}", workers(enough));
    match knee.below {
        None => format!("{reached}."),
        Some(below) => format!("{reached}, and not with {}.", workers(below)),
    }
}

/// Processes and hosts are named only where there are several.
fn workers(workers: Concurrency) -> String {
    match workers {
        Concurrency { processes: 1, hosts: 1, threads } => {
            tapstone_text::counted(threads.into(), "thread", "threads")
        }
        workers => words::concurrency(workers),
    }
}

/// Levels that lie further off the law do not follow it.
const MISFIT: f64 = 0.2;

/// The law's parameters and prediction. A peak beyond the highest level was not measured.
fn law_in_words(law: &ScalabilityLaw, levels: &[Level]) -> String {
    if let Some(misfit) = law.misfit.filter(|misfit| misfit.0 > MISFIT) {
        let misfit = figures::share(misfit);
        return format!(
            "The levels do not follow the scalability law: they lie up to {misfit} off it."
        );
    }
    let one = figures::rate(law.lambda);
    let most =
        levels.iter().map(|level| words::workers(level.concurrency())).max().unwrap_or(0) as f64;
    let peak = match (law.peak_rate, law.peak_concurrency) {
        (None, _) => "it predicts no limit".into(),
        (Some(limit), None) => {
            format!("it predicts a rate that comes close to {}", figures::rate(limit.0))
        }
        (Some(rate), Some(at)) => {
            let beyond = if at > most { ", beyond what was measured" } else { "" };
            format!("it predicts a peak of {} at {at:.0} workers{beyond}", figures::rate(rate.0))
        }
    };
    let misfit =
        law.misfit.map(|misfit| format!("; levels lie up to {} off it", figures::share(misfit)));
    format!(
        "Scalability law: {one} for one worker (λ), contention σ {:.3}, coherency κ {:.5}; \
         {peak}{}.",
        law.sigma,
        law.kappa,
        misfit.unwrap_or_default()
    )
}

const fn is_not_known(limit: LimitedBy) -> bool {
    matches!(limit, LimitedBy::Unknown | LimitedBy::Interruption)
}

/// What limits the rate, why that is said, and what failed on the way.
fn limit(knee: &Knee, cases: &[CaseResult]) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(limit) = &knee.process_limit {
        let what = words::limit(limit.limited_by);
        sentences.push(format!("One process is limited by {what}: {}.", limit.why));
    }
    sentences.push(match &knee.limit {
        Some(limit) if is_not_known(limit.limited_by) => {
            format!("What limits the rate is not known: {}.", limit.why)
        }
        Some(limit) => {
            format!("The rate is limited by {}: {}.", words::limit(limit.limited_by), limit.why)
        }
        // Written by a version that judged without evidence.
        None => "What limits the rate is not known.".into(),
    });
    let mut own = cases.iter().filter(|case| case.operation == knee.operation);
    sentences.extend(
        own.find_map(words::failure_count)
            .map(|count| format!("At the level with the highest rate, {count}.")),
    );
    sentences
}

const fn stop(stop: KneeStop) -> &'static str {
    match stop {
        KneeStop::Plateau => "Stopped: two doublings running gave less than 5 % more.",
        KneeStop::SessionCount => {
            "Stopped: the token gave out no more sessions (CKR_SESSION_COUNT)."
        }
        KneeStop::Time => "Stopped: the time was up.",
        KneeStop::Limit => "Stopped: the highest concurrency asked for was reached.",
        KneeStop::Interrupted => "Stopped: the search was interrupted.",
        KneeStop::Failures => "Stopped: operations failed, or their results were wrong.",
    }
}
