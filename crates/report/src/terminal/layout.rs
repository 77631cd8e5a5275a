//! A table that fits: where the terminal is too narrow, it leaves out whole columns, the least
//! important first, rather than wrap or cut figures. The table crates do not.

use crate::sections::grid::{Column, Entry, Grid, Keep, Lean};
use crate::sections::span::Span;
use crate::text::{truncate, width, wrap};

/// Blank characters between two columns of a table.
const GAP: usize = 2;

/// The first column names the row. It gives way last, and not below this.
const SHORTEST_NAME: usize = 8;

/// The lines of a table, cells cleaned by `clean`.
pub(super) fn lay_out(table: &Grid, room: usize, clean: impl Fn(&str) -> String) -> Vec<Vec<Span>> {
    let room = room.saturating_sub(GAP);
    let ellipsis = clean("…");
    let table = cleaned(table, clean);
    let layout = TableLayout::fitting(&table, room, ellipsis);
    let mut lines = Vec::new();
    let titles = |column: &Column| Span::faint(column.title);
    if table.columns.iter().any(|column| !column.title.is_empty()) {
        lines.push(layout.cells(&table, &table.columns.iter().map(titles).collect::<Vec<_>>()));
    }
    for entry in &table.entries {
        match entry {
            Entry::Cells(cells) => {
                lines.extend(layout.name_above(cells, room));
                lines.push(layout.cells(&table, cells));
            }
            Entry::Sentence(name, text) => lines.extend(layout.sentence(name, text, room)),
        }
    }
    lines
}

fn cleaned(table: &Grid, clean: impl Fn(&str) -> String) -> Grid {
    let span = |span: &Span| Span::new(clean(&span.text), span.tint);
    let entry = |entry: &Entry| match entry {
        Entry::Cells(cells) => Entry::Cells(cells.iter().map(span).collect()),
        Entry::Sentence(name, text) => Entry::Sentence(span(name), span(text)),
    };
    Grid { columns: table.columns.clone(), entries: table.entries.iter().map(entry).collect() }
}

/// What a column needs to show all of its cells.
fn natural_width(table: &Grid, column: usize) -> usize {
    let cell = |entry: &Entry| match entry {
        Entry::Cells(cells) => cells.get(column).map_or(0, |cell| width(&cell.text)),
        Entry::Sentence(name, _) if column == 0 => width(&name.text),
        Entry::Sentence(..) => 0,
    };
    let title = width(table.columns[column].title);
    table.entries.iter().map(cell).fold(title, usize::max)
}

/// Which columns are shown, and how wide.
struct TableLayout {
    shown: Vec<(usize, usize)>,
    ellipsis: String,
}

impl TableLayout {
    fn fitting(table: &Grid, room: usize, ellipsis: String) -> Self {
        let keep =
            |column: usize| if column == 0 { Keep::Always } else { table.columns[column].keep };
        let widths: Vec<usize> =
            (0..table.columns.len()).map(|column| natural_width(table, column)).collect();
        let mut order: Vec<usize> = (0..widths.len()).collect();
        order.sort_by_key(|column| std::cmp::Reverse(keep(*column)));
        // The most important first; a narrow one may still fit where a wider one did not.
        let mut shown = Vec::new();
        let mut used = 0;
        for column in order {
            let needed = widths[column] + if shown.is_empty() { 0 } else { GAP };
            if keep(column) == Keep::Always || used + needed <= room {
                used += needed;
                shown.push((column, widths[column]));
            }
        }
        shown.sort_unstable();
        if let Some((_, name)) = shown.first_mut() {
            let excess = used.saturating_sub(room);
            *name = name.saturating_sub(excess).max(SHORTEST_NAME.min(*name));
        }
        Self { shown, ellipsis }
    }

    /// The name of a row that does not fit into its column, whole, on lines of its own.
    fn name_above(&self, cells: &[Span], room: usize) -> Vec<Vec<Span>> {
        let Some(name) = cells.first().filter(|name| !self.fits(name)) else { return Vec::new() };
        let line = |text| vec![Span::plain(" ".repeat(GAP)), Span::new(text, name.tint)];
        wrap(&name.text, room.max(SHORTEST_NAME)).into_iter().map(line).collect()
    }

    /// Whether a name fits into the first column.
    fn fits(&self, name: &Span) -> bool {
        self.shown.first().is_none_or(|(_, columns)| width(&name.text) <= *columns)
    }

    fn cells(&self, table: &Grid, cells: &[Span]) -> Vec<Span> {
        let mut line = Vec::new();
        for (column, columns) in &self.shown {
            let Some(cell) = cells.get(*column) else { continue };
            let above = *column == 0 && !self.fits(cell);
            let text = if above { "" } else { &cell.text };
            let text = truncate(text, *columns, &self.ellipsis);
            let padding = " ".repeat(columns - width(&text));
            line.push(Span::plain(" ".repeat(GAP)));
            match table.columns[*column].lean {
                Lean::Left => line.extend([Span::new(text, cell.tint), Span::plain(padding)]),
                Lean::Right => line.extend([Span::plain(padding), Span::new(text, cell.tint)]),
            }
        }
        line
    }

    fn sentence(&self, name: &Span, text: &Span, room: usize) -> Vec<Vec<Span>> {
        let columns = self.shown.first().map_or(0, |(_, width)| *width);
        let mut lines = self.name_above(std::slice::from_ref(name), room);
        let name_text = if lines.is_empty() { name.text.clone() } else { String::new() };
        let mut lead = vec![
            Span::plain(" ".repeat(GAP)),
            Span::new(name_text.clone(), name.tint),
            Span::plain(" ".repeat(columns - width(&name_text) + GAP)),
        ];
        for line in wrap(&text.text, room.saturating_sub(columns + GAP)) {
            lead.push(Span::new(line, text.tint));
            lines.push(lead);
            lead = vec![Span::plain(" ".repeat(columns + 2 * GAP))];
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::grid::{figures, words};
    use crate::sections::span::Tint;

    fn drawn(room: usize) -> Vec<String> {
        let columns = vec![
            words("name", Keep::Always),
            figures("rate", Keep::Always),
            figures("tail", Keep::Rank(1)),
            figures("p50", Keep::Rank(2)),
        ];
        let cells = |cells: [&str; 4]| Entry::Cells(cells.map(Span::plain).to_vec());
        let entries = vec![
            cells(["rsa2048.sign", "12/s", "1 ms", "2 ms"]),
            Entry::Sentence(Span::plain("ecdsa"), Span::new("not on this token", Tint::Faint)),
        ];
        let lines = lay_out(&Grid { columns, entries }, room, str::to_owned);
        let text =
            |line: &Vec<Span>| line.iter().map(|span| span.text.as_str()).collect::<String>();
        lines.iter().map(|line| text(line).trim_end().to_owned()).collect()
    }

    #[test]
    fn columns_go_in_their_order_and_sentences_wrap() {
        assert_eq!(drawn(40)[1], "  rsa2048.sign  12/s  1 ms  2 ms");
        assert_eq!(drawn(28)[1], "  rsa2048.sign  12/s  2 ms");
        assert_eq!(drawn(24)[1], "  rsa2048.sign  12/s");
        assert_eq!(drawn(18)[1..3], ["  rsa2048.sign", "              12/s"]);
        assert_eq!(drawn(28)[2..], ["  ecdsa         not on this", "                token"]);
    }

    #[test]
    fn a_name_is_never_cut() {
        for room in 14..60 {
            let text: String = drawn(room).concat().split_whitespace().collect();
            assert!(text.contains("rsa2048.sign") && !text.contains('…'), "{room}: {text}");
        }
    }
}
