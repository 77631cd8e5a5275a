//! Blocks as lines of text. It cleans what it is given, cuts or wraps it to the width, and sets
//! colours.

use anstyle::{AnsiColor, Color, Effects};

use super::layout;
use crate::sections::page::{Block, Page};
use crate::sections::span::{Span, Tint};
use crate::style::Style;
use crate::text::{clean, truncate, width, wrap};

/// Where the values of facts begin.
const LABEL: usize = 14;

pub(super) fn laid_out(page: Page) -> String {
    let mut screen = Screen { style: *page.style(), text: String::new() };
    page.into_blocks().iter().for_each(|block| screen.block(block));
    screen.text
}

/// Lines of text for one terminal.
struct Screen {
    style: Style,
    text: String,
}

impl Screen {
    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading { title, more, emulated, .. } => {
                self.heading(title, more, emulated.as_deref());
            }
            Block::Line(spans) => self.line(spans),
            Block::Fact { label, value } => self.hanging(&labelled(label), value),
            Block::Drawing { label, drawing, range } => {
                let range = Span::faint(format!("  {range}"));
                self.line(&[labelled(label), drawing.clone(), range]);
            }
            Block::Blank => self.text.push('\n'),
            Block::Hanging { mark, text } => self.hanging(mark, text),
            Block::Command { mark, words } | Block::Template { mark, words } => {
                self.command(mark, words);
            }
            Block::Grid(grid) => {
                let unicode = self.style.unicode;
                let lines = layout::lay_out(grid, self.style.width, |text| clean(text, unicode));
                lines.iter().for_each(|line| self.line(line));
            }
            // A terminal has the table, and drawings of characters.
            Block::Chart(_) => {}
        }
    }

    fn heading(&mut self, title: &str, more: &str, emulated: Option<&str>) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let mut spans = vec![Span::new(title, Tint::Strong)];
        if !more.is_empty() {
            spans.push(Span::faint(format!(" · {more}")));
        }
        let Some(emulated) = emulated else { return self.line(&spans) };
        let mark = Span::new(emulated, Tint::Caution);
        let columns = |span: &Span| width(&self.clean(&span.text));
        let between = Span::faint(" · ");
        let needed: usize = spans.iter().chain([&between, &mark]).map(columns).sum();
        if needed <= self.style.width {
            spans.extend([between, mark]);
            self.line(&spans);
        } else {
            self.line(&spans);
            self.line(&[Span::plain("  "), mark]);
        }
    }

    /// A line, cut off where it is too wide.
    fn line(&mut self, spans: &[Span]) {
        let mut left = self.style.width;
        let mut pieces = Vec::new();
        for span in spans {
            let text = truncate(&self.clean(&span.text), left, &self.clean("…"));
            left = left.saturating_sub(width(&text));
            pieces.push(Span::new(text, span.tint));
        }
        while let Some(last) = pieces.last_mut() {
            last.text.truncate(last.text.trim_end().len());
            if !last.text.is_empty() {
                break;
            }
            pieces.pop();
        }
        pieces.iter().for_each(|piece| self.text.push_str(&self.tinted(piece)));
        self.text.push('\n');
    }

    /// A sentence behind a mark, its further lines below its first word.
    fn hanging(&mut self, mark: &Span, text: &Span) {
        let lead = self.clean(&mark.text);
        let lead = truncate(&lead, self.style.width / 2, &self.clean("…"));
        let indent = width(&lead);
        let mut mark = Span::new(lead, mark.tint);
        for line in wrap(&self.clean(&text.text), self.style.width - indent) {
            self.line(&[mark, Span::new(line, text.tint)]);
            mark = Span::plain(" ".repeat(indent));
        }
    }

    /// A command behind a mark, to be copied: where it goes on in another line, a shell goes on
    /// too. Its words are never broken, unless one alone is too long.
    fn command(&mut self, mark: &Span, words: &[String]) {
        let columns = |word: &String| width(&self.clean(word));
        let room =
            (self.style.width - width(&mark.text).min(self.style.width / 2)).saturating_sub(2);
        if words.iter().any(|word| columns(word) > room) {
            return self.hanging(mark, &Span::plain(words.join(" ")));
        }
        let mut lines: Vec<String> = Vec::new();
        for word in words {
            match lines.last_mut() {
                Some(line) if columns(line) + 1 + columns(word) <= room => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.clone()),
            }
        }
        let last = lines.len().saturating_sub(1);
        for (at, line) in lines.iter().enumerate() {
            let lead =
                if at == 0 { mark.clone() } else { Span::plain(" ".repeat(width(&mark.text))) };
            let goes_on = if at == last { "" } else { " \\" };
            self.line(&[lead, Span::plain(line), Span::faint(goes_on)]);
        }
    }

    fn clean(&self, text: &str) -> String {
        clean(text, self.style.unicode)
    }

    fn tinted(&self, Span { text, tint, .. }: &Span) -> String {
        let colour = |colour: AnsiColor| anstyle::Style::new().fg_color(Some(Color::Ansi(colour)));
        let style = match tint {
            _ if !self.style.colour || text.trim().is_empty() => return text.clone(),
            Tint::Plain => return text.clone(),
            Tint::Strong => anstyle::Style::new().effects(Effects::BOLD),
            Tint::Faint => anstyle::Style::new().effects(Effects::DIMMED),
            Tint::Good => colour(AnsiColor::Green),
            Tint::Caution => colour(AnsiColor::Yellow),
            Tint::Bad => colour(AnsiColor::Red).effects(Effects::BOLD),
            Tint::Accent => colour(AnsiColor::Cyan),
        };
        format!("{style}{text}{style:#}")
    }
}

fn labelled(label: &str) -> Span {
    Span::faint(format!("  {label:<width$}", width = LABEL - 2))
}
