//! What a log says against its map's date format. A wrong format can be read without an error, and
//! then every figure that spans two days is wrong.

use std::path::Path;

use super::exchange::{ExchangedClock, Steps};
use super::first_of::FirstOf;
use super::moment::{Instant, Moment, MomentFormat};
use crate::ImportError;

/// Of so many lines one may be broken in such a way that another format fits it better.
const ONE_IN: u64 = 1000;
const DAY: Instant = 86_400_000_000_000;
/// Panels log in these years: 1980 to 2100, as seconds since 1970.
const YEARS_OF_PANELS_S: std::ops::Range<Instant> = 315_532_800..4_102_444_800;
/// So many changes of the day in a row are no coincidence.
const ENOUGH_DAYS: u64 = 2;

/// What was seen of the moments of a log, for and against the format.
pub(super) struct FormatWitness {
    exchanged: Option<MomentFormat>,
    clocks: Vec<ExchangedClock>,
    steps: Steps,
    read: u64,
    unreadable: FirstOf,
    /// Unreadable, but for the same format with day and month exchanged; the same of the clocks.
    reads_exchanged: FirstOf,
    reads_by_clock: Vec<FirstOf>,
    out_of_time: FirstOf,
    days: Days,
}

/// From one day to the next, read in both ways.
#[derive(Default)]
struct Days {
    last: Option<(Instant, Instant)>,
    /// Changes of the day that are a month by the format, and a day with day and month exchanged.
    by_months: FirstOf,
    others: u64,
}

impl FormatWitness {
    pub(super) fn new(format: &MomentFormat) -> Self {
        let clocks = ExchangedClock::all(format);
        Self {
            exchanged: format.exchanged("%d", "%m"),
            reads_by_clock: clocks.iter().map(|_| FirstOf::default()).collect(),
            clocks,
            steps: Steps::default(),
            read: 0,
            unreadable: FirstOf::default(),
            reads_exchanged: FirstOf::default(),
            out_of_time: FirstOf::default(),
            days: Days::default(),
        }
    }

    pub(super) fn unreadable(&mut self, line: u64, text: &str) {
        self.unreadable.add(line, text);
        if self.exchanged.as_ref().is_some_and(|format| format.read(text.trim()).is_some()) {
            self.reads_exchanged.add(line, text);
        }
        for (clock, reads) in self.clocks.iter().zip(&mut self.reads_by_clock) {
            if clock.format.read(text.trim()).is_some() {
                reads.add(line, text);
            }
        }
    }

    pub(super) fn reads(&mut self, line: u64, text: &str, moment: &Moment) {
        self.read += 1;
        self.steps.add(line, text, moment.at, &mut self.clocks);
        if !moment.has_date {
            return;
        }
        if !YEARS_OF_PANELS_S.contains(&moment.at.div_euclid(1_000_000_000)) {
            self.out_of_time.add(line, text);
        }
        let day = moment.at.div_euclid(DAY);
        if self.days.last.is_some_and(|(last, _)| last == day) {
            return;
        }
        let Some(exchanged) = &self.exchanged else { return };
        let other = exchanged.read(text.trim()).map(|moment| moment.at.div_euclid(DAY));
        let Some(other) = other else {
            self.days.others += 1;
            self.days.last = None;
            return;
        };
        if let Some((last, last_other)) = self.days.last {
            match (day - last, other - last_other) {
                (28.., 1) => self.days.by_months.add(line, text),
                _ => self.days.others += 1,
            }
        }
        self.days.last = Some((day, other));
    }

    /// What contradicts the format, if anything does.
    pub(super) fn contradiction(&self, format: &MomentFormat, path: &Path) -> Option<ImportError> {
        let all = self.read + self.unreadable.count;
        let error = |first: &FirstOf, why: &'static str, hint: &'static str| {
            let (line, text) = first.first.clone()?;
            Some(ImportError::Format {
                path: path.into(),
                line,
                text,
                format: format.text().to_owned(),
                why,
                hint,
            })
        };
        let exchange = "exchange %d and %m in the map's format";
        if self.reads_exchanged.count > all / ONE_IN {
            let why = "day and month are the other way round";
            return error(&self.reads_exchanged, why, exchange);
        }
        if self.days.by_months.count >= ENOUGH_DAYS && self.days.others == 0 {
            let why = "read so, each day is a month after the one before it";
            return error(&self.days.by_months, why, exchange);
        }
        for (clock, reads) in self.clocks.iter().zip(&self.reads_by_clock) {
            // A panel that writes midnight as 24:00 has a few.
            let is_read = reads.count > all / 20 && reads.count == self.unreadable.count;
            if let Some(first) = is_read.then_some(reads).or_else(|| clock.evidence(&self.steps)) {
                return error(first, clock.fields, clock.hint);
            }
        }
        if self.unreadable.count > self.read {
            let why = "most lines of the log do not read so";
            let hint = "format is rfc3339, unix-s, unix-ms or a pattern as strptime(3) has it";
            return error(&self.unreadable, why, hint);
        }
        if self.out_of_time.count > all / 2 {
            let why = "read so, it is not from 1980 to 2100";
            let hint = "%y is a year of two digits and %Y of four; unix-s is in seconds, unix-ms in \
                        milliseconds";
            return error(&self.out_of_time, why, hint);
        }
        None
    }
}
