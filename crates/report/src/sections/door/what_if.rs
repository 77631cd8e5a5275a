//! What changes would bring: each alone; and what one came for, the cheapest sets as waterfalls and
//! what each needs.

use tapstone_record::{
    ChangedPart, Projection, RemainingPart, SavingBasis, Verdict, WhatIf, WhatIfChange, WhatIfSet,
};
use tapstone_text::thousands;

use super::{chance, scenario};
use crate::figures::{self, ms};
use crate::sections::charts;
use crate::sections::grid::{Entry, Grid, Keep, figures as right, words as left};
use crate::sections::page::Page;
use crate::sections::span::{Span, Tint};
use crate::words;

pub(super) fn add_what_if(page: &mut Page, what_if: &WhatIf) {
    scenario(page, &what_if.scenario);
    let target = what_if.target_ns.0 as f64;
    let now = format!("{} now, {} at most", ms(what_if.base_ns), ms(target));
    page.fact("time", Span::plain(now));
    page.heading("each change alone", "what it saves when nothing else is changed");
    page.grid(&alone(&what_if.considered));
    for change in what_if.considered.iter().filter(|change| is_calibrated(change)) {
        calibration(page, change);
    }
    if !what_if.projections.is_empty() {
        page.heading("what the source expects", "beside what the model gives");
        page.grid(&projections(&what_if.projections));
    }
    page.heading_of_conclusions(&format!("what reaches {}", ms(target)), &what_if.operation);
    summary(page, what_if, target);
    page.chart(charts::what_if(what_if));
    let needed = what_if.sets.iter().filter(|set| !set.waterfall.is_empty());
    for (at, set) in needed.enumerate() {
        let title = format!("set {}", at + 1);
        waterfall(page, &title, what_if.base_ns, set, target);
    }
    if what_if.sets.is_empty() {
        waterfall(page, "the fastest set", what_if.base_ns, &what_if.fastest, target);
    }
    conditions(page, what_if);
}

fn alone(changes: &[WhatIfChange]) -> Grid {
    let columns = vec![
        left("change", Keep::Always),
        right("saves", Keep::Always),
        right("effort", Keep::Always),
        left("from", Keep::Rank(2)),
        left("what it is", Keep::Rank(1)),
    ];
    let entry = |change: &WhatIfChange| {
        Entry::Cells(vec![
            Span::plain(match &change.needs {
                Some(needs) => format!("{} after {needs}", change.change),
                None => change.change.clone(),
            }),
            Span::new(ms(change.saves_ns), Tint::Strong),
            Span::plain(change.effort.to_string()),
            Span::faint(words::provenance(change.provenance)),
            Span::faint(&change.what),
        ])
    };
    Grid { columns, entries: changes.iter().map(entry).collect() }
}

/// Whether a part of the saving is only what is left of a published total.
fn is_calibrated(change: &WhatIfChange) -> bool {
    change.parts.iter().any(|part| part.basis == SavingBasis::Remainder)
}

/// Where a published saving comes from, and how much of it nothing explains.
fn calibration(page: &mut Page, change: &WhatIfChange) {
    page.heading(&format!("where {} saves", change.change), "from what is sent, and the rest");
    let columns = vec![
        left("part", Keep::Always),
        right("bytes", Keep::Rank(1)),
        right("saves", Keep::Always),
        left("how it is known", Keep::Always),
    ];
    let entry = |part: &ChangedPart| {
        let bytes = part
            .bytes
            .map(|[before, after]| format!("{} → {}", thousands(before), thousands(after)));
        Entry::Cells(vec![
            Span::plain(&part.component),
            Span::plain(bytes.unwrap_or_else(|| figures::NONE.to_owned())),
            Span::new(ms(part.saves_ns), Tint::Strong),
            Span::faint(match part.basis {
                SavingBasis::Bytes => "by its bytes",
                SavingBasis::Remainder => "the rest of the published saving: unexplained",
                SavingBasis::Figure => "by a figure of its own",
            }),
        ])
    };
    page.grid(&Grid { columns, entries: change.parts.iter().map(entry).collect() });
}

/// What holds up a target that no set reaches: the largest parts of the fastest one.
fn held_up(what_if: &WhatIf) -> String {
    let part = |part: &RemainingPart| {
        format!("{} {} ({})", part.component, ms(part.time_ns), figures::share(part.share))
    };
    let largest: Vec<String> = what_if.left.iter().take(3).map(part).collect();
    match largest.split_first() {
        None => String::new(),
        Some((first, [])) => format!(" It is held up by {first}."),
        Some((first, others)) => format!(
            " It is held up most by {first}, then by {}; no change in the list makes those faster \
             than that.",
            others.join(" and ")
        ),
    }
}

fn summary(page: &mut Page, what_if: &WhatIf, target: f64) {
    let fastest = &what_if.fastest;
    let reached = match what_if.sets_found {
        _ if what_if.base_ns <= target => format!(
            "It takes {} as it is, and needs no change. The fastest possible is {}, with {}.",
            ms(what_if.base_ns),
            ms(fastest.total_ns),
            named(fastest)
        ),
        0 => format!(
            "No set of these changes reaches {}: the fastest takes {}, {} too much.{}",
            ms(target),
            ms(fastest.total_ns),
            ms(what_if.missing_ns.unwrap_or(fastest.total_ns - target)),
            held_up(what_if)
        ),
        found => format!(
            "{} can be reached with {}, of which no change can be left out; {}. The fastest \
             possible is {}, with {}.",
            ms(target),
            tapstone_text::counted(found, "set of changes", "sets of changes"),
            if what_if.sets.len() == 1 {
                "below is the cheapest".to_owned()
            } else {
                format!("below are the {} cheapest", what_if.sets.len())
            },
            ms(fastest.total_ns),
            named(fastest)
        ),
    };
    page.hanging(&Span::plain("  "), &Span::plain(reached));
}

fn named(set: &WhatIfSet) -> String {
    let names: Vec<&str> = set.waterfall.iter().map(|step| step.change.as_str()).collect();
    if names.is_empty() { "nothing changed".into() } else { names.join(", ") }
}

fn waterfall(page: &mut Page, title: &str, base: f64, set: &WhatIfSet, target: f64) {
    page.heading_of_conclusions(title, &format!("effort {}", set.effort));
    let columns = vec![
        left("", Keep::Always),
        right("saves", Keep::Always),
        right("left", Keep::Always),
        left("", Keep::Rank(1)),
    ];
    let width = (page.width() / 3).min(40);
    let line = |name: &str, saves: Option<f64>, left: f64| {
        let tint = if left <= target { Tint::Good } else { Tint::Accent };
        Entry::Cells(vec![
            Span::plain(name),
            Span::plain(saves.map(ms).unwrap_or_default()),
            Span::new(ms(left), Tint::Strong),
            Span::bar(left / base, width, tint),
        ])
    };
    let mut entries = vec![line("now", None, base)];
    let steps = set.waterfall.iter();
    entries.extend(steps.map(|step| line(&step.change, Some(step.saves_ns), step.left_ns)));
    page.grid(&Grid { columns, entries });
    let spare = ms((target - set.total_ns).abs());
    let (text, tint) = match set.verdict {
        Verdict::Met => (format!("{spare} to spare"), Tint::Good),
        _ => (format!("{spare} still to find"), Tint::Bad),
    };
    page.line(&[Span::plain("  "), Span::new(text, tint)]);
    if let Some(of) = &set.probability {
        page.hanging(&Span::plain("  "), &Span::plain(chance(of, target)));
    }
}

/// Of the changes that are in a set that is shown.
fn conditions(page: &mut Page, what_if: &WhatIf) {
    let shown = || {
        let fastest = what_if.sets.is_empty().then_some(&what_if.fastest);
        what_if.sets.iter().chain(fastest).flat_map(|set| &set.waterfall)
    };
    if shown().next().is_none() {
        return;
    }
    page.heading_of_conclusions("what each needs", "to be secure, or possible at all");
    for change in &what_if.considered {
        if !shown().any(|step| step.change == change.change) {
            continue;
        }
        let what = Span::plain(format!("{} · {}", change.change, change.what));
        page.hanging(&Span::plain("  "), &what);
        page.hanging(&Span::plain("    "), &Span::faint(&change.condition));
    }
}

fn projections(projections: &[Projection]) -> Grid {
    let columns = vec![
        left("", Keep::Always),
        right("source", Keep::Always),
        right("model", Keep::Always),
        right("unexplained", Keep::Always),
        left("changes", Keep::Rank(1)),
    ];
    let entry = |projection: &Projection| {
        Entry::Cells(vec![
            Span::plain(&projection.statement),
            Span::plain(ms(projection.published_ns)),
            Span::new(ms(projection.computed_ns), Tint::Strong),
            Span::plain(ms(projection.published_ns - projection.computed_ns)),
            Span::faint(projection.changes.join(", ")),
        ])
    };
    Grid { columns, entries: projections.iter().map(entry).collect() }
}
