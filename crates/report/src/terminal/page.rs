//! The page: the only way to the terminal. It cleans what it is given, cuts or wraps it to the
//! width, sets colours, and puts the mark of an emulated device beside every heading, so that no
//! section can forget to.

use anstyle::{AnsiColor, Color, Effects};
use tapstone_record::Emulated;

use super::Style;
use super::grid::Grid;
use super::text::{clean, truncate, width, wrap};

/// A narrower terminal cannot show a figure beside its name.
const NARROWEST: usize = 20;

/// Where the values of facts begin.
const LABEL: usize = 14;

/// What a piece of text means. Colour repeats it, and never says it alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tint {
    #[default]
    Plain,
    /// Headings and the figures that one came for.
    Strong,
    /// Labels, intervals, and rows without figures.
    Faint,
    /// As it should be.
    Good,
    /// To be looked at.
    Caution,
    /// Wrong.
    Bad,
    /// Drawings.
    Accent,
}

/// A piece of text of one tint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) tint: Tint,
}

impl Span {
    pub(super) fn new(text: impl Into<String>, tint: Tint) -> Self {
        Self { text: text.into(), tint }
    }

    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Tint::Plain)
    }

    pub(super) fn faint(text: impl Into<String>) -> Self {
        Self::new(text, Tint::Faint)
    }
}

/// Lines of text for one terminal.
pub(super) struct Page {
    style: Style,
    emulated: Option<String>,
    text: String,
}

impl Page {
    pub(super) fn new(style: Style, emulated: Option<&Emulated>) -> Self {
        let style = Style { width: style.width.max(NARROWEST), ..style };
        let emulated = emulated.map(|profile| format!("emulated: {}", profile.profile));
        Self { style, emulated, text: String::new() }
    }

    pub(super) const fn width(&self) -> usize {
        self.style.width
    }

    /// A heading, apart from what stands above it, with what qualifies all that follows.
    pub(super) fn heading(&mut self, title: &str, more: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let mut spans = vec![Span::new(title, Tint::Strong)];
        if !more.is_empty() {
            spans.push(Span::faint(format!(" · {more}")));
        }
        let Some(emulated) = self.emulated.clone() else { return self.line(&spans) };
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
    pub(super) fn line(&mut self, spans: &[Span]) {
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

    /// A label and what is said under it: `load        4 threads × 1 process`.
    pub(super) fn fact(&mut self, label: &str, value: Span) {
        let label = format!("  {label:<width$}", width = LABEL - 2);
        self.hanging(&Span::faint(label), &value);
    }

    /// A label, a drawing, and what it ranges over: `rate        ▇▇█▇▆▇  4,960 … 5,000/s`.
    pub(super) fn drawing(&mut self, label: &str, drawing: &str, range: &str, tint: Tint) {
        let label = format!("  {label:<width$}", width = LABEL - 2);
        let range = Span::faint(format!("  {range}"));
        self.line(&[Span::faint(label), Span::new(drawing, tint), range]);
    }

    pub(super) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// A sentence behind a mark, its further lines below its first word.
    pub(super) fn hanging(&mut self, mark: &Span, text: &Span) {
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
    pub(super) fn command(&mut self, mark: &Span, words: &[String]) {
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

    pub(super) fn grid(&mut self, grid: &Grid) {
        for line in grid.lay_out(self.style.width, |text| clean(text, self.style.unicode)) {
            self.line(&line);
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    fn clean(&self, text: &str) -> String {
        clean(text, self.style.unicode)
    }

    fn tinted(&self, Span { text, tint }: &Span) -> String {
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
