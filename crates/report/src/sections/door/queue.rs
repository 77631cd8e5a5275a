//! People at a door: how many pass, how long they wait, and how many give up.

use tapstone_record::{Estimate, Fraction, Latency, Queue};
use tapstone_text::{thousands, three_digits};

use super::scenario;
use crate::figures;
use crate::sections::charts;
use crate::sections::grid::{Entry, Grid, Keep, figures as right, words as left};
use crate::sections::page::Page;
use crate::sections::span::{Span, Tint};
use crate::words;

pub(super) fn add_queue(page: &mut Page, queue: &Queue) {
    scenario(page, &queue.scenario);
    let people = format!(
        "{} at {} an hour, seed {}; the first {} are not counted",
        thousands(queue.people),
        number(queue.arrivals_per_hour),
        queue.seed,
        thousands(queue.settling)
    );
    page.fact("people", Span::plain(people));
    page.heading("queue", "one door, first come, first served");
    let passed = &queue.passed_per_minute;
    let pass = format!(
        "{} a minute {}; at most {} one after the other",
        number(passed.estimate),
        figures::interval(passed, number),
        number(queue.capacity_per_minute)
    );
    let unbounded = words::unbounded_queue(queue);
    if unbounded.is_none() {
        page.chart(charts::queue(queue));
    }
    page.fact("passed", Span::plain(pass));
    page.fact("utilisation", Span::plain(figures::share(queue.utilisation)));
    page.fact("gave up", Span::plain(part(&queue.gave_up, "of the people")));
    let readings = format!(
        "{} a person; taken away too early: {}",
        three_digits(queue.readings_per_person),
        part(&queue.removed_early, "of the readings")
    );
    page.fact("readings", Span::plain(readings));
    page.blank();
    if let Some(text) = unbounded {
        page.hanging(&Span::new("  ! ", Tint::Caution), &Span::plain(text));
        return;
    }
    page.grid(&times(queue));
    sentences(page, queue);
}

fn number(value: f64) -> String {
    if value >= 1000.0 { thousands(value.round() as u64) } else { three_digits(value) }
}

fn part(share: &Estimate, of: &str) -> String {
    format!("{} {of}", figures::share(Fraction(share.estimate)))
}

fn times(queue: &Queue) -> Grid {
    let mut columns = vec![left("", Keep::Always)];
    let quantiles: [(&str, Keep); 6] = [
        ("mean", Keep::Always),
        ("p50", Keep::Rank(3)),
        ("p90", Keep::Rank(2)),
        ("p95", Keep::Rank(4)),
        ("p99", Keep::Rank(3)),
        ("longest", Keep::Rank(1)),
    ];
    columns.extend(quantiles.map(|(title, keep)| right(title, keep)));
    let time = |estimate: &Option<Estimate>| {
        Span::new(
            estimate.as_ref().map_or(figures::NONE.into(), |it| figures::time(it.estimate)),
            Tint::Strong,
        )
    };
    let entry = |(name, of): (&str, &Latency)| {
        let mut cells = vec![Span::plain(name)];
        cells.extend([&of.mean, &of.p50, &of.p90, &of.p95, &of.p99].map(time));
        cells.push(Span::plain(figures::time(of.max.0 as f64)));
        Entry::Cells(cells)
    };
    let rows = [("waiting time", &queue.wait_ns), ("time in system", &queue.whole_ns)];
    Grid { columns, entries: rows.into_iter().map(entry).collect() }
}

fn sentences(page: &mut Page, queue: &Queue) {
    page.blank();
    if queue.overloaded {
        let text = "More people come than can pass: the queue stays short because people leave it.";
        page.hanging(&Span::new("  ! ", Tint::Caution), &Span::plain(text));
    }
    if let Some(formula) = &queue.formula {
        let mean = queue.wait_ns.mean.as_ref();
        let simulated =
            mean.map_or(figures::NONE.into(), |mean| figures::with_interval(mean, figures::time));
        let text = format!(
            "The mean wait is {simulated}; by the formula of {} it is {}, {} standard errors away.",
            formula.name,
            figures::time(formula.mean_wait_ns),
            three_digits(formula.standard_errors.abs())
        );
        page.hanging(&Span::plain("  "), &Span::plain(text));
    }
}
