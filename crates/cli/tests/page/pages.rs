//! A folder of pages, each with the records that it was made from, as the browser's checks want it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tapstone_measure::units::Nanos;
use tapstone_record::Record;
use tapstone_report::html::{
    self, PageEntry, TimelineChart, TimelineLane, TimelineLayer, TimelineSpan,
};
use tapstone_testing::private_environment;
use tempfile::TempDir;

use crate::hostile;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/examples");

/// So many spans a page keeps.
const SPANS: u64 = 20_000;

/// See the module's text.
pub(crate) struct Pages {
    folder: TempDir,
    count: usize,
}

impl Pages {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), count: 0 }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// A page of each kind of record.
    pub(crate) fn of_examples(&mut self) {
        for (name, text) in examples() {
            fs::write(self.records(&name).join("1.json"), text).unwrap();
            self.report(&name);
        }
    }

    /// One page of all kinds, with markup, escape sequences and marks of direction wherever there is
    /// text, and in the names of the files.
    pub(crate) fn of_hostile_records(&mut self) {
        let folder = self.records("hostile");
        for (place, (_, text)) in examples().iter().enumerate() {
            let record = hostile::of(text);
            let name = format!("{place}{}.json", hostile::TEXT.replace('/', "\\"));
            fs::write(folder.join(name), record.to_json().unwrap()).unwrap();
        }
        self.report("hostile");
    }

    /// A rate over time, and operations in their order, both of which go up and down.
    pub(crate) fn of_courses(&mut self) {
        let wave = |place: u64| (place * place) % 37;
        let slice = |place: u64| {
            json!({
                "start_ns": place * 250_000_000, "end_ns": (place + 1) * 250_000_000,
                "completed": 2_000 + 10 * wave(place), "failed": 0, "p50_ns": null, "p99_ns": null,
            })
        };
        let values = (0..240).map(|place| 80_000_000 + 5_000_000 * wave(place)).collect::<Value>();
        self.of_changed("token", "series", (0..100).map(slice).collect());
        self.of_changed("card", "latencies_ns", values);
    }

    /// A page of an example with another field of its first result.
    fn of_changed(&mut self, example: &str, field: &str, value: Value) {
        let (_, text) = examples().into_iter().find(|(name, _)| name == example).unwrap();
        let mut record: Value = serde_json::from_str(&text).unwrap();
        let known = record["results"][0].get_mut(field).expect("a field that the example has");
        *known = value;
        let name = format!("course-of-{example}");
        fs::write(self.records(&name).join("1.json"), record.to_string()).unwrap();
        self.report(&name);
    }

    /// As many calls as a page keeps, with names that try something.
    pub(crate) fn of_a_timeline(&mut self) {
        let (_, text) = examples().into_iter().find(|(name, _)| name == "trace").unwrap();
        let record = Record::from_json(&text, "trace.json").unwrap();
        fs::write(self.records("timeline").join("1.json"), &text).unwrap();
        let timeline = timeline();
        let entry = PageEntry {
            name: "trace.json",
            record: &record,
            timeline: Some(&timeline),
            note: None,
            again: None,
        };
        self.write("timeline", &html::render(&[entry]));
    }

    /// What no page of Tapstone does: a page without a policy that asks for a picture, runs a
    /// script, is too wide and repeats an id.
    pub(crate) fn of_a_page_that_misbehaves(&mut self) {
        self.records("wrong");
        self.write(
            "wrong",
            "<!DOCTYPE html><html lang=en><title>Wrong</title><main><p id=a>a<p id=a>b\
             <img src=http://127.0.0.1:9/ onerror=alert(1)>\
             <pre>a very wide line without end: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa</pre>",
        );
    }

    fn records(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        fs::create_dir(&folder).unwrap();
        folder
    }

    /// The page of all records in a folder, by `tapstone report`.
    fn report(&mut self, name: &str) {
        let folder = self.folder.path().join(name);
        let mut records: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        records.sort();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
        private_environment(&mut command);
        command.current_dir(&folder).arg("report").args(records).arg("--output");
        let output = command.arg(folder.with_extension("html")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        self.count += 1;
    }

    fn write(&mut self, name: &str, page: &str) {
        fs::write(self.folder.path().join(format!("{name}.html")), page).unwrap();
        self.count += 1;
    }
}

/// The records that the format's own tests know, by their kinds.
fn examples() -> Vec<(String, String)> {
    let mut all: Vec<_> = fs::read_dir(EXAMPLES)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    all.sort();
    assert!(all.len() >= 6, "{all:?}");
    all
}

/// Calls in calls on two threads, a tenth of them too short to be seen where nothing is zoomed.
fn timeline() -> TimelineChart {
    let names = [hostile::TEXT, "C_Sign", "SCardTransmit: GET DATA, Discovery Object"];
    let layers = [TimelineLayer::Pkcs11, TimelineLayer::Pcsc, TimelineLayer::Libc];
    let wall = Nanos::from_secs(2);
    let each = 2_000_000_000 / (SPANS / 2);
    let span = |number: u64| {
        let depth = number % 3;
        let length = if number.is_multiple_of(10) { 40 } else { each * (3 - depth) - each / 2 };
        TimelineSpan {
            name: names[depth as usize].into(),
            start: Nanos(number * each),
            length: Nanos(length),
            depth: depth as u32,
            layer: layers[depth as usize],
        }
    };
    let lane =
        |name: &str| TimelineLane { name: name.into(), spans: (0..SPANS / 2).map(span).collect() };
    let mut lanes = vec![lane("program 1, thread 1"), lane(hostile::TEXT)];
    // One that can be seen and hovered over from the start.
    let long = TimelineSpan { length: Nanos(1_000_000_000), depth: 3, ..span(100) };
    lanes[0].spans[100] = long;
    TimelineChart { wall, lanes, left_out: 1_234 }
}
