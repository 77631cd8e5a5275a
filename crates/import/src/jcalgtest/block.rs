//! One method of the Java Card API: what the lines of its block say.

/// A block that has ended well.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    /// As the file has it.
    pub(super) method: String,
    pub(super) outcome: MethodOutcome,
}

/// What came of a method.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MethodOutcome {
    Measured(MethodTimes),
    /// In place of times: `NO_SUCH_ALGORITHM`.
    Refused {
        code: String,
    },
}

/// Times of a method, in nanoseconds; differences may be negative.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MethodTimes {
    pub(super) baseline: Vec<SignedNanos>,
    pub(super) subtracted: SignedNanos,
    pub(super) differences: Vec<SignedNanos>,
    /// `avg op` of the file.
    pub(super) mean_of_file: SignedNanos,
    /// How many operations one measurement holds.
    pub(super) operations_each: u64,
    pub(super) data_bytes: Option<u64>,
    /// JCAlgTest wrote `CHECK` beside them.
    pub(super) marked: bool,
}

/// A difference of two lengths of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SignedNanos(pub(super) i64);

/// A block of which not all lines have been seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Unfinished {
    pub(super) method: String,
    pub(super) line: u64,
    pub(super) code: Option<String>,
    pub(super) baseline: Vec<SignedNanos>,
    pub(super) subtracted: Option<SignedNanos>,
    pub(super) differences: Vec<SignedNanos>,
    pub(super) mean: Option<SignedNanos>,
    pub(super) info: Option<Info>,
    pub(super) marked: bool,
    /// One of its lines could not be read.
    pub(super) broken: bool,
}

/// The last line of a block with times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Info {
    pub(super) data_bytes: Option<u64>,
    pub(super) iterations: u64,
}

impl Unfinished {
    /// The whole block, or what it lacks.
    pub(super) fn finish(self) -> Result<Block, String> {
        let Self { method, code, baseline, differences, marked, .. } = self;
        if let Some(code) = code {
            return Ok(Block { method, outcome: MethodOutcome::Refused { code } });
        }
        let lacks = |what: &str| format!("{method} has no \"{what}\"");
        if differences.is_empty() {
            return Err(lacks("operation raw measurements"));
        }
        let subtracted = self.subtracted.ok_or_else(|| lacks("baseline stats"))?;
        let mean_of_file = self.mean.ok_or_else(|| lacks("operation stats"))?;
        let Info { data_bytes, iterations } = self.info.ok_or_else(|| lacks("operation info"))?;
        let measurements = differences.len() as u64;
        if iterations == 0 || !iterations.is_multiple_of(measurements) {
            return Err(format!(
                "{method}: {iterations} iterations are no multiple of {measurements} measurements"
            ));
        }
        let operations_each = iterations / measurements;
        let measured = MethodTimes {
            baseline,
            subtracted,
            differences,
            mean_of_file,
            operations_each,
            data_bytes,
            marked,
        };
        Ok(Block { method, outcome: MethodOutcome::Measured(measured) })
    }
}
