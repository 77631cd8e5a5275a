//! Moments of the calendar, to the second, as certificates have them.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use der::DateTime;
use serde::{Deserialize, Serialize};

/// Seconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time(pub u64);

impl Time {
    /// This moment by the machine's clock; 1970 by one that is before it.
    #[must_use]
    pub fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
    }

    /// How long ago another moment was; `None` when it is still to come.
    #[must_use]
    pub fn since(self, earlier: Self) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_secs)
    }

    /// The last second of a day `YYYYMMDD`.
    pub(crate) fn end_of_day(digits: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(digits)
            .ok()
            .filter(|text| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit()))?;
        let number = |range: std::ops::Range<usize>| text[range].parse::<u16>().ok();
        let year = number(0..4)?;
        let month = number(4..6)?;
        let day = number(6..8)?;
        let day = DateTime::new(year, month as u8, day as u8, 23, 59, 59).ok()?;
        Some(day.into())
    }
}

impl From<DateTime> for Time {
    fn from(moment: DateTime) -> Self {
        Self(moment.unix_duration().as_secs())
    }
}

impl From<x509_cert::time::Time> for Time {
    fn from(moment: x509_cert::time::Time) -> Self {
        Self(moment.to_unix_duration().as_secs())
    }
}

/// `2026-11-21T20:39:49Z`; the last moment that certificates can have, for later ones.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DateTime::from_unix_duration(Duration::from_secs(self.0)) {
            Ok(moment) => write!(f, "{moment}"),
            Err(_) => f.write_str("9999-12-31T23:59:59Z"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_with_its_last_second() {
        // 2026-11-21 begins 20,778 days after 1970.
        assert_eq!(Time::end_of_day(b"20261121"), Some(Time(20_779 * 86_400 - 1)));
        for digits in [&b"2026112"[..], b"202611211", b"20261+21", b"202611+1", b"20261321", b""] {
            assert_eq!(Time::end_of_day(digits), None, "{}", String::from_utf8_lossy(digits));
        }
    }

    #[test]
    fn moments_are_written_as_rfc_3339_has_them() {
        assert_eq!(Time(20_778 * 86_400 + 74_389).to_string(), "2026-11-21T20:39:49Z");
        assert_eq!(Time(u64::MAX).to_string(), "9999-12-31T23:59:59Z");
    }
}
