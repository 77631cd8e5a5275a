//! Values of options, as a user writes them.

use std::time::Duration;
use tapstone_measure::rounds::FEWEST_ROUNDS;
use tapstone_token::catalogue::KeySpec;

use tapstone_measure::units::{Nanos, PerSecond};

/// `16`, `1k`, `64KiB`: a number of bytes; `k` is 1024, as in every table of block ciphers.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    let config = parse_size::Config::new().with_binary();
    let bytes = config.parse_size(text).map_err(|error| format!("{error}: write 16, 1k or 64k"))?;
    usize::try_from(bytes).map_err(|_| "more than this machine can address".to_owned())
}

/// `10`, `2.5`: seconds, more than none.
pub(crate) fn seconds(text: &str) -> Result<Nanos, String> {
    let seconds: f64 =
        text.parse().map_err(|_| "write a number of seconds: 10 or 2.5".to_owned())?;
    let fits = seconds.is_finite() && (0.01..=1e7).contains(&seconds);
    let nanos = Nanos((seconds * 1e9) as u64);
    fits.then_some(nanos).ok_or_else(|| "must be from 0.01 to 10,000,000 seconds".to_owned())
}

/// `24h`, `30m`, `90s`, `2h 30m`.
pub(crate) fn duration(text: &str) -> Result<Nanos, String> {
    match pause(text)? {
        Nanos(0..10_000_000) => Err("must be at least 10ms".to_owned()),
        length => Ok(length),
    }
}

/// The same, and `0s` too.
pub(crate) fn pause(text: &str) -> Result<Nanos, String> {
    let parsed: jiff::SignedDuration =
        text.parse().map_err(|_| "write a duration: 24h, 30m, 90s or 5ms".to_owned())?;
    let parsed = Duration::try_from(parsed).map_err(|_| "must not be negative".to_owned())?;
    Ok(Nanos::from(parsed))
}

/// `500`, `0.5`: operations a second, more than none.
pub(crate) fn rate(text: &str) -> Result<PerSecond, String> {
    let rate: f64 = text
        .trim_end_matches("/s")
        .parse()
        .map_err(|_| "write a rate in operations per second: 500".to_owned())?;
    let fits = rate.is_finite() && rate > 0.0 && rate <= 1e9;
    fits.then_some(PerSecond(rate)).ok_or_else(|| "must be more than 0 and at most 1e9".to_owned())
}

/// `1%`, `0.5%`: half the width of an interval over its middle.
pub(crate) fn precision(text: &str) -> Result<f64, String> {
    let percent: f64 = text
        .trim_end_matches('%')
        .parse()
        .map_err(|_| "write a percentage: 1% or 0.5%".to_owned())?;
    let fits = (0.01..=50.0).contains(&percent);
    fits.then_some(percent / 100.0).ok_or_else(|| "must be from 0.01% to 50%".to_owned())
}

/// `5`: how often a case is measured anew, enough for an interval over the rounds.
pub(crate) fn rounds(text: &str) -> Result<usize, String> {
    const MOST: usize = 1_000;
    let rounds = text.parse().ok().filter(|rounds| (FEWEST_ROUNDS..=MOST).contains(rounds));
    rounds.ok_or_else(|| format!("write a number from {FEWEST_ROUNDS} to {MOST}"))
}

/// `01af`: bytes in hexadecimal.
pub(crate) fn hexadecimal(text: &str) -> Result<Hexadecimal, String> {
    let bytes = hex::decode(text.trim_start_matches("0x"));
    bytes.map(Hexadecimal).map_err(|error| format!("{error}: write bytes in hexadecimal: 01af"))
}

/// Bytes given in hexadecimal.
#[derive(Clone, Debug)]
pub(crate) struct Hexadecimal(pub(crate) Vec<u8>);

/// `3x`: so many times.
pub(crate) fn scale(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix(['x', '×']).unwrap_or(text);
    let scale = number.parse::<u32>().ok().filter(|scale| (1..=1024).contains(scale));
    scale.ok_or_else(|| "a whole number of times from 1x to 1024x".to_owned())
}

/// `3=rsa2048`: a key of a workload and its kind.
pub(crate) fn workload_key(text: &str) -> Result<(u32, KeySpec), String> {
    let wrong = || {
        "a key's number and its kind, such as 3=rsa2048, 4=p256, 5=ed25519, 6=aes128 or \
         7=hmac-sha256"
            .to_owned()
    };
    let (number, kind) = text.split_once('=').ok_or_else(wrong)?;
    let number = number.parse().map_err(|_| wrong())?;
    Ok((number, KeySpec::named(kind).ok_or_else(wrong)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary() {
        assert_eq!(bytes("16"), Ok(16));
        assert_eq!(bytes("1k"), Ok(1024));
        assert_eq!(bytes("64KiB"), Ok(65_536));
        assert!(bytes("a lot").is_err());
    }

    #[test]
    fn impossible_numbers_are_refused() {
        for text in ["0", "-1", "nan", "inf", "x"] {
            assert!(rate(text).is_err(), "{text}");
            assert!(seconds(text).is_err(), "{text}");
        }
        for text in ["-1h", "0s", "soon"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(duration("24h"), Ok(Nanos::from_secs(86_400)));
        assert_eq!(precision("0.5%"), Ok(0.005));
    }
}
