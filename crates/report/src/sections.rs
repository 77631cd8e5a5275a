//! What a record says, section by section: what was measured, a table with a row for each case,
//! whatever needs more room, and at the end what to know before believing any of it.
//!
//! What all cases share is said once, at the top; what they differ in is a column. Colour only ever
//! repeats what a word or a sign says.

mod blocks;
mod capacity;
pub(crate) mod charts;
mod claims;
mod comparison;
mod costs;
mod detail;
mod door;
pub(crate) mod grid;
mod head;
mod knee;
mod mix;
mod notes;
pub(crate) mod page;
mod published;
mod results;
mod shared;
mod side_by_side;
pub(crate) mod span;
pub(crate) mod trace;
pub(crate) mod within;

use tapstone_record::{CaseResult, Comparison, Cost, Outcome, Pairing, Record};
use tapstone_reference::Reference;

use crate::style::Style;
use crate::verdict;
pub(crate) use claims::measured as measured_for_claim;
use page::Page;
use span::Span;

/// Which results have a line, and a section, of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownCases {
    /// Those that no other table tells.
    Untold,
    /// Every result, also those that another table tells.
    All,
}

/// A record, and what of it is shown to whom.
pub(crate) struct Sections<'a> {
    record: &'a Record,
    style: Style,
    cases: ShownCases,
    results: Vec<CaseResult>,
}

impl<'a> Sections<'a> {
    pub(crate) fn new(record: &'a Record, style: &Style, cases: ShownCases) -> Self {
        let sections = Self { record, style: *style, cases, results: Vec::new() };
        let results = record.results.iter().filter(|case| !sections.is_told(case));
        Self { results: results.cloned().collect(), ..sections }
    }

    /// What was measured, how, and where.
    pub(crate) fn head(&self, page: &mut Page) {
        head::add_head(page, self.record);
    }

    /// A line for each result, unless there is only one, which is shown in full.
    pub(crate) fn results(&self, page: &mut Page) {
        // The sides of a comparison in turns, like the points of a cost, are cases that something
        // else puts together: they are shown one by one only when asked for.
        let in_turns = |of: &Comparison| of.pairing == Pairing::Interleaved;
        let compared = self.record.comparison.as_ref().is_some_and(in_turns);
        if self.is_alone()
            || self.results.is_empty()
            || (compared && self.cases == ShownCases::Untold)
        {
            return;
        }
        head::show_shared(page, &self.results);
        let told = |case: &&CaseResult| {
            self.cases == ShownCases::Untold
                && self.record.costs.iter().any(|cost| is_part(cost, case))
        };
        let cases: Vec<CaseResult> =
            self.results.iter().filter(|case| !told(case)).cloned().collect();
        if !cases.is_empty() {
            results::add_results(page, &cases);
        }
    }

    /// A section for each result.
    pub(crate) fn details(&self, page: &mut Page) {
        for case in self.results.iter().filter(|case| self.is_in_full(case)) {
            detail::add_detail(page, case);
        }
    }

    /// What was made of the results.
    pub(crate) fn conclusions(&self, page: &mut Page) {
        let record = self.record;
        if let Some(knee) = &record.knee {
            knee::add_knee(page, knee, &record.claims, &record.results);
        }
        if let Some(within) = &record.rate_within {
            within::add_rate_within(page, within);
            if let Some(known) = &within.capacity {
                capacity::add_device_capacity(page, within, known);
            }
        }
        if let Some(comparison) = &record.comparison {
            comparison::add_comparison(page, comparison, &self.style);
        }
        if let Some(all) = &record.side_by_side {
            side_by_side::add_side_by_side(page, all);
        }
        if door::is_one(record) {
            door::add_door(page, record);
        } else {
            trace::add_trace(page, record, &self.style);
        }
        costs::add_costs(page, &record.costs);
        claims::add_claims(page, &record.claims, &record.results);
    }

    /// What to know before believing any of it.
    pub(crate) fn notes(&self, page: &mut Page) {
        let said = |case: &CaseResult, note: &str| {
            self.is_told(case) || (self.is_in_full(case) && detail::is_drift(note))
        };
        notes::add_notes(page, self.record, said);
    }

    /// What it all comes to: the last lines on a terminal, where the eye is.
    pub(crate) fn verdict(&self, page: &mut Page) {
        let said = verdict::verdict_spans(self.record);
        if said.is_empty() {
            return;
        }
        page.heading_of_conclusions("verdict", "");
        for sentence in said {
            page.hanging(&Span::plain("  "), &sentence);
        }
    }

    /// What the tables of a trace or of a door tell.
    fn is_told(&self, case: &CaseResult) -> bool {
        let record = self.record;
        self.cases == ShownCases::Untold
            && (trace::tells(record, case) || door::tells(record, case))
    }

    /// There is one result, and it is shown in full.
    pub(crate) fn is_alone(&self) -> bool {
        matches!(&self.results[..], [only] if detail::has_any(only))
    }

    fn is_in_full(&self, case: &CaseResult) -> bool {
        (self.is_alone() || self.style.verbose) && detail::has_any(case)
    }
}

/// Whether a case is one of those that a cost was fitted over: it went well, and is called after it.
fn is_part(cost: &Cost, case: &CaseResult) -> bool {
    let varied = case.operation.strip_prefix(&cost.operation);
    case.status.outcome == Outcome::Ok && varied.is_some_and(|point| point.starts_with('['))
}

/// A reference on its own: its figures, and its conclusions beside computed ones.
pub(crate) fn of_reference(reference: &Reference, style: &Style) -> Page {
    let mut page = Page::new(*style, None);
    published::add_published(&mut page, reference);
    page
}
