//! Operations that ran together: the combined row of a mix, and its components below it.
//!
//! The combined row is called `mix`, and whatever ran with it has the same window, to the
//! nanosecond. What only the whole can have (the client's processors, so whose limit the rate is)
//! stands in the combined row; what only a component has (a key, results to verify) in its own.

use tapstone_record::CaseResult;

/// Where a row stands in a mix.
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

/// A row and its place in a mix.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub(super) row: &'a CaseResult,
    pub(super) place: Place,
}

/// Rows in their order, but the components of a mix below its combined row.
pub(super) fn ordered(rows: &[CaseResult]) -> Vec<Item<'_>> {
    let wholes: Vec<&CaseResult> = rows.iter().filter(|row| is_whole(row)).collect();
    let part_of =
        |row: &CaseResult, whole: &CaseResult| !is_whole(row) && row.window == whole.window;
    let mut items = Vec::new();
    for row in rows {
        if is_whole(row) {
            let parts = rows.iter().filter(|part| part_of(part, row));
            items.push(Item { row, place: Place::Whole });
            items.extend(parts.map(|row| Item { row, place: Place::Part }));
            let last = items.last_mut().filter(|item| item.place == Place::Part);
            last.into_iter().for_each(|item| item.place = Place::LastPart);
        } else if !wholes.iter().any(|whole| part_of(row, whole)) {
            items.push(Item { row, place: Place::Alone });
        }
    }
    items
}

pub(super) fn is_whole(row: &CaseResult) -> bool {
    row.operation == "mix" && row.window.is_some()
}
