//! What the probe could not see or keep, in sentences: nothing is lost in silence.

use std::io;

use tapstone_measure::units::Nanos;

use crate::unseen::UnseenProgram;

/// Counts of what is missing.
#[derive(Debug, Default)]
pub struct Losses {
    /// Events and calls that are not in the file, for any of the reasons below or because the file
    /// was full.
    pub dropped: u64,
    /// Of these: calls in signal handlers that interrupted the probe's own work.
    pub interrupted: u64,
    /// Of these: calls of more threads than the probe keeps apart, or in too many others.
    pub crowded: u64,
    /// Of these: events of programs that limit their memory.
    pub out_of_reach: u64,
    /// Functions that were bound, or handed out in a list, but could not be watched.
    pub unwatched: u64,
    /// Programs in which the probe did not begin for want of address space.
    pub limited: u64,
    /// Programs in which it did not begin because their C library is too old.
    pub outdated: u64,
    /// What the disk said when it gave no more space.
    pub disk: Option<io::Error>,
    /// The file became as large as it may be.
    pub full: bool,
    /// Calls that are counted, but not listed one by one.
    pub summed: u64,
    /// How long the run had gone on when the first of them began.
    pub summed_after: Nanos,
}

impl Losses {
    /// What to tell whoever reads the results. Empty when nothing is missing.
    #[must_use]
    pub fn sentences(&self, unseen: &[UnseenProgram]) -> Vec<String> {
        self.of_calls().into_iter().chain(self.of_programs(unseen)).collect()
    }

    /// Of these, what is about programs in which the probe did not begin. It said so itself in some
    /// of them, which then are no others without a reason.
    #[must_use]
    pub fn of_programs(&self, unseen: &[UnseenProgram]) -> Vec<String> {
        let counted = [
            of_this(
                self.limited,
                "program",
                "could not be watched for want of address space (RLIMIT_AS, ulimit -v)",
            ),
            of_this(self.outdated, "program", "could not be watched (a glibc older than 2.35)"),
        ];
        let counted: Vec<String> = counted.into_iter().flatten().collect();
        let others = unseen.iter().filter(|it| counted.is_empty() || it.reason.is_some());
        let others: Vec<String> = others.map(ToString::to_string).collect();
        counted.into_iter().chain(others).collect()
    }

    /// Of these, what is about calls of programs that were watched.
    #[must_use]
    pub fn of_calls(&self) -> Vec<String> {
        let explained = self.interrupted + self.crowded + self.out_of_reach;
        let full = match &self.disk {
            Some(error) => format!("{error}: set TMPDIR to a folder with room"),
            None if self.full => {
                "the file of events was full: --events-size makes it larger".to_owned()
            }
            None => "the program wrote them faster than the file was given space".to_owned(),
        };
        let after = self.summed_after;
        let all = [
            of_this(
                self.summed,
                "call",
                &format!(
                    "after the first {after} are only counted: the table of calls has them, all \
                     else is about those before (--events-size makes room for more)"
                ),
            ),
            of_this(
                self.dropped.saturating_sub(explained),
                "event",
                &format!("had to be dropped ({full})"),
            ),
            of_this(
                self.interrupted,
                "call",
                "in a signal handler could not be written (it came while the probe wrote)",
            ),
            of_this(
                self.crowded,
                "call",
                "could not be written (more than 4,000 threads at a time, or 48 calls inside one \
                 another)",
            ),
            of_this(
                self.out_of_reach,
                "event",
                "had to be dropped (the program limits its memory by RLIMIT_AS or mlockall, and the \
                 file of events may have only a part of it)",
            ),
            of_this(
                self.unwatched,
                "function",
                "could not be watched (all stubs of the probe were in use, or it came in a list of \
                 an unknown version)",
            ),
        ];
        all.into_iter().flatten().collect()
    }
}

fn of_this(count: u64, what: &str, why: &str) -> Option<String> {
    let plural = if count == 1 { "" } else { "s" };
    (count > 0).then(|| format!("{count} {what}{plural} {why}"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::blind::Blind;

    #[test]
    fn says_nothing_when_nothing_is_missing() {
        assert_eq!(Losses::default().sentences(&[]), [""; 0]);
    }

    #[test]
    fn dropped_events_are_those_that_no_other_line_counts() {
        let losses = Losses {
            dropped: 100,
            interrupted: 1,
            crowded: 20,
            out_of_reach: 30,
            unwatched: 4,
            full: true,
            summed: 2_500,
            summed_after: Nanos(3_210_000_000),
            ..Losses::default()
        };
        let said = losses.sentences(&[]);
        let starts = [
            "2500 calls after the first 3.21 s are only counted",
            "49 events had to be dropped (the file of events was full: --events-size",
            "1 call in a signal handler",
            "20 calls could not be written (more than",
            "30 events had to be dropped (the program limits its memory",
            "4 functions could not be watched",
        ];
        assert_eq!(said.len(), starts.len(), "{said:#?}");
        for (sentence, start) in said.iter().zip(starts) {
            assert!(sentence.starts_with(start), "{sentence}");
        }
        let slow = Losses { dropped: 2, ..Losses::default() }.sentences(&[]);
        assert!(slow[0].contains("the program wrote them faster"), "{slow:?}");
    }

    #[test]
    fn each_loss_has_its_reason_and_none_is_told_twice() {
        let losses = Losses { dropped: 10, interrupted: 3, crowded: 7, ..Losses::default() };
        let said = losses.sentences(&[]);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("3 calls in a signal handler"), "{said:?}");
        assert!(said[1].starts_with("7 calls could not be written (more"), "{said:?}");
        let disk = Some(io::Error::from_raw_os_error(libc::ENOSPC));
        let said = Losses { dropped: 2, disk, ..Losses::default() }.sentences(&[]);
        assert!(said[0].starts_with("2 events had to be dropped (No space left"), "{said:?}");
        assert!(said[0].contains("TMPDIR"), "{said:?}");
        // Of two programs, one that the probe has told of, and one whose file tells.
        let unknown = UnseenProgram { program: "/no/such/program".into(), reason: None };
        let program = PathBuf::from("/usr/bin/passwd");
        let reason = Some(Blind::Setuid(program.clone()));
        let setuid = UnseenProgram { program, reason };
        let said = Losses { limited: 1, ..Losses::default() }.sentences(&[unknown, setuid]);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("1 program could"), "{said:?}");
        assert!(said[1].starts_with("/usr/bin/passwd has the setuid"), "{said:?}");
    }
}
