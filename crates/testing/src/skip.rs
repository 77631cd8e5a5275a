//! The one way to skip a test: nothing of it is lost in what the test harness captures.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread::current;

/// The environment variable that names a file in which each skipped test gets a line. `make test`
/// sets it, counts the lines, and holds them against `scripts/expected-skips` in CI.
pub const SKIPS: &str = "TAPSTONE_SKIPS";

/// Says that the test that calls this is skipped, or a part of it, and what was missing: on the
/// terminal, and as a line in the file that [`SKIPS`] names.
///
/// The line is `PACKAGE/PROGRAM TEST: MISSING`, as in
/// `tapstone-piv/piv openssl::signatures_verify: openssl`. `missing` is one line, the same at each
/// run; details go to standard output.
///
/// # Panics
/// The file cannot be written: a skip that nobody counts is worse than a test that fails.
pub fn skip(missing: &str) {
    let line = format!("{} {}: {missing}\n", program(), current().name().unwrap_or("?"));
    // Not by `eprintln!`, which the test harness keeps to itself.
    let _ = io::stderr().write_all(format!("SKIPPED {line}").as_bytes());
    if let Some(path) = env::var_os(SKIPS) {
        // One write at the end of the file: lines of programs that skip at once stay whole.
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("{}: {error}", PathBuf::from(path).display()));
    }
}

/// `PACKAGE/PROGRAM`: Cargo tells a test its package, and ends the names of its programs with a hash.
fn program() -> String {
    let program = env::current_exe().unwrap_or_default();
    let stem = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = stem.rsplit_once('-').map_or(stem.as_str(), |(name, _hash)| name);
    format!("{}/{name}", env::var("CARGO_PKG_NAME").unwrap_or_default())
}
