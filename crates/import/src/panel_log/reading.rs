//! From lines to times of stages, once through the log.

use std::collections::{HashMap, VecDeque};
use std::io::{BufReader, Read};
use std::path::Path;

use csv::{ByteRecord, Reader, ReaderBuilder};
use tapstone_measure::units::Nanos;

use super::bounded::{BoundedLines, MOST_MEBIBYTES};
use super::contradiction::FormatWitness;
use super::map::{DurationUnit, Events, Map, StageMap};
use super::moment::{Instant, MomentFormat, Moments};
use super::order::{self, Badges, OrderRule};
use super::stage::Stage;
use crate::{ImportError, SkippedLine};

/// Lines that are told of those that could not be read.
const TOLD: usize = 20;

/// Transactions that are open at the same time, at most: a log of one door has a few.
const MOST_OPEN: usize = 100_000;

/// A stage does not take longer than this: two events so far apart belong to different taps.
const LONGEST: Instant = 3_600_000_000_000;

const DAY: Instant = 86_400_000_000_000;

/// So many events, or lines with a transaction each, are held against the order that the map implies:
/// what is wrong with a map is wrong from the start.
const ORDERED: u64 = 20_000;
/// Transactions that are remembered for it.
const MOST_ORDERED: usize = 5_000;
/// A field with a quotation mark at both ends may have so many line breaks.
const MOST_LINES_OF_A_FIELD: u64 = 10;
/// Events that are told of a log that has not the map's.
const TOLD_EVENTS: usize = 10;

/// All that was read.
pub(super) struct Reading {
    pub(super) stages: Vec<Stage>,
    pub(super) moments: Moments,
    pub(super) lines: u64,
    pub(super) lines_skipped: u64,
    pub(super) skipped: Vec<SkippedLine>,
    pub(super) unfinished: u64,
    pub(super) other_events: u64,
    format: FormatWitness,
    order: Vec<OrderRule>,
    ordered: u64,
}

impl Reading {
    pub(super) fn open(source: impl Read, map: &Map, path: &Path) -> Result<Self, ImportError> {
        let source = BoundedLines::new(BufReader::with_capacity(1 << 20, source));
        let mut lines =
            ReaderBuilder::new().delimiter(map.delimiter as u8).flexible(true).from_reader(source);
        let header = lines.byte_headers().cloned();
        let header = header.map_err(|error| unreadable(path, 1, &lines, error))?;
        let mut reading = Self {
            stages: map.stage.iter().map(|stage| Stage::new(&stage.operation)).collect(),
            moments: Moments::default(),
            lines: 0,
            lines_skipped: 0,
            skipped: Vec::new(),
            unfinished: 0,
            other_events: 0,
            format: FormatWitness::new(&map.format),
            order: order::rules(map),
            ordered: 0,
        };
        let columns = Columns { header: &header, path };
        let mut layout = match &map.events {
            Some(events) => FieldLayout::Events(Box::new(ByEvent::new(events, map, &columns)?)),
            None => FieldLayout::Columns(ByColumn::all(map, &columns)?),
        };
        reading.all(&mut lines, &header, map, path, &mut layout)?;
        reading.contradiction(map, path, &layout).map_or(Ok(()), Err)?;
        if let FieldLayout::Events(events) = &layout {
            reading.unfinished += events.open.len() as u64;
        }
        Ok(reading)
    }

    /// What the log says against the map, worst first.
    fn contradiction(&self, map: &Map, path: &Path, layout: &FieldLayout) -> Option<ImportError> {
        let badges = match layout {
            FieldLayout::Events(_) => Badges::MayReturn,
            FieldLayout::Columns(_) => Badges::OncePerLine,
        };
        let missing = || match layout {
            FieldLayout::Events(events) if self.lines > 0 => events.missing(map, path),
            FieldLayout::Events(_) | FieldLayout::Columns(_) => None,
        };
        let format = self.format.contradiction(&map.format, path);
        let order = || self.order.iter().find_map(|rule| rule.violation(path, badges));
        format.or_else(missing).or_else(order)
    }

    fn all(
        &mut self,
        lines: &mut Reader<BoundedLines<impl Read>>,
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
                Err(error) => return Err(unreadable(path, self.lines + 2, lines, error)),
            }
            lines.get_ref().begin_line();
            let number = line.position().map_or(0, csv::Position::line);
            let more = match lines.position().line().saturating_sub(number + 1) {
                // Blank lines before it.
                more if more > 0 && !line.as_slice().contains(&b'\n') => 0,
                more => more,
            };
            self.lines += 1;
            let outcome = if more > MOST_LINES_OF_A_FIELD || more > 0 && line.len() != header.len()
            {
                self.lines += more;
                self.lines_skipped += more;
                Err(format!("it goes on to line {}: a quotation mark is not closed", number + more))
            } else if line.len() == header.len() {
                match layout {
                    FieldLayout::Events(events) => events.line(number, &line, &map.format, self),
                    FieldLayout::Columns(columns) => {
                        self.columns(number, &line, &map.format, columns)
                    }
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

    fn moment(
        &mut self,
        number: u64,
        format: &MomentFormat,
        field: &[u8],
    ) -> Result<Instant, String> {
        let text = std::str::from_utf8(field).map_err(|_| not_a_moment(field))?;
        let Some(moment) = format.read(text) else {
            self.format.unreadable(number, text);
            return Err(not_a_moment(field));
        };
        self.format.reads(number, text, &moment);
        self.moments.add(&moment);
        Ok(moment.at)
    }

    /// A line of a log that has one for each transaction. Nothing is counted of a broken one.
    fn columns(
        &mut self,
        number: u64,
        line: &ByteRecord,
        format: &MomentFormat,
        columns: &[ByColumn],
    ) -> Result<(), String> {
        let mut times = Vec::with_capacity(columns.len());
        // Which columns were when: most maps name a few.
        let mut moments: Vec<(usize, Instant)> = Vec::new();
        let mut broken = None;
        for column in columns {
            let field = |at: usize| line.get(at).unwrap_or_default();
            times.push(match column {
                // A stage that this transaction did not reach.
                ByColumn::Between { from, to }
                    if field(from.place).is_empty() || field(to.place).is_empty() =>
                {
                    None
                }
                ByColumn::Length { at, .. } if field(*at).is_empty() => None,
                ByColumn::Between { from, to } => {
                    let begins = self.moment(number, format, field(from.place))?;
                    let ends = self.moment(number, format, field(to.place))?;
                    moments.extend([(from.place, begins), (to.place, ends)]);
                    length(begins, ends).map_err(|why| broken = Some(why)).ok()
                }
                ByColumn::Length { at, unit } => Some(self::number(field(*at), *unit)?),
            });
        }
        self.hold_columns_in_order(columns, &moments);
        if let Some(why) = broken {
            return Err(why);
        }
        for (stage, time) in self.stages.iter_mut().zip(times) {
            time.into_iter().for_each(|time| stage.add(time));
        }
        Ok(())
    }
}

impl Reading {
    /// Holds the moments of one line against the order that the map implies. Without a date, what
    /// is half a day apart has passed midnight.
    fn hold_columns_in_order(&mut self, columns: &[ByColumn], moments: &[(usize, Instant)]) {
        if self.ordered >= ORDERED {
            return;
        }
        self.ordered += 1;
        let at = |name: &str| {
            let place = columns.iter().find_map(|column| column.place_of(name))?;
            moments.iter().find(|(column, _)| *column == place).map(|(_, moment)| *moment)
        };
        for rule in &mut self.order {
            if let (Some(first), Some(second)) = (at(&rule.first), at(&rule.second))
                && (second - first).abs() < DAY / 2
            {
                rule.add(second - first);
            }
        }
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

fn unreadable(
    path: &Path,
    line: u64,
    lines: &Reader<BoundedLines<impl Read>>,
    error: csv::Error,
) -> ImportError {
    if lines.get_ref().is_too_long() {
        return ImportError::LongLine { path: path.into(), line, mebibytes: MOST_MEBIBYTES };
    }
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
        fields.position(|field| field == name).ok_or_else(|| {
            self.something_else().unwrap_or_else(|| ImportError::NoColumn {
                path: self.path.into(),
                column: name.to_owned(),
                there: self.header.iter().map(clean).collect::<Vec<_>>().join(", "),
            })
        })
    }

    /// What a file without the map's columns is, if its first line tells that it is no text.
    fn something_else(&self) -> Option<ImportError> {
        let first = self.header.get(0).unwrap_or_default();
        let (what, hint) = match first {
            [] if self.header.len() <= 1 => ("empty", "export the panel's log once more"),
            [0x1F, 0x8B, ..] => ("compressed by gzip", "gunzip it first"),
            [b'P', b'K', 3, 4, ..] => ("a ZIP file or a spreadsheet", "export it as CSV"),
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => {
                ("UTF-16", "iconv -f UTF-16 -t UTF-8 makes it UTF-8")
            }
            _ if self.header.iter().any(|field| field.contains(&0)) => {
                ("binary", "export the panel's log as CSV")
            }
            _ => return None,
        };
        Some(ImportError::NotText { path: self.path.into(), what, hint })
    }
}

/// A stage of a log with a line for each transaction.
enum ByColumn {
    Between { from: NamedColumn, to: NamedColumn },
    Length { at: usize, unit: DurationUnit },
}

/// A column by its place and its name.
#[derive(Clone)]
struct NamedColumn {
    place: usize,
    name: String,
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
                    let named = |name: &String| {
                        Ok(NamedColumn { place: columns.find(name)?, name: name.clone() })
                    };
                    Self::Between { from: named(from)?, to: named(to)? }
                }
                _ => continue,
            });
        }
        Ok(all)
    }

    /// Where the column of this name is, if the stage is made of it.
    fn place_of(&self, name: &str) -> Option<usize> {
        let Self::Between { from, to } = self else { return None };
        [from, to].into_iter().find(|column| column.name == name).map(|column| column.place)
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
    /// How often each known event came.
    seen: Vec<u64>,
    /// The first other events, by their names.
    others: Vec<Vec<u8>>,
    /// Which of the known events each rule of order is about.
    rules: Vec<(Option<usize>, Option<usize>)>,
    /// When the known events of a transaction were last, for those rules.
    ordered: HashMap<Vec<u8>, Vec<Option<Instant>>>,
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
        let place = |name: &str| known.get(name.as_bytes()).copied();
        let rules = order::rules(map)
            .iter()
            .map(|rule| (place(&rule.first), place(&rule.second)))
            .collect();
        Ok(Self {
            seen: vec![0; known.len()],
            others: Vec::new(),
            rules,
            ordered: HashMap::new(),
            time: columns.find(&events.time)?,
            transaction: columns.find(&events.transaction)?,
            event: columns.find(&events.event)?,
            known,
            stages,
            open: HashMap::new(),
            order: VecDeque::new(),
        })
    }

    /// An event of the map that the log has not.
    fn missing(&self, map: &Map, path: &Path) -> Option<ImportError> {
        let is_missing = |event: &str| {
            self.known.get(event.as_bytes()).is_some_and(|place| self.seen[*place] == 0)
        };
        let named = |stage: &StageMap| {
            let events = [stage.from.clone(), stage.to.clone()].into_iter().flatten();
            let mut missing = events.filter(|event| is_missing(event));
            missing.next().map(|event| (event, stage.operation.clone()))
        };
        let (event, stage) = map.stage.iter().find_map(named)?;
        let present = self.known.iter().filter(|(_, place)| self.seen[**place] > 0);
        let mut there: Vec<String> = present
            .map(|(name, _)| name)
            .chain(&self.others)
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect();
        there.sort();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        Some(ImportError::NoSuchEvent { path: path.into(), event, stage, there })
    }

    /// Holds an event against those of its transaction that came before it.
    fn hold_in_order(
        &mut self,
        transaction: &[u8],
        event: usize,
        at: Instant,
        reading: &mut Reading,
    ) {
        if reading.ordered >= ORDERED {
            self.ordered = HashMap::new();
            return;
        }
        reading.ordered += 1;
        if self.ordered.len() >= MOST_ORDERED && !self.ordered.contains_key(transaction) {
            self.ordered.clear();
        }
        let events = self.known.len();
        let seen = self.ordered.entry(transaction.to_vec()).or_insert_with(|| vec![None; events]);
        for ((first, second), rule) in self.rules.iter().zip(&mut reading.order) {
            let before =
                |place: &Option<usize>| place.and_then(|place| seen[place]).map(|then| at - then);
            let between = if *second == Some(event) {
                before(first)
            } else if *first == Some(event) {
                before(second).map(|time| -time)
            } else {
                None
            };
            // What is further apart belongs to different taps.
            if let Some(between) = between.filter(|between| between.abs() <= LONGEST) {
                rule.add(between);
            }
        }
        seen[event] = Some(at);
    }

    fn line(
        &mut self,
        number: u64,
        line: &ByteRecord,
        format: &MomentFormat,
        reading: &mut Reading,
    ) -> Result<(), String> {
        let field = |at: usize| line.get(at).unwrap_or_default().trim_ascii();
        let at = reading.moment(number, format, field(self.time))?;
        let Some(&event) = self.known.get(field(self.event)) else {
            reading.other_events += 1;
            let name = field(self.event);
            if self.others.len() < TOLD_EVENTS && !self.others.iter().any(|other| other == name) {
                self.others.push(name.to_vec());
            }
            return Ok(());
        };
        self.seen[event] += 1;
        let transaction = field(self.transaction);
        if transaction.is_empty() {
            return Err("the transaction is missing".into());
        }
        self.hold_in_order(transaction, event, at, reading);
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
