//! Moments as panels write them, and how finely.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::Offset;
use serde::Deserialize;
use tapstone_measure::units::Nanos;

/// How moments are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(super) enum MomentFormat {
    /// RFC 3339, or the same without a zone, with a blank or a T: `2026-01-15 09:30:00.1`.
    #[default]
    Iso,
    /// Seconds since 1970, with or without a fraction.
    UnixSeconds,
    /// Milliseconds since 1970-01-01 in UTC.
    UnixMilliseconds,
    /// As strptime(3) has it, for example `%d.%m.%Y %H:%M:%S%.f`.
    Pattern(String),
}

impl From<String> for MomentFormat {
    fn from(text: String) -> Self {
        match text.as_str() {
            "rfc3339" | "iso" => Self::Iso,
            "unix-s" => Self::UnixSeconds,
            "unix-ms" => Self::UnixMilliseconds,
            _ => Self::Pattern(text),
        }
    }
}

/// Nanoseconds since 1970, or since midnight where a log has no date.
pub(super) type Instant = i128;

/// A moment, and whether the log said in which zone.
pub(super) struct Moment {
    pub(super) at: Instant,
    pub(super) local: bool,
    pub(super) has_date: bool,
}

impl MomentFormat {
    /// As a map writes it.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Iso => "rfc3339",
            Self::UnixSeconds => "unix-s",
            Self::UnixMilliseconds => "unix-ms",
            Self::Pattern(pattern) => pattern,
        }
    }

    /// The same with two fields exchanged; `None` where it does not have both.
    pub(super) fn exchanged(&self, one: &str, other: &str) -> Option<Self> {
        let Self::Pattern(pattern) = self else { return None };
        let pattern = pattern.replace("%F", "%Y-%m-%d").replace("%D", "%m/%d/%y");
        let pattern = pattern.replace("%T", "%H:%M:%S").replace("%R", "%H:%M");
        let has_both = pattern.contains(one) && pattern.contains(other);
        let exchanged = pattern.replace(one, "%\0").replace(other, one).replace("%\0", other);
        has_both.then_some(Self::Pattern(exchanged))
    }

    pub(super) fn read(&self, text: &str) -> Option<Moment> {
        let text = text.trim();
        let zoned = |at: Instant| Moment { at, local: false, has_date: true };
        match self {
            Self::Iso => iso(text),
            Self::UnixSeconds => fraction(text, 9).map(zoned),
            Self::UnixMilliseconds => fraction(text, 6).map(zoned),
            Self::Pattern(pattern) => by_pattern(pattern, text),
        }
    }
}

fn iso(text: &str) -> Option<Moment> {
    let zone = text.get(10..).is_some_and(|time| time.contains(['Z', 'z', '+', '-']));
    if zone {
        let at = text.parse::<Timestamp>().ok()?.as_nanosecond();
        return Some(Moment { at, local: false, has_date: true });
    }
    local(text.parse().ok()?)
}

fn local(moment: DateTime) -> Option<Moment> {
    let at = Offset::UTC.to_timestamp(moment).ok()?.as_nanosecond();
    Some(Moment { at, local: true, has_date: true })
}

fn by_pattern(pattern: &str, text: &str) -> Option<Moment> {
    let parts = BrokenDownTime::parse(pattern, text).ok()?;
    if parts.offset().is_some() {
        let at = parts.to_timestamp().ok()?.as_nanosecond();
        return Some(Moment { at, local: false, has_date: true });
    }
    if let Ok(moment) = parts.to_datetime() {
        return local(moment);
    }
    let since_midnight = parts.to_time().ok()?.duration_until(jiff::civil::Time::midnight());
    Some(Moment { at: -since_midnight.as_nanos(), local: true, has_date: false })
}

/// A decimal number as a whole number of its `digits`-th decimals: no digit is lost to a float.
fn fraction(text: &str, digits: usize) -> Option<Instant> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    if !rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let rest: String = rest.chars().chain(std::iter::repeat('0')).take(digits).collect();
    let whole: Instant = whole.parse().ok()?;
    let scale = Instant::pow(10, digits as u32);
    // A year beyond 9999 is a number of something else.
    let known = (0..253_402_300_800_i128 * Instant::pow(10, 9)).contains(&(whole * scale));
    known.then(|| whole * scale + rest.parse::<Instant>().unwrap_or(0))
}

/// Steps that logs have, coarsest first.
const STEPS: [Nanos; 10] = [
    Nanos(1_000_000_000),
    Nanos(500_000_000),
    Nanos(100_000_000),
    Nanos(50_000_000),
    Nanos(10_000_000),
    Nanos(1_000_000),
    Nanos(100_000),
    Nanos(10_000),
    Nanos(1_000),
    Nanos(1),
];

/// One moment in so many may lie beside the step: a line that someone else has written.
const BESIDE: u64 = 1000;

/// All moments of a log, as far as they tell its resolution.
#[derive(Default)]
pub(super) struct Moments {
    first: Option<Instant>,
    count: u64,
    /// How many lie on each of [`STEPS`].
    on: [u64; STEPS.len()],
    /// Whether any came without its zone.
    pub(super) local: bool,
}

impl Moments {
    pub(super) fn add(&mut self, moment: &Moment) {
        if moment.has_date {
            self.first.get_or_insert(moment.at);
        }
        self.local |= moment.local && moment.has_date;
        self.count += 1;
        let beside = moment.at.rem_euclid(1_000_000_000) as u64;
        for (step, on) in STEPS.iter().zip(&mut self.on) {
            *on += u64::from(beside.is_multiple_of(step.0));
        }
    }

    /// When the log begins.
    pub(super) fn first(&self) -> Option<Timestamp> {
        self.first.and_then(|at| Timestamp::from_nanosecond(at).ok())
    }

    /// The coarsest step on which nearly all lie; `None` without moments.
    pub(super) fn resolution(&self) -> Option<Nanos> {
        let nearly_all = self.count - self.count / BESIDE;
        let steps = STEPS.iter().zip(self.on);
        let mut fitting = steps.filter(|(_, on)| self.count > 0 && *on >= nearly_all);
        fitting.next().map(|(step, _)| *step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_in_every_format() {
        let read = |format: &str, text: &str| MomentFormat::from(format.to_owned()).read(text);
        let at = |format: &str, text: &str| read(format, text).map(|moment| moment.at);
        let expected = Some(1_768_469_400_100_000_000);
        assert_eq!(at("rfc3339", "2026-01-15T09:30:00.1Z"), expected);
        assert_eq!(at("rfc3339", "2026-01-15T11:30:00.1+02:00"), expected);
        assert_eq!(at("rfc3339", "2026-01-15 09:30:00.1"), expected);
        assert_eq!(at("unix-s", "1768469400.1"), expected);
        assert_eq!(at("unix-ms", "1768469400100"), expected);
        assert_eq!(at("%d.%m.%Y %H:%M:%S%.f", "15.01.2026 09:30:00.1"), expected);
        assert_eq!(at("%H:%M:%S%.f", "00:01:00.5"), Some(60_500_000_000));
        for (format, text) in [
            ("rfc3339", "yesterday"),
            ("rfc3339", "2026-13-15 09:30:00"),
            ("unix-s", "-5"),
            ("unix-s", "1e9"),
            ("unix-s", "99999999999999999999999999"),
            ("%H:%M", "25:00"),
            ("rfc3339", ""),
        ] {
            assert_eq!(at(format, text), None, "{text}");
        }
    }

    #[test]
    fn the_step_of_the_moments_is_found_in_spite_of_a_stray_line() {
        let of = |step: u64, stray: bool| {
            let mut moments = Moments::default();
            for tick in 0..5000_u64 {
                let at = Instant::from(tick * 7 * step);
                moments.add(&Moment { at, local: false, has_date: true });
            }
            if stray {
                moments.add(&Moment { at: 123, local: false, has_date: true });
            }
            moments.resolution()
        };
        for step in [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 1_000] {
            assert_eq!(of(step, false), Some(Nanos(step)));
            assert_eq!(of(step, true), Some(Nanos(step)));
        }
        assert_eq!(Moments::default().resolution(), None);
    }
}
