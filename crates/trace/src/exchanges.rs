//! What the commands to cards are called: each by the application that was selected when it was
//! sent.

use std::collections::HashMap;

use tapstone_apdu::Status;
use tapstone_apdu::names::{Described, Interpreter, describe};

use crate::timeline::{Span, Timeline};

/// The names of all exchanges, in the order of [`Timeline::exchanges`].
#[must_use]
pub fn described(timeline: &Timeline) -> Vec<Described> {
    let mut names: Vec<Option<Described>> = vec![None; timeline.exchanges.len()];
    // A connection to a card, or a reader inside the service: a process and a number in it.
    let mut cards: HashMap<(u32, u64), Interpreter> = HashMap::new();
    for (process, span) in in_order(timeline) {
        let card = cards.entry((process, span.handle)).or_default();
        match span.exchange {
            Some(id) => {
                let exchange = timeline.exchange(id);
                let name = card.exchange(&exchange.command, Status(exchange.status));
                names[id.0 as usize] = Some(name);
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
            span.exchange.is_some() || resets(timeline.call(span.call).function, span)
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
