//! Operations that ran together: the combined case of a mix, and its components below it.
//!
//! The combined case is called `mix`, and whatever ran with it has the same window, to the
//! nanosecond. What only the whole can have (the client's processors, so whose limit the rate is)
//! stands in the combined case; what only a component has (a key, results to verify) in its own.

use tapstone_record::CaseResult;

/// Where a case stands in a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Alone,
    Whole,
    Part,
    LastPart,
}

impl Place {
    pub(super) const fn is_part(self) -> bool {
        matches!(self, Self::Part | Self::LastPart)
    }
}

/// A case and its place in a mix.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub(super) case: &'a CaseResult,
    pub(super) place: Place,
}

/// Cases in their order, but the components of a mix below its combined case.
pub(super) fn ordered(cases: &[CaseResult]) -> Vec<Item<'_>> {
    let wholes: Vec<&CaseResult> = cases.iter().filter(|case| is_whole(case)).collect();
    let part_of =
        |case: &CaseResult, whole: &CaseResult| !is_whole(case) && case.window == whole.window;
    let mut items = Vec::new();
    for case in cases {
        if is_whole(case) {
            let parts = cases.iter().filter(|part| part_of(part, case));
            items.push(Item { case, place: Place::Whole });
            items.extend(parts.map(|case| Item { case, place: Place::Part }));
            let last = items.last_mut().filter(|item| item.place == Place::Part);
            last.into_iter().for_each(|item| item.place = Place::LastPart);
        } else if !wholes.iter().any(|whole| part_of(case, whole)) {
            items.push(Item { case, place: Place::Alone });
        }
    }
    items
}

pub(super) fn is_whole(case: &CaseResult) -> bool {
    case.operation == "mix" && case.window.is_some()
}
