//! People at a door: how many pass, how long they wait, and how many give up.

use tapstone_record::{CardKindFigures, Estimate, Fraction, Latency, Queue, SharedStation};
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
        thousands(queue.arrivals),
        number(queue.arrivals_per_hour),
        queue.seed,
        thousands(queue.warm_up_arrivals)
    );
    page.fact("people", Span::plain(people));
    let doors = match queue.doors {
        1 => "one door, first come, first served".to_owned(),
        doors => format!("{doors} doors at one controller, first come, first served at each"),
    };
    page.heading("queue", &doors);
    let passed = &queue.throughput_per_minute;
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
    let utilisation = queue.utilisation_interval.as_ref().map_or_else(
        || figures::share(queue.utilisation),
        |share| figures::with_interval(share, |share| figures::share(Fraction(share))),
    );
    page.fact("utilisation", Span::plain(utilisation));
    if let Some(controller) = &queue.controller {
        page.fact("controller", Span::plain(self::controller(controller)));
    }
    page.fact("gave up", Span::plain(part(&queue.gave_up, "of the people")));
    let readings = format!(
        "{} a person; taken away too early: {}",
        match &queue.attempts_interval {
            Some(readings) => figures::with_interval(readings, three_digits),
            None => three_digits(queue.attempts_per_person),
        },
        part(&queue.removed_early, "of the readings")
    );
    page.fact("readings", Span::plain(readings));
    page.blank();
    if let Some(text) = unbounded {
        page.hanging(&Span::new("  ! ", Tint::Caution), &Span::plain(text));
        return;
    }
    if let Some(text) = words::too_few_people(queue) {
        page.hanging(&Span::new("  ! ", Tint::Caution), &Span::plain(text));
        page.blank();
    }
    page.grid(&times(queue));
    if !queue.cards.is_empty() {
        page.blank();
        page.grid(&cards(queue));
    }
    sentences(page, queue);
}

/// How much the shared controller works, and how long doors wait for it.
fn controller(station: &SharedStation) -> String {
    let share = |share| figures::share(Fraction(share));
    let wait = station.wait_ns.mean.as_ref().map_or_else(String::new, |mean| {
        format!("; a door waits {} for it", figures::with_interval(mean, figures::time))
    });
    format!("in use {}{wait}", figures::with_interval(&station.utilisation, share))
}

/// One line for each kind of card.
fn cards(queue: &Queue) -> Grid {
    let columns = vec![
        left("card", Keep::Always),
        right("people", Keep::Always),
        right("authentication", Keep::Always),
        right("time in system", Keep::Always),
        right("p95", Keep::Rank(1)),
        right("gave up", Keep::Rank(2)),
    ];
    let time = |estimate: &Option<Estimate>| {
        estimate.as_ref().map_or(figures::NONE.into(), |it| figures::time(it.estimate))
    };
    let entry = |card: &CardKindFigures| {
        Entry::Cells(vec![
            Span::plain(&card.name),
            Span::plain(figures::share(Fraction(card.share.estimate))),
            Span::plain(figures::time(card.authentication_ns)),
            Span::new(
                card.time_in_system_ns.mean.as_ref().map_or(figures::NONE.into(), |mean| {
                    figures::with_interval(mean, figures::time)
                }),
                Tint::Strong,
            ),
            Span::plain(time(&card.time_in_system_ns.p95)),
            Span::plain(figures::share(Fraction(card.gave_up.estimate))),
        ])
    };
    Grid { columns, entries: queue.cards.iter().map(entry).collect() }
}

fn number(value: f64) -> String {
    if value >= 1000.0 { thousands(value.round() as u64) } else { three_digits(value) }
}

fn part(share: &Estimate, of: &str) -> String {
    format!("{} {of}", figures::share(Fraction(share.estimate)))
}

fn times(queue: &Queue) -> Grid {
    let mut columns = vec![left("", Keep::Always)];
    let quantiles: [(&str, Keep); 7] = [
        ("mean", Keep::Always),
        ("interval", Keep::Always),
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
        let interval = of.mean.as_ref().map(|mean| figures::interval(mean, figures::time));
        let mut cells = vec![Span::plain(name), time(&of.mean)];
        cells.push(Span::plain(interval.unwrap_or_else(|| figures::NONE.into())));
        cells.extend([&of.p50, &of.p90, &of.p95, &of.p99].map(time));
        cells.push(Span::plain(figures::time(of.max.0 as f64)));
        Entry::Cells(cells)
    };
    let rows = [("waiting time", &queue.wait_ns), ("time in system", &queue.time_in_system_ns)];
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
        let away = match mean {
            Some(mean) if mean.low < mean.high => {
                format!(", {} standard errors away", three_digits(formula.standard_errors.abs()))
            }
            _ => String::new(),
        };
        let text = format!(
            "The mean wait is {simulated}; by the formula of {} it is {}{away}.",
            formula.name,
            figures::time(formula.mean_wait_ns),
        );
        page.hanging(&Span::plain("  "), &Span::plain(text));
        if let (Some(whole), Some(mean)) =
            (formula.mean_time_in_system_ns, &queue.time_in_system_ns.mean)
        {
            let text = format!(
                "The mean time in system is {}; by the formula it is {}.",
                figures::with_interval(mean, figures::time),
                figures::time(whole)
            );
            page.hanging(&Span::plain("  "), &Span::plain(text));
        }
    }
}
