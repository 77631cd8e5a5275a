//! With what a program begins each time it has opened something: where that is kept, so may this be.

use std::collections::{BTreeSet, HashMap};

use tapstone_measure::units::Nanos;

use crate::findings::Removed;
use crate::findings::scene::Scene;
use crate::findings::token_calls::{around, changes_objects, spans_from, stretch_of};

/// The SELECT with which a program begins after each connection, with what fetches its response (ISO
/// 7816-4, 11.2): where the connection is kept, so may what is selected on it be. `opened`: on one
/// thread, the first one included, whose own is needed.
pub(super) fn selections(scene: &Scene<'_>, opened: &[Removed]) -> Vec<Removed> {
    const SELECT: u8 = 0xA4;
    const GET_RESPONSE: u8 = 0xC0;
    let mut known = BTreeSet::new();
    let mut selections = Vec::new();
    for open in opened {
        let mut is_again = None;
        for span in spans_from(&scene.timeline.threads[open.thread], open.end) {
            let exchange = span.exchange().map(|id| scene.timeline.exchange(id));
            let instruction = exchange.and_then(|exchange| exchange.command.get(1).copied());
            is_again = match (instruction, exchange, is_again) {
                (Some(SELECT), Some(exchange), _) => Some(!known.insert(exchange.digest)),
                (Some(GET_RESPONSE), Some(_), Some(again)) => Some(again),
                _ => break,
            };
            if is_again == Some(true) {
                selections.push(stretch_of(open.thread, span));
            }
        }
    }
    selections
}

/// The searches with which a program begins in each session, or after each login, by the templates
/// of those before: a handle of an object is good for as long as those last (PKCS#11, 5.7). What
/// they found is not compared: it has another handle in another session of many modules. `opened` as
/// above.
pub(super) fn searches(scene: &Scene<'_>, module: &str, opened: &[Removed]) -> Vec<Removed> {
    let Some(&Removed { thread, .. }) = opened.first() else { return Vec::new() };
    let mut opened = opened.iter().map(|open| open.start).peekable();
    let mut slots: HashMap<u64, u64> = HashMap::new();
    // What was searched for before, and since the last opening.
    let [mut before, mut since] = [const { BTreeSet::new() }; 2];
    let mut begins = false;
    let mut search = None;
    let mut again = Vec::new();
    for span in spans_from(&scene.timeline.threads[thread], Nanos::ZERO) {
        let call = scene.timeline.call(span.call);
        if call.function == "C_OpenSession" && call.module == module && span.result == 0 {
            slots.insert(span.made(), span.handle);
        }
        if opened.next_if_eq(&span.start).is_some() {
            before.append(&mut since);
            begins = true;
            continue;
        }
        match call.function {
            _ if call.module != module => begins = false,
            "C_OpenSession" | "C_Login" | "C_FindObjects" => {}
            "C_FindObjectsInit" if span.detail != 0 && span.result == 0 => {
                let question = (slots.get(&span.handle).copied(), span.detail);
                let is_again = before.contains(&question) && !since.contains(&question);
                search = (begins && is_again).then_some(span.start);
                since.insert(question);
            }
            "C_FindObjectsFinal" => {
                let whole = search.take().map(|start| Removed { thread, start, end: span.end });
                again.extend(whole.iter().flat_map(|whole| around(scene, whole)));
                again.extend(whole);
            }
            function => {
                begins = false;
                if changes_objects(function) {
                    before.clear();
                    since.clear();
                }
            }
        }
    }
    again
}
