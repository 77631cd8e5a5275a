//! Whether a program behaves the same with a fix as without: exit code, output, and the calls that
//! it made with what they returned.
//!
//! What already differs between two untouched runs (a heap address that is printed, a thread that
//! asks once more) says nothing about a fix: it is masked, and counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tapstone_command::run::{Exit, Finished, Stream};
use tapstone_explain::codes;
use tapstone_explain::timeline::{Family, Thread, Timeline};

/// Differences that are told; more are counted.
const TOLD: usize = 5;

/// What a run did that somebody could depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behaviour {
    exit: Exit,
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    /// By thread, in the order in which threads began; `None` without a probe.
    calls: Option<Vec<Vec<Called>>>,
}

/// A call, as its caller saw it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Called {
    function: &'static str,
    module: String,
    returned: String,
    status: u16,
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.function, self.returned)?;
        if self.status == 0 { Ok(()) } else { write!(f, " {:04X}", self.status) }
    }
}

/// What fixed runs did, held against untouched ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Whether the program still did the same.
    pub verdict: BehaviourVerdict,
    /// Words of output and sorts of calls that differ between untouched runs too.
    pub masked: u64,
    /// What differs, as sentences.
    pub differences: Vec<String>,
}

/// What follows for a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BehaviourVerdict {
    /// Nobody could tell the two apart by what was compared.
    Same,
    /// The fix is not safe, whatever it gains.
    Differs,
    /// Untouched runs differ so much among themselves that nothing can be said.
    NotComparable,
}

impl Behaviour {
    /// Of a run, whose output it takes, and of what the probe saw in it.
    #[must_use]
    pub fn new(finished: &mut Finished, timeline: Option<&Timeline>) -> Self {
        Self {
            exit: finished.exit,
            stdout: finished.stdout.take(),
            stderr: finished.stderr.take(),
            calls: timeline.map(|timeline| {
                let threads = timeline.threads.iter().map(|thread| called(timeline, thread));
                threads.filter(|calls| !calls.is_empty()).collect()
            }),
        }
    }
}

fn called(timeline: &Timeline, thread: &Thread) -> Vec<Called> {
    let client = |family| matches!(family, Family::Pkcs11 | Family::Pcsc);
    let spans = thread.spans.iter().filter(|span| client(timeline.call(span.call).family));
    let called = spans.map(|span| {
        let call = timeline.call(span.call);
        Called {
            function: call.function,
            module: call.module.clone(),
            returned: codes::failure(timeline, span).unwrap_or_else(|| "OK".to_owned()),
            status: span.exchange().map_or(0, |exchange| timeline.exchange(exchange).status),
        }
    });
    called.collect()
}

/// Compares fixed runs with untouched ones, of which there are two at least.
#[must_use]
pub fn judge(untouched: &[Behaviour], fixed: &[Behaviour]) -> Judgement {
    let mut judging = Judging::default();
    judging.exits(untouched, fixed);
    for (name, of) in [
        ("standard output", (|it| it.stdout.as_ref()) as fn(&Behaviour) -> Option<&Stream>),
        ("standard error", |it| it.stderr.as_ref()),
    ] {
        let streams = |all: &'_ [Behaviour]| all.iter().filter_map(of).cloned().collect::<Vec<_>>();
        judging.output(name, &streams(untouched), &streams(fixed));
    }
    judging.calls(untouched, fixed);
    judging.finish()
}

#[derive(Default)]
struct Judging {
    masked: u64,
    differences: Vec<String>,
    incomparable: Vec<String>,
}

impl Judging {
    fn finish(mut self) -> Judgement {
        let verdict = match (self.differences.is_empty(), self.incomparable.is_empty()) {
            (false, _) => BehaviourVerdict::Differs,
            (true, false) => BehaviourVerdict::NotComparable,
            (true, true) => BehaviourVerdict::Same,
        };
        let mut differences = std::mem::take(&mut self.differences);
        differences.append(&mut self.incomparable);
        if differences.len() > TOLD {
            let more = differences.len() - TOLD;
            differences.truncate(TOLD);
            differences.push(format!("and {more} more differences"));
        }
        Judgement { verdict, masked: self.masked, differences }
    }

    fn exits(&mut self, untouched: &[Behaviour], fixed: &[Behaviour]) {
        let usual: Vec<Exit> = untouched.iter().map(|run| run.exit).collect();
        let other = fixed.iter().find(|run| !usual.contains(&run.exit));
        if let (Some(other), Some(usual)) = (other, usual.first()) {
            self.differences.push(format!("it ended with {}, untouched with {usual}", other.exit));
        }
    }

    /// Word by word, where untouched runs print as many lines and words.
    fn output(&mut self, name: &str, untouched: &[Stream], fixed: &[Stream]) {
        if untouched.iter().chain(fixed).any(|stream| stream.bytes > stream.kept.len() as u64) {
            return self.long_output(name, untouched, fixed);
        }
        let texts = |all: &[Stream]| -> Vec<Vec<Vec<Vec<u8>>>> { all.iter().map(words).collect() };
        let untouched = texts(untouched);
        let fixed = texts(fixed);
        let Some(first) = untouched.first() else { return };
        let shape = |text: &[Vec<Vec<u8>>]| text.iter().map(Vec::len).collect::<Vec<_>>();
        if untouched.iter().any(|text| shape(text) != shape(first)) {
            if fixed.iter().any(|text| !untouched.contains(text)) {
                let why = format!("{name} has other lines in every untouched run");
                self.incomparable.push(why);
            }
            return;
        }
        for text in &fixed {
            if text.len() != first.len() {
                let lines = text.len();
                let usual = first.len();
                self.differences.push(format!("{name} has {lines} lines, untouched {usual}"));
                return;
            }
        }
        for (at, line) in first.iter().enumerate() {
            let mut varying = BTreeSet::new();
            for text in &untouched {
                varying.extend((0..line.len()).filter(|word| text[at][*word] != line[*word]));
            }
            self.masked += varying.len() as u64;
            let differs = |text: &&Vec<Vec<Vec<u8>>>| {
                text[at].len() != line.len()
                    || (0..line.len())
                        .any(|word| !varying.contains(&word) && text[at][word] != line[word])
            };
            if fixed.iter().any(|text| differs(&text)) {
                // Not the line itself: it may be a secret that the program shows its user.
                self.differences.push(format!("line {} of {name} differs", at + 1));
            }
        }
    }

    /// Of which only the digest is known.
    fn long_output(&mut self, name: &str, untouched: &[Stream], fixed: &[Stream]) {
        let digests: BTreeSet<_> = untouched.iter().map(|stream| stream.sha256).collect();
        match (digests.len(), fixed.iter().all(|stream| digests.contains(&stream.sha256))) {
            (_, true) => {}
            (1, false) => self.differences.push(format!("{name} differs")),
            (_, false) => {
                self.incomparable
                    .push(format!("{name} is long, and differs in every untouched run"));
            }
        }
    }

    fn calls(&mut self, untouched: &[Behaviour], fixed: &[Behaviour]) {
        let calls = |all: &'_ [Behaviour]| -> Vec<Vec<Vec<Called>>> {
            all.iter().filter_map(|run| run.calls.clone()).collect()
        };
        let untouched = calls(untouched);
        let fixed = calls(fixed);
        let Some(first) = untouched.first() else { return };
        if untouched.iter().all(|run| run == first) {
            for run in &fixed {
                if let Some(difference) = first_difference(first, run) {
                    self.differences.push(difference);
                    return;
                }
            }
            return;
        }
        // Their order varies by itself: only how often each came remains to be compared.
        let counts: Vec<_> = untouched.iter().map(|run| tally(run)).collect();
        let fixed: Vec<_> = fixed.iter().map(|run| tally(run)).collect();
        let sorts: BTreeSet<&Called> =
            counts.iter().chain(&fixed).flat_map(BTreeMap::keys).copied().collect();
        for sort in sorts {
            let count = |run: &BTreeMap<&Called, usize>| run.get(sort).copied().unwrap_or(0);
            let usual: Vec<usize> = counts.iter().map(count).collect();
            let low = usual.iter().min().copied().unwrap_or(0);
            let high = usual.iter().max().copied().unwrap_or(0);
            self.masked += u64::from(low != high);
            let outside = fixed.iter().map(count).find(|count| !(low..=high).contains(count));
            if let Some(count) = outside {
                let usual = if low == high { low.to_string() } else { format!("{low} to {high}") };
                self.differences.push(format!("{sort} came {count} times, untouched {usual}"));
            }
        }
    }
}

/// Lines, and their words with the space in front of each: no byte is left out.
fn words(stream: &Stream) -> Vec<Vec<Vec<u8>>> {
    let is_space = u8::is_ascii_whitespace;
    let words = |line: &[u8]| {
        let words = line.chunk_by(|one, next| is_space(one) || !is_space(next));
        words.map(<[u8]>::to_vec).collect()
    };
    stream.kept.split_inclusive(|byte| *byte == b'\n').map(words).collect()
}

fn tally(run: &[Vec<Called>]) -> BTreeMap<&Called, usize> {
    let mut tally = BTreeMap::new();
    for called in run.iter().flatten() {
        *tally.entry(called).or_default() += 1;
    }
    tally
}

fn first_difference(usual: &[Vec<Called>], run: &[Vec<Called>]) -> Option<String> {
    if usual.len() != run.len() {
        return Some(format!("{} threads made calls, untouched {}", run.len(), usual.len()));
    }
    usual.iter().zip(run).enumerate().find_map(|(thread, (usual, run))| {
        let at = (0..usual.len().max(run.len())).find(|at| usual.get(*at) != run.get(*at))?;
        let said = |called: Option<&Called>| {
            called.map_or_else(|| "nothing".to_owned(), ToString::to_string)
        };
        Some(format!(
            "call {} of thread {} is {}, untouched {}",
            at + 1,
            thread + 1,
            said(run.get(at)),
            said(usual.get(at))
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(text: &[u8]) -> Stream {
        Stream { bytes: text.len() as u64, sha256: None, kept: text.to_vec() }
    }

    fn run(text: impl AsRef<[u8]>, calls: &[(&'static str, &str)]) -> Behaviour {
        let called = |(function, returned): &(&'static str, &str)| Called {
            function,
            module: String::new(),
            returned: (*returned).to_owned(),
            status: 0,
        };
        Behaviour {
            exit: Exit::Code(0),
            stdout: Some(stream(text.as_ref())),
            stderr: Some(stream(b"")),
            calls: Some(vec![calls.iter().map(called).collect()]),
        }
    }

    #[test]
    fn what_varies_by_itself_is_masked() {
        let untouched = [
            run("at 0x1 ok\nend", &[("C_Sign", "OK")]),
            run("at 0x2 ok\nend", &[("C_Sign", "OK")]),
        ];
        let judged = judge(&untouched, &[run("at 0x3 ok\nend", &[("C_Sign", "OK")])]);
        assert_eq!(
            judged,
            Judgement { verdict: BehaviourVerdict::Same, masked: 1, differences: vec![] }
        );
        let judged = judge(&untouched, &[run("at 0x3 bad\nend", &[("C_Sign", "OK")])]);
        assert_eq!(judged.verdict, BehaviourVerdict::Differs);
        assert_eq!(judged.differences, ["line 1 of standard output differs"]);
        let judged = judge(&untouched, &[run("at 0x3 ok", &[("C_Sign", "OK")])]);
        assert_eq!(judged.differences, ["standard output has 1 lines, untouched 2"]);
    }

    /// A signature is no text.
    #[test]
    fn each_byte_of_the_output_counts() {
        let untouched = [run(b"sig \x80\xFE x\n", &[]), run(b"sig \x80\xFE x\n", &[])];
        let with = |text: &[u8]| judge(&untouched, &[run(text, &[])]).verdict;
        assert_eq!(with(b"sig \x80\xFE x\n"), BehaviourVerdict::Same);
        for other in [&b"sig \x81\xFF x\n"[..], b"sig  \x80\xFE x\n", b"sig \x80\xFE x", b"sig\n"] {
            assert_eq!(with(other), BehaviourVerdict::Differs, "{other:?}");
        }
        // A number that varies, right-aligned.
        let untouched = [run("  99 ms\n", &[]), run(" 100 ms\n", &[])];
        assert_eq!(judge(&untouched, &[run("1001 ms\n", &[])]).verdict, BehaviourVerdict::Same);
    }

    #[test]
    fn calls_are_compared_one_by_one() {
        let usual = &[("C_Login", "OK"), ("C_Sign", "OK")];
        let untouched = [run("", usual), run("", usual)];
        assert_eq!(judge(&untouched, &[run("", usual)]).verdict, BehaviourVerdict::Same);
        let failed = run("", &[("C_Login", "OK"), ("C_Sign", "CKR_DEVICE_ERROR")]);
        let judged = judge(&untouched, &[failed]);
        assert_eq!(judged.verdict, BehaviourVerdict::Differs);
        assert_eq!(
            judged.differences,
            ["call 2 of thread 1 is C_Sign (CKR_DEVICE_ERROR), untouched C_Sign (OK)"]
        );
        let shorter = judge(&untouched, &[run("", &usual[..1])]);
        assert_eq!(shorter.differences, ["call 2 of thread 1 is nothing, untouched C_Sign (OK)"]);
    }

    #[test]
    fn an_order_that_varies_leaves_the_counts() {
        let a = ("C_Sign", "OK");
        let b = ("C_Verify", "OK");
        let untouched = [run("", &[a, b]), run("", &[b, a, a])];
        let judged = judge(&untouched, &[run("", &[a, a, b])]);
        assert_eq!((judged.verdict, judged.masked), (BehaviourVerdict::Same, 1));
        let judged = judge(&untouched, &[run("", &[a, a, a, b])]);
        assert_eq!(judged.differences, ["C_Sign (OK) came 3 times, untouched 1 to 2"]);
    }

    #[test]
    fn nothing_is_said_of_output_without_a_shape() {
        let untouched = [run("a\nb", &[]), run("a", &[])];
        assert_eq!(judge(&untouched, &[run("a", &[])]).verdict, BehaviourVerdict::Same);
        assert_eq!(judge(&untouched, &[run("c", &[])]).verdict, BehaviourVerdict::NotComparable);
    }
}
