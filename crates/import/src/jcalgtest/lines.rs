//! The lines of a file, put together into a header and blocks. A line that cannot be read is
//! skipped, and its block with it: half a block would be a figure without its origin.

use ::csv::{ByteRecord, ReaderBuilder, Trim};

use super::block::{Block, Info, SignedNanos, Unfinished};
use super::header::Header;
use crate::SkippedLine;

/// A time beyond this is no time: eleven days, in milliseconds.
const LONGEST_MS: f64 = 1e9;

/// More characters than this are not shown of a line.
const SHOWN: usize = 60;

/// What a file holds.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) header: Header,
    pub(super) blocks: Vec<Block>,
    pub(super) skipped: Vec<SkippedLine>,
}

pub(super) fn read(content: &[u8]) -> Content {
    let mut reader = ReaderBuilder::new()
        .delimiter(b';')
        .has_headers(false)
        .flexible(true)
        // A lone quotation mark must not swallow the lines below it.
        .quoting(false)
        .trim(Trim::All)
        .from_reader(content);
    let mut state = LinesState::default();
    let mut line = ByteRecord::new();
    // From memory and without quotes nothing can fail; if it did, the rest would be lost loudly.
    while reader.read_byte_record(&mut line).is_ok_and(|more| more) {
        let number = line.position().map_or(0, |position| number(content, position));
        let cells: Vec<_> = line.iter().map(String::from_utf8_lossy).collect();
        let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
        state.take(number, &cells);
    }
    state.close();
    state.content
}

/// The number of a line, from 1. The reader's own is that of the first empty line above it.
fn number(content: &[u8], position: &::csv::Position) -> u64 {
    let start = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let above = content.get(start..).unwrap_or_default().iter();
    let ends = above.take_while(|byte| matches!(byte, b'\n' | b'\r'));
    position.line() + ends.filter(|byte| **byte == b'\n').count() as u64
}

#[derive(Default)]
struct LinesState {
    content: Content,
    open: Option<Unfinished>,
    /// From the first block on, unknown lines are broken ones.
    in_blocks: bool,
}

impl LinesState {
    fn take(&mut self, line: u64, cells: &[&str]) {
        let Some((key, values)) = cells.split_first() else { return };
        if cells.iter().all(|cell| cell.is_empty()) {
            return;
        }
        if *key == "method name:" {
            return self.begin(line, values);
        }
        if !self.in_blocks {
            return self.content.header.take(key, values.first().copied());
        }
        if let Err(why) = self.take_part(key, values) {
            if let Some(block) = &mut self.open {
                block.broken = true;
            }
            self.skip(line, why);
        }
    }

    fn begin(&mut self, line: u64, values: &[&str]) {
        self.close();
        self.in_blocks = true;
        match values.first() {
            Some(method) if !method.is_empty() => {
                let method = (*method).to_owned();
                self.open = Some(Unfinished { method, line, ..Unfinished::default() });
            }
            _ => self.skip(line, "a method without a name".to_owned()),
        }
    }

    fn take_part(&mut self, key: &str, values: &[&str]) -> Result<(), String> {
        let Some(block) = &mut self.open else {
            return outside(key, values);
        };
        match key {
            "measurement config:" => {}
            "baseline measurements (ms):" => block.baseline = times(values)?,
            "baseline stats (ms):" => {
                block.subtracted = Some(named(values, "avg:")?);
                block.marked |= values.contains(&"CHECK");
            }
            "operation raw measurements (ms):" => block.differences = times(values)?,
            "operation stats (ms/op):" => {
                block.mean = Some(named(values, "avg op:")?);
                block.marked |= values.contains(&"CHECK");
            }
            // The last line of a block, as a code is.
            "operation info:" => {
                block.info = Some(info(values)?);
                self.close();
            }
            code if is_code(code, values) && block.differences.is_empty() => {
                block.code = Some(code.to_owned());
                self.close();
            }
            _ => {
                outside(key, values)?;
                self.close();
            }
        }
        Ok(())
    }

    /// Ends the open block.
    fn close(&mut self) {
        let Some(block) = self.open.take() else { return };
        let line = block.line;
        let broken = block.broken;
        match block.finish() {
            // Its broken line has been told already.
            _ if broken => {}
            Ok(block) => self.content.blocks.push(block),
            Err(why) => self.skip(line, why),
        }
    }

    fn skip(&mut self, line: u64, why: String) {
        self.content.skipped.push(SkippedLine { line, why });
    }
}

/// A line between blocks: a heading, its end, or the totals.
fn outside(key: &str, values: &[&str]) -> Result<(), String> {
    let alone = values.iter().all(|value| value.is_empty());
    let plain = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-'));
    // Files over several data lengths have a section for each algorithm, with its constants:
    // `CIPHER - TYPE_DES LENGTH_DES ALG_DES_CBC_NOPAD - variable data - BEGIN`.
    let section = key.ends_with(" - BEGIN") || key.ends_with(" - END");
    if alone && (plain || section) || key.starts_with("Total ") {
        return Ok(());
    }
    let shown: String = key.chars().take(SHOWN).collect();
    Err(format!("unknown line \"{shown}\""))
}

/// `NO_SUCH_ALGORITHM`, `CryptoException_ILLEGAL_USE`, `UNKONWN_ERROR-card_has_return_value_6f00`:
/// one word, told from a heading by its underscore.
fn is_code(key: &str, values: &[&str]) -> bool {
    values.iter().all(|value| value.is_empty())
        && key.contains('_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

fn times(values: &[&str]) -> Result<Vec<SignedNanos>, String> {
    let times = values.iter().filter(|value| !value.is_empty());
    let times: Vec<_> = times.map(|value| milliseconds(value)).collect::<Result<_, _>>()?;
    if times.is_empty() { Err("no times".to_owned()) } else { Ok(times) }
}

/// The time that follows its name.
fn named(values: &[&str], name: &str) -> Result<SignedNanos, String> {
    milliseconds(after(values, name).ok_or_else(|| format!("no \"{name}\""))?)
}

fn after<'a>(values: &[&'a str], name: &str) -> Option<&'a str> {
    let place = values.iter().position(|value| *value == name)?;
    values.get(place + 1).copied()
}

/// A time in milliseconds with a decimal comma or point: `198,00`, `-0.20`.
fn milliseconds(text: &str) -> Result<SignedNanos, String> {
    let wrong = || {
        let shown: String = text.chars().take(SHOWN).collect();
        format!("\"{shown}\" is no time in milliseconds")
    };
    let value: f64 = text.replace(',', ".").parse().map_err(|_| wrong())?;
    if !value.is_finite() || value.abs() > LONGEST_MS {
        return Err(wrong());
    }
    Ok(SignedNanos((value * 1e6).round() as i64))
}

fn info(values: &[&str]) -> Result<Info, String> {
    let number = |name: &str| {
        let text = after(values, name).ok_or_else(|| format!("no \"{name}\""))?;
        text.parse::<i64>().map_err(|_| format!("\"{name}\" is no whole number"))
    };
    let iterations = u64::try_from(number("total iterations")?)
        .map_err(|_| "fewer than no iterations".to_owned())?;
    // The line's last figure: without it the line was cut off, perhaps in the midst of a number.
    number("total invocations")?;
    // -1: the method takes no data.
    let data_bytes = u64::try_from(number("data length")?).ok();
    Ok(Info { data_bytes, iterations })
}
