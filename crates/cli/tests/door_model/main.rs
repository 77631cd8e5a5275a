//! `tapstone door budget`, `what-if` and `simulate`, and `tapstone import panel-log`, as a user runs
//! them. No card is needed.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod bad_input;
mod card;
mod panel_log;
mod scenarios;

use std::fs;
use std::path::Path;
use std::process::Command;

use tapstone_record::Record;
use tapstone_testing::private_environment;
use tempfile::TempDir;

/// What a command said, and how it ended.
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    /// Its record, held to the schema.
    fn record(&self) -> Record {
        assert!(self.out.starts_with('{'), "{}\n{}", self.out, self.err);
        tapstone_testing::record(&self.out)
    }

    /// The text without its first line, which has the time of day.
    fn text(&self) -> String {
        self.out.split_once('\n').unwrap().1.to_owned()
    }
}

/// Runs Tapstone in a folder.
fn tapstone(folder: &Path, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapstone"));
    private_environment(&mut command);
    let output = command.current_dir(folder).args(arguments).output().unwrap();
    Said {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A folder with these files in it.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}
