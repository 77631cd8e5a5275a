//! From lines to times of stages, once through the log.

use std::collections::{HashMap, VecDeque};
use std::io::{BufReader, Read};
use std::path::Path;

use csv::{ByteRecord, Reader, ReaderBuilder};
use tapstone_measure::units::Nanos;

use super::map::{DurationUnit, Events, Map};
use super::moment::{Instant, MomentFormat, Moments};
use super::stage::Stage;
use crate::{ImportError, SkippedLine};

/// Lines that are told of those that could not be read.
const TOLD: usize = 20;

/// Transactions that are open at the same time, at most: a log of one door has a few.
const MOST_OPEN: usize = 100_000;

/// A stage does not take longer than this: two events so far apart belong to different taps.
const LONGEST: Instant = 3_600_000_000_000;

const DAY: Instant = 86_400_000_000_000;

/// All that was read.
pub(super) struct Reading {
    pub(super) stages: Vec<Stage>,
    pub(super) moments: Moments,
    pub(super) lines: u64,
    pub(super) lines_skipped: u64,
    pub(super) skipped: Vec<SkippedLine>,
    pub(super) unfinished: u64,
    pub(super) other_events: u64,
}

impl Reading {
    pub(super) fn open(source: impl Read, map: &Map, path: &Path) -> Result<Self, ImportError> {
        let mut lines = ReaderBuilder::new()
            .delimiter(map.delimiter as u8)
            .flexible(true)
            .from_reader(BufReader::with_capacity(1 << 20, source));
        let header = lines.byte_headers().map_err(|error| unreadable(path, error))?.clone();
        let mut reading = Self {
            stages: map.stage.iter().map(|stage| Stage::new(&stage.operation)).collect(),
            moments: Moments::default(),
            lines: 0,
            lines_skipped: 0,
            skipped: Vec::new(),
            unfinished: 0,
            other_events: 0,
        };
        let columns = Columns { header: &header, path };
        let mut layout = match &map.events {
            Some(events) => FieldLayout::Events(Box::new(ByEvent::new(events, map, &columns)?)),
            None => FieldLayout::Columns(ByColumn::all(map, &columns)?),
        };
        reading.all(&mut lines, &header, map, path, &mut layout)?;
        if let FieldLayout::Events(events) = &layout {
            reading.unfinished += events.open.len() as u64;
        }
        Ok(reading)
    }

    fn all(
        &mut self,
        lines: &mut Reader<impl Read>,
        header: &ByteRecord,
        map: &Map,
        path: &Path,
        layout: &mut FieldLayout,
    ) -> Result<(), ImportError> {
        let mut line = ByteRecord::new();
        loop {
            match lines.read_byte_record(&mut line) {
                Ok(false) => return Ok(()),
                Ok(true) => {}
                Err(error) => return Err(unreadable(path, error)),
            }
            self.lines += 1;
            let number = line.position().map_or(0, csv::Position::line);
            let outcome = if line.len() == header.len() {
                match layout {
                    FieldLayout::Events(events) => events.line(&line, &map.format, self),
                    FieldLayout::Columns(columns) => self.columns(&line, &map.format, columns),
                }
            } else {
                Err(format!("{} fields in the place of {}", line.len(), header.len()))
            };
            if let Err(why) = outcome {
                self.lines_skipped += 1;
                if self.skipped.len() < TOLD {
                    self.skipped.push(SkippedLine { line: number, why });
                }
            }
        }
    }

    fn moment(&mut self, format: &MomentFormat, field: &[u8]) -> Result<Instant, String> {
        let text = std::str::from_utf8(field).map_err(|_| not_a_moment(field))?;
        let moment = format.read(text).ok_or_else(|| not_a_moment(field))?;
        self.moments.add(&moment);
        Ok(moment.at)
    }

    /// A line of a log that has one for each transaction. Nothing is counted of a broken one.
    fn columns(
        &mut self,
        line: &ByteRecord,
        format: &MomentFormat,
        columns: &[ByColumn],
    ) -> Result<(), String> {
        let mut times = Vec::with_capacity(columns.len());
        for column in columns {
            let field = |at: usize| line.get(at).unwrap_or_default();
            times.push(match *column {
                // A stage that this transaction did not reach.
                ByColumn::Between { from, to }
                    if field(from).is_empty() || field(to).is_empty() =>
                {
                    None
                }
                ByColumn::Length { at, .. } if field(at).is_empty() => None,
                ByColumn::Between { from, to } => {
                    let from = self.moment(format, field(from))?;
                    Some(length(from, self.moment(format, field(to))?)?)
                }
                ByColumn::Length { at, unit } => Some(number(field(at), unit)?),
            });
        }
        for (stage, time) in self.stages.iter_mut().zip(times) {
            time.into_iter().for_each(|time| stage.add(time));
        }
        Ok(())
    }
}

/// From one moment to the next. Without a date, a clock that starts anew has passed midnight.
fn length(from: Instant, to: Instant) -> Result<Nanos, String> {
    let mut length = to - from;
    if length < 0 && from < DAY && length + DAY <= LONGEST {
        length += DAY;
    }
    match length {
        length if length < 0 => Err("it ends before it starts".into()),
        length if length > LONGEST => Err("it takes more than an hour".into()),
        length => Ok(Nanos(length as u64)),
    }
}

fn number(field: &[u8], unit: DurationUnit) -> Result<Nanos, String> {
    let text = String::from_utf8_lossy(field);
    let nanos = text.trim().replace(',', ".").parse::<f64>().map(|number| number * unit.nanos());
    match nanos {
        Ok(nanos) if (0.0..=LONGEST as f64).contains(&nanos) => Ok(Nanos(nanos.round() as u64)),
        _ => Err(format!("{text:?} is no length of time")),
    }
}

fn not_a_moment(field: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(field).into_owned();
    if text.chars().count() > 40 {
        text = text.chars().take(40).chain(['…']).collect();
    }
    format!("{text:?} is no moment in the map's format")
}

fn unreadable(path: &Path, error: csv::Error) -> ImportError {
    let source = match error.into_kind() {
        csv::ErrorKind::Io(source) => source,
        other => std::io::Error::other(format!("{other:?}")),
    };
    ImportError::Read { path: path.into(), source }
}

/// Which field is which.
enum FieldLayout {
    Events(Box<ByEvent>),
    Columns(Vec<ByColumn>),
}

/// The header of the log.
struct Columns<'a> {
    header: &'a ByteRecord,
    path: &'a Path,
}

impl Columns<'_> {
    fn find(&self, name: &str) -> Result<usize, ImportError> {
        // A byte order mark belongs to the file, not to its first column.
        let clean = |field: &[u8]| {
            let text = String::from_utf8_lossy(field);
            text.trim_start_matches('\u{feff}').trim().to_owned()
        };
        let mut fields = self.header.iter().map(clean);
        fields.position(|field| field == name).ok_or_else(|| ImportError::NoColumn {
            path: self.path.into(),
            column: name.to_owned(),
            there: self.header.iter().map(clean).collect::<Vec<_>>().join(", "),
        })
    }
}

/// A stage of a log with a line for each transaction.
enum ByColumn {
    Between { from: usize, to: usize },
    Length { at: usize, unit: DurationUnit },
}

impl ByColumn {
    fn all(map: &Map, columns: &Columns<'_>) -> Result<Vec<Self>, ImportError> {
        let mut all = Vec::new();
        for stage in &map.stage {
            all.push(match (&stage.from, &stage.to, &stage.length, stage.unit) {
                (_, _, Some(length), Some(unit)) => {
                    Self::Length { at: columns.find(length)?, unit }
                }
                (Some(from), Some(to), ..) => {
                    Self::Between { from: columns.find(from)?, to: columns.find(to)? }
                }
                _ => continue,
            });
        }
        Ok(all)
    }
}

/// A log with a line for each event.
struct ByEvent {
    time: usize,
    transaction: usize,
    event: usize,
    /// The events that stages begin or end with, by their names.
    known: HashMap<Vec<u8>, usize>,
    /// From which event to which, for each stage.
    stages: Vec<(usize, usize)>,
    /// When each known event of an open transaction was.
    open: HashMap<Vec<u8>, Vec<Option<Instant>>>,
    /// In the order in which they were opened.
    order: VecDeque<Vec<u8>>,
}

impl ByEvent {
    fn new(events: &Events, map: &Map, columns: &Columns<'_>) -> Result<Self, ImportError> {
        let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut index = |name: &Option<String>| {
            let name = name.clone().unwrap_or_default().into_bytes();
            let next = known.len();
            *known.entry(name).or_insert(next)
        };
        let stages = map.stage.iter().map(|it| (index(&it.from), index(&it.to))).collect();
        Ok(Self {
            time: columns.find(&events.time)?,
            transaction: columns.find(&events.transaction)?,
            event: columns.find(&events.event)?,
            known,
            stages,
            open: HashMap::new(),
            order: VecDeque::new(),
        })
    }

    fn line(
        &mut self,
        line: &ByteRecord,
        format: &MomentFormat,
        reading: &mut Reading,
    ) -> Result<(), String> {
        let field = |at: usize| line.get(at).unwrap_or_default().trim_ascii();
        let at = reading.moment(format, field(self.time))?;
        let Some(&event) = self.known.get(field(self.event)) else {
            reading.other_events += 1;
            return Ok(());
        };
        let transaction = field(self.transaction);
        if transaction.is_empty() {
            return Err("the transaction is missing".into());
        }
        if !self.open.contains_key(transaction) {
            self.make_room(reading);
            self.open.insert(transaction.to_vec(), vec![None; self.known.len()]);
            self.order.push_back(transaction.to_vec());
        }
        let Some(seen) = self.open.get_mut(transaction) else { return Ok(()) };
        // All stages that end here, or none: a broken line counts nowhere.
        let ending = || self.stages.iter().enumerate().filter(|(_, (_, to))| *to == event);
        let mut times = Vec::new();
        for (stage, (from, _)) in ending() {
            if let Some(from) = seen[*from] {
                times.push((stage, length(from, at)?));
            }
        }
        times.into_iter().for_each(|(stage, time)| reading.stages[stage].add(time));
        // A stage begins anew with its first event: the same badge comes again.
        seen[event] = Some(at);
        let begins = |event: usize| self.stages.iter().any(|(from, _)| *from == event);
        if !begins(event) && self.stages.iter().all(|(_, to)| seen[*to].is_some()) {
            self.open.remove(transaction);
        }
        Ok(())
    }

    /// Forgets the oldest transactions, which will not end any more.
    fn make_room(&mut self, reading: &mut Reading) {
        while self.open.len() >= MOST_OPEN {
            let Some(oldest) = self.order.pop_front() else { return };
            reading.unfinished += u64::from(self.open.remove(&oldest).is_some());
        }
        // What has ended is still in the order.
        if self.order.len() > 2 * MOST_OPEN {
            let open = &self.open;
            self.order.retain(|transaction| open.contains_key(transaction));
        }
    }
}
