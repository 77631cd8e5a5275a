//! What was wasted, in sentences, and what to type or to change next.

use tapstone_record::{CallSite, Finding, Record, Trial};
use tapstone_text::{thousands, three_digits};

use super::super::page::Page;
use super::super::span::{Span, Tint};
use super::words::remedy;
use super::{next, nothing};
use crate::{figures, shell, words};

pub(super) fn add_findings(page: &mut Page, record: &Record) {
    let findings = &record.findings;
    let about = match findings.len() {
        0 | 1 => "",
        _ => "they overlap: what they save does not add up",
    };
    page.heading_of_conclusions("findings", about);
    if findings.is_empty() {
        if is_of_calls_only(record) {
            let none = "Found nothing in what was watched: no sleep, no wait for another thread \
                        and no session opened again and again that took a hundredth of the time. \
                        Calls of a microsecond weigh nothing beside what watching them costs; busy \
                        waits, lookups and commands to cards are not seen from outside.";
            page.hanging(&Span::new("  ", Tint::Good), &Span::plain(none));
        } else {
            nothing::add_nothing_found(page, record);
        }
    }
    for (number, finding) in findings.iter().enumerate() {
        let mark = format!("{:>3}  ", number + 1);
        page.hanging(&Span::new(mark, Tint::Strong), &Span::plain(sentence(finding)));
        for evidence in &finding.evidence {
            page.hanging(&Span::plain("     "), &Span::plain(evidence));
        }
        callers(page, finding);
        page.hanging(&Span::faint("     saves   "), &Span::plain(saving(record, finding)));
        tried(page, &record.trials, finding);
        advice(page, record, finding);
    }
}

/// A program that ran already was watched from outside: nobody saw it begin and end, and nothing but
/// its calls.
fn is_of_calls_only(record: &Record) -> bool {
    let is_whole = record.results.iter().any(|case| case.operation == "command");
    record.command_time.is_none() && !is_whole && !record.layers.is_empty()
}

/// `sleep: SCardEndTransaction (PC/SC client), 16 times, 90.0 ms, 90.0 % of its thread's time.`
fn sentence(finding: &Finding) -> String {
    let place = match finding.layer.as_str() {
        "" => finding.place.clone(),
        layer => format!("{} ({})", finding.place, words::layer(layer)),
    };
    let often = match finding.per_operation {
        // The operation is the whole command.
        each if each == finding.count as f64 => {
            tapstone_text::counted(finding.count, "time", "times")
        }
        each => format!(
            "{} times an operation, {} in all",
            three_digits(each),
            thousands(finding.count)
        ),
    };
    let kind = words::finding(&finding.kind);
    let share = figures::share(finding.share);
    format!("{kind}: {place}, {often}, {}, {share} of its thread's time.", finding.time_ns)
}

/// A trace has one run, so that its prediction says nothing of how runs differ.
fn saving(record: &Record, finding: &Finding) -> String {
    let source = if record.trials.is_empty() { "predicted from one run" } else { "predicted" };
    finding.saving.map_or("cannot be predicted".to_owned(), |saving| {
        format!("{} an operation ({source})", figures::span(&saving))
    })
}

/// The functions that asked, the one that made the call first.
fn callers(page: &mut Page, finding: &Finding) {
    for (number, path) in finding.callers.iter().enumerate() {
        let label = if number == 0 { "     from    " } else { "     or      " };
        let sites: Vec<String> = path.sites.iter().map(CallSite::to_string).collect();
        page.hanging(&Span::faint(label), &Span::plain(sites.join(" < ")));
    }
}

/// What the fix brought, where it was tried in the same record.
fn tried(page: &mut Page, trials: &[Trial], finding: &Finding) {
    let trial = finding.trial.as_ref().and_then(|fix| trials.iter().find(|it| it.fix == *fix));
    let Some(trial) = trial else { return };
    let speedup = figures::with_interval(&trial.speedup, figures::ratio);
    let text = format!("{speedup} times as fast, {}", words::change(trial.verdict));
    page.hanging(&Span::faint("     tried   "), &Span::plain(text));
}

/// What to change, and the fix to try.
fn advice(page: &mut Page, record: &Record, finding: &Finding) {
    let label = |label: &str| Span::faint(format!("     {label:<8}"));
    let Some(fix) = &finding.trial else {
        let general = remedy(&finding.kind);
        let change = finding.advice.as_deref().unwrap_or(general);
        return page.hanging(&label("change"), &Span::plain(change));
    };
    if let Some(change) = &finding.advice {
        page.hanging(&label("change"), &Span::plain(change));
    }
    let command = next::trial(&record.command, fix);
    let Some(command) = command else {
        let template = vec![format!("tapstone trial --fix {fix} -- COMMAND")];
        return page.template(&label("try"), &template);
    };
    if shell::hides(&command) {
        page.template(&label("try"), &command);
        let hidden = "… stands for words that the record does not keep, since they can be secrets: \
                      put them in, or trace with --record-command, which keeps the whole";
        page.hanging(&label(""), &Span::faint(hidden));
    } else {
        page.command(&label("try"), &command);
    }
}
