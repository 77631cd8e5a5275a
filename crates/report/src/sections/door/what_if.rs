//! What changes would bring: each alone, then the cheapest sets as waterfalls, then what each needs.

use tapstone_record::{Projection, Verdict, WhatIf, WhatIfChange, WhatIfSet};

use super::{chance, scenario};
use crate::figures::ms;
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
    page.heading("each change alone", &what_if.operation);
    page.chart(charts::what_if(what_if));
    page.grid(&alone(&what_if.considered));
    summary(page, what_if, target);
    for (at, set) in what_if.sets.iter().enumerate() {
        let title = format!("set {}", at + 1);
        waterfall(page, &title, what_if.base_ns, set, target);
    }
    if what_if.sets.is_empty() {
        waterfall(page, "the fastest set", what_if.base_ns, &what_if.fastest, target);
    }
    conditions(page, what_if);
    if !what_if.projections.is_empty() {
        page.heading("what the source expects", "beside what the model gives");
        page.grid(&projections(&what_if.projections));
    }
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
            Span::plain(&change.change),
            Span::new(ms(change.saves_ns), Tint::Strong),
            Span::plain(change.effort.to_string()),
            Span::faint(words::provenance(change.provenance)),
            Span::faint(&change.what),
        ])
    };
    Grid { columns, entries: changes.iter().map(entry).collect() }
}

fn summary(page: &mut Page, what_if: &WhatIf, target: f64) {
    let fastest = &what_if.fastest;
    let reached = match what_if.sets_found {
        0 => format!(
            "No set of these changes reaches {}: the fastest takes {}.",
            ms(target),
            ms(fastest.total_ns)
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
    page.blank();
    page.hanging(&Span::plain("  "), &Span::plain(reached));
}

fn named(set: &WhatIfSet) -> String {
    let names: Vec<&str> = set.waterfall.iter().map(|step| step.change.as_str()).collect();
    if names.is_empty() { "nothing changed".into() } else { names.join(", ") }
}

fn waterfall(page: &mut Page, title: &str, base: f64, set: &WhatIfSet, target: f64) {
    page.heading(title, &format!("effort {}", set.effort));
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
    if let Some(of) = &set.chance {
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
    page.heading("what each needs", "to be secure, or possible at all");
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
        left("changes", Keep::Rank(1)),
    ];
    let entry = |projection: &Projection| {
        Entry::Cells(vec![
            Span::plain(&projection.says),
            Span::plain(ms(projection.published_ns)),
            Span::new(ms(projection.computed_ns), Tint::Strong),
            Span::faint(projection.changes.join(", ")),
        ])
    };
    Grid { columns, entries: projections.iter().map(entry).collect() }
}
