//! Prints a record as a terminal of a given width would show it: `show record.json [width]`.

use std::env;

use anyhow::Context;
use tapstone_record::Record;
use tapstone_report::terminal::{Style, render};

fn main() -> anyhow::Result<()> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().context("usage: show record.json [width] [plain]")?;
    let width = arguments.next().map_or(Ok(80), |width| width.parse())?;
    let colour = arguments.next().is_none();
    let style = Style { width, colour, unicode: colour, verbose: false };
    print!("{}", render(&Record::read(path)?, &style));
    Ok(())
}
