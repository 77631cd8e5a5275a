//! How many devices carry a recorded load: a line for each number of them, then what it means in
//! sentences.

use tapstone_record::{DeviceCapacity, RateWithin};

use super::grid::{Entry, Grid, Keep, figures as right};
use super::page::Page;
use super::span::{Span, Tint};
use crate::device_capacity::{capacity_heading, capacity_rows, capacity_sentences};

pub(super) fn add_device_capacity(page: &mut Page, within: &RateWithin, known: &DeviceCapacity) {
    page.heading_of_conclusions("how many devices", &within.operation);
    let columns = capacity_heading(within).map(|name| right(name, Keep::Always)).to_vec();
    let entry = |[devices, rest @ ..]: [String; 6]| {
        let mut cells = vec![Span::new(devices, Tint::Strong)];
        cells.extend(rest.into_iter().map(Span::plain));
        Entry::Cells(cells)
    };
    let entries = capacity_rows(known).into_iter().map(entry).collect();
    page.grid(&Grid { columns, entries });
    for sentence in capacity_sentences(within, known) {
        page.hanging(&Span::plain("  "), &Span::plain(sentence));
    }
}
