//! `tapstone report`: records as a page, or on the terminal.

mod timeline;

use std::path::{Path, PathBuf};

use clap::Args;
use tapstone_compare::NamedRecord;

use tapstone_files::Access;
use tapstone_live::serve::LiveServer;
use tapstone_record::{Record, TargetKind};
use tapstone_report::html;
use tapstone_workload::{WorkloadLimits, read_workload};

use self::timeline::Found;
use crate::compare::tool;
use crate::exit::Exit;
use crate::interrupt;
use crate::output::{self, Format};
use crate::print::{out, outln, say};
use crate::workload;

/// Show records: as one page for a browser, on the terminal, or for other programs.
///
/// The page is one file that asks nothing of any server, readable without JavaScript and printable.
/// A card that others have published figures of is shown beside them; of a traced program whose
/// events were kept (`tapstone trace --events`), the page has a timeline.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The records, or workloads that `tapstone trace --workload` kept, in the order in which they are shown
    #[arg(required_unless_present = "serve", value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// Show the run that tells on this socket how it goes (`--live SOCKET`), on a page
    /// of this machine alone
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["records", "output", "events", "format", "verbose"])]
    serve: Option<PathBuf>,
    /// Write a page to this file; without it, the records are shown here
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Events that `tapstone trace --events` kept, where the record does not say or they were moved
    #[arg(long, value_name = "FILE", requires = "output")]
    events: Option<PathBuf>,
    /// What goes to standard output; csv and json show one record
    #[arg(long, value_enum, default_value_t = Format::Text, conflicts_with = "output")]
    format: Format,
    /// On the terminal, show each case at length
    #[arg(long, short, conflicts_with = "output")]
    verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  tapstone report run.json
  tapstone report run.json --output report.html
  tapstone report token.json card.json trace.json --output report.html
  tapstone report run.json --format markdown
  tapstone report run.json --format junit > results.xml
  tapstone report --serve live          beside: tapstone token --live live …

Exit codes: 0 done; 2 could not read a record or write the page.";

/// A record and what it is called.
struct Opened {
    name: String,
    record: Record,
    timeline: Option<html::TimelineChart>,
    note: Option<String>,
    /// What repeats it, instead of the record's own command.
    again: Option<Vec<String>>,
    /// What stands before the record on a terminal.
    preface: Option<String>,
}

impl Opened {
    fn entry(&self) -> html::PageEntry<'_> {
        let Self { name, record, timeline, note, again, .. } = self;
        html::PageEntry {
            name,
            record,
            timeline: timeline.as_ref(),
            note: note.as_deref(),
            again: again.as_deref(),
        }
    }
}

pub(crate) fn run_report(arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(socket) = &arguments.serve {
        return serve(socket);
    }
    interrupt::finish_files_first()?;
    if let Some(path) = &arguments.output {
        output::check(path)?;
    }
    let opened = open_all(&arguments.records, arguments.events.as_deref())?;
    let Some(path) = &arguments.output else {
        print_records(&opened, arguments)?;
        return Ok(Exit::Done);
    };
    write_html(path, &page(opened))?;
    say!("{}", path.display());
    Ok(Exit::Done)
}

/// Shows a run that goes on, and then its record, until somebody ends this.
fn serve(socket: &Path) -> anyhow::Result<Exit> {
    let ends = interrupt::flag_on_signals()?;
    let server = LiveServer::start(socket)?;
    outln!("{}", server.url());
    say!("open this in a browser of this machine; Ctrl-C ends it");
    let name = socket.display().to_string();
    server.serve(&|record| page_of_run(&name, record), &ends);
    Ok(Exit::Done)
}

fn page_of_run(name: &str, record: &str) -> Result<String, String> {
    let record = Record::from_json(record, name).map_err(|why| why.to_string())?;
    let name = name.to_owned();
    Ok(page(vec![Opened { name, record, timeline: None, note: None, again: None, preface: None }]))
}

/// A record, and the command that repeats it where its own names what is gone by now.
pub(crate) struct Repeatable {
    pub(crate) record: PathBuf,
    pub(crate) again: Vec<String>,
}

/// Writes the page of these records.
pub(crate) fn write_page(records: &[Repeatable], page: &Path) -> anyhow::Result<()> {
    let open =
        |of: &Repeatable| Ok(Opened { again: Some(of.again.clone()), ..open(&of.record, None)? });
    let opened = records.iter().map(open).collect::<anyhow::Result<Vec<_>>>()?;
    write_html(page, &self::page(opened))
}

fn write_html(path: &Path, page: &str) -> anyhow::Result<()> {
    output::write_file(path, Access::Everybody, |to| to.write_all(page.as_bytes()))
}

fn open_all(records: &[PathBuf], events: Option<&Path>) -> anyhow::Result<Vec<Opened>> {
    records.iter().map(|path| open(path, events)).collect()
}

/// The page of records, each followed by what can be said of it beside published figures.
fn page(opened: Vec<Opened>) -> String {
    let mut all = Vec::new();
    for one in opened {
        let beside = beside_published(&one);
        all.push(one);
        all.extend(beside);
    }
    let entries = all.iter().map(Opened::entry).collect::<Vec<_>>();
    html::render(&entries)
}

fn print_records(opened: &[Opened], arguments: &Arguments) -> anyhow::Result<()> {
    let format = arguments.format;
    anyhow::ensure!(
        opened.len() == 1 || !matches!(format, Format::Csv | Format::Json),
        "--format csv and json show one record, not {}\nhint: call it for each, or use another format",
        opened.len()
    );
    if format == Format::Text {
        for preface in opened.iter().filter_map(|one| one.preface.as_ref()) {
            outln!("{preface}");
        }
    }
    let records: Vec<&Record> = opened.iter().map(|one| &one.record).collect();
    out!("{}", format.render(&records, &output::style(arguments.verbose))?);
    Ok(())
}

fn open(path: &Path, events: Option<&Path>) -> anyhow::Result<Opened> {
    let name = path.display().to_string();
    if workload::is_workload(path) {
        let workload = read_workload(path, WorkloadLimits::default())?;
        let preface = Some(workload::workload_text(&name, &workload));
        let record = workload::workload_record(&workload);
        return Ok(Opened { name, record, timeline: None, note: None, again: None, preface });
    }
    let record = Record::read(path)?;
    let (timeline, note) = match timeline::find_timeline(&record, path, events)? {
        Found::Nothing => (None, None),
        Found::Gone(note) => (None, Some(note)),
        Found::Events(timeline) => (Some(timeline), None),
    };
    Ok(Opened { name, record, timeline, note, again: None, preface: None })
}

/// A measured card among those that others have published.
fn beside_published(one: &Opened) -> Vec<Opened> {
    if one.record.target.kind != TargetKind::Card || one.record.comparison.is_some() {
        return Vec::new();
    }
    let compared = |name: &str| {
        let reference = tapstone_reference::load(name).ok()?;
        let named = NamedRecord { record: &one.record, path: &one.name, sha256: "" };
        // A reference of other things is no error here: nobody asked for it.
        let comparison =
            tapstone_compare::compare_with_reference(&reference, None, named, None).ok()?;
        let environment = one.record.environment.clone();
        let target = one.record.target.clone();
        // Nothing was measured since.
        let began = one.record.started_at;
        let mut record = Record::new(tool(), began, environment, target);
        record.comparison = Some(comparison);
        let name = format!("{} beside {name}", one.name);
        Some(Opened {
            name,
            record,
            timeline: None,
            note: None,
            again: one.again.clone(),
            preface: None,
        })
    };
    tapstone_reference::names().into_iter().filter_map(compared).collect()
}
