//! That no waste was found: what that means, what it does not, and where the time went instead.

use tapstone_record::{FindingKind, Record, TimeKind};

use super::super::page::Page;
use super::super::span::{Span, Tint};
use super::processes;
use crate::words;

/// What it means that a trace has no finding: a sentence, with its weight.
pub(crate) fn nothing_found(record: &Record) -> (Tint, &'static str) {
    let is_all_seen = record.search.as_ref().is_none_or(|search| search.unseen.is_empty());
    match (record.layers.is_empty(), is_all_seen) {
        (true, _) => (Tint::Caution, "Nothing could be looked for: no watched call was seen."),
        (false, true) => (Tint::Good, "Found nothing of what was looked for."),
        (false, false) => (Tint::Caution, "Found nothing in what was seen, which is not all."),
    }
}

pub(super) fn add_nothing_found(page: &mut Page, record: &Record) {
    let unseen = record.search.as_ref().map_or(&[][..], |search| &search.unseen);
    let sees_nothing = record.layers.is_empty();
    let (tint, none) = nothing_found(record);
    page.hanging(&Span::new("  ", tint), &Span::plain(none));
    let line = |page: &mut Page, label: &str, text: String| {
        page.hanging(&Span::faint(format!("     {label:<8}")), &Span::plain(text));
    };
    if let Some(search) = record.search.as_ref().filter(|_| !sees_nothing) {
        let kinds: Vec<&str> = search.looked_for.iter().map(looked_for).collect();
        line(page, "sought", format!("{}.", kinds.join(", ")));
    }
    for sentence in unseen {
        line(page, "unseen", sentence.clone());
    }
    let Some(process) = record.processes.first() else { return };
    line(page, "time", format!("{}.", processes::sentence(process)));
    if process.parts.first().is_some_and(|part| part.kind == TimeKind::Sleeping) {
        let own = "Outside of such calls a sleep is the program's own affair, and no finding.";
        line(page, "", own.to_owned());
    }
}

/// What a kind of waste looks like, so that whoever reads it knows what was not looked for.
fn looked_for(kind: &FindingKind) -> &str {
    match kind {
        FindingKind::Sleep => "sleeps inside a call of PKCS#11 or PC/SC",
        FindingKind::BusyWait => "busy waits inside one",
        FindingKind::PollQuantum => "waits in fixed steps inside one",
        FindingKind::RepeatedLookup => "files opened and lookups made again",
        FindingKind::RepeatedSearch => "searches of a token repeated",
        FindingKind::RepeatedRead => "attributes and token information read again",
        FindingKind::LengthProbe => "calls that only ask for a length",
        FindingKind::MultiPart => "messages in one piece passed in parts",
        FindingKind::KeyChurn => "keys made for one operation",
        FindingKind::RepeatedCommand => "commands to a card repeated",
        FindingKind::DelayedAck => "delayed acknowledgements",
        FindingKind::Serialised => "threads that wait for one another inside one",
        FindingKind::SessionChurn => "sessions, logins and connections opened again",
        FindingKind::Other(_) => words::finding(kind),
    }
}
