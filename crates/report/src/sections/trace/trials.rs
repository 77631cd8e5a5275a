//! The fixes that were tried: what they gained, against what was predicted, and whether the program
//! still did the same. One that changes what a program does is no fix, whatever it gains.

use tapstone_measure::compare::{ROUNDS, samples_to_decide};
use tapstone_record::{BeforeAfter, Behaviour, Change, Estimate, Range, Trial};
use tapstone_text::{counted, thousands};

use super::super::charts;
use super::super::grid::{Entry, Grid, Keep, figures as right, words as left};
use super::super::page::Page;
use super::super::span::{Span, Tint};
use super::words;
use crate::figures;
use crate::style::Style;

/// Differences that are named; more are counted.
const DIFFERENCES: usize = 5;

pub(super) fn add_trials(page: &mut Page, trials: &[Trial], style: &Style) {
    if trials.is_empty() {
        return;
    }
    page.heading_of_conclusions("trials", "with the fix and without, interleaved");
    page.chart(charts::trials(trials));
    page.grid(&grid(trials));
    for trial in trials {
        page.blank();
        page.line(&[Span::new(format!("  {}", trial.fix), Tint::Strong)]);
        let sentences =
            [Some(gain(trial)), processor(trial), observing(trial), Some(conduct(trial))];
        for sentence in sentences.into_iter().flatten() {
            page.hanging(&Span::plain("    "), &Span::plain(sentence));
        }
        differences(page, trial, style);
        for note in &trial.notes {
            page.hanging(&Span::new("  ! ", Tint::Caution), &Span::plain(note));
        }
    }
}

fn grid(trials: &[Trial]) -> Grid {
    let columns = vec![
        left("fix", Keep::Always),
        right("before", Keep::Rank(3)),
        right("after", Keep::Rank(4)),
        right("speed-up", Keep::Always),
        left("[low, high]", Keep::Always),
        left("verdict", Keep::Always),
        left("behaviour", Keep::Always),
    ];
    let cells = |trial: &Trial| {
        let interval = [trial.speedup.low, trial.speedup.high].map(figures::ratio).join(", ");
        Entry::Cells(vec![
            Span::plain(&trial.fix),
            Span::plain(figures::time(trial.before_ns.estimate)),
            Span::plain(figures::time(trial.after_ns.estimate)),
            Span::new(figures::ratio(trial.speedup.estimate), Tint::Strong),
            Span::faint(format!("[{interval}]")),
            Span::new(crate::words::change(trial.verdict), change(trial.verdict)),
            Span::new(words::behaviour(trial.behaviour), behaviour(trial.behaviour)),
        ])
    };
    Grid { columns, entries: trials.iter().map(cells).collect() }
}

const fn change(change: Change) -> Tint {
    match change {
        Change::Faster => Tint::Good,
        Change::Slower => Tint::Bad,
        Change::Inconclusive => Tint::Faint,
    }
}

const fn behaviour(behaviour: Behaviour) -> Tint {
    match behaviour {
        Behaviour::Same => Tint::Good,
        Behaviour::Differs => Tint::Bad,
        Behaviour::NotComparable => Tint::Caution,
    }
}

/// What it saves, beside what was predicted.
fn gain(trial: &Trial) -> String {
    let saved = trial.before_ns.estimate - trial.after_ns.estimate;
    let [before, after] =
        [&trial.before_ns, &trial.after_ns].map(|of| figures::with_interval(of, figures::time));
    let rounds = tapstone_text::counted(trial.rounds.into(), "round", "rounds");
    let gained = match trial.verdict {
        _ if trial.changed == Some(0) => {
            return format!(
                "From {before} to {after}, over {rounds} in which the fix changed nothing: what it \
                 would bring is not known."
            );
        }
        Change::Faster => format!("saves {} an operation, over {rounds}", figures::time(saved)),
        Change::Slower => format!("costs {} an operation, over {rounds}", figures::time(-saved)),
        Change::Inconclusive if (trial.rounds as usize) < ROUNDS => {
            format!("no verdict, as there are {rounds} and it needs {ROUNDS}")
        }
        Change::Inconclusive => {
            format!("no difference can be told, over {rounds}; {}", more(trial))
        }
    };
    let predicted = trial.predicted.map_or_else(String::new, |predicted| {
        let range = figures::range(predicted.low, predicted.high, figures::time);
        // What cannot be told from nothing is neither more nor less than that.
        match trial.verdict {
            Change::Inconclusive => format!(" Predicted were {range}."),
            _ => format!(" Predicted were {range}: it is {}.", judged(saved, predicted)),
        }
    });
    format!("From {before} to {after}: {gained}.{predicted}")
}

/// What would decide it, if the speed-up is what it seems to be.
fn more(trial: &Trial) -> String {
    let Estimate { estimate, low, high } = trial.speedup;
    let rounds = u64::from(trial.rounds);
    let needed = samples_to_decide((high / low).ln() / 2.0, rounds, estimate.ln().abs());
    match needed.map(|needed| needed.saturating_sub(rounds).max(1)) {
        Some(more) => format!("about {} would decide", counted(more, "round more", "rounds more")),
        None => "no number of rounds would decide, as the estimate is 1".to_owned(),
    }
}

fn judged(saved: f64, predicted: Range) -> String {
    let off = |end: f64| 100.0 * (saved - end).abs() / end;
    match saved {
        saved if saved < predicted.low => format!("{:.0} % below that", off(predicted.low)),
        saved if saved > predicted.high => format!("{:.0} % above that", off(predicted.high)),
        _ => "within that".to_owned(),
    }
}

/// What it saves of the processor, which the wall time hides where several processes work.
fn processor(trial: &Trial) -> Option<String> {
    let both = |of: BeforeAfter| {
        let [before, after] = [of.before, of.after].map(|of| figures::time(of.estimate));
        format!("{before} to {after}")
    };
    let apart = trial.user_ns.zip(trial.system_ns);
    let apart = apart
        .map(|(user, system)| format!(": user from {}, system from {}", both(user), both(system)));
    let sum = both(trial.processor_ns?);
    Some(format!("Processor time from {sum}{}.", apart.unwrap_or_default()))
}

/// What the probe itself costs.
fn observing(trial: &Trial) -> Option<String> {
    let bare = trial.unobserved_ns?;
    let times = trial.before_ns.estimate / bare.estimate;
    let without = figures::with_interval(&bare, figures::time);
    Some(format!(
        "Without the probe it takes {without}: before is {} times that.",
        figures::ratio(times)
    ))
}

fn conduct(trial: &Trial) -> String {
    let masked = match trial.unstable_places {
        0 => String::new(),
        masked => format!(
            " {} between untouched runs too, and {} not compared.",
            tapstone_text::counted(masked, "place differs", "places differ"),
            if masked == 1 { "was" } else { "were" }
        ),
    };
    let conduct = match trial.behaviour {
        Behaviour::Same => "Exit code, output and calls are the same with the fix.",
        Behaviour::Differs => "With the fix it does something else: unsafe, whatever it gains.",
        Behaviour::NotComparable => "Whether the program still does the same is not known.",
    };
    format!("{conduct}{masked}")
}

fn differences(page: &mut Page, trial: &Trial, style: &Style) {
    let shown = super::shown(trial.differences.len(), DIFFERENCES, style);
    for difference in &trial.differences[..shown] {
        page.hanging(&Span::new("    - ", Tint::Bad), &Span::plain(difference));
    }
    if shown < trial.differences.len() {
        let more = thousands((trial.differences.len() - shown) as u64);
        page.line(&[Span::faint(format!("    and {more} more: --verbose shows them"))]);
    }
}
