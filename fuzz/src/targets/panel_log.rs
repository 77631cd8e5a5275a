//! The log of an access-control panel, by one of three maps.

use std::path::Path;
use std::sync::OnceLock;

use tapstone_import::panel_log::{self, Map};

use super::jcalgtest::is_sound;
use super::tool;
use crate::FuzzTarget;
use crate::structure::Structure;

/// The first byte chooses the map. What is made of a log is a record that can be written, without
/// negative times; no more lines are skipped than there are.
pub const TARGET: FuzzTarget = FuzzTarget {
    name: "panel-log",
    reads: "panel logs",
    structure: Structure::Lines,
    longest: 8192,
    check,
};

const MAPS: [&str; 3] = [
    include_str!("../../../docs/examples/map.toml"),
    include_str!("../data/columns.toml"),
    include_str!("../data/lengths.toml"),
];

fn check(input: &[u8]) {
    static READ: OnceLock<Vec<Map>> = OnceLock::new();
    let maps = READ.get_or_init(|| {
        let read = |text: &&str| Map::parse(text, Path::new("map.toml"));
        MAPS.iter().map(read).collect::<Result<_, _>>().expect("the maps are good")
    });
    let Some((first, log)) = input.split_first() else { return };
    let map = &maps[usize::from(*first) % maps.len()];
    let Ok(read) = panel_log::from_reader(log, Path::new("panel.csv"), map, tool()) else { return };
    let lines = 1 + log.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() as u64;
    assert!(read.lines_skipped <= lines, "{} of {lines} lines are skipped", read.lines_skipped);
    assert!(read.skipped.len() as u64 <= read.lines_skipped);
    is_sound(&read.record);
}
