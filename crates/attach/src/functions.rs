//! Functions that are watched, by their numbers.

use std::collections::BTreeSet;

use tapstone_events::Family;

use crate::calibration::RESERVED;
use crate::counted::CountedCall;
use crate::layout::{Record, RecordKind};

/// A function that is watched, of whatever entries it has.
#[derive(Clone, Debug)]
pub(crate) struct WatchedFunction {
    pub(crate) name: &'static str,
    pub(crate) family: Family,
    pub(crate) module: String,
    pub(crate) is_stepped: bool,
    /// Others that share an entry with it.
    pub(crate) others: BTreeSet<&'static str>,
    pub(crate) is_called: bool,
}

impl WatchedFunction {
    pub(crate) fn is(&self, counted: &CountedCall) -> bool {
        self.name == counted.function && self.module == counted.module
    }

    /// Which functions cannot be told from it, in words.
    pub(crate) fn group(&self) -> Option<String> {
        let others: Vec<&str> = self.others.iter().copied().collect();
        let is_one = self.is_called && !others.is_empty();
        is_one.then(|| {
            format!(
                "{} of {} has one entry with {}: calls of these are counted as its own",
                self.name,
                self.module,
                others.join(", "),
            )
        })
    }
}

/// Notes that the function of a record was called.
pub(crate) fn note_called(functions: &mut [WatchedFunction], record: &Record) {
    let number = (record.function as usize).checked_sub(RESERVED.into());
    if record.kind != RecordKind::Wait
        && let Some(function) = number.and_then(|number| functions.get_mut(number))
    {
        function.is_called = true;
    }
}
