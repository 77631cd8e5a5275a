//! `repeated-lookup`: the same file is opened and read, or the same lookup made, again and again.
//!
//! What was asked once and had the same answer ever since could have been kept. The question is
//! seen in calls of libc; in system calls also where libc asks on behalf of one of its own
//! functions, with who wanted to know.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tapstone_measure::units::Nanos;
use tapstone_text::thousands;

use super::files::{CallOrigin, FileCall};
use super::scene::{FindingPlace, Remedy, Scene, Waste};
use super::stretches::Stretches;
use super::{Finding, FindingKind, Removed, words};
use crate::owners::Owner;
use crate::timeline::{Kind, Leaf, On, Thread};

/// Once is needed, twice can be two parts of a program that know nothing of each other, and from
/// then on it is a habit.
const FEWEST: u64 = 3;
/// Questions that the evidence names, the most frequent first.
const NAMED: usize = 3;

/// Who asks a question: a finding's place, and the function that called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Asker<'a> {
    place: FindingPlace<'a>,
    caller: &'a str,
}

/// What is asked, and what the answer was.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Question<'a> {
    /// Two processes know nothing of each other.
    process: u32,
    /// The lookup; none: a file.
    lookup: Option<&'a str>,
    text: &'a [u8],
    number: u64,
    answer: i64,
}

/// How often a question was asked.
struct AskedCount<'a> {
    asker: Asker<'a>,
    layer: Owner,
    question: Question<'a>,
    /// How often it was asked in all.
    count: u64,
    /// Those that belong to operations, but for the first.
    again: u64,
    removed: Vec<Removed>,
    /// From the open of a file to its end, or the lookup, and what is done with the answer up to the
    /// thread's next call.
    perhaps: Vec<Removed>,
    /// System calls by name.
    calls: BTreeMap<&'a str, u64>,
}

/// All questions of a trace, with how often each was asked.
#[derive(Default)]
struct Questions<'a> {
    all: Vec<AskedCount<'a>>,
    places: HashMap<(Asker<'a>, Question<'a>), usize>,
}

pub(super) fn find<'a>(
    scene: &Scene<'a>,
    files: impl IntoIterator<Item = FileCall<'a>>,
) -> Vec<Finding> {
    let mut known = by_asker(from_leaves(scene));
    let from_system = by_asker(from_system_calls(scene, files));
    let mut extra: BTreeMap<Asker<'_>, Vec<String>> = BTreeMap::new();
    let mut more = BTreeMap::new();
    for (asker, mut asked) in from_system {
        let is_same = |other: &Asker<'_>| other.place.function == asker.place.function;
        let same = known.iter().find(|(other, seen)| is_same(other) || shares_a_file(seen, &asked));
        match same {
            // The same waste, seen from below: who wanted it.
            Some((other, seen)) => {
                // Of another function, what it does besides says nothing of this waste.
                asked.retain(|asked| is_same(other) || is_file_of(seen, asked));
                extra.entry(*other).or_default().extend(told(&asker, &asked));
            }
            None => drop(more.insert(asker, asked)),
        }
    }
    known.append(&mut more);
    let mut findings = Vec::new();
    for (asker, asked) in known {
        let mut evidence = told(&asker, &asked);
        evidence.extend(extra.remove(&asker).unwrap_or_default());
        findings.extend(report(scene, &asker, asked, evidence));
    }
    findings
}

fn shares_a_file(one: &[AskedCount<'_>], other: &[AskedCount<'_>]) -> bool {
    other.iter().any(|asked| is_file_of(one, asked))
}

fn is_file_of(all: &[AskedCount<'_>], file: &AskedCount<'_>) -> bool {
    let mut files = all.iter().filter(|asked| asked.question.lookup.is_none());
    files.any(|asked| asked.question.text == file.question.text)
}

impl<'a> Questions<'a> {
    fn number(&mut self, asker: Asker<'a>, layer: Owner, question: Question<'a>) -> usize {
        let all = &mut self.all;
        *self.places.entry((asker, question)).or_insert_with(|| {
            all.push(AskedCount {
                asker,
                layer,
                question,
                count: 0,
                again: 0,
                removed: Vec::new(),
                perhaps: Vec::new(),
                calls: BTreeMap::new(),
            });
            all.len() - 1
        })
    }
}

impl AskedCount<'_> {
    /// So many more times, which took so long together.
    fn add(&mut self, scene: &Scene<'_>, thread: usize, start: Nanos, count: u64, time: Nanos) {
        let first = u64::from(self.count == 0);
        self.count += count;
        let again = count.saturating_sub(first);
        if again > 0 && scene.counts(thread, start) {
            self.again += again;
            // As if they had followed one another: others lie among those that were counted.
            let time = Nanos(time.0 / count * again);
            self.removed.push(Removed { thread, start, end: start + time });
        }
    }

    /// What belongs to a question that was asked before: reads of the file, and its end.
    fn add_part(&mut self, scene: &Scene<'_>, thread: usize, start: Nanos, time: Nanos) {
        if self.count > 1 && scene.counts(thread, start) {
            self.removed.push(Removed { thread, start, end: start + time });
        }
    }

    /// What may go with a file that was read before, or with an answer that was had: a fix gives the
    /// answer too, and who keeps it does not take it apart again.
    fn add_whole(&mut self, scene: &Scene<'_>, thread: usize, start: Nanos, end: Nanos) {
        if self.count > 1 && scene.counts(thread, start) {
            self.perhaps.push(Removed { thread, start, end });
        }
    }
}

/// When a thread is next known to do something else than with what a call gave it: its next call of
/// any kind, or the end of the call around.
fn next_moment(thread: &Thread, leaf: &Leaf) -> Nanos {
    let next_leaf = thread.leaves.partition_point(|other| other.start < leaf.end);
    let next_span = thread.spans.partition_point(|span| span.start < leaf.end);
    let moments = [
        thread.leaves.get(next_leaf).map(|other| other.start),
        thread.spans.get(next_span).map(|span| span.start),
        leaf.parent.map(|around| thread.spans[around as usize].end),
    ];
    moments.into_iter().flatten().min().map_or(leaf.end, |next| next.max(leaf.end))
}

/// When a lookup is over, and what is done with the answer. Among several that were counted together
/// others may lie: as if they had followed one another, with as much after each as after the last.
fn with_use(thread: &Thread, leaf: &Leaf) -> Nanos {
    let next = next_moment(thread, leaf);
    let used = Nanos((next - leaf.end).0.saturating_mul(u64::from(leaf.count)));
    if leaf.count > 1 { next.min(leaf.start + leaf.time + used) } else { next }
}

/// A file that is open.
#[derive(Clone, Copy)]
struct OpenFile {
    /// Its place among the questions.
    at: usize,
    start: Nanos,
    until: Nanos,
    /// Since then the thread has done nothing else that was seen. What libc reads of a stream is not.
    is_only_read: bool,
}

/// Whether a thread has made no call of a library in a stretch of time.
fn makes_no_call(thread: &Thread, start: Nanos, end: Nanos) -> bool {
    let next = thread.spans.partition_point(|span| span.start < start);
    thread.spans.get(next).is_none_or(|span| span.start >= end)
}

/// Lookups, and files that were opened, with reads and ends by descriptor.
fn from_leaves<'a>(scene: &Scene<'a>) -> Questions<'a> {
    let mut questions = Questions::default();
    for (number, thread) in scene.threads() {
        // Descriptors, and of streams the lower half of their address.
        let mut open: HashMap<u32, OpenFile> = HashMap::new();
        for leaf in &thread.leaves {
            let Some(kind) = scene.kind(leaf) else { continue };
            for (descriptor, file) in &mut open {
                let is_of_it = *descriptor == leaf.a as u32;
                file.is_only_read &= matches!(kind, Kind::Read | Kind::Close) && is_of_it;
            }
            match kind {
                Kind::LookupName | Kind::LookupNumber | Kind::Open => {
                    let (asker, layer) = asker(scene, thread, leaf, kind);
                    let question = question(scene, thread, leaf, kind);
                    let at = questions.number(asker, layer, question);
                    let count = u64::from(leaf.count.max(1));
                    questions.all[at].add(scene, number, leaf.start, count, leaf.time);
                    if kind != Kind::Open {
                        let end = with_use(thread, leaf);
                        questions.all[at].add_whole(scene, number, leaf.start, end);
                    } else {
                        let (start, until) = (leaf.start, leaf.end);
                        let file = OpenFile { at, start, until, is_only_read: true };
                        open.insert(leaf.result as u32, file);
                    }
                }
                // A descriptor that was closed unseen.
                Kind::Connect => drop(open.remove(&(leaf.a as u32))),
                Kind::Read | Kind::Close if leaf.on == On::Something => {
                    let Some(file) = open.get(&(leaf.a as u32)).copied() else { continue };
                    let asked = &mut questions.all[file.at];
                    asked.add_part(scene, number, leaf.start, leaf.time);
                    // The descriptor may be that of the next of several that were counted.
                    if kind == Kind::Close && leaf.start >= file.until {
                        if file.is_only_read && makes_no_call(thread, file.start, leaf.end) {
                            let time = leaf.end - file.start;
                            asked.add_part(scene, number, file.start, time);
                        }
                        asked.add_whole(scene, number, file.start, next_moment(thread, leaf));
                        open.remove(&(leaf.a as u32));
                    }
                }
                _ => {}
            }
        }
    }
    questions
}

/// A lookup is its own place; a file is opened by the call around, if there is one.
fn asker<'a>(scene: &Scene<'a>, thread: &'a Thread, leaf: &Leaf, kind: Kind) -> (Asker<'a>, Owner) {
    let call = scene.timeline.call(leaf.call);
    let around = scene.around(thread, leaf).map(|(_, span)| span);
    let opener = around.filter(|_| kind == Kind::Open).map(|span| scene.timeline.call(span.call));
    let by = opener.unwrap_or(call);
    let layer = scene.layer(around);
    (Asker { place: scene.place(by), caller: &by.caller }, layer)
}

fn question<'a>(scene: &Scene<'a>, thread: &Thread, leaf: &Leaf, kind: Kind) -> Question<'a> {
    let function = scene.timeline.call(leaf.call).function;
    let text = leaf.text.map_or(&[][..], |text| scene.timeline.text(text));
    let (lookup, number, answer) = match kind {
        Kind::Open => (None, 0, i64::from(is_open(function, leaf.result))),
        Kind::LookupNumber => (Some(function), leaf.a, leaf.result),
        _ => (Some(function), 0, leaf.result),
    };
    Question { process: thread.process, lookup, text, number, answer }
}

/// Streams are addresses, or null; descriptors are not negative.
fn is_open(function: &str, result: i64) -> bool {
    if is_stream(function) { result != 0 } else { result >= 0 }
}

fn is_stream(function: &str) -> bool {
    matches!(function, "fopen" | "fopen64" | "opendir")
}

fn from_system_calls<'a>(
    scene: &Scene<'a>,
    files: impl IntoIterator<Item = FileCall<'a>>,
) -> Questions<'a> {
    let mut questions = Questions::default();
    for file in files {
        let CallOrigin { function, module, caller } = file.origin;
        let asker = Asker { place: FindingPlace { function, module }, caller };
        let process = scene.timeline.threads[file.thread].process;
        let question = Question { process, lookup: None, text: file.path, number: 0, answer: 0 };
        let at = questions.number(asker, Owner::Program, question);
        let asked = &mut questions.all[at];
        *asked.calls.entry(file.call).or_default() += 1;
        let time = file.end - file.start;
        if file.call.starts_with("open") {
            asked.add(scene, file.thread, file.start, 1, time);
        } else {
            asked.add_part(scene, file.thread, file.start, time);
        }
    }
    questions
}

/// Those that were asked again and again.
fn by_asker(questions: Questions<'_>) -> BTreeMap<Asker<'_>, Vec<AskedCount<'_>>> {
    let mut askers: BTreeMap<Asker<'_>, Vec<AskedCount<'_>>> = BTreeMap::new();
    for asked in questions.all.into_iter().filter(|asked| asked.count >= FEWEST) {
        askers.entry(asked.asker).or_default().push(asked);
    }
    for asked in askers.values_mut() {
        asked.sort_by_key(|asked| (std::cmp::Reverse(asked.count), asked.question));
    }
    askers
}

/// A sentence for each of the most frequent questions.
fn told(asker: &Asker<'_>, asked: &[AskedCount<'_>]) -> Vec<String> {
    let by = match asker.caller {
        "" => String::new(),
        caller => format!(", called by {caller}"),
    };
    let mut sentences: Vec<_> = asked
        .iter()
        .take(NAMED)
        .map(|asked| {
            let function = words::function_of(asker.place.function, asker.place.module);
            let times = words::times(asked.count);
            match asked.question.lookup {
                Some(lookup) => format!(
                    "{lookup}({}) was called {times} and returned the same each time{by}",
                    argument(&asked.question)
                ),
                None => {
                    let path = words::printable(asked.question.text);
                    let calls = asked.calls.iter();
                    let calls = calls.map(|(call, count)| format!("{call} {}", thousands(*count)));
                    let calls = calls.collect::<Vec<_>>().join(", ");
                    let calls = if calls.is_empty() { calls } else { format!(" ({calls})") };
                    format!("{path} was opened {times} by {function}{by}{calls}")
                }
            }
        })
        .collect();
    if let Some(others) = asked.len().checked_sub(NAMED + 1) {
        sentences.push(format!("and {} likewise", words::counted(others as u64 + 1, "other")));
    }
    sentences
}

fn argument(question: &Question<'_>) -> String {
    if question.text.is_empty() {
        question.number.to_string()
    } else {
        format!("\"{}\"", words::printable(question.text))
    }
}

fn report(
    scene: &Scene<'_>,
    asker: &Asker<'_>,
    mut asked: Vec<AskedCount<'_>>,
    evidence: Vec<String>,
) -> Option<Finding> {
    let layer = asked.first()?.layer.clone();
    let count = asked.iter().map(|asked| asked.again).sum();
    let fix = format!("memoise:{}", asker.place.function);
    let change = "ask once and keep the answer, or ask only when it is used";
    let mut perhaps: Vec<_> =
        asked.iter_mut().flat_map(|asked| std::mem::take(&mut asked.perhaps)).collect();
    let others = other_files(&asked);
    let mut finding = scene.report(Waste {
        kind: FindingKind::RepeatedLookup,
        place: asker.place,
        layer,
        count,
        removed: asked.into_iter().flat_map(|asked| asked.removed).collect(),
        evidence,
        remedy: Remedy::fix_or(&fix, change),
    })?;
    if !others.is_empty() {
        finding.removed = without(&finding.removed, &others);
        perhaps.extend(others);
    }
    finding.perhaps = perhaps;
    Some(finding)
}

/// What goes with files but for the one that takes longest: each is kept by itself, or is not, and
/// of those that are chosen by what is to be done, what is made of them may stay.
fn other_files(asked: &[AskedCount<'_>]) -> Vec<Removed> {
    let time = |asked: &&AskedCount<'_>| -> Nanos {
        asked.removed.iter().map(|removed| removed.end - removed.start).sum()
    };
    let files = || asked.iter().filter(|asked| asked.question.lookup.is_none());
    let Some(longest) = files().max_by_key(time) else { return Vec::new() };
    let others = files().filter(|file| file.question != longest.question);
    others.flat_map(|file| &file.removed).copied().collect()
}

/// What of these stretches is none of the others.
fn without(all: &[Removed], others: &[Removed]) -> Vec<Removed> {
    let of = |removed: &[Removed], thread: usize| -> Stretches {
        let of_it = removed.iter().filter(|removed| removed.thread == thread);
        of_it.map(|removed| (removed.start, removed.end)).collect()
    };
    let threads: BTreeSet<usize> = all.iter().map(|removed| removed.thread).collect();
    let left = threads.into_iter().flat_map(|thread| {
        let left: Vec<_> = of(all, thread).without(&of(others, thread)).iter().collect();
        left.into_iter().map(move |(start, end)| Removed { thread, start, end })
    });
    left.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::prediction::{self, Saving};
    use crate::findings::tests::{each, figures, only, trial, whole};
    use crate::operation::Operations;
    use crate::synthetic::{Story, ThreadStory, micros, millis};
    use crate::timeline::Timeline;

    fn one(tell: impl FnOnce(&mut ThreadStory<'_>)) -> Timeline {
        Story::new().thread(tell).timeline()
    }

    fn saving(timeline: &Timeline, finding: &Finding) -> Saving {
        let removable = prediction::union([finding]);
        prediction::saving(timeline, &Operations::whole(timeline), &removable)
    }

    fn leaves(scene: &Scene<'_>) -> Vec<Finding> {
        find(scene, [])
    }

    /// Asks for a protocol's name for each packet.
    fn packets(told: &mut ThreadStory<'_>, count: u64) {
        for _ in 0..count {
            told.leaf("getprotobynumber", micros(40)).with(|leaf| {
                leaf.a = 6;
                leaf.result = 0x1234;
            });
            told.advance(micros(60));
        }
    }

    #[test]
    fn a_lookup_for_each_packet_is_found() {
        let timeline = one(|told| packets(told, 1_000));
        let finding = only(whole(&timeline, leaves));
        assert_eq!(figures(&finding), (999.0, 999, micros(999 * 40), 400));
        assert_eq!(
            (finding.place.as_str(), finding.layer.as_str()),
            ("getprotobynumber", "program")
        );
        assert_eq!(trial(&finding).as_deref(), Some("memoise:getprotobynumber"));
        let says = "getprotobynumber(6) was called 1,000 times and returned the same each time";
        assert_eq!(finding.evidence, [says]);
        // The first one is needed.
        let second = Removed { thread: 0, start: micros(100), end: micros(140) };
        assert_eq!(finding.removed[0], second);
    }

    #[test]
    fn lookups_that_were_counted_are_all_but_the_first_in_vain() {
        let timeline = one(|told| {
            told.counted("getpwnam", 10, micros(15), micros(200)).about("card");
            told.advance(micros(300));
        });
        let finding = only(whole(&timeline, leaves));
        assert_eq!((finding.count, finding.time), (9, micros(135)));
        assert!(finding.evidence[0].starts_with("getpwnam(\"card\") was called 10 times"));
        // Others lie among them: 100 us follow the last, and as many each other one.
        let timeline = one(|told| {
            told.counted("getpwnam", 10, micros(15), millis(2)).about("card");
            told.advance(micros(2100)).call("C_Sign", 1, millis(1));
        });
        let saved = saving(&timeline, &only(whole(&timeline, leaves)));
        assert_eq!((saved.low, saved.high), (135e3, 150e3 + 1000e3));
    }

    #[test]
    fn what_cannot_be_memoised_says_what_to_change() {
        let timeline = one(|told| {
            for _ in 0..4 {
                told.leaf("getaddrinfo", millis(5)).about("hsm.example").advance(millis(5));
            }
        });
        let finding = only(whole(&timeline, leaves));
        assert_eq!((finding.time, finding.trial), (millis(15), None));
        assert!(finding.advice.unwrap().starts_with("ask once"));
    }

    /// Opens, reads and closes a file.
    fn reads(told: &mut ThreadStory<'_>, path: &str) {
        told.leaf("open", micros(30)).about(path).with(|leaf| leaf.result = 5);
        told.leaf("read", micros(50)).with(|leaf| leaf.a = 5);
        told.leaf("close", micros(20)).with(|leaf| leaf.a = 5);
    }

    #[test]
    fn a_file_that_is_read_for_each_operation_is_found() {
        let timeline = one(|told| {
            for _ in 0..5 {
                told.enter("C_Sign");
                reads(told, "/etc/module.conf");
                told.advance(micros(400)).exit().advance(millis(1));
            }
        });
        let finding = only(each("C_Sign", &timeline, leaves));
        assert_eq!(figures(&finding), (0.8, 4, micros(400), 160));
        assert_eq!((finding.place.as_str(), finding.module.as_str()), ("C_Sign", "module.so"));
        assert_eq!((finding.layer.as_str(), finding.trial), ("pkcs11 module.so", None));
        let says = "/etc/module.conf was opened 5 times by C_Sign of module.so";
        assert_eq!(finding.evidence, [says]);
    }

    /// What is read is read into something: that goes too where the file is kept.
    #[test]
    fn a_file_is_a_unit_from_its_open_to_the_next_call() {
        let timeline = one(|told| {
            for _ in 0..5 {
                told.leaf("open", micros(30)).about("/etc/client.conf").with(|it| it.result = 5);
                told.advance(micros(10)).leaf("read", micros(50)).with(|leaf| leaf.a = 5);
                told.advance(micros(200)).leaf("close", micros(20)).with(|leaf| leaf.a = 5);
                told.advance(micros(300)).call("C_Sign", 1, millis(1));
            }
        });
        let finding = only(whole(&timeline, leaves));
        assert_eq!(finding.time, micros(4 * 310));
        let saved = saving(&timeline, &finding);
        assert_eq!((saved.low, saved.high), (4.0 * 310e3, 4.0 * 610e3));
        // What is done with the answer of a lookup may go too, up to the next one.
        let timeline = one(|told| packets(told, 101));
        let saved = saving(&timeline, &only(whole(&timeline, leaves)));
        assert_eq!((saved.low, saved.high), (100.0 * 40e3, 99.0 * 100e3 + 40e3));
    }

    /// A policy and, by what is asked for, one of several messages.
    #[test]
    fn of_several_files_the_low_end_has_the_one_that_takes_longest() {
        let timeline = one(|told| {
            for request in 0..12 {
                told.leaf("fopen", micros(30)).about("/policy").with(|it| it.result = 7);
                told.advance(micros(100)).leaf("fclose", micros(20)).with(|leaf| leaf.a = 7);
                let message = format!("/message-{}", request % 3);
                told.leaf("fopen", micros(30)).about(&message).with(|it| it.result = 7);
                told.advance(micros(50)).leaf("fclose", micros(20)).with(|leaf| leaf.a = 7);
            }
        });
        let finding = only(whole(&timeline, leaves));
        assert_eq!(finding.time, micros(11 * 150 + 9 * 100));
        let Saving { low, high } = saving(&timeline, &finding);
        assert_eq!((low, high), (11.0 * 150e3, 11.0 * 150e3 + 9.0 * 100e3));
    }

    /// What libc reads of a stream is not seen: all from its open to its close is of it, unless the
    /// thread does something else meanwhile.
    #[test]
    fn a_stream_is_a_unit_from_its_open_to_its_close() {
        let saved = |otherwise: Option<&str>| {
            let timeline = one(|told| {
                for _ in 0..5 {
                    told.leaf("fopen", micros(30))
                        .about("/etc/client.conf")
                        .with(|it| it.result = 7);
                    told.advance(micros(100));
                    if let Some(function) = otherwise {
                        told.call(function, 1, micros(100));
                    }
                    // An address, of which a result has the lower half.
                    told.leaf("fclose", micros(20)).with(|leaf| leaf.a = 0x7F00_0000_0007);
                    told.advance(micros(300)).call("C_Sign", 1, millis(1));
                }
            });
            let Saving { low, high } = saving(&timeline, &only(whole(&timeline, leaves)));
            (low, high)
        };
        assert_eq!(saved(None), (4.0 * 150e3, 4.0 * 450e3));
        assert_eq!(saved(Some("C_Digest")), (4.0 * 50e3, 4.0 * 550e3));
    }

    #[test]
    fn these_are_none() {
        let twice = one(|told| (0..2).for_each(|_| reads(told, "/etc/module.conf")));
        let others = one(|told| {
            for number in 0..9 {
                reads(told, &format!("/etc/{number}.conf"));
            }
        });
        let other_answers = one(|told| {
            for answer in 0..9 {
                told.leaf("getpwnam", millis(1)).about("card").with(|leaf| leaf.result = answer);
            }
        });
        let other_questions = one(|told| {
            for number in 0..9 {
                told.leaf("getpwuid", millis(1)).with(|leaf| leaf.a = number);
            }
        });
        let kept = one(|told| {
            for _ in 0..9 {
                told.leaf("getpwuid", millis(1)).with(|leaf| leaf.replaced = true);
            }
        });
        let too_short = one(|told| {
            packets(told, 3);
            told.advance(millis(100));
        });
        let two_programs = Story::new()
            .thread(|told| packets(told, 2))
            .process("other")
            .thread(|told| packets(told, 2))
            .timeline();
        for timeline in
            [twice, others, other_answers, other_questions, kept, too_short, two_programs]
        {
            assert_eq!(whole(&timeline, leaves), []);
        }
    }

    fn of_libc() -> CallOrigin<'static> {
        CallOrigin { function: "getprotobynumber", module: "libc.so.6", caller: "filter_packet" }
    }

    /// The system calls of so many lookups.
    fn files(count: u64, origin: CallOrigin<'static>) -> Vec<FileCall<'static>> {
        let parts = [("openat", 0, 9), ("read", 12, 6), ("read", 20, 2), ("close", 25, 5)];
        let calls = (0..count).flat_map(|packet| {
            parts.map(|(call, after, time)| {
                let start = micros(packet * 100 + after);
                let end = start + micros(time);
                FileCall { thread: 0, start, end, call, path: b"/etc/protocols", origin }
            })
        });
        calls.collect()
    }

    #[test]
    fn system_calls_say_what_a_lookup_reads_and_for_whom() {
        let timeline = one(|told| packets(told, 1_000));
        let operations = crate::operation::Operations::whole(&timeline);
        let scene = Scene::new(&timeline, &operations);
        let finding = only(find(&scene, files(1_000, of_libc())));
        assert_eq!((finding.count, finding.time), (999, micros(999 * 40)));
        let says = "/etc/protocols was opened 1,000 times by getprotobynumber of libc.so.6, called \
                    by filter_packet (close 1,000, openat 1,000, read 2,000)";
        assert_eq!(finding.evidence[1], says);
    }

    #[test]
    fn what_another_function_opens_besides_is_no_evidence() {
        let timeline = one(|told| {
            for _ in 0..10 {
                reads(told, "/etc/protocols");
            }
        });
        let origin = CallOrigin { function: "x_load", module: "libx.so", caller: "main" };
        let cache = b"/etc/ld.so.cache";
        let loads = files(10, origin).into_iter().map(|file| FileCall { path: cache, ..file });
        let all: Vec<_> = files(10, origin).into_iter().chain(loads).collect();
        let operations = crate::operation::Operations::whole(&timeline);
        let finding = only(find(&Scene::new(&timeline, &operations), all));
        let [_, from_below] = &finding.evidence[..] else { panic!("{finding:#?}") };
        assert!(from_below.starts_with("/etc/protocols was opened 10 times by x_load"));
    }

    #[test]
    fn system_calls_alone_are_enough() {
        let timeline = one(|told| {
            told.advance(millis(10));
        });
        let operations = crate::operation::Operations::whole(&timeline);
        let scene = Scene::new(&timeline, &operations);
        let finding = only(find(&scene, files(100, of_libc())));
        assert_eq!((finding.count, finding.time), (99, micros(99 * 22)));
        assert_eq!(finding.place, "getprotobynumber");
        assert_eq!(trial(&finding).as_deref(), Some("memoise:getprotobynumber"));
        assert_eq!(find(&scene, files(2, of_libc())), []);
    }
}
