//! What the commands to cards are called: each by the application that was selected when it was
//! sent.

use std::collections::HashMap;

use tapstone_apdu::StatusWord;
use tapstone_names::apdu::{Described, Interpreter, describe};

use crate::timeline::{Span, Timeline};

/// The names of all exchanges, in the order of [`Timeline::exchanges`].
#[must_use]
pub fn described(timeline: &Timeline) -> Vec<Described> {
    let mut names: Vec<Option<Described>> = vec![None; timeline.exchanges.len()];
    // A connection to a card, or a reader inside the service: a process and a number in it.
    let mut cards: HashMap<(u32, u64), Interpreter> = HashMap::new();
    for (process, span) in in_order(timeline) {
        let card = cards.entry((process, span.handle)).or_default();
        match span.exchange() {
            Some(id) => {
                let exchange = timeline.exchange(id);
                let name = card.exchange(&exchange.command, StatusWord(exchange.status));
                names[id.0.index()] = Some(name);
            }
            None => card.reset(),
        }
    }
    let unseen = |at: usize| describe(&timeline.exchanges[at].command, None);
    names.into_iter().enumerate().map(|(at, name)| name.unwrap_or_else(|| unseen(at))).collect()
}

/// Exchanges and resets of all threads, in the order in which they began, with their processes.
fn in_order(timeline: &Timeline) -> Vec<(u32, &Span)> {
    let mut spans: Vec<(u32, &Span)> = Vec::new();
    for thread in &timeline.threads {
        let telling = thread.spans.iter().filter(|span| {
            span.exchange().is_some() || resets(timeline.call(span.call).function, span)
        });
        spans.extend(telling.map(|span| (thread.process, span)));
    }
    spans.sort_by_key(|(_, span)| span.start);
    spans
}

/// Whether what was selected may not be any more. How a card was connected to again is not known;
/// dispositions other than SCARD_LEAVE_CARD reset it (PC/SC part 5).
fn resets(function: &str, span: &Span) -> bool {
    match function {
        "SCardReconnect" | "IFDHPowerICC" => true,
        "SCardDisconnect" | "SCardEndTransaction" => span.detail != 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use crate::timeline::{CalledFunction, Family, FunctionId};
    use tapstone_measure::units::Nanos;

    fn objects(timeline: &Timeline) -> Vec<String> {
        described(timeline).into_iter().map(|name| name.object.unwrap_or_default()).collect()
    }

    /// The sample with the end of a transaction between its SELECT and its VERIFY.
    fn with_an_end(disposition: u64, process: u32) -> Timeline {
        let mut timeline = samples::signature();
        let call = CalledFunction { function: "SCardEndTransaction", ..timeline.calls[2].clone() };
        assert_eq!(call.family, Family::Pcsc);
        timeline.calls.push(call);
        let of_card = timeline.threads[0].spans[2];
        let call = FunctionId(timeline.calls.len() as u32 - 1);
        let start = Nanos(2610);
        let end = Nanos(2620);
        let ends =
            Span { start, end, call, detail: disposition, about: None, parent: None, ..of_card };
        timeline.threads[1].process = process;
        timeline.threads[1].spans.push(ends);
        timeline
    }

    #[test]
    fn a_name_follows_what_is_selected() {
        let piv = "PIV A000000308000010000100";
        assert_eq!(objects(&samples::signature()), [piv, "PIV Card Application PIN"]);
        // SCARD_LEAVE_CARD, SCARD_RESET_CARD; and in another process, of another card.
        assert_eq!(objects(&with_an_end(0, 4211)), [piv, "PIV Card Application PIN"]);
        assert_eq!(objects(&with_an_end(1, 4211)), [piv, "reference 80"]);
        assert_eq!(objects(&with_an_end(1, 4300)), [piv, "PIV Card Application PIN"]);
    }
}
