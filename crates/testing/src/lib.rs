//! What the tests of several crates share: waiting, skipping aloud, records held to their schema.

mod counting_card;
mod environment;
mod quiet;
mod skip;
mod suites;
mod urgent;

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use jsonschema::Validator;
use serde_json::Value;
use tapstone_record::{Record, SCHEMA_JSON};

pub use self::counting_card::{CountingCard, Manner, Presented, Random};
pub use self::environment::private_environment;
pub use self::quiet::{undisturbed, with_witnesses};
pub use self::skip::{SKIPS, skip};
pub use self::suites::random_suite;
pub use self::urgent::Urgent;

/// Between two looks at something that others change.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until something is so; says whether it came to be.
pub fn eventually(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + patience;
    while !is_so() {
        if Instant::now() >= until {
            return false;
        }
        sleep(LOOK);
    }
    true
}

/// What became of holding a figure against its bound.
pub type Held = Result<(), String>;

/// A figure is within its bound, or `what` says that it is not.
///
/// # Errors
/// It is not.
pub fn hold(is_within: bool, what: impl fmt::Display) -> Held {
    if is_within { Ok(()) } else { Err(what.to_string()) }
}

/// Measures up to three times, until all figures hold: a machine that stands still for a moment
/// spoils one of them, a defect all. What a test asserts besides is no figure, and fails at once.
///
/// # Panics
/// Figures were out of their bounds three times.
#[track_caller]
pub fn figures(mut measure: impl FnMut() -> Held) {
    let mut spoiled = Vec::new();
    while spoiled.len() < 3 {
        match measure() {
            Ok(()) => return,
            Err(what) => spoiled.push(what),
        }
    }
    panic!("three times: {spoiled:#?}");
}

/// Writes a program that is to be run. By another process: while this one has the file open, a test
/// beside may fork a child that has it too, and what somebody may write to is not executed
/// (execve(2), ETXTBSY).
///
/// # Panics
/// It cannot be written.
pub fn write_program(path: &Path, text: &str, mode: u32) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "printf %s \"$1\" > \"$0\" && chmod \"$2\" \"$0\""]);
    let status = shell.arg(path).arg(text).arg(format!("{mode:o}")).status();
    assert!(status.is_ok_and(|status| status.success()), "{}", path.display());
}

/// Copies one, in the same way.
///
/// # Panics
/// It cannot be copied.
pub fn copy_program(from: &Path, to: &Path) {
    let status = Command::new("cp").arg(from).arg(to).status();
    assert!(status.is_ok_and(|status| status.success()), "{}", to.display());
}

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    let schema = serde_json::from_str(SCHEMA_JSON).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is one")
});

/// What the schema has to say against a record, by place.
#[must_use]
pub fn complaints(record: &Value) -> Vec<String> {
    VALIDATOR.iter_errors(record).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

/// The record of this text.
///
/// # Panics
/// It is none, or the schema has something to say against it.
#[must_use]
#[track_caller]
pub fn record(text: &str) -> Record {
    let value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(complaints(&value), [""; 0]);
    Record::from_json(text, "the record of a test").expect("the schema holds")
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn figures_that_are_spoiled_twice_are_held_and_those_that_are_always_wrong_are_not() {
        let tried = |right: u32| {
            let mut count = 0;
            let measured = AssertUnwindSafe(|| {
                figures(|| {
                    count += 1;
                    hold(count >= right, "spoiled")
                });
            });
            (catch_unwind(measured).is_ok(), count)
        };
        assert_eq!(tried(1), (true, 1));
        assert_eq!(tried(3), (true, 3));
        assert_eq!(tried(4), (false, 3));
    }
}
