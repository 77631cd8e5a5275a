//! Figures as text. Each comes with its unit, and each estimate with its interval.

use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_record::{Estimate, Fraction, Range, Seconds};
use tapstone_text::{thousands, three_digits};

/// What stands where there is no figure.
pub(crate) const NONE: &str = "–";

/// An interval whose arms differ by no more than this part of the longer one is printed as `±`.
const ABOUT_EQUAL: f64 = 0.25;

/// Arms shorter than this part of the estimate do not show in three digits, however they differ.
const INVISIBLE: f64 = 0.005;

/// A rate in operations per second: `39,353/s`.
pub(crate) fn rate(per_second: f64) -> String {
    finite(per_second).map_or(NONE.into(), |value| PerSecond(value).to_string())
}

/// A length of time: `43.1 µs`.
pub(crate) fn time(nanos: f64) -> String {
    finite(nanos).map_or(NONE.into(), |value| Nanos(value.round() as u64).to_string())
}

/// Milliseconds throughout, so that a reader can add them up: `1,367 ms`, `-414 ms`, `8.21 ms`.
pub(crate) fn ms(nanos: f64) -> String {
    let millis = nanos / 1e6;
    if !millis.is_finite() {
        return NONE.into();
    }
    let sign = if millis < 0.0 { "-" } else { "" };
    let length = millis.abs();
    if length >= 99.95 || length == 0.0 {
        format!("{sign}{} ms", thousands(length.round() as u64))
    } else {
        format!("{sign}{} ms", three_digits(length))
    }
}

/// A length of time that is recorded in seconds: `10.0 s`.
pub(crate) fn seconds(length: Seconds) -> String {
    time(length.0 * 1e9)
}

/// A part of a whole: `50.4 %`.
pub(crate) fn share(part: Fraction) -> String {
    finite(part.0).map_or(NONE.into(), |value| format!("{:.1} %", 100.0 * value))
}

/// A ratio: `2.07`, `632`; near 1 with a digit more, since there every part in a thousand counts.
pub(crate) fn ratio(value: f64) -> String {
    match finite(value) {
        None => NONE.into(),
        Some(value) if (0.8..1.25).contains(&value) => format!("{value:.3}"),
        Some(value) => three_digits(value),
    }
}

/// A number of bytes, in binary units only where they are exact: `32 B`, `1 KiB`, `1,000 B`.
pub(crate) fn bytes(count: u64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if count > 0 && count.trailing_zeros() >= shift {
            return format!("{} {unit}", thousands(count >> shift));
        }
    }
    format!("{} B", thousands(count))
}

/// A size to be read, not to be calculated with: `12 kB`, `1.4 MB`.
pub(crate) fn bytes_about(count: u64) -> String {
    match count {
        0..1000 => format!("{count} B"),
        1000..1_000_000 => format!("{} kB", three_digits(count as f64 / 1e3)),
        _ => format!("{} MB", three_digits(count as f64 / 1e6)),
    }
}

/// The interval of an estimate: `± 1.2 %` when both arms are about equal, else its ends.
pub(crate) fn interval(estimate: &Estimate, print: fn(f64) -> String) -> String {
    let Estimate { estimate: value, low, high } = *estimate;
    if ![value, low, high].iter().all(|end| end.is_finite()) {
        return NONE.into();
    }
    let down = value - low;
    let up = high - value;
    let longer = down.max(up);
    let alike = (up - down).abs() <= ABOUT_EQUAL * longer || longer <= INVISIBLE * value;
    match relative(longer / value) {
        Some(percent) if alike && value > 0.0 => format!("± {percent} %"),
        _ => range(low, high, print),
    }
}

/// A range with its unit once, where both ends have the same one: `796 … 804 µs`.
pub(crate) fn range(low: f64, high: f64, print: fn(f64) -> String) -> String {
    let from = print(low);
    let to = print(high);
    let number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-');
    let unit = |text: &str| text.trim_start_matches(number).to_owned();
    let same = unit(&from) == unit(&to);
    let from = if same { from.trim_end_matches(&unit(&to)) } else { &from };
    format!("{from} … {to}")
}

/// What is predicted: `589 ms`, `396 … 589 ms`.
pub(crate) fn span(of: &Range) -> String {
    match [of.low, of.high].map(time) {
        [low, high] if low == high => low,
        _ => range(of.low, of.high, time),
    }
}

/// An estimate followed by its interval in brackets: `4,980/s (± 1.0 %)`. An interval without a width
/// is none: such a figure was published or told without one.
pub(crate) fn with_interval(estimate: &Estimate, print: fn(f64) -> String) -> String {
    if estimate.low == estimate.high {
        return print(estimate.estimate);
    }
    format!("{} ({})", print(estimate.estimate), interval(estimate, print))
}

/// A relative half-width in percent with two digits; `None` when a percentage says nothing.
fn relative(half_width: f64) -> Option<String> {
    match 100.0 * half_width {
        percent if !(0.0..99.5).contains(&percent) => None,
        percent if percent >= 9.95 => Some(format!("{percent:.0}")),
        percent if percent >= 0.995 => Some(format!("{percent:.1}")),
        percent if percent >= 0.005 || percent == 0.0 => Some(format!("{percent:.2}")),
        _ => Some("<0.01".into()),
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(estimate: f64, low: f64, high: f64) -> Estimate {
        Estimate { estimate, low, high }
    }

    #[test]
    fn an_interval_with_equal_arms_is_a_percentage() {
        let cases = [
            (around(5000.0, 4950.0, 5050.0), "± 1.0 %"),
            (around(5000.0, 4000.0, 6000.0), "± 20 %"),
            (around(5000.0, 4987.0, 5013.0), "± 0.26 %"),
            (around(5000.0, 4999.9, 5000.1), "± <0.01 %"),
            (around(5000.0, 5000.0, 5000.0), "± 0.00 %"),
            // The longer arm counts, and arms too short to be seen are not told apart.
            (around(1000.0, 999.0, 1004.0), "± 0.40 %"),
        ];
        for (estimate, text) in cases {
            assert_eq!(interval(&estimate, rate), text);
        }
    }

    #[test]
    fn other_intervals_are_their_ends() {
        assert_eq!(interval(&around(100.0, 90.0, 160.0), rate), "90.0 … 160/s");
        assert_eq!(interval(&around(8e5, 7e5, 1.2e6), time), "700 µs … 1.20 ms");
        assert_eq!(interval(&around(0.0, 0.0, 3.7), rate), "0 … 3.70/s");
        assert_eq!(interval(&around(10.0, -90.0, 110.0), rate), "-90.0 … 110/s");
        assert_eq!(interval(&around(1.0, f64::NEG_INFINITY, 2.0), rate), NONE);
    }

    #[test]
    fn what_is_no_number_is_no_figure() {
        assert_eq!((rate(f64::NAN), time(f64::INFINITY)), (NONE.into(), NONE.into()));
        assert_eq!(share(Fraction(f64::NAN)), NONE);
        assert_eq!(ratio(f64::NAN), NONE);
    }

    #[test]
    fn ratios_near_one_have_a_digit_more() {
        assert_eq!(
            [0.9876, 1.0, 1.0304, 2.066, 632.4].map(ratio),
            ["0.988", "1.000", "1.030", "2.07", "632"]
        );
    }

    #[test]
    fn bytes_are_rounded_never() {
        let printed = [0, 32, 1000, 1024, 1536, 65536, 1 << 20].map(bytes);
        assert_eq!(printed, ["0 B", "32 B", "1,000 B", "1 KiB", "1,536 B", "64 KiB", "1 MiB"]);
    }
}
