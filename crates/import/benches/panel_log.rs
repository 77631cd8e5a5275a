//! What a panel's log of a million lines costs: read, its stages timed, its moments held against the
//! map. Time, and the most memory of a process of its own.
//!
//! `cargo bench -p tapstone-import --bench panel_log`; run as a test it does the same with a thousand.

#![allow(clippy::unwrap_used, reason = "a bench")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

use tapstone_import::panel_log::{self, Map};
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_record::Tool;

const MAP: &str = "\
made_by = 'Example panel'
format = '%Y-%m-%d %H:%M:%S%.f'
[events]
time = 'Timestamp'
transaction = 'Badge'
event = 'Event'
[[stage]]
operation = 'door.pki-cak'
from = 'detected'
to = 'sent'
[[stage]]
operation = 'door.pki-cak.challenge'
from = 'read'
to = 'sent'
";

/// Its events, in the order in which each transaction has them.
const EVENTS: [&str; 4] = ["detected", "read", "open", "sent"];

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let (Some("read"), Some(folder)) = (words.get(1).map(String::as_str), words.get(2)) {
        return read(Path::new(folder));
    }
    let lines = if words.iter().any(|word| word == "--bench") { 1_000_000 } else { 1000 };
    let folder = tempfile::tempdir().unwrap();
    write_log(folder.path(), lines / EVENTS.len() as u64).unwrap();
    println!("a log of {lines} lines");
    for _ in 0..5 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        assert!(command.arg("read").arg(folder.path()).status().unwrap().success());
    }
}

/// So many transactions, ten seconds apart, of 3.0 to 3.4 s in tenths of a second.
fn write_log(folder: &Path, transactions: u64) -> std::io::Result<()> {
    fs::write(folder.join("map.toml"), MAP)?;
    let mut log = BufWriter::new(File::create(folder.join("door.csv"))?);
    writeln!(log, "Timestamp,Badge,Event")?;
    for tap in 0..transactions {
        for (event, tenths) in EVENTS.iter().zip([0, 14, 20, 30 + tap % 5]) {
            let tenths = tap * 100 + tenths;
            let s = tenths / 10;
            let day = 1 + s / 86_400;
            let hour = s / 3600 % 24;
            let minute = s / 60 % 60;
            writeln!(
                log,
                "2026-01-{day:02} {hour:02}:{minute:02}:{:02}.{},{},{event}",
                s % 60,
                tenths % 10,
                tap % 500
            )?;
        }
    }
    log.flush()
}

fn read(folder: &Path) {
    let begun = Monotonic.now();
    let map = Map::read(&folder.join("map.toml")).unwrap();
    let tool = Tool { name: "bench".to_owned(), version: "0".to_owned() };
    let log = panel_log::read(&folder.join("door.csv"), &map, tool).unwrap();
    let took = Monotonic.now() - begun;
    assert_eq!(log.record.results.len(), 2);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let memory = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    println!("{took}, {memory}");
}
