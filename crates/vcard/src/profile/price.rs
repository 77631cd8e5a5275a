//! A time as a profile writes it, for one of something.

use tapstone_source::{Mistake, Source};
use toml::Spanned;

use super::raw::RawTime;
use super::timing::Price;

/// An hour: longer times are typing errors.
const LONGEST_NS: f64 = 3.6e12;

/// Exactly one unit, not negative, at most an hour.
pub(super) fn price(source: &Source<'_>, time: &Spanned<RawTime>) -> Result<Price, Mistake> {
    let RawTime { ns, us, ms, s, .. } = time.get_ref();
    let mut given = [(ns, 1.0), (us, 1e3), (ms, 1e6), (s, 1e9)]
        .into_iter()
        .filter_map(|(value, unit)| Some((*value)? * unit));
    let (Some(nanos), None) = (given.next(), given.next()) else {
        let problem =
            "a time has exactly one unit\nhint: one of ns, us, ms and s, as { us = 5150 }";
        return Err(source.error(time.span(), problem));
    };
    if !(0.0..=LONGEST_NS).contains(&nanos) {
        let problem = "a time is impossible that is negative or longer than an hour\n\
                       hint: check the number and its unit";
        return Err(source.error(time.span(), problem));
    }
    Ok(Price(nanos))
}
