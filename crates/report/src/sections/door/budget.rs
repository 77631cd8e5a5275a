//! A transaction split into its parts, and its sums against a limit.

use tapstone_record::{Budget, BudgetPart, PartKind, Verdict};

use super::{chance, scenario};
use crate::figures::ms;
use crate::sections::charts;
use crate::sections::grid::{Entry, Grid, Keep, figures as right, words as left};
use crate::sections::page::Page;
use crate::sections::span::{Span, Tint};
use crate::{figures, words};

pub(super) fn add_budget(page: &mut Page, budget: &Budget) {
    if let Some(named) = &budget.scenario {
        scenario(page, named);
    }
    let source = common_source(budget);
    if let Some(source) = source {
        page.fact("source", Span::plain(source));
    }
    page.heading("budget", &budget.operation);
    page.chart(charts::budget(budget));
    page.grid(&parts(budget, source.is_none(), page.width()));
    page.blank();
    page.grid(&sums(budget));
    page.blank();
    verdict(page, budget);
    if let Some(of) = &budget.probability {
        let limit = budget.limit_ns.map_or(f64::NAN, |limit| limit.0 as f64);
        page.hanging(&Span::plain("  "), &Span::plain(chance(of, limit)));
    }
}

/// Said once where all parts have the same.
fn common_source(budget: &Budget) -> Option<&str> {
    let mut sources =
        budget.parts.iter().chain(&budget.self_check).map(|part| part.source.as_deref());
    let first = sources.next()??;
    sources.all(|source| source == Some(first)).then_some(first)
}

const fn kind(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Transfer => "transfer",
        PartKind::Processing => "processing",
        PartKind::Waiting => "waiting",
    }
}

fn parts(budget: &Budget, with_source: bool, width: usize) -> Grid {
    let mut columns = vec![
        left("part", Keep::Always),
        left("", Keep::Always),
        right("time", Keep::Always),
        right("share", Keep::Always),
        left("", Keep::Rank(2)),
        left("from", Keep::Rank(3)),
    ];
    let with_formula = budget.parts.iter().any(|part| part.by_formula_ns.is_some());
    if with_formula {
        columns.push(right("by formula", Keep::Rank(4)));
        columns.push(right("unexplained", Keep::Rank(4)));
    }
    if with_source {
        columns.push(left("source", Keep::Rank(1)));
    }
    let longest = budget.parts.iter().map(|part| part.share.0).fold(0.0, f64::max);
    let entry = |part: &BudgetPart| {
        let mut cells = vec![
            Span::plain(&part.component),
            Span::faint(kind(part.kind)),
            Span::new(ms(part.time_ns.estimate), Tint::Strong),
            Span::plain(figures::share(part.share)),
            Span::bar(part.share.0 / longest, (width / 5).min(24), Tint::Accent),
            Span::faint(words::provenance(part.provenance)),
        ];
        if with_formula {
            let unexplained = part.by_formula_ns.map(|formula| part.time_ns.estimate - formula);
            let figure =
                |time: Option<f64>| Span::plain(time.map_or_else(|| figures::NONE.to_owned(), ms));
            cells.extend([figure(part.by_formula_ns), figure(unexplained)]);
        }
        if with_source {
            cells.push(Span::faint(part.source.as_deref().unwrap_or_default()));
        }
        Entry::Cells(cells)
    };
    Grid { columns, entries: budget.parts.iter().map(entry).collect() }
}

fn sums(budget: &Budget) -> Grid {
    let sum = |of: PartKind| -> f64 {
        let parts = budget.parts.iter().filter(|part| part.kind == of);
        parts.map(|part| part.time_ns.estimate).sum()
    };
    let mut lines: Vec<(String, f64, Tint)> =
        [PartKind::Transfer, PartKind::Processing, PartKind::Waiting]
            .into_iter()
            .filter(|of| budget.parts.iter().any(|part| part.kind == *of))
            .map(|of| (kind(of).to_owned(), sum(of), Tint::Plain))
            .collect();
    lines.push(("total".into(), budget.total_ns.estimate, Tint::Strong));
    for extra in &budget.self_check {
        let name = format!("{} ({})", extra.component, words::provenance(extra.provenance));
        lines.push((name, extra.time_ns.estimate, Tint::Plain));
    }
    if let Some(with) = &budget.total_with_self_check_ns {
        let names: Vec<&str> =
            budget.self_check.iter().map(|extra| extra.component.as_str()).collect();
        lines.push((format!("with the {}", names.join(" and ")), with.estimate, Tint::Strong));
    }
    let entry = |(name, time, tint): (String, f64, Tint)| {
        Entry::Cells(vec![Span::plain(name), Span::new(ms(time), tint)])
    };
    Grid {
        columns: vec![left("", Keep::Always), right("", Keep::Always)],
        entries: lines.into_iter().map(entry).collect(),
    }
}

fn verdict(page: &mut Page, budget: &Budget) {
    let (Some(limit), Some(verdict)) = (budget.limit_ns, budget.verdict) else { return };
    let whole = budget.total_with_self_check_ns.as_ref().unwrap_or(&budget.total_ns).estimate;
    let off = ms((whole - limit.0 as f64).abs());
    let (word, how, tint) = match verdict {
        Verdict::Met => ("MET", format!("{off} to spare"), Tint::Good),
        Verdict::Missed => ("MISSED", format!("{off} too long"), Tint::Bad),
        Verdict::Undecided | Verdict::Void => ("UNDECIDED", "not known".into(), Tint::Caution),
    };
    let target = format!("  target {}: ", ms(limit.0 as f64));
    page.line(&[Span::plain(target), Span::new(word, tint), Span::plain(format!(", {how}"))]);
}
