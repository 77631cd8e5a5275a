//! A record on a terminal. No line is wider than the terminal, and no character of a label can act
//! on it: `screen.rs` sees to both.

mod layout;
mod screen;

use tapstone_record::Record;
use tapstone_reference::Reference;

use crate::sections::page::Page;
use crate::sections::{self, Sections, ShownCases};
pub use crate::style::Style;

/// The record as lines of text, each of which ends with a new line.
#[must_use]
pub fn render(record: &Record, style: &Style) -> String {
    let cases = if style.verbose { ShownCases::All } else { ShownCases::Untold };
    let sections = Sections::new(record, style, cases);
    let mut page = Page::new(*style, record.target.emulated.as_ref());
    sections.head(&mut page);
    sections.results(&mut page);
    sections.details(&mut page);
    sections.conclusions(&mut page);
    sections.notes(&mut page);
    sections.verdict(&mut page);
    screen::laid_out(page)
}

/// A reference on its own as lines of text: its figures, and its conclusions beside computed ones.
#[must_use]
pub fn render_reference(reference: &Reference, style: &Style) -> String {
    screen::laid_out(sections::of_reference(reference, style))
}
