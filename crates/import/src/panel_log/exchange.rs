//! Two fields of a date format that may be exchanged, and what a log says of that.
//!
//! A format with hours and minutes the other way round reads most logs without an error. What tells
//! it: a log is written in the order of time, so that it cannot run backwards by the map's format and
//! forwards by the other one; and minutes pass within an hour.

use super::first_of::FirstOf;
use super::moment::{Instant, MomentFormat};

const SECOND: Instant = 1_000_000_000;
const MINUTE: Instant = 60 * SECOND;
/// A step of nearly an hour, and more.
const LEAP: Instant = 50 * MINUTE;
/// So many leaps, or steps back, are no coincidence.
const ENOUGH_LEAPS: u64 = 2;
const ENOUGH_STEPS_BACK: u64 = 5;
/// In so much time, in steps of less than a minute each, seven minutes begin. That none does is one
/// chance in a thousand.
const ENOUGH_MINUTES: Instant = 7 * MINUTE;
/// One in so many may be a broken line.
const ONE_IN: u64 = 20;

/// The map's format with two of its fields exchanged, and what was seen for it.
pub(super) struct ExchangedClock {
    pub(super) format: MomentFormat,
    /// As a sentence has them.
    pub(super) fields: &'static str,
    pub(super) hint: &'static str,
    swaps_hours: bool,
    /// Steps of nearly an hour or more that are less than a minute by the other format.
    leaps: FirstOf,
    /// Steps back that are less than a minute forwards by the other format, and those that are none.
    mended: FirstOf,
    unmended: u64,
}

/// The steps of a log from line to line, as the map's format has them.
#[derive(Default)]
pub(super) struct Steps {
    last: Option<Instant>,
    last_text: String,
    /// Steps of less than a minute: how long they are together, and how often a minute began.
    short: Instant,
    minutes: u64,
    forwards: u64,
    backwards: u64,
}

impl ExchangedClock {
    /// Those that can be told for a format.
    pub(super) fn all(format: &MomentFormat) -> Vec<Self> {
        let clock = |one, other, fields, hint, swaps_hours| {
            Some(Self {
                format: format.exchanged(one, other)?,
                fields,
                hint,
                swaps_hours,
                leaps: FirstOf::default(),
                mended: FirstOf::default(),
                unmended: 0,
            })
        };
        let hours = "hour and minute are the other way round";
        let seconds = "minute and second are the other way round";
        [
            clock("%H", "%M", hours, "exchange %H and %M in the map's format", true),
            clock("%M", "%S", seconds, "exchange %M and %S in the map's format", false),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn step(&mut self, line: u64, before: &str, text: &str, step: Instant) {
        let read = |text: &str| Some(self.format.read(text)?.at);
        let Some(exchanged) = read(before).zip(read(text)).map(|(one, other)| other - one) else {
            self.unmended += u64::from(step < 0);
            return;
        };
        let is_next = (0..MINUTE).contains(&exchanged);
        if self.swaps_hours && step.abs() >= LEAP && is_next {
            self.leaps.add(line, text);
        }
        if step < 0 && is_next {
            self.mended.add(line, text);
        }
        self.unmended += u64::from(step < 0 && exchanged < 0);
    }

    /// The first line that shows the exchange, if the log as a whole does.
    pub(super) fn evidence(&self, steps: &Steps) -> Option<&FirstOf> {
        let minutes_expected = (steps.short / MINUTE) as u64;
        let stands_still = steps.short >= ENOUGH_MINUTES && steps.minutes * 100 < minutes_expected;
        if self.leaps.count >= ENOUGH_LEAPS && stands_still {
            return Some(&self.leaps);
        }
        let is_mended = self.mended.count >= ENOUGH_STEPS_BACK
            && self.unmended * ONE_IN <= self.mended.count
            && steps.backwards <= steps.forwards;
        is_mended.then_some(&self.mended)
    }
}

impl Steps {
    pub(super) fn add(
        &mut self,
        line: u64,
        text: &str,
        at: Instant,
        exchanged: &mut [ExchangedClock],
    ) {
        if exchanged.is_empty() {
            return;
        }
        if let Some(last) = self.last {
            let step = at - last;
            match step {
                step if step < 0 => self.backwards += 1,
                _ => self.forwards += 1,
            }
            if (0..MINUTE).contains(&step) {
                self.short += step;
                self.minutes += u64::from(at.div_euclid(MINUTE) != last.div_euclid(MINUTE));
            } else if !(0..LEAP).contains(&step) {
                let before = &self.last_text;
                exchanged.iter_mut().for_each(|clock| clock.step(line, before, text, step));
            }
        }
        self.last = Some(at);
        self.last_text.clear();
        self.last_text.push_str(text);
    }
}
