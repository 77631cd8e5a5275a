//! Parts of the sentences that findings are told in.

use std::collections::BTreeSet;

use tapstone_measure::units::Nanos;
use tapstone_record as record;
use tapstone_text::{Foreign, thousands};

use crate::timeline::Timeline;

/// `once`, `twice`, `14 times`.
pub(super) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{} times", thousands(count)),
    }
}

/// The command, or what of it was listed call by call.
pub(crate) fn one_command(timeline: &Timeline) -> String {
    let listed = timeline.listed_until() - timeline.started;
    match timeline.summed_from {
        Some(_) => format!("the first {listed} of one command"),
        None => "one command".to_owned(),
    }
}

/// What is told of calls that asked again and were only counted, where that took a hundredth of the
/// command's time or more: nobody looked for waste in them.
pub(crate) fn asked_again(call: &record::Call, wall: Nanos) -> Option<String> {
    let (count, time) = call.asked_again.zip(call.asked_again_ns)?;
    (time > Nanos::ZERO && time.0 >= wall.0 / 100).then(|| {
        format!(
            "{} asked {} again what its thread had asked before, which took {time}, in calls that \
             are only counted",
            call.operation(),
            times(count)
        )
    })
}

/// `1 poll`, `454 polls`.
pub(super) fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// `12.0 ms`, or `1.02 ms to 9.90 ms`.
pub(super) fn between(shortest: Nanos, longest: Nanos) -> String {
    let low = shortest.to_string();
    let high = longest.to_string();
    if low == high { low } else { format!("{low} to {high}") }
}

/// A function and the library that it belongs to.
pub(super) fn function_of(function: &str, module: &str) -> String {
    if module.is_empty() { function.to_owned() } else { format!("{function} of {module}") }
}

/// Who called a function of a library.
pub(super) fn called<'a>(module: &str, callers: impl IntoIterator<Item = &'a str>) -> String {
    let named = callers.into_iter().map(|caller| match caller {
        "" => "the program",
        // A function list of PKCS#11 does not tell who has it.
        caller if caller == module => "whoever has its function list",
        caller => caller,
    });
    let names: Vec<_> = named.collect::<BTreeSet<_>>().into_iter().collect();
    format!("called by {}", names.join(", "))
}

/// Bytes that came from the program, as text that does nothing to a terminal.
pub(super) fn printable(bytes: &[u8]) -> String {
    Foreign::from_bytes(bytes).to_string()
}

/// `00 CB 3F FF`.
pub(super) fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join(" ")
}

/// How calls ended: each with its failure, or none.
pub(super) fn ended(failures: &BTreeSet<Option<String>>) -> String {
    let names: Vec<_> =
        failures.iter().map(|failure| failure.as_deref().unwrap_or("success")).collect();
    format!(
        "{} {}",
        if names.len() > 1 { "ended with" } else { "always ended with" },
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_words() {
        assert_eq!([1, 2, 1_234].map(times), ["once", "twice", "1,234 times"]);
        assert_eq!([1, 454].map(|count| counted(count, "poll")), ["1 poll", "454 polls"]);
        let millis = Nanos::from_millis;
        assert_eq!(between(millis(1), millis(9)), "1.00 ms to 9.00 ms");
        assert_eq!(between(millis(10), Nanos(10_001_000)), "10.0 ms");
    }

    #[test]
    fn callers_are_named_once() {
        let callers = ["module.so", "", "client.so", ""];
        let all = "called by client.so, the program, whoever has its function list";
        assert_eq!(called("module.so", callers), all);
    }

    #[test]
    fn endings_are_named() {
        let both = BTreeSet::from([None, Some("SCARD_E_TIMEOUT".to_owned())]);
        assert_eq!(ended(&both), "ended with success, SCARD_E_TIMEOUT");
        assert_eq!(ended(&BTreeSet::from([None])), "always ended with success");
    }

    #[test]
    fn nothing_acts_on_a_terminal() {
        assert_eq!(printable(b"/etc/\x1B[2Jx"), "/etc/\u{FFFD}[2Jx");
        assert_eq!(hex(&[0, 0xCB]), "00 CB");
    }
}
