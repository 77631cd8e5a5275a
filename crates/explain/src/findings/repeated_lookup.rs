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
        leaf.parent.map(|around| thread.spans[around.index()].end),
    ];
    moments.into_iter().flatten().min().map_or(leaf.end, |next| next.max(leaf.end))
}

/// When a lookup is over, and what is done with the answer. Among several that were counted together
/// others may lie: as if they had followed one another, with as much after each as after the last.
/// `latest` is when the last of those ended that began before.
fn with_use(thread: &Thread, leaf: &Leaf, latest: Nanos) -> Nanos {
    let next = next_moment(thread, leaf);
    if latest <= leaf.start && makes_no_other_call(thread, leaf) {
        return next;
    }
    let used = Nanos((next - leaf.end).0.saturating_mul(u64::from(leaf.count)));
    if leaf.count > 1 { next.min(leaf.start + leaf.time + used) } else { next }
}

/// Whether nothing else begins between calls that were counted together. Longer ones of the same sort
/// are listed among them.
fn makes_no_other_call(thread: &Thread, leaf: &Leaf) -> bool {
    let later = thread.leaves.partition_point(|other| other.start <= leaf.start);
    let mut inside = thread.leaves[later..].iter().take_while(|other| other.start < leaf.end);
    let asks_the_same =
        |other: &Leaf| (other.call, other.text, other.a) == (leaf.call, leaf.text, leaf.a);
    inside.all(asks_the_same) && makes_no_call(thread, leaf.start, leaf.end)
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
        let mut latest = Nanos::ZERO;
        for leaf in &thread.leaves {
            let before = latest;
            latest = latest.max(leaf.end);
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
                        let end = with_use(thread, leaf, before);
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
mod tests;
