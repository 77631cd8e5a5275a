//! The highest rate within a latency: a line for each rate that was offered, then what it means in
//! sentences.

use tapstone_record::{
    GeneratorState, OfferedLevel, RateWithin, RateWithinOutcome, RateWithinStop,
};
use tapstone_text::thousands;

use super::charts;
use super::grid::{Entry, Grid, Keep, figures as right, words as left};
use super::page::Page;
use super::span::{Span, Tint};
use crate::figures;
use crate::words::quantile_name;

pub(super) fn add_rate_within(page: &mut Page, within: &RateWithin) {
    page.heading_of_conclusions("highest rate within a latency", &within.operation);
    page.chart(charts::rate_within(within));
    if !within.levels.is_empty() {
        page.grid(&levels(within));
    }
    for sentence in sentences(within) {
        page.hanging(&Span::plain("  "), &Span::plain(sentence));
    }
}

/// By rate, whatever the order of the search.
fn levels(within: &RateWithin) -> Grid {
    let columns = vec![
        right("offered", Keep::Always),
        right(quantile_name(within), Keep::Always),
        right("beyond the bound", Keep::Always),
        right("arrivals", Keep::Rank(2)),
        right("generator's delay", Keep::Rank(3)),
        left("", Keep::Rank(1)),
    ];
    let mut levels: Vec<&OfferedLevel> = within.levels.iter().collect();
    levels.sort_by(|a, b| a.offered_rate.0.total_cmp(&b.offered_rate.0));
    let time = |time: Option<tapstone_measure::units::Nanos>| {
        time.map_or(figures::NONE.into(), |time| time.to_string())
    };
    let entry = |level: &&OfferedLevel| {
        let share = level.beyond as f64 / level.arrivals.max(1) as f64;
        Entry::Cells(vec![
            Span::new(level.offered_rate.to_string(), Tint::Strong),
            Span::plain(time(level.latency_ns)),
            Span::plain(figures::share(tapstone_record::Fraction(share))),
            Span::faint(thousands(level.arrivals)),
            Span::faint(time(level.generator_delay_ns)),
            Span::plain(said_of(level)),
        ])
    };
    Grid { columns, entries: levels.iter().map(entry).collect() }
}

const fn said_of(level: &OfferedLevel) -> &'static str {
    match (level.generator, level.backlog_grows) {
        (GeneratorState::Late, _) => "generator late",
        (GeneratorState::Exhausted, _) => "all workers busy",
        (GeneratorState::Sound, true) => "backlog grows",
        (GeneratorState::Sound, false) => "",
    }
}

fn sentences(within: &RateWithin) -> Vec<String> {
    let arrivals = match within.arrivals {
        tapstone_record::ArrivalKind::Constant => "at equal gaps",
        tapstone_record::ArrivalKind::Poisson => "independently of each other (Poisson)",
        tapstone_record::ArrivalKind::Recorded => {
            "as the recorded program made them, by so many such programs"
        }
    };
    let how = format!(
        "Requests arrived {arrivals}; latency counts from the intended start, with up to {} at once.",
        thousands(within.workers.into())
    );
    let mut sentences = vec![found_in_words(within)];
    sentences.extend(why(within.stopped_by).map(str::to_owned));
    sentences.push(how);
    sentences
}

/// What was found, in a sentence.
pub(crate) fn found_in_words(within: &RateWithin) -> String {
    let bound = format!("{} <= {}", quantile_name(within), within.bound_ns);
    match (within.outcome, within.rate, within.at_least) {
        (RateWithinOutcome::Rate, Some(rate), _) => {
            format!(
                "The highest rate with {bound} is {}.",
                figures::with_interval(&rate, figures::rate)
            )
        }
        (RateWithinOutcome::AtLeast, _, Some(rate)) => {
            format!(
                "The highest rate with {bound} is at least {rate}; what lies beyond is not known."
            )
        }
        (RateWithinOutcome::NoRate, ..) => match within.unloaded_ns {
            Some(unloaded) if within.levels.is_empty() => format!(
                "No rate has {bound}: even one worker alone, whose calls take {unloaded} on average, \
                 lies beyond it."
            ),
            _ => {
                format!("No rate has {bound}: even the lowest one that was offered lies beyond it.")
            }
        },
        _ => format!("The highest rate with {bound} is not known."),
    }
}

const fn why(stop: RateWithinStop) -> Option<&'static str> {
    Some(match stop {
        RateWithinStop::Done => return None,
        RateWithinStop::GeneratorLate => {
            "Stopped: the load generator's own delay exceeded a tenth of the bound."
        }
        RateWithinStop::GeneratorExhausted => {
            "Stopped: all workers were busy while the device could have taken more; raise --max-threads or --processes."
        }
        RateWithinStop::RateCap => "Stopped: no higher rate is offered.",
        RateWithinStop::LevelCap => "Stopped: so many levels did not narrow it down.",
        RateWithinStop::Time => "Stopped: the time was up (--max-time).",
        RateWithinStop::Interrupted => "Stopped: the search was interrupted.",
        RateWithinStop::Failures => {
            "Stopped: operations failed, results were wrong, or a worker was lost."
        }
        RateWithinStop::OtherPrograms => {
            "Other programs kept the workers from a processor, which makes a limit look lower than it is."
        }
    })
}
